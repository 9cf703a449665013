#include "base/bytes.h"

#include "base/alloc.h"
#include "tests/lib/check.h"

static void views_compare_by_content(void **state)
{
    (void)state;
    assert_true(dp_view_equal(dp_view_text("abc"), dp_view_of("abcd", 3)));
    assert_false(dp_view_equal(dp_view_text("abc"), dp_view_text("abd")));
    assert_false(dp_view_equal(dp_view_text("abc"), dp_view_text("ab")));
    assert_true(dp_view_equal((dp_view){0}, dp_view_text("")));
}

static void a_buffer_grows_up_to_its_limit(void **state)
{
    dp_buf buf;

    (void)state;
    dp_buf_init(&buf, 1000);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_OK(dp_buf_append(&buf, dp_view_text("0123456789")));
    }
    assert_int_equal(buf.size, 1000);
    assert_true(buf.capacity <= 1000);
    CHECK_STATUS(dp_buf_append(&buf, dp_view_text("x")), DP_TOOBIG);
    CHECK_OK(dp_buf_append(&buf, (dp_view){0}));
    assert_int_equal(buf.size, 1000);
    assert_memory_equal(buf.data + 990, "0123456789", 10);
    dp_buf_close(&buf);
    dp_buf_close(&buf);
}

static void a_zeroed_buffer_with_a_limit_is_open(void **state)
{
    dp_buf buf = {.max = 4};

    (void)state;
    CHECK_OK(dp_buf_append(&buf, dp_view_text("abcd")));
    CHECK_STATUS(dp_buf_append(&buf, dp_view_text("e")), DP_TOOBIG);
    assert_true(dp_view_equal(dp_buf_view(&buf), dp_view_text("abcd")));
    dp_buf_close(&buf);
    assert_int_equal(buf.max, 4);
}

static void a_buffer_without_a_limit_takes_nothing(void **state)
{
    dp_buf buf = {0};

    (void)state;
    CHECK_STATUS(dp_buf_append(&buf, dp_view_text("a")), DP_TOOBIG);
    CHECK_OK(dp_buf_append(&buf, (dp_view){0}));
    dp_buf_close(&buf);
}

static void a_request_near_the_end_of_memory_is_too_big(void **state)
{
    dp_buf buf;
    uint8_t *room = NULL;

    (void)state;
    dp_buf_init(&buf, SIZE_MAX);
    CHECK_OK(dp_buf_append(&buf, dp_view_text("a")));
    CHECK_STATUS(dp_buf_reserve(&buf, SIZE_MAX, &room), DP_TOOBIG);
    CHECK_STATUS(dp_buf_reserve(&buf, SIZE_MAX - 1, &room), DP_NOMEM);
    assert_null(room);
    assert_true(dp_view_equal(dp_buf_view(&buf), dp_view_text("a")));
    dp_buf_close(&buf);
}

static void without_memory_the_buffer_is_as_before(void **state)
{
    static uint8_t many[1000];
    dp_buf buf;

    (void)state;
    dp_buf_init(&buf, 10000);
    CHECK_OK(dp_buf_append(&buf, dp_view_text("abc")));
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_buf_append(&buf, dp_view_of(many, sizeof many)), DP_NOMEM);
    dp_alloc_fail_after(0);
    assert_true(dp_view_equal(dp_buf_view(&buf), dp_view_text("abc")));
    dp_buf_close(&buf);
}

static void reserved_room_counts_only_when_committed(void **state)
{
    dp_buf buf;
    uint8_t *room = NULL;

    (void)state;
    dp_buf_init(&buf, 100);
    CHECK_OK(dp_buf_reserve(&buf, 10, &room));
    assert_int_equal(buf.size, 0);
    memcpy(room, "hello", 5);
    dp_buf_commit(&buf, 5);
    assert_true(dp_view_equal(dp_buf_view(&buf), dp_view_text("hello")));
    dp_buf_close(&buf);
}

static void consume_drops_the_front(void **state)
{
    dp_buf buf;

    (void)state;
    dp_buf_init(&buf, 100);
    CHECK_OK(dp_buf_append(&buf, dp_view_text("abcdef")));
    dp_buf_consume(&buf, 0);
    dp_buf_consume(&buf, 2);
    assert_true(dp_view_equal(dp_buf_view(&buf), dp_view_text("cdef")));
    dp_buf_consume(&buf, 4);
    assert_int_equal(buf.size, 0);
    CHECK_OK(dp_buf_append(&buf, dp_view_text("z")));
    dp_buf_clear(&buf);
    assert_int_equal(buf.size, 0);
    dp_buf_close(&buf);
}

static void numbers_travel_little_endian(void **state)
{
    const unsigned __int128 big =
        (unsigned __int128)0x0102030405060708ULL << 64 | 0x1112131415161718ULL;
    uint8_t bytes[31];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_view out;

    (void)state;
    dp_write_u8(&writer, 0xab);
    dp_write_u16(&writer, 0x1234);
    dp_write_u32(&writer, 0xdeadbeef);
    dp_write_u64(&writer, 0x0123456789abcdefULL);
    dp_write_u128(&writer, big);
    CHECK_OK(dp_writer_finish(&writer, &out));
    assert_int_equal(out.size, 31);
    assert_memory_equal(bytes, "\xab\x34\x12\xef\xbe\xad\xde\xef\xcd\xab\x89\x67\x45\x23\x01\x18",
                        16);

    dp_reader reader = dp_reader_of(out);
    assert_int_equal(dp_read_u8(&reader), 0xab);
    assert_int_equal(dp_read_u16(&reader), 0x1234);
    assert_int_equal(dp_read_u32(&reader), 0xdeadbeef);
    assert_int_equal(dp_read_u64(&reader), 0x0123456789abcdefULL);
    assert_true(dp_read_u128(&reader) == big);
    assert_int_equal(dp_reader_left(&reader), 0);
    CHECK_OK(dp_reader_finish(&reader));
}

static void after_a_short_read_everything_is_zero(void **state)
{
    const uint8_t bytes[] = {1, 2, 3, 4, 5};
    dp_reader reader = dp_reader_of(dp_view_of(bytes, sizeof bytes));
    uint8_t copy[2] = {9, 9};

    (void)state;
    assert_int_equal(dp_read_u32(&reader), 0x04030201);
    assert_int_equal(dp_read_u16(&reader), 0);
    assert_int_equal(dp_read_u8(&reader), 0);
    assert_int_equal(dp_reader_left(&reader), 0);
    dp_read_bytes(&reader, copy, sizeof copy);
    assert_int_equal(copy[0] | copy[1], 0);
    assert_int_equal(dp_read_view(&reader, 1).size, 0);
    CHECK_STATUS(dp_reader_finish(&reader), DP_BADMSG);
}

static void left_over_bytes_are_a_bad_message(void **state)
{
    dp_reader reader = dp_reader_of(dp_view_text("ab"));

    (void)state;
    assert_int_equal(dp_read_u8(&reader), 'a');
    CHECK_STATUS(dp_reader_finish(&reader), DP_BADMSG);
    assert_true(dp_view_equal(dp_read_view(&reader, 1), dp_view_text("b")));
    CHECK_OK(dp_reader_finish(&reader));
}

static void an_empty_message_reads_as_nothing(void **state)
{
    dp_reader reader = dp_reader_of((dp_view){0});

    (void)state;
    CHECK_OK(dp_reader_finish(&reader));
    assert_int_equal(dp_read_view(&reader, 0).size, 0);
    dp_read_bytes(&reader, NULL, 0);
    CHECK_OK(dp_reader_finish(&reader));
    assert_int_equal(dp_read_view(&reader, SIZE_MAX).size, 0);
    CHECK_STATUS(dp_reader_finish(&reader), DP_BADMSG);
}

static void a_full_writer_writes_nothing_more(void **state)
{
    uint8_t bytes[4] = {7, 7, 7, 7};
    dp_writer writer = dp_writer_of(bytes, 3);
    dp_view out = dp_view_text("untouched");

    (void)state;
    dp_write_u16(&writer, 1);
    dp_write_u16(&writer, 2);
    dp_write_u8(&writer, 3);
    assert_int_equal(writer.size, 2);
    assert_int_equal(bytes[2], 7);
    CHECK_STATUS(dp_writer_finish(&writer, &out), DP_TOOBIG);
    assert_true(dp_view_equal(out, dp_view_text("untouched")));
}

static void a_writer_takes_views_and_bytes(void **state)
{
    uint8_t bytes[8];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_view out;

    (void)state;
    dp_write_view(&writer, (dp_view){0});
    dp_write_view(&writer, dp_view_text("abc"));
    dp_write_bytes(&writer, "de", 2);
    CHECK_OK(dp_writer_finish(&writer, &out));
    assert_true(dp_view_equal(out, dp_view_text("abcde")));
}

static void hex_goes_there_and_back(void **state)
{
    const uint8_t bytes[] = {0x00, 0x0f, 0xa5, 0xff};
    uint8_t back[4] = {0};
    char text[9];

    (void)state;
    dp_hex(dp_view_of(bytes, sizeof bytes), text);
    assert_string_equal(text, "000fa5ff");
    CHECK_OK(dp_unhex("000Fa5fF", back, sizeof back));
    assert_memory_equal(back, bytes, sizeof bytes);
    CHECK_OK(dp_unhex("", back, 0));
}

static void unhex_wants_exactly_its_digits(void **state)
{
    static const char *const bad[] = {"",     "1",    "123",  "12345", "123456",
                                      "12 4", "12g4", "-123", "0x12"};
    uint8_t out[2] = {1, 2};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_STATUS(dp_unhex(bad[i], out, sizeof out), DP_BADMSG);
    }
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_compare_by_content),
        cmocka_unit_test(a_buffer_grows_up_to_its_limit),
        cmocka_unit_test(a_zeroed_buffer_with_a_limit_is_open),
        cmocka_unit_test(a_buffer_without_a_limit_takes_nothing),
        cmocka_unit_test(a_request_near_the_end_of_memory_is_too_big),
        cmocka_unit_test(without_memory_the_buffer_is_as_before),
        cmocka_unit_test(reserved_room_counts_only_when_committed),
        cmocka_unit_test(consume_drops_the_front),
        cmocka_unit_test(numbers_travel_little_endian),
        cmocka_unit_test(after_a_short_read_everything_is_zero),
        cmocka_unit_test(left_over_bytes_are_a_bad_message),
        cmocka_unit_test(an_empty_message_reads_as_nothing),
        cmocka_unit_test(a_full_writer_writes_nothing_more),
        cmocka_unit_test(a_writer_takes_views_and_bytes),
        cmocka_unit_test(hex_goes_there_and_back),
        cmocka_unit_test(unhex_wants_exactly_its_digits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
