/* The judge of samples: what a trainer drew, not what it says it drew. No sample's work is counted twice, by whomever. */
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

/* A member goes on where it stopped: mostly the span before only grows. */
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
