/* Rows of documents that are kept apart, against each document as a row of its own. THREADS_TEST */
#include "tests/unit/compute/gpt_kit.h"

enum { ROWS = 2, DOCUMENTS = 4, LONG = 150, SHORT = 29 };

static const dp_model_config gpt2 = {
    .layers = 2, .width = 32, .heads = 2, .context = SHORT, .vocab = 41};
static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 24,
                                      .heads = 3,
                                      .context = SHORT,
                                      .vocab = 40,
                                      .kv_heads = 1,
                                      .hidden = 32,
                                      .qk_norm = DP_ON,
                                      .softcap_milli = 1500};
/* Longer than a block of queries and than a panel of keys. */
static const dp_model_config wide = {.arch = DP_ARCH_LLAMA,
                                     .layers = 2,
                                     .width = 24,
                                     .heads = 2,
                                     .context = LONG,
                                     .vocab = 40,
                                     .hidden = 32};
/* Two kinds of layers, each with angles of its own; a window narrower than some documents. */
static const dp_model_config gemma3 = {.arch = DP_ARCH_GEMMA3,
                                       .layers = 2,
                                       .width = 24,
                                       .heads = 2,
                                       .context = LONG,
                                       .vocab = 40,
                                       .kv_heads = 1,
                                       .head_width = 12,
                                       .hidden = 32,
                                       .window = 20,
                                       .full_every = 2,
                                       .rope_theta = 1000000,
                                       .rope_local_theta = 10000,
                                       .query_scalar = 12};
static const dp_model_config *const configs[] = {&gpt2, &llama, &wide, &gemma3};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

/* The lengths of the documents of a row, which fill it. */
static const size_t lengths_short[ROWS][DOCUMENTS] = {{7, 1, 12, 9}, {20, 2, 3, 4}};
static const size_t lengths_long[ROWS][DOCUMENTS] = {{50, 3, 70, 27}, {1, 97, 2, 50}};

static const size_t *lengths_of(const dp_model_config *config, size_t row)
{
    return config->context == LONG ? lengths_long[row] : lengths_short[row];
}

/* Marks every document, its last target, which is of the next one, and each third target. */
static void mark(struct fixture *f, const dp_model_config *config)
{
    for (size_t row = 0; row < ROWS; row++) {
        size_t at = row * config->context;
        for (size_t d = 0; d < DOCUMENTS; d++) {
            f->x[at] |= DP_TOKEN_BEGINS;
            at += lengths_of(config, row)[d];
            f->y[at - 1] = DP_TOKEN_NO_LOSS;
        }
    }
    for (size_t i = 0; i < ROWS * (size_t)config->context; i += 3) {
        f->y[i] = DP_TOKEN_NO_LOSS;
    }
}

static double distance(const float *a, const float *b, size_t n)
{
    double off = 0.0;
    double size = 0.0;
    for (size_t i = 0; i < n; i++) {
        off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
        size += (double)b[i] * (double)b[i];
    }
    assert_true(size > 0.0);
    return sqrt(off / size);
}

/* The sum over all documents, each a row of its own. */
static double step_alone(struct fixture *f, const dp_model_config *config)
{
    double sum = 0.0;
    dp_gpt_zero_grads(f->gpt);
    for (size_t row = 0; row < ROWS; row++) {
        size_t at = row * config->context;
        for (size_t d = 0; d < DOCUMENTS; d++) {
            double loss = 0.0;
            const size_t length = lengths_of(config, row)[d];
            const dp_gpt_batch one = {.x = f->x + at, .y = f->y + at, .rows = 1, .length = length};
            assert_int_equal(dp_gpt_step(f->gpt, &one, 0.5F, &loss), DP_OK);
            sum += loss;
            at += length;
        }
    }
    return sum;
}

static void check_packed(const dp_model_config *config, const dp_ops *ops, dp_recompute recompute,
                         double limit)
{
    struct fixture f;
    struct fixture alone;
    open_fixture_at(&f, config, ROWS, 2, ops, recompute);
    open_fixture_at(&alone, config, ROWS, 1, ops, DP_RECOMPUTE_NOTHING);
    mark(&f, config);
    mark(&alone, config);
    const dp_gpt_batch batch = {.x = f.x, .y = f.y, .rows = ROWS, .length = config->context};
    double loss = 0.0;
    double eval = 0.0;
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 0.5F, &loss), DP_OK);
    const double right = step_alone(&alone, config);
    const double far = distance(dp_gpt_grads(f.gpt), dp_gpt_grads(alone.gpt), f.model.n_elements);
    assert_int_equal(dp_gpt_loss(f.gpt, &batch, &eval), DP_OK);
    if (!(fabs(loss - right) <= limit * right && far <= limit && eval == loss)) {
        fail_msg("%s, recompute %d: loss %.9g, alone %.9g; gradients off by %g", ops->name,
                 (int)recompute, loss, right, far);
    }
    close_fixture(&alone);
    close_fixture(&f);
}

/* The tables round the same inputs in both cases; only sums have another order, of which fp16 and
 * bf16 see a rounding now and then. */
static void packed_documents_equal_documents_alone_on_every_table(void **state)
{
    (void)state;
    const double limits[DP_PRECISIONS] = {
        [DP_FP32] = 2e-6, [DP_BF16] = 0x1p-9, [DP_FP16] = 0x1p-12};
    for (size_t c = 0; c < CONFIGS; c++) {
        for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
            for (size_t o = 0; dp_ops_at_in((dp_precision)precision, o) != NULL; o++) {
                check_packed(configs[c], dp_ops_at_in((dp_precision)precision, o),
                             DP_RECOMPUTE_NORMS, limits[precision]);
            }
        }
    }
}

static void recomputation_keeps_documents_apart(void **state)
{
    (void)state;
    for (size_t c = 0; c < CONFIGS; c++) {
        for (int r = 0; r < DP_RECOMPUTE_STEPS; r++) {
            check_packed(configs[c], dp_ops_best(), (dp_recompute)r, 2e-6);
        }
    }
}

/* One document without marks has the float64 model; so the sum of two complementary masks has it
 * too. */
static void losses_of_complementary_masks_add_up_to_the_float64_model(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t odd[SHORT];
    uint32_t even[SHORT];
    open_fixture(&f, &llama, 1, 1, dp_ops_best());
    for (size_t i = 0; i < SHORT; i++) {
        odd[i] = i % 2 == 1 ? f.y[i] : DP_TOKEN_NO_LOSS;
        even[i] = i % 2 == 0 ? f.y[i] : DP_TOKEN_NO_LOSS;
    }
    double losses[2];
    dp_gpt_batch batch = {.x = f.x, .y = odd, .rows = 1, .length = SHORT};
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 0.25F, &losses[0]), DP_OK);
    batch.y = even;
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 0.25F, &losses[1]), DP_OK);
    batch.y = f.y;
    double *params = params_of(&f);
    const double right = loss64(&f.model, params, &batch);
    free(params);
    assert_true(fabs(losses[0] + losses[1] - right) <= 1e-5 * right);
    check_gradients(&f, &batch, 0.25);
    close_fixture(&f);
}

static void a_row_without_a_target_has_no_loss_and_no_gradient(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, &llama, 1, 1, dp_ops_best());
    for (size_t i = 0; i < SHORT; i++) {
        f.y[i] = DP_TOKEN_NO_LOSS;
    }
    const dp_gpt_batch batch = {.x = f.x, .y = f.y, .rows = 1, .length = SHORT};
    double loss = 1.0;
    dp_gpt_zero_grads(f.gpt);
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 1.0F, &loss), DP_OK);
    assert_true(loss == 0.0);
    const float *const grads = dp_gpt_grads(f.gpt);
    for (size_t i = 0; i < f.model.n_elements; i++) {
        assert_true(grads[i] == 0.0F);
    }
    close_fixture(&f);
}

static void logits_are_those_of_the_last_document(void **state)
{
    (void)state;
    struct fixture f;
    float packed[64];
    float alone[64];
    open_fixture(&f, &gpt2, 1, 1, dp_ops_best());
    f.x[11] |= DP_TOKEN_BEGINS;
    assert_int_equal(dp_gpt_logits(f.gpt, f.x, SHORT, packed), DP_OK);
    assert_int_equal(dp_gpt_logits(f.gpt, f.x + 11, SHORT - 11, alone), DP_OK);
    assert_true(distance(packed, alone, gpt2.vocab) <= 1e-6);
    f.x[11] = dp_token_of(f.x[11]);
    assert_int_equal(dp_gpt_logits(f.gpt, f.x, SHORT, packed), DP_OK);
    assert_true(distance(packed, alone, gpt2.vocab) > 1e-2);
    close_fixture(&f);
}

/* A mark is no way around the check of tokens; a cache holds one document. */
static void tokens_outside_and_documents_in_a_cache_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    dp_gpt_cache *cache;
    float logits[64];
    double loss = 0.0;
    open_fixture(&f, &gpt2, 1, 1, dp_ops_best());
    f.x[3] |= DP_TOKEN_BEGINS;
    assert_int_equal(dp_gpt_cache_open(&cache, f.gpt), DP_OK);
    assert_int_equal(dp_gpt_decode(f.gpt, cache, f.x, 5, logits), DP_BADARG);
    assert_int_equal(dp_gpt_cache_length(cache), 0);
    dp_gpt_cache_close(cache);
    const dp_gpt_batch batch = {.x = f.x, .y = f.y, .rows = 1, .length = SHORT};
    f.x[3] = DP_TOKEN_BEGINS | gpt2.vocab;
    assert_int_equal(dp_gpt_loss(f.gpt, &batch, &loss), DP_BADARG);
    f.x[3] = 0;
    f.y[3] = DP_TOKEN_BEGINS;
    assert_int_equal(dp_gpt_loss(f.gpt, &batch, &loss), DP_BADARG);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_documents_equal_documents_alone_on_every_table),
        cmocka_unit_test(recomputation_keeps_documents_apart),
        cmocka_unit_test(losses_of_complementary_masks_add_up_to_the_float64_model),
        cmocka_unit_test(a_row_without_a_target_has_no_loss_and_no_gradient),
        cmocka_unit_test(logits_are_those_of_the_last_document),
        cmocka_unit_test(tokens_outside_and_documents_in_a_cache_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
