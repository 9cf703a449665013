#include "gossip/vote/commit_msg.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"

static void write_vote(dp_writer *writer, const dp_vote *vote)
{
    dp_write_u8(writer, vote->voter);
    dp_write_bytes(writer, vote->fork.bytes, DP_HASH_BYTES);
    dp_write_u64(writer, vote->slot);
    dp_write_bytes(writer, vote->prev.bytes, DP_HASH_BYTES);
    dp_write_u32(writer, vote->ballot);
    dp_write_u32(writer, vote->accepted);
    dp_write_bytes(writer, vote->hash.bytes, DP_HASH_BYTES);
    dp_write_bytes(writer, vote->signature, DP_SIGNATURE_BYTES);
}

static void read_vote(dp_reader *reader, uint8_t type, dp_vote *vote)
{
    vote->type = type;
    vote->voter = dp_read_u8(reader);
    dp_read_bytes(reader, vote->fork.bytes, DP_HASH_BYTES);
    vote->slot = dp_read_u64(reader);
    dp_read_bytes(reader, vote->prev.bytes, DP_HASH_BYTES);
    vote->ballot = dp_read_u32(reader);
    vote->accepted = dp_read_u32(reader);
    dp_read_bytes(reader, vote->hash.bytes, DP_HASH_BYTES);
    dp_read_bytes(reader, vote->signature, DP_SIGNATURE_BYTES);
}

void dp_vote_msg_write(dp_writer *writer, const dp_vote_msg *msg)
{
    const dp_vote *vote = &msg->vote;

    dp_write_u8(writer, vote->type);
    dp_write_u8(writer, DP_MSG_VERSION);
    if (vote->type == DP_MSG_NACK) {
        dp_write_u8(writer, vote->voter);
        dp_write_bytes(writer, vote->fork.bytes, DP_HASH_BYTES);
        dp_write_u64(writer, vote->slot);
        dp_write_bytes(writer, vote->prev.bytes, DP_HASH_BYTES);
        dp_write_u32(writer, vote->ballot);
        return;
    }
    write_vote(writer, vote);
    if (vote->type == DP_MSG_PROPOSE) {
        dp_assert(msg->n_just <= DP_VOTERS_MAX);
        dp_write_u8(writer, (uint8_t)msg->n_just);
        for (uint32_t i = 0; i < msg->n_just; i++) {
            dp_write_u8(writer, msg->just[i].voter);
            dp_write_u32(writer, msg->just[i].accepted);
            dp_write_bytes(writer, msg->just[i].hash.bytes, DP_HASH_BYTES);
            dp_write_bytes(writer, msg->just[i].signature, DP_SIGNATURE_BYTES);
        }
    }
    if (vote->type == DP_MSG_PROMISE || vote->type == DP_MSG_PROPOSE) {
        dp_write_u32(writer, (uint32_t)msg->record.size);
        dp_write_view(writer, msg->record);
    }
}

static void read_nack(dp_reader *reader, dp_vote *vote)
{
    vote->type = DP_MSG_NACK;
    vote->voter = dp_read_u8(reader);
    dp_read_bytes(reader, vote->fork.bytes, DP_HASH_BYTES);
    vote->slot = dp_read_u64(reader);
    dp_read_bytes(reader, vote->prev.bytes, DP_HASH_BYTES);
    vote->ballot = dp_read_u32(reader);
}

/* The promises inside a PROPOSE share its slot and ballot. */
static bool read_just(dp_reader *reader, dp_vote_msg *msg)
{
    msg->n_just = dp_read_u8(reader);
    if (msg->n_just > DP_VOTERS_MAX) {
        return false;
    }
    for (uint32_t i = 0; i < msg->n_just; i++) {
        dp_vote *promise = &msg->just[i];
        *promise = msg->vote;
        promise->type = DP_MSG_PROMISE;
        promise->voter = dp_read_u8(reader);
        promise->accepted = dp_read_u32(reader);
        dp_read_bytes(reader, promise->hash.bytes, DP_HASH_BYTES);
        dp_read_bytes(reader, promise->signature, DP_SIGNATURE_BYTES);
    }
    return true;
}

dp_status dp_vote_msg_read(dp_view message, dp_vote_msg *msg)
{
    dp_reader reader = dp_reader_of(message);
    const uint8_t type = dp_msg_type_of(message);

    memset(msg, 0, sizeof *msg);
    if (type < DP_MSG_PREPARE || type > DP_MSG_NACK || message.size > DP_VOTE_MESSAGE_MAX) {
        return DP_BADMSG;
    }
    dp_read_view(&reader, DP_MSG_HEAD_BYTES);
    if (type == DP_MSG_NACK) {
        read_nack(&reader, &msg->vote);
        return dp_reader_finish(&reader);
    }
    read_vote(&reader, type, &msg->vote);
    if (type == DP_MSG_PROPOSE && !read_just(&reader, msg)) {
        return DP_BADMSG;
    }
    if (type == DP_MSG_PROMISE || type == DP_MSG_PROPOSE) {
        const uint32_t size = dp_read_u32(&reader);
        msg->record = dp_read_view(&reader, size);
        if (size > DP_RECORD_BYTES_MAX) {
            return DP_TOOBIG;
        }
    }
    DP_TRY(dp_reader_finish(&reader));
    const bool with_record =
        type == DP_MSG_PROPOSE || (type == DP_MSG_PROMISE && msg->vote.accepted != 0);
    if (with_record != (msg->record.size > 0) ||
        (type != DP_MSG_PROMISE && msg->vote.accepted != 0)) {
        return DP_BADMSG;
    }
    if (with_record) {
        const dp_hash hash = dp_record_hash(msg->record);
        return dp_hash_equal(&hash, &msg->vote.hash) ? DP_OK : DP_BADHASH;
    }
    return type == DP_MSG_ACCEPTED || dp_hash_is_zero(&msg->vote.hash) ? DP_OK : DP_BADMSG;
}

void dp_decide_msg_write(dp_writer *writer, uint64_t slot, dp_view cert, dp_view record)
{
    dp_write_u8(writer, DP_MSG_DECIDE);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_u64(writer, slot);
    dp_write_u16(writer, (uint16_t)cert.size);
    dp_write_view(writer, cert);
    dp_write_view(writer, record);
}

dp_status dp_decide_msg_read(dp_view message, dp_decide_msg *msg)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_DECIDE) {
        return DP_BADMSG;
    }
    dp_read_view(&reader, DP_MSG_HEAD_BYTES);
    msg->slot = dp_read_u64(&reader);
    const uint16_t size = dp_read_u16(&reader);
    msg->cert = dp_read_view(&reader, size);
    msg->record = dp_read_view(&reader, dp_reader_left(&reader));
    if (size > DP_CERT_OF_RECORD_BYTES_MAX || msg->record.size > DP_RECORD_BYTES_MAX) {
        return DP_TOOBIG;
    }
    return dp_reader_finish(&reader);
}

void dp_proof_msg_write(dp_writer *writer, const dp_vote *a, const dp_vote *b)
{
    dp_write_u8(writer, DP_MSG_PROOF);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_u8(writer, a->type);
    write_vote(writer, a);
    dp_write_u8(writer, b->type);
    write_vote(writer, b);
}

dp_status dp_proof_msg_read(dp_view message, dp_vote *a, dp_vote *b)
{
    dp_reader reader = dp_reader_of(message);

    if (dp_msg_type_of(message) != DP_MSG_PROOF) {
        return DP_BADMSG;
    }
    dp_read_view(&reader, DP_MSG_HEAD_BYTES);
    read_vote(&reader, dp_read_u8(&reader), a);
    read_vote(&reader, dp_read_u8(&reader), b);
    return dp_reader_finish(&reader);
}
