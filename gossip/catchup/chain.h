/* The chain as a node holds it: records decided, the one being written, and what replaying a round
 * needs. chain.c writes it, chain_drop.c lets go of blobs that no round needs any more. */
#ifndef DP_GOSSIP_CATCHUP_CHAIN_H
#define DP_GOSSIP_CATCHUP_CHAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/run/part_cuts.h"
#include "gossip/core/limits.h"
#include "gossip/identity/admission.h"
#include "gossip/member/links.h"
#include "gossip/record/record.h"

enum {
    DP_WINDOW_ROUNDS = 8,   /* J: blobs of so many rounds before the newest checkpoint are kept */
    DP_HISTORY_ROUNDS = 64, /* decided rounds remembered; older blobs go in any case */
    DP_DROPS_PER_TICK = 128 /* blobs of large old rounds that are let go at a time */
};

/* A decided round, as far as replaying and settling need it. */
typedef struct dp_history_item {
    dp_peer peer;
    dp_hash root;
    uint64_t bytes;
    uint64_t tokens; /* and those carried; 0 of results of parts */
    uint32_t q;
    uint32_t clip;
    uint32_t first; /* shares of the vector (part.h) */
    uint32_t end;
} dp_history_item;

typedef struct dp_history_row {
    uint64_t round; /* 0: empty */
    uint64_t slot;
    dp_hash digest; /* of the ledger after it */
    uint64_t tokens;
    uint32_t alpha;
    bool touched; /* this node is listed or late in it */
    bool waits;   /* it is not listed, and its update for this round may count in the next */
    uint64_t gap; /* rounds up to this one since it last was */
    bool certified;
    bool proven;  /* by the chain: by the record after it, or a FORK that goes on from it */
    dp_hash root; /* the certified state root */
    bool dropped; /* its blobs have been let go */
    bool rest;    /* ... but for some, for which one step had no room */
    uint32_t n;
    uint32_t here; /* so many first items were held when `unheld` of the node was: */
    uint64_t here_as_of;
    dp_history_item *items; /* contributions; of parts: results, each with its owner */
    uint32_t contributors;  /* that the record lists */
    dp_part_cuts cuts;      /* of parts; else n = 0 */
    bool own; /* lists this node: the publication, its clip, and of parts those that count it */
    dp_hash own_root;
    uint32_t own_clip;
    uint32_t own_taken;
    uint32_t own_age; /* 1: it was made for the round before */
} dp_history_row;
/* Records decided, and the one being written. */
typedef struct dp_chain {
    uint32_t op; /* of the DP_STORE_DECIDED under way, 0: none */
    dp_time stored_at;
    dp_span fsync;   /* how long the last writes took */
    uint8_t *record; /* whole: DP_RECORD_WHOLE_MAX in a run with lists, else DP_RECORD_BYTES_MAX */
    size_t record_size;
    dp_hash record_hash;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    size_t cert_size;
    dp_record decoded;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    bool failed; /* the write failed: try again */
    dp_history_row history[DP_HISTORY_ROUNDS];
    dp_history_item *history_items; /* as many for each row as a record lists */
    dp_hash genesis_digest;
    bool genesis_certified;
    dp_hash genesis_root;
    uint64_t gap;       /* rounds since this node was last listed or late */
    uint64_t own_round; /* last round of which a publication of this node counts; 0: none */
    dp_hash own_root;
    uint32_t own_clip;
    uint32_t own_taken;
    dp_part_cuts cuts; /* of the record being applied */
    uint32_t listed_last;
    dp_time decided_at;
} dp_chain;

dp_history_row *dp_chain_row(const dp_node *node, uint64_t round);
/* Digest of the ledger after this round, certified root: false if not known. */
bool dp_chain_digest(const dp_node *node, uint64_t round, dp_hash *digest);
/* A majority has signed this root for the state after the newest round. False: that was known. */
bool dp_chain_certify(dp_node *node, const dp_hash *root);
bool dp_chain_certified(const dp_node *node, uint64_t round, dp_hash *root);
/* A record with its certificate, from anywhere. DP_OK: being written, or known; DP_AGAIN: of a
 * later slot, or busy. */
dp_status dp_chain_offer(dp_node *node, dp_view record, dp_view cert);
/* Is this answer of the disk about the record that was being written? written: it is durable, and
 * to be applied at once. One that failed is written again with a tick. */
bool dp_chain_stored(dp_node *node, uint32_t op, dp_status status, bool *written);
/* The ledger and the round history now contain the record that was written. Does it list this
 * node? */
bool dp_chain_apply(dp_node *node);
dp_status dp_chain_restore(dp_node *node, uint64_t slot, dp_view record, dp_view cert);
void dp_chain_tick(dp_node *node);

/* ---- blobs of old rounds: chain_drop.c ---- */

/* No longer needed by the round under way: let go, unless a round that may be replayed needs it. */
void dp_chain_drop(dp_node *node, const dp_hash *root, uint64_t round);
/* The same; false: it is to go, and this step has no room for that. */
bool dp_chain_let_go(dp_node *node, const dp_hash *root, uint64_t round);
/* The trainer stands at this round: blobs up to it that are not here are not needed any more. */
void dp_chain_cancel(dp_node *node, uint64_t round);
void dp_chain_drop_row(dp_node *node, dp_history_row *row);
/* Rows before all that a replay may begin with; two at most, since the actions of a step are
 * bounded. */
void dp_chain_drop_old(dp_node *node);
/* Of a row with more blobs than one step has room for, some; gives how many more this step may
 * drop. */
uint32_t dp_chain_drop_rest(dp_node *node);

#endif
