/* THREADS_TEST. The worker in rounds of parts, over a socketpair. */
#include "tests/unit/compute/worker_kit.h"

#include <signal.h>

#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/outer/part.h"

enum { PARTS = 3, FIRST_PART = 2 /* of the files of a publication, after blob and a */ };

static const dp_part_cuts cuts = {.n = PARTS, .first = {0, 30000, 30001}};

static answer publish_parts(const peer *p, uint64_t round)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISH, .round = round, .cuts = cuts};
    send_views(p, &msg, NULL, 0);
    const answer a = expect(p, DP_TRAINER_PUBLISHED);
    assert_int_equal(a.n_fds, FIRST_PART + PARTS);
    assert_memory_equal(&a.msg.cuts, &cuts, sizeof cuts);
    CHECK(a.msg.energy > 0 && a.msg.norm > 0);
    return a;
}

static answer check_part(const peer *p, int fd, uint32_t part)
{
    const dp_trainer_msg msg = {
        .kind = DP_TRAINER_CHECK, .id = 5, .range = dp_part_range_of(&cuts, part)};
    CHECK_OK(dp_trainer_send(p->socket, &msg, &fd, 1));
    return expect(p, DP_TRAINER_CHECKED);
}

/* The sum that the owner makes of a part of these publications; the caller closes the file. */
static int reduce(const peer *owner, uint64_t round, uint32_t part, const answer *from, uint32_t n)
{
    int fds[DP_TRAINER_ITEMS_MAX];
    dp_trainer_msg msg = {.kind = DP_TRAINER_REDUCE,
                          .round = round,
                          .part = part,
                          .range = dp_part_range_of(&cuts, part),
                          .n_items = n};
    for (uint32_t i = 0; i < n; i++) {
        fds[i] = from[i].fds[FIRST_PART + part];
        msg.q[i] = 0x80000000U / n;
    }
    CHECK_OK(dp_trainer_send(owner->socket, &msg, fds, n));
    const answer a = expect(owner, DP_TRAINER_REDUCED);
    assert_int_equal(a.n_fds, 1);
    CHECK(a.msg.round == round && a.msg.part == part);
    CHECK((a.msg.norm > 0) == (part != 1) && a.msg.error <= a.msg.norm);
    const answer checked = check_part(owner, a.fds[0], part);
    CHECK(checked.msg.ok && checked.msg.energy == a.msg.energy);
    return a.fds[0];
}

/* A record with these of the results. */
static dp_trainer_msg record_of_parts(uint64_t round, uint32_t taken, uint32_t contributors)
{
    dp_trainer_msg msg = record_of(round, DP_SETTLE_INCLUDED, 0);
    msg.cuts = cuts;
    msg.taken = taken;
    msg.contributors = contributors;
    for (uint32_t p = 0; p < PARTS; p++) {
        if ((taken >> p & 1U) != 0) {
            msg.q[msg.n_items] = 0x80000000U;
            msg.shares[msg.n_items] = dp_part_range_of(&cuts, p);
            msg.n_items++;
        }
    }
    return msg;
}

static void two_workers_add_up_parts_and_hold_the_same_state(void **state)
{
    (void)state;
    const peer workers[2] = {ready_peer(1), ready_peer(2)};
    for (uint64_t round = 1; round <= 2; round++) {
        answer from[2];
        int results[PARTS];
        dp_hash roots[2];
        for (uint32_t i = 0; i < 2; i++) {
            train_until(&workers[i], round, STEPS);
            from[i] = publish_parts(&workers[i], round);
        }
        for (uint32_t p = 0; p < PARTS; p++) {
            for (uint32_t i = 0; i < 2; i++) {
                const answer a = check_part(&workers[p % 2], from[i].fds[FIRST_PART + p], p);
                CHECK(a.msg.ok && a.msg.energy <= from[i].msg.energy);
            }
            results[p] = reduce(&workers[p % 2], round, p, from, 2);
        }
        const dp_trainer_msg record = record_of_parts(round, 7, 2);
        for (uint32_t i = 0; i < 2; i++) {
            roots[i] = apply(&workers[i], &record, results);
            release(&from[i]);
        }
        CHECK(dp_hash_equal(&roots[0], &roots[1]));
        for (uint32_t p = 0; p < PARTS; p++) {
            close(results[p]);
        }
    }
    stop(&workers[0]);
    stop(&workers[1]);
}

static void a_part_is_checked_against_its_place_and_its_authors_word(void **state)
{
    (void)state;
    const peer p = ready_peer(3);
    train_until(&p, 1, STEPS);
    const answer a = publish_parts(&p, 1);
    CHECK(!check_part(&p, a.fds[FIRST_PART], 2).msg.ok);
    /* The whole is no part, and a part is not the whole. */
    CHECK(!check_part(&p, a.fds[0], 0).msg.ok);
    check_blob(&p, a.fds[FIRST_PART], false);
    check_blob(&p, a.fds[0], true);
    /* More energy than its author claimed for the whole: the asking node sees it. */
    const dp_view honest = map(a.fds[FIRST_PART]);
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    dp_codec found;
    uint64_t n;
    CHECK_OK(dp_codec_peek(honest, &found, &n));
    float *const loud = test_malloc(n * sizeof *loud);
    for (size_t i = 0; i < n; i++) {
        loud[i] = 1;
    }
    dp_buf blob;
    int fd;
    dp_buf_init(&blob, dp_codec_bytes_max(&codec, n));
    CHECK_OK(dp_codec_encode(&codec, loud, n, &blob));
    CHECK_OK(dp_memfd_make("loud", dp_buf_view(&blob), &fd));
    const answer checked = check_part(&p, fd, 0);
    CHECK(checked.msg.ok && checked.msg.energy > a.msg.energy);
    close(fd);
    dp_buf_close(&blob);
    test_free(loud);
    dp_memfd_unmap(honest);
    release(&a);
    stop(&p);
}

/* e of a worker that does not train, as floats: the caller frees it. */
static float *residual(const peer *p, uint64_t round, size_t n)
{
    const answer a = publish_parts(p, round);
    const dp_view bytes = map(a.fds[1]);
    float *const e = test_malloc(n * sizeof *e);
    CHECK_OK(dp_floats_read(bytes, e, n));
    dp_memfd_unmap(bytes);
    release(&a);
    return e;
}

static void a_worker_killed_in_mid_round_settles_by_part(void **state)
{
    (void)state;
    const uint32_t taken = 5;
    int results[2];
    peer first = ready_peer(4);
    train_until(&first, 1, STEPS);
    const answer published = publish_parts(&first, 1);
    results[0] = reduce(&first, 1, 0, &published, 1);
    results[1] = reduce(&first, 1, 2, &published, 1);
    assert_int_equal(kill(first.pid, SIGKILL), 0);
    assert_int_equal(waitpid(first.pid, NULL, 0), first.pid);
    close(first.socket);

    /* Pending again at the next process, which the record then reaches; and a third that comes
     * after it. */
    const int pending[2] = {published.fds[1], published.fds[0]};
    const dp_trainer_msg record = record_of_parts(1, taken, 1);
    const dp_trainer_msg pause = {.kind = DP_TRAINER_TRAIN, .round = 0};
    dp_trainer_msg restore = {
        .kind = DP_TRAINER_RESTORE, .restore = DP_RESTORE_PENDING, .clip = ONE, .lambda = ONE};
    const peer second = ready_peer(4);
    CHECK_OK(dp_trainer_send(second.socket, &restore, pending, 2));
    CHECK_OK(dp_trainer_send(second.socket, &record, results, 2));
    const answer applied = expect(&second, DP_TRAINER_APPLIED);
    send_views(&second, &pause, NULL, 0);

    const peer third = start();
    const size_t n = open_run(&third, 4);
    const dp_trainer_msg load = {.kind = DP_TRAINER_LOAD, .round = 1};
    CHECK_OK(dp_trainer_send(third.socket, &load, applied.fds, 1));
    expect(&third, DP_TRAINER_READY_AT);
    restore.settle = DP_SETTLE_INCLUDED;
    restore.cuts = cuts;
    restore.taken = taken & ~1U; /* As if the first part had been left out. */
    CHECK_OK(dp_trainer_send(third.socket, &restore, pending, 2));
    float *const e = residual(&second, 2, n);
    float *const other = residual(&third, 2, n);
    const dp_view a = map(published.fds[1]);
    float *const made = test_malloc(n * sizeof *made);
    CHECK_OK(dp_floats_read(a, made, n));
    dp_part_place place;
    CHECK_OK(dp_part_place_of(dp_part_range_of(&cuts, 0), n, &place));
    CHECK(memcmp(other, made, place.n * sizeof *made) == 0);
    CHECK(memcmp(e, made, place.n * sizeof *made) != 0);
    CHECK(memcmp(e + place.n, other + place.n, (n - place.n) * sizeof *e) == 0);
    CHECK(memcmp(e + place.n, made + place.n, (n - place.n) * sizeof *e) != 0);
    dp_memfd_unmap(a);
    test_free(made);
    test_free(other);
    test_free(e);
    close(results[0]);
    close(results[1]);
    release(&applied);
    release(&published);
    stop(&second);
    stop(&third);
}

static void sums_that_cannot_be_made_fail_and_leave_the_worker_in_step(void **state)
{
    (void)state;
    const peer p = start();
    const dp_view junk[2] = {dp_view_text("no"), dp_view_text("part")};
    dp_trainer_msg msg = {.kind = DP_TRAINER_REDUCE,
                          .round = 1,
                          .range = {.first = 0, .end = 30000},
                          .n_items = 1,
                          .q = {0x80000000U}};
    open_run(&p, 5);
    init(&p);
    send_views(&p, &msg, junk, 1);
    answer a = expect(&p, DP_TRAINER_FAILED);
    CHECK(a.msg.of == DP_TRAINER_REDUCE && !a.msg.lacks);
    send_views(&p, &msg, junk, 2);
    a = expect(&p, DP_TRAINER_FAILED);
    CHECK(strstr(a.msg.text, "1 items came with 2 blobs") != NULL);
    send_views(&p, &msg, NULL, 0);
    a = expect(&p, DP_TRAINER_FAILED);
    CHECK(strstr(a.msg.text, "files are missing") != NULL);
    msg.range.first = 30001;
    send_views(&p, &msg, junk, 1);
    a = expect(&p, DP_TRAINER_FAILED);
    CHECK(strstr(a.msg.text, "a part from share 30001 to 30000 is none") != NULL);
    train_until(&p, 1, 1);
    a = publish_parts(&p, 1);
    close(reduce(&p, 1, 0, &a, 1));
    release(&a);
    stop(&p);
}

/* These items, which are all one blob, in slices of so many; of how many the sum is then. */
static uint32_t add_slices(const peer *p, const dp_trainer_msg *record, int fd, uint32_t slice)
{
    uint32_t at = 0;
    for (uint32_t n = 0; at < record->n_items; at += n) {
        int fds[DP_TRAINER_ITEMS_MAX];
        n = record->n_items - at < slice ? record->n_items - at : slice;
        dp_trainer_msg msg = {
            .kind = DP_TRAINER_ADD, .round = record->round, .at = at, .n_items = n};
        memcpy(msg.q, record->q + at, n * sizeof msg.q[0]);
        for (uint32_t i = 0; i < n; i++) {
            fds[i] = fd;
        }
        CHECK_OK(dp_trainer_send(p->socket, &msg, fds, n));
        const answer a = expect(p, DP_TRAINER_ADDED);
        CHECK(a.n_fds == 0 && a.msg.round == record->round && a.msg.at == at + n);
    }
    return at;
}

static void a_record_in_slices_makes_the_state_that_it_makes_at_once(void **state)
{
    enum { ITEMS = 20 };
    int fds[ITEMS];
    const peer workers[2] = {ready_peer(8), ready_peer(9)};
    (void)state;
    train_until(&workers[0], 1, STEPS);
    const answer published = publish(&workers[0], 1);
    dp_trainer_msg record = record_of(1, DP_SETTLE_NONE, ITEMS);
    for (uint32_t i = 0; i < ITEMS; i++) {
        fds[i] = published.fds[0];
        record.q[i] -= 1000 * i;
    }
    const dp_hash at_once = apply(&workers[1], &record, fds);
    dp_trainer_msg sum = record;
    sum.settle = DP_SETTLE_INCLUDED;
    sum.at = add_slices(&workers[0], &record, published.fds[0], 7);
    sum.n_items = 0;
    const dp_hash in_slices = apply(&workers[0], &sum, NULL);
    CHECK(dp_hash_equal(&at_once, &in_slices));
    release(&published);
    stop(&workers[0]);
    stop(&workers[1]);
}

static void a_slice_that_follows_on_nothing_fails_and_leaves_the_worker_in_step(void **state)
{
    const peer p = ready_peer(10);
    const dp_view junk = dp_view_text("no update");
    dp_trainer_msg msg = {.kind = DP_TRAINER_ADD, .round = 1, .n_items = 1, .q = {0x80000000U}};
    (void)state;
    send_views(&p, &msg, &junk, 1);
    answer a = expect(&p, DP_TRAINER_FAILED);
    CHECK(a.msg.of == DP_TRAINER_ADD && !a.msg.lacks);
    train_until(&p, 1, 1);
    const answer published = publish(&p, 1);
    msg.at = 5;
    CHECK_OK(dp_trainer_send(p.socket, &msg, published.fds, 1));
    a = expect(&p, DP_TRAINER_FAILED);
    CHECK(strstr(a.msg.text, "the sum of 5 updates before these is not here") != NULL);
    dp_trainer_msg record = record_of(1, DP_SETTLE_INCLUDED, 0);
    record.at = 5;
    send_views(&p, &record, NULL, 0);
    a = expect(&p, DP_TRAINER_FAILED);
    CHECK(a.msg.of == DP_TRAINER_APPLY);
    record = record_of(1, DP_SETTLE_INCLUDED, 1);
    apply(&p, &record, published.fds);
    release(&published);
    stop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_workers_add_up_parts_and_hold_the_same_state),
        cmocka_unit_test(a_part_is_checked_against_its_place_and_its_authors_word),
        cmocka_unit_test(a_worker_killed_in_mid_round_settles_by_part),
        cmocka_unit_test(sums_that_cannot_be_made_fail_and_leave_the_worker_in_step),
        cmocka_unit_test(a_record_in_slices_makes_the_state_that_it_makes_at_once),
        cmocka_unit_test(a_slice_that_follows_on_nothing_fails_and_leaves_the_worker_in_step),
    };
    return cmocka_run_group_tests(tests, make_files, drop_files);
}
