#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/fetcher.h"

#include "tests/lib/allocfail.h"

static void an_object_without_holders_waits_and_starts_with_one(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    want(f, DP_PRIORITY_ROUND);
    CHECK(f->actions->count == 0);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    const dp_action *const get = nth_of(f, DP_DO_GET_INFO, 0);
    const dp_peer holder = mesh_peer(2);
    CHECK(get != NULL && dp_peer_equal(&get->u.get.peer, &holder));
    info(f, 2, &f->root, SIZE);
    const dp_action *const start = nth_of(f, DP_DO_OBJECT_BEGIN, 0);
    CHECK(start != NULL && start->u.object.size == SIZE);
    CHECK(memcmp(start->u.object.leaves, f->leaves, CHUNKS * sizeof f->leaves[0]) == 0);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_PER_HOLDER);
    CHECK(dp_picker_bytes_waiting(f->picker) == SIZE);
    CHECK(dp_picker_bytes_wanted(f->picker) == SIZE && dp_picker_sources(f->picker) == 1);
    fetcher_close(f);
}

static void a_fetch_from_two_holders_uses_both_and_ends(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    info(f, 1, &f->root, SIZE);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == CHUNKS);
    uint32_t from_first = 0;
    dp_action gets[CHUNKS];
    for (uint32_t i = 0; i < CHUNKS; i++) {
        gets[i] = *nth_of(f, DP_DO_GET_CHUNK, i);
        CHECK(gets[i].u.get.index == i);
        from_first += gets[i].u.get.peer.bytes[0] == 2;
    }
    CHECK(from_first == CHUNKS / 2);
    f->now += 10 * DP_MS;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        chunk(f, &gets[i].u.get.peer, i, DP_OK);
        chunk(f, &gets[i].u.get.peer, i, DP_OK); /* twice is harmless */
        CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    }
    CHECK(dp_picker_chunk_p95(f->picker) == 10 * DP_MS);
    CHECK(dp_picker_wants(f->picker, &f->root));
    dp_picker_object(f->picker, now_of(f), &f->root, &f->out);
    CHECK(!dp_picker_wants(f->picker, &f->root));
    CHECK(dp_picker_count(f->picker) == 0);
    CHECK(dp_picker_wake(f->picker).us == UINT64_MAX);
    fetcher_close(f);
}

static void the_rate_is_that_of_the_time_in_which_chunks_were_under_way(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    const dp_peer holder = mesh_peer(1);
    CHECK(dp_picker_rate(f->picker) == 0);
    f->now += 100 * DP_SECOND; /* No object is wanted: this does not mean a slow line. */
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    for (uint32_t i = 0; i < CHUNKS; i++) {
        CHECK(dp_picker_bytes_of(f->picker, &f->root) == i * DP_CHUNK_BYTES_MIN);
        f->now += 100 * DP_MS;
        chunk(f, &holder, i, DP_OK);
    }
    CHECK(dp_picker_bytes_of(f->picker, &f->root) == SIZE);
    CHECK(dp_picker_rate(f->picker) == SIZE * 10ULL / CHUNKS);
    dp_picker_object(f->picker, now_of(f), &f->root, &f->out);
    CHECK(dp_picker_bytes_of(f->picker, &f->root) == 0);
    f->now += 100 * DP_SECOND;
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    f->now += 100 * DP_MS;
    chunk(f, &holder, 0, DP_OK);
    CHECK(dp_picker_rate(f->picker) > SIZE * 10ULL / CHUNKS);
    fetcher_close(f);
}

/* A chunk of this member took so long, on a way of so long there and back. */
static void has_given(fetcher *f, uint32_t member, uint64_t chunk_us, uint32_t trip_us)
{
    const dp_peer holder = mesh_peer(member);
    ((dp_member *)(uintptr_t)dp_members_at(f->members, member))->rtt =
        (dp_rtt){.srtt_us = trip_us, .samples = 1};
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, member, &f->out);
    info(f, member, &f->root, SIZE);
    f->now += chunk_us;
    chunk(f, &holder, 0, DP_OK);
    dp_picker_cancel(f->picker, now_of(f), &f->root, &f->out);
    begin(f);
}

/* Requests for the wanted object, with the claimed number of bytes, from holder 1. */
static uint32_t asked_ahead(fetcher *f, uint64_t told)
{
    CHECK_OK(
        dp_picker_want(f->picker, now_of(f), &f->root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND, &f->out));
    dp_picker_expect(f->picker, &f->root, told);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    const dp_action *const get = nth_of(f, DP_DO_GET_INFO, 0);
    CHECK(get != NULL);
    return get->u.get.ahead;
}

static void of_the_only_holder_first_chunks_may_be_asked_for_with_the_size(void **state)
{
    (void)state;
    static const struct {
        uint64_t told;
        uint32_t ahead;
    } cases[] = {{0, 0}, {1, 1}, {2ULL * DP_CHUNK_BYTES_MIN, 2}, {SIZE, DP_FLIGHTS_PER_HOLDER}};
    for (uint32_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fetcher *const f = fetcher_of(2);
        has_given(f, 1, 120 * DP_MS, 100 * DP_MS);
        CHECK(asked_ahead(f, cases[i].told) == cases[i].ahead);
        /* For any claimed size the node asks for the chunks of the real one. */
        info(f, 1, &f->root, SIZE);
        CHECK(count_of(f, DP_DO_GET_CHUNK) >= DP_FLIGHTS_PER_HOLDER);
        fetcher_close(f);
    }
}

static void behind_a_thin_line_and_nearby_none_is_asked_ahead(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    CHECK(asked_ahead(f, SIZE) == 0); /* Its line is unknown. */
    dp_picker_cancel(f->picker, now_of(f), &f->root, &f->out);
    begin(f);
    has_given(f, 1, 401 * DP_MS, 100 * DP_MS);
    CHECK(asked_ahead(f, SIZE) == 0);
    dp_picker_cancel(f->picker, now_of(f), &f->root, &f->out);
    begin(f);
    has_given(f, 1, 390 * DP_MS, 100 * DP_MS);
    CHECK(asked_ahead(f, SIZE) == DP_FLIGHTS_PER_HOLDER);
    fetcher_close(f);
}

static void where_two_are_known_to_have_it_none_is_asked_ahead(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    has_given(f, 1, 120 * DP_MS, 100 * DP_MS);
    CHECK(asked_ahead(f, SIZE) == DP_FLIGHTS_PER_HOLDER);
    begin(f);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    tick_after(f, 10 * DP_SECOND); /* The first is silent. */
    const dp_action *const get = nth_of(f, DP_DO_GET_INFO, 0);
    CHECK(get != NULL && get->u.get.ahead == 0);
    fetcher_close(f);
}

static void chunks_requested_ahead_count_as_under_way(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(6);
    uint32_t all = 0;
    for (uint32_t i = 1; i <= 6; i++) {
        has_given(f, i, 120 * DP_MS, 100 * DP_MS);
    }
    for (uint32_t i = 1; i <= 6; i++) {
        const dp_hash root = {.bytes = {(uint8_t)i, 7}};
        begin(f);
        CHECK_OK(dp_picker_want(f->picker, now_of(f), &root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND,
                                &f->out));
        dp_picker_expect(f->picker, &root, 100ULL * DP_CHUNK_BYTES_MIN);
        dp_picker_holder(f->picker, now_of(f), &root, i, &f->out);
        all += nth_of(f, DP_DO_GET_INFO, 0)->u.get.ahead;
    }
    CHECK(all == DP_FLIGHTS_MAX);
    fetcher_close(f);
}

static void a_late_chunk_is_asked_of_another_holder(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 4);
    begin(f);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 2); /* the rest */
    const dp_peer second = mesh_peer(2);
    chunk(f, &second, 4, DP_OK);
    chunk(f, &second, 5, DP_OK);
    const dp_time wake = dp_picker_wake(f->picker);
    CHECK(wake.us > f->now && wake.us != UINT64_MAX);
    /* The first never answers: hedges, then deadlines, bring all chunks from the second. */
    uint32_t got = 0;
    for (uint32_t i = 0; i < 200 && got < 4; i++) {
        const dp_time next = dp_picker_wake(f->picker);
        CHECK(next.us > f->now);
        tick_after(f, next.us - f->now);
        dp_action gets[DP_FLIGHTS_MAX];
        uint32_t n = 0;
        for (uint32_t k = 0; k < count_of(f, DP_DO_GET_CHUNK); k++) {
            gets[n++] = *nth_of(f, DP_DO_GET_CHUNK, k);
        }
        for (uint32_t k = 0; k < n; k++) {
            if (dp_peer_equal(&gets[k].u.get.peer, &second)) {
                got++;
                chunk(f, &second, gets[k].u.get.index, DP_OK);
            }
        }
    }
    CHECK(got == 4);
    fetcher_close(f);
}

static void a_holder_known_later_is_asked_long_before_one_that_is_gone_is_given_up(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    const dp_peer second = mesh_peer(2);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    /* The only known holder is silent, and the waits for it grow to many seconds. */
    while (f->now < 20 * DP_SECOND) {
        tick_after(f, dp_picker_wake(f->picker).us - f->now);
    }
    begin(f);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    const uint64_t known = f->now;
    for (uint32_t got = 0; got < CHUNKS;) {
        dp_action gets[DP_FLIGHTS_MAX];
        const uint32_t n = count_of(f, DP_DO_GET_CHUNK);
        for (uint32_t k = 0; k < n; k++) {
            gets[k] = *nth_of(f, DP_DO_GET_CHUNK, k);
        }
        begin(f);
        for (uint32_t k = 0; k < n; k++) {
            if (dp_peer_equal(&gets[k].u.get.peer, &second)) {
                got++;
                chunk(f, &second, gets[k].u.get.index, DP_OK);
            }
        }
        if (count_of(f, DP_DO_GET_CHUNK) == 0 && got < CHUNKS) {
            tick_after(f, dp_picker_wake(f->picker).us - f->now);
        }
    }
    CHECK(f->now - known < 2 * DP_SECOND);
    fetcher_close(f);
}

static void chunks_that_are_late_together_double_the_wait_once(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_PER_HOLDER);
    uint64_t waits[3];
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t asked = f->now;
        do {
            tick_after(f, dp_picker_wake(f->picker).us - f->now);
        } while (count_of(f, DP_DO_GET_CHUNK) == 0);
        waits[i] = f->now - asked;
    }
    CHECK(waits[1] == 2 * waits[0] && waits[2] == 2 * waits[1]);
    fetcher_close(f);
}

/* All chunks of one more object come from member, each so long after it was asked for first;
 * *asked: how often chunks were. */
static void fetch_slowly(fetcher *f, uint32_t member, uint64_t takes_us, uint32_t *asked)
{
    const dp_peer peer = mesh_peer(member);
    uint64_t due[CHUNKS] = {0};
    uint32_t got = 0;

    f->leaves[0].bytes[5]++;
    f->root = dp_object_root(SIZE, f->leaves);
    begin(f);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, member, &f->out);
    info(f, member, &f->root, SIZE);
    *asked = 0;
    for (uint32_t turns = 0; got < CHUNKS && turns < 1000; turns++) {
        for (uint32_t k = 0; k < count_of(f, DP_DO_GET_CHUNK); k++) {
            uint64_t *const when = &due[nth_of(f, DP_DO_GET_CHUNK, k)->u.get.index];
            *when = *when == 0 ? f->now + takes_us : *when; /* The first answer counts. */
            ++*asked;
        }
        uint64_t next = dp_picker_wake(f->picker).us;
        uint32_t first = CHUNKS;
        for (uint32_t i = 0; i < CHUNKS; i++) {
            if (due[i] != 0 && due[i] != UINT64_MAX && due[i] <= next) {
                next = due[i];
                first = i;
            }
        }
        if (first < CHUNKS) {
            f->now = next > f->now ? next : f->now;
            due[first] = UINT64_MAX;
            got++;
            chunk(f, &peer, first, DP_OK);
        } else {
            tick_after(f, next - f->now);
        }
    }
    CHECK(got == CHUNKS);
}

/* Its line would carry each chunk as often as it is asked for. */
static void a_thin_line_among_fast_ones_is_not_asked_again_and_again(void **state)
{
    uint32_t asked = 0;
    (void)state;
    fetcher *const f = fetcher_of(2);
    for (uint32_t i = 0; i < 40; i++) {
        fetch_slowly(f, 1, DP_MS, &asked); /* So the p95 is that of a fast line. */
        assert_int_equal(asked, CHUNKS);
    }
    fetch_slowly(f, 2, 1500 * DP_MS, &asked);
    CHECK(asked > CHUNKS); /* It had to be learnt. */
    fetch_slowly(f, 2, 1500 * DP_MS, &asked);
    assert_int_equal(asked, CHUNKS);
    for (uint32_t i = 0; i < 20; i++) {
        fetch_slowly(f, 1, DP_MS, &asked);
    }
    fetch_slowly(f, 2, 1500 * DP_MS, &asked);
    assert_int_equal(asked, CHUNKS);
    fetcher_close(f);
}

/* Another object of SIZE that member 1 has; its root. */
static dp_hash another(fetcher *f, dp_priority priority)
{
    f->leaves[0].bytes[0]++;
    f->root = dp_object_root(SIZE, f->leaves);
    begin(f);
    want(f, priority);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    return f->root;
}

/* Two chunks of an update come; what is asked for instead of the first is of this root. */
static void the_first_of_two_chunks_makes_room(fetcher *f, const dp_hash *updates,
                                               const dp_hash *root)
{
    const dp_peer peer = mesh_peer(1);
    f->root = *updates;
    f->now += 100 * DP_MS; /* The line is full. */
    chunk(f, &peer, 0, DP_OK);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 1);
    CHECK(dp_hash_equal(&nth_of(f, DP_DO_GET_CHUNK, 0)->u.get.root, root));
    chunk(f, &peer, 1, DP_OK);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 1); /* The rest is for objects with priority. */
    CHECK(dp_hash_equal(&nth_of(f, DP_DO_GET_CHUNK, 0)->u.get.root, updates));
}

/* Otherwise a node that is too far behind to replay would wait for a state forever on a line that
 * the rounds fill, and a newcomer for data. */
static void a_state_has_room_beside_the_updates_of_the_rounds(void **state)
{
    (void)state;
    static const dp_priority behind[] = {DP_PRIORITY_STATE, DP_PRIORITY_DATA};
    for (size_t i = 0; i < 2; i++) {
        fetcher *const f = fetcher_of(1);
        const dp_hash updates = another(f, DP_PRIORITY_REPLAY);
        const dp_hash root = another(f, behind[i]);
        CHECK(count_of(f, DP_DO_GET_CHUNK) == 0); /* Four of the update are under way. */
        the_first_of_two_chunks_makes_room(f, &updates, &root);
        fetcher_close(f);
    }
}

/* A state that comes first would be out of date by the time that the data are here. */
static void data_come_before_a_state_beside_the_updates_of_the_rounds(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    const dp_hash updates = another(f, DP_PRIORITY_REPLAY);
    (void)another(f, DP_PRIORITY_STATE);
    const dp_hash data = another(f, DP_PRIORITY_DATA);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    the_first_of_two_chunks_makes_room(f, &updates, &data);
    fetcher_close(f);
}

/* Rounds of so many chunks as are asked for at once, each answered after so long; how many were
 * asked for at last. */
static uint32_t asked_at_once(fetcher *f, uint64_t size, uint64_t rtt_us, uint64_t took_us)
{
    dp_action gets[DP_FLIGHTS_MAX];
    uint32_t n = 0;
    const dp_peer peer = mesh_peer(1);

    ((dp_member *)(uintptr_t)dp_members_at(f->members, 1))->rtt.srtt_us = (uint32_t)rtt_us;
    f->root = dp_object_root(size, f->leaves);
    begin(f);
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &f->root, size, DP_USE_BLOB, DP_PRIORITY_ROUND,
                            &f->out));
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, size);
    for (uint32_t turn = 0; turn < 6; turn++) {
        uint32_t more = 0;
        dp_action next[DP_FLIGHTS_MAX];
        for (n = turn == 0 ? 0 : n; turn == 0 && n < count_of(f, DP_DO_GET_CHUNK); n++) {
            gets[n] = *nth_of(f, DP_DO_GET_CHUNK, n);
        }
        f->now += took_us;
        for (uint32_t i = 0; i < n; i++) {
            chunk(f, &peer, gets[i].u.get.index, DP_OK);
            for (uint32_t k = 0; k < count_of(f, DP_DO_GET_CHUNK); k++) {
                next[more++] = *nth_of(f, DP_DO_GET_CHUNK, k);
            }
        }
        memcpy(gets, next, more * sizeof next[0]);
        n = more;
    }
    return n;
}

static void a_far_line_carries_more_at_once_until_it_is_full(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    const uint64_t large = 100ULL * DP_CHUNK_BYTES_MIN;
    CHECK(asked_at_once(f, large, 100 * DP_MS, 110 * DP_MS) == DP_FLIGHTS_MAX);
    fetcher_close(f);
    fetcher *const g = fetcher_of(1); /* Here they wait for each other already. */
    CHECK(asked_at_once(g, large, 100 * DP_MS, 240 * DP_MS) == DP_FLIGHTS_PER_HOLDER);
    fetcher_close(g);
    fetcher *const h = fetcher_of(1); /* Sixteen of these would not fit in the queue of a link. */
    const uint64_t huge = DP_OBJECT_BYTES_MAX;
    CHECK(asked_at_once(h, huge, 100 * DP_MS, 110 * DP_MS) == DP_FLIGHTS_PER_HOLDER);
    fetcher_close(h);
}

static void a_lost_link_frees_its_chunks_at_once(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    dp_picker_holder(f->picker, now_of(f), &f->root, 2, &f->out);
    info(f, 1, &f->root, SIZE);
    begin(f);
    const dp_peer gone = mesh_peer(1);
    dp_members_link_down(f->members, now_of(f), 1, &gone, DP_LINK_RESET, &f->out);
    begin(f);
    dp_picker_link_down(f->picker, now_of(f), 1, &f->out);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 1); /* the second had three of four */
    fetcher_close(f);
}

static void the_round_comes_before_the_state(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    dp_hash big_root = {.bytes = {7}};
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &big_root, 0, DP_USE_STATE, DP_PRIORITY_STATE,
                            &f->out));
    dp_picker_holder(f->picker, now_of(f), &big_root, 1, &f->out);
    info(f, 1, &big_root, 100ULL * DP_CHUNK_BYTES_MIN);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 4);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 0); /* the holder is busy */
    begin(f);
    const dp_event event = {.type = DP_EV_CHUNK,
                            .u.chunk = {.root = big_root, .index = 0, .peer = mesh_peer(1)}};
    dp_picker_chunk(f->picker, now_of(f), &event, &f->out);
    const dp_action *const get = nth_of(f, DP_DO_GET_CHUNK, 0);
    CHECK(get != NULL && dp_hash_equal(&get->u.get.root, &f->root));
    fetcher_close(f);
}

static void never_more_than_sixteen_chunks_are_under_way(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(8);
    dp_hash root = {.bytes = {7}};
    CHECK_OK(
        dp_picker_want(f->picker, now_of(f), &root, 0, DP_USE_STATE, DP_PRIORITY_STATE, &f->out));
    for (uint32_t holder = 1; holder <= 8; holder++) {
        dp_picker_holder(f->picker, now_of(f), &root, holder, &f->out);
    }
    info(f, 3, &root, 100ULL * DP_CHUNK_BYTES_MIN);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == DP_FLIGHTS_MAX);
    tick_after(f, 1);
    CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
    fetcher_close(f);
}

static void wrong_sizes_and_numbers_are_refused(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holder(f->picker, now_of(f), &f->root, 1, &f->out);
    info(f, 1, &f->root, SIZE + 1);
    CHECK(count_of(f, DP_DO_OBJECT_BEGIN) == 0);
    CHECK(count_of(f, DP_DO_NOTE) == 1);
    info(f, 1, &f->root, UINT64_MAX);
    CHECK(count_of(f, DP_DO_OBJECT_BEGIN) == 0);
    const dp_peer peer = mesh_peer(1);
    chunk(f, &peer, UINT32_MAX, DP_OK);
    CHECK(!dp_picker_serve_chunk(f->picker, now_of(f), 1, &f->root, DP_CHUNKS_MAX, &f->out));
    fetcher_close(f);
}

static void at_most_sixty_four_objects_are_wanted(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    for (uint32_t i = 0; i < DP_WANTED_MAX; i++) {
        const dp_hash root = {.bytes = {(uint8_t)i, 1}};
        CHECK_OK(dp_picker_want(f->picker, now_of(f), &root, 0, DP_USE_BLOB, DP_PRIORITY_REPLAY,
                                &f->out));
        CHECK_OK(dp_picker_want(f->picker, now_of(f), &root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND,
                                &f->out)); /* the same */
    }
    CHECK_STATUS(
        dp_picker_want(f->picker, now_of(f), &f->root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND, &f->out),
        DP_TOOBIG);
    const dp_hash first = {.bytes = {0, 1}};
    dp_picker_cancel(f->picker, now_of(f), &first, &f->out);
    want(f, DP_PRIORITY_ROUND);
    fetcher_close(f);
}

static void an_object_given_up_half_way_is_dropped(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_cancel(f->picker, now_of(f), &f->root, &f->out);
    CHECK(count_of(f, DP_DO_OBJECT_DROP) == 0); /* Nothing was begun. */
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    info(f, 1, &f->root, SIZE);
    CHECK(count_of(f, DP_DO_OBJECT_BEGIN) == 1);
    begin(f);
    dp_picker_cancel(f->picker, now_of(f), &f->root, &f->out);
    CHECK(count_of(f, DP_DO_OBJECT_DROP) == 1);
    CHECK(nth_of(f, DP_DO_OBJECT_DROP, 0)->u.keep.use == DP_USE_BLOB);
    want(f, DP_PRIORITY_ROUND);
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    info(f, 1, &f->root, SIZE);
    dp_picker_object(f->picker, now_of(f), &f->root, &f->out);
    CHECK(count_of(f, DP_DO_OBJECT_DROP) == 0); /* It is whole: its owner decides. */
    fetcher_close(f);
}

static void a_greedy_peer_is_served_at_a_bounded_rate(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    uint32_t served = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        f->now += DP_MS / 10; /* one second in all */
        begin(f);
        served += dp_picker_serve_chunk(f->picker, now_of(f), 1, &f->root, i % CHUNKS, &f->out);
    }
    CHECK(served >= 2 * DP_SERVES_PER_SECOND - 2 && served <= 2 * DP_SERVES_PER_SECOND + 2);
    fetcher_close(f);
}

static void an_object_not_asked_of_all_is_marked(void **state)
{
    fetcher *const f = fetcher_of(1);
    dp_hash roots[DP_WANTED_MAX];

    (void)state;
    want(f, DP_PRIORITY_REPLAY);
    CHECK(!dp_picker_asks_all(f->picker, &f->root, DP_PRIORITY_REPLAY));
    CHECK(dp_picker_hesitant(f->picker, DP_PRIORITY_REPLAY, roots) == 1);
    CHECK(dp_hash_equal(&roots[0], &f->root));
    dp_picker_holders_all(f->picker, now_of(f), &f->root, &f->out);
    CHECK(dp_picker_asks_all(f->picker, &f->root, DP_PRIORITY_REPLAY));
    CHECK(dp_picker_hesitant(f->picker, DP_PRIORITY_REPLAY, roots) == 0);
    /* It comes after the objects of the round. */
    CHECK(!dp_picker_asks_all(f->picker, &f->root, DP_PRIORITY_ROUND));
    CHECK(dp_picker_hesitant(f->picker, DP_PRIORITY_ROUND, roots) == 1);
    fetcher_close(f);
}

static dp_status open_and_close(void *context)
{
    dp_picker *picker = NULL;
    DP_TRY(dp_picker_open(&picker, &(dp_picker_config){.members = context, .members_max = 8}));
    dp_picker_close(picker);
    return DP_OK;
}

static void open_survives_every_failed_allocation(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(1);
    CHECK(fail_each_allocation(open_and_close, f->members) == 5);
    fetcher_close(f);
}

/* Any number of them can be made with one token. */
static void all_guests_together_are_served_as_much_as_one_member(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(5);
    uint32_t served[6] = {0};
    dp_members_mark(f->members, 0, true, false);
    dp_members_mark(f->members, 1, true, false);
    for (uint32_t i = 0; i < 10000; i++) {
        f->now += DP_MS / 10; /* one second in all */
        for (uint32_t from = 1; from <= 5; from++) {
            begin(f);
            served[from] +=
                dp_picker_serve_chunk(f->picker, now_of(f), from, &f->root, i % CHUNKS, &f->out);
        }
    }
    const uint32_t guests = served[2] + served[3] + served[4] + served[5];
    CHECK(served[1] >= 2 * DP_SERVES_PER_SECOND - 2);
    CHECK(guests >= 2 * DP_SERVES_PER_SECOND - 2 && guests <= 2 * DP_SERVES_PER_SECOND + 2);
    fetcher_close(f);
}

static void it_wakes_for_what_is_due_first(void **state)
{
    (void)state;
    fetcher *const f = fetcher_of(2);
    dp_picker *const picker = f->picker;
    dp_want *const want = &picker->wants[1];
    dp_flight *const flight = &picker->flights[2];
    dp_time *const due[] = {&want->lonely_at,   &want->pardon_at,     &want->forgive_at,
                            &want->pause_until, &want->info_deadline, &flight->deadline,
                            &flight->hedge_at};
    CHECK(dp_picker_wake(picker).us == DP_NEVER.us);
    *want = (dp_want){.used = true, .info_from = 1, .lonely_at = DP_NEVER};
    picker->queue[0] = 1;
    picker->n_wanted = 1;
    want->info_deadline = DP_NEVER;
    *flight = (dp_flight){.used = true, .deadline = DP_NEVER, .hedge_at = DP_NEVER};
    picker->n_flights = 1;
    CHECK(dp_picker_wake(picker).us == DP_NEVER.us);
    for (uint64_t i = 0; i < sizeof due / sizeof due[0]; i++) {
        *due[i] = (dp_time){(20 - i) * DP_SECOND};
        CHECK(dp_picker_wake(picker).us == due[i]->us);
    }
    flight->used = false;
    CHECK(dp_picker_wake(picker).us == want->info_deadline.us);
    want->begun = true; /* No peer is asked for its size any more. */
    CHECK(dp_picker_wake(picker).us == want->pause_until.us);
    want->begun = false;
    want->info_from = DP_MEMBER_NONE;
    CHECK(dp_picker_wake(picker).us == want->pause_until.us);
    picker->n_wanted = picker->n_flights = 0;
    want->used = false;
    fetcher_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_without_holders_waits_and_starts_with_one),
        cmocka_unit_test(a_fetch_from_two_holders_uses_both_and_ends),
        cmocka_unit_test(the_rate_is_that_of_the_time_in_which_chunks_were_under_way),
        cmocka_unit_test(of_the_only_holder_first_chunks_may_be_asked_for_with_the_size),
        cmocka_unit_test(behind_a_thin_line_and_nearby_none_is_asked_ahead),
        cmocka_unit_test(where_two_are_known_to_have_it_none_is_asked_ahead),
        cmocka_unit_test(chunks_requested_ahead_count_as_under_way),
        cmocka_unit_test(a_late_chunk_is_asked_of_another_holder),
        cmocka_unit_test(a_holder_known_later_is_asked_long_before_one_that_is_gone_is_given_up),
        cmocka_unit_test(chunks_that_are_late_together_double_the_wait_once),
        cmocka_unit_test(a_thin_line_among_fast_ones_is_not_asked_again_and_again),
        cmocka_unit_test(a_state_has_room_beside_the_updates_of_the_rounds),
        cmocka_unit_test(data_come_before_a_state_beside_the_updates_of_the_rounds),
        cmocka_unit_test(a_far_line_carries_more_at_once_until_it_is_full),
        cmocka_unit_test(a_lost_link_frees_its_chunks_at_once),
        cmocka_unit_test(the_round_comes_before_the_state),
        cmocka_unit_test(never_more_than_sixteen_chunks_are_under_way),
        cmocka_unit_test(wrong_sizes_and_numbers_are_refused),
        cmocka_unit_test(at_most_sixty_four_objects_are_wanted),
        cmocka_unit_test(an_object_given_up_half_way_is_dropped),
        cmocka_unit_test(a_greedy_peer_is_served_at_a_bounded_rate),
        cmocka_unit_test(all_guests_together_are_served_as_much_as_one_member),
        cmocka_unit_test(an_object_not_asked_of_all_is_marked),
        cmocka_unit_test(open_survives_every_failed_allocation),
        cmocka_unit_test(it_wakes_for_what_is_due_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
