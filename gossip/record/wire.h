/* Messages that move stored things: object information, chunks, records, the manifest, and the
 * envelope that carries a message for somebody else. Encoders write head and body; decoders are
 * total, and lend from the bytes they are given.
 *
 *   INFO_GET     head | 32 root
 *   INFO         head | 32 root | u64 size | leaves, 32 each, as many as the size has chunks
 *   CHUNK_GET    head | 32 root | u32 index
 *   CHUNK        head | 32 root | u32 index | u8 found | bytes of the chunk (none if not found)
 *   CHUNK_DROP   head | 32 root
 *   RECORDS_GET  head | u64 from | u16 count
 *   RECORDS      head | u64 from | u16 n | n times {u32 size, record, u16 size, certificate}: slots
 *                from, from+1, ...
 *   MANIFEST_GET head
 *   MANIFEST     head | canonical bytes
 *   RELAY        head | u8 hops left | 32 target | message */
#ifndef DP_GOSSIP_RECORD_WIRE_H
#define DP_GOSSIP_RECORD_WIRE_H

#include "gossip/core/msg.h"
#include "gossip/record/record.h"

enum {
    DP_RECORDS_PER_MESSAGE = 64,
    DP_RELAY_HOPS = 2,
    DP_RELAY_HEAD_BYTES = DP_MSG_HEAD_BYTES + 1 + DP_PUBLIC_KEY_BYTES,
    DP_CHUNK_HEAD_BYTES = DP_MSG_HEAD_BYTES + DP_HASH_BYTES + 4 + 1,
    DP_INFO_BYTES_MAX = DP_MSG_HEAD_BYTES + DP_HASH_BYTES + 8 + DP_CHUNKS_MAX * DP_HASH_BYTES
};
/* One record with all its lists is larger than any other message, and travels beside them (bulk
 * lane). */
enum {
    DP_RECORDS_BYTES_MAX =
        DP_MSG_HEAD_BYTES + 8 + 2 + 4 + DP_RECORD_WHOLE_MAX + 2 + DP_CERT_OF_RECORD_BYTES_MAX
};
_Static_assert((int)DP_RECORDS_BYTES_MAX >= (int)DP_MESSAGE_MAX, "room for any RECORDS");
_Static_assert((int)DP_INFO_BYTES_MAX <= (int)DP_MESSAGE_MAX,
               "information on any object fits in one message");

typedef struct dp_wire_chunk {
    dp_hash root;
    uint32_t index;
    bool found;
    dp_view bytes;
} dp_wire_chunk;

typedef struct dp_wire_info {
    dp_hash root;
    uint64_t size;
    uint32_t n_leaves;
    const uint8_t *leaves; /* n_leaves * 32 bytes, not aligned */
} dp_wire_info;

typedef struct dp_wire_record {
    dp_view record;
    dp_view cert;
} dp_wire_record;

typedef struct dp_wire_records {
    uint64_t from;
    uint32_t n;
    dp_wire_record items[DP_RECORDS_PER_MESSAGE];
} dp_wire_records;

typedef struct dp_wire_relay {
    uint8_t hops;
    dp_peer target;
    dp_view message;
} dp_wire_relay;

/* Encoders; the writer tells whether it fitted. */
void dp_wire_write_info_get(dp_writer *writer, const dp_hash *root);
void dp_wire_write_info(dp_writer *writer, const dp_hash *root, uint64_t size,
                        const dp_hash *leaves);
void dp_wire_write_chunk_get(dp_writer *writer, const dp_hash *root, uint32_t index);
/* Everything before the bytes of the chunk. */
void dp_wire_write_chunk_head(dp_writer *writer, const dp_hash *root, uint32_t index, bool found);
/* The sender no longer wants the chunks of this object that it asked for and that are not sent
 * yet. */
void dp_wire_write_chunk_drop(dp_writer *writer, const dp_hash *root);
void dp_wire_write_records_get(dp_writer *writer, uint64_t from, uint32_t count);
/* RECORDS in three steps: begin, add until it says false (full: send, begin anew), end. Full is
 * DP_MESSAGE_MAX, but for one large record alone, for which the writer needs
 * DP_RECORDS_BYTES_MAX. */
void dp_wire_begin_records(dp_writer *writer, uint64_t from);
bool dp_wire_add_record(dp_writer *writer, dp_view record, dp_view cert);
void dp_wire_write_manifest_get(dp_writer *writer);
void dp_wire_write_manifest(dp_writer *writer, dp_view manifest);
void dp_wire_write_relay(dp_writer *writer, uint8_t hops, const dp_peer *target, dp_view message);

DP_MUST dp_status dp_wire_read_info_get(dp_view message, dp_hash *root);
/* DP_BADHASH unless root follows from size and leaves. */
DP_MUST dp_status dp_wire_read_info(dp_view message, dp_wire_info *info,
                                    dp_hash leaves[DP_CHUNKS_MAX]);
DP_MUST dp_status dp_wire_read_chunk_get(dp_view message, dp_hash *root, uint32_t *index);
DP_MUST dp_status dp_wire_read_chunk(dp_view message, dp_wire_chunk *chunk);
DP_MUST dp_status dp_wire_read_chunk_drop(dp_view message, dp_hash *root);
DP_MUST dp_status dp_wire_read_records_get(dp_view message, uint64_t *from, uint32_t *count);
DP_MUST dp_status dp_wire_read_records(dp_view message, dp_wire_records *records);
DP_MUST dp_status dp_wire_read_manifest(dp_view message, dp_view *manifest);
DP_MUST dp_status dp_wire_read_relay(dp_view message, dp_wire_relay *relay);

#endif
