#include "gossip/pairs/mix_msg.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/ledger/weights.h"

enum { ROW_VERSION = 4, ROW_VERSION_3 = 3, BIT_INITIATOR = 1, BIT_F = 2 };
_Static_assert((int)DP_MIX_ROW_BYTES <= (int)DP_MIX_ROW_MAX, "a row fits");

dp_mix_id dp_mix_id_of(const dp_peer *a, uint64_t incarnation, uint64_t number)
{
    dp_digest digest;
    dp_mix_id id;

    dp_digest_init(&digest, "dpnode/exchange/1");
    dp_digest_add(&digest, dp_view_of(a->bytes, sizeof a->bytes));
    dp_digest_add_u64(&digest, incarnation);
    dp_digest_add_u64(&digest, number);
    const dp_hash hash = dp_digest_end(&digest);
    memcpy(id.bytes, hash.bytes, sizeof id.bytes);
    return id;
}

bool dp_mix_id_equal(const dp_mix_id *x, const dp_mix_id *y)
{
    return memcmp(x->bytes, y->bytes, sizeof x->bytes) == 0;
}

bool dp_mix_pair_equal(const dp_mix_pair *x, const dp_mix_pair *y)
{
    return dp_hash_equal(&x->root_a, &y->root_a) && dp_hash_equal(&x->root_b, &y->root_b) &&
           x->incarnation_a == y->incarnation_a && x->incarnation_b == y->incarnation_b;
}

static void write_terms(dp_writer *writer, const dp_mix_terms *terms)
{
    dp_write_bytes(writer, terms->root.bytes, sizeof terms->root.bytes);
    dp_write_u64(writer, terms->bytes);
    dp_write_u32(writer, terms->steps);
    dp_write_u64(writer, terms->tokens);
    dp_write_u64(writer, terms->incarnation);
    dp_write_u64(writer, terms->reach.leased);
    dp_write_u64(writer, terms->reach.own);
}

static void read_terms(dp_reader *reader, dp_mix_terms *terms, bool has_reach)
{
    dp_read_bytes(reader, terms->root.bytes, sizeof terms->root.bytes);
    terms->bytes = dp_read_u64(reader);
    terms->steps = dp_read_u32(reader);
    terms->tokens = dp_read_u64(reader);
    terms->incarnation = dp_read_u64(reader);
    if (has_reach) {
        terms->reach.leased = dp_read_u64(reader);
        terms->reach.own = dp_read_u64(reader);
    }
}

void dp_mix_msg_write(dp_writer *writer, const dp_mix_msg *msg)
{
    dp_write_u8(writer, (uint8_t)msg->type);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_bytes(writer, msg->id.bytes, sizeof msg->id.bytes);
    dp_write_u64(writer, msg->type == DP_MSG_MIX_OFFER ? msg->number : msg->ticket);
    if (msg->type == DP_MSG_MIX_ACK) {
        dp_write_u8(writer, msg->prepared ? 1 : 0);
    }
    if (msg->type == DP_MSG_MIX_STATUS) {
        dp_write_u8(writer, (uint8_t)msg->status);
    } else if (msg->type == DP_MSG_MIX_OFFER || msg->type == DP_MSG_MIX_ACK) {
        dp_write_bytes(writer, msg->base.bytes, sizeof msg->base.bytes);
        write_terms(writer, &msg->terms);
        if (msg->type == DP_MSG_MIX_ACK) {
            dp_write_bytes(writer, msg->life, sizeof msg->life);
        }
    } else {
        dp_write_bytes(writer, msg->pair.root_a.bytes, sizeof msg->pair.root_a.bytes);
        dp_write_bytes(writer, msg->pair.root_b.bytes, sizeof msg->pair.root_b.bytes);
        dp_write_u64(writer, msg->pair.incarnation_a);
        dp_write_u64(writer, msg->pair.incarnation_b);
    }
}

void dp_mix_msg_send(const dp_mix_msg *msg, const dp_peer *to, dp_out *out)
{
    uint8_t bytes[DP_MIX_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_mix_msg_write(&writer, msg);
    dp_assert(!writer.full);
    dp_out_send(out, to, dp_out_keep(out, dp_view_of(bytes, writer.size)));
}

dp_status dp_mix_msg_read(dp_view bytes, dp_mix_msg *msg)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_mix_msg read = {0};
    const uint8_t type = dp_read_u8(&reader);
    const uint8_t version = dp_read_u8(&reader);

    if (reader.failed || type < DP_MSG_MIX_OFFER || type > DP_MSG_MIX_STATUS) {
        return DP_BADMSG;
    }
    if (version != DP_MSG_VERSION) {
        return DP_VERSION;
    }
    read.type = (dp_msg_type)type;
    dp_read_bytes(&reader, read.id.bytes, sizeof read.id.bytes);
    const uint64_t count = dp_read_u64(&reader);
    if (type == DP_MSG_MIX_OFFER) {
        read.number = count;
    } else {
        read.ticket = count;
    }
    if (type == DP_MSG_MIX_ACK) {
        const uint8_t prepared = dp_read_u8(&reader);
        if (prepared > 1) {
            return DP_BADMSG;
        }
        read.prepared = prepared == 1;
    }
    if (type == DP_MSG_MIX_STATUS) {
        const uint8_t status = dp_read_u8(&reader);
        if (status != DP_MIX_STATUS_ABORTED && status != DP_MIX_STATUS_CLOSED) {
            return DP_BADMSG;
        }
        read.status = (dp_mix_status)status;
    } else if (type == DP_MSG_MIX_OFFER || type == DP_MSG_MIX_ACK) {
        dp_read_bytes(&reader, read.base.bytes, sizeof read.base.bytes);
        read_terms(&reader, &read.terms, true);
        if (type == DP_MSG_MIX_ACK) {
            dp_read_bytes(&reader, read.life, sizeof read.life);
        }
    } else {
        dp_read_bytes(&reader, read.pair.root_a.bytes, sizeof read.pair.root_a.bytes);
        dp_read_bytes(&reader, read.pair.root_b.bytes, sizeof read.pair.root_b.bytes);
        read.pair.incarnation_a = dp_read_u64(&reader);
        read.pair.incarnation_b = dp_read_u64(&reader);
    }
    DP_TRY(dp_reader_finish(&reader));
    *msg = read;
    return DP_OK;
}

bool dp_mix_may_carry(dp_msg_type type)
{
    return type == DP_MSG_MIX_COMMIT || type == DP_MSG_MIX_DONE || type == DP_MSG_MIX_STATUS;
}

void dp_mix_signed_write(dp_writer *writer, const dp_mix_signed *word)
{
    dp_write_u8(writer, DP_MSG_MIX_SIGNED);
    dp_write_u8(writer, DP_MSG_VERSION);
    dp_write_bytes(writer, word->author.bytes, sizeof word->author.bytes);
    dp_write_bytes(writer, word->signature, sizeof word->signature);
    dp_write_view(writer, word->message);
}

dp_status dp_mix_signed_read(dp_view bytes, dp_mix_signed *word)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_mix_signed read = {0};
    const uint8_t type = dp_read_u8(&reader);
    const uint8_t version = dp_read_u8(&reader);

    if (reader.failed || type != DP_MSG_MIX_SIGNED) {
        return DP_BADMSG;
    }
    if (version != DP_MSG_VERSION) {
        return DP_VERSION;
    }
    dp_read_bytes(&reader, read.author.bytes, sizeof read.author.bytes);
    dp_read_bytes(&reader, read.signature, sizeof read.signature);
    read.message = dp_read_view(&reader, dp_reader_left(&reader));
    DP_TRY(dp_reader_finish(&reader));
    if (read.message.size > DP_MIX_MESSAGE_MAX ||
        !dp_mix_may_carry((dp_msg_type)dp_msg_type_of(read.message))) {
        return DP_BADMSG;
    }
    *word = read;
    return DP_OK;
}

void dp_mix_row_write(const dp_mix_row *row, uint8_t bytes[DP_MIX_ROW_BYTES])
{
    dp_writer writer = dp_writer_of(bytes, DP_MIX_ROW_BYTES);

    dp_write_u8(&writer, ROW_VERSION);
    dp_write_u8(&writer, (uint8_t)row->mark);
    dp_write_u8(&writer,
                (uint8_t)((row->initiator ? BIT_INITIATOR : 0) | (row->has_f ? BIT_F : 0)));
    dp_write_bytes(&writer, row->id.bytes, sizeof row->id.bytes);
    dp_write_u64(&writer, row->order);
    dp_write_u64(&writer, row->number);
    dp_write_u64(&writer, row->ticket);
    dp_write_bytes(&writer, row->peer.bytes, sizeof row->peer.bytes);
    dp_write_bytes(&writer, row->base.bytes, sizeof row->base.bytes);
    write_terms(&writer, &row->own);
    write_terms(&writer, &row->other);
    dp_write_bytes(&writer, row->f_root.bytes, sizeof row->f_root.bytes);
    dp_write_u64(&writer, row->f_bytes);
    dp_write_bytes(&writer, row->life, sizeof row->life);
    dp_write_u32(&writer, row->damp);
    dp_assert(!writer.full && writer.size == DP_MIX_ROW_BYTES);
}

dp_status dp_mix_row_read(dp_view bytes, dp_mix_row *row)
{
    dp_reader reader = dp_reader_of(bytes);
    dp_mix_row read = {0};
    const uint8_t version = dp_read_u8(&reader);
    const uint8_t mark = dp_read_u8(&reader);
    const uint8_t bits = dp_read_u8(&reader);

    if (reader.failed) {
        return DP_BADMSG;
    }
    if (version != ROW_VERSION && version != ROW_VERSION_3) {
        return DP_VERSION;
    }
    read.initiator = (bits & BIT_INITIATOR) != 0;
    read.has_f = (bits & BIT_F) != 0;
    if (mark < DP_MIX_MARK_PREPARED || mark > DP_MIX_MARK_DONE || bits > (BIT_INITIATOR | BIT_F) ||
        (mark == DP_MIX_MARK_ASKED && !read.initiator) ||
        (mark == DP_MIX_MARK_COMMITTED && read.initiator)) {
        return DP_BADMSG;
    }
    read.mark = (dp_mix_mark)mark;
    dp_read_bytes(&reader, read.id.bytes, sizeof read.id.bytes);
    read.order = dp_read_u64(&reader);
    read.number = dp_read_u64(&reader);
    read.ticket = dp_read_u64(&reader);
    dp_read_bytes(&reader, read.peer.bytes, sizeof read.peer.bytes);
    dp_read_bytes(&reader, read.base.bytes, sizeof read.base.bytes);
    read_terms(&reader, &read.own, version == ROW_VERSION);
    read_terms(&reader, &read.other, version == ROW_VERSION);
    dp_read_bytes(&reader, read.f_root.bytes, sizeof read.f_root.bytes);
    read.f_bytes = dp_read_u64(&reader);
    dp_read_bytes(&reader, read.life, sizeof read.life);
    if (version == ROW_VERSION_3) {
        read.own.reach.leased = dp_read_u64(&reader);
        read.own.reach.own = dp_read_u64(&reader);
        read.damp = DP_CLIP_ONE;
    } else {
        read.damp = dp_read_u32(&reader);
    }
    DP_TRY(dp_reader_finish(&reader));
    if (read.damp > DP_CLIP_ONE) {
        return DP_BADMSG;
    }
    *row = read;
    return DP_OK;
}
