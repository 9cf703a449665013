#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/alloc.h"
#include "compute/cpu/half.h"
#include "compute/format/tensor_file.h"

enum { ROOM = 4096 };

/* "b" 3 halves 1, -2 and 2^-24; "a" a matrix 2 x 2 of floats; "c" a bfloat. In the order of
 * safetensors' writer: by size of number, then by name. */
static const char header[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                             "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                             "\"b\":{\"dtype\":\"F16\",\"shape\":[3],\"data_offsets\":[16,22]},"
                             "\"c\":{\"dtype\":\"BF16\",\"shape\":[],\"data_offsets\":[22,24]}}";
static const uint8_t values[24] = {0, 0, 0x80, 0x3f, 0, 0,    0, 0xc0, 1, 0, 0,    0,
                                   0, 0, 0,    0x80, 0, 0x3c, 0, 0xc0, 1, 0, 0x80, 0x3f};

static dp_view file_of(uint8_t room[ROOM], const char *head, const uint8_t *data, size_t n)
{
    const size_t size = (strlen(head) + 7) / 8 * 8;
    memset(room, ' ', ROOM);
    memset(room, 0, 8);
    room[0] = (uint8_t)size;
    room[1] = (uint8_t)(size >> 8);
    memcpy(room + 8, head, strlen(head));
    memcpy(room + 8 + size, data, n);
    return dp_view_of(room, 8 + size + n);
}

static dp_safetensors *opened(uint8_t room[ROOM], const char *head, const uint8_t *data, size_t n)
{
    dp_safetensors *file;
    dp_why why = {""};
    if (dp_safetensors_open(&file, file_of(room, head, data, n), &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    return file;
}

static void a_file_comes_back_bit_for_bit(void **state)
{
    (void)state;
    uint8_t room[ROOM];
    dp_buf bytes;
    dp_buf again;
    dp_tensor_table table;
    float vector[8];
    dp_why why = {""};
    dp_safetensors *file = opened(room, header, values, sizeof values);
    dp_buf_init(&bytes, DP_TENSOR_TABLE_BYTES_MAX);
    dp_buf_init(&again, ROOM);
    assert_int_equal(dp_tensor_file_table(file, &bytes, &why), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), &why), DP_OK);
    assert_int_equal(table.elements, 8);
    assert_int_equal(dp_tensor_file_read(file, &table, vector, &why), DP_OK);
    assert_true(vector[0] == 1.0F && vector[1] == -2.0F && vector[2] == 0x1p-149F);
    assert_true(dp_float_bits(vector[3]) == 0x80000000U);
    assert_true(vector[4] == 1.0F && vector[5] == -2.0F && vector[6] == 0x1p-24F);
    assert_true(vector[7] == 1.0F);
    assert_int_equal(dp_tensor_file_write(&table, vector, &again, &why), DP_OK);
    assert_true(dp_view_equal(dp_buf_view(&again), file_of(room, header, values, sizeof values)));
    dp_buf_close(&again);
    dp_buf_close(&bytes);
    dp_safetensors_close(file);
}

static void numbers_that_are_not_trained_are_refused_by_name(void **state)
{
    (void)state;
    uint8_t room[ROOM];
    dp_buf bytes;
    dp_why why = {""};
    dp_safetensors *file = opened(
        room, "{\"steps\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[0,8]}}", values, 8);
    dp_buf_init(&bytes, DP_TENSOR_TABLE_BYTES_MAX);
    assert_int_equal(dp_tensor_file_table(file, &bytes, &why), DP_UNSUPPORTED);
    assert_non_null(strstr(why.text, "tensor steps"));
    assert_int_equal(bytes.size, 0);
    dp_safetensors_close(file);
    file = opened(room, "{}", values, 0);
    assert_int_equal(dp_tensor_file_table(file, &bytes, &why), DP_BADMSG);
    dp_safetensors_close(file);
    file = opened(room, "{\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
                  values, 0);
    assert_int_equal(dp_tensor_file_table(file, &bytes, &why), DP_BADMSG);
    assert_non_null(strstr(why.text, "tensor none has no elements"));
    dp_safetensors_close(file);
    file = opened(room,
                  "{\"none\":{\"dtype\":\"F32\",\"shape\":[0,4294967296],\"data_offsets\":[0,0]}}",
                  values, 0);
    assert_int_equal(dp_tensor_file_table(file, &bytes, &why), DP_TOOBIG);
    assert_non_null(strstr(why.text, "dimension 1 of tensor none"));
    dp_safetensors_close(file);
    dp_buf_close(&bytes);
}

static void numbers_that_are_not_finite_are_refused_by_name(void **state)
{
    (void)state;
    static const uint8_t infinite[2] = {0x00, 0x7c};
    uint8_t room[ROOM];
    dp_buf bytes;
    dp_tensor_table table;
    float vector[1];
    dp_why why = {""};
    dp_safetensors *file = opened(
        room, "{\"w\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", infinite, 2);
    dp_buf_init(&bytes, DP_TENSOR_TABLE_BYTES_MAX);
    assert_int_equal(dp_tensor_file_table(file, &bytes, &why), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), &why), DP_OK);
    assert_int_equal(dp_tensor_file_read(file, &table, vector, &why), DP_DIVERGED);
    assert_non_null(strstr(why.text, "tensor w"));
    dp_buf_close(&bytes);
    dp_safetensors_close(file);
}

static void a_table_of_another_file_is_refused(void **state)
{
    (void)state;
    const dp_tensor_row other = {
        .name = dp_view_text("c"), .type = DP_NUMBER_F32, .n_dims = 1, .shape = {2}};
    const dp_tensor_row missing = {.name = dp_view_text("d"), .type = DP_NUMBER_F32};
    uint8_t room[ROOM];
    dp_buf bytes;
    dp_tensor_table table;
    float vector[2];
    dp_why why = {""};
    dp_safetensors *file = opened(room, header, values, sizeof values);
    dp_buf_init(&bytes, DP_TENSOR_TABLE_BYTES_MAX);
    assert_int_equal(dp_tensor_table_write(&other, 1, &bytes, &why), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), &why), DP_OK);
    assert_int_equal(dp_tensor_file_read(file, &table, vector, &why), DP_NOTFOUND);
    dp_buf_clear(&bytes);
    assert_int_equal(dp_tensor_table_write(&missing, 1, &bytes, &why), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), &why), DP_OK);
    assert_int_equal(dp_tensor_file_read(file, &table, vector, &why), DP_NOTFOUND);
    assert_non_null(strstr(why.text, "tensor d"));
    dp_buf_close(&bytes);
    dp_safetensors_close(file);
}

/* Returns the status of one number in a file of this type, and its bits. */
static dp_status written(dp_number_type type, float value, uint16_t *bits)
{
    const dp_tensor_row row = {.name = dp_view_text("w"), .type = type};
    dp_buf bytes;
    dp_buf out;
    dp_tensor_table table;
    dp_why why = {""};
    dp_buf_init(&bytes, ROOM);
    dp_buf_init(&out, ROOM);
    assert_int_equal(dp_tensor_table_write(&row, 1, &bytes, &why), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), &why), DP_OK);
    const dp_status status = dp_tensor_file_write(&table, &value, &out, &why);
    if (status == DP_OK) {
        *bits = (uint16_t)(out.data[out.size - 2] | out.data[out.size - 1] << 8);
    } else {
        assert_non_null(strstr(why.text, "tensor w has the value"));
        assert_int_equal(out.size, 0);
    }
    dp_buf_close(&out);
    dp_buf_close(&bytes);
    return status;
}

static void numbers_are_rounded_to_the_nearest_of_their_type(void **state)
{
    (void)state;
    uint16_t bits = 0;
    assert_int_equal(written(DP_NUMBER_F16, 1.0F + 0x1p-11F, &bits), DP_OK); /* a tie, to even */
    assert_int_equal(bits, 0x3c00);
    assert_int_equal(written(DP_NUMBER_F16, -1.0F - 0x3p-11F, &bits), DP_OK);
    assert_int_equal(bits, 0xbc02);
    assert_int_equal(written(DP_NUMBER_F16, 65519.0F, &bits), DP_OK);
    assert_int_equal(bits, 0x7bff);
    assert_int_equal(written(DP_NUMBER_F16, 65520.0F, &bits), DP_DIVERGED);
    assert_int_equal(written(DP_NUMBER_F16, -70000.0F, &bits), DP_DIVERGED);
    assert_int_equal(written(DP_NUMBER_BF16, 1.0F + 0x1p-8F, &bits), DP_OK);
    assert_int_equal(bits, 0x3f80);
    assert_int_equal(written(DP_NUMBER_BF16, 3.4e38F, &bits), DP_DIVERGED);
}

static void more_numbers_than_a_piece_are_written(void **state)
{
    (void)state;
    enum { N = 9001 };
    const dp_tensor_row row = {
        .name = dp_view_text("w"), .type = DP_NUMBER_BF16, .n_dims = 1, .shape = {N}};
    float *const vector = dp_alloc(2 * N, sizeof *vector);
    dp_buf bytes;
    dp_buf out;
    dp_tensor_table table;
    dp_safetensors *file;
    dp_why why = {""};
    assert_non_null(vector);
    for (size_t i = 0; i < N; i++) {
        vector[i] = (float)(i % 251) - 125.0F;
    }
    dp_buf_init(&bytes, ROOM);
    dp_buf_init(&out, 4 * N);
    assert_int_equal(dp_tensor_table_write(&row, 1, &bytes, &why), DP_OK);
    assert_int_equal(dp_tensor_table_open(&table, dp_buf_view(&bytes), &why), DP_OK);
    assert_int_equal(dp_tensor_file_write(&table, vector, &out, &why), DP_OK);
    assert_int_equal(dp_safetensors_open(&file, dp_buf_view(&out), &why), DP_OK);
    assert_int_equal(dp_tensor_file_read(file, &table, vector + N, &why), DP_OK);
    assert_memory_equal(vector, vector + N, N * sizeof *vector);
    dp_safetensors_close(file);
    dp_buf_close(&out);
    dp_buf_close(&bytes);
    dp_free(vector);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_comes_back_bit_for_bit),
        cmocka_unit_test(numbers_that_are_not_trained_are_refused_by_name),
        cmocka_unit_test(numbers_that_are_not_finite_are_refused_by_name),
        cmocka_unit_test(a_table_of_another_file_is_refused),
        cmocka_unit_test(numbers_are_rounded_to_the_nearest_of_their_type),
        cmocka_unit_test(more_numbers_than_a_piece_are_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
