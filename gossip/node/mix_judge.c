/* Judges the terms of a pair exchange: may this member hold so much work, by the chain that both
 * have? The rules are those for a contribution (valid.c, pace.h), except for the time: during an
 * exchange no record tells it, so the node uses its own clock. */
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/context/context.h"
#include "gossip/node/node_steps.h"
#include "gossip/pairs/mix_msg.h"

/* Slack over the amounts that a record would count: clocks differ, and a refusal here loses the
 * whole exchange, while a record still counts an update whose tokens exceed the bound. */
enum { MORE = 4, STEP_MORE = 64 /* batches in a step: several cards may make it */ };

const char *dp_node_judge_terms(void *context, const dp_peer *peer, const dp_mix_terms *terms)
{
    const dp_node *const node = context;
    const dp_ledger *const ledger = &node->ledger;
    const dp_roster_entry *const entry = dp_ledger_member(ledger, peer);

    dp_assert(peer != NULL && terms != NULL);
    if (entry == NULL) {
        return "the partner of a pair exchange is not a member";
    }
    if (terms->bytes > dp_manifest_update_bytes_max(&node->manifest)) {
        return "an object of a pair exchange is larger than any update";
    }
    if (terms->tokens == 0) {
        return NULL; /* It weighs nothing. */
    }
    if (!dp_lease_covers(&entry->lease, &terms->reach, terms->tokens, ledger->context)) {
        return "a pair exchange has samples outside of its member's lease";
    }
    const uint64_t batch = (uint64_t)node->manifest.batch_rows * ledger->context;
    if (terms->tokens / STEP_MORE / batch > terms->steps) {
        return "a pair exchange has more tokens than its steps can train on";
    }
    const uint64_t agreed_ms = dp_heartbeat_agreed_ms(&node->beat, node->now);
    const uint64_t now_ms = agreed_ms > node->wall_ms ? agreed_ms : node->wall_ms;
    const uint64_t span_ms = now_ms > entry->counted_ms ? now_ms - entry->counted_ms : 0;
    if (ledger->pace.speed > 0 && !dp_broken(114) &&
        terms->tokens / MORE > dp_pace_most(&ledger->pace, span_ms)) {
        return "a pair exchange has more tokens than its time allows";
    }
    return NULL;
}
