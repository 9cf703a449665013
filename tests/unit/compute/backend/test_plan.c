#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/backend/plan.h"
#include "compute/model/base_weights.h"
#include "compute/model/optim.h"

static dp_manifest manifest_of(const char *preset)
{
    dp_manifest manifest;
    dp_manifest_default(&manifest);
    dp_manifest_set_model(&manifest, &dp_model_preset_find(preset)->config);
    return manifest;
}

static dp_plan plan_of(const dp_manifest *manifest, uint64_t budget)
{
    dp_plan plan;
    const dp_plan_request request = {.manifest = manifest, .threads = 2, .budget = budget};
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    assert_int_equal(plan.total, plan.weights + plan.gradients + plan.moments + plan.anchors +
                                     plan.packed + plan.buffers + plan.daemon + plan.data +
                                     plan.activations);
    assert_true(plan.total <= budget);
    return plan;
}

/* Compares the plan with the memory that the engine and the optimizer really take. */
static void the_plan_is_what_engine_and_optimizer_take(void **state)
{
    (void)state;
    static const char *const presets[] = {"gpt2-tiny", "llama-tiny", "qwen3-tiny"};
    for (int kind = DP_OPTIM_ADAMW; kind <= DP_OPTIM_LAST; kind++) {
        for (int weights = DP_WEIGHTS_FP32; weights <= DP_WEIGHTS_BF16_SR; weights++) {
            dp_manifest manifest = manifest_of(presets[(kind + weights) % 3]);
            manifest.optimizer = (dp_optim_kind)kind;
            manifest.weights = (dp_weights_kind)weights;
            manifest.precision = (dp_precision_kind)weights; /* each once */
            const dp_plan plan = plan_of(&manifest, (uint64_t)1 << 30);
            const dp_model_config config = dp_manifest_model(&manifest);
            dp_model model;
            dp_pool *pool = NULL;
            dp_gpt *gpt = NULL;
            dp_optim optim;
            assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
            assert_int_equal(dp_pool_open(&pool, 2), DP_OK);
            const dp_gpt_options options = {.rows_max = plan.rows,
                                            .pool = pool,
                                            .precision = dp_precision_of_kind(manifest.precision),
                                            .recompute = plan.recompute,
                                            .packs = plan.packs};
            const dp_optim_setup setup = {
                .model = &model, .kind = manifest.optimizer, .weights = manifest.weights};
            const size_t before = dp_alloc_live_bytes();
            assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_OK);
            assert_int_equal(dp_optim_init(&optim, &setup), DP_OK);
            const double took = (double)(dp_alloc_live_bytes() - before);
            const double said = (double)(plan.total - plan.daemon - plan.anchors -
                                         2 * plan.weights); /* a state and blobs */
            assert_true(took > 0.9 * said && took < 1.02 * (said + (double)plan.weights));
            dp_optim_close(&optim);
            dp_gpt_close(gpt);
            dp_pool_close(pool);
            dp_model_close(&model);
        }
    }
}

static void with_adapters_the_plan_counts_the_base_and_takes_what_it_says(void **state)
{
    (void)state;
    for (int kind = 0; kind < DP_BASE_KINDS; kind++) {
        dp_manifest manifest = manifest_of("qwen3-tiny");
        manifest.adapt_rank = 8;
        manifest.base_kind = (dp_base_kind)kind;
        dp_plan plan;
        const dp_plan_request request = {
            .manifest = &manifest, .threads = 2, .budget = (uint64_t)1 << 30};
        assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
        assert_int_equal(plan.packs, DP_GPT_PACKS_SHARED);
        const dp_model_config config = dp_manifest_model(&manifest);
        dp_model model;
        dp_pool *pool = NULL;
        dp_gpt *gpt = NULL;
        assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
        assert_int_equal(plan.base, dp_base_weights_bytes(model.base, manifest.base_kind));
        assert_int_equal(plan.parameters, model.n_parameters);
        assert_int_equal(plan.total, plan.weights + plan.gradients + plan.moments + plan.anchors +
                                         plan.packed + plan.buffers + plan.daemon + plan.data +
                                         plan.base + plan.activations);
        assert_int_equal(dp_pool_open(&pool, 2), DP_OK);
        const dp_base_weights base = {.kind = manifest.base_kind};
        const dp_gpt_options options = {.rows_max = plan.rows,
                                        .pool = pool,
                                        .recompute = plan.recompute,
                                        .packs = plan.packs,
                                        .base = &base};
        const size_t before = dp_alloc_live_bytes();
        assert_int_equal(dp_gpt_open(&gpt, &model, &options), DP_OK);
        const double took = (double)(dp_alloc_live_bytes() - before);
        const double said =
            (double)(plan.weights + plan.gradients + plan.packed + plan.activations + plan.buffers);
        assert_true(took > 0.7 * said && took < 1.02 * said);
        dp_gpt_close(gpt);
        dp_pool_close(pool);
        dp_model_close(&model);
    }
}

/* The shape of Qwen3 0.6B, of which whole weights take 24 GiB. In fp32 packs are the largest that
 * any processor has. */
static void adapters_of_half_a_billion_weights_train_in_three_gibibytes(void **state)
{
    (void)state;
    dp_manifest manifest = manifest_of("qwen3-0.6b");
    manifest.context = 256;
    manifest.adapt_rank = 8;
    dp_plan plan;
    const dp_plan_request request = {
        .manifest = &manifest, .threads = 2, .budget = (uint64_t)3 << 30};
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    manifest.precision = DP_PRECISION_BF16;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    const uint64_t bf16 = plan.base;
    manifest.base_kind = DP_BASE_NF4;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    assert_true(plan.base < bf16 / 2);
    manifest.adapt_rank = 0;
    manifest.base_kind = DP_BASE_BF16;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_TOOBIG);
}

/* To the byte: the bounds above are too wide for a vector of moments too many. Muon has scratch. */
static void moments_are_the_vectors_that_the_optimizer_keeps(void **state)
{
    (void)state;
    for (int kind = DP_OPTIM_ADAMW; kind <= DP_OPTIM_LAST; kind++) {
        for (int weights = DP_WEIGHTS_FP32; weights <= DP_WEIGHTS_BF16_SR; weights++) {
            dp_manifest manifest = manifest_of("gpt2-tiny");
            manifest.optimizer = (dp_optim_kind)kind;
            manifest.weights = (dp_weights_kind)weights;
            const dp_plan plan = plan_of(&manifest, (uint64_t)1 << 30);
            const dp_model_config config = dp_manifest_model(&manifest);
            dp_model model;
            dp_optim optim;
            dp_optim_vector lent[DP_OPTIM_VECTORS_MAX];
            assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
            const dp_optim_setup setup = {
                .model = &model, .kind = manifest.optimizer, .weights = manifest.weights};
            assert_int_equal(dp_optim_init(&optim, &setup), DP_OK);
            const uint64_t kept = dp_optim_vectors(&optim, lent) * model.n_elements * sizeof(float);
            assert_true(kind == DP_OPTIM_MUON ? plan.moments > kept : plan.moments == kept);
            dp_optim_close(&optim);
            dp_model_close(&model);
        }
    }
}

/* Muon's scratch to the byte but for a few counts: for each thread while that is no more than a
 * vector of the model or 64 MiB, and else once. */
static void scratch_of_muon_is_planned_for_the_threads_that_get_it(void **state)
{
    (void)state;
    static const struct {
        const char *preset;
        size_t threads;
        bool each;
    } cases[] = {{"gpt2-tiny", 1, false}, {"llama-tiny", 4, true}, {"gpt2-124m", 64, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dp_manifest manifest = manifest_of(cases[i].preset);
        const dp_model_config config = dp_manifest_model(&manifest);
        dp_model model;
        assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
        size_t took[2];
        for (size_t k = 0; k < 2; k++) {
            const dp_optim_setup setup = {.model = &model,
                                          .kind = k == 0 ? DP_OPTIM_LAMB : DP_OPTIM_MUON,
                                          .threads = cases[i].threads};
            const size_t before = dp_alloc_live_bytes();
            dp_optim optim;
            assert_int_equal(dp_optim_init(&optim, &setup), DP_OK);
            took[k] = dp_alloc_live_bytes() - before;
            dp_optim_close(&optim);
        }
        const size_t said = dp_optim_scratch_bytes(DP_OPTIM_MUON, &model, cases[i].threads);
        const size_t once = dp_optim_scratch_bytes(DP_OPTIM_MUON, &model, 1);
        assert_in_range(took[1] - took[0], said, said + 8192);
        assert_true(cases[i].each ? said > once : said == once);
        assert_int_equal(dp_optim_scratch_bytes(DP_OPTIM_LAMB, &model, cases[i].threads), 0);
        dp_model_close(&model);
    }
}

/* zero.h: a copy of the weights and packs for each process and one for all, a sum for each lane,
 * moments once. */
static void a_team_has_weights_for_each_and_moments_once(void **state)
{
    (void)state;
    const dp_manifest manifest = manifest_of("llama-tiny");
    dp_plan_request request = {
        .manifest = &manifest, .threads = 1, .budget = UINT64_MAX, .rows = 8, .alone = true};
    dp_plan one;
    dp_plan team;
    assert_int_equal(dp_plan_make(&one, &request, NULL), DP_OK);
    request.processes = 3;
    request.lanes = 4;
    assert_int_equal(dp_plan_make(&team, &request, NULL), DP_OK);
    assert_int_equal(team.packs, one.packs);
    const uint64_t vector = one.gradients;
    assert_int_equal(one.weights, vector);
    assert_int_equal(team.weights, 4 * vector);
    assert_int_equal(team.gradients, 4 * vector);
    assert_int_equal(team.moments, one.moments);
    assert_int_equal(team.packed, 3 * one.packed);
    assert_int_equal(team.buffers - vector, 3 * (one.buffers - vector));
    assert_true(team.activations > one.activations / 4 * 3 && team.activations < one.activations);
}

static void momentum_of_the_outer_step_is_kept_and_travels(void **state)
{
    (void)state;
    dp_manifest manifest = manifest_of("llama-tiny");
    const dp_plan without = plan_of(&manifest, UINT64_MAX);
    manifest.outer_mu_milli = 900;
    const dp_plan with = plan_of(&manifest, UINT64_MAX);
    assert_int_equal(with.anchors, without.anchors + without.weights);
    assert_int_equal(with.buffers, without.buffers + without.weights);
}

static void a_run_that_judges_keeps_an_update_in_two_bytes_an_element(void **state)
{
    (void)state;
    dp_manifest manifest = manifest_of("llama-tiny");
    manifest.trust = DP_TRUST_MEMBERS;
    const dp_plan without = plan_of(&manifest, UINT64_MAX);
    manifest.trust = DP_TRUST_OPEN;
    const dp_plan with = plan_of(&manifest, UINT64_MAX);
    assert_int_equal(with.buffers, without.buffers + without.weights / 2);
}

static void with_memory_enough_only_norms_are_recomputed(void **state)
{
    (void)state;
    const dp_manifest manifest = manifest_of("llama-tiny");
    const dp_plan plan = plan_of(&manifest, (uint64_t)1 << 32);
    assert_int_equal(plan.recompute, DP_RECOMPUTE_NORMS);
    assert_int_equal(plan.rows, manifest.batch_rows);
    assert_int_equal(plan.parameters, 918656);
}

static void less_memory_climbs_the_ladder_and_then_shrinks_the_batch(void **state)
{
    (void)state;
    dp_manifest manifest = manifest_of("llama-135m");
    manifest.batch_rows = 64;
    dp_plan plan = plan_of(&manifest, (uint64_t)1 << 40);
    dp_recompute last = plan.recompute;
    uint32_t rows = UINT32_MAX;
    dp_gpt_packs packs = plan.packs;
    bool climbed = false;
    for (uint64_t budget = plan.total; budget > plan.total / 4; budget -= plan.total / 50) {
        dp_plan less;
        const dp_plan_request request = {.manifest = &manifest, .threads = 2, .budget = budget};
        if (dp_plan_make(&less, &request, NULL) != DP_OK) {
            break;
        }
        assert_true(less.total <= budget && less.packs >= packs);
        assert_true(less.packs > packs || less.recompute >= last);
        assert_true(less.packs > packs || less.recompute > last || less.rows <= rows);
        packs = less.packs;
        climbed = climbed || less.recompute > DP_RECOMPUTE_NORMS;
        last = less.recompute;
        rows = less.rows;
    }
    assert_true(climbed);
}

static void long_sequences_share_packs_and_short_ones_keep_them(void **state)
{
    (void)state;
    dp_manifest manifest = manifest_of("llama-1b");
    dp_plan plan = plan_of(&manifest, (uint64_t)1 << 40);
    assert_int_equal(plan.packs, DP_GPT_PACKS_SHARED);
    assert_true(plan.packed < plan.weights / 2);
    manifest.context = 1024;
    plan = plan_of(&manifest, (uint64_t)1 << 40);
    assert_int_equal(plan.packs, DP_GPT_PACKS_KEPT);
    assert_true(plan.packed > plan.weights);
}

static void a_plan_that_does_not_fit_names_one_that_would(void **state)
{
    (void)state;
    const dp_manifest manifest = manifest_of("gpt2-355m");
    dp_plan plan;
    dp_why why = {""};
    dp_plan_request request = {.manifest = &manifest, .threads = 2, .budget = (uint64_t)12 << 30};
    assert_int_equal(dp_plan_make(&plan, &request, &why), DP_TOOBIG);
    assert_int_equal(plan.rows, 0);
    assert_true(plan.total > request.budget);
    const char *const advice = strstr(why.text, "model.layers ");
    assert_non_null(advice);
    dp_manifest smaller = manifest;
    smaller.layers = (uint32_t)strtoul(advice + strlen("model.layers "), NULL, 10);
    assert_in_range(smaller.layers, 1, 23);
    request.manifest = &smaller;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    smaller.layers++; /* It was the largest. */
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_TOOBIG);
    request.budget = 1000;
    assert_int_equal(dp_plan_make(&plan, &request, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "model.preset"));
}

/* Data in memfds counts as memory, whichever process made them. */
static void data_in_memory_counts_and_may_be_too_much(void **state)
{
    (void)state;
    const dp_manifest manifest = manifest_of("llama-tiny");
    const uint64_t budget = (uint64_t)1 << 30;
    const uint64_t data = (uint64_t)600 << 20;
    dp_plan with;
    dp_why why = {""};
    const dp_plan without = plan_of(&manifest, budget);
    dp_plan_request request = {.manifest = &manifest, .threads = 2, .budget = budget, .data = data};
    assert_int_equal(dp_plan_make(&with, &request, NULL), DP_OK);
    assert_int_equal(with.data, data);
    assert_int_equal(without.data, 0);
    assert_int_equal(with.total, without.total + data);
    request.data = budget - without.total / 4; /* Not enough for one sequence of this model. */
    assert_int_equal(dp_plan_make(&with, &request, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "of them the data"));
    request.data = 2 * budget;
    assert_int_equal(dp_plan_make(&with, &request, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "take less data"));
}

static void a_model_that_cannot_exist_has_no_plan(void **state)
{
    (void)state;
    dp_manifest manifest = manifest_of("gpt2-tiny");
    manifest.heads = 3;
    dp_plan plan;
    dp_why why = {""};
    const dp_plan_request request = {.manifest = &manifest, .threads = 1, .budget = 1 << 30};
    assert_int_equal(dp_plan_make(&plan, &request, &why), DP_BADARG);
    assert_non_null(strstr(why.text, "model.heads"));
}

static void the_line_is_json(void **state)
{
    (void)state;
    const dp_manifest manifest = manifest_of("gpt2-124m");
    for (uint64_t budget = (uint64_t)1 << 40; budget > 1 << 20; budget >>= 16) {
        dp_plan plan;
        dp_why why = {""};
        dp_buf line;
        dp_buf_init(&line, 1 << 16);
        const dp_plan_request request = {.manifest = &manifest, .threads = 2, .budget = budget};
        const bool fits = dp_plan_make(&plan, &request, &why) == DP_OK;
        assert_int_equal(dp_plan_json(&plan, &why, &line), DP_OK);
        json_t *json = json_loadb((const char *)dp_buf_view(&line).data, line.size, 0, NULL);
        assert_non_null(json);
        assert_int_equal(json_integer_value(json_object_get(json, "total")), plan.total);
        assert_int_equal(json_is_true(json_object_get(json, "fits")), fits);
        assert_int_equal(json_array_size(json_object_get(json, "steps")), DP_RECOMPUTE_STEPS);
        assert_int_equal(json_is_string(json_object_get(json, "why")), !fits);
        json_decref(json);
        dp_buf_close(&line);
    }
}

static void rows_that_are_asked_for_are_kept_and_the_ladder_gives_way(void **state)
{
    (void)state;
    const dp_manifest manifest = manifest_of("llama-tiny");
    dp_plan_request request = {
        .manifest = &manifest, .threads = 2, .budget = UINT64_MAX, .rows = 4, .alone = true};
    dp_plan plan;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    assert_int_equal(plan.rows, 4);
    assert_true(plan.anchors == 0 && plan.daemon == 0);
    assert_int_equal(plan.recompute, DP_RECOMPUTE_NORMS);
    request.budget = plan.steps[DP_RECOMPUTE_LAYER].total;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    assert_int_equal(plan.rows, 4);
    assert_int_equal(plan.recompute, DP_RECOMPUTE_LAYER);
    request.budget--; /* Then shared packs give way, and the ladder is there once more. */
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    assert_int_equal(plan.packs, DP_GPT_PACKS_SHARED);
    request.budget = plan.steps[DP_RECOMPUTE_LAYER].total;
    assert_int_equal(dp_plan_make(&plan, &request, NULL), DP_OK);
    assert_int_equal(plan.recompute, DP_RECOMPUTE_LAYER);
    dp_why why = {{0}};
    request.budget--;
    assert_int_equal(dp_plan_make(&plan, &request, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "4 sequences"));
    const char *const advice = strstr(why.text, "--rows ");
    assert_non_null(advice);
    request.rows = (uint32_t)strtoul(advice + strlen("--rows "), NULL, 10);
    assert_int_equal(dp_plan_make(&plan, &request, &why), DP_OK);
}

static void any_model_takes_its_vectors_and_no_more(void **state)
{
    (void)state;
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    dp_manifest manifest;
    dp_plan plan;
    dp_why why = {""};
    dp_manifest_default(&manifest);
    dp_manifest_set_model(&manifest, &shape);
    manifest.elements = 1000000;
    manifest.outer_mu_milli = 900;
    plan = plan_of(&manifest, (uint64_t)1 << 30);
    assert_int_equal(plan.parameters, 1000000);
    assert_int_equal(plan.weights, 4000000); /* a multiple of 64 elements */
    assert_int_equal(plan.anchors, 6 * 4000000);
    assert_int_equal(plan.daemon, 2 * 2 * 4000000); /* two states, each with the momentum */
    assert_int_equal(plan.gradients + plan.moments + plan.packed + plan.activations, 0);
    assert_true(plan.buffers > 2 * 4000000 && plan.rows == 1);
    const dp_plan_request small = {.manifest = &manifest, .threads = 2, .budget = plan.total - 1};
    assert_int_equal(dp_plan_make(&plan, &small, &why), DP_TOOBIG);
    assert_int_equal(plan.rows, 0);
    assert_non_null(strstr(why.text, "vectors of this model take"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_plan_is_what_engine_and_optimizer_take),
        cmocka_unit_test(with_adapters_the_plan_counts_the_base_and_takes_what_it_says),
        cmocka_unit_test(adapters_of_half_a_billion_weights_train_in_three_gibibytes),
        cmocka_unit_test(moments_are_the_vectors_that_the_optimizer_keeps),
        cmocka_unit_test(scratch_of_muon_is_planned_for_the_threads_that_get_it),
        cmocka_unit_test(a_team_has_weights_for_each_and_moments_once),
        cmocka_unit_test(momentum_of_the_outer_step_is_kept_and_travels),
        cmocka_unit_test(a_run_that_judges_keeps_an_update_in_two_bytes_an_element),
        cmocka_unit_test(with_memory_enough_only_norms_are_recomputed),
        cmocka_unit_test(long_sequences_share_packs_and_short_ones_keep_them),
        cmocka_unit_test(less_memory_climbs_the_ladder_and_then_shrinks_the_batch),
        cmocka_unit_test(a_plan_that_does_not_fit_names_one_that_would),
        cmocka_unit_test(data_in_memory_counts_and_may_be_too_much),
        cmocka_unit_test(a_model_that_cannot_exist_has_no_plan),
        cmocka_unit_test(rows_that_are_asked_for_are_kept_and_the_ladder_gives_way),
        cmocka_unit_test(the_line_is_json),
        cmocka_unit_test(any_model_takes_its_vectors_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
