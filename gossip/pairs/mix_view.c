/* Views of an exchange for other parts of the node, and the check of its invariants. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/ledger/weights.h"
#include "gossip/pairs/mix.h"
#include "gossip/pairs/mix_internal.h"

#define WEIGHT_MAX (1ULL << 62)

uint64_t dp_mix_weight(uint64_t tokens, uint32_t steps)
{
    if (steps == 0) {
        return 0;
    }
    const unsigned __int128 weight = (unsigned __int128)tokens * tokens / steps;
    return weight < WEIGHT_MAX ? (uint64_t)weight : WEIGHT_MAX;
}

bool dp_mix_busy(const dp_mix *mix)
{
    return mix->state != DP_MIX_IDLE;
}

bool dp_mix_locked(const dp_mix *mix)
{
    return mix->state != DP_MIX_IDLE;
}

dp_mix_look dp_mix_view(const dp_mix *mix)
{
    dp_mix_look look = {.state = mix->state,
                        .initiator = mix->x.initiator,
                        .in_doubt = mix->state == DP_MIX_ASKED,
                        .since = mix->since,
                        .peer = mix->x.peer,
                        .peer_incarnation = mix->x.other.incarnation,
                        .done = mix->done,
                        .aborted = mix->aborted,
                        .outcomes = mix->n_outcomes};
    memcpy(look.exchange, mix->x.id.bytes, sizeof look.exchange);
    memcpy(look.life, mix->x.life, sizeof look.life);
    return look;
}

dp_status dp_mix_check(const dp_mix *mix, dp_why *why)
{
    if (mix->n_outcomes > DP_MIX_OUTCOMES_MAX) {
        return dp_why_set(why, DP_CORRUPT, "mix: %u outcomes", mix->n_outcomes);
    }
    for (uint32_t i = 0; i < mix->n_outcomes; i++) {
        if (mix->outcomes[i].mark != DP_MIX_MARK_COMMITTED || mix->outcomes[i].initiator) {
            return dp_why_set(why, DP_CORRUPT, "mix: outcome %u was not decided here", i);
        }
    }
    if (mix->has_f && (dp_hash_is_zero(&mix->f.f_root) || dp_hash_is_zero(&mix->f.own.root))) {
        return dp_why_set(why, DP_CORRUPT, "mix: the row of F names no object");
    }
    const bool own_row = mix->has_f && dp_mix_id_equal(&mix->f.id, &mix->x.id);
    if ((mix->state == DP_MIX_PREPARED || mix->state == DP_MIX_ASKED ||
         mix->state == DP_MIX_MIXING) &&
        !own_row) {
        return dp_why_set(why, DP_CORRUPT, "mix: an exchange in state %d has no row",
                          (int)mix->state);
    }
    if (mix->state != DP_MIX_IDLE && !mix->rebuilding && mix->x.initiator &&
        (mix->state == DP_MIX_ASKED) !=
            (mix->x.mark == DP_MIX_MARK_ASKED && mix->state != DP_MIX_ASKING)) {
        return dp_why_set(why, DP_CORRUPT, "mix: mark %d in state %d", (int)mix->x.mark,
                          (int)mix->state);
    }
    return DP_OK;
}
