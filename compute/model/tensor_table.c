#include "compute/model/tensor_table.h"

#include <string.h>

#include "base/assert.h"
#include "base/run/model_config.h"

enum { VERSION = 1, HEADER_BYTES = 24 };

static const uint8_t magic[4] = {'D', 'P', 'X', '1'};

const char *dp_number_type_name(dp_number_type type)
{
    static const char *const names[] = {
        [DP_NUMBER_F32] = "F32", [DP_NUMBER_F16] = "F16", [DP_NUMBER_BF16] = "BF16"};
    return type >= DP_NUMBER_F32 && type <= DP_NUMBER_LAST ? names[type] : "?";
}

/* Names stand in files of JSON and in lines of terminals. */
static bool is_name(dp_view name)
{
    if (name.size == 0 || name.size > DP_TENSOR_TABLE_NAME_MAX ||
        dp_view_equal(name, dp_view_text("__metadata__"))) {
        return false;
    }
    for (size_t i = 0; i < name.size; i++) {
        const uint8_t c = name.data[i];
        if (c <= ' ' || c >= 127 || c == '"' || c == '\\') {
            return false;
        }
    }
    return true;
}

/* Below 0, 0, above 0, as memcmp; a name before its continuations. */
static int compare(dp_view a, dp_view b)
{
    const size_t common = a.size < b.size ? a.size : b.size;
    const int order = common > 0 ? memcmp(a.data, b.data, common) : 0;
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

/* UINT64_MAX where the product is larger. */
static uint64_t elements_of(const dp_tensor_row *row)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < row->n_dims && i < DP_TENSOR_TABLE_DIMS_MAX; i++) {
        if (__builtin_mul_overflow(elements, (uint64_t)row->shape[i], &elements)) {
            elements = UINT64_MAX;
        }
    }
    return elements;
}

/* *row is complete but for its offset. */
static void read_row(dp_reader *reader, dp_tensor_row *row)
{
    *row = (dp_tensor_row){.offset = 0};
    row->type = (dp_number_type)dp_read_u8(reader);
    row->n_dims = dp_read_u8(reader);
    row->name = dp_read_view(reader, dp_read_u8(reader));
    for (uint32_t i = 0; i < row->n_dims && i < DP_TENSOR_TABLE_DIMS_MAX; i++) {
        row->shape[i] = dp_read_u32(reader);
    }
    row->elements = elements_of(row);
}

/* before: the name of the row before, or empty. */
static dp_status check_row(const dp_tensor_row *row, uint32_t number, dp_view before, dp_why *why)
{
    if (!is_name(row->name)) {
        return dp_why_set(why, DP_BADMSG,
                          "tensor %u has a name that cannot be used; names are 1 to %d printable "
                          "ASCII characters without quotes, backslashes and blanks",
                          number, (int)DP_TENSOR_TABLE_NAME_MAX);
    }
    const int size = row->name.size < 100 ? (int)row->name.size : 100;
    const char *const name = (const char *)row->name.data;
    if (before.size > 0 && compare(before, row->name) >= 0) {
        return dp_why_set(why, DP_BADMSG, "tensor %.*s %s", size, name,
                          compare(before, row->name) == 0 ? "is in the table twice"
                                                          : "is not in the order of names");
    }
    if (row->type < DP_NUMBER_F32 || row->type > DP_NUMBER_LAST) {
        return dp_why_set(why, DP_BADMSG, "tensor %.*s has numbers of an unknown type, %d", size,
                          name, (int)row->type);
    }
    if (row->n_dims > DP_TENSOR_TABLE_DIMS_MAX) {
        return dp_why_set(why, DP_BADMSG, "tensor %.*s has %u dimensions; at most %d are possible",
                          size, name, row->n_dims, (int)DP_TENSOR_TABLE_DIMS_MAX);
    }
    if (row->elements == 0) {
        return dp_why_set(why, DP_BADMSG, "tensor %.*s has no elements", size, name);
    }
    if (row->elements > DP_MODEL_ELEMENTS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "tensor %.*s has more than %llu elements", size, name,
                          (unsigned long long)DP_MODEL_ELEMENTS_MAX);
    }
    return DP_OK;
}

static dp_status too_many(uint64_t elements, dp_why *why)
{
    return dp_why_set(why, DP_TOOBIG, "the tensors have %llu elements; the most is %llu",
                      (unsigned long long)elements, (unsigned long long)DP_MODEL_ELEMENTS_MAX);
}

/* *elements: of all rows. The sum cannot wrap: 2^16 rows of at most 2^36. */
static dp_status check_rows(dp_view rows, uint32_t n, uint64_t *elements, dp_why *why)
{
    dp_reader reader = dp_reader_of(rows);
    dp_view before = {0};
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        dp_tensor_row row;
        read_row(&reader, &row);
        if (reader.failed) {
            return dp_why_set(why, DP_BADMSG, "the table of tensors ends in tensor %u of %u", i + 1,
                              n);
        }
        DP_TRY(check_row(&row, i + 1, before, why));
        before = row.name;
        sum += row.elements;
    }
    if (dp_reader_finish(&reader) != DP_OK) {
        return dp_why_set(why, DP_BADMSG, "bytes follow the last tensor of the table");
    }
    if (sum > DP_MODEL_ELEMENTS_MAX) {
        return too_many(sum, why);
    }
    *elements = sum;
    return DP_OK;
}

dp_status dp_tensor_table_open(dp_tensor_table *table, dp_view bytes, dp_why *why)
{
    uint8_t start[sizeof magic];
    if (bytes.size > DP_TENSOR_TABLE_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the table of tensors has %zu bytes; the most is %d",
                          bytes.size, (int)DP_TENSOR_TABLE_BYTES_MAX);
    }
    dp_reader reader = dp_reader_of(bytes);
    dp_read_bytes(&reader, start, sizeof start);
    const uint16_t version = dp_read_u16(&reader);
    const uint16_t zero = dp_read_u16(&reader);
    const uint32_t n = dp_read_u32(&reader);
    const uint32_t also_zero = dp_read_u32(&reader);
    const uint64_t elements = dp_read_u64(&reader);
    if (reader.failed || memcmp(start, magic, sizeof magic) != 0) {
        return dp_why_set(why, DP_BADMSG, "this is no table of tensors");
    }
    if (version != VERSION) {
        return dp_why_set(why, DP_VERSION, "the table of tensors has version %u, not %d", version,
                          (int)VERSION);
    }
    if (n > DP_TENSOR_TABLE_TENSORS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the table has %u tensors; the most is %d", n,
                          (int)DP_TENSOR_TABLE_TENSORS_MAX);
    }
    if (n == 0 || zero != 0 || also_zero != 0) {
        return dp_why_set(why, DP_BADMSG, "the head of the table of tensors is damaged");
    }
    uint64_t sum = 0;
    const dp_view rows = dp_view_of(bytes.data + HEADER_BYTES, bytes.size - HEADER_BYTES);
    DP_TRY(check_rows(rows, n, &sum, why));
    if (sum != elements) {
        return dp_why_set(why, DP_BADMSG,
                          "the table of tensors is of %llu elements, and its tensors have %llu",
                          (unsigned long long)elements, (unsigned long long)sum);
    }
    *table = (dp_tensor_table){.n_tensors = n, .elements = elements, .rows = rows};
    return DP_OK;
}

bool dp_tensor_table_next(const dp_tensor_table *table, dp_tensor_walk *walk, dp_tensor_row *row)
{
    if (walk->done == table->n_tensors) {
        return false;
    }
    dp_assert(walk->at < table->rows.size);
    dp_reader reader =
        dp_reader_of(dp_view_of(table->rows.data + walk->at, table->rows.size - walk->at));
    read_row(&reader, row);
    dp_assert(!reader.failed); /* Checked by open. */
    row->offset = walk->offset;
    walk->at = table->rows.size - dp_reader_left(&reader);
    walk->offset += row->elements;
    walk->done++;
    return true;
}

static dp_status append_row(const dp_tensor_row *row, dp_buf *out)
{
    uint8_t room[3 + DP_TENSOR_TABLE_NAME_MAX + 4 * DP_TENSOR_TABLE_DIMS_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_view written;
    dp_write_u8(&writer, (uint8_t)row->type);
    dp_write_u8(&writer, (uint8_t)row->n_dims);
    dp_write_u8(&writer, (uint8_t)row->name.size);
    dp_write_bytes(&writer, row->name.data, row->name.size);
    for (uint32_t i = 0; i < row->n_dims; i++) {
        dp_write_u32(&writer, row->shape[i]);
    }
    DP_TRY(dp_writer_finish(&writer, &written));
    return dp_buf_append(out, written);
}

static dp_status append_all(const dp_tensor_row *rows, uint32_t n, uint64_t elements, dp_buf *out)
{
    uint8_t head[HEADER_BYTES];
    dp_writer writer = dp_writer_of(head, sizeof head);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, VERSION);
    dp_write_u16(&writer, 0);
    dp_write_u32(&writer, n);
    dp_write_u32(&writer, 0);
    dp_write_u64(&writer, elements);
    DP_TRY(dp_buf_append(out, dp_view_of(head, writer.size)));
    for (uint32_t i = 0; i < n; i++) {
        DP_TRY(append_row(&rows[i], out));
    }
    return DP_OK;
}

dp_status dp_tensor_table_write(const dp_tensor_row *rows, size_t n, dp_buf *out, dp_why *why)
{
    const size_t start = out->size;
    dp_view before = {0};
    uint64_t elements = 0;
    if (n == 0 || n > DP_TENSOR_TABLE_TENSORS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "there are %zu tensors; a model has 1 to %d", n,
                          (int)DP_TENSOR_TABLE_TENSORS_MAX);
    }
    for (uint32_t i = 0; i < n; i++) { /* Before they are cut to their places in a row. */
        dp_tensor_row row = rows[i];
        row.elements = elements_of(&row);
        DP_TRY(check_row(&row, i + 1, before, why));
        before = row.name;
        elements += row.elements;
    }
    if (elements > DP_MODEL_ELEMENTS_MAX) {
        return too_many(elements, why);
    }
    dp_status status = append_all(rows, (uint32_t)n, elements, out);
    if (status == DP_OK && out->size - start > DP_TENSOR_TABLE_BYTES_MAX) {
        status = DP_TOOBIG;
    }
    if (status != DP_OK) {
        out->size = start;
        return dp_why_set(why, status, "the table of %zu tensors cannot be written: %s", n,
                          dp_status_text(status));
    }
    return DP_OK;
}
