/* Records: what a slot of the chain decides, their certificates, and the signed pieces that they
 * carry. Bytes and shapes only; whether a record may stand in a given chain is valid.h's question.
 *
 * A record, little-endian; its hash is H("dpnode/record/1", its voted form) and depends on no
 * ballot. The voted form is all of these bytes but lists:
 *     0  u8   version 2
 *     1  u8   kind, dp_record_kind
 *     2  u8   flags: bit 0 a config part follows the body; bit 1 a ROUND of parts (part.h); bit 2 a
 *             ROUND some contributions of which are of the round before; bit 3 a ROUND whose lines
 *             were slow, bit 4 one whose lines were free, never both (density.h); bit 5 a ROUND
 *             whose contributions stand in lists (listing.h); bit 6, never without bit 0, the
 *             config part ends with a list of revoked invites; bit 7, never without bit 0 nor in a
 *             FORK, it ends with a rotation of the join secret
 *     3  32   run id
 *    35  32   fork: zero, or the hash of the FORK record
 *    67  u64  slot
 *    75  32   prev: hash of the record of slot - 1; run id for slot 1
 *   107  u64  time, unix ms
 *   115       with bit 5: u16 size of the voted form; then
 *             body of a ROUND or a FORK; nothing for a CONFIG
 * Body of a ROUND:
 *        u64 round t | 32 base | 32 state root after round t-1 | u32 alpha Q16 | u64 T, tokens so
 *          far
 *        | u128 W | u128 M, clip median
 *        | u8 n, then n times STATE signature {u8 voter, 64 signature}: voter indexes rising
 *        | u8 n listed, then per contribution, peers rising:
 *             32 peer | 32 blob root | u64 blob bytes | u64 tokens | u64 carried | u64 reach leased
 *               | u64 reach own
 *             | u32 steps | u32 loss | 64 READY signature | u128 energy | u64 w | u32 clip Q16
 *               | u32 q Q31
 *        | u8 n late, then 32 peer each, rising
 *        of parts: each contribution has u32 rate behind q, and its energy is what its READY says;
 *        | u8 n parts, then per part u8 0, or u8 1 | 32 owner | 32 root of the result | u64 bytes
 *             | u32 bit i: listed i is in it | u32 q Q31 | 64 PART signature; or u8 2,
 *             the same, and u8 m sums of sites, m at least 1 | m times {u8 listed of the collector
 *             | u32 bit i: listed i is in it | 32 root | u64 bytes | 64 SUBTOTAL signature} by
 *             their first bits (part_sum.h)
 *        with bit 5, instead of n listed and the contributions: u16 n listed, 1 to 1024 | 32 hash
 *          of each list (listing.h), in order; never with bits 1 and 2
 *        | with bit 2: u32, not 0: bit i says that contribution i has age 1, so its READY is of the
 *          round before
 * Config part:
 *        u8 n admitted, then {32 peer | u16 size | credential}: peers rising
 *        | u8 n removed, then {32 peer | u8 reason | u64 incarnation | 32 by, if revoked | 64
 *          signature}: peers rising; absent: 32 peer | u8 3;
 *        harmful: 32 peer | u8 4 | u8 n, 1 or more, then {u8 voter | u64 round | 64 signature of
 *          HARM}: voters rising
 *        | u8 n fenced, then {32 peer | u64 incarnation}: peers rising
 *        | u8 n voters, 0 for no change, then {32 peer | 32 vote key | u8 kept | 64 VOTER_OK
 *          signature, zero if kept}: peers rising
 *        | with bit 6: u8 n, 0 to 8, then a word of 120 bytes each (invite_revoke.h): ids rising
 *        | with bit 7: 130 bytes (rotation.h)
 *
 * Body of a FORK:
 *        u64 rounds decided before it, t | 32 state root after round t
 * Last in a FORK: 64 signature of all bytes before by the root key, domain "dpnode/fork/1". With
 * bit 5, behind all of that, in the whole form: the lists, in order. What is stored and given to
 * others is whole; votes, and DECIDE, carry the voted form.
 *
 * A certificate: u32 ballot | u8 n | n times {u8 voter, 64 signature of ACCEPTED}, voter indexes
 * rising, by the voters of the record's slot (their index is their place in the ledger's list,
 * which is in peer order). */
#ifndef DP_GOSSIP_LEDGER_RECORD_H
#define DP_GOSSIP_LEDGER_RECORD_H

#include "base/run/reach.h"
#include "gossip/core/limits.h"
#include "gossip/identity/invite_revoke.h"
#include "gossip/identity/rotation.h"
#include "gossip/ledger/density.h"
#include "gossip/ledger/part.h"

enum {
    DP_RECORD_VERSION = 2,           /* 1 had no reach: a chain of such records is refused */
    DP_RECORD_BYTES_MAX = 40 * 1024, /* of its voted form */
    DP_LISTS_MAX = 32,
    DP_LIST_ROWS_MAX = 32,
    DP_RECORD_WHOLE_MAX = DP_RECORD_BYTES_MAX + DP_LISTS_MAX * (2 + DP_LIST_ROWS_MAX * 208),
    DP_LATE_MAX = 200,
    DP_CONFIG_ADMIT_MAX = 8,
    DP_CONFIG_REMOVE_MAX = 8,
    DP_CONFIG_FENCE_MAX = 8,
    DP_CONFIG_REVOKE_MAX = 8,
    DP_FORK_BYTES_MAX = 115 + 40 + 4 + DP_CONFIG_REMOVE_MAX * 137 +
                        DP_VOTERS_MAX * (32 + 32 + 1 + 64) + 1 +
                        DP_CONFIG_REVOKE_MAX * DP_INVITE_REVOKE_BYTES + 64,
    DP_CERT_OF_RECORD_BYTES_MAX = 5 + DP_VOTERS_MAX * 65
};
_Static_assert((int)DP_LISTS_MAX *(int)DP_LIST_ROWS_MAX == (int)DP_LISTED_MAX, "lists hold all");
#define DP_TOKENS_MAX UINT32_MAX                    /* of one node in one round */
#define DP_ENERGY_MAX ((unsigned __int128)1 << 112) /* above it a blob is refused */

typedef enum dp_record_kind {
    DP_RECORD_ROUND = 1,
    DP_RECORD_CONFIG = 2,
    DP_RECORD_REWIND = 3, /* reserved, as are MERGE and STOP: decoded by no version yet */
    DP_RECORD_MERGE = 4,
    DP_RECORD_FORK = 5,
    DP_RECORD_STOP = 6
} dp_record_kind;

/* A FORK is not voted: the root key signs it, and its certificate is the empty one (ballot 0, no
 * seals). It vouches for the state that all go on from, names the voters of its successors, each
 * with a VOTER_OK over prev, may put members out, and does nothing else; its hash is the id of the
 * fork. */

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
    /* samples behind the author: what tokens and carried were made of is below it (lease.h) */
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

typedef struct dp_listed {
    dp_peer peer;
    dp_hash root;
    uint64_t bytes;
    uint64_t tokens;
    uint64_t carried;
    dp_reach reach;
    uint32_t steps;
    uint32_t loss_micro;
    uint8_t signature[DP_SIGNATURE_BYTES];
    unsigned __int128 energy;
    uint64_t w;    /* clamped weight */
    uint32_t clip; /* Q16 */
    uint32_t q;    /* Q31 */
    uint32_t rate; /* of parts */
} dp_listed;

/* One part of a round: the result that counts, or none. */
typedef struct dp_part_row {
    bool has;
    dp_peer owner;
    dp_hash root;
    uint64_t bytes;
    uint32_t from; /* bit i: listed[i] is in it */
    uint32_t q;    /* Q31: floor(2^31 sum of w of those / W) */
    uint8_t signature[DP_SIGNATURE_BYTES];
    uint32_t first_sum; /* of its sums of sites among the record's, */
    uint32_t n_sums;    /* ... so many */
} dp_part_row;

typedef struct dp_seal {
    uint8_t voter; /* index in the voters of the slot */
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_seal;

typedef struct dp_admit {
    dp_peer peer;
    dp_view credential; /* into the record's bytes */
} dp_admit;

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

/* HARMFUL: by the words of a majority of the voters, and only records have it. LEFT is signed by
 * the peer; REVOKED by the key that stands in by: the run's root key, or a member that may
 * administer, who may put out anybody who may not. Domain "dpnode/remove/1" over run | peer
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

typedef struct dp_config_part {
    uint32_t n_admits;
    dp_admit admits[DP_CONFIG_ADMIT_MAX];
    uint32_t n_removes;
    dp_remove removes[DP_CONFIG_REMOVE_MAX];
    uint32_t n_fences;
    dp_fence fences[DP_CONFIG_FENCE_MAX];
    uint32_t n_voters;
    dp_voter_entry voters[DP_VOTERS_MAX];
    bool has_revoked; /* a list of revoked invites, maybe an empty one (inviting.h) */
    uint32_t n_revoked;
    dp_invite_revoke revoked[DP_CONFIG_REVOKE_MAX];
    bool has_rotation;
    dp_rotation rotation;
} dp_config_part;

typedef struct dp_record {
    dp_record_kind kind;
    bool has_config;
    dp_run_id run;
    dp_hash fork;
    uint64_t slot;
    dp_hash prev;
    uint64_t time_ms;
    /* ROUND */
    uint64_t round; /* FORK: decided before it */
    dp_hash base;
    dp_hash state_root; /* FORK too */
    uint32_t alpha;     /* Q16 */
    uint64_t tokens_total;
    unsigned __int128 w_total;
    unsigned __int128 clip_median;
    uint32_t n_state;
    dp_seal state[DP_VOTERS_MAX];
    bool in_lists; /* then up to DP_LISTED_MAX are listed, else DP_LISTED_STANDARD */
    /* of a decoded voted form alone: how many there are, and listed is undefined */
    uint32_t n_listed;
    dp_hash lists[DP_LISTS_MAX]; /* in_lists, decoded: their hashes */
    uint32_t n_late;
    dp_peer late[DP_LATE_MAX];
    bool parted;
    uint32_t n_parts;
    dp_part_row parts[DP_PARTS_MAX];
    uint32_t n_sums;                    /* of sites, of all parts, */
    dp_site_sum sums[DP_SITE_SUMS_ALL]; /* ... those of one part one after the other */
    uint32_t aged;  /* bit i: listed[i] came too late for the round before (round.stale) */
    dp_lines lines; /* in a run with a span of densities, else FIT */
    dp_config_part config;
    uint8_t root_signature[DP_SIGNATURE_BYTES]; /* FORK */
    dp_listed listed[DP_LISTED_MAX];            /* last: most of it is seldom used */
} dp_record;

typedef struct dp_cert_of_record {
    uint32_t ballot;
    uint32_t n;
    dp_seal seals[DP_VOTERS_MAX];
} dp_cert_of_record;

/* The whole form. DP_TOOBIG if it does not fit in out, or its voted form in DP_RECORD_BYTES_MAX.
 * *bytes lends out. */
DP_MUST dp_status dp_record_encode(const dp_record *record, uint8_t *out, size_t capacity,
                                   dp_view *bytes);
/* Total and strict: one encoding per record. Credentials point into bytes. record is undefined on
 * failure. DP_AGAIN: a record with lists, and these bytes are its voted form; all but the rows is
 * decoded. */
DP_MUST dp_status dp_record_decode(dp_record *record, dp_view bytes);
/* The voted form that a record begins with; of one without lists, and of what is no record, all of
 * it. */
dp_view dp_record_voted(dp_view bytes);
/* The hashes of the lists that a voted form names, which is looked at no further; n = 0: whole, or
 * without lists. DP_BADMSG. */
DP_MUST dp_status dp_record_lists(dp_view bytes, dp_hash hashes[DP_LISTS_MAX], uint32_t *n);
dp_hash dp_record_hash(dp_view bytes);

DP_MUST dp_status dp_cert_of_record_encode(const dp_cert_of_record *cert, uint8_t *out,
                                           size_t capacity, dp_view *bytes);
DP_MUST dp_status dp_cert_of_record_decode(dp_cert_of_record *cert, dp_view bytes);

/* What is signed. Each gives false without the key, or if the signature does not verify. */
bool dp_ready_sign(dp_ready *ready, const dp_crypto *crypto, const dp_run_id *run,
                   const dp_hash *fork);
bool dp_ready_verify(const dp_ready *ready, const dp_crypto *crypto, const dp_run_id *run,
                     const dp_hash *fork);
/* 1: of the round before; else 0. */
uint32_t dp_listed_age(const dp_record *record, uint32_t index);
/* The READY that a contribution of this record of age 0 must have been; of one of age 1:
 * dp_valid_ready. */
dp_ready dp_ready_of_listed(const dp_record *record, const dp_listed *listed);
/* The same sum where bits are of a word's sources, or with to_listed of a record's listed; from:
 * which listed are the word's sources. */
dp_site_sum dp_part_sum_renamed(const dp_site_sum *sum, uint32_t from, bool to_listed);
/* What the owner of this part, which the record has, must have said. */
dp_part_word dp_part_word_of(const dp_record *record, uint32_t part);

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

/* key: DP_KEY_IDENTITY or DP_KEY_ROOT, whose public half stands in peer or by. */
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

/* Is cert a majority of these voters for this record in this slot? */
bool dp_cert_verify(const dp_cert_of_record *cert, const dp_crypto *crypto, const dp_run_id *run,
                    const dp_hash *fork, uint64_t slot, const dp_hash *prev, const dp_hash *hash,
                    const dp_voter *voters, uint32_t n_voters);

#endif
