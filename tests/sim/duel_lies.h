/* Voters of a duel that lie: they send messages that no honest voter would sign, and messages with
 * forged signatures. Each also has an honest machine. */
#ifndef DP_SIM_DUEL_LIES_H
#define DP_SIM_DUEL_LIES_H

#include "base/rng.h"
#include "gossip/vote/commit.h"

enum { DP_DUEL_RECORD_BYTES = 16, DP_DUEL_LIES_MAX = 128 };

typedef struct dp_duel_lies {
    void *context;
    dp_rng *rng;
    dp_run_id run;
    uint32_t n;
    const dp_commit *slot;             /* owners of the ballots */
    dp_crypto crypto[DP_VOTERS_MAX];   /* each voter's own keys */
    uint32_t values;                   /* lies so far: each has a record of its own */
    dp_hash refused[DP_DUEL_LIES_MAX]; /* records that no voter may accept */
    uint32_t n_refused;
    void (*post)(void *context, uint32_t from, uint32_t to, dp_view message);
} dp_duel_lies;

/* The owner of ballot 0 proposes two records; twice: it also claims to have accepted the second
 * one. */
void dp_duel_lie_twice(dp_duel_lies *lies, bool twice);
/* A proposal that no voter may accept: in the ballot of another owner, with too few promises, or
 * with forged promises. */
void dp_duel_lie_proposal(dp_duel_lies *lies);
/* A vote in the name of a voter that did not sign it. */
void dp_duel_lie_vote(dp_duel_lies *lies);
bool dp_duel_is_refused(const dp_duel_lies *lies, const dp_hash *hash);

#endif
