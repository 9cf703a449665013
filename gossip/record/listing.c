#include "gossip/record/listing.h"

#include "base/assert.h"

void dp_listing_row_write(dp_writer *writer, const dp_listed *listed)
{
    dp_write_bytes(writer, listed->peer.bytes, sizeof listed->peer.bytes);
    dp_write_bytes(writer, listed->root.bytes, sizeof listed->root.bytes);
    dp_write_u64(writer, listed->bytes);
    dp_write_u64(writer, listed->tokens);
    dp_write_u64(writer, listed->carried);
    dp_write_u64(writer, listed->reach.leased);
    dp_write_u64(writer, listed->reach.own);
    dp_write_u32(writer, listed->steps);
    dp_write_u32(writer, listed->loss_micro);
    dp_write_bytes(writer, listed->signature, DP_SIGNATURE_BYTES);
    dp_write_u128(writer, listed->energy);
    dp_write_u64(writer, listed->w);
    dp_write_u32(writer, listed->clip);
    dp_write_u32(writer, listed->q);
}

void dp_listing_row_read(dp_reader *reader, dp_listed *listed)
{
    dp_read_bytes(reader, listed->peer.bytes, sizeof listed->peer.bytes);
    dp_read_bytes(reader, listed->root.bytes, sizeof listed->root.bytes);
    listed->bytes = dp_read_u64(reader);
    listed->tokens = dp_read_u64(reader);
    listed->carried = dp_read_u64(reader);
    listed->reach.leased = dp_read_u64(reader);
    listed->reach.own = dp_read_u64(reader);
    listed->steps = dp_read_u32(reader);
    listed->loss_micro = dp_read_u32(reader);
    dp_read_bytes(reader, listed->signature, DP_SIGNATURE_BYTES);
    listed->energy = dp_read_u128(reader);
    listed->w = dp_read_u64(reader);
    listed->clip = dp_read_u32(reader);
    listed->q = dp_read_u32(reader);
    listed->rate = 0;
}

uint32_t dp_listing_count(uint32_t n)
{
    return (n + DP_LIST_ROWS_MAX - 1) / DP_LIST_ROWS_MAX;
}

uint32_t dp_listing_rows(uint32_t n, uint32_t i)
{
    const uint32_t before = i * DP_LIST_ROWS_MAX;

    dp_assert(i < dp_listing_count(n));
    dp_assert(before < n);
    return n - before < DP_LIST_ROWS_MAX ? n - before : (uint32_t)DP_LIST_ROWS_MAX;
}

size_t dp_listing_bytes(uint32_t rows)
{
    return DP_LIST_HEAD_BYTES + (size_t)rows * DP_LIST_ROW_BYTES;
}

void dp_listing_write(dp_writer *writer, const dp_listed *rows, uint32_t n)
{
    dp_assert(n > 0 && n <= DP_LIST_ROWS_MAX);
    dp_assert(n >= 1 && n <= DP_LIST_ROWS_MAX);
    dp_write_u8(writer, DP_LIST_VERSION);
    dp_write_u8(writer, (uint8_t)n);
    for (uint32_t i = 0; i < n; i++) {
        dp_listing_row_write(writer, &rows[i]);
    }
}

dp_status dp_listing_read(dp_view bytes, dp_listed rows[DP_LIST_ROWS_MAX], uint32_t *n)
{
    dp_reader reader = dp_reader_of(bytes);
    const uint8_t version = dp_read_u8(&reader);
    const uint32_t count = dp_read_u8(&reader);

    if (version != DP_LIST_VERSION) {
        return reader.failed ? DP_BADMSG : DP_VERSION;
    }
    if (count == 0 || count > DP_LIST_ROWS_MAX || bytes.size != dp_listing_bytes(count)) {
        return DP_BADMSG;
    }
    for (uint32_t i = 0; i < count; i++) {
        dp_listing_row_read(&reader, &rows[i]);
        if (i > 0 && dp_peer_compare(&rows[i - 1].peer, &rows[i].peer) >= 0) {
            return DP_BADMSG;
        }
    }
    *n = count;
    return dp_reader_finish(&reader);
}

dp_hash dp_listing_hash(dp_view bytes)
{
    return dp_hash_of("dpnode/list/1", bytes);
}
