/* Gradients as they are handed out while backward goes on. THREADS_TEST */
#include "tests/lib/check.h"

#include "compute/codec/bucket.h"
#include "compute/model/gpt.h"

#include <stdlib.h>

#include "base/rng.h"

enum { ROWS = 3, TOKENS = 3 * 17, PIECES_MAX = 500 };

static const dp_model_config models[] = {
    {.layers = 3, .width = 32, .heads = 2, .context = 17, .vocab = 64},
    {.arch = DP_ARCH_LLAMA,
     .layers = 2,
     .width = 24,
     .heads = 3,
     .context = 17,
     .vocab = 40,
     .hidden = 32},
    {.arch = DP_ARCH_LLAMA,
     .layers = 1,
     .width = 21,
     .heads = 3,
     .context = 17,
     .vocab = 37,
     .kv_heads = 1,
     .head_width = 10,
     .hidden = 35,
     .qk_norm = DP_ON,
     .head = DP_HEAD_TIED},
};
enum { MODELS = sizeof models / sizeof models[0] };

/* The buckets that were handed out, with their values at that time. */
typedef struct basket {
    dp_gpt *gpt;
    const size_t *starts;
    float *values;
    size_t left;   /* buckets */
    size_t border; /* all from here on has come */
} basket;

static void take(void *context, size_t index, size_t first, size_t last)
{
    basket *const b = context;
    assert_int_equal(index + 1, b->left);
    assert_int_equal(last, b->border);
    CHECK(first == b->starts[index] && last == b->starts[index + 1]);
    memcpy(b->values + first, dp_gpt_grads(b->gpt) + first, (last - first) * sizeof(float));
    b->border = first;
    b->left--;
}

typedef struct engine {
    dp_model model;
    dp_pool *pool;
    dp_gpt *gpt;
    uint32_t x[2 * TOKENS];
    uint32_t y[2 * TOKENS];
} engine;

static void open_engine(engine *e, const dp_model_config *config, size_t threads)
{
    CHECK_OK(dp_model_open(&e->model, config, NULL));
    CHECK_OK(dp_pool_open(&e->pool, threads));
    const dp_gpt_options options = {.rows_max = ROWS, .pool = e->pool};
    CHECK_OK(dp_gpt_open(&e->gpt, &e->model, &options));
    dp_model_init(&e->model, 7, dp_gpt_params_to_write(e->gpt));
    dp_rng rng;
    dp_rng_init(&rng, 9);
    for (size_t i = 0; i < (size_t)2 * TOKENS; i++) {
        e->x[i] = (uint32_t)dp_rng_below(&rng, config->vocab);
        e->y[i] = (uint32_t)dp_rng_below(&rng, config->vocab);
    }
}

static void close_engine(engine *e)
{
    dp_gpt_close(e->gpt);
    dp_pool_close(e->pool);
    dp_model_close(&e->model);
}

static dp_gpt_batch batch_of(const engine *e, size_t micro)
{
    return (dp_gpt_batch){e->x + micro * TOKENS, e->y + micro * TOKENS, ROWS, 17};
}

/* Two micro-batches, the second of which hands out. */
static void check_handed_out(const dp_model_config *config, size_t threads, size_t pieces)
{
    engine e;
    double loss = 0.0;
    size_t starts[PIECES_MAX + 1];
    open_engine(&e, config, threads);
    const size_t n = e.model.n_elements;
    for (size_t i = 0; i <= pieces; i++) {
        starts[i] = n * i / pieces;
    }
    starts[pieces / 2] = starts[pieces / 2 + 1]; /* One of them is of nothing. */
    starts[0] = 0;
    basket b = {.gpt = e.gpt, .starts = starts, .left = pieces, .border = n};
    b.values = calloc(n, sizeof *b.values);
    dp_buckets buckets = {.starts = starts, .left = pieces, .take = take, .context = &b};
    const dp_gpt_batch first = batch_of(&e, 0);
    const dp_gpt_batch second = batch_of(&e, 1);
    CHECK_OK(dp_gpt_step(e.gpt, &first, 0.01F, &loss));
    CHECK(b.left == pieces);
    dp_gpt_on_final(e.gpt, dp_buckets_final, &buckets);
    CHECK_OK(dp_gpt_step(e.gpt, &second, 0.01F, &loss));
    CHECK(b.border == 0 && b.left == 0 && buckets.left == 0);
    assert_memory_equal(b.values, dp_gpt_grads(e.gpt), n * sizeof(float));
    /* The next step tells nobody. */
    buckets.left = pieces;
    CHECK_OK(dp_gpt_step(e.gpt, &second, 0.01F, &loss));
    CHECK(buckets.left == pieces);
    free(b.values);
    close_engine(&e);
}

static void every_element_is_handed_out_once_in_order_and_final(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        for (size_t threads = 1; threads <= 3; threads++) {
            check_handed_out(&models[m], threads, 32);
            check_handed_out(&models[m], threads, PIECES_MAX);
            check_handed_out(&models[m], threads, 1);
        }
    }
}

/* Where the borders of final gradients were told. */
typedef struct borders {
    size_t at[64];
    size_t count;
} borders;

static void note(void *context, size_t first)
{
    borders *const b = context;
    assert_in_range(b->count, 0, 63);
    b->at[b->count++] = first;
}

static void layers_come_one_by_one_and_the_same_for_any_threads(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        borders told[2] = {{{0}, 0}, {{0}, 0}};
        for (size_t i = 0; i < 2; i++) {
            engine e;
            double loss = 0.0;
            open_engine(&e, &models[m], 1 + 2 * i);
            const dp_gpt_batch batch = batch_of(&e, 0);
            dp_gpt_on_final(e.gpt, note, &told[i]);
            CHECK_OK(dp_gpt_step(e.gpt, &batch, 0.01F, &loss));
            close_engine(&e);
        }
        /* The end of the model, each layer, the embedding. */
        CHECK(told[0].count == models[m].layers + 2 && told[0].at[told[0].count - 1] == 0);
        for (size_t i = 1; i < told[0].count; i++) {
            CHECK(told[0].at[i] < told[0].at[i - 1]);
        }
        assert_memory_equal(&told[0], &told[1], sizeof told[0]);
    }
}

static void a_refused_batch_hands_out_nothing_then_or_later(void **state)
{
    (void)state;
    engine e;
    borders told = {{0}, 0};
    double loss = 0.0;
    open_engine(&e, &models[0], 1);
    dp_gpt_batch bad = batch_of(&e, 0);
    const dp_gpt_batch good = bad;
    bad.rows = ROWS + 1;
    dp_gpt_on_final(e.gpt, note, &told);
    CHECK_STATUS(dp_gpt_step(e.gpt, &bad, 0.01F, &loss), DP_BADARG);
    CHECK_OK(dp_gpt_step(e.gpt, &good, 0.01F, &loss));
    CHECK(told.count == 0);
    close_engine(&e);
}

static void count_only(void *context, size_t index, size_t first, size_t last)
{
    size_t *const sum = context;
    (void)index;
    *sum += last - first;
}

static void buckets_wait_until_they_are_whole(void **state)
{
    static const size_t starts[] = {0, 100, 300, 300, 1000, 1050};
    size_t sum = 0;
    dp_buckets b = {.starts = starts, .left = 5, .take = count_only, .context = &sum};
    (void)state;
    dp_buckets_final(&b, 1050);
    dp_buckets_final(&b, 1001);
    CHECK(sum == 0 && b.left == 5);
    dp_buckets_final(&b, 1000);
    CHECK(sum == 50 && b.left == 4);
    dp_buckets_final(&b, 301);
    CHECK(sum == 50 && b.left == 4);
    dp_buckets_final(&b, 300);
    CHECK(sum == 750 && b.left == 2);
    dp_buckets_final(&b, 300);
    CHECK(sum == 750);
    dp_buckets_final(&b, 0);
    CHECK(sum == 1050 && b.left == 0);
    dp_buckets_final(&b, 0);
    CHECK(sum == 1050);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_element_is_handed_out_once_in_order_and_final),
        cmocka_unit_test(layers_come_one_by_one_and_the_same_for_any_threads),
        cmocka_unit_test(a_refused_batch_hands_out_nothing_then_or_later),
        cmocka_unit_test(buckets_wait_until_they_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
