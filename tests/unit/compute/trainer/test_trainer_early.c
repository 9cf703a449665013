/* Parts of gradients that are told while backward goes on. */
#include "tests/unit/compute/parts_kit.h"

#include <math.h>

enum { ROUNDS = 6, LR_NANO = 1000000 };

/* The parts that a trainer has told, one by one. */
typedef struct ear {
    dp_buf parts[KIT_PARTS];
    uint32_t order[2 * KIT_PARTS]; /* parts in the order in which they ended */
    uint32_t n_told;
    uint32_t n_pieces;
} ear;

static void hear(void *context, uint32_t part, size_t at, dp_view piece, bool last)
{
    ear *const e = context;
    CHECK(part < KIT_PARTS && e->n_told < 2 * KIT_PARTS);
    if (at == 0) {
        dp_buf_close(&e->parts[part]);
        dp_buf_init(&e->parts[part], 1 << 24);
    }
    CHECK(at == e->parts[part].size);
    CHECK_OK(dp_buf_append(&e->parts[part], piece));
    e->n_pieces++;
    if (last) {
        e->order[e->n_told++] = part;
    }
}

static void close_ear(ear *e)
{
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        dp_buf_close(&e->parts[p]);
    }
}

static dp_manifest settings(dp_codec_kind codec, uint32_t rows)
{
    dp_manifest m = node_settings(codec, 950);
    m.exchange = DP_EXCHANGE_GRADIENTS;
    m.inner_steps_max = 1;
    m.batch_rows = rows;
    m.schedule = DP_SCHEDULE_CONSTANT;
    m.warmup_tokens = 0;
    m.lr_nano = LR_NANO;
    return m;
}

static node open_member(const dp_manifest *m, uint8_t member)
{
    return node_open_with(m, (dp_trainer_setup){.member = {member}});
}

/* One batch of the run's line from this sample on, the step-th that this node has drawn. */
static void train(const node *x, uint64_t step, uint64_t first)
{
    const dp_reach from = {.leased = step * x->manifest.batch_rows};
    const dp_sample_range range = {.first = first, .count = x->manifest.batch_rows};
    CHECK_OK(dp_trainer_lease(x->trainer, &from, &range, 1));
    while (!dp_trainer_waits(x->trainer)) {
        CHECK_OK(dp_trainer_work(x->trainer));
    }
}

static bool is_part(const ear *e, const dp_part_blob *part, uint32_t p)
{
    const dp_buf *const told = &e->parts[p];
    return told->size == sizeof part->header + part->runs.size &&
           memcmp(told->data, part->header, sizeof part->header) == 0 &&
           memcmp(told->data + sizeof part->header, part->runs.data, part->runs.size) == 0;
}

/* How many parts of the publication are what was told. */
static uint32_t publish(const node *x, const ear *e, dp_view *blob)
{
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    dp_view a;
    uint32_t same = 0;
    CHECK_OK(dp_trainer_publish(x->trainer, false, blob, &a));
    CHECK_OK(dp_part_cut(*blob, x->n, &kit_cuts, parts, &energy));
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        same += is_part(e, &parts[p], p) ? 1 : 0;
    }
    return same;
}

enum { TOLD = KIT_PARTS - 1 }; /* One part of these cuts is of nothing, and not told. */

static void check_codec(dp_codec_kind codec, uint32_t rows)
{
    const dp_manifest m = settings(codec, rows);
    node x = open_member(&m, 1);
    ear e = {.n_told = 0};
    dp_view blob;
    dp_trainer_on_part(x.trainer, &kit_cuts, hear, &e);
    train(&x, 0, 0);
    CHECK(e.n_told == TOLD && e.n_pieces >= TOLD);
    for (uint32_t i = 1; i < TOLD; i++) {
        CHECK(e.order[i] < e.order[i - 1]);
    }
    CHECK(publish(&x, &e, &blob) == TOLD);
    close_ear(&e);
    node_close(&x);
}

static void what_is_told_is_the_publication_from_its_end_to_its_beginning(void **state)
{
    (void)state;
    check_codec(DP_CODEC_FP32, TINY_ROWS);
    check_codec(DP_CODEC_INT8, TINY_ROWS);
    check_codec(DP_CODEC_BF16, TINY_ROWS);
}

static void of_several_micro_batches_the_last_one_tells(void **state)
{
    (void)state;
    check_codec(DP_CODEC_FP32, 64 * TINY_ROWS); /* The first has one row, the next at most two. */
}

/* The result of each part as its owner makes it of what was told, never of a whole publication. */
static void add_up(kit_round *r, const node *x, const ear *ears)
{
    for (uint32_t i = 0; i < r->n; i++) {
        for (uint32_t p = 0; p < KIT_PARTS; p++) {
            if (ears[i].parts[p].size == 0) {
                continue; /* The part of nothing. */
            }
            dp_buf_close(&r->parts[i][p]);
            dp_buf_init(&r->parts[i][p], 1 << 24);
            CHECK_OK(dp_buf_append(&r->parts[i][p], dp_buf_view(&ears[i].parts[p])));
        }
    }
    kit_reduce(r, x, NULL);
}

/* |a - b| / |a - c|. */
static double apart(const float *a, const float *b, const float *c, size_t n)
{
    double difference = 0;
    double whole = 0;
    for (size_t i = 0; i < n; i++) {
        const double d = (double)a[i] - (double)b[i];
        const double w = (double)a[i] - (double)c[i];
        difference += d * d;
        whole += w * w;
    }
    return sqrt(difference / whole);
}

static void step_together(uint32_t n, node *nodes, node *one, uint64_t round)
{
    kit_round r = kit_round_of(round, n);
    kit_round single = kit_round_of(round, 1);
    ear ears[KIT_NODES_MAX] = {{.n_told = 0}};
    dp_view blob;
    dp_view a;
    const uint64_t at = (round - 1) * n * TINY_ROWS;
    train(one, round - 1, at);
    CHECK_OK(dp_trainer_publish(one->trainer, false, &blob, &a));
    kit_cut(&single, one, 0, blob);
    kit_reduce(&single, one, NULL);
    for (uint32_t i = 0; i < n; i++) {
        dp_trainer_on_part(nodes[i].trainer, &kit_cuts, hear, &ears[i]);
        train(&nodes[i], round - 1, at + (uint64_t)i * TINY_ROWS);
        CHECK(publish(&nodes[i], &ears[i], &blob) == TOLD);
        kit_cut(&r, &nodes[i], i, blob);
    }
    add_up(&r, &nodes[0], ears);
    kit_apply(&single, one, DP_SETTLE_INCLUDED);
    for (uint32_t i = 0; i < n; i++) {
        kit_apply(&r, &nodes[i], DP_SETTLE_INCLUDED);
        close_ear(&ears[i]);
    }
    kit_close(&single);
    kit_close(&r);
}

static double nodes_and_one(uint32_t n)
{
    const dp_manifest each = settings(DP_CODEC_FP32, TINY_ROWS);
    const dp_manifest all = settings(DP_CODEC_FP32, n * TINY_ROWS);
    node nodes[KIT_NODES_MAX];
    node one = open_member(&all, 9);
    for (uint32_t i = 0; i < n; i++) {
        nodes[i] = open_member(&each, (uint8_t)(i + 1));
    }
    float *const first = node_copy(dp_trainer_theta(one.trainer), one.n);
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        step_together(n, nodes, &one, round);
    }
    const float *const theta = dp_trainer_theta(nodes[0].trainer);
    for (uint32_t i = 1; i < n; i++) {
        CHECK(memcmp(theta, dp_trainer_theta(nodes[i].trainer), one.n * sizeof *theta) == 0);
    }
    const double share = apart(dp_trainer_theta(one.trainer), theta, first, one.n);
    print_message("%u nodes and one with their batches: models apart %.2e of the way\n", n, share);
    for (uint32_t i = 0; i < n; i++) {
        node_close(&nodes[i]);
    }
    node_close(&one);
    test_free(first);
    return share;
}

static void nodes_that_add_up_what_was_told_equal_one_with_their_batches(void **state)
{
    (void)state;
    const double two = nodes_and_one(2);
    const double four = nodes_and_one(4);
    CHECK(two > 0 && two < 1e-4 && four > 0 && four < 1e-4); /* fp32 sums in another order */
}

static void a_record_in_between_makes_another_publication(void **state)
{
    (void)state;
    const dp_manifest m = settings(DP_CODEC_FP32, TINY_ROWS);
    node x = open_member(&m, 1);
    node y = open_member(&m, 2);
    kit_round r = kit_round_of(1, 1);
    ear e = {.n_told = 0};
    dp_view blob;
    dp_view a;
    train(&y, 0, TINY_ROWS);
    CHECK_OK(dp_trainer_publish(y.trainer, false, &blob, &a));
    kit_cut(&r, &y, 0, blob);
    kit_reduce(&r, &y, NULL);
    train(&x, 0, 0);
    CHECK_OK(dp_trainer_publish(x.trainer, false, &blob, &a));
    kit_apply(&r, &x, DP_SETTLE_LEFT_OUT); /* All of it is in e. */
    dp_trainer_on_part(x.trainer, &kit_cuts, hear, &e);
    train(&x, 1, 3 * TINY_ROWS);
    const dp_trainer_record half = {.round = 2, .alpha = KIT_ONE, .lambda = KIT_ONE / 2};
    CHECK_OK(dp_trainer_apply(x.trainer, &half)); /* Halves e. */
    CHECK(e.n_told == TOLD);
    CHECK(publish(&x, &e, &blob) == 0);
    kit_close(&r);
    close_ear(&e);
    node_close(&y);
    node_close(&x);
}

static void nobody_is_told_of_updates_or_after_it_was_called_off(void **state)
{
    (void)state;
    dp_manifest m = settings(DP_CODEC_FP32, TINY_ROWS);
    node x = open_member(&m, 1);
    ear e = {.n_told = 0};
    dp_trainer_on_part(x.trainer, &kit_cuts, hear, &e);
    dp_trainer_on_part(x.trainer, NULL, NULL, NULL);
    train(&x, 0, 0);
    CHECK(e.n_pieces == 0);
    node_close(&x);
    m.exchange = DP_EXCHANGE_UPDATES;
    x = open_member(&m, 1);
    dp_trainer_on_part(x.trainer, &kit_cuts, hear, &e);
    node_train(&x, 1);
    CHECK(e.n_pieces == 0);
    node_close(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_told_is_the_publication_from_its_end_to_its_beginning),
        cmocka_unit_test(of_several_micro_batches_the_last_one_tells),
        cmocka_unit_test(nodes_that_add_up_what_was_told_equal_one_with_their_batches),
        cmocka_unit_test(a_record_in_between_makes_another_publication),
        cmocka_unit_test(nobody_is_told_of_updates_or_after_it_was_called_off),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
