#include "gossip/turn.h"

static bool goes_before(const dp_roster_entry *a, const dp_roster_entry *b)
{
    return a->included != b->included ? a->included < b->included
                                      : dp_peer_compare(&a->peer, &b->peer) < 0;
}

uint32_t dp_turn_before(const dp_ledger *ledger, const dp_peer *peer,
                        bool (*alive)(const void *context, const dp_peer *peer),
                        const void *context)
{
    const dp_roster_entry *own = dp_ledger_member(ledger, peer);
    const uint64_t round = ledger->round + 1;
    uint32_t before = 0;

    if (own == NULL || !dp_ledger_may_be_late(ledger, own, round)) {
        return 0;
    }
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        if (entry != own && goes_before(entry, own) &&
            dp_ledger_may_be_late(ledger, entry, round) && alive(context, &entry->peer)) {
            before++;
        }
    }
    return before;
}

uint32_t dp_turn_allowed(uint64_t elapsed_us, uint64_t round_us)
{
    const uint64_t eighth = round_us / 8 > 0 ? round_us / 8 : 1;
    const uint64_t over = elapsed_us > round_us ? (elapsed_us - round_us) / eighth : 0;

    return over < DP_MEMBERS_MAX / DP_TURN_MEMBERS ? DP_TURN_MEMBERS * (1 + (uint32_t)over)
                                                   : (uint32_t)DP_MEMBERS_MAX;
}
