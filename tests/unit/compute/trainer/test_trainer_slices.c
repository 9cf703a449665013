/* The trainer and records of more updates than one call is given. */
#include "tests/unit/compute/tiny_node.h"

#include "compute/trainer/trainer.h"

enum { ONE = 65536, ITEMS = 20, SLICE = 7, AUTHORS = 4, STEPS = 1 };

/* A record of many updates, by a few authors in turn. */
typedef struct large_record {
    dp_buf blobs[AUTHORS];
    dp_view views[ITEMS];
    uint32_t q[ITEMS];
    dp_trainer_record record;
} large_record;

static void open_pair(node x[2], const dp_manifest *m)
{
    for (uint32_t i = 0; i < 2; i++) {
        x[i] = node_open_with(m, (dp_trainer_setup){.member = {9}});
    }
}

static void make(large_record *r, const dp_manifest *m)
{
    *r = (large_record){.record = {.round = 1,
                                   .tokens = 100,
                                   .alpha = ONE,
                                   .clip = ONE,
                                   .lambda = ONE,
                                   .q = r->q,
                                   .blobs = r->views,
                                   .n_items = ITEMS}};
    for (uint32_t i = 0; i < AUTHORS; i++) {
        node author = node_open_with(m, (dp_trainer_setup){.member = {(uint8_t)(i + 1)}});
        dp_view blob;
        dp_view a;
        node_train(&author, STEPS);
        CHECK_OK(dp_trainer_publish(author.trainer, false, &blob, &a));
        dp_buf_init(&r->blobs[i], blob.size);
        CHECK_OK(dp_buf_append(&r->blobs[i], blob));
        node_close(&author);
    }
    for (uint32_t i = 0; i < ITEMS; i++) {
        r->views[i] = dp_buf_view(&r->blobs[i % AUTHORS]);
        r->q[i] = (UINT32_C(1) << 31) / ITEMS - 12345 * i;
    }
}

static void drop(large_record *r)
{
    for (uint32_t i = 0; i < AUTHORS; i++) {
        dp_buf_close(&r->blobs[i]);
    }
}

static void add_all(const node *x, const large_record *r)
{
    for (uint32_t at = 0; at < ITEMS; at += SLICE) {
        const uint32_t n = ITEMS - at < SLICE ? ITEMS - at : (uint32_t)SLICE;
        CHECK_OK(dp_trainer_add(x->trainer, at, r->views + at, r->q + at, n));
    }
}

static dp_trainer_record sum_of(const large_record *r)
{
    dp_trainer_record record = r->record;
    record.n_items = 0;
    record.added = ITEMS;
    return record;
}

static bool are_alike(node x[2])
{
    dp_view bytes;
    const dp_hash roots[2] = {node_root(&x[0], &bytes), node_root(&x[1], &bytes)};
    return dp_hash_equal(&roots[0], &roots[1]) &&
           memcmp(dp_trainer_params(x[0].trainer), dp_trainer_params(x[1].trainer),
                  x[0].n * sizeof(float)) == 0 &&
           memcmp(dp_trainer_feedback(x[0].trainer), dp_trainer_feedback(x[1].trainer),
                  x[0].n * sizeof(float)) == 0;
}

/* Both have published the same; steps of their own would differ, since micro-batches follow the
 * clock. */
static void give_publication(node x[2], const dp_manifest *m)
{
    node author = node_open_with(m, (dp_trainer_setup){.member = {9}});
    dp_trainer_earlier earlier = {
        .kind = DP_RESTORE_PENDING, .settle = DP_SETTLE_NONE, .clip = ONE, .lambda = ONE};
    node_train(&author, STEPS);
    CHECK_OK(dp_trainer_publish(author.trainer, false, &earlier.blob, &earlier.a));
    for (uint32_t i = 0; i < 2; i++) {
        CHECK_OK(dp_trainer_restore(x[i].trainer, &earlier));
    }
    node_close(&author);
}

/* One has the record in slices, the other at once; a publication of theirs is settled by it, and
 * work goes on. */
static void step_alike(const dp_manifest *m)
{
    large_record r;
    node x[2];
    make(&r, m);
    open_pair(x, m);
    give_publication(x, m);
    r.record.settle = DP_SETTLE_INCLUDED;
    const dp_trainer_record record = sum_of(&r);
    add_all(&x[0], &r);
    CHECK_OK(dp_trainer_apply(x[0].trainer, &record));
    CHECK_OK(dp_trainer_apply(x[1].trainer, &r.record));
    CHECK(dp_trainer_outer(x[0].trainer).reach == dp_trainer_outer(x[1].trainer).reach);
    CHECK(are_alike(x));
    node_close(&x[0]);
    node_close(&x[1]);
    drop(&r);
}

static void a_record_in_slices_does_what_it_does_at_once(void **state)
{
    static const dp_codec_kind codecs[] = {DP_CODEC_SPARSE, DP_CODEC_INT8};
    (void)state;
    for (size_t i = 0; i < sizeof codecs / sizeof codecs[0]; i++) {
        dp_manifest m = node_settings(codecs[i], 950);
        step_alike(&m);
        m.outer_mu_milli = 900;
        step_alike(&m);
    }
}

static void gradients_in_slices_are_gradients_at_once(void **state)
{
    dp_manifest m = node_settings(DP_CODEC_FP32, 950);
    (void)state;
    m.exchange = DP_EXCHANGE_GRADIENTS;
    m.trust = DP_TRUST_MEMBERS;
    m.inner_steps_max = 1;
    large_record r;
    node x[2];
    make(&r, &m);
    open_pair(x, &m);
    const dp_trainer_record record = sum_of(&r);
    add_all(&x[0], &r);
    CHECK_OK(dp_trainer_apply(x[0].trainer, &record));
    CHECK_OK(dp_trainer_apply(x[1].trainer, &r.record));
    CHECK(are_alike(x));
    node_close(&x[0]);
    node_close(&x[1]);
    drop(&r);
}

static void steps_between_two_slices_change_neither(void **state)
{
    const dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    large_record r;
    node x[2];
    (void)state;
    make(&r, &m);
    open_pair(x, &m);
    CHECK_OK(dp_trainer_add(x[0].trainer, 0, r.views, r.q, SLICE));
    node_train(&x[0], STEPS);
    node_train(&x[1], STEPS);
    CHECK_OK(dp_trainer_add(x[0].trainer, SLICE, r.views + SLICE, r.q + SLICE, ITEMS - SLICE));
    const dp_trainer_record record = sum_of(&r);
    CHECK_OK(dp_trainer_apply(x[0].trainer, &record));
    CHECK_OK(dp_trainer_apply(x[1].trainer, &r.record));
    CHECK(memcmp(dp_trainer_theta(x[0].trainer), dp_trainer_theta(x[1].trainer),
                 x[0].n * sizeof(float)) == 0);
    node_close(&x[0]);
    node_close(&x[1]);
    drop(&r);
}

static void only_the_sum_that_was_made_is_applied(void **state)
{
    const dp_manifest m = node_settings(DP_CODEC_SPARSE, 950);
    large_record r;
    node x[2];
    dp_view bytes;
    (void)state;
    make(&r, &m);
    open_pair(x, &m);
    dp_trainer *const t = x[0].trainer;
    dp_trainer_record record = sum_of(&r);
    const dp_hash before = node_root(&x[0], &bytes);
    CHECK_STATUS(dp_trainer_apply(t, &record), DP_BADARG);
    CHECK_STATUS(dp_trainer_add(t, SLICE, r.views, r.q, SLICE), DP_BADARG);
    CHECK_OK(dp_trainer_add(t, 0, r.views, r.q, SLICE));
    CHECK_STATUS(dp_trainer_add(t, SLICE - 1, r.views, r.q, SLICE), DP_BADARG);
    CHECK_STATUS(dp_trainer_add(t, SLICE, r.views, r.q, SLICE), DP_BADARG); /* It is gone. */
    CHECK_OK(dp_trainer_add(t, 0, r.views, r.q, SLICE));
    const dp_view cut = dp_view_of(r.views[0].data, r.views[0].size - 1);
    CHECK_STATUS(dp_trainer_add(t, SLICE, &cut, r.q, 1), DP_BADMSG);
    CHECK_STATUS(dp_trainer_add(t, SLICE, r.views, r.q, 1), DP_BADARG);
    CHECK_STATUS(dp_trainer_add(t, 0, r.views, r.q, 0), DP_BADARG);
    add_all(&x[0], &r);
    const dp_hash same = node_root(&x[0], &bytes); /* Lends what the sum lies in. */
    CHECK(dp_hash_equal(&before, &same));
    CHECK_STATUS(dp_trainer_apply(t, &record), DP_BADARG);
    add_all(&x[0], &r);
    record.n_items = 1; /* The sum, and one more. */
    CHECK_STATUS(dp_trainer_apply(t, &record), DP_BADARG);
    record.n_items = 0;
    CHECK_OK(dp_trainer_apply(t, &record));
    CHECK_STATUS(dp_trainer_apply(t, &record), DP_BADARG); /* Once. */
    CHECK_OK(dp_trainer_apply(x[1].trainer, &r.record));
    CHECK(are_alike(x));
    node_close(&x[0]);
    node_close(&x[1]);
    drop(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_in_slices_does_what_it_does_at_once),
        cmocka_unit_test(gradients_in_slices_are_gradients_at_once),
        cmocka_unit_test(steps_between_two_slices_change_neither),
        cmocka_unit_test(only_the_sum_that_was_made_is_applied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
