/* Memory of a round: reserved when a node is opened, in runs with lists for as many contributions
 * as a record lists. */
#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/round/admit.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/round.h"

dp_status dp_round_reserve(dp_node *node, uint32_t listed_max)
{
    const bool lists = listed_max > DP_LISTED_DEFAULT;
    dp_round *round = dp_reserve(1, sizeof *round);

    dp_assert(listed_max >= DP_LISTED_DEFAULT && listed_max <= DP_LISTED_MAX);
    node->round = round;
    if (round == NULL) {
        return DP_NOMEM;
    }
    round->ready_max = (lists ? listed_max : 0) + DP_CLAIMS_BEYOND;
    round->claims_max = round->ready_max + listed_max;
    round->unlisted_max = lists ? round->claims_max : 0;
    round->claims = dp_reserve(round->claims_max, sizeof *round->claims);
    round->guests = dp_reserve(1, sizeof *round->guests);
    round->unlisted = dp_reserve(round->unlisted_max + 1, sizeof *round->unlisted);
    if (round->claims == NULL || round->guests == NULL || round->unlisted == NULL) {
        return DP_NOMEM;
    }
    round->deadline = (dp_deadline){.round_us = (uint64_t)node->manifest.round_ms * 1000};
    return dp_map_init(&round->claim_of, round->claims_max, node->config.seed);
}

void dp_round_release(dp_node *node)
{
    dp_judging_close(node);
    if (node->round != NULL) {
        dp_map_close(&node->round->claim_of);
        dp_free(node->round->guests);
        dp_free(node->round->claims);
        dp_free(node->round->unlisted);
    }
    dp_free(node->round);
}

void dp_round_forget_member(dp_node *node, uint32_t index)
{
    dp_assert(index < DP_MEMBERS_MAX);
    node->round->missed[index] = 0;
    node->round->gave_way[index] = false;
}
