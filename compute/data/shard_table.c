#include "compute/data/shard_table.h"

#include <string.h>

#include "base/assert.h"

enum { VERSION = 1 };

static const uint8_t magic[4] = {'D', 'P', 'T', '1'};

bool dp_shard_table_is(dp_view bytes)
{
    return bytes.size >= sizeof magic && memcmp(bytes.data, magic, sizeof magic) == 0;
}

dp_shard_row dp_shard_table_row(const dp_shard_table *table, uint32_t index)
{
    dp_assert(index < table->n_shards);
    dp_reader reader = dp_reader_of(
        dp_view_of(table->rows.data + (size_t)DP_SHARD_ROW_BYTES * index, DP_SHARD_ROW_BYTES));
    dp_shard_row row;
    dp_read_bytes(&reader, row.root.bytes, sizeof row.root.bytes);
    row.bytes = dp_read_u64(&reader);
    row.tokens = dp_read_u64(&reader);
    return row;
}

static dp_status check_rows(const dp_shard_table *table, dp_why *why)
{
    uint64_t tokens = 0;
    for (uint32_t i = 0; i < table->n_shards; i++) {
        const dp_shard_row row = dp_shard_table_row(table, i);
        /* Two bytes for each token at least, so that the sum cannot wrap either. */
        if (row.bytes > DP_OBJECT_BYTES_MAX || row.tokens == 0 || row.tokens > row.bytes / 2) {
            return dp_why_set(why, DP_BADMSG,
                              "shard %u of the table cannot have %llu tokens in %llu bytes", i,
                              (unsigned long long)row.tokens, (unsigned long long)row.bytes);
        }
        tokens += row.tokens;
    }
    if (tokens != table->tokens) {
        return dp_why_set(why, DP_BADMSG, "the shard table says %llu tokens, its shards have %llu",
                          (unsigned long long)table->tokens, (unsigned long long)tokens);
    }
    return DP_OK;
}

dp_status dp_shard_table_open(dp_shard_table *table, dp_view bytes, dp_why *why)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_shard_table read = {0};
    uint8_t start[sizeof magic];
    dp_read_bytes(&reader, start, sizeof start);
    const uint16_t version = dp_read_u16(&reader);
    const uint16_t zero = dp_read_u16(&reader);
    read.vocab = dp_read_u32(&reader);
    read.n_shards = dp_read_u32(&reader);
    read.tokens = dp_read_u64(&reader);
    read.text_bytes = dp_read_u64(&reader);
    if (reader.failed || memcmp(start, magic, sizeof magic) != 0) {
        return dp_why_set(why, DP_BADMSG, "the data is not a shard table");
    }
    if (version != VERSION) {
        return dp_why_set(why, DP_VERSION, "the shard table has version %u; this program reads %d",
                          version, VERSION);
    }
    if (read.n_shards == 0 || read.n_shards > DP_SHARDS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the shard table has %u shards; it may have 1 to %d",
                          read.n_shards, DP_SHARDS_MAX);
    }
    read.rows = dp_read_view(&reader, (size_t)DP_SHARD_ROW_BYTES * read.n_shards);
    if (zero != 0 || dp_reader_finish(&reader) != DP_OK) {
        return dp_why_set(why, DP_BADMSG, "the shard table is cut off or damaged");
    }
    DP_TRY(check_rows(&read, why));
    *table = read;
    return DP_OK;
}

dp_status dp_shard_table_write(const dp_shard_row *rows, uint32_t n_rows, uint32_t vocab,
                               uint64_t text_bytes, dp_buf *out)
{
    uint8_t bytes[DP_SHARD_ROW_BYTES];
    uint64_t tokens = 0;
    const size_t before = out->size;
    if (n_rows == 0 || n_rows > DP_SHARDS_MAX) {
        return n_rows == 0 ? DP_BADARG : DP_TOOBIG;
    }
    for (uint32_t i = 0; i < n_rows; i++) {
        tokens += rows[i].tokens;
    }
    dp_writer writer = dp_writer_of(bytes, DP_SHARD_TABLE_HEADER_BYTES);
    dp_write_bytes(&writer, magic, sizeof magic);
    dp_write_u16(&writer, VERSION);
    dp_write_u16(&writer, 0);
    dp_write_u32(&writer, vocab);
    dp_write_u32(&writer, n_rows);
    dp_write_u64(&writer, tokens);
    dp_write_u64(&writer, text_bytes);
    dp_status status = dp_buf_append(out, dp_view_of(bytes, writer.size));
    for (uint32_t i = 0; i < n_rows && status == DP_OK; i++) {
        writer = dp_writer_of(bytes, sizeof bytes);
        dp_write_bytes(&writer, rows[i].root.bytes, sizeof rows[i].root.bytes);
        dp_write_u64(&writer, rows[i].bytes);
        dp_write_u64(&writer, rows[i].tokens);
        status = dp_buf_append(out, dp_view_of(bytes, writer.size));
    }
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}
