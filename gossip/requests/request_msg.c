#include "gossip/requests/request_msg.h"

#include "gossip/core/msg.h"

static void write_head(dp_writer *writer, dp_msg_type type)
{
    dp_write_u8(writer, (uint8_t)type);
    dp_write_u8(writer, DP_MSG_VERSION);
}

static dp_reader read_head(dp_view message, dp_msg_type type)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_read_u8(&reader) != (uint8_t)type || dp_read_u8(&reader) != DP_MSG_VERSION) {
        reader.failed = true;
    }
    return reader;
}

void dp_remove_msg_write(dp_writer *writer, const dp_remove *remove)
{
    write_head(writer, DP_MSG_REMOVE);
    dp_remove_write(writer, remove);
}

dp_status dp_remove_msg_read(dp_view message, dp_remove *remove)
{
    dp_reader reader = read_head(message, DP_MSG_REMOVE);

    return dp_remove_read(&reader, remove) ? dp_reader_finish(&reader) : DP_BADMSG;
}

void dp_fence_msg_write(dp_writer *writer, const dp_fence_ask *ask)
{
    write_head(writer, DP_MSG_FENCE_ASK);
    dp_write_bytes(writer, ask->fence.peer.bytes, 32);
    dp_write_u64(writer, ask->fence.incarnation);
    dp_write_bytes(writer, ask->asker.bytes, 32);
    dp_write_bytes(writer, ask->exchange, sizeof ask->exchange);
    dp_write_bytes(writer, ask->signature, DP_SIGNATURE_BYTES);
}

dp_status dp_fence_msg_read(dp_view message, dp_fence_ask *ask)
{
    dp_reader reader = read_head(message, DP_MSG_FENCE_ASK);

    dp_read_bytes(&reader, ask->fence.peer.bytes, 32);
    ask->fence.incarnation = dp_read_u64(&reader);
    dp_read_bytes(&reader, ask->asker.bytes, 32);
    dp_read_bytes(&reader, ask->exchange, sizeof ask->exchange);
    dp_read_bytes(&reader, ask->signature, DP_SIGNATURE_BYTES);
    return dp_reader_finish(&reader);
}
