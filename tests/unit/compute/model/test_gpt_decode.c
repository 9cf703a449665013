/* THREADS_TEST */
#include "tests/unit/compute/gpt_kit.h"

enum { VOCAB_MAX = 64, CONTEXT = 29 };

/* Sizes that are multiples of nothing, and all that a family may have. */
static const dp_model_config configs[] = {
    {.layers = 2, .width = 32, .heads = 2, .context = CONTEXT, .vocab = 64},
    {.layers = 1, .width = 21, .heads = 3, .context = CONTEXT, .vocab = 37},
    {.arch = DP_ARCH_LLAMA,
     .layers = 2,
     .width = 24,
     .heads = 3,
     .context = CONTEXT,
     .vocab = 40,
     .hidden = 32},
    {.arch = DP_ARCH_LLAMA,
     .layers = 3,
     .width = 24,
     .heads = 4,
     .kv_heads = 2,
     .context = CONTEXT,
     .vocab = 40,
     .hidden = 32,
     .qk_norm = DP_ON,
     .head = DP_HEAD_TIED},
    {.arch = DP_ARCH_LLAMA,
     .layers = 2,
     .width = 21,
     .heads = 3,
     .context = CONTEXT,
     .vocab = 37,
     .kv_heads = 1,
     .head_width = 10,
     .hidden = 35,
     .rope_theta = 500,
     .activation = DP_ACTIVATION_RELU2,
     .qk_norm = DP_ON,
     .softcap_milli = 1500},
    {.arch = DP_ARCH_OLMO2,
     .layers = 2,
     .width = 21,
     .heads = 4,
     .kv_heads = 2,
     .head_width = 6,
     .context = CONTEXT,
     .vocab = 37,
     .hidden = 35},
    {.arch = DP_ARCH_GEMMA2,
     .layers = 3,
     .width = 21,
     .heads = 4,
     .kv_heads = 2,
     .head_width = 6,
     .context = CONTEXT,
     .vocab = 37,
     .hidden = 35,
     .softcap_milli = 3000,
     .window = 7,
     .full_every = 2,
     .scores_softcap_milli = 1500,
     .query_scalar = 11},
    {.arch = DP_ARCH_GEMMA3,
     .layers = 3,
     .width = 21,
     .heads = 4,
     .kv_heads = 1,
     .head_width = 6,
     .context = CONTEXT,
     .vocab = 37,
     .hidden = 35,
     .rope_theta = 1000,
     .rope_scaling = DP_ROPE_LINEAR,
     .rope_factor_milli = 8000,
     .window = 7,
     .full_every = 3,
     .rope_local_theta = 50,
     .query_scalar = 6},
    {.arch = DP_ARCH_NEOX,
     .layers = 2,
     .width = 24,
     .heads = 3,
     .context = CONTEXT,
     .vocab = 37,
     .hidden = 35,
     .rope_width = 2},
};
enum { CONFIGS = sizeof configs / sizeof configs[0] };

static dp_gpt_cache *opened(const struct fixture *f)
{
    dp_gpt_cache *cache = NULL;
    assert_int_equal(dp_gpt_cache_open(&cache, f->gpt), DP_OK);
    return cache;
}

static void decode(struct fixture *f, dp_gpt_cache *cache, size_t n, float *logits)
{
    assert_int_equal(dp_gpt_decode(f->gpt, cache, f->x + dp_gpt_cache_length(cache), n, logits),
                     DP_OK);
}

/* The logits of the tokens so far, as those of the whole window. */
static void check_window(struct fixture *f, const dp_gpt_cache *cache, const float *logits)
{
    float whole[VOCAB_MAX];
    const size_t length = dp_gpt_cache_length(cache);
    const size_t vocab = f->model.config.vocab;
    assert_int_equal(dp_gpt_logits(f->gpt, f->x, length, whole), DP_OK);
    const double size = largest_of(whole, vocab);
    for (size_t i = 0; i < vocab; i++) {
        const double off = fabs((double)logits[i] - (double)whole[i]);
        if (!(off <= 2e-5 * size)) { /* Rounding of fp32 in another order of sums. */
            fail_msg("%s, %zu tokens, logit %zu: error %g of %g", f->gpt->ops->name, length, i, off,
                     size);
        }
    }
}

/* Pieces of 1, 5, 1, 1, ... tokens up to the whole context. */
static void check_model(const dp_model_config *config, size_t threads, const dp_ops *ops,
                        dp_recompute recompute)
{
    struct fixture f;
    float logits[VOCAB_MAX];
    open_fixture_at(&f, config, 1, threads, ops, recompute);
    dp_gpt_cache *const cache = opened(&f);
    decode(&f, cache, 1, logits);
    check_window(&f, cache, logits);
    decode(&f, cache, 5, logits);
    while (dp_gpt_cache_length(cache) < CONTEXT) {
        check_window(&f, cache, logits);
        decode(&f, cache, 1, logits);
    }
    check_window(&f, cache, logits);
    dp_gpt_cache_close(cache);
    close_fixture(&f);
}

static void logits_equal_those_of_the_whole_window(void **state)
{
    (void)state;
    for (size_t i = 0; i < CONFIGS; i++) {
        for (size_t table = 0; dp_ops_at(table) != NULL; table++) {
            check_model(&configs[i], 1, dp_ops_at(table), DP_RECOMPUTE_NOTHING);
        }
        check_model(&configs[i], 3, dp_ops_best(), DP_RECOMPUTE_LAYER);
    }
}

/* Columns of products and heads are what threads divide; no sum is. */
static void logits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    const dp_model_config config = {.arch = DP_ARCH_LLAMA,
                                    .layers = 2,
                                    .width = 192,
                                    .heads = 6,
                                    .kv_heads = 3,
                                    .context = 40,
                                    .vocab = VOCAB_MAX,
                                    .hidden = 300};
    struct fixture one;
    float expected[VOCAB_MAX];
    float logits[VOCAB_MAX];
    open_fixture(&one, &config, 1, 1, dp_ops_best());
    dp_gpt_cache *const cache = opened(&one);
    decode(&one, cache, 33, expected);
    decode(&one, cache, 1, expected);
    for (size_t threads = 2; threads <= 5; threads++) {
        struct fixture many;
        open_fixture(&many, &config, 1, threads, dp_ops_best());
        dp_gpt_cache *const other = opened(&many);
        decode(&many, other, 33, logits);
        decode(&many, other, 1, logits);
        assert_memory_equal(expected, logits, sizeof logits);
        dp_gpt_cache_close(other);
        close_fixture(&many);
    }
    dp_gpt_cache_close(cache);
    close_fixture(&one);
}

static void a_cleared_cache_begins_anew(void **state)
{
    (void)state;
    struct fixture f;
    float first[VOCAB_MAX];
    float again[VOCAB_MAX];
    open_fixture(&f, &configs[2], 1, 2, dp_ops_best());
    dp_gpt_cache *const cache = opened(&f);
    decode(&f, cache, 7, first);
    decode(&f, cache, 7, again);
    dp_gpt_cache_clear(cache);
    decode(&f, cache, 7, again);
    assert_memory_equal(first, again, f.model.config.vocab * sizeof *first);
    dp_gpt_cache_close(cache);
    close_fixture(&f);
}

static void a_sequence_ends_with_the_context_and_refuses_unknown_tokens(void **state)
{
    (void)state;
    struct fixture f;
    float logits[VOCAB_MAX];
    const uint32_t unknown = configs[0].vocab;
    open_fixture(&f, &configs[0], 1, 1, dp_ops_best());
    dp_gpt_cache *const cache = opened(&f);
    assert_int_equal(dp_gpt_decode(f.gpt, cache, f.x, CONTEXT + 1, logits), DP_BADARG);
    assert_int_equal(dp_gpt_decode(f.gpt, cache, f.x, 0, logits), DP_BADARG);
    assert_int_equal(dp_gpt_decode(f.gpt, cache, &unknown, 1, logits), DP_BADARG);
    assert_int_equal(dp_gpt_cache_length(cache), 0);
    decode(&f, cache, CONTEXT, logits);
    assert_int_equal(dp_gpt_decode(f.gpt, cache, f.x, 1, logits), DP_BADARG);
    assert_int_equal(dp_gpt_cache_length(cache), CONTEXT);
    dp_gpt_cache_close(cache);
    close_fixture(&f);
}

/* The layers of a batch at their first position must not know of a cache that was there before. */
static void training_goes_on_as_if_nothing_had_been_decoded(void **state)
{
    (void)state;
    struct fixture f;
    struct fixture other;
    float logits[VOCAB_MAX];
    double loss = 0;
    double expected = 0;
    open_fixture(&f, &configs[3], 2, 2, dp_ops_best());
    open_fixture(&other, &configs[3], 2, 2, dp_ops_best());
    const dp_gpt_batch batch = {f.x, f.y, 2, CONTEXT};
    dp_gpt_cache *const cache = opened(&f);
    decode(&f, cache, 9, logits);
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 1.0F, &loss), DP_OK);
    assert_int_equal(dp_gpt_step(other.gpt, &batch, 1.0F, &expected), DP_OK);
    assert_true(loss == expected);
    assert_memory_equal(dp_gpt_grads(f.gpt), dp_gpt_grads(other.gpt),
                        f.model.n_elements * sizeof(float));
    decode(&f, cache, 1, logits);
    check_window(&f, cache, logits);
    dp_gpt_cache_close(cache);
    close_fixture(&other);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(logits_equal_those_of_the_whole_window),
        cmocka_unit_test(logits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(a_cleared_cache_begins_anew),
        cmocka_unit_test(a_sequence_ends_with_the_context_and_refuses_unknown_tokens),
        cmocka_unit_test(training_goes_on_as_if_nothing_had_been_decoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
