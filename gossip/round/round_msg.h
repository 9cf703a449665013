/* The small messages around a round, as bytes: contributions, holdings, state votes, offers to
 * vote.
 *
 *   READY      head | 32 peer | u64 t | 32 base | 32 blob root | u64 bytes | u64 tokens | u64
 *              carried | u64 reach leased | u64 reach own | u32 steps | u32 loss | 32 state root
 *              | 64 signature; of parts then | u128 energy | u32 rate | list of its parts (part.h),
 *              of which the blob root is made
 *   HAVE       head | 32 voter | u64 t | u8 n | 32 root each: all blobs of round t that the voter
 *              holds | 64 signature by voter, domain "dpnode/have/1", over run | voter | t | n
 *              | H("dpnode/have-roots/1", the roots). On its own link a HAVE needs none
 *   STATE      head | 32 voter | u64 t | 32 state root | 64 signature with the vote key
 *   VOTER_OK   head | 32 peer | 32 vote key | 32 chain head | 64 signature */
#ifndef DP_GOSSIP_ROUND_ROUND_MSG_H
#define DP_GOSSIP_ROUND_ROUND_MSG_H

#include "gossip/record/record.h"

enum {
    DP_HAVE_MAX = 128,
    DP_ROUND_MESSAGE_MAX = 2 + 32 + 8 + 1 + DP_HAVE_MAX * 32 + DP_SIGNATURE_BYTES
};

typedef struct dp_have_msg {
    dp_peer voter;
    uint64_t round;
    uint32_t n;
    dp_hash roots[DP_HAVE_MAX];
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_have_msg;

typedef struct dp_state_msg {
    dp_peer voter;
    uint64_t round;
    dp_hash root;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_state_msg;

typedef struct dp_voter_ok_msg {
    dp_peer peer;
    uint8_t key[DP_PUBLIC_KEY_BYTES];
    dp_hash head;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_voter_ok_msg;

/* Each writes head and body. */
void dp_ready_msg_write(dp_writer *writer, const dp_ready *ready);
void dp_have_msg_write(dp_writer *writer, const dp_have_msg *have);
void dp_state_msg_write(dp_writer *writer, const dp_state_msg *state);
void dp_voter_ok_msg_write(dp_writer *writer, const dp_voter_ok_msg *offer);
/* With the identity key; false: there is none. */
bool dp_have_sign(dp_have_msg *have, const dp_crypto *crypto, const dp_run_id *run);
bool dp_have_verify(const dp_have_msg *have, const dp_crypto *crypto, const dp_run_id *run);
/* Total; signatures are not looked at. */
DP_MUST dp_status dp_ready_msg_read(dp_view message, dp_ready *ready);
DP_MUST dp_status dp_have_msg_read(dp_view message, dp_have_msg *have);
DP_MUST dp_status dp_state_msg_read(dp_view message, dp_state_msg *state);
DP_MUST dp_status dp_voter_ok_msg_read(dp_view message, dp_voter_ok_msg *offer);

#endif
