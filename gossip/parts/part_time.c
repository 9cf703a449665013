/* Until when a round of parts waits for a member, and for an object of a part. */
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/round/deadline.h"
#include "gossip/round/round.h"

bool dp_part_round_is_alive(const dp_node *node, const dp_peer *peer)
{
    const uint32_t index = dp_node_member_index(node, peer);

    return index == 0 || (index != DP_MEMBER_NONE &&
                          dp_members_at(node->members, index)->state == DP_MEMBER_ALIVE);
}

/* Bytes of a part by the claim of its author; DP_PARTS_MAX: of its largest part. */
static uint64_t bytes_of(const dp_claim *claim, uint32_t part)
{
    const dp_part_list *list = &claim->ready.parts;
    uint64_t largest = 0;

    if (part < DP_PARTS_MAX) {
        return part < list->n ? list->refs[part].bytes : 0;
    }
    for (uint32_t p = 0; p < list->n; p++) {
        largest = list->refs[p].bytes > largest ? list->refs[p].bytes : largest;
    }
    return largest;
}

dp_part_wait dp_part_round_wait(const dp_node *node, uint32_t part)
{
    uint64_t bytes[DP_CLAIMS_MAX];
    uint32_t n = 0;

    dp_assert(part <= DP_PARTS_MAX);
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        bytes[n] = claim->evidence ? 0 : bytes_of(claim, part);
        n += bytes[n] > 0 ? 1 : 0;
    }
    return dp_part_wait_of(dp_picker_chunk_p95(node->picker), dp_members_rtt_p95(node->members),
                           bytes, n, dp_picker_rate(node->picker),
                           dp_deadline_hard(&node->round->deadline));
}

bool dp_part_round_is_time(dp_node *node, dp_time at)
{
    if (!dp_time_reached(node->now, at)) {
        node->parts->wake_at = dp_time_min(node->parts->wake_at, at);
        return false;
    }
    return true;
}
