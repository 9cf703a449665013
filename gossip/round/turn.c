#include "gossip/round/turn.h"

#include "base/assert.h"

static bool goes_before(const dp_roster_entry *a, const dp_roster_entry *b)
{
    return a->included != b->included ? a->included < b->included
                                      : dp_peer_compare(&a->peer, &b->peer) < 0;
}

bool dp_turn_goes_before(const dp_ledger *ledger, const dp_peer *a, const dp_peer *b)
{
    const dp_roster_entry *ea = dp_ledger_member(ledger, a);
    const dp_roster_entry *eb = dp_ledger_member(ledger, b);
    const uint64_t ia = ea != NULL ? ea->included : 0;
    const uint64_t ib = eb != NULL ? eb->included : 0;

    return ia != ib ? ia < ib : dp_peer_compare(a, b) < 0;
}

bool dp_turn_has_place(const dp_ledger *ledger, const dp_peer *peer, const dp_peer *const *held,
                       uint32_t n)
{
    uint32_t before = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (dp_peer_equal(held[i], peer)) {
            return false;
        }
        before += dp_turn_goes_before(ledger, held[i], peer) ? 1 : 0;
    }
    return before < ledger->listed_max;
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

uint32_t dp_turn_members(const dp_ledger *ledger)
{
    return ledger->listed_max + ledger->listed_max / 2;
}

uint32_t dp_turn_allowed(const dp_ledger *ledger, uint64_t elapsed_us, uint64_t round_us)
{
    const uint32_t members = dp_turn_members(ledger);
    const uint64_t eighth = round_us / 8 > 0 ? round_us / 8 : 1;
    const uint64_t over = elapsed_us > round_us ? (elapsed_us - round_us) / eighth : 0;

    return over < DP_MEMBERS_MAX / members ? members * (1 + (uint32_t)over)
                                           : (uint32_t)DP_MEMBERS_MAX;
}
