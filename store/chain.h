/* The chain of decided records with their certificates, slot by slot. Checks their order and its
 * own disk, but not the content of records.
 *
 * run: 32 bytes that name the chain; a forked chain has another name. The state head is different:
 * the slot of the newest checkpoint (ckpt.h), which may be behind the head of the chain or, in a
 * node that joins, ahead of it. */
#ifndef DP_STORE_CHAIN_H
#define DP_STORE_CHAIN_H

#include "store/db.h"

enum { DP_CHAIN_RECORD_MAX = 1024 * 1024, DP_CHAIN_CERT_MAX = 64 * 1024 };

typedef struct dp_chain_record {
    uint64_t slot;
    dp_hash hash; /* The record's hash, as the caller computes it. */
    dp_view record;
    dp_view cert;
} dp_chain_record;

typedef struct dp_chain_tip {
    uint64_t slot;
    dp_hash hash;
} dp_chain_tip;

/* Writes record, certificate and head = slot in one transaction. slot must be head + 1 (any slot if
 * the chain is empty), else DP_BADARG. A slot that exists with the same record: DP_OK, whatever the
 * certificate; with another record: DP_DIVERGED. DP_TOOBIG. */
DP_MUST dp_status dp_chain_append(dp_store *store, const dp_hash *run, const dp_chain_record *row);
/* Makes row the head at its slot, which is at most head + 1: removes *dropped records from that
 * slot on, and checkpoints of rounds above round except a recovered one, in the same transaction.
 * DP_BADARG, DP_TOOBIG. */
DP_MUST dp_status dp_chain_fork(dp_store *store, const dp_hash *run, const dp_chain_record *row,
                                uint64_t round, uint64_t *dropped);
/* Ends the chain with slot last: removes later records, damaged or not, and rewrites a damaged
 * head. 0: removes all. DP_NOTFOUND: no record of last; DP_CORRUPT: it is damaged too. */
DP_MUST dp_status dp_chain_cut(dp_store *store, const dp_hash *run, uint64_t last);
/* The newest slot and its hash. DP_NOTFOUND: the chain is empty. DP_CORRUPT. */
DP_MUST dp_status dp_chain_head(dp_store *store, const dp_hash *run, dp_chain_tip *head);
/* Reads a slot; appends to record and cert (either may be NULL); hash may be NULL. DP_NOTFOUND;
 * DP_CORRUPT: the row fails its checksum. */
DP_MUST dp_status dp_chain_read(dp_store *store, const dp_hash *run, uint64_t slot, dp_buf *record,
                                dp_buf *cert, dp_hash *hash);
/* Visits slots from, from + 1, ... in order, at most count of them, until visit returns other than
 * DP_OK, which is then the result. from above the head: DP_OK without a visit; below the first
 * slot: DP_NOTFOUND. Views live during the visit, which must not call the store. DP_CORRUPT: a row
 * fails its checksum or a slot is missing. */
typedef dp_status dp_chain_visit(const dp_chain_record *row, void *context);
DP_MUST dp_status dp_chain_each(dp_store *store, const dp_hash *run, uint64_t from, uint32_t count,
                                dp_chain_visit *visit, void *context);

#endif
