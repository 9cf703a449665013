#include "gossip/record/wire.h"

#include <string.h>

#include "base/assert.h"
#include "base/run/manifest.h"

static void write_head(dp_writer *writer, dp_msg_type type)
{
    dp_write_u8(writer, (uint8_t)type);
    dp_write_u8(writer, DP_MSG_VERSION);
}

/* A reader behind the head, failed if the head is not this type's. */
static dp_reader read_head(dp_view message, dp_msg_type type)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_read_u8(&reader) != (uint8_t)type || dp_read_u8(&reader) != DP_MSG_VERSION) {
        reader.failed = true;
    }
    return reader;
}

/* ---- writing ---- */

void dp_wire_write_info_get(dp_writer *writer, const dp_hash *root)
{
    write_head(writer, DP_MSG_INFO_GET);
    dp_write_bytes(writer, root->bytes, sizeof root->bytes);
}

void dp_wire_write_info(dp_writer *writer, const dp_hash *root, uint64_t size,
                        const dp_hash *leaves)
{
    const uint32_t n = dp_object_chunks(size);

    dp_assert(n <= DP_CHUNKS_MAX);
    write_head(writer, DP_MSG_INFO);
    dp_write_bytes(writer, root->bytes, sizeof root->bytes);
    dp_write_u64(writer, size);
    for (uint32_t i = 0; i < n; i++) {
        dp_write_bytes(writer, leaves[i].bytes, sizeof leaves[i].bytes);
    }
}

void dp_wire_write_chunk_get(dp_writer *writer, const dp_hash *root, uint32_t index)
{
    write_head(writer, DP_MSG_CHUNK_GET);
    dp_write_bytes(writer, root->bytes, sizeof root->bytes);
    dp_write_u32(writer, index);
}

void dp_wire_write_chunk_head(dp_writer *writer, const dp_hash *root, uint32_t index, bool found)
{
    write_head(writer, DP_MSG_CHUNK);
    dp_write_bytes(writer, root->bytes, sizeof root->bytes);
    dp_write_u32(writer, index);
    dp_write_u8(writer, found ? 1 : 0);
}

void dp_wire_write_chunk_drop(dp_writer *writer, const dp_hash *root)
{
    write_head(writer, DP_MSG_CHUNK_DROP);
    dp_write_bytes(writer, root->bytes, sizeof root->bytes);
}

void dp_wire_write_records_get(dp_writer *writer, uint64_t from, uint32_t count)
{
    write_head(writer, DP_MSG_RECORDS_GET);
    dp_write_u64(writer, from);
    dp_write_u16(writer,
                 (uint16_t)(count < DP_RECORDS_PER_MESSAGE ? count : DP_RECORDS_PER_MESSAGE));
}

enum { RECORDS_COUNT_AT = DP_MSG_HEAD_BYTES + 8, RECORDS_HEAD = RECORDS_COUNT_AT + 2 };

void dp_wire_begin_records(dp_writer *writer, uint64_t from)
{
    dp_assert(writer->size == 0);
    write_head(writer, DP_MSG_RECORDS);
    dp_write_u64(writer, from);
    dp_write_u16(writer, 0);
}

bool dp_wire_add_record(dp_writer *writer, dp_view record, dp_view cert)
{
    const size_t usual = writer->size == RECORDS_HEAD ? DP_RECORDS_BYTES_MAX : DP_MESSAGE_MAX;
    const size_t most = writer->capacity < usual ? writer->capacity : usual;

    dp_assert(writer->size >= RECORDS_HEAD && record.size <= DP_RECORD_WHOLE_MAX);
    dp_assert(cert.size <= DP_CERT_OF_RECORD_BYTES_MAX);
    uint8_t *count = writer->data + RECORDS_COUNT_AT;
    if (count[0] >= DP_RECORDS_PER_MESSAGE || writer->size > most ||
        6 + record.size + cert.size > most - writer->size) {
        return false;
    }
    dp_write_u32(writer, (uint32_t)record.size);
    dp_write_view(writer, record);
    dp_write_u16(writer, (uint16_t)cert.size);
    dp_write_view(writer, cert);
    count[0]++;
    return true;
}

void dp_wire_write_manifest_get(dp_writer *writer)
{
    write_head(writer, DP_MSG_MANIFEST_GET);
}

void dp_wire_write_manifest(dp_writer *writer, dp_view manifest)
{
    write_head(writer, DP_MSG_MANIFEST);
    dp_write_view(writer, manifest);
}

void dp_wire_write_relay(dp_writer *writer, uint8_t hops, const dp_peer *target, dp_view message)
{
    write_head(writer, DP_MSG_RELAY);
    dp_write_u8(writer, hops);
    dp_write_bytes(writer, target->bytes, sizeof target->bytes);
    dp_write_view(writer, message);
}

/* ---- reading ---- */

dp_status dp_wire_read_info_get(dp_view message, dp_hash *root)
{
    dp_reader reader = read_head(message, DP_MSG_INFO_GET);

    dp_read_bytes(&reader, root->bytes, sizeof root->bytes);
    return dp_reader_finish(&reader);
}

dp_status dp_wire_read_info(dp_view message, dp_wire_info *info, dp_hash leaves[DP_CHUNKS_MAX])
{
    dp_reader reader = read_head(message, DP_MSG_INFO);

    dp_read_bytes(&reader, info->root.bytes, sizeof info->root.bytes);
    info->size = dp_read_u64(&reader);
    info->n_leaves = reader.failed ? 0 : dp_object_chunks(info->size);
    if (info->n_leaves > DP_CHUNKS_MAX) {
        return DP_TOOBIG;
    }
    const dp_view all = dp_read_view(&reader, (size_t)info->n_leaves * DP_HASH_BYTES);
    DP_TRY(dp_reader_finish(&reader));
    info->leaves = all.data;
    for (uint32_t i = 0; i < info->n_leaves; i++) {
        memcpy(leaves[i].bytes, all.data + (size_t)i * DP_HASH_BYTES, DP_HASH_BYTES);
    }
    const dp_hash root = dp_object_root(info->size, leaves);
    return dp_hash_equal(&root, &info->root) ? DP_OK : DP_BADHASH;
}

dp_status dp_wire_read_chunk_get(dp_view message, dp_hash *root, uint32_t *index)
{
    dp_reader reader = read_head(message, DP_MSG_CHUNK_GET);

    dp_read_bytes(&reader, root->bytes, sizeof root->bytes);
    *index = dp_read_u32(&reader);
    return *index < DP_CHUNKS_MAX ? dp_reader_finish(&reader) : DP_BADMSG;
}

dp_status dp_wire_read_chunk(dp_view message, dp_wire_chunk *chunk)
{
    dp_reader reader = read_head(message, DP_MSG_CHUNK);

    dp_read_bytes(&reader, chunk->root.bytes, sizeof chunk->root.bytes);
    chunk->index = dp_read_u32(&reader);
    const uint8_t found = dp_read_u8(&reader);
    chunk->found = found == 1;
    chunk->bytes = dp_read_view(&reader, dp_reader_left(&reader));
    if (found > 1 || chunk->index >= DP_CHUNKS_MAX || chunk->bytes.size > DP_CHUNK_BYTES_MAX) {
        return DP_BADMSG;
    }
    return dp_reader_finish(&reader);
}

dp_status dp_wire_read_chunk_drop(dp_view message, dp_hash *root)
{
    dp_reader reader = read_head(message, DP_MSG_CHUNK_DROP);

    dp_read_bytes(&reader, root->bytes, sizeof root->bytes);
    return dp_reader_finish(&reader);
}

dp_status dp_wire_read_records_get(dp_view message, uint64_t *from, uint32_t *count)
{
    dp_reader reader = read_head(message, DP_MSG_RECORDS_GET);

    *from = dp_read_u64(&reader);
    *count = dp_read_u16(&reader);
    if (*from == 0 || *count == 0 || *count > DP_RECORDS_PER_MESSAGE) {
        return DP_BADMSG;
    }
    return dp_reader_finish(&reader);
}

dp_status dp_wire_read_records(dp_view message, dp_wire_records *records)
{
    dp_reader reader = read_head(message, DP_MSG_RECORDS);

    records->from = dp_read_u64(&reader);
    records->n = dp_read_u16(&reader);
    if (records->n > DP_RECORDS_PER_MESSAGE) {
        return DP_TOOBIG;
    }
    for (uint32_t i = 0; i < records->n; i++) {
        const uint32_t size = dp_read_u32(&reader);
        records->items[i].record = dp_read_view(&reader, size);
        const uint16_t cert = dp_read_u16(&reader);
        records->items[i].cert = dp_read_view(&reader, cert);
        if (reader.failed || size > DP_RECORD_WHOLE_MAX || cert > DP_CERT_OF_RECORD_BYTES_MAX) {
            return DP_BADMSG;
        }
    }
    return dp_reader_finish(&reader);
}

dp_status dp_wire_read_manifest(dp_view message, dp_view *manifest)
{
    dp_reader reader = read_head(message, DP_MSG_MANIFEST);

    *manifest = dp_read_view(&reader, dp_reader_left(&reader));
    return manifest->size <= DP_MANIFEST_BYTES_MAX ? dp_reader_finish(&reader) : DP_TOOBIG;
}

dp_status dp_wire_read_relay(dp_view message, dp_wire_relay *relay)
{
    dp_reader reader = read_head(message, DP_MSG_RELAY);

    relay->hops = dp_read_u8(&reader);
    dp_read_bytes(&reader, relay->target.bytes, sizeof relay->target.bytes);
    relay->message = dp_read_view(&reader, dp_reader_left(&reader));
    if (relay->hops > DP_RELAY_HOPS) {
        return DP_BADMSG;
    }
    return dp_reader_finish(&reader);
}
