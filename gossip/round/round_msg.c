#include "gossip/round/round_msg.h"

#include <string.h>

#include "base/assert.h"
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

void dp_ready_msg_write(dp_writer *writer, const dp_ready *ready)
{
    dp_assert(ready->parts.n <= DP_PARTS_MAX);
    dp_assert(ready->parted || ready->parts.n == 0);
    write_head(writer, DP_MSG_READY);
    dp_write_bytes(writer, ready->peer.bytes, 32);
    dp_write_u64(writer, ready->round);
    dp_write_bytes(writer, ready->base.bytes, 32);
    dp_write_bytes(writer, ready->root.bytes, 32);
    dp_write_u64(writer, ready->bytes);
    dp_write_u64(writer, ready->tokens);
    dp_write_u64(writer, ready->carried);
    dp_write_u64(writer, ready->reach.leased);
    dp_write_u64(writer, ready->reach.own);
    dp_write_u32(writer, ready->steps);
    dp_write_u32(writer, ready->loss_micro);
    dp_write_bytes(writer, ready->state_root.bytes, 32);
    dp_write_bytes(writer, ready->signature, DP_SIGNATURE_BYTES);
    if (ready->parted) {
        dp_write_u128(writer, ready->energy);
        dp_write_u32(writer, ready->rate);
        dp_part_list_write(writer, &ready->parts);
    }
}

/* Reads the rest of a READY of parts. Its root is that of the list. */
static bool read_ready_parts(dp_reader *reader, dp_ready *ready)
{
    ready->parted = true;
    ready->energy = dp_read_u128(reader);
    ready->rate = dp_read_u32(reader);
    if (!dp_part_list_read(reader, &ready->parts)) {
        return false;
    }
    const dp_hash root = dp_part_list_root(&ready->parts);
    return dp_hash_equal(&root, &ready->root) && dp_part_list_bytes(&ready->parts) == ready->bytes;
}

dp_status dp_ready_msg_read(dp_view message, dp_ready *ready)
{
    dp_reader reader = read_head(message, DP_MSG_READY);

    memset(ready, 0, sizeof *ready);
    dp_read_bytes(&reader, ready->peer.bytes, 32);
    ready->round = dp_read_u64(&reader);
    dp_read_bytes(&reader, ready->base.bytes, 32);
    dp_read_bytes(&reader, ready->root.bytes, 32);
    ready->bytes = dp_read_u64(&reader);
    ready->tokens = dp_read_u64(&reader);
    ready->carried = dp_read_u64(&reader);
    ready->reach.leased = dp_read_u64(&reader);
    ready->reach.own = dp_read_u64(&reader);
    ready->steps = dp_read_u32(&reader);
    ready->loss_micro = dp_read_u32(&reader);
    dp_read_bytes(&reader, ready->state_root.bytes, 32);
    dp_read_bytes(&reader, ready->signature, DP_SIGNATURE_BYTES);
    if (!reader.failed && dp_reader_left(&reader) > 0 && !read_ready_parts(&reader, ready)) {
        return DP_BADMSG;
    }
    return dp_reader_finish(&reader);
}

void dp_have_msg_write(dp_writer *writer, const dp_have_msg *have)
{
    dp_assert(have->n <= DP_HAVE_MAX);
    dp_assert(have->n <= DP_HAVE_MAX);
    write_head(writer, DP_MSG_HAVE);
    dp_write_bytes(writer, have->voter.bytes, 32);
    dp_write_u64(writer, have->round);
    dp_write_u8(writer, (uint8_t)have->n);
    for (uint32_t i = 0; i < have->n; i++) {
        dp_write_bytes(writer, have->roots[i].bytes, 32);
    }
    dp_write_bytes(writer, have->signature, DP_SIGNATURE_BYTES);
}

dp_status dp_have_msg_read(dp_view message, dp_have_msg *have)
{
    dp_reader reader = read_head(message, DP_MSG_HAVE);

    dp_read_bytes(&reader, have->voter.bytes, 32);
    have->round = dp_read_u64(&reader);
    have->n = dp_read_u8(&reader);
    if (have->n > DP_HAVE_MAX) {
        return DP_TOOBIG;
    }
    for (uint32_t i = 0; i < have->n; i++) {
        dp_read_bytes(&reader, have->roots[i].bytes, 32);
    }
    dp_read_bytes(&reader, have->signature, DP_SIGNATURE_BYTES);
    return dp_reader_finish(&reader);
}

static const char have_domain[] = "dpnode/have/1";

enum { HAVE_SIGNED_BYTES = 32 + 32 + 8 + 1 + 32 };

static dp_view have_bytes(const dp_have_msg *have, const dp_run_id *run,
                          uint8_t room[HAVE_SIGNED_BYTES])
{
    dp_writer writer = dp_writer_of(room, HAVE_SIGNED_BYTES);
    const dp_hash roots =
        dp_hash_of("dpnode/have-roots/1", dp_view_of(have->roots, have->n * sizeof have->roots[0]));

    dp_write_bytes(&writer, run->bytes, sizeof run->bytes);
    dp_write_bytes(&writer, have->voter.bytes, sizeof have->voter.bytes);
    dp_write_u64(&writer, have->round);
    dp_write_u8(&writer, (uint8_t)have->n);
    dp_write_bytes(&writer, roots.bytes, sizeof roots.bytes);
    return dp_view_of(writer.data, writer.size);
}

bool dp_have_sign(dp_have_msg *have, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[HAVE_SIGNED_BYTES];

    return crypto->sign(crypto->context, DP_KEY_IDENTITY, have_domain, have_bytes(have, run, room),
                        have->signature);
}

bool dp_have_verify(const dp_have_msg *have, const dp_crypto *crypto, const dp_run_id *run)
{
    uint8_t room[HAVE_SIGNED_BYTES];

    return crypto->verify(crypto->context, have->voter.bytes, have_domain,
                          have_bytes(have, run, room), have->signature);
}

void dp_state_msg_write(dp_writer *writer, const dp_state_msg *state)
{
    write_head(writer, DP_MSG_STATE);
    dp_write_bytes(writer, state->voter.bytes, 32);
    dp_write_u64(writer, state->round);
    dp_write_bytes(writer, state->root.bytes, 32);
    dp_write_bytes(writer, state->signature, DP_SIGNATURE_BYTES);
}

dp_status dp_state_msg_read(dp_view message, dp_state_msg *state)
{
    dp_reader reader = read_head(message, DP_MSG_STATE);

    dp_read_bytes(&reader, state->voter.bytes, 32);
    state->round = dp_read_u64(&reader);
    dp_read_bytes(&reader, state->root.bytes, 32);
    dp_read_bytes(&reader, state->signature, DP_SIGNATURE_BYTES);
    return dp_reader_finish(&reader);
}

void dp_voter_ok_msg_write(dp_writer *writer, const dp_voter_ok_msg *offer)
{
    write_head(writer, DP_MSG_VOTER_OK);
    dp_write_bytes(writer, offer->peer.bytes, 32);
    dp_write_bytes(writer, offer->key, DP_PUBLIC_KEY_BYTES);
    dp_write_bytes(writer, offer->head.bytes, 32);
    dp_write_bytes(writer, offer->signature, DP_SIGNATURE_BYTES);
}

dp_status dp_voter_ok_msg_read(dp_view message, dp_voter_ok_msg *offer)
{
    dp_reader reader = read_head(message, DP_MSG_VOTER_OK);

    dp_read_bytes(&reader, offer->peer.bytes, 32);
    dp_read_bytes(&reader, offer->key, DP_PUBLIC_KEY_BYTES);
    dp_read_bytes(&reader, offer->head.bytes, 32);
    dp_read_bytes(&reader, offer->signature, DP_SIGNATURE_BYTES);
    return dp_reader_finish(&reader);
}
