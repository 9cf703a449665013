#include "gossip/channel/channel.h"

#include <sodium.h>

#include "tests/lib/allocfail.h"
#include "tests/lib/mutate.h"
#include "tests/unit/gossip/kit/pair.h"

static void messages_of_every_interesting_size_pass(void **state)
{
    static const size_t sizes[] = {0,     1,      65531,  65532,  65533,
                                   65536, 131067, 131068, 131069, DP_MESSAGE_CONTROL_MAX};
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        check_passes(&pair, &pair.a, &pair.b, sizes[i]);
        check_passes(&pair, &pair.b, &pair.a, sizes[i]);
    }
    CHECK_STATUS(
        dp_channel_write(&pair.a.channel, pattern(DP_MESSAGE_CONTROL_MAX + 1), &pair.a.out),
        DP_TOOBIG);
    assert_int_equal(pair.a.out.size, 0);
    pair_close(&pair);
}

static void the_bulk_lane_takes_larger_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair.a.config.lane = DP_LANE_BULK;
    shake_hands(&pair);
    check_passes(&pair, &pair.b, &pair.a, DP_MESSAGE_BULK_MAX);
    CHECK_STATUS(dp_channel_write(&pair.b.channel, pattern(DP_MESSAGE_BULK_MAX + 1), &pair.b.out),
                 DP_TOOBIG);
    pair_close(&pair);
}

static void trimming_frees_what_idles_and_nothing_else(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    CHECK_OK(dp_channel_write(&pair.a.channel, pattern(DP_MESSAGE_CONTROL_MAX), &pair.a.out));
    const size_t size = pair.a.out.size;
    CHECK_OK(feed(&pair.b, dp_view_of(pair.a.out.data, size - 1)));
    dp_channel_trim(&pair.b.channel);
    CHECK_OK(feed(&pair.b, dp_view_of(pair.a.out.data + size - 1, 1)));
    dp_buf_clear(&pair.a.out);
    assert_int_equal(pair.b.message_bytes, DP_MESSAGE_CONTROL_MAX);
    dp_channel_trim(&pair.b.channel);
    assert_int_equal(pair.b.channel.in.capacity + pair.b.channel.message.capacity, 0);
    check_passes(&pair, &pair.a, &pair.b, 100);
    pair_close(&pair);
}

static void every_flipped_bit_of_a_record_fails(void **state)
{
    const size_t bits = (DP_RECORD_HEADER_BYTES + 4 + 3 + DP_NOISE_TAG_BYTES) * 8;

    (void)state;
    for (size_t bit = 0; bit < bits; bit++) {
        struct pair pair;
        pair_init(&pair);
        shake_hands(&pair);
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("abc"), &pair.a.out));
        pair.a.out.data[bit / 8] ^= (uint8_t)(1U << bit % 8);
        const dp_status status = feed(&pair.b, dp_buf_view(&pair.a.out));
        CHECK(pair.b.messages == 0);
        CHECK(status != DP_OK || pair.b.channel.in.size > 0);
        pair_close(&pair);
    }
}

static void replayed_reordered_and_dropped_records_are_refused(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind < 3; kind++) {
        struct pair pair;
        dp_buf second;
        pair_init(&pair);
        shake_hands(&pair);
        dp_buf_init(&second, 1024);
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("first"), &pair.a.out));
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("second"), &second));
        if (kind == 0) {
            CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
            CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADSIG);
        } else if (kind == 1) {
            CHECK_STATUS(feed(&pair.b, dp_buf_view(&second)), DP_BADSIG);
        } else {
            /* Its own bytes, sent back to their writer. */
            CHECK_STATUS(feed(&pair.a, dp_buf_view(&pair.a.out)), DP_BADSIG);
        }
        dp_buf_close(&second);
        pair_close(&pair);
    }
}

static void a_cut_stream_is_not_a_close(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    CHECK_STATUS(dp_channel_eof(&pair.b.channel), DP_BADSIG);
    CHECK_OK(dp_channel_finish(&pair.a.channel, &pair.a.out));
    CHECK_STATUS(dp_channel_write(&pair.a.channel, pattern(1), &pair.a.out), DP_CLOSED);
    CHECK_STATUS(dp_channel_finish(&pair.a.channel, &pair.a.out), DP_CLOSED);
    talk(&pair, NULL, SIZE_MAX);
    assert_int_equal(pair.b.closes, 1);
    CHECK_OK(dp_channel_eof(&pair.b.channel));
    CHECK_STATUS(dp_channel_write(&pair.b.channel, pattern(1), &pair.b.out), DP_CLOSED);
    pair_close(&pair);
}

/* Seal a record as a member that breaks the rules could, with the keys of the pair. */
static void seal_by_hand(struct pair *pair, uint8_t type, dp_view plaintext)
{
    uint8_t header[DP_RECORD_HEADER_BYTES];
    uint8_t *room = NULL;
    const size_t sealed_bytes = plaintext.size + DP_NOISE_TAG_BYTES;
    dp_writer writer = dp_writer_of(header, sizeof header);

    dp_write_u32(&writer, (uint32_t)sealed_bytes | (uint32_t)type << 24);
    CHECK_OK(dp_buf_append(&pair->a.out, dp_view_of(header, sizeof header)));
    CHECK_OK(dp_buf_reserve(&pair->a.out, sealed_bytes, &room));
    dp_noise_seal(&pair->a.channel.send, dp_view_of(header, sizeof header), plaintext, room);
    dp_buf_commit(&pair->a.out, sealed_bytes);
}

static void members_that_break_the_rules_of_records_are_refused(void **state)
{
    static const struct {
        uint8_t types[2];
        const char *bytes;
        size_t size;
        dp_status wanted;
    } cases[] = {
        {{0, 9}, "\1\0\0", 3, DP_BADMSG},     /* a size cut short */
        {{0, 9}, "\1\0\0\0ab", 6, DP_BADMSG}, /* more bytes than announced */
        {{0, 9}, "\3\0\0\0ab", 6, DP_BADMSG}, /* a short record that does not end its message */
        {{0, 9}, "\1\0\2\0", 4, DP_TOOBIG},   /* 128 KiB + 1 announced on the control lane */
        {{0, 9}, "\377\377\377\377", 4, DP_TOOBIG},
        {{1, 9}, "ab", 2, DP_BADMSG}, /* continues nothing */
        {{2, 9}, "x", 1, DP_BADMSG},  /* a close with contents */
        {{3, 9}, "", 0, DP_BADMSG},   /* an unknown type */
        {{255, 9}, "\0\0\0\0", 4, DP_BADMSG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        pair_init(&pair);
        shake_hands(&pair);
        seal_by_hand(&pair, cases[i].types[0], dp_view_of(cases[i].bytes, cases[i].size));
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), cases[i].wanted);
        CHECK(pair.b.messages == 0 && pair.b.closes == 0);
        pair_close(&pair);
    }
}

static void a_message_within_a_message_is_refused(void **state)
{
    static uint8_t plain[DP_RECORD_PLAIN_MAX] = {0, 0, 2, 0}; /* 128 KiB announced */

    (void)state;
    for (uint8_t type = 0; type <= 2; type += 2) {
        struct pair pair;
        pair_init(&pair);
        shake_hands(&pair);
        seal_by_hand(&pair, 0, dp_view_of(plain, sizeof plain));
        CHECK_OK(feed(&pair.b, dp_buf_view(&pair.a.out)));
        dp_buf_clear(&pair.a.out);
        seal_by_hand(&pair, type, dp_view_of(plain, type == 0 ? sizeof plain : 0));
        CHECK_STATUS(feed(&pair.b, dp_buf_view(&pair.a.out)), DP_BADMSG);
        pair_close(&pair);
    }
}

static void impossible_record_sizes_are_refused_before_their_bytes(void **state)
{
    static const struct {
        uint32_t header;
        dp_status wanted;
    } cases[] = {
        {0, DP_BADMSG},
        {DP_NOISE_TAG_BYTES - 1, DP_BADMSG},
        {DP_RECORD_PLAIN_MAX + DP_NOISE_TAG_BYTES + 1, DP_TOOBIG},
        {0xffffff, DP_TOOBIG},
    };

    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct pair pair;
        uint8_t header[DP_RECORD_HEADER_BYTES];
        dp_writer writer = dp_writer_of(header, sizeof header);
        pair_init(&pair);
        shake_hands(&pair);
        dp_write_u32(&writer, cases[i].header);
        CHECK_STATUS(feed(&pair.b, dp_view_of(header, sizeof header)), cases[i].wanted);
        pair_close(&pair);
    }
}

static void keys_move_on_after_so_many_records(void **state)
{
    struct pair pair;
    uint8_t key[DP_NOISE_KEY_BYTES];

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    memcpy(key, pair.a.channel.send.key, sizeof key);
    for (unsigned i = 0; i < DP_RECORDS_PER_KEY + 10; i++) {
        size_t consumed = 0;
        dp_channel_event event;
        CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("x"), &pair.a.out));
        CHECK_OK(dp_channel_read(&pair.b.channel, dp_buf_view(&pair.a.out), &consumed, &pair.b.out,
                                 &event));
        CHECK(event.type == DP_CHANNEL_MESSAGE && event.message.size == 1);
        dp_buf_clear(&pair.a.out);
    }
    assert_int_equal(pair.a.channel.records_sent, DP_RECORDS_PER_KEY + 10);
    assert_int_equal(pair.a.channel.send.counter, 10);
    assert_memory_equal(pair.a.channel.send.key, pair.b.channel.receive.key, sizeof key);
    assert_memory_not_equal(pair.a.channel.send.key, key, sizeof key);
    pair_close(&pair);
}

static void keys_of_the_other_suite_move_on_too(void **state)
{
    struct pair pair;
    uint8_t key[DP_NOISE_KEY_BYTES];

    (void)state;
    pair_init(&pair);
    pair.a.config.suites[1] = pair.b.config.suites[1] = dp_suite_of(DP_SUITE_AES256GCM);
    if (pair.a.config.suites[1] == NULL) {
        skip();
    }
    shake_hands(&pair);
    pair.a.channel.send.counter = pair.b.channel.receive.counter = DP_RECORDS_PER_KEY - 1;
    memcpy(key, pair.a.channel.send.key, sizeof key);
    check_passes(&pair, &pair.a, &pair.b, 120000);
    assert_memory_equal(pair.a.channel.send.key, pair.b.channel.receive.key, sizeof key);
    assert_memory_not_equal(pair.a.channel.send.key, key, sizeof key);
    pair_close(&pair);
}

static void a_full_buffer_leaves_the_channel_as_it_was(void **state)
{
    struct pair pair;
    dp_buf small;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    dp_buf_init(&small, 20);
    CHECK_STATUS(dp_channel_write(&pair.a.channel, dp_view_text("x"), &small), DP_TOOBIG);
    assert_int_equal(small.size, 0);
    check_passes(&pair, &pair.a, &pair.b, 1);
    small.max = 5;
    CHECK_STATUS(dp_channel_finish(&pair.a.channel, &small), DP_TOOBIG);
    check_passes(&pair, &pair.a, &pair.b, 1); /* It has not said goodbye. */
    dp_buf_close(&small);
    pair_close(&pair);
}

static void nothing_is_written_before_the_handshake(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    pair_open(&pair);
    const size_t size = pair.a.out.size;
    CHECK_STATUS(dp_channel_write(&pair.a.channel, pattern(1), &pair.a.out), DP_CLOSED);
    CHECK_STATUS(dp_channel_finish(&pair.a.channel, &pair.a.out), DP_CLOSED);
    assert_int_equal(pair.a.out.size, size);
    pair_close(&pair);
}

static void mutated_conversations_never_pass_as_messages(void **state)
{
    dp_rng rng;
    uint8_t bytes[1024];

    (void)state;
    dp_rng_init(&rng, 3);
    for (unsigned i = 0; i < 600; i++) {
        struct pair pair;
        struct side *from = NULL;
        struct side *to = NULL;
        up_to_message(&pair, i % 3, &from, &to);
        if (i % 3 == 2) {
            CHECK_OK(dp_channel_write(&pair.a.channel, dp_view_text("message"), &pair.a.out));
        }
        const size_t before = from->out.size;
        CHECK(before <= sizeof bytes - 64);
        memcpy(bytes, from->out.data, before);
        const size_t size = mutate(&rng, bytes, before, sizeof bytes);
        DP_IGNORE(
            feed(to, dp_view_of(bytes, size))); /* any status will do, if no message comes of it */
        const bool same = size >= before && memcmp(bytes, from->out.data, before) == 0;
        CHECK(same || to->messages == 0);
        pair_close(&pair);
    }
}

/* ---- life ---- */

static dp_status open_and_talk(void *context)
{
    struct pair *pair = context;
    dp_status status = dp_channel_init(&pair->b.channel, &pair->b.config, NULL);

    pair->a.status = DP_OK;
    pair->b.status = DP_OK;
    if (status == DP_OK) {
        status = dp_channel_init(&pair->a.channel, &pair->a.config, &pair->a.out);
    }
    if (status == DP_OK) {
        talk(pair, NULL, 50);
        status = pair->a.status != DP_OK ? pair->a.status : pair->b.status;
    }
    if (status == DP_OK) {
        status = dp_channel_write(&pair->a.channel, pattern(70000), &pair->a.out);
    }
    if (status == DP_OK) {
        talk(pair, NULL, 5000);
        status = pair->b.status;
    }
    pair_close(pair);
    return status;
}

static void every_failing_allocation_is_survived(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    CHECK(fail_each_allocation(open_and_talk, &pair) > 5);
    pair.a.config.hello = pattern(DP_CHANNEL_HELLO_MAX); /* Memory for it is asked for by itself. */
    CHECK(fail_each_allocation(open_and_talk, &pair) > 6);
}

static void closing_leaves_no_key_behind(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    shake_hands(&pair);
    CHECK(sodium_is_zero((const uint8_t *)&pair.a.channel.noise, sizeof pair.a.channel.noise) == 1);
    CHECK(sodium_is_zero((const uint8_t *)pair.a.channel.config.psks,
                         sizeof pair.a.channel.config.psks) == 1);
    dp_channel_close(&pair.a.channel);
    CHECK(sodium_is_zero((const uint8_t *)&pair.a.channel.send, sizeof pair.a.channel.send) == 1);
    CHECK_STATUS(dp_channel_write(&pair.a.channel, pattern(1), &pair.a.out), DP_CLOSED);
    CHECK_STATUS(feed(&pair.a, dp_view_text("x")), DP_CLOSED);
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_of_every_interesting_size_pass),
        cmocka_unit_test(the_bulk_lane_takes_larger_messages),
        cmocka_unit_test(trimming_frees_what_idles_and_nothing_else),
        cmocka_unit_test(every_flipped_bit_of_a_record_fails),
        cmocka_unit_test(replayed_reordered_and_dropped_records_are_refused),
        cmocka_unit_test(a_cut_stream_is_not_a_close),
        cmocka_unit_test(members_that_break_the_rules_of_records_are_refused),
        cmocka_unit_test(a_message_within_a_message_is_refused),
        cmocka_unit_test(impossible_record_sizes_are_refused_before_their_bytes),
        cmocka_unit_test(keys_move_on_after_so_many_records),
        cmocka_unit_test(keys_of_the_other_suite_move_on_too),
        cmocka_unit_test(a_full_buffer_leaves_the_channel_as_it_was),
        cmocka_unit_test(nothing_is_written_before_the_handshake),
        cmocka_unit_test(mutated_conversations_never_pass_as_messages),
        cmocka_unit_test(every_failing_allocation_is_survived),
        cmocka_unit_test(closing_leaves_no_key_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
