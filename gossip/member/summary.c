#include "gossip/member/summary.h"

#include <string.h>

#include "base/assert.h"

enum { SIGNED_MAX = DP_HASH_BYTES + DP_SUMMARY_MESSAGE_MAX - DP_SIGNATURE_BYTES };

static const char summary_domain[] = "dpnode/summary/1";

void dp_summary_write(dp_writer *writer, const dp_summary *summary)
{
    dp_write_u64(writer, summary->slot);
    dp_write_bytes(writer, summary->head.bytes, sizeof summary->head.bytes);
    dp_write_u64(writer, summary->fork);
    dp_write_bytes(writer, summary->base.bytes, sizeof summary->base.bytes);
    dp_write_u64(writer, summary->round);
    dp_write_u8(writer, (uint8_t)summary->mode);
    dp_write_u8(writer, summary->has_trainer ? 1 : 0);
    dp_write_u32(writer, summary->step_us);
    dp_write_u64(writer, summary->saved_round);
    dp_write_bytes(writer, summary->saved_root.bytes, sizeof summary->saved_root.bytes);
    dp_write_u64(writer, summary->saved_bytes);
}

dp_status dp_summary_read(dp_reader *reader, dp_summary *summary)
{
    summary->slot = dp_read_u64(reader);
    dp_read_bytes(reader, summary->head.bytes, sizeof summary->head.bytes);
    summary->fork = dp_read_u64(reader);
    dp_read_bytes(reader, summary->base.bytes, sizeof summary->base.bytes);
    summary->round = dp_read_u64(reader);
    const uint8_t mode = dp_read_u8(reader);
    const uint8_t has_trainer = dp_read_u8(reader);
    summary->step_us = dp_read_u32(reader);
    summary->saved_round = dp_read_u64(reader);
    dp_read_bytes(reader, summary->saved_root.bytes, sizeof summary->saved_root.bytes);
    summary->saved_bytes = dp_read_u64(reader);
    if (reader->failed || mode > DP_MODE_LEFT || has_trainer > 1) {
        return DP_BADMSG;
    }
    summary->mode = (dp_mode)mode;
    summary->has_trainer = has_trainer == 1;
    return DP_OK;
}

/* Run id, then the message without its signature. */
static dp_view signed_part(const dp_run_id *run, dp_view unsigned_bytes,
                           uint8_t scratch[SIGNED_MAX])
{
    dp_assert(unsigned_bytes.size <= SIGNED_MAX - DP_HASH_BYTES);
    memcpy(scratch, run->bytes, DP_HASH_BYTES);
    memcpy(scratch + DP_HASH_BYTES, unsigned_bytes.data, unsigned_bytes.size);
    return dp_view_of(scratch, DP_HASH_BYTES + unsigned_bytes.size);
}

size_t dp_summary_sign(const dp_signed_summary *summary, const dp_crypto *crypto,
                       const dp_run_id *run, uint8_t message[DP_SUMMARY_MESSAGE_MAX])
{
    uint8_t scratch[SIGNED_MAX];
    dp_writer writer = dp_writer_of(message, DP_SUMMARY_MESSAGE_MAX - DP_SIGNATURE_BYTES);
    const dp_view name = dp_view_of(summary->name, strnlen(summary->name, DP_NAME_MAX));

    dp_assert(summary->sequence > 0);
    dp_write_u8(&writer, DP_MSG_SUMMARY);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, summary->peer.bytes, sizeof summary->peer.bytes);
    dp_write_u64(&writer, summary->incarnation);
    dp_write_u64(&writer, summary->sequence);
    dp_write_u8(&writer, (uint8_t)name.size);
    dp_write_view(&writer, name);
    dp_summary_write(&writer, &summary->summary);
    dp_assert(!writer.full);
    if (!crypto->sign(crypto->context, DP_KEY_IDENTITY, summary_domain,
                      signed_part(run, dp_view_of(message, writer.size), scratch),
                      message + writer.size)) {
        return 0;
    }
    return writer.size + DP_SIGNATURE_BYTES;
}

dp_status dp_summary_open(dp_view message, dp_signed_summary *summary)
{
    dp_reader reader = dp_reader_of(message);
    dp_signed_summary read = {0};

    if (dp_read_u8(&reader) != DP_MSG_SUMMARY || dp_read_u8(&reader) != DP_MSG_VERSION) {
        return DP_BADMSG;
    }
    dp_read_bytes(&reader, read.peer.bytes, sizeof read.peer.bytes);
    read.incarnation = dp_read_u64(&reader);
    read.sequence = dp_read_u64(&reader);
    const uint8_t size = dp_read_u8(&reader);
    if (size > DP_NAME_MAX) {
        return DP_BADMSG;
    }
    dp_name_clean(dp_read_view(&reader, size), read.name);
    DP_TRY(dp_summary_read(&reader, &read.summary));
    if (dp_read_view(&reader, DP_SIGNATURE_BYTES).size != DP_SIGNATURE_BYTES ||
        read.sequence == 0) {
        return DP_BADMSG;
    }
    DP_TRY(dp_reader_finish(&reader));
    *summary = read;
    return DP_OK;
}

bool dp_summary_verify(dp_view message, const dp_peer *peer, const dp_crypto *crypto,
                       const dp_run_id *run)
{
    uint8_t scratch[SIGNED_MAX];

    dp_assert(message.size > DP_SIGNATURE_BYTES && message.size <= DP_SUMMARY_MESSAGE_MAX);
    const size_t size = message.size - DP_SIGNATURE_BYTES;
    return crypto->verify(crypto->context, peer->bytes, summary_domain,
                          signed_part(run, dp_view_of(message.data, size), scratch),
                          message.data + size);
}
