/* A voter tells which updates it holds. */
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"

void dp_round_send_have(dp_node *node, dp_have_msg *have)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_assert(have->n <= DP_HAVE_MAX);
    if (have->n > 0 && dp_have_sign(have, &node->config.crypto, &node->run)) {
        dp_have_msg_write(&writer, have);
        dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    }
    have->n = 0;
}

void dp_round_have_soon(dp_node *node)
{
    const uint64_t share_us = dp_deadline_length(&node->round->deadline) / 64;

    dp_assert(node->round->n_claims <= node->round->claims_max);
    if (node->round->have_at.us == 0) {
        node->round->have_at =
            dp_time_after(node->now, share_us < DP_HAVE_US_MAX ? share_us : DP_HAVE_US_MAX);
    }
}

static bool may_tell(const dp_node *node, const dp_claim *claim)
{
    return claim->held && claim->checked && !claim->bad && dp_claim_is_told(node, claim);
}

/* The blobs of all that are at work are here: nobody waits for more to tell with them. */
static bool is_complete(const dp_node *node)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        n += may_tell(node, &node->round->claims[i]) ? 1 : 0;
    }
    return n >= dp_round_active(node);
}

void dp_round_have_tick(dp_node *node)
{
    dp_have_msg have = {.voter = node->self, .round = node->ledger.round + 1};
    const uint32_t self = node->commit->self;

    if (node->round->have_at.us == 0 ||
        (!dp_time_reached(node->now, node->round->have_at) && !is_complete(node))) {
        return;
    }
    node->round->have_at = (dp_time){0};
    dp_assert(have.n == 0 && node->round->n_claims <= node->round->claims_max);
    if (self == DP_NOBODY || DP_BUGGIFY_HALF(node, DP_BUG_LOST_HAVE)) {
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->have_told || !may_tell(node, claim)) {
            continue;
        }
        claim->have_told = true;
        claim->have |= 1U << self;
        have.roots[have.n++] = claim->ready.root;
        if (have.n == DP_HAVE_MAX) { /* Of a run with lists. */
            dp_round_send_have(node, &have);
        }
    }
    dp_round_send_have(node, &have);
}

void dp_round_tell_have(dp_node *node)
{
    dp_have_msg have = {.voter = node->self, .round = node->ledger.round + 1};
    const uint32_t self = node->commit->self;

    if (self == DP_NOBODY || DP_BUGGIFY_HALF(node, DP_BUG_LOST_HAVE)) {
        return;
    }
    node->kind->add_have(node, &have);
    dp_round_send_have(node, &have);
}
