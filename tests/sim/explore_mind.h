/* One host of the exhaustive search as plain bytes: its disk, and the memory of its voting
 * machine. */
#ifndef DP_SIM_EXPLORE_MIND_H
#define DP_SIM_EXPLORE_MIND_H

#include "gossip/vote/commit.h"
#include "gossip/vote/commit_row.h"
#include "tests/sim/explore_chain.h"

enum { DP_EXPLORE_ROW_MAX = DP_COMMIT_ROW_HEAD + 1024 };

/* A vote row: its record by number. */
typedef struct dp_explore_row {
    bool is;
    uint8_t record; /* 0: none was accepted */
    uint8_t head[DP_COMMIT_ROW_HEAD];
} dp_explore_row;

typedef struct dp_explore_state {
    uint64_t mark;
    uint8_t host;
    uint8_t boots;
    uint8_t bids;
    uint8_t head;    /* the last record that it has applied, */
    uint8_t kept;    /* on its disk, */
    uint8_t keeping; /* being written; 0: none */
    uint8_t decided; /* decided by the votes heard; 0: none */
    bool writes;     /* a row */
    dp_explore_row durable;
    dp_explore_row writing;
    uint8_t mind[]; /* dp_explore_mind_size() bytes */
} dp_explore_state;

size_t dp_explore_mind_size(void);
/* Writes the row in the form of a file to out (DP_EXPLORE_ROW_MAX). */
dp_view dp_explore_row_bytes(const dp_explore_chain *chain, const dp_explore_row *row,
                             uint8_t *out);
/* commit: once initialised for this host. */
void dp_explore_mind_load(const dp_explore_chain *chain, const dp_explore_state *from,
                          dp_commit *commit);
/* Fills in mind, decided and the unused parts of writing, after clearing the fields of commit that
 * it will not read again, so that equal states are equal. bids: it may still bid. */
void dp_explore_mind_save(const dp_explore_chain *chain, dp_commit *commit, bool bids,
                          dp_explore_state *to);

#endif
