/* Statements that nodes sign for the chain: contributions, states, offers to vote, removals, lives,
 * votes, and the statements of the root key. Types, their signatures and the checks of those;
 * valid.h decides which node may make which statement. */
#ifndef DP_GOSSIP_RECORD_SIGNED_WORDS_H
#define DP_GOSSIP_RECORD_SIGNED_WORDS_H

#include "base/run/reach.h"
#include "gossip/core/limits.h"
#include "gossip/record/part.h"

/* A trainer's claim for round t on this base; signed with its identity key, domain
 * "dpnode/ready/2", over run | fork | t | base | blob root | blob bytes | tokens | steps | carried
 * | reach | loss | state root; of parts with domain "dpnode/ready/3", and energy | rate after them:
 * the blob root is that of the list of its parts. */
typedef struct dp_ready {
    dp_peer peer;
    uint64_t round;
    dp_hash base;
    dp_hash root;
    uint64_t bytes;
    uint64_t tokens;
    uint64_t carried;
    /* samples behind the author: the samples of tokens and carried are below it (lease.h) */
    dp_reach reach;
    uint32_t steps;
    uint32_t loss_micro;
    dp_hash state_root; /* after round t-1 */
    bool parted;
    unsigned __int128 energy; /* parted: of the whole update, as its author says */
    uint32_t rate;            /* parted: of the author's uplink, kB/s; 0: unknown */
    dp_part_list parts;       /* parted: n = 0 where it is known from a record only */
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_ready;

typedef struct dp_seal {
    uint8_t voter; /* index in the voters of the slot */
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_seal;

/* ABSENT: away for long, and its place is wanted; by the chain alone, so nobody signs it, and only
 * records have it. */
typedef enum dp_remove_reason {
    DP_REMOVE_LEFT = 1,
    DP_REMOVE_REVOKED = 2,
    DP_REMOVE_ABSENT = 3,
    DP_REMOVE_HARMFUL = 4
} dp_remove_reason;

/* A voter's word that a member does harm (harm.h). */
typedef struct dp_harm_seal {
    uint8_t voter; /* index in the voters of the slot */
    uint64_t round;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_harm_seal;

/* HARMFUL: by the statements of a majority of the voters; only records have it. LEFT is signed by
 * the peer; REVOKED by the key that stands in by: the run's root key, or an admin, which may remove
 * members that are not admins. Domain "dpnode/remove/1" over run | peer
 * | reason | incarnation | by, if revoked. */
typedef struct dp_remove {
    dp_peer peer;
    dp_remove_reason reason;
    uint64_t incarnation;
    dp_peer by; /* REVOKED; else zero */
    uint8_t signature[DP_SIGNATURE_BYTES];
    uint32_t n_seals; /* HARMFUL; else 0 */
    dp_harm_seal seals[DP_VOTERS_MAX];
} dp_remove;

typedef struct dp_fence {
    dp_peer peer;
    uint64_t incarnation;
} dp_fence;

typedef struct dp_voter {
    dp_peer peer;
    uint8_t key[DP_PUBLIC_KEY_BYTES];
} dp_voter;

/* kept: stands with this key in the chain already. Else signature is its VOTER_OK: identity key,
 * domain "dpnode/voter/1", over run | prev | vote key. */
typedef struct dp_voter_entry {
    dp_voter voter;
    bool kept;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_voter_entry;

/* Sign and verify. Each gives false without the key, or if the signature does not verify. */
bool dp_ready_sign(dp_ready *ready, const dp_crypto *crypto, const dp_run_id *run,
                   const dp_hash *fork);
bool dp_ready_verify(const dp_ready *ready, const dp_crypto *crypto, const dp_run_id *run,
                     const dp_hash *fork);
/* STATE: vote key, domain "dpnode/state-vote/1", over run | fork | t | root. */
bool dp_state_sign(const dp_crypto *crypto, const dp_run_id *run, const dp_hash *fork,
                   uint64_t round, const dp_hash *root, uint8_t signature[DP_SIGNATURE_BYTES]);
bool dp_state_verify(const dp_crypto *crypto, const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                     const dp_run_id *run, const dp_hash *fork, uint64_t round, const dp_hash *root,
                     const uint8_t signature[DP_SIGNATURE_BYTES]);

bool dp_voter_ok_sign(const dp_crypto *crypto, const dp_run_id *run, const dp_hash *prev,
                      const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                      uint8_t signature[DP_SIGNATURE_BYTES]);
bool dp_voter_ok_verify(const dp_crypto *crypto, const dp_peer *peer, const dp_run_id *run,
                        const dp_hash *prev, const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                        const uint8_t signature[DP_SIGNATURE_BYTES]);

/* A node's word that one of its lives takes part in an exchange with asker, signed with its
 * identity key (domain "dpnode/life/2") and given to asker with the exchange. A request for a fence
 * shows it: nobody else can ask, and for no other life. */
typedef struct dp_fence_ask {
    dp_fence fence; /* the life that signs */
    dp_peer asker;
    uint8_t exchange[16];
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_fence_ask;

/* False: there is no key. */
bool dp_life_sign(dp_fence_ask *ask, const dp_crypto *crypto, const dp_run_id *run);
bool dp_life_verify(const dp_fence_ask *ask, const dp_crypto *crypto, const dp_run_id *run);
/* key: DP_KEY_IDENTITY or DP_KEY_ROOT, whose public half stands in peer or by. */
bool dp_remove_sign(dp_remove *remove, const dp_crypto *crypto, int key, const dp_run_id *run);
/* The signature alone; whether by may revoke is dp_ledger_may_revoke. */
bool dp_remove_verify(const dp_remove *remove, const dp_crypto *crypto, const dp_run_id *run);
/* The same bytes in records and in messages. */
void dp_remove_write(dp_writer *writer, const dp_remove *remove);
bool dp_remove_read(dp_reader *reader, dp_remove *remove);

/* One vote of the protocol of votes (commit.h); vote key, domain "dpnode/vote/1", over type | run
 * | fork | slot | prev | ballot | accepted + 1 (0: none) | record hash. */
typedef struct dp_vote {
    uint8_t type;  /* DP_MSG_PREPARE, PROMISE, PROPOSE or ACCEPTED */
    uint8_t voter; /* index of the signer in the voters of the slot */
    dp_hash fork;
    uint64_t slot;
    dp_hash prev;
    uint32_t ballot;
    uint32_t accepted; /* PROMISE: accepted ballot + 1, 0 for none; else 0 */
    /* PROMISE: of the accepted record, or zero; PROPOSE, ACCEPTED: of the record; PREPARE: zero */
    dp_hash hash;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_vote;

bool dp_vote_sign(dp_vote *vote, const dp_crypto *crypto, const dp_run_id *run);
bool dp_vote_verify(const dp_vote *vote, const dp_crypto *crypto, const dp_run_id *run,
                    const uint8_t vote_key[DP_PUBLIC_KEY_BYTES]);

/* bytes: a FORK record; signs and fills in its last 64 bytes. False without the root key. */
bool dp_fork_sign(const dp_crypto *crypto, uint8_t *bytes, size_t size);
bool dp_fork_verify(const dp_crypto *crypto, dp_view bytes,
                    const uint8_t root[DP_PUBLIC_KEY_BYTES]);

/* Of the fork loser, which ends in favour of survivor; gossip/catchup/fork.h. */
bool dp_stop_sign(const dp_crypto *crypto, const dp_run_id *run, const dp_hash *loser,
                  const dp_hash *survivor, uint8_t signature[DP_SIGNATURE_BYTES]);
bool dp_stop_verify(const dp_crypto *crypto, const dp_run_id *run,
                    const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_hash *loser,
                    const dp_hash *survivor, const uint8_t signature[DP_SIGNATURE_BYTES]);

#endif
