/* Helpers for every part of a node: notes for the event log, a peer's index here, the time for a
 * record, whether a READY is of an open round. */
#include "gossip/context/context.h"

#include "base/assert.h"

void dp_node_note(dp_node *node, dp_note_code code, uint64_t round, const dp_peer *peer, uint64_t a,
                  uint64_t b, const char *cause)
{
    dp_note note = {.code = code, .round = round, .a = a, .b = b, .cause = cause};

    dp_assert(cause != NULL);
    if (peer != NULL) {
        note.peer = *peer;
    }
    dp_out_note(&node->out, note);
}

uint32_t dp_node_member_index(const dp_node *node, const dp_peer *peer)
{
    return dp_members_find(node->members, peer);
}

bool dp_node_is_voter(const dp_node *node)
{
    return dp_ledger_voter(&node->ledger, &node->self) != DP_NOBODY;
}

uint32_t dp_node_keep(const dp_node *node, uint64_t round)
{
    const dp_density *const density = &node->ledger.density;

    dp_assert(round <= node->ledger.round + 2);
    if (!dp_density_moves(density)) {
        return 0;
    }
    return round == node->ledger.round + 1 ? density->keep
           : round == node->ledger.round   ? density->before
                                           : 0;
}

void dp_node_changed(dp_node *node)
{
    node->changed = true;
}

void dp_node_repeat_now(dp_node *node)
{
    node->repeat_at = node->now;
    node->changed = true;
}

void dp_node_reopen(dp_node *node)
{
    node->reopening = true;
    dp_out_add(&node->out, DP_DO_REOPEN);
}

uint64_t dp_node_record_ms(const dp_node *node)
{
    const uint64_t agreed_ms = dp_heartbeat_agreed_ms(&node->beat, node->now);

    return agreed_ms > node->ledger.time_ms ? agreed_ms : node->ledger.time_ms;
}

bool dp_node_is_open(const dp_node *node, const dp_ready *ready)
{
    const dp_ledger *ledger = &node->ledger;

    if (ready->round == ledger->round + 1) {
        return dp_hash_equal(&ready->base, &ledger->base);
    }
    return ready->round == ledger->round && dp_ledger_may_be_stale(ledger, &ready->peer) &&
           dp_hash_equal(&ready->base, &ledger->base_before);
}
