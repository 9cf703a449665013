/* The objects of a round of parts: fetched, checked, weighed, let go. */
#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"

bool dp_part_round_may_check(dp_node *node)
{
    return node->standing.state != DP_TRAINER_OFF && dp_round_may_check(node);
}

void dp_part_round_check(dp_node *node, const dp_hash *root, uint32_t part)
{
    const dp_part_cuts *cuts = &node->ledger.layout.cuts;
    dp_action *action = dp_out_add(&node->out, DP_DO_CHECK);

    dp_assert(part < node->ledger.layout.cuts.n);
    dp_round_begin_check(node, root);
    action->u.check.root = *root;
    action->u.check.first = cuts->first[part];
    action->u.check.end = dp_part_end(cuts, part);
}

/* Its size is found when it is fetched: a peer may announce another's object with a wrong size, and
 * its holders are not to be blamed for that. */
void dp_part_round_fetch(dp_node *node, const dp_hash *root, uint64_t bytes, const dp_peer *holder)
{
    const uint32_t index = dp_node_member_index(node, holder);

    DP_IGNORE(dp_picker_want(node->picker, node->now, root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND,
                             &node->out)); /* Full: asked again with the next repeat. */
    dp_picker_expect(node->picker, root, bytes);
    if (index != DP_MEMBER_NONE && index != 0) {
        dp_picker_holder(node->picker, node->now, root, index, &node->out);
    }
}

/* Full: it stays until the disk is looked through. */
void dp_part_round_throw_away(dp_node *node, const dp_hash *root, uint64_t round)
{
    dp_part_round *parts = node->parts;

    dp_assert(node->parts->n_garbage <= DP_GARBAGE_MAX);
    if (!dp_node_holds(node, root)) {
        dp_chain_drop(node, root, round); /* Unless it is on its way and decided. */
    } else if (parts->n_garbage < DP_GARBAGE_MAX) {
        parts->garbage[parts->n_garbage].root = *root;
        parts->garbage[parts->n_garbage++].round = round;
    }
}

dp_part_term dp_part_round_term(const dp_node *node, const dp_claim *claim, uint32_t part)
{
    const dp_weight_out weight = dp_valid_weigh(&node->ledger, &claim->ready);

    dp_assert(part < claim->ready.parts.n);
    return (dp_part_term){.ref = claim->ready.parts.refs[part], .w = weight.w, .clip = weight.clip};
}

/* Nobody has heard of it, and nobody else would let it go; the same bytes may be another's
 * result. */
void dp_part_round_let_go(dp_node *node, const dp_event *event)
{
    const dp_hash *root = &event->u.reduced.root;

    if (event->u.reduced.status != DP_OK || dp_part_round_knows(node, root) ||
        dp_node_holds(node, root) || !dp_out_room(&node->out, 1)) {
        return;
    }
    dp_action *drop = dp_out_add(&node->out, DP_DO_OBJECT_DROP);
    drop->u.keep.root = *root;
    drop->u.keep.use = DP_USE_BLOB;
    drop->u.keep.round = event->u.reduced.round;
}
