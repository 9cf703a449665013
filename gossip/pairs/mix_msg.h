/* Messages and journal rows of the pair exchange: structs and bytes. mix.h describes their meaning.
 *
 * Messages, little-endian, after type and version:
 *     MIX_OFFER   16 id | u64 number | 32 base | terms of a
 *     MIX_ACK     16 id | u64 ticket | u8 prepared | 32 base | terms of b | 64 b's word for its
 *                 life (dp_life_sign)
 *     MIX_COMMIT  16 id | u64 ticket | pair
 *     MIX_DONE    16 id | u64 ticket | pair
 *     MIX_STATUS  16 id | u64 ticket | u8 1 ABORTED, 2 CLOSED
 *     MIX_SIGNED  32 author | 64 signature | COMMIT, DONE or STATUS, with its head: inside a RELAY,
 *                 where there is no link. Signed with the author's identity key, domain
 *                 "dpnode/mix/1": run, receiver, the message
 *   terms: 32 root of the blob | u64 its bytes | u32 steps | u64 tokens | u64 incarnation | u64
 *          reach leased | u64 reach own: of the samples in the blob
 *   pair:  32 root of a's blob | 32 root of b's | u64 incarnation of a | u64 of b
 * id = first 16 bytes of H("dpnode/exchange/1", a, a's incarnation, number); number counts a's
 * offers of an incarnation. The ticket is b's: new for each acceptance, so that a late COMMIT of an
 * attempt that b gave up never meets another attempt.
 *
 * Row: u8 version 4 | u8 mark | u8 bits: 1 this node is a, 2 F is here | 16 id | u64 order of rows
 *     | u64 number | u64 ticket | 32 peer | 32 base | own terms | other terms | 32 root of F
 *     | u64 bytes of F | 64 the other's word for its life, zero where this node is b
 *     | u32 damp (dp_weight_pair), Q16.
 *     Version 3, which is read too, has terms without reach, and that of F in place of damp, which
 *     is 65536. Earlier ones are of runs whose records had no leases: refused. */
#ifndef DP_GOSSIP_PAIRS_MIX_MSG_H
#define DP_GOSSIP_PAIRS_MIX_MSG_H

#include "gossip/core/msg.h"
#include "gossip/pairs/mix.h"

enum {
    DP_MIX_TERMS_BYTES = 32 + 8 + 4 + 8 + 8 + 16,
    DP_MIX_PAIR_BYTES = 32 + 32 + 8 + 8,
    DP_MIX_MESSAGE_MAX =
        DP_MSG_HEAD_BYTES + 16 + 8 + 1 + 32 + DP_MIX_TERMS_BYTES + DP_SIGNATURE_BYTES,
    DP_MIX_SIGNED_MAX =
        DP_MSG_HEAD_BYTES + DP_PUBLIC_KEY_BYTES + DP_SIGNATURE_BYTES + DP_MIX_MESSAGE_MAX,
    DP_MIX_ROW_BYTES =
        3 + 16 + 8 + 8 + 8 + 32 + 32 + 2 * DP_MIX_TERMS_BYTES + 32 + 8 + DP_SIGNATURE_BYTES + 4
};

typedef enum dp_mix_status { DP_MIX_STATUS_ABORTED = 1, DP_MIX_STATUS_CLOSED = 2 } dp_mix_status;

typedef struct dp_mix_terms {
    dp_hash root;
    uint64_t bytes;
    uint32_t steps;
    uint64_t tokens;
    uint64_t incarnation;
    dp_reach reach;
} dp_mix_terms;

typedef struct dp_mix_pair {
    dp_hash root_a;
    dp_hash root_b;
    uint64_t incarnation_a;
    uint64_t incarnation_b;
} dp_mix_pair;

typedef struct dp_mix_id {
    uint8_t bytes[DP_EXCHANGE_BYTES];
} dp_mix_id;

/* One message of any type; fields that it does not name are zero. */
typedef struct dp_mix_msg {
    dp_msg_type type;
    dp_mix_id id;
    uint64_t number;
    uint64_t ticket;
    bool prepared;
    dp_mix_status status;
    dp_hash base;
    dp_mix_terms terms;
    dp_mix_pair pair;
    uint8_t life[DP_SIGNATURE_BYTES];
} dp_mix_msg;

typedef struct dp_mix_row {
    dp_mix_mark mark;
    bool initiator;
    bool has_f;
    dp_mix_id id;
    uint64_t order;
    uint64_t number;
    uint64_t ticket;
    dp_peer peer;
    dp_hash base;
    dp_mix_terms own;
    dp_mix_terms other;
    dp_hash f_root;
    uint64_t f_bytes;
    uint8_t life[DP_SIGNATURE_BYTES]; /* of b; where this node is a */
    uint32_t damp;                    /* from PREPARED on */
} dp_mix_row;

dp_mix_id dp_mix_id_of(const dp_peer *a, uint64_t incarnation, uint64_t number);
bool dp_mix_id_equal(const dp_mix_id *x, const dp_mix_id *y);
bool dp_mix_pair_equal(const dp_mix_pair *x, const dp_mix_pair *y);

/* Head and body; any writer of DP_MIX_MESSAGE_MAX has room. */
void dp_mix_msg_write(dp_writer *writer, const dp_mix_msg *msg);
/* On the link with to. */
void dp_mix_msg_send(const dp_mix_msg *msg, const dp_peer *to, dp_out *out);
/* DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_mix_msg_read(dp_view bytes, dp_mix_msg *msg);

/* A word of an exchange that others carry. */
typedef struct dp_mix_signed {
    dp_peer author;
    uint8_t signature[DP_SIGNATURE_BYTES];
    dp_view message; /* borrowed from the bytes that were read */
} dp_mix_signed;

/* May another member carry this message? Yes for COMMIT, DONE and STATUS, which end an exchange in
 * doubt. The messages that begin one need a link anyway, for the blobs. */
bool dp_mix_may_carry(dp_msg_type type);
void dp_mix_signed_write(dp_writer *writer, const dp_mix_signed *word);
/* Looks at the type of the message inside, not at the signature. DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_mix_signed_read(dp_view bytes, dp_mix_signed *word);

void dp_mix_row_write(const dp_mix_row *row, uint8_t bytes[DP_MIX_ROW_BYTES]);
DP_MUST dp_status dp_mix_row_read(dp_view bytes, dp_mix_row *row);

#endif
