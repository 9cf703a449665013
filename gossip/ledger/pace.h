/* How many tokens of one contribution count: the learning rate's schedule and the total use them
 * (PROTOCOL, 3.1). Pure arithmetic over records, in integers; sees neither records nor members
 * (ledger.h does).
 *
 * A contribution says how many tokens it holds, and its author alone knows whether it is so. The
 * tokens counted are at most DP_PACE_SLACK times those that a member of median speed makes in the
 * time since this one was counted last: the speed is the lower median over the members of each
 * record, so nobody is measured by its own word unless half of those listed lie. Tokens over the
 * bound wait for sixteen rounds, since the time of a record may lag (a voter that thaws hears old
 * heartbeats first); after that they are dropped. The update itself counts, with the weight and
 * clip of weights.h, which need no bound of tokens. */
#ifndef DP_GOSSIP_LEDGER_PACE_H
#define DP_GOSSIP_LEDGER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/run/manifest.h"

enum {
    DP_PACE_SLACK = 16,       /* a card may be so many times as fast as the one in the middle */
    DP_PACE_LEAST_MS = 1000,  /* a span is not taken for shorter: clocks of records are coarse */
    DP_PACE_OWED_ROUNDS = 16, /* that tokens over the bound wait to be counted */
    DP_PACE_FALL = 64         /* a record lowers the speed by at most one part of so many */
};

typedef struct dp_pace {
    bool bounded;      /* by the manifest, from version 14 on; else all counts */
    uint64_t first;    /* tokens of one member that count while no speed is known */
    uint64_t first_ms; /* ... and the time that they are taken to have taken */
    uint64_t speed;    /* Q16, tokens per second of the member in the middle; 0: no round yet */
} dp_pace;

dp_pace dp_pace_first(const dp_manifest *manifest);
/* The most tokens that may count of a member that was counted last, or admitted, so long ago. */
uint64_t dp_pace_most(const dp_pace *pace, uint64_t span_ms);
/* The speed of a member that made so many tokens in this span. */
uint64_t dp_pace_speed(const dp_pace *pace, uint64_t tokens, uint64_t span_ms);
/* The next ROUND record: the lower median of the speeds of its contributions, by their counted
 * tokens. It rises by at most a factor of two, so that one record of liars alone does not set it,
 * and falls slowly, so that a run that stood still for a week is as fast as before. */
void dp_pace_next(dp_pace *pace, uint64_t speed);

#endif
