/* The durable vote row as values, for the caller that stores it; drawn in commit.h. */
#ifndef DP_GOSSIP_VOTE_COMMIT_ROW_H
#define DP_GOSSIP_VOTE_COMMIT_ROW_H

#include "gossip/record/record.h"

enum { DP_COMMIT_ROW_HEAD = 1 + 32 + 8 + 32 + 4 + 4 + 4 };

typedef struct dp_commit_row {
    dp_hash fork;
    uint64_t slot;
    dp_hash prev;
    int64_t promised; /* ballot, -1: none */
    int64_t accepted;
    dp_view record; /* empty when nothing was accepted */
} dp_commit_row;

/* DP_VERSION, DP_BADMSG. The record is lent from bytes. */
DP_MUST dp_status dp_commit_row_read(dp_view bytes, dp_commit_row *row);
/* DP_COMMIT_ROW_HEAD + record.size bytes. */
void dp_commit_row_write(dp_writer *writer, const dp_commit_row *row);

#endif
