#include "cli/json.h"

#include <math.h>
#include <stdlib.h>

#include "tests/lib/check.h"

/* The JSON form of one packed value. The caller frees. */
static char *shown(void (*pack)(dp_packer *))
{
    dp_buf buf;
    dp_unpacked *unpacked = NULL;
    dp_buf_init(&buf, 65536);
    dp_packer packer = dp_packer_of(&buf);
    pack(&packer);
    CHECK_OK(dp_packer_finish(&packer));
    CHECK_OK(dp_unpack_open(&unpacked, dp_buf_view(&buf)));
    json_t *json = dp_json_of(dp_unpack_root(unpacked));
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY | JSON_PRESERVE_ORDER);
    json_decref(json);
    dp_unpack_close(unpacked);
    dp_buf_close(&buf);
    assert_non_null(text);
    return text;
}

static void looks_like(void (*pack)(dp_packer *), const char *wanted)
{
    char *text = shown(pack);
    assert_string_equal(text, wanted);
    free(text);
}

static void pack_all_kinds(dp_packer *packer)
{
    dp_pack_map(packer, 7);
    dp_pack_text(packer, "n");
    dp_pack_u64(packer, 9007199254740993);
    dp_pack_text(packer, "minus");
    dp_pack_i64(packer, -3);
    dp_pack_text(packer, "half");
    dp_pack_f64(packer, 0.5);
    dp_pack_text(packer, "yes");
    dp_pack_bool(packer, true);
    dp_pack_text(packer, "nil");
    dp_pack_nil(packer);
    dp_pack_text(packer, "bytes");
    dp_pack_bytes(packer, dp_view_of("\x00\xab", 2));
    dp_pack_text(packer, "list");
    dp_pack_array(packer, 2);
    dp_pack_text(packer, "a\n\"");
    dp_pack_map(packer, 0);
}

static void every_kind_of_value_is_shown_in_order(void **state)
{
    (void)state;
    looks_like(pack_all_kinds,
               "{\"n\":9007199254740993,\"minus\":-3,\"half\":0.5,\"yes\":true,\"nil\":null,"
               "\"bytes\":\"00ab\",\"list\":[\"a\\n\\\"\",{}]}");
}

static void pack_edges(dp_packer *packer)
{
    dp_pack_array(packer, 4);
    dp_pack_u64(packer, UINT64_MAX);
    dp_pack_f64(packer, NAN);
    dp_pack_f64(packer, -INFINITY);
    dp_pack_text(packer, "gr\xc3\xbc\xff\xc3 ok");
}

static void values_that_json_lacks_are_written_differently(void **state)
{
    (void)state;
    looks_like(pack_edges, "[\"18446744073709551615\",null,null,\"gr\xc3\xbc ok\"]");
}

static void pack_odd_keys(dp_packer *packer)
{
    dp_pack_map(packer, 2);
    dp_pack_u64(packer, 1);
    dp_pack_text(packer, "number as key");
    dp_pack_text(packer, "k");
    dp_pack_u64(packer, 2);
}

static void keys_that_are_no_text_are_left_out(void **state)
{
    (void)state;
    looks_like(pack_odd_keys, "{\"k\":2}");
}

static void fields_of_the_wrong_type_give_the_standard(void **state)
{
    (void)state;
    json_t *json = json_pack("{s:s,s:i,s:b}", "text", "x", "int", 5, "flag", 1);
    assert_string_equal(dp_json_text(json, "text", "-"), "x");
    assert_string_equal(dp_json_text(json, "int", "-"), "-");
    CHECK(dp_json_int(json, "int", -1) == 5 && dp_json_int(json, "text", -1) == -1);
    CHECK(dp_json_real(json, "int", 0) > 4 && dp_json_real(json, "absent", 7) > 6);
    CHECK(dp_json_flag(json, "flag") && !dp_json_flag(json, "int") && !dp_json_flag(NULL, "flag"));
    json_decref(json);
}

static void a_text_loses_the_bytes_that_are_no_utf8(void **state)
{
    (void)state;
    json_t *const text = dp_json_string("a\xc3\xa9"
                                        "b\xc3");
    assert_string_equal(json_string_value(text), "a\xc3\xa9"
                                                 "b");
    json_decref(text);
    assert_null(dp_json_string(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_value_is_shown_in_order),
        cmocka_unit_test(values_that_json_lacks_are_written_differently),
        cmocka_unit_test(a_text_loses_the_bytes_that_are_no_utf8),
        cmocka_unit_test(keys_that_are_no_text_are_left_out),
        cmocka_unit_test(fields_of_the_wrong_type_give_the_standard),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
