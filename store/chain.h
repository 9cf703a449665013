/* The chain of decided records with their certificates, slot by slot. It checks order and its own
 * disk, not the meaning of a record.
 *
 * run: 32 bytes that name the chain (a forked chain has another name). The state head is a
 * different thing: it is the slot of the newest checkpoint (ckpt.h), which may lie behind or, for a
 * joiner, ahead of the chain head. */
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

/* Record, certificate and head = slot in one transaction. slot must be head + 1 (any slot if the
 * chain is empty). A slot that is there with the same record bytes: DP_OK, whatever the
 * certificate; with other bytes: DP_DIVERGED. A gap: DP_BADARG. DP_TOOBIG. */
DP_MUST dp_status dp_chain_append(dp_store *store, const dp_hash *run, const dp_chain_record *row);
/* The record of row takes its slot and is the head: what stood there and after it goes, and so do
 * the checkpoints of rounds above round, in the same transaction; *dropped records went. slot must
 * be at most head + 1. DP_BADARG, DP_TOOBIG. */
DP_MUST dp_status dp_chain_fork(dp_store *store, const dp_hash *run, const dp_chain_record *row,
                                uint64_t round, uint64_t *dropped);
/* The chain ends with slot last: what is damaged behind it goes, and a damaged head is made anew.
 * 0: all of it goes. DP_NOTFOUND: the record of last is not there; DP_CORRUPT: it is damaged
 * too. */
DP_MUST dp_status dp_chain_cut(dp_store *store, const dp_hash *run, uint64_t last);
/* DP_NOTFOUND: the chain is empty. DP_CORRUPT. */
DP_MUST dp_status dp_chain_head(dp_store *store, const dp_hash *run, dp_chain_tip *head);
/* Appends to record and cert (either may be NULL); hash may be NULL. DP_NOTFOUND; DP_CORRUPT: the
 * row fails its checksum. */
DP_MUST dp_status dp_chain_read(dp_store *store, const dp_hash *run, uint64_t slot, dp_buf *record,
                                dp_buf *cert, dp_hash *hash);
/* Visit slots from, from + 1, ... in order, at most count of them, until visit returns other than
 * DP_OK, which is then the result. None from there to the head: DP_OK without a visit; from below
 * the first slot: DP_NOTFOUND. Views live during the visit, which must not call the store.
 * DP_CORRUPT: a row fails its checksum or a slot is missing. */
typedef dp_status dp_chain_visit(const dp_chain_record *row, void *context);
DP_MUST dp_status dp_chain_each(dp_store *store, const dp_hash *run, uint64_t from, uint32_t count,
                                dp_chain_visit *visit, void *context);

#endif
