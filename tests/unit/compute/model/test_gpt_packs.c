/* Packed weights: the time of packing does not change results. */
#include "tests/unit/compute/gpt_kit.h"

#include <math.h>
#include <string.h>

static const dp_model_config small = {
    .layers = 3, .width = 32, .heads = 4, .context = 17, .vocab = 61, .hidden = 96};
static const dp_model_config grouped = {.layers = 3,
                                        .width = 48,
                                        .heads = 4,
                                        .context = 17,
                                        .vocab = 67,
                                        .hidden = 80,
                                        .arch = DP_ARCH_LLAMA,
                                        .kv_heads = 2,
                                        .qk_norm = DP_ON,
                                        .head = DP_HEAD_UNTIED};

static dp_gpt *open_gpt(const dp_model *model, dp_gpt_options options)
{
    dp_gpt *gpt = NULL;
    options.rows_max = 2;
    assert_int_equal(dp_gpt_open(&gpt, model, &options), DP_OK);
    fill_params(model, dp_gpt_params_to_write(gpt));
    return gpt;
}

static dp_gpt_batch batch_at(const uint32_t *tokens, size_t at)
{
    return (dp_gpt_batch){tokens + at, tokens + at + 1, 2, 17};
}

static void fill_tokens(uint32_t *tokens, size_t n, uint32_t vocab)
{
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (size_t i = 0; i < n; i++) {
        tokens[i] = (uint32_t)dp_rng_below(&rng, vocab);
    }
}

/* The calls of a training run between two changes of the weights, then a change, all over again.
 * ask: gpt gets the parameters before every call, so that each call packs again. The gradients of
 * all calls end up in gpt, their losses in losses. */
enum { CALLS = 5 };

static void train(dp_gpt *gpt, const uint32_t *tokens, bool ask, double losses[CALLS])
{
    const size_t n = dp_gpt_model(gpt)->n_elements;
    float logits[67];
    for (size_t call = 0; call < CALLS; call++) {
        const dp_gpt_batch batch = batch_at(tokens, 7 * call);
        if (ask) {
            (void)dp_gpt_params_to_write(gpt);
        }
        if (call == 2) { /* An optimizer step behind two micro-batches. */
            float *const params = dp_gpt_params_to_write(gpt);
            const float *const grads = dp_gpt_grads(gpt);
            for (size_t i = 0; i < n; i++) {
                params[i] -= 0.01F * grads[i];
            }
        }
        if (call == 3) { /* Forward alone packs half; the call behind it needs both. */
            assert_int_equal(dp_gpt_loss(gpt, &batch, &losses[call]), DP_OK);
            dp_gpt_params_to_write(gpt)[n / 2] += 0.5F;
            assert_int_equal(dp_gpt_logits(gpt, tokens, 9, logits), DP_OK);
            losses[call] += (double)logits[11];
            continue;
        }
        assert_int_equal(dp_gpt_step(gpt, &batch, 0.1F, &losses[call]), DP_OK);
    }
}

static void check_same(const dp_model *model, const dp_gpt_options *a, const dp_gpt_options *b,
                       bool ask)
{
    uint32_t tokens[128];
    double losses[2][CALLS];
    fill_tokens(tokens, 128, model->config.vocab);
    dp_gpt *const one = open_gpt(model, *a);
    dp_gpt *const other = open_gpt(model, *b);
    train(one, tokens, false, losses[0]);
    train(other, tokens, ask, losses[1]);
    assert_memory_equal(losses[0], losses[1], sizeof losses[0]);
    const size_t bytes = model->n_elements * sizeof(float);
    assert_memory_equal(dp_gpt_grads(one), dp_gpt_grads(other), bytes);
    assert_memory_equal(dp_gpt_params(one), dp_gpt_params(other), bytes);
    dp_gpt_close(other);
    dp_gpt_close(one);
}

/* For both models, the fastest table of each precision, and the two steps of the ladder that differ
 * in packs. */
static void check_everywhere(dp_gpt_packs packs, bool ask, dp_pool *pool)
{
    const dp_model_config *const configs[] = {&small, &grouped};
    const dp_recompute steps[] = {DP_RECOMPUTE_NORMS, DP_RECOMPUTE_LAYER};
    for (size_t c = 0; c < 2; c++) {
        dp_model model;
        assert_int_equal(dp_model_open(&model, configs[c], NULL), DP_OK);
        for (size_t i = 0; i < 2 * (size_t)DP_PRECISIONS; i++) {
            const dp_gpt_options a = {.recompute = steps[i % 2],
                                      .precision = (dp_precision)(i / 2)};
            dp_gpt_options b = a;
            b.packs = packs;
            b.pool = pool;
            check_same(&model, &a, &b, ask);
        }
        dp_model_close(&model);
    }
}

static void packs_that_are_kept_give_the_bits_of_packs_made_anew(void **state)
{
    (void)state;
    check_everywhere(DP_GPT_PACKS_KEPT, true, NULL);
}

static void shared_packs_give_the_bits_of_kept_ones(void **state)
{
    (void)state;
    dp_pool *pool = NULL;
    assert_int_equal(dp_pool_open(&pool, 3), DP_OK);
    check_everywhere(DP_GPT_PACKS_SHARED, false, pool);
    dp_pool_close(pool);
}

/* A matrix of many pieces, the last of them not full, is packed as the table alone packs it. */
static void a_large_matrix_is_packed_in_pieces(void **state)
{
    (void)state;
    dp_model_config wide = small;
    wide.width = 64;
    wide.vocab = 6282;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &wide, NULL), DP_OK);
    for (int p = 0; p < DP_PRECISIONS; p++) {
        const dp_ops *const ops = dp_ops_best_in((dp_precision)p);
        dp_gpt *const gpt = open_gpt(&model, (dp_gpt_options){.ops = ops});
        gpt->backward = true;
        dp_gpt_pack_head(gpt);
        const float *const weight = dp_gpt_params(gpt) + dp_model_head(&model)->offset;
        const size_t onward = dp_packed_floats(ops, wide.width, wide.vocab);
        const size_t back = dp_packed_floats(ops, wide.vocab, wide.width);
        float *const packed = calloc(onward > back ? onward : back, sizeof *packed);
        assert_non_null(packed);
        ops->pack(weight, wide.width, true, wide.width, wide.vocab, packed);
        assert_memory_equal(packed, gpt->packed_head, onward * sizeof *packed);
        ops->pack(weight, wide.width, false, wide.vocab, wide.width, packed);
        assert_memory_equal(packed, gpt->packed_head_t, back * sizeof *packed);
        free(packed);
        dp_gpt_close(gpt);
    }
    dp_model_close(&model);
}

static void shared_packs_take_the_room_of_one_layer_or_of_the_head(void **state)
{
    (void)state;
    dp_model_config deep = small;
    deep.layers = 24;
    dp_model model;
    assert_int_equal(dp_model_open(&model, &deep, NULL), DP_OK);
    dp_gpt_options options = {.rows_max = 1};
    const uint64_t kept = dp_gpt_memory_of(&model, &options, 1).packed;
    const size_t kept_bytes = dp_gpt_bytes(&model, &options);
    options.packs = DP_GPT_PACKS_SHARED;
    const uint64_t shared = dp_gpt_memory_of(&model, &options, 1).packed;
    assert_true(shared * 24 <= kept);
    assert_int_equal(kept_bytes - dp_gpt_bytes(&model, &options), kept - shared);
    dp_model_close(&model);
}

static void an_unknown_way_of_packing_is_refused(void **state)
{
    (void)state;
    dp_model model;
    dp_gpt *gpt = NULL;
    assert_int_equal(dp_model_open(&model, &small, NULL), DP_OK);
    const dp_gpt_options options = {.rows_max = 1, .packs = DP_GPT_PACKS};
    assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_BADARG);
    assert_null(gpt);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packs_that_are_kept_give_the_bits_of_packs_made_anew),
        cmocka_unit_test(shared_packs_give_the_bits_of_kept_ones),
        cmocka_unit_test(a_large_matrix_is_packed_in_pieces),
        cmocka_unit_test(shared_packs_take_the_room_of_one_layer_or_of_the_head),
        cmocka_unit_test(an_unknown_way_of_packing_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
