/* Records, which slots of the chain decide, their certificates, and the signed pieces that they
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
 * bit 5, behind all of that, in the whole form: the lists, in order. Records are stored and given
 * to others whole; votes and DECIDE carry the voted form.
 *
 * A certificate: u32 ballot | u8 n | n times {u8 voter, 64 signature of ACCEPTED}, voter indexes
 * rising, by the voters of the record's slot (their index is their place in the ledger's list,
 * which is in peer order). */
#ifndef DP_GOSSIP_RECORD_RECORD_H
#define DP_GOSSIP_RECORD_RECORD_H

#include "base/run/reach.h"
#include "gossip/core/limits.h"
#include "gossip/identity/invite_revoke.h"
#include "gossip/identity/rotation.h"
#include "gossip/record/part.h"
#include "gossip/record/signed_words.h"

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

/* How the lines of a round were. */
typedef enum dp_lines { DP_LINES_FIT = 0, DP_LINES_SLOW = 1, DP_LINES_FREE = 2 } dp_lines;

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

typedef struct dp_admit {
    dp_peer peer;
    dp_view credential; /* into the record's bytes */
} dp_admit;

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
    bool in_lists; /* then up to DP_LISTED_MAX are listed, else DP_LISTED_DEFAULT */
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
    uint32_t aged;  /* bit i: listed[i] came too late for the round before (mode stale) */
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
/* The voted form with which a record begins; of a record without lists, and of bytes that are no
 * record, all of it. */
dp_view dp_record_voted(dp_view bytes);
/* The hashes of the lists that a voted form names, which is looked at no further; n = 0: whole, or
 * without lists. DP_BADMSG. */
DP_MUST dp_status dp_record_lists(dp_view bytes, dp_hash hashes[DP_LISTS_MAX], uint32_t *n);
dp_hash dp_record_hash(dp_view bytes);

DP_MUST dp_status dp_cert_of_record_encode(const dp_cert_of_record *cert, uint8_t *out,
                                           size_t capacity, dp_view *bytes);
DP_MUST dp_status dp_cert_of_record_decode(dp_cert_of_record *cert, dp_view bytes);

/* 1: of the round before; else 0. */
uint32_t dp_listed_age(const dp_record *record, uint32_t index);
/* The READY that a contribution of this record of age 0 must have been; of one of age 1:
 * dp_valid_ready. */
dp_ready dp_ready_of_listed(const dp_record *record, const dp_listed *listed);
/* The same sum where bits are of a word's sources, or with to_listed of a record's listed; from:
 * which listed are the word's sources. */
dp_site_sum dp_part_sum_renamed(const dp_site_sum *sum, uint32_t from, bool to_listed);
/* The word that the owner of this part must have signed; the record has the part. */
dp_part_word dp_part_word_of(const dp_record *record, uint32_t part);

/* Is cert a majority of these voters for this record in this slot? */
bool dp_cert_verify(const dp_cert_of_record *cert, const dp_crypto *crypto, const dp_run_id *run,
                    const dp_hash *fork, uint64_t slot, const dp_hash *prev, const dp_hash *hash,
                    const dp_voter *voters, uint32_t n_voters);

#endif
