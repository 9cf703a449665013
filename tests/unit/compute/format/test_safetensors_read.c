#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/format/safetensors_read.h"

enum { ROOM = 4096 };

/* A file of this header and n_data bytes 0, 1, 2 and on. */
static dp_view file_of(uint8_t room[ROOM], const char *header, size_t n_data)
{
    const size_t size = strlen(header);
    assert_true(8 + size + n_data <= ROOM);
    memset(room, 0, 8);
    room[0] = (uint8_t)size;
    room[1] = (uint8_t)(size >> 8);
    memcpy(room + 8, header, size);
    for (size_t i = 0; i < n_data; i++) {
        room[8 + size + i] = (uint8_t)i;
    }
    return dp_view_of(room, 8 + size + n_data);
}

static void refuse(const char *header, size_t n_data, dp_status status, const char *word)
{
    uint8_t room[ROOM];
    dp_why why = {""};
    dp_safetensors *file = NULL;
    const dp_status got = dp_safetensors_open(&file, file_of(room, header, n_data), &why);
    if (got != status || strstr(why.text, word) == NULL) {
        fail_msg("%s: %s \"%s\"", header, dp_status_text(got), why.text);
    }
    assert_null(file);
}

static void tensors_are_lent_with_their_shapes(void **state)
{
    (void)state;
    uint8_t room[ROOM];
    dp_safetensors *file;
    dp_safetensors_tensor a;
    const dp_view bytes =
        file_of(room,
                "{\"__metadata__\":{\"format\":\"pt\"},"
                "\"b\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[12,20]},"
                "\"a\":{\"dtype\":\"F16\",\"shape\":[2,3],\"data_offsets\":[0,12]},"
                "\"none\":{\"dtype\":\"F32\",\"shape\":[0,7],\"data_offsets\":[12,12]}}   ",
                20);
    assert_int_equal(dp_safetensors_open(&file, bytes, NULL), DP_OK);
    assert_int_equal(dp_safetensors_find(file, "a", &a), DP_OK);
    assert_int_equal(a.type, DP_SAFETENSORS_F16);
    assert_int_equal(a.n_dims, 2);
    assert_int_equal(a.shape[1], 3);
    assert_int_equal(a.elements, 6);
    assert_ptr_equal(a.bytes.data, bytes.data + bytes.size - 20);
    assert_int_equal(dp_safetensors_find(file, "b", &a), DP_OK);
    assert_int_equal(dp_safetensors_floats(&a, 0, 1, (float[1]){0}), DP_UNSUPPORTED);
    assert_int_equal(dp_safetensors_find(file, "__metadata__", &a), DP_NOTFOUND);
    assert_int_equal(dp_safetensors_find(file, "c", &a), DP_NOTFOUND);
    size_t n = 0;
    for (const char *name = dp_safetensors_next(file, NULL); name != NULL;
         name = dp_safetensors_next(file, name)) {
        n++;
    }
    assert_int_equal(n, 3);
    dp_safetensors_close(file);
    dp_safetensors_close(NULL);
}

static void halves_and_bfloats_become_the_same_floats(void **state)
{
    (void)state;
    static const uint8_t halves[] = {0x00, 0x3c, 0x00, 0xc0, 0x01, 0x00, 0x00, 0x7c};
    static const uint8_t bfloats[] = {0x80, 0x3f, 0x40, 0xc0, 0xc0, 0x7f};
    float out[3];
    dp_safetensors_tensor tensor = {
        .type = DP_SAFETENSORS_F16, .elements = 4, .bytes = dp_view_of(halves, sizeof halves)};
    assert_int_equal(dp_safetensors_floats(&tensor, 0, 3, out), DP_OK);
    assert_true(out[0] == 1.0F && out[1] == -2.0F && out[2] == 0x1p-24F);
    assert_int_equal(dp_safetensors_floats(&tensor, 3, 1, out), DP_DIVERGED); /* infinity */
    assert_int_equal(dp_safetensors_floats(&tensor, 2, 3, out), DP_BADARG);
    assert_int_equal(dp_safetensors_floats(&tensor, 5, 0, out), DP_BADARG);
    tensor = (dp_safetensors_tensor){
        .type = DP_SAFETENSORS_BF16, .elements = 3, .bytes = dp_view_of(bfloats, sizeof bfloats)};
    assert_int_equal(dp_safetensors_floats(&tensor, 0, 2, out), DP_OK);
    assert_true(out[0] == 1.0F && out[1] == -3.0F);
    assert_int_equal(dp_safetensors_floats(&tensor, 2, 1, out), DP_DIVERGED); /* NaN */
}

static void ranges_must_tile_the_data(void **state)
{
    (void)state;
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[3,7]}}",
           7, DP_BADMSG, "overlap");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
           "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
           4, DP_BADMSG, "overlap");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[1,5]}}", 5, DP_BADMSG, "hole");
    refuse("{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 5, DP_BADMSG,
           "belong to no tensor");
}

static void numbers_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static const char *const entries[] = {
        "{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,8]}",
        "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}",
        "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,16]}",
        "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}",
        "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,9]}",
        "{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":8}",
        "{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}",
        "{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}",
        "{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}",
        "{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}",
        "{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}",
        "{\"dtype\":\"F32\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}",
        "{\"dtype\":\"F33\",\"shape\":[2],\"data_offsets\":[0,8]}",
        "{\"shape\":[2],\"data_offsets\":[0,8]}",
        "[]",
    };
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        char header[512];
        snprintf(header, sizeof header, "{\"odd\":%s}", entries[i]);
        refuse(header, 8, DP_BADMSG, "odd");
    }
}

static void headers_that_are_none_are_refused(void **state)
{
    (void)state;
    dp_why why = {""};
    dp_safetensors *file;
    refuse("[]", 0, DP_BADMSG, "no JSON object");
    refuse("{", 0, DP_BADMSG, "header");
    refuse("", 0, DP_BADMSG, "header");
    refuse("{\"a\":1,\"a\":2}", 0, DP_BADMSG, "duplicate");
    const uint8_t huge[16] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    assert_int_equal(dp_safetensors_open(&file, dp_view_of(huge, sizeof huge), &why), DP_BADMSG);
    assert_int_equal(dp_safetensors_open(&file, dp_view_of(huge, 7), &why), DP_BADMSG);
    assert_int_equal(dp_safetensors_open(&file, dp_view_of(NULL, 0), &why), DP_BADMSG);
    const size_t size = 8 + DP_SAFETENSORS_HEADER_MAX + 1;
    uint8_t *const large = test_calloc(size, 1);
    large[0] = 1;
    large[2] = DP_SAFETENSORS_HEADER_MAX >> 16;
    assert_int_equal(dp_safetensors_open(&file, dp_view_of(large, size), &why), DP_TOOBIG);
    test_free(large);
}

static void without_memory_there_is_no_file(void **state)
{
    (void)state;
    uint8_t room[ROOM];
    dp_safetensors *file;
    const dp_view bytes =
        file_of(room, "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4);
    for (size_t n = 1; n < 3; n++) {
        dp_alloc_fail_after(n);
        const dp_status status = dp_safetensors_open(&file, bytes, NULL);
        dp_alloc_fail_after(0);
        assert_int_equal(status, DP_NOMEM);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_are_lent_with_their_shapes),
        cmocka_unit_test(halves_and_bfloats_become_the_same_floats),
        cmocka_unit_test(ranges_must_tile_the_data),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(headers_that_are_none_are_refused),
        cmocka_unit_test(without_memory_there_is_no_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
