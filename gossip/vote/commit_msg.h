/* The messages of one slot's vote as bytes. commit.h describes their meaning.
 *
 *   vote      u8 voter | 32 fork | u64 slot | 32 prev | u32 ballot | u32 accepted + 1 | 32 hash
 *             | 64 signature
 *   PREPARE   head | vote
 *   PROMISE   head | vote | u32 size | accepted record (size 0: none)
 *   PROPOSE   head | vote | u8 n | n times {u8 voter, u32 accepted + 1, 32 hash, 64 signature of
 *             PROMISE} | u32 size | record
 *   ACCEPTED  head | vote
 *   NACK      head | u8 voter | 32 fork | u64 slot | 32 prev | u32 promised: a hint, unsigned
 *   DECIDE    head | u64 slot | u16 size | certificate | record, to the end
 *   PROOF     head | u8 type | vote | u8 type | vote: of one voter, and no honest one signs both
 *             (witness.h) */
#ifndef DP_GOSSIP_VOTE_COMMIT_MSG_H
#define DP_GOSSIP_VOTE_COMMIT_MSG_H

#include "gossip/record/record.h"

enum {
    DP_VOTE_BYTES = 1 + 32 + 8 + 32 + 4 + 4 + 32 + DP_SIGNATURE_BYTES,
    DP_VOTE_MESSAGE_MAX = 2 + DP_VOTE_BYTES + 1 + DP_VOTERS_MAX * 101 + 4 + DP_RECORD_BYTES_MAX
};
_Static_assert((int)DP_VOTE_MESSAGE_MAX <= (int)DP_MESSAGE_MAX, "a PROPOSE fits in one message");

/* PREPARE, PROMISE, PROPOSE, ACCEPTED and NACK (ballot: the sender's promise). */
typedef struct dp_vote_msg {
    dp_vote vote;
    dp_view record;  /* PROMISE, PROPOSE */
    uint32_t n_just; /* PROPOSE */
    dp_vote just[DP_VOTERS_MAX];
} dp_vote_msg;

/* Head and body by msg->vote.type. */
void dp_vote_msg_write(dp_writer *writer, const dp_vote_msg *msg);
/* Total. Signatures are not looked at; a record must have the hash that the vote names. */
DP_MUST dp_status dp_vote_msg_read(dp_view message, dp_vote_msg *msg);

typedef struct dp_decide_msg {
    uint64_t slot;
    dp_view cert;
    dp_view record;
} dp_decide_msg;

void dp_decide_msg_write(dp_writer *writer, uint64_t slot, dp_view cert, dp_view record);
DP_MUST dp_status dp_decide_msg_read(dp_view message, dp_decide_msg *msg);

void dp_proof_msg_write(dp_writer *writer, const dp_vote *a, const dp_vote *b);
DP_MUST dp_status dp_proof_msg_read(dp_view message, dp_vote *a, dp_vote *b);

#endif
