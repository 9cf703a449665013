/* The promise and the accepted record of a voter, and the key that signs its votes. One row per
 * run. The row is in no backup or export, so that a restored copy of a store cannot vote.
 *
 * A save never goes back: the rules of the acceptor (Lamport 1998; docs/PROTOCOL.md) are checked
 * here once more. */
#ifndef DP_STORE_VOTE_H
#define DP_STORE_VOTE_H

#include "store/db.h"

enum {
    DP_VOTE_ROW_SECRET_BYTES = 64,
    DP_VOTE_ROW_PUBLIC_BYTES = 32,
    DP_VOTE_ROW_PLACE_BYTES = 64,
    DP_VOTE_ROW_RECORD_MAX = 1024 * 1024,
};
#define DP_VOTE_ROW_NONE (-1)

typedef struct dp_vote_key_row {
    uint8_t secret[DP_VOTE_ROW_SECRET_BYTES]; /* Wipe it after use. */
    uint8_t public_key[DP_VOTE_ROW_PUBLIC_BYTES];
} dp_vote_key_row;

typedef struct dp_vote_row {
    uint64_t slot;
    int64_t promised; /* Ballot, or DP_VOTE_ROW_NONE. */
    int64_t accepted; /* Ballot of record, or DP_VOTE_ROW_NONE; then record is empty. */
    /* Place of the slot in the chain, as the caller writes it. The first 32 bytes name the fork:
     * votes of two forks are not compared. The rest is opaque. */
    uint8_t place[DP_VOTE_ROW_PLACE_BYTES];
    dp_view record;
} dp_vote_row;

/* Makes the voter row of a run, with nothing promised. DP_EXISTS: there is one, even with equal
 * bytes. */
DP_MUST dp_status dp_vote_create_key(dp_store *store, const dp_hash *run,
                                     const dp_vote_key_row *key);
/* DP_NOTFOUND: not a voter. DP_CORRUPT: the row fails its checksum; treat it as no key. */
DP_MUST dp_status dp_vote_load_key(dp_store *store, const dp_hash *run, dp_vote_key_row *key);
/* Deletes the key and every vote of the run for good. DP_OK also if they are absent. */
DP_MUST dp_status dp_vote_destroy_key(dp_store *store, const dp_hash *run);

/* Loads the vote; vote->record views record, which is cleared first. Right after create_key: slot
 * 0, nothing promised. DP_NOTFOUND, DP_CORRUPT as above. */
DP_MUST dp_status dp_vote_load(dp_store *store, const dp_hash *run, dp_vote_row *vote,
                               dp_buf *record);
/* Replaces slot, promised, accepted, place and record in one transaction. DP_NOTFOUND: no key.
 * DP_BADARG: the new vote would go back (a lower slot; in one slot a lower promise, a lower or lost
 * acceptance), change the record under one ballot, or accept above the promise. */
DP_MUST dp_status dp_vote_save(dp_store *store, const dp_hash *run, const dp_vote_row *vote);

#endif
