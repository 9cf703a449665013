/* The end of the model: losses and gradients of logits near the CPU's reference, and sums of
 * losses. */
#include "compute/cuda/head.h"
#include "tests/unit/cuda/near.h"

enum { ROWS = 3 };

typedef struct head_case {
    dp_precision type;
    size_t vocab;
    size_t ld;
    float size;
    float cap;
    size_t offset;
} head_case;

static void check_classifier(const head_case *h)
{
    const cudaStream_t stream = card_open();
    const size_t n = ROWS * h->ld;
    float *const x = near_fill(n, 1, h->size, h->type);
    float *const logits = near_room(ROWS * h->vocab);
    float *const right = near_room(n); /* padding 0 */
    float losses[ROWS];
    uint32_t targets[ROWS];
    const float by = 0.5F;
    for (size_t row = 0; row < ROWS; row++) {
        targets[row] = (uint32_t)((row * 7919 + h->vocab - 1) % h->vocab);
        memcpy(logits + row * h->vocab, x + row * h->ld, h->vocab * sizeof *x);
        for (size_t i = h->vocab; i < h->ld; i++) {
            x[row * h->ld + i] = row == 1 ? NAN : 1e4F; /* No kernel may read there. */
        }
    }
    void *const card_x = near_put_at(x, n, h->type, h->offset);
    uint32_t *const card_targets = card_put(targets, sizeof targets);
    float *const card_losses = near_poison(ROWS, DP_FP32);
    float *const card_by = near_put(&by, 1, DP_FP32);
    dp_cuda_classifier c = {.type = h->type,
                            .logits = card_x,
                            .targets = card_targets,
                            .rows = ROWS,
                            .vocab = h->vocab,
                            .ld = h->ld,
                            .softcap = h->cap,
                            .losses = card_losses};
    dp_ops_reference()->classifier(&(dp_classifier){.logits = logits,
                                                    .targets = targets,
                                                    .rows = ROWS,
                                                    .vocab = h->vocab,
                                                    .softcap = h->cap,
                                                    .scale = 0.125F,
                                                    .losses = losses});
    for (size_t row = 0; row < ROWS; row++) {
        memcpy(right + row * h->ld, logits + row * h->vocab, h->vocab * sizeof *right);
    }
    /* The exponent is off by 2^-24 of a logit's size, a capped one by 2^-22 of the cap. */
    const double slack = 4e-7 * (2.0 + (double)h->size + (double)h->cap);
    CHECK_OK(dp_cuda_classify(&c, stream));
    near_check("loss alone", card_losses, losses, ROWS, DP_FP32, slack);
    c.scale = 0.25F;
    c.scale_by = card_by;
    CHECK_OK(dp_cuda_classify(&c, stream));
    near_check("loss", card_losses, losses, ROWS, DP_FP32, slack);
    near_check("d_logits", card_x, right, n, h->type, 0.125 * slack);
    near_free_at(card_x, h->type, h->offset);
    card_free(card_targets);
    card_free(card_losses);
    card_free(card_by);
    free(x);
    free(logits);
    free(right);
}

static void losses_and_gradients_are_near_the_reference(void **state)
{
    (void)state;
    static const size_t vocabs[] = {1, 2, 7, 8, 33, 100, 4100};
    for (size_t t = 0; t < NEAR_TYPES; t++) {
        for (size_t i = 0; i < sizeof vocabs / sizeof vocabs[0]; i++) {
            const size_t padded = (vocabs[i] + 63) / 64 * 64;
            const head_case tight = {near_types[t], vocabs[i], vocabs[i], 3.0F, 0.0F, 0};
            const head_case wide = {near_types[t], vocabs[i], padded, 20.0F, 0.0F, 0};
            check_classifier(&tight);
            check_classifier(&wide);
        }
        const head_case capped = {near_types[t], 100, 104, 60.0F, 15.0F, 0};
        const head_case shifted = {near_types[t], 100, 104, 3.0F, 0.0F, 1};
        check_classifier(&capped);
        check_classifier(&shifted);
    }
}

static void a_logit_that_is_no_number_makes_the_loss_none(void **state)
{
    (void)state;
    const float bad[] = {NAN, INFINITY};
    for (size_t i = 0; i < 2; i++) {
        float x[40] = {0};
        const uint32_t target = i == 0 ? 3 : 40; /* The second is also no token. */
        x[17] = bad[i];
        float *const card_x = near_put(x, 40, DP_FP32);
        uint32_t *const card_target = card_put(&target, sizeof target);
        float *const loss = near_poison(1, DP_FP32);
        const double zero = 0.0;
        double *const sum = card_put(&zero, sizeof zero);
        const dp_cuda_classifier c = {.logits = card_x,
                                      .targets = card_target,
                                      .rows = 1,
                                      .vocab = 40,
                                      .ld = 40,
                                      .scale = 1.0F,
                                      .losses = loss};
        CHECK_OK(dp_cuda_classify(&c, card_open()));
        CHECK_OK(dp_cuda_loss_sum(loss, 1, sum, card_open()));
        double got;
        card_get(sum, &got, sizeof got);
        CHECK(fabs(got) > 1e300 || isnan(got));
        card_free(card_x);
        card_free(card_target);
        card_free(loss);
        card_free(sum);
    }
}

static void losses_are_summed_in_double(void **state)
{
    (void)state;
    enum { N = 3001 };
    float losses[N];
    double right = 7.0;
    for (size_t i = 0; i < N; i++) {
        losses[i] = (float)(i % 97) * 0x1p-20F + (i % 2 == 0 ? 1000.0F : 0x1p-10F);
        right += (double)losses[i];
    }
    const double before = 7.0;
    float *const card = near_put(losses, N, DP_FP32);
    double *const sum = card_put(&before, sizeof before);
    double got;
    CHECK_OK(dp_cuda_loss_sum(card, N, sum, card_open()));
    card_get(sum, &got, sizeof got);
    assert_true(fabs(got - right) < 1e-9);
    card_free(card);
    card_free(sum);
}

static void logits_leave_as_floats(void **state)
{
    (void)state;
    enum { N = 700 };
    for (size_t t = 0; t < NEAR_TYPES; t++) {
        for (int capped = 0; capped < 2; capped++) {
            const float cap = capped == 0 ? 0.0F : 10.0F;
            float *const x = near_fill(N, 1, 40.0F, near_types[t]);
            void *const card = near_put(x, N, near_types[t]);
            float *const out = near_poison(N, DP_FP32);
            CHECK_OK(dp_cuda_logits_out(card, near_types[t], N, cap, out, card_open()));
            if (capped != 0) {
                dp_ops_reference()->softcap(x, N, cap);
            }
            near_check("logit", out, x, N, DP_FP32, 4e-7 * (double)cap);
            card_free(card);
            card_free(out);
            free(x);
        }
    }
}

static void impossible_heads_are_refused(void **state)
{
    (void)state;
    dp_cuda_classifier c = {.rows = 1, .vocab = 8, .ld = 7};
    CHECK_STATUS(dp_cuda_classify(&c, card_open()), DP_BADARG);
    c.vocab = 0;
    CHECK_STATUS(dp_cuda_classify(&c, card_open()), DP_BADARG);
    c.vocab = 7;
    c.type = DP_PRECISIONS;
    CHECK_STATUS(dp_cuda_classify(&c, card_open()), DP_BADARG);
    CHECK_STATUS(dp_cuda_logits_out(NULL, DP_PRECISIONS, 1, 0.0F, NULL, card_open()), DP_BADARG);
    c.type = DP_FP32;
    c.rows = 0;
    CHECK_OK(dp_cuda_classify(&c, card_open()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(losses_and_gradients_are_near_the_reference),
        cmocka_unit_test(a_logit_that_is_no_number_makes_the_loss_none),
        cmocka_unit_test(losses_are_summed_in_double),
        cmocka_unit_test(logits_leave_as_floats),
        cmocka_unit_test(impossible_heads_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
