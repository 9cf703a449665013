/* Keeps the facts of `dpnode top` at the daemon's answers: asks for what is new. Blocks as
 * cli/watch/source.h does. */
#ifndef DP_CLI_TOP_GATHER_H
#define DP_CLI_TOP_GATHER_H

#include "cli/top/facts.h"
#include "cli/watch/source.h"

enum { DP_GATHER_WHY_MS = 5000 }; /* between two questions why, while the state is the same */

typedef struct dp_gather {
    dp_source source;
    bool has_rounds; /* up to these: */
    uint64_t slot;
    uint64_t exchanges;
    uint64_t why_ms; /* when it was asked; 0: never */
    char why_state[DP_FACTS_WORD_MAX];
} dp_gather;

void dp_gather_open(dp_gather *gather, const char *socket);
void dp_gather_close(dp_gather *gather);
/* Asks, unless the last answers are fresh (DP_SOURCE_FRESH_MS). Without an answer the facts stay
 * and are old. now_ms: of a clock that only rises, at least 1; unix_ms: of the wall. */
void dp_gather_look(dp_gather *gather, dp_facts *facts, uint64_t now_ms, uint64_t unix_ms);

#endif
