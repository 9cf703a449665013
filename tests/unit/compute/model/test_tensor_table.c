#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/run/model_config.h"
#include "compute/model/tensor_table.h"

enum { ROOM = 2048, HEAD = 24 };

static dp_tensor_row row_of(const char *name, dp_number_type type, uint32_t n_dims,
                            const uint32_t *shape)
{
    dp_tensor_row row = {.name = dp_view_text(name), .type = type, .n_dims = n_dims};
    for (uint32_t i = 0; i < n_dims && i < DP_TENSOR_TABLE_DIMS_MAX; i++) {
        row.shape[i] = shape[i];
    }
    return row;
}

/* Three tensors of 6, 1 and 5 elements. */
static dp_buf sample(void)
{
    const dp_tensor_row rows[] = {row_of("a", DP_NUMBER_F32, 2, (uint32_t[]){2, 3}),
                                  row_of("a.b", DP_NUMBER_F16, 0, NULL),
                                  row_of("b", DP_NUMBER_BF16, 1, (uint32_t[]){5})};
    dp_buf out;
    dp_why why = {""};
    dp_buf_init(&out, ROOM);
    assert_int_equal(dp_tensor_table_write(rows, 3, &out, &why), DP_OK);
    return out;
}

static void refuse(dp_view bytes, dp_status status, const char *word)
{
    dp_why why = {""};
    dp_tensor_table table = {.n_tensors = 77};
    const dp_status got = dp_tensor_table_open(&table, bytes, &why);
    if (got != status || strstr(why.text, word) == NULL) {
        fail_msg("%s \"%s\", not \"%s\"", dp_status_text(got), why.text, word);
    }
    assert_int_equal(table.n_tensors, 77);
}

static void rows_come_back_with_their_places(void **state)
{
    (void)state;
    dp_buf bytes = sample();
    dp_tensor_table table;
    dp_tensor_walk walk = {0};
    dp_tensor_row row;
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), NULL), DP_OK);
    assert_int_equal(table.n_tensors, 3);
    assert_int_equal(table.elements, 12);
    assert_true(dp_tensor_table_next(&table, &walk, &row));
    assert_true(dp_view_equal(row.name, dp_view_text("a")));
    assert_int_equal(row.type, DP_NUMBER_F32);
    assert_int_equal(row.n_dims, 2);
    assert_int_equal(row.shape[1], 3);
    assert_int_equal(row.offset, 0);
    assert_int_equal(row.elements, 6);
    assert_true(dp_tensor_table_next(&table, &walk, &row));
    assert_int_equal(row.n_dims, 0);
    assert_int_equal(row.offset, 6);
    assert_int_equal(row.elements, 1);
    assert_true(dp_tensor_table_next(&table, &walk, &row));
    assert_string_equal(dp_number_type_name(row.type), "BF16");
    assert_int_equal(row.offset, 7);
    assert_false(dp_tensor_table_next(&table, &walk, &row));
    assert_false(dp_tensor_table_next(&table, &walk, &row));
    dp_buf_close(&bytes);
}

static void every_cut_and_every_byte_more_is_refused(void **state)
{
    (void)state;
    dp_buf bytes = sample();
    for (size_t size = 0; size < bytes.size; size++) {
        refuse(dp_view_of(bytes.data, size), DP_BADMSG, "table of tensors");
    }
    assert_int_equal(dp_buf_append(&bytes, dp_view_text("x")), DP_OK);
    refuse(dp_buf_view(&bytes), DP_BADMSG, "bytes follow");
    dp_buf_close(&bytes);
}

/* at: byte that becomes value. */
static void spoil(size_t at, uint8_t value, dp_status status, const char *word)
{
    dp_buf bytes = sample();
    bytes.data[at] = value;
    refuse(dp_buf_view(&bytes), status, word);
    dp_buf_close(&bytes);
}

static void damage_is_named(void **state)
{
    (void)state;
    spoil(2, 'T', DP_BADMSG, "no table");
    spoil(4, 2, DP_VERSION, "version 2");
    spoil(6, 1, DP_BADMSG, "damaged");
    spoil(8, 0, DP_BADMSG, "damaged");
    spoil(8, 2, DP_BADMSG, "bytes follow");
    spoil(8, 4, DP_BADMSG, "ends in tensor 4");
    spoil(11, 1, DP_TOOBIG, "the most is 65536");
    spoil(12, 1, DP_BADMSG, "damaged");
    spoil(16, 13, DP_BADMSG, "of 13 elements, and its tensors have 12");
    spoil(HEAD, 0, DP_BADMSG, "unknown type, 0");
    spoil(HEAD, 4, DP_BADMSG, "unknown type, 4");
    spoil(HEAD + 2, 0, DP_BADMSG, "name");
    spoil(HEAD + 3, ' ', DP_BADMSG, "name");
    spoil(HEAD + 3, '"', DP_BADMSG, "name");
    spoil(HEAD + 3, '\\', DP_BADMSG, "name");
    spoil(HEAD + 3, 0x1b, DP_BADMSG, "name");
    spoil(HEAD + 3, 0xc3, DP_BADMSG, "name");
    spoil(HEAD + 3, 'c', DP_BADMSG, "order of names");
    spoil(HEAD + 4, 0, DP_BADMSG, "tensor a has no elements");
}

static void more_dimensions_than_eight_are_refused(void **state)
{
    (void)state;
    const uint32_t ones[DP_TENSOR_TABLE_DIMS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1};
    dp_tensor_row row = row_of("w", DP_NUMBER_F32, 8, ones);
    dp_buf out;
    dp_why why = {""};
    dp_buf_init(&out, ROOM);
    assert_int_equal(dp_tensor_table_write(&row, 1, &out, &why), DP_OK);
    out.data[HEAD + 1] = 9;
    refuse(dp_buf_view(&out), DP_BADMSG, "tensor w has 9 dimensions");
    row.n_dims = 9;
    dp_buf_clear(&out);
    assert_int_equal(dp_tensor_table_write(&row, 1, &out, &why), DP_BADMSG);
    dp_buf_close(&out);
}

static void names_stand_once_and_in_order(void **state)
{
    (void)state;
    const dp_tensor_row twice[] = {row_of("w", DP_NUMBER_F32, 0, NULL),
                                   row_of("w", DP_NUMBER_F16, 0, NULL)};
    const dp_tensor_row turned[] = {row_of("w.b", DP_NUMBER_F32, 0, NULL),
                                    row_of("w", DP_NUMBER_F16, 0, NULL)};
    const dp_tensor_row meta[] = {row_of("__metadata__", DP_NUMBER_F32, 0, NULL)};
    dp_buf out;
    dp_why why = {""};
    dp_buf_init(&out, ROOM);
    assert_int_equal(dp_tensor_table_write(twice, 2, &out, &why), DP_BADMSG);
    assert_non_null(strstr(why.text, "tensor w is in the table twice"));
    assert_int_equal(dp_tensor_table_write(turned, 2, &out, &why), DP_BADMSG);
    assert_non_null(strstr(why.text, "order"));
    assert_int_equal(dp_tensor_table_write(meta, 1, &out, &why), DP_BADMSG);
    assert_int_equal(dp_tensor_table_write(meta, 0, &out, &why), DP_TOOBIG);
    assert_int_equal(out.size, 0);
    dp_buf_close(&out);
}

static void sums_beyond_the_largest_model_are_refused(void **state)
{
    (void)state;
    const uint32_t most[DP_TENSOR_TABLE_DIMS_MAX] = {UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                                     UINT32_MAX, UINT32_MAX, UINT32_MAX,
                                                     UINT32_MAX, UINT32_MAX};
    const uint32_t all[2] = {1U << 31, 1U << 5}; /* 2^36 */
    const dp_tensor_row wraps = row_of("w", DP_NUMBER_F32, 8, most);
    const dp_tensor_row two[] = {row_of("a", DP_NUMBER_F32, 2, all),
                                 row_of("b", DP_NUMBER_F32, 0, NULL)};
    dp_buf out;
    dp_why why = {""};
    dp_buf_init(&out, ROOM);
    assert_int_equal(dp_tensor_table_write(&wraps, 1, &out, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "tensor w has more than"));
    assert_int_equal(dp_tensor_table_write(two, 2, &out, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "68719476737"));
    assert_int_equal(dp_tensor_table_write(two, 1, &out, &why), DP_OK);

    /* 2^32 times 2^32 elements are 0 in 64 bits. */
    dp_tensor_row full = row_of("w", DP_NUMBER_F32, 8, most);
    dp_buf_clear(&out);
    memset(full.shape, 0, sizeof full.shape);
    full.shape[0] = 1;
    full.n_dims = 4;
    full.shape[1] = full.shape[2] = full.shape[3] = 1;
    assert_int_equal(dp_tensor_table_write(&full, 1, &out, &why), DP_OK);
    for (size_t i = 0; i < 4; i++) {
        memset(out.data + HEAD + 4 + 4 * i, 0, 4);
        out.data[HEAD + 4 + 4 * i + 2] = 1; /* 2^16 */
    }
    memset(out.data + 16, 0, 8);
    refuse(dp_buf_view(&out), DP_TOOBIG, "tensor w has more than");
    dp_buf_close(&out);
}

static void a_long_name_and_a_long_table_are_refused(void **state)
{
    (void)state;
    char name[DP_TENSOR_TABLE_NAME_MAX + 2];
    dp_buf out;
    dp_why why = {""};
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = '\0';
    dp_tensor_row row = row_of(name, DP_NUMBER_F32, 0, NULL);
    dp_buf_init(&out, (size_t)DP_TENSOR_TABLE_BYTES_MAX + 1);
    assert_int_equal(dp_tensor_table_write(&row, 1, &out, &why), DP_BADMSG);
    row.name.size = DP_TENSOR_TABLE_NAME_MAX;
    assert_int_equal(dp_tensor_table_write(&row, 1, &out, &why), DP_OK);
    uint8_t *room;
    dp_buf_clear(&out);
    assert_int_equal(dp_buf_reserve(&out, (size_t)DP_TENSOR_TABLE_BYTES_MAX + 1, &room), DP_OK);
    memset(room, 0, (size_t)DP_TENSOR_TABLE_BYTES_MAX + 1);
    refuse(dp_view_of(room, (size_t)DP_TENSOR_TABLE_BYTES_MAX + 1), DP_TOOBIG,
           "the most is 4194304");
    dp_buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_back_with_their_places),
        cmocka_unit_test(every_cut_and_every_byte_more_is_refused),
        cmocka_unit_test(damage_is_named),
        cmocka_unit_test(more_dimensions_than_eight_are_refused),
        cmocka_unit_test(names_stand_once_and_in_order),
        cmocka_unit_test(sums_beyond_the_largest_model_are_refused),
        cmocka_unit_test(a_long_name_and_a_long_table_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
