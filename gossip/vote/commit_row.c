#include "gossip/vote/commit_row.h"

enum { ROW_VERSION = 1 };

dp_status dp_commit_row_read(dp_view bytes, dp_commit_row *row)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_commit_row got = {0};
    const uint8_t version = dp_read_u8(&reader);
    dp_read_bytes(&reader, got.fork.bytes, sizeof got.fork.bytes);
    got.slot = dp_read_u64(&reader);
    dp_read_bytes(&reader, got.prev.bytes, sizeof got.prev.bytes);
    got.promised = (int64_t)dp_read_u32(&reader) - 1;
    got.accepted = (int64_t)dp_read_u32(&reader) - 1;
    const uint32_t size = dp_read_u32(&reader);
    got.record = dp_read_view(&reader, size);
    if (version != ROW_VERSION) {
        return DP_VERSION;
    }
    DP_TRY(dp_reader_finish(&reader));
    if (got.accepted > got.promised || (got.accepted >= 0) != (size > 0) ||
        size > DP_RECORD_WHOLE_MAX) {
        return DP_BADMSG;
    }
    *row = got;
    return DP_OK;
}

void dp_commit_row_write(dp_writer *writer, const dp_commit_row *row)
{
    dp_write_u8(writer, ROW_VERSION);
    dp_write_bytes(writer, row->fork.bytes, sizeof row->fork.bytes);
    dp_write_u64(writer, row->slot);
    dp_write_bytes(writer, row->prev.bytes, sizeof row->prev.bytes);
    dp_write_u32(writer, (uint32_t)(row->promised + 1));
    dp_write_u32(writer, (uint32_t)(row->accepted + 1));
    dp_write_u32(writer, (uint32_t)row->record.size);
    dp_write_view(writer, row->record);
}
