#include "daemon/control/control_msg.h"

#include <stdlib.h>

#include "daemon/control/reply.h"
#include "tests/lib/check.h"
#include "tests/lib/mutate.h"

static void write_request(dp_buf *out, uint64_t id, const char *method)
{
    size_t start = 0;
    dp_packer packer = dp_control_begin(out, DP_CONTROL_REQUEST, id, method, &start);
    dp_group map = dp_map_begin(&packer);
    dp_pair_u64(&map, "last", 7);
    dp_group_end(&map);
    CHECK_OK(dp_control_end(out, start, &packer));
}

static void a_request_comes_back(void **state)
{
    dp_buf out = {.max = 4096};
    dp_control_frame frame;
    size_t size = 0;
    uint64_t last = 0;
    (void)state;
    write_request(&out, 42, "rounds");
    CHECK_OK(dp_control_frame_size(dp_buf_view(&out), &size));
    assert_int_equal(size, out.size);
    CHECK_OK(dp_control_frame_open(&frame, dp_buf_view(&out)));
    CHECK(frame.kind == DP_CONTROL_REQUEST && frame.id == 42);
    assert_string_equal(frame.method, "rounds");
    CHECK(dp_pack_get_u64(dp_pack_key(frame.body, "last"), &last) && last == 7);
    dp_control_frame_close(&frame);
    dp_control_frame_close(&frame);
    dp_buf_close(&out);
}

static void replies_notices_and_errors_come_back(void **state)
{
    dp_buf out = {.max = 4096};
    dp_control_frame frame;
    size_t start = 0;
    (void)state;
    dp_packer packer = dp_control_begin(&out, DP_CONTROL_REPLY, 1, "", &start);
    dp_pack_map(&packer, 0);
    CHECK_OK(dp_control_end(&out, start, &packer));
    CHECK_OK(dp_control_frame_open(&frame, dp_buf_view(&out)));
    CHECK(frame.kind == DP_CONTROL_REPLY && frame.error == NULL && frame.body != NULL);
    dp_control_frame_close(&frame);

    dp_buf_clear(&out);
    packer = dp_control_begin(&out, DP_CONTROL_NOTICE, UINT64_MAX, "", &start);
    dp_pack_map(&packer, 0);
    CHECK_OK(dp_control_end(&out, start, &packer));
    CHECK_OK(dp_control_frame_open(&frame, dp_buf_view(&out)));
    CHECK(frame.kind == DP_CONTROL_NOTICE && frame.id == UINT64_MAX && frame.body != NULL);
    dp_control_frame_close(&frame);

    dp_buf_clear(&out);
    const dp_control_error error = {
        .code = "E0101", .what = "what", .why = "why", .fix = "fix", .exit = 69};
    dp_control_error got;
    CHECK_OK(dp_control_write_error(&out, 9, &error));
    CHECK_OK(dp_control_frame_open(&frame, dp_buf_view(&out)));
    CHECK(frame.kind == DP_CONTROL_REPLY && frame.error != NULL && frame.body == NULL &&
          frame.id == 9);
    dp_control_error_read(frame.error, &got);
    assert_string_equal(got.code, "E0101");
    assert_string_equal(got.what, "what");
    assert_string_equal(got.why, "why");
    assert_string_equal(got.fix, "fix");
    assert_int_equal(got.exit, 69);
    dp_control_frame_close(&frame);
    dp_control_error_read(NULL, &got);
    CHECK(got.code[0] == '\0' && got.exit == 70);
    dp_buf_close(&out);
}

static void half_a_frame_needs_more_and_a_huge_one_is_refused(void **state)
{
    dp_buf out = {.max = 4096};
    size_t size = 1;
    (void)state;
    write_request(&out, 1, "status");
    for (size_t cut = 0; cut < out.size; cut++) {
        CHECK_OK(dp_control_frame_size(dp_view_of(out.data, cut), &size));
        assert_int_equal(size, 0);
    }
    const uint8_t huge[4] = {1, 0, 16, 0}; /* 1 MiB + 1 */
    CHECK_STATUS(dp_control_frame_size(dp_view_of(huge, sizeof huge), &size), DP_TOOBIG);
    dp_buf_close(&out);
}

static void a_frame_that_does_not_fit_leaves_nothing_behind(void **state)
{
    dp_buf out = {.max = 64};
    uint8_t bytes[128] = {0};
    size_t start = 0;
    (void)state;
    CHECK_OK(dp_buf_append(&out, dp_view_text("before")));
    dp_packer packer = dp_control_begin(&out, DP_CONTROL_REPLY, 1, "", &start);
    dp_pack_bytes(&packer, dp_view_of(bytes, sizeof bytes));
    CHECK_STATUS(dp_control_end(&out, start, &packer), DP_TOOBIG);
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text("before")));
    dp_buf_close(&out);

    out = (dp_buf){.max = 4 * DP_CONTROL_FRAME_MAX};
    uint8_t *large = calloc(1, DP_CONTROL_FRAME_MAX);
    assert_non_null(large);
    packer = dp_control_begin(&out, DP_CONTROL_REPLY, 1, "", &start);
    dp_pack_bytes(&packer, dp_view_of(large, DP_CONTROL_FRAME_MAX));
    CHECK_STATUS(dp_control_end(&out, start, &packer), DP_TOOBIG);
    assert_int_equal(out.size, 0);
    free(large);
    dp_buf_close(&out);
}

static void frames_of_another_shape_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
    } cases[] = {
        {"\x00\x00\x00\x00", 4},
        {"\x01\x00\x00\x00\xc0", 5},                      /* nil */
        {"\x01\x00\x00\x00\x90", 5},                      /* an empty array */
        {"\x05\x00\x00\x00\x94\x00\x01\xa0\x80\x00", 10}, /* longer than it says */
        {"\x06\x00\x00\x00\x94\x00\x01\xa0\x80", 9},      /* shorter than it says */
        {"\x04\x00\x00\x00\x93\x00\x01\xa0", 8},          /* a request of three */
        {"\x05\x00\x00\x00\x94\x03\x01\xa0\x80", 9},      /* an unknown kind */
        {"\x05\x00\x00\x00\x94\x00\xc0\xa0\x80", 9},      /* no id */
        {"\x05\x00\x00\x00\x94\x00\x01\x07\x80", 9},      /* the method is a number */
    };
    dp_control_frame frame;
    (void)state;
    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK_STATUS(dp_control_frame_open(&frame, dp_view_of(cases[i].bytes, cases[i].size)),
                     DP_BADMSG);
        CHECK(frame.unpacked == NULL);
    }
    dp_buf out = {.max = 4096};
    write_request(&out, 1, "a-method-with-a-name-of-more-than-32-chars");
    CHECK_STATUS(dp_control_frame_open(&frame, dp_buf_view(&out)), DP_BADMSG);
    dp_buf_close(&out);
}

static void damaged_frames_never_crash(void **state)
{
    dp_rng rng;
    dp_buf out = {.max = 4096};
    (void)state;
    dp_rng_init(&rng, 3);
    write_request(&out, 300, "ckpt.export");
    const dp_control_error error = {.code = "E0101", .what = "what", .exit = 69};
    CHECK_OK(dp_control_write_error(&out, 9, &error));
    unsigned opened = 0;
    for (unsigned i = 0; i < 5000; i++) {
        uint8_t *copy = malloc(2 * out.size);
        dp_control_frame frame;
        size_t size = 0;
        assert_non_null(copy);
        memcpy(copy, out.data, out.size);
        const size_t damaged = mutate(&rng, copy, out.size, 2 * out.size);
        if (dp_control_frame_size(dp_view_of(copy, damaged), &size) == DP_OK && size > 0 &&
            dp_control_frame_open(&frame, dp_view_of(copy, size)) == DP_OK) {
            dp_control_error got;
            dp_control_error_read(frame.error, &got);
            opened++;
            dp_control_frame_close(&frame);
        }
        free(copy);
    }
    CHECK(opened > 0);
    dp_buf_close(&out);
}

static void groups_count_themselves(void **state)
{
    dp_buf out = {.max = 4096};
    dp_unpacked *unpacked = NULL;
    uint32_t count = 0;
    uint64_t number = 0;
    double real = 0;
    bool truth = false;
    char text[16];
    (void)state;
    dp_packer packer = dp_packer_of(&out);
    dp_group map = dp_map_begin(&packer);
    dp_pair_u64(&map, "number", 5);
    dp_pair_f64(&map, "real", 0.5);
    dp_pair_bool(&map, "truth", true);
    dp_pair_text(&map, "text", "words");
    dp_pair_hex(&map, "hex", dp_view_of("\x01\xff", 2));
    dp_group list = dp_array_begin(dp_pair(&map, "list"));
    for (int i = 0; i < 300; i++) {
        dp_pack_u64(dp_item(&list), (uint64_t)i);
    }
    dp_group_end(&list);
    dp_group none = dp_array_begin(dp_pair(&map, "none"));
    dp_group_end(&none);
    dp_group_end(&map);
    CHECK_OK(dp_packer_finish(&packer));
    CHECK_OK(dp_unpack_open(&unpacked, dp_buf_view(&out)));
    const dp_pack_value *root = dp_unpack_root(unpacked);
    CHECK(dp_pack_get_u64(dp_pack_key(root, "number"), &number) && number == 5);
    CHECK(dp_pack_get_f64(dp_pack_key(root, "real"), &real) && real == 0.5);
    CHECK(dp_pack_get_bool(dp_pack_key(root, "truth"), &truth) && truth);
    CHECK(dp_pack_copy_text(dp_pack_key(root, "text"), text, sizeof text));
    assert_string_equal(text, "words");
    CHECK(dp_pack_copy_text(dp_pack_key(root, "hex"), text, sizeof text));
    assert_string_equal(text, "01ff");
    CHECK(dp_pack_is_array(dp_pack_key(root, "list"), &count) && count == 300);
    CHECK(dp_pack_get_u64(dp_pack_at(dp_pack_key(root, "list"), 299), &number) && number == 299);
    CHECK(dp_pack_is_array(dp_pack_key(root, "none"), &count) && count == 0);
    dp_unpack_close(unpacked);
    dp_buf_close(&out);
}

static void groups_in_a_full_buffer_fail_quietly(void **state)
{
    (void)state;
    for (size_t max = 0; max < 40; max++) {
        dp_buf out = {.max = max};
        dp_packer packer = dp_packer_of(&out);
        dp_group map = dp_map_begin(&packer);
        dp_group list = dp_array_begin(dp_pair(&map, "list"));
        dp_pair_text(&list, "key", "a text that does not fit");
        dp_group_end(&list);
        dp_group_end(&map);
        CHECK_STATUS(dp_packer_finish(&packer), DP_TOOBIG);
        CHECK(out.size <= max);
        dp_buf_close(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_comes_back),
        cmocka_unit_test(replies_notices_and_errors_come_back),
        cmocka_unit_test(half_a_frame_needs_more_and_a_huge_one_is_refused),
        cmocka_unit_test(a_frame_that_does_not_fit_leaves_nothing_behind),
        cmocka_unit_test(frames_of_another_shape_are_refused),
        cmocka_unit_test(damaged_frames_never_crash),
        cmocka_unit_test(groups_count_themselves),
        cmocka_unit_test(groups_in_a_full_buffer_fail_quietly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
