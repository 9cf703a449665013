/* The judge of samples, by the samples that trainers drew, not by their claims. No sample's work is
 * counted twice by any members, and no sample is lost: each granted one is used up, in a lease, in
 * the pool, or reported lost. */
#include "gossip/context/context.h"
#include "tests/sim/host.h"
#include "tests/sim/oracle_internal.h"

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

const dp_parcel_book *dp_oracle_parcel(const dp_oracle *o, const dp_hash *root)
{
    for (uint32_t i = o->n_parcels; i > 0; i--) {
        if (dp_hash_equal(&o->parcels[i - 1].root, root)) {
            return &o->parcels[i - 1];
        }
    }
    return NULL;
}

static const dp_toy_span *counted_before(const dp_oracle *o, const dp_toy_span *span)
{
    for (uint64_t i = 0; i < o->n_counted; i++) {
        const dp_toy_span *other = &o->counted[i];
        if (other->line == span->line && other->first < span->end && span->first < other->end) {
            return other;
        }
    }
    return NULL;
}

/* A member continues where it stopped: usually the previous span just grows. */
static void count(dp_oracle *o, const dp_toy_span *span)
{
    for (uint64_t i = o->n_counted; i > 0; i--) {
        dp_toy_span *other = &o->counted[i - 1];
        if (other->line == span->line && other->end == span->first) {
            other->end = span->end;
            return;
        }
    }
    o->counted = dp_oracle_room(o->counted, o->n_counted, &o->counted_capacity, sizeof *o->counted);
    o->counted[o->n_counted++] = *span;
}

void dp_oracle_samples(dp_sim *sim, uint64_t round, const dp_listed *listed)
{
    dp_oracle *o = sim->oracle;
    const dp_parcel_book *parcel = dp_oracle_parcel(o, &listed->root);

    for (uint32_t i = 0; parcel != NULL && !sim->plan.measured && i < parcel->samples.n; i++) {
        const dp_toy_span *span = &parcel->samples.spans[i];
        const dp_toy_span *before = counted_before(o, span);
        if (before != NULL) {
            dp_sim_fail(sim, "S17", parcel->owner,
                        "round %llu counts samples %llu to %llu of line %llu, of which %llu to "
                        "%llu are counted already",
                        wide(round), wide(span->first), wide(span->end - 1), wide(span->line),
                        wide(before->first), wide(before->end - 1));
            return;
        }
        count(o, span);
    }
}

/* The number of samples that the ledger holds as granted and not used. */
static uint64_t at_rest(const dp_ledger *ledger)
{
    uint64_t count = ledger->pool.lost;

    for (uint32_t i = 0; i < ledger->pool.n; i++) {
        count += ledger->pool.ranges[i].count;
    }
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_lease *lease = &ledger->roster[i].lease;
        for (uint32_t k = 0; k < lease->n; k++) {
            count += lease->ranges[k].count;
        }
    }
    return count;
}

/* Samples used up by the record of this slot; false: unknown, for a member that is listed and
 * removed by the same record. */
static bool used_up(const dp_lease_book *book, const dp_ledger *ledger, uint64_t *used)
{
    *used = 0;
    for (uint32_t i = 0; i < book->n; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        const bool counted = entry->included != book->included[i];
        if (counted && entry->gone != book->gone[i]) {
            return false;
        }
        *used += counted ? entry->lease.reach.leased - book->leased[i] : 0;
    }
    return true;
}

void dp_oracle_leases(const dp_host *host)
{
    const dp_ledger *ledger = &host->node->ledger;
    dp_lease_book *book = &host->sim->oracle->leases[host->index];
    const uint64_t rest = at_rest(ledger);
    uint64_t used = 0;

    if (book->slot == ledger->slot && dp_hash_equal(&book->head, &ledger->head)) {
        return;
    }
    if (book->slot + 1 == ledger->slot && dp_hash_equal(&book->fork, &ledger->fork) &&
        used_up(book, ledger, &used) &&
        ledger->pool.cursor - book->cursor + book->rest != rest + used) {
        dp_sim_fail(host->sim, "S17", host->index,
                    "slot %llu grants %llu samples and uses up %llu, and of those at rest %llu "
                    "become %llu",
                    wide(ledger->slot), wide(ledger->pool.cursor - book->cursor), wide(used),
                    wide(book->rest), wide(rest));
    }
    book->slot = ledger->slot;
    book->head = ledger->head;
    book->fork = ledger->fork;
    book->cursor = ledger->pool.cursor;
    book->rest = rest;
    book->n = ledger->n_roster < DP_LEASE_BOOK_MAX ? ledger->n_roster : DP_LEASE_BOOK_MAX;
    for (uint32_t i = 0; i < book->n; i++) {
        book->leased[i] = ledger->roster[i].lease.reach.leased;
        book->included[i] = ledger->roster[i].included;
        book->gone[i] = ledger->roster[i].gone;
    }
}
