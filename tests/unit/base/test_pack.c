#include "base/pack.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "tests/lib/allocfail.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"

#define BYTES(literal) dp_view_of((literal), sizeof(literal) - 1)

/* {"u": 2^64-1, "i": -2^63, "f": 0.5, "yes": true, "nil": nil, "text": "hello", "bytes": 00 ff,
 * "list": [1, [2], {}]} */
static void pack_sample(dp_packer *packer)
{
    dp_pack_map(packer, 8);
    dp_pack_text(packer, "u");
    dp_pack_u64(packer, UINT64_MAX);
    dp_pack_text(packer, "i");
    dp_pack_i64(packer, INT64_MIN);
    dp_pack_text(packer, "f");
    dp_pack_f64(packer, 0.5);
    dp_pack_text(packer, "yes");
    dp_pack_bool(packer, true);
    dp_pack_text(packer, "nil");
    dp_pack_nil(packer);
    dp_pack_text(packer, "text");
    dp_pack_text(packer, "hello");
    dp_pack_text(packer, "bytes");
    dp_pack_bytes(packer, dp_view_of("\x00\xff", 2));
    dp_pack_text(packer, "list");
    dp_pack_array(packer, 3);
    dp_pack_u64(packer, 1);
    dp_pack_array(packer, 1);
    dp_pack_u64(packer, 2);
    dp_pack_map(packer, 0);
}

static dp_buf sample(void)
{
    dp_buf buf = {.max = 4096};
    dp_packer packer = dp_packer_of(&buf);

    pack_sample(&packer);
    CHECK_OK(dp_packer_finish(&packer));
    return buf;
}

static void packed_values_are_read_back(void **state)
{
    dp_buf buf = sample();
    dp_unpacked *unpacked = NULL;
    uint64_t u = 0;
    int64_t i = 0;
    double f = 0;
    bool yes = false;
    uint32_t count = 0;
    dp_view view;

    (void)state;
    CHECK_OK(dp_unpack_open(&unpacked, dp_buf_view(&buf)));
    const dp_pack_value *const root = dp_unpack_root(unpacked);
    assert_true(dp_pack_get_u64(dp_pack_key(root, "u"), &u) && u == UINT64_MAX);
    assert_true(dp_pack_get_i64(dp_pack_key(root, "i"), &i) && i == INT64_MIN);
    assert_true(dp_pack_get_f64(dp_pack_key(root, "f"), &f) && f == 0.5);
    assert_true(dp_pack_get_bool(dp_pack_key(root, "yes"), &yes) && yes);
    assert_true(dp_pack_get_text(dp_pack_key(root, "text"), &view));
    assert_true(dp_view_equal(view, dp_view_text("hello")));
    assert_true(dp_pack_get_bytes(dp_pack_key(root, "bytes"), &view));
    assert_true(dp_view_equal(view, dp_view_of("\x00\xff", 2)));
    const dp_pack_value *const list = dp_pack_key(root, "list");
    assert_true(dp_pack_is_array(list, &count) && count == 3);
    assert_true(dp_pack_get_u64(dp_pack_at(dp_pack_at(list, 1), 0), &u) && u == 2);
    assert_non_null(dp_pack_key(root, "nil"));
    dp_unpack_close(unpacked);
    dp_unpack_close(NULL);
    dp_buf_close(&buf);
}

static void a_missing_or_mistyped_value_leaves_the_result_alone(void **state)
{
    dp_buf buf = sample();
    dp_unpacked *unpacked = NULL;
    uint64_t u = 42;
    int64_t i = 42;
    double f = 42;
    bool yes = true;
    uint32_t count = 42;
    dp_view view = dp_view_text("42");

    (void)state;
    CHECK_OK(dp_unpack_open(&unpacked, dp_buf_view(&buf)));
    const dp_pack_value *const root = dp_unpack_root(unpacked);
    const dp_pack_value *const wrong[] = {NULL, root, dp_pack_key(root, "nil")};
    for (size_t n = 0; n < sizeof wrong / sizeof wrong[0]; n++) {
        assert_false(dp_pack_get_u64(wrong[n], &u) || dp_pack_get_i64(wrong[n], &i));
        assert_false(dp_pack_get_f64(wrong[n], &f) || dp_pack_get_bool(wrong[n], &yes));
        assert_false(dp_pack_get_text(wrong[n], &view) || dp_pack_get_bytes(wrong[n], &view));
        assert_false(dp_pack_is_array(wrong[n], &count));
        assert_null(dp_pack_at(wrong[n], 0));
    }
    assert_null(dp_pack_key(NULL, "u"));
    assert_null(dp_pack_key(root, "absent"));
    assert_null(dp_pack_key(dp_pack_key(root, "list"), "u"));
    assert_null(dp_pack_at(dp_pack_key(root, "list"), 3));
    assert_false(dp_pack_get_u64(dp_pack_key(root, "i"), &u));
    assert_false(dp_pack_get_i64(dp_pack_key(root, "u"), &i));
    assert_false(dp_pack_get_text(dp_pack_key(root, "bytes"), &view));
    assert_false(dp_pack_get_bytes(dp_pack_key(root, "text"), &view));
    assert_true(u == 42 && i == 42 && f == 42 && yes && count == 42);
    assert_true(dp_view_equal(view, dp_view_text("42")));
    dp_unpack_close(unpacked);
    dp_buf_close(&buf);
}

static void integers_are_read_as_floating_point_too(void **state)
{
    dp_unpacked *unpacked = NULL;
    double f = 0;

    (void)state;
    CHECK_OK(dp_unpack_open(&unpacked, BYTES("\x93\x07\xff\xca\x3f\xc0\x00\x00")));
    assert_true(dp_pack_get_f64(dp_pack_at(dp_unpack_root(unpacked), 0), &f) && f == 7);
    assert_true(dp_pack_get_f64(dp_pack_at(dp_unpack_root(unpacked), 1), &f) && f == -1);
    assert_true(dp_pack_get_f64(dp_pack_at(dp_unpack_root(unpacked), 2), &f) && f == 1.5);
    dp_unpack_close(unpacked);
}

static void text_is_copied_only_if_it_fits_and_holds_no_nul(void **state)
{
    dp_unpacked *unpacked = NULL;
    char out[4] = "old";

    (void)state;
    CHECK_OK(dp_unpack_open(&unpacked, BYTES("\x94\xa3"
                                             "abc"
                                             "\xa4"
                                             "abcd"
                                             "\xa2"
                                             "a\0"
                                             "\xa0")));
    const dp_pack_value *const root = dp_unpack_root(unpacked);
    assert_false(dp_pack_copy_text(dp_pack_at(root, 1), out, sizeof out));
    assert_false(dp_pack_copy_text(dp_pack_at(root, 2), out, sizeof out));
    assert_false(dp_pack_copy_text(NULL, out, sizeof out));
    assert_string_equal(out, "old");
    assert_true(dp_pack_copy_text(dp_pack_at(root, 0), out, sizeof out));
    assert_string_equal(out, "abc");
    assert_true(dp_pack_copy_text(dp_pack_at(root, 3), out, sizeof out));
    assert_string_equal(out, "");
    assert_false(dp_pack_copy_text(dp_pack_at(root, 3), out, 0));
    dp_unpack_close(unpacked);
}

static void of_two_equal_keys_the_first_counts(void **state)
{
    dp_unpacked *unpacked = NULL;
    uint64_t value = 0;

    (void)state;
    CHECK_OK(dp_unpack_open(&unpacked, BYTES("\x82\xa1k\x01\xa1k\x02")));
    assert_true(dp_pack_get_u64(dp_pack_key(dp_unpack_root(unpacked), "k"), &value) && value == 1);
    dp_unpack_close(unpacked);
}

static void every_head_byte_is_accepted_or_refused_as_specified(void **state)
{
    /* Each head with a complete body of zeros; c1 is unused, c7-c9 and d4-d8 are extension
     * types. */
    uint8_t bytes[40] = {0};

    (void)state;
    for (unsigned head = 0; head < 256; head++) {
        const bool refused =
            head == 0xc1 || (head >= 0xc7 && head <= 0xc9) || (head >= 0xd4 && head <= 0xd8);
        unsigned accepted = 0;

        bytes[0] = (uint8_t)head;
        for (size_t size = 1; size <= sizeof bytes; size++) {
            accepted += dp_pack_check(dp_view_of(bytes, size)) == DP_OK;
        }
        assert_int_equal(accepted, refused ? 0 : 1); /* exactly one length is right */
    }
}

static void a_cut_message_is_bad_at_every_length(void **state)
{
    dp_buf buf = sample();

    (void)state;
    for (size_t size = 0; size < buf.size; size++) {
        uint8_t *const exact = malloc(size + 1); /* so that the sanitizer sees a read beyond it */
        dp_unpacked *unpacked = NULL;

        assert_non_null(exact);
        memcpy(exact, buf.data, size);
        CHECK_STATUS(dp_unpack_open(&unpacked, dp_view_of(exact, size)), DP_BADMSG);
        free(exact);
    }
    dp_buf_close(&buf);
}

static void bytes_after_the_value_are_bad(void **state)
{
    (void)state;
    CHECK_OK(dp_pack_check(BYTES("\x90")));
    CHECK_STATUS(dp_pack_check(BYTES("\x90\xc0")), DP_BADMSG);
    CHECK_STATUS(dp_pack_check((dp_view){0}), DP_BADMSG);
}

static void nesting_deeper_than_the_limit_is_too_big(void **state)
{
    uint8_t bytes[DP_PACK_DEPTH_MAX + 2];

    (void)state;
    memset(bytes, 0x91, sizeof bytes);
    bytes[DP_PACK_DEPTH_MAX] = 0xc0;
    CHECK_OK(dp_pack_check(dp_view_of(bytes, DP_PACK_DEPTH_MAX + 1)));
    bytes[DP_PACK_DEPTH_MAX] = 0x91;
    bytes[DP_PACK_DEPTH_MAX + 1] = 0xc0;
    CHECK_STATUS(dp_pack_check(dp_view_of(bytes, DP_PACK_DEPTH_MAX + 2)), DP_TOOBIG);
}

static void more_nodes_than_the_limit_are_too_big(void **state)
{
    uint8_t bytes[3 + DP_PACK_NODES_MAX] = {0xdc};

    (void)state;
    bytes[1] = (DP_PACK_NODES_MAX - 1) >> 8;
    bytes[2] = (DP_PACK_NODES_MAX - 1) & 0xff;
    CHECK_OK(dp_pack_check(dp_view_of(bytes, 3 + DP_PACK_NODES_MAX - 1)));
    bytes[1] = DP_PACK_NODES_MAX >> 8;
    bytes[2] = DP_PACK_NODES_MAX & 0xff;
    CHECK_STATUS(dp_pack_check(dp_view_of(bytes, sizeof bytes)), DP_TOOBIG);
}

/* Inputs for which msgpack-c would reserve hundreds of megabytes or grow 24-fold. None may
 * allocate. */
static void bombs_are_refused_without_an_allocation(void **state)
{
    uint8_t nested[150];
    uint8_t *const nils = malloc(DP_PACK_BYTES_MAX + 1);

    (void)state;
    assert_non_null(nils);
    dp_alloc_fail_after(1);
    CHECK_STATUS(dp_pack_check(BYTES("\xdd\x01\x00\x00\x00\xc0")), DP_BADMSG); /* array of 16 M */
    CHECK_STATUS(dp_pack_check(BYTES("\xdd\x80\x00\x00\x00")), DP_BADMSG);
    CHECK_STATUS(dp_pack_check(BYTES("\xdf\xff\xff\xff\xff")), DP_BADMSG);
    CHECK_STATUS(dp_pack_check(BYTES("\xdf\x80\x00\x00\x01\xc0\xc0")), DP_BADMSG); /* 2n wraps */
    CHECK_STATUS(dp_pack_check(BYTES("\xc6\xff\xff\xff\xff\x00")), DP_BADMSG); /* bin of 4 GiB */
    CHECK_STATUS(dp_pack_check(BYTES("\xdb\xff\xff\xff\xff\x00")), DP_BADMSG);
    for (size_t i = 0; i < sizeof nested; i += 5) { /* 30 nested arrays of a million */
        memcpy(nested + i, "\xdd\x00\x10\x00\x00", 5);
    }
    CHECK_STATUS(dp_pack_check(dp_view_of(nested, sizeof nested)), DP_BADMSG);
    memset(nils, 0xc0, DP_PACK_BYTES_MAX + 1);
    memcpy(nils, "\xdd\x00\x0f\xff\xfb", 5); /* an array of nil that fills one MiB exactly */
    CHECK_STATUS(dp_pack_check(dp_view_of(nils, DP_PACK_BYTES_MAX)), DP_TOOBIG);
    memset(nils, 0x91, DP_PACK_BYTES_MAX);
    CHECK_STATUS(dp_pack_check(dp_view_of(nils, DP_PACK_BYTES_MAX)), DP_TOOBIG);
    CHECK_STATUS(dp_pack_check(dp_view_of(nils, DP_PACK_BYTES_MAX + 1)), DP_TOOBIG);
    dp_alloc_fail_after(0);
    free(nils);
}

/* Reads every value in every way; recursion is bounded by DP_PACK_DEPTH_MAX. */
static void walk(const dp_pack_value *value, unsigned depth)
{
    uint64_t u = 0;
    double f = 0;
    uint32_t count = 0;
    dp_view view;
    char text[16];

    assert_true(depth <= DP_PACK_DEPTH_MAX + 1);
    (void)dp_pack_get_u64(value, &u);
    (void)dp_pack_get_f64(value, &f);
    (void)dp_pack_copy_text(value, text, sizeof text);
    if (dp_pack_get_bytes(value, &view) || dp_pack_get_text(value, &view)) {
        for (size_t i = 0; i < view.size; i++) {
            u += view.data[i];
        }
    }
    (void)dp_pack_key(value, "list");
    if (dp_pack_is_array(value, &count)) {
        for (uint32_t i = 0; i < count; i++) {
            walk(dp_pack_at(value, i), depth + 1);
        }
    }
}

static void damaged_messages_give_a_status_or_a_value(void **state)
{
    dp_buf buf = sample();
    unsigned parsed = 0;
    unsigned refused = 0;
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 1);
    for (unsigned i = 0; i < 20000; i++) {
        uint8_t damaged[256];
        dp_unpacked *unpacked = NULL;

        memcpy(damaged, buf.data, buf.size);
        const size_t size = mutate(&rng, damaged, buf.size, sizeof damaged);
        uint8_t *const exact = malloc(size + 1);
        assert_non_null(exact);
        memcpy(exact, damaged, size);
        const dp_status status = dp_unpack_open(&unpacked, dp_view_of(exact, size));
        if (status == DP_OK) {
            walk(dp_unpack_root(unpacked), 0);
            walk(dp_pack_key(dp_unpack_root(unpacked), "list"), 1);
            dp_unpack_close(unpacked);
            parsed++;
        } else {
            CHECK(status == DP_BADMSG || status == DP_TOOBIG);
            refused++;
        }
        free(exact);
    }
    assert_true(parsed > 100 && refused > 100); /* both ways were taken */
    dp_buf_close(&buf);
}

static void a_packer_stops_at_the_limit_of_its_buffer(void **state)
{
    dp_buf buf = {.max = 10};
    dp_packer packer = dp_packer_of(&buf);

    (void)state;
    dp_pack_text(&packer, "12345678");
    CHECK_OK(dp_packer_finish(&packer));
    dp_pack_text(&packer, "9");
    CHECK_STATUS(dp_packer_finish(&packer), DP_TOOBIG);
    const size_t size = buf.size;
    dp_pack_nil(&packer);
    dp_pack_text(&packer, "");
    assert_int_equal(buf.size, size);
    CHECK_STATUS(dp_packer_finish(&packer), DP_TOOBIG);
    dp_buf_close(&buf);
}

static void a_value_larger_than_a_message_is_too_big(void **state)
{
    dp_buf buf = {.max = 4 * (size_t)DP_PACK_BYTES_MAX};
    uint8_t *const bytes = calloc(1, DP_PACK_BYTES_MAX + 1);
    dp_packer packer = dp_packer_of(&buf);

    (void)state;
    assert_non_null(bytes);
    dp_pack_bytes(&packer, dp_view_of(bytes, DP_PACK_BYTES_MAX + 1));
    CHECK_STATUS(dp_packer_finish(&packer), DP_TOOBIG);
    assert_int_equal(buf.size, 0);
    free(bytes);
    dp_buf_close(&buf);
}

static dp_status pack_and_unpack(void *unused)
{
    dp_buf buf = {.max = 4096};
    dp_packer packer = dp_packer_of(&buf);
    dp_unpacked *unpacked = NULL;

    (void)unused;
    pack_sample(&packer);
    dp_status status = dp_packer_finish(&packer);
    if (status == DP_OK) {
        status = dp_unpack_open(&unpacked, dp_buf_view(&buf));
    }
    dp_unpack_close(unpacked);
    dp_buf_close(&buf);
    return status;
}

static void each_failing_allocation_is_reported(void **state)
{
    (void)state;
    assert_true(fail_each_allocation(pack_and_unpack, NULL) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packed_values_are_read_back),
        cmocka_unit_test(a_missing_or_mistyped_value_leaves_the_result_alone),
        cmocka_unit_test(integers_are_read_as_floating_point_too),
        cmocka_unit_test(text_is_copied_only_if_it_fits_and_holds_no_nul),
        cmocka_unit_test(of_two_equal_keys_the_first_counts),
        cmocka_unit_test(every_head_byte_is_accepted_or_refused_as_specified),
        cmocka_unit_test(a_cut_message_is_bad_at_every_length),
        cmocka_unit_test(bytes_after_the_value_are_bad),
        cmocka_unit_test(nesting_deeper_than_the_limit_is_too_big),
        cmocka_unit_test(more_nodes_than_the_limit_are_too_big),
        cmocka_unit_test(bombs_are_refused_without_an_allocation),
        cmocka_unit_test(damaged_messages_give_a_status_or_a_value),
        cmocka_unit_test(a_packer_stops_at_the_limit_of_its_buffer),
        cmocka_unit_test(a_value_larger_than_a_message_is_too_big),
        cmocka_unit_test(each_failing_allocation_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
