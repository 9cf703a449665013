/* Norms of heads and rotary positions: near the CPU's reference, for widths that share a warp and
 * widths that do not. */
#include "compute/cuda/rope.h"
#include "tests/unit/cuda/near.h"

enum { LENGTH = 5, HEADS = 3, KV_HEADS = 2, TAIL = 4 /* columns of v, which must not change */ };

typedef struct rope_case {
    size_t rows;
    size_t head;
    size_t offset;
    bool norms;
    bool in_place;
    dp_precision type;
} rope_case;

/* The same on the CPU: y [rows][ld] from x, or d in place from behind to before. */
static void cpu_rope(const rope_case *c, const float *x, size_t ld, const float *angles,
                     const float *const gains[2], float *const rstd[2], float *y, bool back,
                     float *const d_gains[2])
{
    const dp_ops *const ops = dp_ops_reference();
    const size_t heads[2] = {HEADS, KV_HEADS};
    float *const behind = near_room(c->rows * ld);
    for (size_t side = 0; side < 2; side++) {
        const size_t at = side * HEADS * c->head;
        const dp_rms_rows rms = {c->rows, heads[side], c->head,     1e-6F,
                                 x + at,  ld,          gains[side], rstd[side]};
        const dp_rope_rows rope = {.rows = c->rows,
                                   .groups = heads[side],
                                   .width = c->head,
                                   .x = y + at,
                                   .ld = ld,
                                   .angles = angles,
                                   .length = LENGTH};
        if (back) {
            ops->rope(&rope, true);
        }
        if (c->norms && !back) {
            ops->rms_forward(&rms, y + at, ld);
        } else if (c->norms) {
            memcpy(behind, y, c->rows * ld * sizeof *y);
            ops->rms_backward(&rms, behind + at, NULL, y + at, ld);
            ops->rms_grads(&rms, behind + at, ld, 0, c->head, d_gains[side]);
        }
        if (!back) {
            ops->rope(&rope, false);
        }
    }
    free(behind);
}

static void check_rope(const rope_case *c)
{
    const cudaStream_t stream = card_open();
    const size_t ld = (HEADS + KV_HEADS) * c->head + TAIL;
    const size_t n = c->rows * ld;
    float *const angles = near_room(LENGTH * c->head);
    float *const x = near_fill(n, 1, 2.0F, c->type);
    float *const y = near_fill(n, 1, 2.0F, c->type);
    float *const d = near_fill(n, 2, 1.0F, c->type);
    float *const gains[2] = {near_fill(c->head, 3, 1.5F, DP_FP32),
                             near_fill(c->head, 4, 1.5F, DP_FP32)};
    float *const d_gains[2] = {near_fill(c->head, 5, 1.0F, DP_FP32),
                               near_fill(c->head, 6, 1.0F, DP_FP32)};
    float *const rstd[2] = {near_room(c->rows * HEADS), near_room(c->rows * KV_HEADS)};
    dp_rope_angles(&(dp_rope_turns){.theta = 10000.0, .width = c->head}, LENGTH, angles);
    float *const card_angles = near_put(angles, LENGTH * c->head, DP_FP32);
    void *const card_x = near_put_at(x, n, c->type, c->offset);
    void *const card_y = c->in_place ? card_x : near_put_at(x, n, c->type, c->offset);
    void *const card_d = near_put(d, n, c->type);
    float *card_gains[2];
    float *card_d_gains[2];
    float *card_rstd[2];
    for (size_t side = 0; side < 2; side++) {
        card_gains[side] = near_put(gains[side], c->head, DP_FP32);
        card_d_gains[side] = near_put(d_gains[side], c->head, DP_FP32);
        card_rstd[side] = near_poison(c->rows * (side == 0 ? HEADS : KV_HEADS), DP_FP32);
    }
    float *const scratch = near_poison(dp_cuda_rope_scratch(c->head), DP_FP32);
    const dp_cuda_rope rope = {.rows = c->rows,
                               .length = LENGTH,
                               .heads = HEADS,
                               .kv_heads = KV_HEADS,
                               .head = c->head,
                               .type = c->type,
                               .angles = card_angles,
                               .q_gain = c->norms ? card_gains[0] : NULL,
                               .k_gain = c->norms ? card_gains[1] : NULL,
                               .eps = 1e-6F,
                               .q_rstd = card_rstd[0],
                               .k_rstd = card_rstd[1],
                               .x = card_x,
                               .ld = ld};
    CHECK_OK(dp_cuda_rope_forward(&rope, card_y, ld, stream));
    CHECK_OK(dp_cuda_rope_backward(&rope, card_d, ld, c->norms ? card_d_gains[0] : NULL,
                                   c->norms ? card_d_gains[1] : NULL, c->norms ? scratch : NULL,
                                   stream));
    const float *const const_gains[2] = {gains[0], gains[1]};
    cpu_rope(c, x, ld, angles, const_gains, rstd, y, false, NULL);
    cpu_rope(c, x, ld, angles, const_gains, rstd, d, true, d_gains);
    /* The columns behind the heads are compared too: they must be unchanged. */
    near_check("y", card_y, y, n, c->type, 4e-6);
    near_check("d", card_d, d, n, c->type, 2e-5);
    for (size_t side = 0; side < 2 && c->norms; side++) {
        const size_t heads = side == 0 ? HEADS : KV_HEADS;
        near_check("rstd", card_rstd[side], rstd[side], c->rows * heads, DP_FP32, 1e-5);
        near_check("d_gain", card_d_gains[side], d_gains[side], c->head, DP_FP32,
                   2e-6 * (double)(c->rows * heads) + 4e-6);
    }
    for (size_t side = 0; side < 2; side++) {
        card_free(card_gains[side]);
        card_free(card_d_gains[side]);
        card_free(card_rstd[side]);
        free(gains[side]);
        free(d_gains[side]);
        free(rstd[side]);
    }
    if (!c->in_place) {
        near_free_at(card_y, c->type, c->offset);
    }
    near_free_at(card_x, c->type, c->offset);
    card_free(card_angles);
    card_free(card_d);
    card_free(scratch);
    free(angles);
    free(x);
    free(y);
    free(d);
}

/* 2: one pair; 6, 96: no power of two; 256: a whole warp. */
static const size_t heads[] = {2, 6, 16, 64, 96, 128, 256};

static void heads_are_normed_and_turned(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const rope_case c = {7, heads[i], 0, true, false, DP_FP32};
        check_rope(&c);
    }
    const rope_case many = {90, 16, 0, true, false, DP_FP32}; /* several strips */
    check_rope(&many);
}

static void heads_without_norms_are_turned_in_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        const rope_case c = {7, heads[i], 0, false, true, DP_FP32};
        check_rope(&c);
    }
}

static void heads_have_every_type_and_any_address(void **state)
{
    (void)state;
    for (size_t t = 0; t < NEAR_TYPES; t++) {
        for (size_t offset = 0; offset < 2; offset++) {
            const rope_case c = {11, 64, offset, true, false, near_types[t]};
            const rope_case turned = {11, 64, offset, false, true, near_types[t]};
            check_rope(&c);
            check_rope(&turned);
        }
    }
}

static void odd_and_too_wide_heads_are_refused(void **state)
{
    (void)state;
    float x[2] = {0};
    dp_cuda_rope rope = {.rows = 1, .length = 1, .heads = 1, .kv_heads = 1, .head = 3, .x = x};
    CHECK_STATUS(dp_cuda_rope_forward(&rope, x, 3, card_open()), DP_BADARG);
    rope.head = 258;
    CHECK_STATUS(dp_cuda_rope_forward(&rope, x, 3, card_open()), DP_BADARG);
    rope.head = 2;
    rope.q_gain = x; /* and none for k */
    CHECK_STATUS(dp_cuda_rope_backward(&rope, x, 2, x, x, x, card_open()), DP_BADARG);
    rope.q_gain = NULL;
    rope.rows = 0;
    CHECK_OK(dp_cuda_rope_forward(&rope, x, 2, card_open()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_are_normed_and_turned),
        cmocka_unit_test(heads_without_norms_are_turned_in_place),
        cmocka_unit_test(heads_have_every_type_and_any_address),
        cmocka_unit_test(odd_and_too_wide_heads_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
