#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compute/model/gpt.h"
#include "compute/trainer/sample.h"

enum { VOCAB = 5 };

static const float logits[VOCAB] = {0.0F, 2.0F, 1.0F, 2.0F, -1.0F};

static uint32_t pick(const dp_sampler *sampler, dp_rng *rng)
{
    float scratch[2 * VOCAB];
    uint32_t token = UINT32_MAX;
    assert_int_equal(dp_sample_pick(sampler, rng, logits, VOCAB, scratch, &token), DP_OK);
    assert_in_range(token, 0, VOCAB - 1);
    return token;
}

static void temperature_zero_takes_the_likeliest_with_the_lowest_id(void **state)
{
    (void)state;
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (size_t i = 0; i < 20; i++) {
        assert_int_equal(pick(&(dp_sampler){.temperature = 0.0F}, &rng), 1);
        assert_int_equal(pick(&(dp_sampler){.temperature = 1.0F, .top_k = 1}, &rng), 1);
    }
}

static void frequencies_are_those_of_the_softmax(void **state)
{
    (void)state;
    enum { DRAWS = 100000 };
    const dp_sampler sampler = {.temperature = 0.7F};
    size_t counts[VOCAB] = {0};
    dp_rng rng;
    double sum = 0.0;
    dp_rng_init(&rng, 2);
    for (size_t i = 0; i < VOCAB; i++) {
        sum += exp((double)logits[i] / 0.7);
    }
    for (size_t i = 0; i < DRAWS; i++) {
        counts[pick(&sampler, &rng)]++;
    }
    for (size_t i = 0; i < VOCAB; i++) {
        const double p = exp((double)logits[i] / 0.7) / sum;
        const double deviation = sqrt(p * (1.0 - p) / DRAWS);
        assert_true(fabs((double)counts[i] / DRAWS - p) < 5.0 * deviation);
    }
}

static void top_k_draws_from_the_k_likeliest_only(void **state)
{
    (void)state;
    size_t counts[VOCAB] = {0};
    dp_rng rng;
    dp_rng_init(&rng, 3);
    for (size_t i = 0; i < 2000; i++) {
        counts[pick(&(dp_sampler){.temperature = 5.0F, .top_k = 3}, &rng)]++;
    }
    assert_true(counts[1] > 0 && counts[2] > 0 && counts[3] > 0);
    assert_int_equal(counts[0] + counts[4], 0);
}

/* Against a sort, for every k. */
static void top_k_finds_the_limit_among_many(void **state)
{
    (void)state;
    enum { MANY = 301 };
    float many[MANY];
    float scratch[2 * MANY];
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = (float)dp_rng_below(&rng, 100) * 0.01F; /* with ties */
    }
    for (uint32_t k = 2; k < MANY; k++) {
        const dp_sampler sampler = {.temperature = 100.0F, .top_k = k};
        uint32_t token = 0;
        assert_int_equal(dp_sample_pick(&sampler, &rng, many, MANY, scratch, &token), DP_OK);
        size_t above = 0;
        size_t allowed = 0;
        for (size_t i = 0; i < MANY; i++) {
            above += many[i] > many[token];
            allowed += scratch[i] > 0.0F;
        }
        assert_true(above < k);
        assert_true(allowed >= k); /* ties at the limit stay in */
    }
}

static void top_p_draws_from_the_fewest_that_sum_to_it(void **state)
{
    (void)state;
    /* Probabilities at temperature 1: 0.05, 0.39, 0.14, 0.39 and 0.02. */
    const struct {
        float top_p;
        bool drawn[VOCAB];
    } cases[] = {
        {0.3F, {false, true, false, true, false}}, /* a tie stays in whole */
        {0.78F, {false, true, false, true, false}}, {0.9F, {false, true, true, true, false}},
        {0.97F, {true, true, true, true, false}},   {1.0F, {true, true, true, true, true}},
        {0.0F, {true, true, true, true, true}}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        size_t counts[VOCAB] = {0};
        dp_rng rng;
        dp_rng_init(&rng, 3);
        for (size_t i = 0; i < 4000; i++) {
            counts[pick(&(dp_sampler){.temperature = 1.0F, .top_p = cases[c].top_p}, &rng)]++;
        }
        for (size_t i = 0; i < VOCAB; i++) {
            assert_int_equal(counts[i] > 0, cases[c].drawn[i]);
        }
    }
}

/* top_p counts what top_k has left: of 0.42, 0.42 and 0.16 the first two are 0.845. */
static void top_p_divides_what_top_k_leaves(void **state)
{
    (void)state;
    size_t counts[VOCAB] = {0};
    dp_rng rng;
    dp_rng_init(&rng, 3);
    for (size_t i = 0; i < 2000; i++) {
        counts[pick(&(dp_sampler){.temperature = 1.0F, .top_k = 3, .top_p = 0.84F}, &rng)]++;
    }
    assert_true(counts[1] > 0 && counts[3] > 0);
    assert_int_equal(counts[0] + counts[2] + counts[4], 0);
}

static int larger_first(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Against a sort: the smallest set of the likeliest, with the ties of its last. */
static void top_p_finds_its_limit_among_many(void **state)
{
    (void)state;
    enum { MANY = 301 };
    float many[MANY];
    float scratch[2 * MANY];
    double sorted[MANY];
    double sum = 0;
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (size_t i = 0; i < MANY; i++) {
        many[i] = (float)dp_rng_below(&rng, 100) * 0.05F; /* with ties */
        sorted[i] = exp((double)many[i]);
        sum += sorted[i];
    }
    qsort(sorted, MANY, sizeof *sorted, larger_first);
    for (size_t percent = 1; percent < 100; percent++) {
        const double p = (double)percent / 100;
        const dp_sampler sampler = {.temperature = 1.0F, .top_p = (float)p};
        uint32_t token = 0;
        size_t least = 0;
        double mass = 0;
        assert_int_equal(dp_sample_pick(&sampler, &rng, many, MANY, scratch, &token), DP_OK);
        while (mass < (p - 1e-6) * sum) { /* Rounding may leave out the last of them. */
            mass += sorted[least++];
        }
        size_t most = least;
        while (most < MANY && sorted[most] >= sorted[least - 1] * (1 - 1e-6)) {
            most++;
        }
        while (most < MANY && mass < (p + 1e-6) * sum) { /* Or put in one more, and its ties. */
            mass += sorted[most++];
        }
        size_t allowed = 0;
        for (size_t i = 0; i < MANY; i++) {
            allowed += scratch[i] > 0.0F;
        }
        assert_in_range(allowed, least, most);
        assert_true(scratch[token] > 0.0F);
    }
}

static void impossible_settings_and_logits_are_refused(void **state)
{
    (void)state;
    dp_rng rng;
    float bad[VOCAB] = {0.0F, NAN, 0.0F, 0.0F, 0.0F};
    float scratch[2 * VOCAB];
    uint32_t token = 0;
    dp_rng_init(&rng, 5);
    const dp_sampler nan_temperature = {.temperature = NAN};
    const dp_sampler cold = {.temperature = -1.0F};
    const dp_sampler many = {.temperature = 1.0F, .top_p = 1.5F};
    const dp_sampler nan_part = {.temperature = 1.0F, .top_p = NAN};
    const dp_sampler fine = {.temperature = 1.0F};
    assert_int_equal(dp_sample_pick(&nan_temperature, &rng, logits, VOCAB, scratch, &token),
                     DP_BADARG);
    assert_int_equal(dp_sample_pick(&cold, &rng, logits, VOCAB, scratch, &token), DP_BADARG);
    assert_int_equal(dp_sample_pick(&many, &rng, logits, VOCAB, scratch, &token), DP_BADARG);
    assert_int_equal(dp_sample_pick(&nan_part, &rng, logits, VOCAB, scratch, &token), DP_BADARG);
    assert_int_equal(dp_sample_pick(&fine, &rng, logits, 0, scratch, &token), DP_BADARG);
    assert_int_equal(dp_sample_pick(&fine, &rng, bad, VOCAB, scratch, &token), DP_DIVERGED);
    bad[1] = INFINITY;
    assert_int_equal(dp_sample_pick(&fine, &rng, bad, VOCAB, scratch, &token), DP_DIVERGED);
}

static dp_status logits_of(void *context, const uint32_t *tokens, size_t known, size_t length,
                           float *out)
{
    (void)known;
    return dp_gpt_logits(context, tokens, length, out);
}

static void the_same_seed_gives_the_same_text_and_training_state_stays(void **state)
{
    (void)state;
    const dp_model_config config = {
        .layers = 1, .width = 16, .heads = 2, .context = 8, .vocab = 50};
    dp_model model;
    dp_gpt *gpt = NULL;
    uint32_t one[32] = {3, 4, 5};
    uint32_t two[32] = {3, 4, 5};
    uint32_t other[32] = {3, 4, 5};
    double loss = 0.0;
    assert_int_equal(dp_model_open(&model, &config, NULL), DP_OK);
    assert_int_equal(dp_gpt_open(&gpt, &model, &(dp_gpt_options){.rows_max = 1}), DP_OK);
    dp_model_init(&model, 6, dp_gpt_params_to_write(gpt));
    assert_int_equal(dp_gpt_step(gpt, &(dp_gpt_batch){one, one + 1, 1, 8}, 1.0F, &loss), DP_OK);
    const size_t bytes = model.n_elements * sizeof(float);
    float *params = malloc(bytes);
    float *grads = malloc(bytes);
    memcpy(params, dp_gpt_params(gpt), bytes);
    memcpy(grads, dp_gpt_grads(gpt), bytes);
    const dp_sample_model asked = {.config = &model.config, .context = gpt, .logits = logits_of};
    dp_sampler sampler = {.temperature = 1.0F, .top_k = 20, .seed = 7};
    assert_int_equal(dp_sample(&asked, &sampler, one, 3, 29), DP_OK); /* past the context of 8 */
    assert_int_equal(dp_sample(&asked, &sampler, two, 3, 29), DP_OK);
    sampler.seed = 8;
    assert_int_equal(dp_sample(&asked, &sampler, other, 3, 29), DP_OK);
    assert_memory_equal(one, two, sizeof one);
    assert_memory_not_equal(one, other, sizeof one);
    assert_memory_equal(params, dp_gpt_params(gpt), bytes);
    assert_memory_equal(grads, dp_gpt_grads(gpt), bytes);
    assert_int_equal(dp_sample(&asked, &sampler, one, 0, 1), DP_BADARG);
    free(params);
    free(grads);
    dp_gpt_close(gpt);
    dp_model_close(&model);
}

/* Each window that a model was asked for. */
typedef struct windows {
    size_t count;
    size_t known[64];
    size_t length[64];
    const uint32_t *first[64];
} windows;

static dp_status counted(void *context, const uint32_t *tokens, size_t known, size_t length,
                         float *out)
{
    windows *const w = context;
    w->known[w->count] = known;
    w->length[w->count] = length;
    w->first[w->count++] = tokens;
    memcpy(out, logits, sizeof logits);
    return DP_OK;
}

static void a_full_window_leaves_out_its_older_half(void **state)
{
    (void)state;
    const dp_model_config config = {.context = 8, .vocab = VOCAB};
    const dp_sampler sampler = {.temperature = 1.0F};
    uint32_t tokens[32] = {0};
    windows w = {0};
    const dp_sample_model model = {.config = &config, .context = &w, .logits = counted};
    assert_int_equal(dp_sample(&model, &sampler, tokens, 6, 9), DP_OK);
    const size_t known[] = {0, 6, 7, 0, 4, 5, 6, 7, 0};
    const size_t length[] = {6, 7, 8, 4, 5, 6, 7, 8, 4};
    const size_t first[] = {0, 0, 0, 5, 5, 5, 5, 5, 10};
    assert_int_equal(w.count, 9);
    for (size_t i = 0; i < w.count; i++) {
        assert_int_equal(w.known[i], known[i]);
        assert_int_equal(w.length[i], length[i]);
        assert_ptr_equal(w.first[i], tokens + first[i]);
    }
    w.count = 0; /* Of a prompt that is longer than the context its end. */
    assert_int_equal(dp_sample(&model, &sampler, tokens, 20, 2), DP_OK);
    assert_ptr_equal(w.first[0], tokens + 12);
    assert_int_equal(w.length[0], 8);
    assert_int_equal(w.known[1], 0);
    assert_int_equal(w.length[1], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(temperature_zero_takes_the_likeliest_with_the_lowest_id),
        cmocka_unit_test(frequencies_are_those_of_the_softmax),
        cmocka_unit_test(top_k_draws_from_the_k_likeliest_only),
        cmocka_unit_test(top_k_finds_the_limit_among_many),
        cmocka_unit_test(top_p_draws_from_the_fewest_that_sum_to_it),
        cmocka_unit_test(top_p_divides_what_top_k_leaves),
        cmocka_unit_test(top_p_finds_its_limit_among_many),
        cmocka_unit_test(a_full_window_leaves_out_its_older_half),
        cmocka_unit_test(impossible_settings_and_logits_are_refused),
        cmocka_unit_test(the_same_seed_gives_the_same_text_and_training_state_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
