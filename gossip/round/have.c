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

void dp_round_tell_have_one(dp_node *node, const dp_hash *root)
{
    dp_have_msg have = {.voter = node->self, .round = node->ledger.round + 1};
    const uint32_t self = node->commit->self;

    if (self == DP_NOBODY || DP_BUGGIFY_HALF(node, DP_BUG_LOST_HAVE)) {
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims && have.n == 0; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (dp_hash_equal(&claim->ready.root, root) && claim->held && claim->checked &&
            !claim->bad && dp_claim_is_told(node, claim)) {
            claim->have |= 1U << self;
            have.roots[have.n++] = *root;
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
