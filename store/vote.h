/* What a voter has promised and accepted, and the key it signs votes with. One row per run; it
 * never enters a backup or an export, so a restored copy of a store cannot vote.
 *
 * The rules of the acceptor (Lamport 1998; docs/PROTOCOL.md) are guarded once more here: a save
 * never goes back. */
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
    /* Where in the chain the slot is, as the caller writes it. The first 32 bytes name the fork:
     * votes of two forks are not compared. The rest is not judged. */
    uint8_t place[DP_VOTE_ROW_PLACE_BYTES];
    dp_view record;
} dp_vote_row;

/* Make the voter row of a run with nothing promised. DP_EXISTS: there is one (also when the bytes
 * are equal). */
DP_MUST dp_status dp_vote_create_key(dp_store *store, const dp_hash *run,
                                     const dp_vote_key_row *key);
/* DP_NOTFOUND: not a voter. DP_CORRUPT: the row fails its checksum; treat it as no key. */
DP_MUST dp_status dp_vote_load_key(dp_store *store, const dp_hash *run, dp_vote_key_row *key);
/* The key and every vote of the run are gone for good. Absent rows are fine. */
DP_MUST dp_status dp_vote_destroy_key(dp_store *store, const dp_hash *run);

/* vote->record views record, which is cleared first. Right after create_key: slot 0, nothing
 * promised. DP_NOTFOUND, DP_CORRUPT as above. */
DP_MUST dp_status dp_vote_load(dp_store *store, const dp_hash *run, dp_vote_row *vote,
                               dp_buf *record);
/* Replace slot, promised, accepted, place and record in one transaction. DP_NOTFOUND: no key.
 * DP_BADARG: it would go back (a lower slot; in one slot a lower promise, a lower or lost
 * acceptance), change the record under one ballot, or accept above the promise. */
DP_MUST dp_status dp_vote_save(dp_store *store, const dp_hash *run, const dp_vote_row *vote);

#endif
