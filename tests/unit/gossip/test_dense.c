#include "gossip/dense.h"

#include "tests/lib/check.h"

enum { N = 4, CHUNK = 63 * 1024 };

static dp_dense_layout layout_of(uint64_t chunks, uint32_t members, const uint64_t *rates)
{
    dp_dense_layout layout;
    CHECK_OK(dp_dense_layout_init(&layout, chunks * CHUNK, members, rates, CHUNK));
    return layout;
}

static void every_chunk_has_one_owner_and_the_right_size(void **state)
{
    static const uint64_t sizes[] = {0, 1, 1024, 63 * 1024 - 1, 63 * 1024, 63 * 1024 + 1, 10000000};
    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (uint32_t members = 2; members <= DP_DENSE_MEMBERS_MAX; members += 5) {
            dp_dense_layout layout;
            uint64_t sum = 0;
            CHECK_OK(dp_dense_layout_init(&layout, sizes[i], members, NULL, CHUNK));
            assert_int_equal(layout.first[0], 0);
            assert_int_equal(layout.first[members], layout.n_chunks);
            for (uint32_t chunk = 0; chunk < layout.n_chunks; chunk++) {
                const uint32_t owner = dp_dense_owner(&layout, chunk);
                CHECK(chunk >= layout.first[owner] && chunk < layout.first[owner + 1]);
                sum += dp_dense_chunk_elements(&layout, chunk);
            }
            assert_int_equal(sum, sizes[i]);
        }
    }
}

/* Time of member i: (n + (N - 2) s_i) / r_i. */
static void shares_make_all_uplinks_end_together(void **state)
{
    static const uint64_t rates[N] = {100, 50, 25, 100};
    const dp_dense_layout layout = layout_of(10000, N, rates);
    double least = 1e9;
    double most = 0;
    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        const double own = layout.first[i + 1] - layout.first[i];
        const double time = (10000 + (N - 2) * own) / (double)rates[i];
        CHECK(own > 0 || i == 2); /* A quarter of the fastest only sends its parts. */
        if (own > 0) {
            least = time < least ? time : least;
            most = time > most ? time : most;
        }
    }
    CHECK(most < least * 1.5);
    assert_int_equal(layout.first[3] - layout.first[2], 0);
}

static void rates_may_be_anything(void **state)
{
    static const uint64_t none[N] = {0};
    static const uint64_t huge[N] = {UINT64_MAX, UINT64_MAX, 0, UINT64_MAX};
    (void)state;
    assert_int_equal(layout_of(8, N, none).first[1], 2);
    assert_int_equal(layout_of(9, N, huge).first[3], layout_of(9, N, huge).first[2]);
    assert_int_equal(layout_of(10, 2, none).first[1], 5);
}

static void a_layout_has_limits(void **state)
{
    dp_dense_layout layout;
    (void)state;
    CHECK_STATUS(dp_dense_layout_init(&layout, 100, 1, NULL, CHUNK), DP_BADARG);
    CHECK_STATUS(dp_dense_layout_init(&layout, 100, DP_DENSE_MEMBERS_MAX + 1, NULL, CHUNK),
                 DP_BADARG);
    CHECK_STATUS(dp_dense_layout_init(&layout, UINT64_MAX, 2, NULL, CHUNK), DP_TOOBIG);
}

static dp_view written(const dp_dense_message *message, uint8_t *bytes, size_t extra)
{
    dp_writer writer = dp_writer_of(bytes, 100);
    dp_dense_write_head(&writer, message);
    CHECK(!writer.full && writer.size == DP_DENSE_HEAD_BYTES);
    return dp_view_of(bytes, writer.size + extra);
}

static void messages_read_as_they_were_written(void **state)
{
    const dp_dense_message messages[] = {
        {.exchange = 1ULL << 40, .chunk = 77, .kind = DP_DENSE_PART, .codec = 2, .weight = 1023},
        {.exchange = 3, .chunk = 1, .kind = DP_DENSE_MEAN, .codec = 1, .present = UINT32_MAX},
        {.exchange = 9, .kind = DP_DENSE_OPEN},
    };
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        uint8_t bytes[100] = {0};
        dp_dense_message read;
        const size_t extra = i < 2 ? 5 : 0;
        CHECK_OK(dp_dense_read(written(&messages[i], bytes, extra), &read));
        CHECK(read.exchange == messages[i].exchange && read.chunk == messages[i].chunk &&
              read.kind == messages[i].kind && read.codec == messages[i].codec &&
              read.weight == messages[i].weight && read.present == messages[i].present);
        assert_int_equal(read.bytes.size, extra);
    }
}

static void malformed_messages_are_refused(void **state)
{
    const dp_dense_message messages[] = {
        {.kind = DP_DENSE_PART, .weight = 0},
        {.kind = DP_DENSE_PART, .weight = DP_DENSE_WEIGHT_MAX + 1},
        {.kind = DP_DENSE_PART, .weight = 1, .present = 1},
        {.kind = DP_DENSE_MEAN, .present = 0},
        {.kind = DP_DENSE_MEAN, .present = 1, .weight = 1},
        {.kind = DP_DENSE_OPEN}, /* with bytes */
        {.kind = (dp_dense_kind)3},
    };
    uint8_t bytes[100] = {0};
    dp_dense_message read;
    (void)state;
    for (unsigned i = 0; i < sizeof messages / sizeof messages[0]; i++) {
        CHECK_STATUS(dp_dense_read(written(&messages[i], bytes, 4), &read), DP_BADMSG);
    }
    const dp_dense_message good = {.kind = DP_DENSE_PART, .weight = 1};
    CHECK_STATUS(dp_dense_read(written(&good, bytes, 0), &read), DP_BADMSG);
    for (size_t size = 0; size <= DP_DENSE_HEAD_BYTES; size++) {
        CHECK_STATUS(dp_dense_read(dp_view_of(bytes, size), &read), DP_BADMSG);
    }
    bytes[0] ^= 1;
    CHECK_STATUS(dp_dense_read(dp_view_of(bytes, 50), &read), DP_BADMSG);
}

/* Member 1 of 4, eight chunks: it owns 2 and 3. */
static dp_dense_tally tally_of(uint32_t *present)
{
    const dp_dense_layout layout = layout_of(8, N, NULL);
    dp_dense_tally tally;
    dp_dense_tally_init(&tally, &layout, 1, present);
    return tally;
}

static dp_dense_message part_of(uint32_t chunk)
{
    return (dp_dense_message){.chunk = chunk, .kind = DP_DENSE_PART, .weight = 1};
}

static void parts_complete_a_chunk_in_any_order(void **state)
{
    uint32_t present[8];
    dp_dense_tally tally = tally_of(present);
    const dp_dense_message part = part_of(2);
    (void)state;
    assert_int_equal(dp_dense_judge(&tally, 3, &part), DP_DENSE_ADD);
    dp_dense_count(&tally, 3, &part);
    assert_int_equal(dp_dense_judge(&tally, 3, &part), DP_DENSE_REFUSED); /* twice */
    dp_dense_count(&tally, 0, &part);
    assert_int_equal(dp_dense_judge(&tally, 2, &part), DP_DENSE_COMPLETE);
    dp_dense_count(&tally, 2, &part);
    assert_int_equal(dp_dense_present(&tally, 2), 15);
    dp_dense_close_chunk(&tally, 2);
    assert_int_equal(dp_dense_present(&tally, 2), 15);
    CHECK(dp_dense_is_closed(&tally, 2) && !dp_dense_is_closed(&tally, 3));
    assert_int_equal(tally.n_own_open, 1);
}

static void a_chunk_closed_early_takes_no_more(void **state)
{
    uint32_t present[8];
    dp_dense_tally tally = tally_of(present);
    const dp_dense_message part = part_of(3);
    (void)state;
    dp_dense_count(&tally, 0, &part);
    dp_dense_close_chunk(&tally, 3);
    assert_int_equal(dp_dense_present(&tally, 3), 3);
    assert_int_equal(dp_dense_judge(&tally, 2, &part), DP_DENSE_LATE);
    assert_int_equal(dp_dense_judge(&tally, 0, &part), DP_DENSE_REFUSED);
}

static void what_is_out_of_place_is_refused(void **state)
{
    uint32_t present[8];
    dp_dense_tally tally = tally_of(present);
    dp_dense_message part = part_of(2);
    dp_dense_message mean = {.chunk = 0, .kind = DP_DENSE_MEAN, .present = 5};
    (void)state;
    assert_int_equal(dp_dense_judge(&tally, 1, &part), DP_DENSE_REFUSED); /* from oneself */
    assert_int_equal(dp_dense_judge(&tally, 4, &part), DP_DENSE_REFUSED);
    part.chunk = 0; /* not ours */
    assert_int_equal(dp_dense_judge(&tally, 0, &part), DP_DENSE_REFUSED);
    part.chunk = 8;
    assert_int_equal(dp_dense_judge(&tally, 0, &part), DP_DENSE_REFUSED);
    assert_int_equal(dp_dense_judge(&tally, 3, &mean), DP_DENSE_REFUSED); /* not its owner */
    assert_int_equal(dp_dense_judge(&tally, 0, &mean), DP_DENSE_TAKE);
    mean.present = 16; /* a member that there is not */
    assert_int_equal(dp_dense_judge(&tally, 0, &mean), DP_DENSE_REFUSED);
    mean.present = 5;
    dp_dense_count(&tally, 0, &mean);
    assert_int_equal(dp_dense_judge(&tally, 0, &mean), DP_DENSE_REFUSED);
    assert_int_equal(dp_dense_present(&tally, 0), 5);
}

static void it_is_done_with_all_means(void **state)
{
    uint32_t present[8];
    dp_dense_tally tally = tally_of(present);
    (void)state;
    for (uint32_t chunk = 0; chunk < 8; chunk++) {
        CHECK(!dp_dense_is_done(&tally));
        const uint32_t owner = dp_dense_owner(&tally.layout, chunk);
        const dp_dense_message mean = {.chunk = chunk, .kind = DP_DENSE_MEAN, .present = 15};
        if (owner == 1) {
            dp_dense_close_chunk(&tally, chunk);
        } else {
            dp_dense_count(&tally, owner, &mean);
        }
    }
    CHECK(dp_dense_is_done(&tally));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_chunk_has_one_owner_and_the_right_size),
        cmocka_unit_test(shares_make_all_uplinks_end_together),
        cmocka_unit_test(rates_may_be_anything),
        cmocka_unit_test(a_layout_has_limits),
        cmocka_unit_test(messages_read_as_they_were_written),
        cmocka_unit_test(malformed_messages_are_refused),
        cmocka_unit_test(parts_complete_a_chunk_in_any_order),
        cmocka_unit_test(a_chunk_closed_early_takes_no_more),
        cmocka_unit_test(what_is_out_of_place_is_refused),
        cmocka_unit_test(it_is_done_with_all_means),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
