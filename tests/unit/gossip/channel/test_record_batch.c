#include "gossip/channel/record_batch.h"

#include "tests/unit/gossip/kit/pair.h"

static uint8_t wire[6 * 1024 * 1024];
static uint8_t plain[DP_RECORD_BATCH_MESSAGE_MAX];

/* A message as lots of at most n records; returns its bytes in wire. */
static size_t seal_in_lots(struct pair *pair, dp_view message, uint32_t n)
{
    const uint32_t n_records = dp_record_batch_message_records(message.size);
    size_t size = 0;

    for (uint32_t first = 0; first < n_records;) {
        const uint32_t count = n_records - first < n ? n_records - first : n;
        dp_record_batch lot;
        CHECK_OK(dp_channel_take_sends(&pair->a.channel, count, &lot));
        dp_record_batch_seal(&lot, message, first, wire + size);
        dp_record_batch_close(&lot);
        size += dp_record_batch_wire_bytes(message.size, first, count);
        first += count;
    }
    return size;
}

static void lots_are_the_bytes_of_the_channel(void **state)
{
    static const size_t sizes[] = {
        0, 1, 65531, 65532, 65533, 131068, 262144, 1000000, DP_MESSAGE_BULK_MAX};

    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct pair pair;
        pair_init(&pair);
        pair.a.config.lane = DP_LANE_BULK;
        pair.a.config.suites[1] = pair.b.config.suites[1] =
            i % 2 == 0 ? NULL : dp_suite_of(DP_SUITE_AES256GCM);
        shake_hands(&pair);
        dp_channel twin = pair.a.channel;
        const size_t size =
            seal_in_lots(&pair, pattern(sizes[i]), 1 + i % DP_RECORD_BATCH_RECORDS_MAX);
        assert_int_equal(size, dp_channel_wire_bytes(sizes[i]));
        CHECK_OK(dp_channel_write(&twin, pattern(sizes[i]), &pair.a.out));
        assert_int_equal(pair.a.out.size, size);
        assert_memory_equal(pair.a.out.data, wire, size);
        assert_int_equal(twin.send.counter, pair.a.channel.send.counter);
        dp_buf_clear(&pair.a.out);
        CHECK_OK(feed(&pair.b, dp_view_of(wire, size)));
        assert_int_equal(pair.b.message_bytes, sizes[i]);
        pair_close(&pair);
    }
}

static void keys_move_on_within_a_lot(void **state)
{
    struct pair pair;

    (void)state;
    for (uint64_t left = 1; left <= DP_RECORD_BATCH_RECORDS_MAX; left++) {
        pair_init(&pair);
        pair.a.config.lane = DP_LANE_BULK;
        shake_hands(&pair);
        pair.a.channel.send.counter = DP_RECORDS_PER_KEY - left;
        pair.b.channel.receive.counter = DP_RECORDS_PER_KEY - left;
        const size_t size = seal_in_lots(&pair, pattern(500000), DP_RECORD_BATCH_RECORDS_MAX);
        CHECK_OK(feed(&pair.b, dp_view_of(wire, size)));
        assert_int_equal(pair.b.message_bytes, 500000);
        assert_int_equal(pair.a.channel.send.counter, 8 - left);
        pair_close(&pair);
    }
}

/* Does the far end's work with the bytes in wire: frame, take numbers, open, accept. */
static dp_status open_in_lots(struct pair *pair, size_t size, unsigned *messages)
{
    dp_record_batch_framer framer = {0};
    dp_record_batch_story story = {0};
    size_t at = 0;

    *messages = 0;
    while (at < size) {
        dp_record_batch_record record;
        dp_record_batch lot;
        bool complete = false;
        DP_TRY(dp_record_batch_frame(&framer, dp_view_of(wire + at, size - at), &record));
        if (record.bytes == 0) {
            return DP_AGAIN;
        }
        CHECK(record.offset + record.plain <= DP_RECORD_BATCH_MESSAGE_MAX);
        CHECK_OK(dp_channel_take_receives(&pair->b.channel, 1, &lot));
        if (!dp_record_batch_open(&lot, wire + at, plain + record.offset)) {
            return DP_BADSIG;
        }
        at += record.bytes;
        if (record.closes) {
            return DP_CLOSED;
        }
        DP_TRY(dp_record_batch_accept(&story, record.begins, plain + record.offset, record.plain,
                                      &complete));
        *messages += complete;
    }
    return story.in_message ? DP_AGAIN : DP_OK;
}

static void records_of_the_channel_open_in_batches(void **state)
{
    static const size_t sizes[] = {
        0, 1, 65532, 65533, 131067, 131068, 131069, 1000000, DP_MESSAGE_BULK_MAX};
    unsigned messages = 0;

    (void)state;
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct pair pair;
        pair_init(&pair);
        pair.a.config.lane = DP_LANE_BULK;
        shake_hands(&pair);
        CHECK_OK(dp_channel_write(&pair.a.channel, pattern(sizes[i]), &pair.a.out));
        CHECK_OK(dp_channel_finish(&pair.a.channel, &pair.a.out));
        memcpy(wire, pair.a.out.data, pair.a.out.size);
        CHECK_STATUS(open_in_lots(&pair, pair.a.out.size, &messages), DP_CLOSED);
        assert_int_equal(messages, 1);
        assert_memory_equal(plain + 4, pattern(sizes[i]).data, sizes[i]);
        pair_close(&pair);
    }
}

/* One record under the keys of the pair, as a member that breaks the rules could write it. */
static size_t rogue(struct pair *pair, size_t at, uint8_t type, dp_view bytes)
{
    dp_writer writer = dp_writer_of(wire + at, DP_RECORD_HEADER_BYTES);

    dp_write_u32(&writer, (uint32_t)(bytes.size + 16) | (uint32_t)type << 24);
    dp_noise_seal(&pair->a.channel.send, dp_view_of(wire + at, DP_RECORD_HEADER_BYTES), bytes,
                  wire + at + DP_RECORD_HEADER_BYTES);
    return at + DP_RECORD_HEADER_BYTES + bytes.size + 16;
}

static void members_that_break_the_rules_are_refused(void **state)
{
    static uint8_t full[DP_RECORD_PLAIN_MAX] = {0, 0, 3, 0};   /* 192 KiB announced */
    static uint8_t filled[DP_RECORD_PLAIN_MAX] = {0xfc, 0xff}; /* 65,532: ends with its record */
    const struct {
        uint8_t types[2];
        dp_view bytes[2];
        dp_status wanted;
    } cases[] = {
        {{0, 9}, {dp_view_of("\1\0\0", 3)}, DP_BADMSG},
        {{0, 9}, {dp_view_of("\1\0\0\0ab", 6)}, DP_BADMSG},
        {{0, 9}, {dp_view_of("\1\020\100\0", 4)}, DP_TOOBIG}, /* 4 MiB + 4 KiB + 1 */
        {{1, 9}, {dp_view_of("ab", 2)}, DP_BADMSG},
        {{2, 9}, {dp_view_of("x", 1)}, DP_BADMSG},
        {{3, 9}, {dp_view_of("", 0)}, DP_BADMSG},
        {{0, 1}, {dp_view_of("\3\0\0\0ab", 6), dp_view_of("c", 1)}, DP_BADMSG}, /* short, then on */
        {{0, 0}, {dp_view_of(full, sizeof full), dp_view_of("\0\0\0\0", 4)}, DP_BADMSG},
        {{0, 1}, {dp_view_of(full, sizeof full), dp_view_of("", 0)}, DP_BADMSG},
        {{0, 1}, {dp_view_of(filled, sizeof filled), dp_view_of("a", 1)}, DP_BADMSG},
        {{0, 0}, {dp_view_of("\0\0\0\0", 4), dp_view_of("\0\0\0\0", 4)}, DP_OK},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        unsigned messages = 0;
        pair_init(&pair);
        pair.a.config.lane = DP_LANE_BULK;
        shake_hands(&pair);
        size_t size = rogue(&pair, 0, cases[i].types[0], cases[i].bytes[0]);
        if (cases[i].types[1] != 9) {
            size = rogue(&pair, size, cases[i].types[1], cases[i].bytes[1]);
        }
        CHECK_STATUS(open_in_lots(&pair, size, &messages), cases[i].wanted);
        pair_close(&pair);
    }
}

static void a_message_that_never_ends_is_cut_at_the_limit(void **state)
{
    static uint8_t full[DP_RECORD_PLAIN_MAX + 20] = {[2] = 1, [3] = 0}; /* header: 65,536 + 16 */
    dp_record_batch_framer framer = {0};
    dp_record_batch_record record;
    dp_status status = DP_OK;
    unsigned n = 0;

    (void)state;
    full[0] = 16;
    for (; status == DP_OK && n < 100; n++) {
        full[3] = n == 0 ? 0 : 1;
        status = dp_record_batch_frame(&framer, dp_view_of(full, sizeof full), &record);
    }
    CHECK_STATUS(status, DP_TOOBIG);
    assert_int_equal(n, DP_RECORD_BATCH_MESSAGE_MAX / DP_RECORD_PLAIN_MAX + 1);
}

static void a_flipped_bit_of_any_record_is_noticed(void **state)
{
    struct pair pair;
    unsigned messages = 0;

    (void)state;
    for (unsigned i = 0; i < 64; i++) {
        pair_init(&pair);
        pair.a.config.lane = DP_LANE_BULK;
        shake_hands(&pair);
        const size_t size = seal_in_lots(&pair, pattern(100000), DP_RECORD_BATCH_RECORDS_MAX);
        wire[size * i / 64] ^= (uint8_t)(1U << i % 8);
        const dp_status status = open_in_lots(&pair, size, &messages);
        CHECK(status != DP_OK && messages == 0);
        pair_close(&pair);
    }
}

static void nothing_is_numbered_before_the_handshake_or_after_the_close(void **state)
{
    struct pair pair;
    dp_record_batch lot;

    (void)state;
    pair_init(&pair);
    pair_open(&pair);
    CHECK_STATUS(dp_channel_take_sends(&pair.a.channel, 1, &lot), DP_CLOSED);
    CHECK_STATUS(dp_channel_take_receives(&pair.a.channel, 1, &lot), DP_CLOSED);
    pair_close(&pair);
    pair_init(&pair);
    shake_hands(&pair);
    CHECK_OK(dp_channel_finish(&pair.a.channel, &pair.a.out));
    CHECK_STATUS(dp_channel_take_sends(&pair.a.channel, 1, &lot), DP_CLOSED);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lots_are_the_bytes_of_the_channel),
        cmocka_unit_test(keys_move_on_within_a_lot),
        cmocka_unit_test(records_of_the_channel_open_in_batches),
        cmocka_unit_test(members_that_break_the_rules_are_refused),
        cmocka_unit_test(a_message_that_never_ends_is_cut_at_the_limit),
        cmocka_unit_test(a_flipped_bit_of_any_record_is_noticed),
        cmocka_unit_test(nothing_is_numbered_before_the_handshake_or_after_the_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
