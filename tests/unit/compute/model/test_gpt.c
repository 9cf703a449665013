/* THREADS_TEST */
#include "tests/unit/compute/gpt_kit.h"

#include "compute/model/optim.h"

static const dp_model_config small = {
    .layers = 2, .width = 32, .heads = 2, .context = 17, .vocab = 64};
static const dp_model_config odd = {
    .layers = 1, .width = 21, .heads = 3, .context = 41, .vocab = 37};

static void loss_and_gradients_equal_the_float64_model(void **state)
{
    (void)state;
    for (size_t i = 0; dp_ops_at(i) != NULL; i++) {
        check_shape(&small, 3, 17, dp_ops_at(i));
    }
}

static void odd_widths_and_vocabularies_are_right(void **state)
{
    (void)state;
    for (size_t i = 0; dp_ops_at(i) != NULL; i++) {
        check_shape(&odd, 1, 41, dp_ops_at(i));
    }
}

static void one_token_is_a_sequence(void **state)
{
    (void)state;
    for (size_t i = 0; dp_ops_at(i) != NULL; i++) {
        check_shape(&small, 1, 1, dp_ops_at(i));
        check_shape(&odd, 3, 1, dp_ops_at(i));
    }
}

static void sequences_may_be_shorter_than_the_context(void **state)
{
    (void)state;
    check_shape(&small, 3, 5, dp_ops_best());
}

static void results_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    const dp_model_config config = {
        .layers = 2, .width = 48, .heads = 3, .context = 40, .vocab = 150};
    struct fixture one;
    open_fixture(&one, &config, 7, 1, dp_ops_best());
    double loss = 0.0;
    const dp_gpt_batch batch = {one.x, one.y, 7, 40};
    assert_int_equal(dp_gpt_step(one.gpt, &batch, 1.0F, &loss), DP_OK);
    for (size_t threads = 2; threads <= 5; threads++) {
        struct fixture many;
        double other = 0.0;
        open_fixture(&many, &config, 7, threads, dp_ops_best());
        assert_int_equal(dp_gpt_step(many.gpt, &batch, 1.0F, &other), DP_OK);
        assert_true(loss == other);
        assert_memory_equal(dp_gpt_grads(one.gpt), dp_gpt_grads(many.gpt),
                            one.model.n_elements * sizeof(float));
        close_fixture(&many);
    }
    close_fixture(&one);
}

static void micro_batches_sum_to_the_whole_batch(void **state)
{
    (void)state;
    struct fixture whole;
    struct fixture parts;
    double loss = 0.0;
    double loss_parts = 0.0;
    open_fixture(&whole, &small, 5, 1, dp_ops_best());
    open_fixture(&parts, &small, 5, 1, dp_ops_best());
    const dp_gpt_batch batch = {whole.x, whole.y, 5, 17};
    assert_int_equal(dp_gpt_step(whole.gpt, &batch, 0.01F, &loss), DP_OK);
    for (size_t row = 0; row < 5; row += 2) {
        const size_t rows = row + 2 <= 5 ? 2 : 1;
        const dp_gpt_batch part = {whole.x + row * 17, whole.y + row * 17, rows, 17};
        double some = 0.0;
        assert_int_equal(dp_gpt_step(parts.gpt, &part, 0.01F, &some), DP_OK);
        loss_parts += some;
    }
    assert_true(fabs(loss - loss_parts) <= 1e-6 * loss);
    double difference = 0.0;
    double size = 0.0;
    for (size_t i = 0; i < whole.model.n_elements; i++) {
        const double a = (double)dp_gpt_grads(whole.gpt)[i];
        const double b = (double)dp_gpt_grads(parts.gpt)[i];
        difference += (a - b) * (a - b);
        size += a * a;
    }
    assert_true(difference <= 1e-12 * size && size > 0.0);
    close_fixture(&whole);
    close_fixture(&parts);
}

static void the_head_in_parts_is_the_whole_head(void **state)
{
    (void)state;
    struct fixture whole;
    struct fixture parts;
    double loss = 0.0;
    double loss_parts = 0.0;
    open_fixture(&whole, &small, 5, 1, dp_ops_best());
    open_fixture(&parts, &small, 5, 1, dp_ops_best());
    parts.gpt->head_tokens = 30; /* not a multiple of a slice or of 85 tokens */
    const dp_gpt_batch batch = {whole.x, whole.y, 5, 17};
    assert_int_equal(dp_gpt_step(whole.gpt, &batch, 1.0F, &loss), DP_OK);
    assert_int_equal(dp_gpt_step(parts.gpt, &batch, 1.0F, &loss_parts), DP_OK);
    assert_true(loss == loss_parts);
    for (size_t i = 0; i < whole.model.n_elements; i++) {
        const float a = dp_gpt_grads(whole.gpt)[i];
        assert_true(fabsf(a - dp_gpt_grads(parts.gpt)[i]) <= 1e-4F * (fabsf(a) + 1.0F));
    }
    close_fixture(&whole);
    close_fixture(&parts);
}

static void zeroed_gradients_forget_what_stood_there(void **state)
{
    (void)state;
    struct fixture used;
    struct fixture fresh;
    double loss = 0.0;
    open_fixture(&used, &small, 5, 1, dp_ops_best());
    open_fixture(&fresh, &small, 5, 1, dp_ops_best());
    used.gpt->head_tokens = 30; /* the head's gradient is written once and added to twice */
    fresh.gpt->head_tokens = 30;
    const dp_gpt_batch first = {used.x, used.y, 5, 17};
    const dp_gpt_batch second = {used.x + 17, used.y + 17, 4, 17};
    assert_int_equal(dp_gpt_step(used.gpt, &first, 0.3F, &loss), DP_OK);
    dp_gpt_grads(used.gpt)[used.model.n_elements / 2] = NAN;
    dp_gpt_zero_grads(used.gpt);
    for (size_t micro = 0; micro < 2; micro++) {
        assert_int_equal(dp_gpt_step(used.gpt, &second, 1.0F, &loss), DP_OK);
        assert_int_equal(dp_gpt_step(fresh.gpt, &second, 1.0F, &loss), DP_OK);
        assert_memory_equal(dp_gpt_grads(used.gpt), dp_gpt_grads(fresh.gpt),
                            fresh.model.n_elements * sizeof(float));
    }
    dp_gpt_zero_grads(used.gpt);
    assert_true(largest_of(dp_gpt_grads(used.gpt), used.model.n_elements) == 0.0);
    close_fixture(&used);
    close_fixture(&fresh);
}

/* The tokens of the thread that gets most, when each takes the next slice as soon as it is free. */
static size_t longest_share(size_t tokens, size_t slice, size_t threads)
{
    size_t share[8] = {0};
    for (size_t first = 0; first < tokens; first += slice) {
        size_t least = 0;
        for (size_t i = 1; i < threads; i++) {
            least = share[i] < share[least] ? i : least;
        }
        share[least] += tokens - first < slice ? tokens - first : slice;
    }
    size_t longest = 0;
    for (size_t i = 0; i < threads; i++) {
        longest = share[i] > longest ? share[i] : longest;
    }
    return longest;
}

static void threads_have_nearly_equal_shares_of_the_tokens(void **state)
{
    (void)state;
    for (size_t threads = 1; threads <= 8; threads++) {
        for (size_t tokens = 256; tokens <= 8192; tokens += 64) {
            const size_t slice = dp_gpt_slice_of(tokens, threads);
            assert_true(slice >= 24 && slice <= DP_GPT_SLICE_MAX);
            /* 24 more: an even share need not be whole groups of rows. */
            assert_true(longest_share(tokens, slice, threads) <= tokens / threads * 107 / 100 + 24);
        }
    }
    assert_int_equal(longest_share(256, dp_gpt_slice_of(256, 2), 2), 132);
}

static void the_loss_alone_is_the_loss_of_the_step_and_leaves_gradients(void **state)
{
    (void)state;
    struct fixture f;
    double stepped = 0.0;
    double alone = 0.0;
    open_fixture(&f, &small, 2, 1, dp_ops_best());
    const dp_gpt_batch batch = {f.x, f.y, 2, 17};
    assert_int_equal(dp_gpt_loss(f.gpt, &batch, &alone), DP_OK);
    for (size_t i = 0; i < f.model.n_elements; i++) {
        assert_true(dp_gpt_grads(f.gpt)[i] == 0.0F);
    }
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 1.0F, &stepped), DP_OK);
    assert_true(stepped == alone && alone > 0.0);
    close_fixture(&f);
}

static void logits_of_the_last_position_equal_the_float64_model(void **state)
{
    (void)state;
    check_logits(&small, 1, 8);
}

static void padding_of_the_gradients_stays_zero(void **state)
{
    (void)state;
    struct fixture f;
    double loss = 0.0;
    open_fixture(&f, &odd, 2, 2, dp_ops_best());
    const dp_gpt_batch batch = {f.x, f.y, 2, 41};
    assert_int_equal(dp_gpt_step(f.gpt, &batch, 1.0F, &loss), DP_OK);
    for (size_t t = 0; t < f.model.n_tensors; t++) {
        const size_t end =
            t + 1 < f.model.n_tensors ? f.model.tensors[t + 1].offset : f.model.n_elements;
        for (size_t i = f.model.tensors[t].offset + f.model.tensors[t].elements; i < end; i++) {
            assert_true(dp_gpt_grads(f.gpt)[i] == 0.0F);
        }
    }
    close_fixture(&f);
}

static void a_nan_in_any_weight_matrix_is_divergence(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at(o) != NULL; o++) {
        struct fixture f;
        double loss = -1.0;
        open_fixture(&f, &small, 2, 1, dp_ops_at(o));
        const dp_gpt_batch batch = {f.x, f.y, 2, 17};
        for (size_t t = 0; t < f.model.n_tensors; t++) {
            float *weight = dp_gpt_params_to_write(f.gpt) + f.model.tensors[t].offset;
            const size_t at = f.model.tensors[t].slot == DP_SLOT_EMBED ? (size_t)f.x[0] * 32 : 0;
            const float kept = weight[at];
            weight[at] = NAN;
            assert_int_equal(dp_gpt_step(f.gpt, &batch, 1.0F, &loss), DP_DIVERGED);
            assert_true(loss == -1.0);
            weight[at] = kept;
        }
        close_fixture(&f);
    }
}

static void impossible_batches_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    double loss = 0.0;
    float logits[64];
    open_fixture(&f, &small, 2, 1, dp_ops_best());
    assert_int_equal(dp_gpt_step(f.gpt, &(dp_gpt_batch){f.x, f.y, 3, 17}, 1.0F, &loss), DP_BADARG);
    assert_int_equal(dp_gpt_step(f.gpt, &(dp_gpt_batch){f.x, f.y, 0, 17}, 1.0F, &loss), DP_BADARG);
    assert_int_equal(dp_gpt_step(f.gpt, &(dp_gpt_batch){f.x, f.y, 2, 18}, 1.0F, &loss), DP_BADARG);
    assert_int_equal(dp_gpt_step(f.gpt, &(dp_gpt_batch){f.x, f.y, 2, 0}, 1.0F, &loss), DP_BADARG);
    assert_int_equal(dp_gpt_step(f.gpt, &(dp_gpt_batch){f.x, f.y, 2, 17}, NAN, &loss), DP_BADARG);
    assert_int_equal(dp_gpt_logits(f.gpt, f.x, 18, logits), DP_BADARG);
    f.y[20] = 64;
    assert_int_equal(dp_gpt_step(f.gpt, &(dp_gpt_batch){f.x, f.y, 2, 17}, 1.0F, &loss), DP_BADARG);
    f.x[3] = 64;
    assert_int_equal(dp_gpt_logits(f.gpt, f.x, 17, logits), DP_BADARG);
    close_fixture(&f);
}

static void memory_is_what_was_promised_and_failure_leaks_nothing(void **state)
{
    (void)state;
    dp_model model;
    dp_gpt *gpt = NULL;
    assert_int_equal(dp_model_open(&model, &small, NULL), DP_OK);
    const size_t before = dp_alloc_live_bytes();
    dp_gpt_options options = {.rows_max = 4};
    assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_OK);
    const size_t took = dp_alloc_live_bytes() - before;
    const size_t promised = dp_gpt_bytes(&model, &options);
    assert_in_range(took, promised, promised + 4096); /* the allocator may count its headers */
    dp_gpt_close(gpt);
    for (size_t n = 1; n <= 3; n++) {
        gpt = NULL;
        dp_alloc_fail_after(n);
        const dp_status status = dp_gpt_open(&gpt, &model, &options);
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
        assert_null(gpt);
    }
    assert_int_equal(dp_alloc_live_bytes(), before);
    options.rows_max = 0;
    assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_BADARG);
    assert_int_equal(dp_gpt_bytes(&model, &options), 0);
    options.rows_max = DP_GPT_ROWS_MAX + 1;
    assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_TOOBIG);
    options = (dp_gpt_options){.rows_max = 4, .recompute = DP_RECOMPUTE_STEPS};
    assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_BADARG);
    dp_model_close(&model);
}

static void thirty_steps_learn_a_repeated_sentence(void **state)
{
    (void)state;
    struct fixture f;
    dp_optim optim;
    double first = 0.0;
    double loss = 0.0;
    open_fixture(&f, &small, 4, 2, dp_ops_best());
    dp_model_init(&f.model, 3, dp_gpt_params_to_write(f.gpt));
    assert_int_equal(dp_optim_init(&optim, &(dp_optim_setup){.model = &f.model}), DP_OK);
    for (size_t i = 0; i < 4 * 17; i++) {
        f.x[i] = (uint32_t)(i * 5 % 64);
        f.y[i] = (uint32_t)((i + 1) * 5 % 64);
    }
    const dp_gpt_batch batch = {f.x, f.y, 4, 17};
    const dp_optim_options options = {
        .lr = 1e-2F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .decay = 0.1F, .clip = 1.0F};
    for (size_t step = 0; step < 30; step++) {
        dp_gpt_zero_grads(f.gpt);
        assert_int_equal(dp_gpt_step(f.gpt, &batch, 1.0F / (4 * 17), &loss), DP_OK);
        assert_int_equal(dp_optim_step(&optim, dp_gpt_params_to_write(f.gpt), dp_gpt_grads(f.gpt),
                                       &options, f.pool, NULL),
                         DP_OK);
        first = step == 0 ? loss : first;
    }
    assert_true(first / (4 * 17) > 4.0 && first / (4 * 17) < 4.4); /* ln 64 = 4.16 */
    assert_true(loss < 0.3 * first);
    dp_optim_close(&optim);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss_and_gradients_equal_the_float64_model),
        cmocka_unit_test(odd_widths_and_vocabularies_are_right),
        cmocka_unit_test(one_token_is_a_sequence),
        cmocka_unit_test(sequences_may_be_shorter_than_the_context),
        cmocka_unit_test(results_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(micro_batches_sum_to_the_whole_batch),
        cmocka_unit_test(the_head_in_parts_is_the_whole_head),
        cmocka_unit_test(zeroed_gradients_forget_what_stood_there),
        cmocka_unit_test(threads_have_nearly_equal_shares_of_the_tokens),
        cmocka_unit_test(the_loss_alone_is_the_loss_of_the_step_and_leaves_gradients),
        cmocka_unit_test(logits_of_the_last_position_equal_the_float64_model),
        cmocka_unit_test(padding_of_the_gradients_stays_zero),
        cmocka_unit_test(a_nan_in_any_weight_matrix_is_divergence),
        cmocka_unit_test(impossible_batches_are_refused),
        cmocka_unit_test(memory_is_what_was_promised_and_failure_leaks_nothing),
        cmocka_unit_test(thirty_steps_learn_a_repeated_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
