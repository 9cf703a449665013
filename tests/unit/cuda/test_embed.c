/* Embeddings: rows as they are, gradients near sums in double, and the same bits in every order of
 * threads. */
#include "compute/cuda/embed.h"
#include "tests/unit/cuda/near.h"

typedef struct embed_case {
    size_t rows;
    size_t length;
    size_t vocab;
    size_t width;
    size_t kinds; /* different tokens among them */
    dp_precision stream;
    bool positions;
    bool strangers; /* some are not below vocab */
} embed_case;

static uint32_t *draw_tokens(const embed_case *c)
{
    const size_t n = c->rows * c->length;
    uint32_t *const tokens = calloc(n, sizeof *tokens);
    assert_non_null(tokens);
    dp_rng rng;
    dp_rng_init(&rng, 9);
    for (size_t i = 0; i < n; i++) {
        const uint64_t kind = dp_rng_below(&rng, c->kinds);
        tokens[i] = (uint32_t)(kind * 7919 % c->vocab);
        if (c->strangers && i % 5 == 2) {
            tokens[i] = i % 2 == 0 ? (uint32_t)c->vocab : 0xfffffffeU - (uint32_t)(i % 3);
        }
    }
    return tokens;
}

static void check_forward(const embed_case *c, const uint32_t *tokens, const dp_cuda_embed *embed)
{
    const size_t n = c->rows * c->length * c->width;
    float *const table = near_fill(c->vocab * c->width, 1, 1.0F, DP_FP32);
    float *const places = near_fill(c->length * c->width, 2, 1.0F, DP_FP32);
    float *const card_table = near_put(table, c->vocab * c->width, DP_FP32);
    float *const card_places = near_put(places, c->length * c->width, DP_FP32);
    void *const card_x = near_poison(n, c->stream);
    CHECK_OK(dp_cuda_embed_forward(embed, card_table, c->positions ? card_places : NULL, card_x,
                                   card_open()));
    float *const x = near_get(card_x, n, c->stream);
    for (size_t i = 0; i < n; i++) {
        const size_t at = i / c->width;
        if (tokens[at] >= c->vocab) {
            assert_true(isnan(x[i]));
            continue;
        }
        const float place = places[at % c->length * c->width + i % c->width];
        const float own = table[tokens[at] * c->width + i % c->width];
        assert_true(x[i] == dp_round_to(c->stream, c->positions ? own + place : own));
    }
    card_free(card_table);
    card_free(card_places);
    card_free(card_x);
    free(x);
    free(table);
    free(places);
}

static void check_backward(const embed_case *c, const uint32_t *tokens, const dp_cuda_embed *embed)
{
    const size_t n = c->rows * c->length;
    const size_t behind = c->vocab * c->width;
    float *const dx = near_fill(n * c->width, 3, 1.0F, c->stream);
    float *const table = near_fill(behind, 4, 1.0F, DP_FP32);
    float *const places = near_fill(c->length * c->width, 5, 1.0F, DP_FP32);
    double *const sums = calloc(behind + c->length * c->width, sizeof *sums);
    void *const card_dx = near_put(dx, n * c->width, c->stream);
    float *const d_table = near_put(table, behind, DP_FP32);
    float *const d_places = near_put(places, c->length * c->width, DP_FP32);
    void *const scratch = card_put(NULL, dp_cuda_embed_scratch(n, c->width));
    CHECK_OK(dp_cuda_embed_backward(embed, card_dx, d_table, c->positions ? d_places : NULL,
                                    scratch, card_open()));
    for (size_t i = 0; i < n * c->width; i++) {
        const size_t at = i / c->width;
        const size_t column = i % c->width;
        if (tokens[at] < c->vocab) {
            sums[tokens[at] * c->width + column] += (double)dx[i];
        }
        if (c->positions) {
            sums[behind + at % c->length * c->width + column] += (double)dx[i];
        }
    }
    for (size_t i = 0; i < behind; i++) {
        table[i] = (float)((double)table[i] + sums[i]);
    }
    for (size_t i = 0; i < c->length * c->width; i++) {
        places[i] = (float)((double)places[i] + sums[behind + i]);
    }
    /* n roundings of sums that are seldom above sqrt(n). */
    const double slack = 0x1p-24 * (double)n * sqrt((double)n);
    near_check("d_table", d_table, table, behind, DP_FP32, slack);
    near_check("d_positions", d_places, places, c->length * c->width, DP_FP32, slack);
    card_free(card_dx);
    card_free(d_table);
    card_free(d_places);
    card_free(scratch);
    free(sums);
    free(dx);
    free(table);
    free(places);
}

static void check_embed(const embed_case *c)
{
    uint32_t *const tokens = draw_tokens(c);
    uint32_t *const card = card_put(tokens, c->rows * c->length * sizeof *tokens);
    const dp_cuda_embed embed = {card, c->rows, c->length, c->vocab, c->width, c->stream};
    check_forward(c, tokens, &embed);
    check_backward(c, tokens, &embed);
    card_free(card);
    free(tokens);
}

static void tables_of_odd_shapes_are_read_and_added_to(void **state)
{
    (void)state;
    static const embed_case cases[] = {
        {1, 1, 1, 1, 1, DP_FP32, true, false},       {1, 33, 7, 5, 7, DP_FP32, true, false},
        {3, 31, 64, 8, 64, DP_FP32, false, false}, /* 64 tokens: two digits with the strangers */
        {2, 20, 5000, 24, 30, DP_FP32, true, false}, {5, 13, 70000, 3, 65, DP_FP32, false, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        check_embed(&cases[i]);
    }
}

static void runs_go_over_several_tiles_and_blocks(void **state)
{
    (void)state;
    const embed_case one = {2, 100, 9, 8, 1, DP_FP32, false, false};
    const embed_case few = {2, 100, 9, 8, 3, DP_FP32, true, true};
    const embed_case large = {3, 700, 300, 8, 40, DP_FP32, false, false}; /* blocks of the sort */
    check_embed(&one);
    check_embed(&few);
    check_embed(&large);
}

static void streams_have_every_type(void **state)
{
    (void)state;
    for (size_t t = 0; t < NEAR_TYPES; t++) {
        const embed_case even = {2, 40, 20, 40, 20, near_types[t], true, true};
        const embed_case odd = {2, 40, 20, 37, 20, near_types[t], true, true};
        check_embed(&even);
        check_embed(&odd);
    }
}

static void gradients_have_the_same_bits_in_every_order_of_threads(void **state)
{
    (void)state;
    const embed_case c = {2, 600, 50, 16, 20, DP_FP32, false, false};
    const size_t n = c.rows * c.length;
    uint32_t *const tokens = draw_tokens(&c);
    float *const dx = near_fill(n * c.width, 3, 1.0F, DP_FP32);
    float *const zeros = near_room(c.vocab * c.width);
    float *first = NULL;
    for (uint64_t order = 0; order < NEAR_ORDERS; order++) {
        card_order(order);
        uint32_t *const card = card_put(tokens, n * sizeof *tokens);
        float *const card_dx = near_put(dx, n * c.width, DP_FP32);
        float *const d_table = near_put(zeros, c.vocab * c.width, DP_FP32);
        void *const scratch = card_put(NULL, dp_cuda_embed_scratch(n, c.width));
        const dp_cuda_embed embed = {card, c.rows, c.length, c.vocab, c.width, DP_FP32};
        CHECK_OK(dp_cuda_embed_backward(&embed, card_dx, d_table, NULL, scratch, card_open()));
        if (first == NULL) {
            first = near_get(d_table, c.vocab * c.width, DP_FP32);
        }
        near_same(d_table, first, c.vocab * c.width, DP_FP32);
        card_free(card);
        card_free(card_dx);
        card_free(d_table);
        card_free(scratch);
    }
    card_order(0);
    free(first);
    free(zeros);
    free(dx);
    free(tokens);
}

static void impossible_embeddings_are_refused(void **state)
{
    (void)state;
    dp_cuda_embed e = {NULL, 1, 0, 1, 1, DP_FP32};
    CHECK_STATUS(dp_cuda_embed_forward(&e, NULL, NULL, NULL, card_open()), DP_BADARG);
    e.length = 2;
    e.rows = DP_CUDA_EMBED_TOKENS_MAX;
    CHECK_STATUS(dp_cuda_embed_backward(&e, NULL, NULL, NULL, NULL, card_open()), DP_TOOBIG);
    e.rows = 0;
    CHECK_OK(dp_cuda_embed_forward(&e, NULL, NULL, NULL, card_open()));
    CHECK_OK(dp_cuda_embed_backward(&e, NULL, NULL, NULL, NULL, card_open()));
    e.stream = DP_PRECISIONS;
    CHECK_STATUS(dp_cuda_embed_forward(&e, NULL, NULL, NULL, card_open()), DP_BADARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_odd_shapes_are_read_and_added_to),
        cmocka_unit_test(runs_go_over_several_tiles_and_blocks),
        cmocka_unit_test(streams_have_every_type),
        cmocka_unit_test(gradients_have_the_same_bits_in_every_order_of_threads),
        cmocka_unit_test(impossible_embeddings_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
