/* Attention: all paths near the CPU's reference over odd lengths, widths and groups, and the same
 * bits in every order of threads. */
#include "compute/cuda/attention.h"
#include "tests/unit/cuda/near.h"

typedef struct attention_case {
    dp_precision type;
    size_t rows;
    size_t length;
    size_t heads;
    size_t kv_heads;
    size_t head;
    size_t offset;
    dp_cuda_attention_path path;
} attention_case;

/* As in the engine: q, k and v side by side, followed by an unused gap. */
typedef struct tensors {
    size_t ld;
    size_t ld_out;
    size_t n;
    size_t n_out;
    size_t n_lse;
    size_t k; /* columns where they begin */
    size_t v;
    float *qkv;
    float *d_out;
    float *out;
    float *lse;
    float *d_qkv;
} tensors;

static tensors draw(const attention_case *c)
{
    const size_t tokens = c->rows * c->length;
    tensors t = {.ld = (c->heads + 2 * c->kv_heads) * c->head + 8,
                 .ld_out = c->heads * c->head,
                 .n_lse = tokens * c->heads,
                 .k = c->heads * c->head,
                 .v = (c->heads + c->kv_heads) * c->head};
    t.n = tokens * t.ld;
    t.n_out = tokens * t.ld_out;
    t.qkv = near_fill(t.n, 1, 1.5F, c->type);
    t.d_out = near_fill(t.n_out, 2, 1.0F, c->type);
    t.out = near_room(t.n_out);
    t.lse = near_room(t.n_lse);
    t.d_qkv = near_fill(t.n, 3, 1.0F, c->type);
    return t;
}

static void drop(const tensors *t)
{
    free(t->qkv);
    free(t->d_out);
    free(t->out);
    free(t->lse);
    free(t->d_qkv);
}

/* The CPU's, a group of heads at a time.. */
static void on_cpu(const attention_case *c, const tensors *t, bool back)
{
    const size_t groups = c->heads / c->kv_heads;
    float *const scratch = near_room(dp_attention_scratch(c->length, c->head));
    for (size_t task = 0; task < c->rows * c->kv_heads; task++) {
        const size_t at = task / c->kv_heads * c->length;
        const size_t kv = task % c->kv_heads;
        const size_t q = at * t->ld + kv * groups * c->head;
        const size_t out = at * t->ld_out + kv * groups * c->head;
        const dp_attention a = {.length = c->length,
                                .head = c->head,
                                .groups = groups,
                                .q = t->qkv + q,
                                .k = t->qkv + at * t->ld + t->k + kv * c->head,
                                .v = t->qkv + at * t->ld + t->v + kv * c->head,
                                .ld_qkv = t->ld,
                                .out = t->out + out,
                                .ld_out = t->ld_out,
                                .lse = t->lse + task * groups * c->length,
                                .d_out = t->d_out + out,
                                .dq = t->d_qkv + q,
                                .dk = t->d_qkv + at * t->ld + t->k + kv * c->head,
                                .dv = t->d_qkv + at * t->ld + t->v + kv * c->head,
                                .scratch = scratch};
        if (back) {
            dp_ops_reference()->attention_backward(&a);
        } else {
            dp_ops_reference()->attention_forward(&a);
        }
    }
    free(scratch);
}

typedef struct on_card {
    char *qkv;
    void *d_out;
    void *out;
    float *lse;
    char *d_qkv;
    float *scratch;
} on_card;

static on_card run(const attention_case *c, const tensors *t)
{
    const size_t bytes = near_bytes(c->type);
    const on_card card = {
        .qkv = near_put_at(t->qkv, t->n, c->type, c->offset),
        .d_out = near_put(t->d_out, t->n_out, c->type),
        .out = near_poison(t->n_out, c->type),
        .lse = near_poison(t->n_lse, DP_FP32),
        .d_qkv = near_put(t->d_qkv, t->n, c->type),
        .scratch = near_poison(dp_cuda_attention_scratch(c->rows, c->heads, c->length), DP_FP32),
    };
    const dp_cuda_attention a = {.type = c->type,
                                 .rows = c->rows,
                                 .length = c->length,
                                 .heads = c->heads,
                                 .kv_heads = c->kv_heads,
                                 .head = c->head,
                                 .q = card.qkv,
                                 .k = card.qkv + t->k * bytes,
                                 .ld_qk = t->ld,
                                 .v = card.qkv + t->v * bytes,
                                 .ld_v = t->ld,
                                 .out = card.out,
                                 .ld_out = t->ld_out,
                                 .lse = card.lse,
                                 .path = c->path};
    const dp_cuda_attention_grads g = {.d_out = card.d_out,
                                       .dq = card.d_qkv,
                                       .dk = card.d_qkv + t->k * bytes,
                                       .dv = card.d_qkv + t->v * bytes,
                                       .ld_d = t->ld,
                                       .scratch = card.scratch};
    CHECK_OK(dp_cuda_attention_forward(&a, card_open()));
    CHECK_OK(dp_cuda_attention_backward(&a, &g, card_open()));
    return card;
}

static void free_card(const attention_case *c, const on_card *card)
{
    near_free_at(card->qkv, c->type, c->offset);
    card_free(card->d_out);
    card_free(card->out);
    card_free(card->lse);
    card_free(card->d_qkv);
    card_free(card->scratch);
}

static void check_attention(const attention_case *c)
{
    const tensors t = draw(c);
    const on_card card = run(c, &t);
    /* Tensor cores get probabilities p and gradients of scores rounded to the type, half a unit of
     * each. Where 1/sqrt(head) is in them those gradients are a few p, values and keys are below
     * 1.5. Over keys p sums to 1, over queries to about the logarithm of the length where keys are
     * alike, for each head of the group. */
    const double unit =
        c->path == DP_ATTENTION_PLAIN || c->type == DP_FP32 ? 0x1p-21 : near_unit(c->type);
    const double head = (double)c->head;
    const double length = (double)c->length;
    const double groups = (double)(c->heads / c->kv_heads);
    on_cpu(c, &t, false);
    near_check("lse", card.lse, t.lse, t.n_lse, DP_FP32, 4e-7 * (4.0 + head));
    near_check("out", card.out, t.out, t.n_out, c->type, 1.5 * unit);
    on_cpu(c, &t, true);
    near_check("d_qkv", card.d_qkv, t.d_qkv, t.n, c->type,
               1.5 * unit * (1.0 + groups * log(1.0 + length)));
    drop(&t);
    free_card(c, &card);
}

static void the_plain_path_is_near_the_reference(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_FP32, 1, 1, 1, 1, 1, 0, DP_ATTENTION_PLAIN},
        {DP_FP32, 2, 17, 3, 1, 5, 0, DP_ATTENTION_PLAIN},
        {DP_FP32, 1, 33, 4, 2, 16, 0, DP_ATTENTION_PLAIN},
        {DP_FP32, 1, 65, 1, 1, 64, 0, DP_ATTENTION_MMA},
        {DP_FP32, 1, 9, 2, 2, 256, 0, DP_ATTENTION_PLAIN},
        {DP_BF16, 1, 40, 2, 1, 84, 0, DP_ATTENTION_MMA}, /* no multiple of 8 */
        {DP_FP16, 1, 40, 2, 1, 20, 0, DP_ATTENTION_MMA}, /* the same */
        {DP_BF16, 1, 40, 2, 1, 64, 3, DP_ATTENTION_MMA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void tensor_cores_are_near_the_reference_at_heads_of_64(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_BF16, 1, 1, 1, 1, 64, 0, DP_ATTENTION_MMA},
        {DP_BF16, 2, 31, 1, 1, 64, 0, DP_ATTENTION_MMA},
        {DP_BF16, 1, 130, 2, 1, 64, 0, DP_ATTENTION_MMA},
        {DP_FP16, 1, 65, 3, 1, 64, 0, DP_ATTENTION_MMA},
        {DP_BF16, 1, 200, 1, 1, 64, 0, DP_ATTENTION_MMA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void tensor_cores_are_near_the_reference_at_heads_of_128(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_BF16, 1, 1, 1, 1, 128, 0, DP_ATTENTION_MMA},
        {DP_FP16, 1, 47, 2, 1, 128, 0, DP_ATTENTION_MMA},
        {DP_BF16, 1, 133, 1, 1, 128, 0, DP_ATTENTION_MMA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void tensor_cores_are_near_the_reference_at_heads_between(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_BF16, 1, 70, 2, 1, 8, 0, DP_ATTENTION_MMA},
        {DP_FP16, 1, 65, 2, 1, 32, 0, DP_ATTENTION_MMA},
        {DP_BF16, 2, 31, 3, 3, 40, 0, DP_ATTENTION_WGMMA}, /* by warps */
        {DP_BF16, 1, 133, 2, 1, 80, 0, DP_ATTENTION_MMA},
        {DP_BF16, 1, 40, 2, 2, 96, 0, DP_ATTENTION_WGMMA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void tensor_cores_are_near_the_reference_at_wide_heads(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_BF16, 1, 1, 1, 1, 256, 0, DP_ATTENTION_MMA},
        {DP_FP16, 2, 47, 2, 1, 256, 0, DP_ATTENTION_WGMMA},
        {DP_BF16, 1, 133, 2, 1, 160, 0, DP_ATTENTION_MMA},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void tensor_cores_of_sm_75_are_near_the_reference(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_FP16, 1, 1, 1, 1, 64, 0, DP_ATTENTION_MMA8},
        {DP_FP16, 2, 31, 2, 1, 64, 0, DP_ATTENTION_MMA8},
        {DP_FP16, 1, 200, 1, 1, 64, 0, DP_ATTENTION_MMA8},
        {DP_FP16, 1, 133, 2, 1, 128, 0, DP_ATTENTION_MMA8},
        {DP_BF16, 1, 40, 1, 1, 64, 0, DP_ATTENTION_MMA8}, /* has none: the plain path */
        {DP_FP16, 1, 40, 1, 1, 80, 0, DP_ATTENTION_MMA8},
        {DP_FP16, 1, 40, 1, 1, 136, 0, DP_ATTENTION_MMA8}, /* too wide: the plain path */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void warpgroups_are_near_the_reference_at_heads_of_64(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_BF16, 1, 1, 1, 1, 64, 0, DP_ATTENTION_WGMMA},
        {DP_BF16, 2, 31, 1, 1, 64, 0, DP_ATTENTION_WGMMA},
        {DP_FP16, 1, 130, 2, 1, 64, 0, DP_ATTENTION_WGMMA},
        {DP_BF16, 1, 390, 1, 1, 64, 0, DP_ATTENTION_WGMMA}, /* three tiles of queries */
        {DP_BF16, 1, 40, 2, 1, 64, 3, DP_ATTENTION_WGMMA},  /* at an odd address: the plain path */
    };
    for (size_t i = 0; card_has_warpgroups() && i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void warpgroups_are_near_the_reference_at_heads_of_128(void **state)
{
    (void)state;
    static const attention_case cases[] = {
        {DP_BF16, 1, 1, 1, 1, 128, 0, DP_ATTENTION_WGMMA},
        {DP_FP16, 2, 47, 2, 1, 128, 0, DP_ATTENTION_WGMMA},
        {DP_BF16, 1, 133, 3, 1, 128, 0, DP_ATTENTION_WGMMA},
        {DP_BF16, 1, 260, 1, 1, 128, 0, DP_ATTENTION_WGMMA},
    };
    for (size_t i = 0; card_has_warpgroups() && i < sizeof cases / sizeof cases[0]; i++) {
        check_attention(&cases[i]);
    }
}

static void attention_has_the_same_bits_in_every_order_of_threads(void **state)
{
    (void)state;
    static const attention_case cases[] = {{DP_BF16, 1, 70, 2, 1, 64, 0, DP_ATTENTION_MMA},
                                           {DP_FP16, 1, 70, 1, 1, 128, 0, DP_ATTENTION_MMA8},
                                           {DP_BF16, 1, 135, 1, 1, 128, 0, DP_ATTENTION_WGMMA},
                                           {DP_BF16, 1, 70, 1, 1, 192, 0, DP_ATTENTION_MMA},
                                           {DP_FP32, 1, 40, 2, 1, 24, 0, DP_ATTENTION_PLAIN}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const attention_case *const c = &cases[i];
        if (c->path == DP_ATTENTION_WGMMA && !card_has_warpgroups()) {
            continue;
        }
        const tensors t = draw(c);
        float *first = NULL;
        for (uint64_t order = 0; order < NEAR_ORDERS; order++) {
            card_order(order);
            const on_card card = run(c, &t);
            if (first == NULL) {
                first = near_get(card.d_qkv, t.n, c->type);
            }
            near_same(card.d_qkv, first, t.n, c->type);
            free_card(c, &card);
        }
        card_order(0);
        free(first);
        drop(&t);
    }
}

static void each_card_takes_the_best_path_that_it_has(void **state)
{
    (void)state;
    unsetenv("DPNODE_CUDA_ATTENTION");
    assert_int_equal(dp_cuda_attention_path_for(7, 5), DP_ATTENTION_MMA8);
    assert_int_equal(dp_cuda_attention_path_for(8, 0), DP_ATTENTION_MMA);
    assert_int_equal(dp_cuda_attention_path_for(12, 0), DP_ATTENTION_MMA);
    const dp_cuda_attention_path best = dp_cuda_attention_path_for(9, 0);
    assert_true(best == DP_ATTENTION_WGMMA || !card_has_warpgroups());
    setenv("DPNODE_CUDA_ATTENTION", "mma", 1);
    assert_int_equal(dp_cuda_attention_path_for(7, 5), DP_ATTENTION_MMA8);
    assert_int_equal(dp_cuda_attention_path_for(9, 0), DP_ATTENTION_MMA);
    setenv("DPNODE_CUDA_ATTENTION", "plain", 1);
    assert_int_equal(dp_cuda_attention_path_for(7, 5), DP_ATTENTION_PLAIN);
    assert_int_equal(dp_cuda_attention_path_for(9, 0), DP_ATTENTION_PLAIN);
    unsetenv("DPNODE_CUDA_ATTENTION");
}

static void impossible_attention_is_refused(void **state)
{
    (void)state;
    dp_cuda_attention a = {
        .type = DP_BF16, .rows = 1, .length = 1, .heads = 3, .kv_heads = 2, .head = 64};
    CHECK_STATUS(dp_cuda_attention_forward(&a, card_open()), DP_BADARG);
    a.kv_heads = 3;
    a.head = 257;
    CHECK_STATUS(dp_cuda_attention_forward(&a, card_open()), DP_BADARG);
    a.head = 64;
    a.rows = 65536;
    CHECK_STATUS(dp_cuda_attention_backward(&a, NULL, card_open()), DP_TOOBIG);
    a.rows = 0;
    CHECK_OK(dp_cuda_attention_forward(&a, card_open()));
    CHECK_OK(dp_cuda_attention_backward(&a, NULL, card_open()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plain_path_is_near_the_reference),
        cmocka_unit_test(tensor_cores_are_near_the_reference_at_heads_of_64),
        cmocka_unit_test(tensor_cores_are_near_the_reference_at_heads_of_128),
        cmocka_unit_test(tensor_cores_are_near_the_reference_at_heads_between),
        cmocka_unit_test(tensor_cores_are_near_the_reference_at_wide_heads),
        cmocka_unit_test(tensor_cores_of_sm_75_are_near_the_reference),
        cmocka_unit_test(warpgroups_are_near_the_reference_at_heads_of_64),
        cmocka_unit_test(warpgroups_are_near_the_reference_at_heads_of_128),
        cmocka_unit_test(attention_has_the_same_bits_in_every_order_of_threads),
        cmocka_unit_test(each_card_takes_the_best_path_that_it_has),
        cmocka_unit_test(impossible_attention_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
