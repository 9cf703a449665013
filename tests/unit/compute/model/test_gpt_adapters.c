/* Adapters in the engine, against the float64 model with A B in its weights. THREADS_TEST */
#include "tests/unit/compute/gpt_kit.h"

#include "base/run/adapt.h"
#include "compute/model/adapter.h"

static const dp_model_config llama = {.arch = DP_ARCH_LLAMA,
                                      .layers = 2,
                                      .width = 24,
                                      .heads = 4,
                                      .context = 17,
                                      .vocab = 40,
                                      .kv_heads = 2,
                                      .head_width = 10,
                                      .hidden = 35,
                                      .qk_norm = DP_ON,
                                      .adapt_rank = 5,
                                      .adapt_alpha_milli = 7000};
static const dp_model_config gpt2 = {.layers = 2,
                                     .width = 24,
                                     .heads = 3,
                                     .context = 13,
                                     .vocab = 37,
                                     .adapt_rank = 3,
                                     .adapt_alpha_milli = 4500};

struct rig {
    struct fixture f; /* its gpt trains adapters */
    dp_buf bytes;
    dp_base_weights base;
    float *theta; /* of the base, as its bytes have it */
};

static dp_status append(void *context, dp_view bytes)
{
    return dp_buf_append(context, bytes);
}

static void open_rig(struct rig *r, const dp_model_config *config, dp_base_kind kind,
                     const dp_gpt_options *wanted, size_t threads)
{
    struct fixture *const f = &r->f;
    dp_rng rng;
    dp_gpt_options options = *wanted;
    assert_int_equal(dp_model_open(&f->model, config, NULL), DP_OK);
    r->theta = calloc(f->model.base->n_elements, sizeof *r->theta);
    fill_params(f->model.base, r->theta);
    dp_buf_init(&r->bytes, (size_t)1 << 30);
    assert_int_equal(dp_base_weights_write(f->model.base, kind, r->theta, append, &r->bytes),
                     DP_OK);
    dp_why why = {{0}};
    assert_int_equal(
        dp_base_weights_open(&r->base, f->model.base, kind, dp_buf_view(&r->bytes), &why), DP_OK);
    assert_int_equal(dp_base_weights_read(&r->base, r->theta), DP_OK);
    assert_int_equal(dp_pool_open(&f->pool, threads), DP_OK);
    options.pool = f->pool;
    options.base = &r->base;
    assert_int_equal(dp_gpt_open(&f->gpt, &f->model, &options), DP_OK);
    fill_params(&f->model, dp_gpt_params_to_write(f->gpt));
    dp_rng_init(&rng, 9);
    for (size_t i = 0; i < TOKENS_MAX; i++) {
        f->x[i] = (uint32_t)dp_rng_below(&rng, config->vocab);
        f->y[i] = (uint32_t)dp_rng_below(&rng, config->vocab);
    }
}

static void close_rig(struct rig *r)
{
    dp_gpt_close(r->f.gpt);
    dp_base_weights_close(&r->base);
    dp_buf_close(&r->bytes);
    dp_pool_close(r->f.pool);
    dp_model_close(&r->f.model);
    free(r->theta);
}

/* The loss in double of theta + s A B, with the adapters' parameters in double. */
UNCHECKED static double right_loss(const struct rig *r, const double *params,
                                   const dp_gpt_batch *batch)
{
    const dp_model *const model = &r->f.model;
    const size_t rank = model->config.adapt_rank;
    double *const theta = calloc(model->base->n_elements, sizeof *theta);
    for (size_t i = 0; i < model->base->n_elements; i++) {
        theta[i] = (double)r->theta[i];
    }
    for (size_t layer = 0; layer < model->config.layers; layer++) {
        for (int slot = 0; slot < DP_LAYER_SLOTS; slot++) {
            dp_adapter adapter;
            if (!dp_model_adapter(model, layer, (dp_slot)slot, &adapter)) {
                continue;
            }
            const dp_tensor *const w = dp_model_tensor(model->base, layer, (dp_slot)slot);
            for (size_t p = 0; p < adapter.n_parts; p++) {
                for (size_t i = 0; i < w->shape[0]; i++) {
                    for (size_t j = 0; j < adapter.parts[p].columns; j++) {
                        for (size_t k = 0; k < rank; k++) {
                            theta[w->offset + i * w->shape[1] + adapter.parts[p].first + j] +=
                                (double)dp_adapter_scale(model) *
                                params[adapter.a->offset + i * adapter.a->shape[1] + p * rank + k] *
                                params[adapter.b->offset + k * adapter.b->shape[1] +
                                       adapter.parts[p].at + j];
                        }
                    }
                }
            }
        }
    }
    const double loss = loss64(model->base, theta, batch);
    free(theta);
    return loss;
}

enum { PLACES_MAX = 5 }; /* of a tensor whose gradients are compared */

/* Element k of n, from the first to the last of the tensor; of one, that in the middle. */
static size_t place_of(const dp_tensor *tensor, size_t k, size_t n)
{
    return tensor->offset + (n == 1 ? tensor->elements / 2 : k * (tensor->elements - 1) / (n - 1));
}

/* Central differences at n places of each tensor, [tensor][n]. */
static double *right_gradients(struct rig *r, const dp_gpt_batch *batch, double scale, size_t n)
{
    static const double step = 1e-5;
    double *const params = params_of(&r->f);
    double *const right = calloc(r->f.model.n_tensors * n, sizeof *right);
    for (size_t t = 0; t < r->f.model.n_tensors; t++) {
        for (size_t k = 0; k < n; k++) {
            double *const at = &params[place_of(&r->f.model.tensors[t], k, n)];
            const double kept = *at;
            *at = kept + step;
            const double up = right_loss(r, params, batch);
            *at = kept - step;
            const double down = right_loss(r, params, batch);
            *at = kept;
            right[t * n + k] = scale * (up - down) / (2.0 * step);
        }
    }
    free(params);
    return right;
}

static void check_gradients_of(struct rig *r, const double *right, double scale, size_t n)
{
    const float *const grads = dp_gpt_grads(r->f.gpt);
    for (size_t t = 0; t < r->f.model.n_tensors; t++) {
        const dp_tensor *const tensor = &r->f.model.tensors[t];
        const double size = largest_of(grads + tensor->offset, tensor->elements);
        for (size_t k = 0; k < n; k++) {
            const size_t at = place_of(tensor, k, n);
            const double off = fabs(right[t * n + k] - (double)grads[at]);
            if (!(off <= 1e-5 * size + 1e-6 * scale)) {
                fail_msg("%s[%zu]: error %g of %g", tensor->name, at - tensor->offset, off, size);
            }
        }
    }
}

typedef struct measure {
    const dp_model_config *config;
    dp_base_kind kind;
    size_t length; /* of a sequence; the float64 model takes time with each token */
    size_t places; /* of each tensor, at most PLACES_MAX */
    bool all_ops;  /* else those of this machine */
} measure;

/* The float64 model is asked once for all instruction sets: it has the same weights. */
static void check_config(const measure *m)
{
    const double scale = 0.25;
    double loss64_of_all = 0.0;
    double *right = NULL;
    assert_true(m->places <= PLACES_MAX);
    for (size_t i = 0; i == 0 || (m->all_ops && dp_ops_at(i) != NULL); i++) {
        struct rig r;
        const dp_ops *const ops = m->all_ops ? dp_ops_at(i) : dp_ops_best();
        const dp_gpt_options options = {.rows_max = 2,
                                        .recompute = DP_RECOMPUTE_NORMS,
                                        .packs = DP_GPT_PACKS_SHARED,
                                        .ops = ops};
        open_rig(&r, m->config, m->kind, &options, 1);
        const dp_gpt_batch batch = {r.f.x, r.f.y, 2, m->length};
        double loss = 0.0;
        dp_gpt_zero_grads(r.f.gpt);
        assert_int_equal(dp_gpt_step(r.f.gpt, &batch, (float)scale, &loss), DP_OK);
        if (right == NULL) {
            double *const params = params_of(&r.f);
            loss64_of_all = right_loss(&r, params, &batch);
            free(params);
            right = right_gradients(&r, &batch, scale, m->places);
        }
        if (!(fabs(loss - loss64_of_all) <= 1e-5 * loss64_of_all)) {
            fail_msg("%s: loss %.9g, right %.9g", ops->name, loss, loss64_of_all);
        }
        check_gradients_of(&r, right, scale, m->places);
        close_rig(&r);
    }
    free(right);
}

static void adapters_of_both_families_equal_the_float64_model(void **state)
{
    (void)state;
    check_config(&(measure){&llama, DP_BASE_FP32, llama.context, 3, true});
    check_config(&(measure){&gpt2, DP_BASE_FP32, gpt2.context, 5, true});
}

/* A number format is read where the base is multiplied, forward and backward: two places of a
 * tensor and a short sequence pass both. */
static void every_number_format_of_a_base_equals_the_float64_model(void **state)
{
    (void)state;
    dp_model_config wide = llama; /* rows of more than a block */
    wide.hidden = 131;
    for (int kind = 0; kind < DP_BASE_KINDS; kind++) {
        check_config(&(measure){&gpt2, (dp_base_kind)kind, 4, 2, false});
        check_config(&(measure){&wide, (dp_base_kind)kind, 4, 1, false});
    }
}

static void any_choice_of_targets_and_ranks_is_right(void **state)
{
    (void)state;
    static const uint32_t targets[] = {DP_ADAPT_Q | DP_ADAPT_V, DP_ADAPT_K, DP_ADAPT_GATE,
                                       DP_ADAPT_UP | DP_ADAPT_DOWN, DP_ADAPT_OUT};
    for (size_t i = 0; i < sizeof targets / sizeof targets[0]; i++) {
        dp_model_config config = llama;
        config.adapt_targets = targets[i];
        config.adapt_rank = 1 + (uint32_t)(i * 7 % 20);
        check_config(&(measure){&config, DP_BASE_BF16, 4, 2, false});
    }
    dp_model_config config = llama; /* more than a tile */
    config.layers = 1;
    config.width = 160;
    config.hidden = 144;
    config.head_width = 40;
    config.kv_heads = 4;
    config.adapt_rank = 140;
    check_config(&(measure){&config, DP_BASE_BF16, 3, 2, false});
}

/* The bits of loss and gradients of one setting. */
static float *bits_of(const dp_model_config *config, const dp_gpt_options *options, size_t threads,
                      double *loss, size_t *n)
{
    struct rig r;
    open_rig(&r, config, DP_BASE_NF4, options, threads);
    const dp_gpt_batch batch = {r.f.x, r.f.y, 3, config->context};
    dp_gpt_zero_grads(r.f.gpt);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(dp_gpt_step(r.f.gpt, &batch, 0.5F, loss), DP_OK);
        dp_gpt_params_to_write(r.f.gpt)[3] += 0.125F;
    }
    *n = r.f.model.n_elements;
    float *const grads = calloc(*n, sizeof *grads);
    memcpy(grads, dp_gpt_grads(r.f.gpt), *n * sizeof *grads);
    close_rig(&r);
    return grads;
}

static void threads_packs_and_recomputation_leave_the_bits_alone(void **state)
{
    (void)state;
    double loss = 0.0;
    size_t n = 0;
    const dp_gpt_options first = {.rows_max = 3};
    float *const grads = bits_of(&llama, &first, 1, &loss, &n);
    for (int recompute = 0; recompute < DP_RECOMPUTE_STEPS; recompute++) {
        for (int packs = 0; packs < DP_GPT_PACKS; packs++) {
            double other = 0.0;
            const dp_gpt_options options = {
                .rows_max = 3, .recompute = (dp_recompute)recompute, .packs = (dp_gpt_packs)packs};
            float *const again = bits_of(&llama, &options, 3, &other, &n);
            assert_true(other == loss);
            assert_memory_equal(again, grads, n * sizeof *grads);
            free(again);
        }
    }
    free(grads);
}

static void the_first_adapters_leave_the_base_as_it_is(void **state)
{
    (void)state;
    struct rig r;
    struct fixture whole;
    double loss = 0.0;
    double other = 0.0;
    const dp_model_config base = dp_model_config_base(&llama);
    const dp_gpt_options options = {.rows_max = 2};
    open_rig(&r, &llama, DP_BASE_BF16, &options, 1);
    dp_model_init(&r.f.model, 5, dp_gpt_params_to_write(r.f.gpt));
    open_fixture(&whole, &base, 2, 1, NULL);
    memcpy(dp_gpt_params_to_write(whole.gpt), r.theta, whole.model.n_elements * sizeof *r.theta);
    const dp_gpt_batch batch = {r.f.x, r.f.y, 2, llama.context};
    assert_int_equal(dp_gpt_loss(r.f.gpt, &batch, &loss), DP_OK);
    assert_int_equal(dp_gpt_loss(whole.gpt, &batch, &other), DP_OK);
    assert_true(loss == other);
    close_fixture(&whole);
    close_rig(&r);
}

static void merged_adapters_are_a_model_of_the_same_loss(void **state)
{
    (void)state;
    struct rig r;
    struct fixture whole;
    double loss = 0.0;
    double other = 0.0;
    const dp_model_config base = dp_model_config_base(&gpt2);
    const dp_gpt_options options = {.rows_max = 2};
    open_rig(&r, &gpt2, DP_BASE_INT8, &options, 1);
    open_fixture(&whole, &base, 2, 1, NULL);
    dp_adapter_merge(&r.f.model, dp_gpt_params(r.f.gpt), r.theta);
    memcpy(dp_gpt_params_to_write(whole.gpt), r.theta, whole.model.n_elements * sizeof *r.theta);
    const dp_gpt_batch batch = {r.f.x, r.f.y, 2, gpt2.context};
    assert_int_equal(dp_gpt_loss(r.f.gpt, &batch, &loss), DP_OK);
    assert_int_equal(dp_gpt_loss(whole.gpt, &batch, &other), DP_OK);
    assert_true(fabs(loss - other) <= 1e-5 * loss);
    close_fixture(&whole);
    close_rig(&r);
}

static void reduced_precision_is_near(void **state)
{
    (void)state;
    for (int precision = DP_BF16; precision < DP_PRECISIONS; precision++) {
        for (size_t i = 0; dp_ops_at_in((dp_precision)precision, i) != NULL; i++) {
            struct rig r;
            double loss = 0.0;
            const dp_gpt_options options = {.rows_max = 2,
                                            .precision = (dp_precision)precision,
                                            .packs = DP_GPT_PACKS_SHARED,
                                            .ops = dp_ops_at_in((dp_precision)precision, i)};
            open_rig(&r, &llama, DP_BASE_BF16, &options, 2);
            const dp_gpt_batch batch = {r.f.x, r.f.y, 2, llama.context};
            dp_gpt_zero_grads(r.f.gpt);
            assert_int_equal(dp_gpt_step(r.f.gpt, &batch, 1.0F, &loss), DP_OK);
            double *const params = params_of(&r.f);
            const double right = right_loss(&r, params, &batch);
            free(params);
            assert_true(fabs(loss - right) <= 2e-2 * right);
            close_rig(&r);
        }
    }
}

static void an_engine_with_adapters_needs_a_base(void **state)
{
    (void)state;
    dp_model model;
    dp_gpt *gpt = NULL;
    const dp_gpt_options options = {.rows_max = 1};
    assert_int_equal(dp_model_open(&model, &llama, NULL), DP_OK);
    assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_BADARG);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_of_both_families_equal_the_float64_model),
        cmocka_unit_test(every_number_format_of_a_base_equals_the_float64_model),
        cmocka_unit_test(any_choice_of_targets_and_ranks_is_right),
        cmocka_unit_test(threads_packs_and_recomputation_leave_the_bits_alone),
        cmocka_unit_test(the_first_adapters_leave_the_base_as_it_is),
        cmocka_unit_test(merged_adapters_are_a_model_of_the_same_loss),
        cmocka_unit_test(reduced_precision_is_near),
        cmocka_unit_test(an_engine_with_adapters_needs_a_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
