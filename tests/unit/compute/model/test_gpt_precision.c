/* Whole models with products of rounded inputs, against fp32. THREADS_TEST */
#include "tests/unit/compute/gpt_kit.h"

static const dp_model_config gpt2 = {
    .layers = 2, .width = 33, .heads = 3, .context = 19, .vocab = 41};
static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 42,
                                      .heads = 3,
                                      .context = 19,
                                      .vocab = 41,
                                      .kv_heads = 1,
                                      .hidden = 35,
                                      .qk_norm = DP_ON};
static const dp_model_config *const configs[] = {&gpt2, &llama};
enum { N_CONFIGS = sizeof configs / sizeof configs[0], ROWS = 3, LENGTH = 19 };

static double step_of(struct fixture *f, float scale)
{
    const dp_gpt_batch batch = {f->x, f->y, ROWS, LENGTH};
    double loss = 0.0;
    dp_gpt_zero_grads(f->gpt);
    assert_int_equal(dp_gpt_step(f->gpt, &batch, scale, &loss), DP_OK);
    return loss;
}

static double norm_of(const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return sqrt(sum);
}

/* |a - b| / |b| over the whole arena. NaN in either gives NaN. */
static double distance(const float *a, const float *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    }
    return sqrt(sum) / norm_of(b, n);
}

/* Rounding an input moves it by up to 2^-9 (bf16) or 2^-12 (fp16) of itself. The products of a
 * small model do that some ten times one after the other, with random signs, and large weights
 * magnify it: eight such steps for the gradients (measured: five). */
static void rounded_models_stay_near_fp32_on_every_table(void **state)
{
    (void)state;
    const double limits[DP_PRECISIONS] = {
        [DP_FP32] = 1e-5, [DP_BF16] = 8 * 0x1p-9, [DP_FP16] = 8 * 0x1p-12};
    for (size_t c = 0; c < N_CONFIGS; c++) {
        struct fixture right;
        open_fixture(&right, configs[c], ROWS, 1, dp_ops_reference());
        const double loss = step_of(&right, 1.0F);
        for (size_t precision = 0; precision < DP_PRECISIONS; precision++) {
            for (size_t o = 0; dp_ops_at_in(precision, o) != NULL; o++) {
                struct fixture f;
                open_fixture(&f, configs[c], ROWS, 1, dp_ops_at_in(precision, o));
                const double off = fabs(step_of(&f, 1.0F) - loss) / loss;
                const double far =
                    distance(dp_gpt_grads(f.gpt), dp_gpt_grads(right.gpt), f.model.n_elements);
                if (!(off <= limits[precision] && far <= limits[precision])) {
                    fail_msg("%s: loss off by %g, gradients by %g", f.gpt->ops->name, off, far);
                }
                close_fixture(&f);
            }
        }
        close_fixture(&right);
    }
}

/* The tables of a precision mean the same: they differ by the order of sums, and by what attention
 * rounds. */
static void rounding_really_happens(void **state)
{
    (void)state;
    for (size_t c = 0; c < N_CONFIGS; c++) {
        struct fixture right;
        open_fixture(&right, configs[c], ROWS, 1, dp_ops_reference());
        DP_IGNORE(step_of(&right, 1.0F) > 0.0);
        for (int precision = DP_BF16; precision <= DP_FP16; precision++) {
            for (size_t o = 0; dp_ops_at_in((dp_precision)precision, o) != NULL; o++) {
                struct fixture f;
                open_fixture(&f, configs[c], ROWS, 1, dp_ops_at_in((dp_precision)precision, o));
                DP_IGNORE(step_of(&f, 1.0F) > 0.0);
                assert_true(distance(dp_gpt_grads(f.gpt), dp_gpt_grads(right.gpt),
                                     f.model.n_elements) > 5e-5);
                close_fixture(&f);
            }
        }
        close_fixture(&right);
    }
}

static void bits_do_not_depend_on_the_number_of_threads(void **state)
{
    (void)state;
    for (int precision = DP_BF16; precision <= DP_FP16; precision++) {
        struct fixture one;
        open_fixture(&one, &llama, ROWS, 1, dp_ops_best_in((dp_precision)precision));
        const double loss = step_of(&one, 1.0F);
        for (size_t threads = 2; threads <= 5; threads++) {
            struct fixture many;
            open_fixture(&many, &llama, ROWS, threads, dp_ops_best_in((dp_precision)precision));
            assert_true(step_of(&many, 1.0F) == loss);
            assert_memory_equal(dp_gpt_grads(one.gpt), dp_gpt_grads(many.gpt),
                                one.model.n_elements * sizeof(float));
            close_fixture(&many);
        }
        close_fixture(&one);
    }
}

static bool all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(x[i])) {
            return false;
        }
    }
    return true;
}

/* Why losses are scaled: gradients near 2^-24 round to nothing in fp16, those above 65504 to
 * infinity. */
static void small_gradients_get_lost_in_halves_and_a_scale_saves_them(void **state)
{
    (void)state;
    for (size_t o = 0; dp_ops_at_in(DP_FP16, o) != NULL; o++) {
        struct fixture right;
        struct fixture halves;
        open_fixture(&right, &gpt2, ROWS, 1, dp_ops_best());
        open_fixture(&halves, &gpt2, ROWS, 1, dp_ops_at_in(DP_FP16, o));
        const size_t n = right.model.n_elements;
        float *grads = dp_gpt_grads(halves.gpt);
        DP_IGNORE(step_of(&right, 0x1p-24F) > 0.0);
        DP_IGNORE(step_of(&halves, 0x1p-24F) > 0.0);
        assert_true(distance(grads, dp_gpt_grads(right.gpt), n) > 0.1);
        DP_IGNORE(step_of(&halves, 1.0F) > 0.0);
        for (size_t i = 0; i < n; i++) {
            grads[i] *= 0x1p-24F;
        }
        assert_true(distance(grads, dp_gpt_grads(right.gpt), n) < 8 * 0x1p-12);
        DP_IGNORE(step_of(&halves, 0x1p20F) > 0.0); /* The loss itself is not scaled. */
        assert_false(all_finite(grads, n));
        close_fixture(&right);
        close_fixture(&halves);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounded_models_stay_near_fp32_on_every_table),
        cmocka_unit_test(rounding_really_happens),
        cmocka_unit_test(bits_do_not_depend_on_the_number_of_threads),
        cmocka_unit_test(small_gradients_get_lost_in_halves_and_a_scale_saves_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
