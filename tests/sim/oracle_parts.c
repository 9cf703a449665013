/* The judge of parts: every result that a record names is added up again from what its contributors published, with weights
 * and shares by the same integers; and the layout of the next round follows from the record. */
#include "tests/sim/oracle_internal.h"

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

uint64_t dp_oracle_reduce_nonce(uint64_t round, uint32_t part)
{
    return 1ULL << 63 | round << 8 | part;
}

/* Work that moves something is in a part once, under whatever names. */
static bool counts_twice(const dp_toy_term *terms, uint32_t n)
{
    dp_toy_vector values;
    unsigned __int128 energy = 0;
    bool twice = false;

    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < i && !twice; k++) {
            twice = dp_view_equal(terms[k].blob, terms[i].blob) &&
                    dp_toy_decode(terms[i].blob, values, &energy) == DP_OK && energy != 0;
        }
    }
    return twice;
}

/* The result of part p as it should be. False: its contributors did not publish what it needs. */
static bool add_up(dp_sim *sim, const dp_record *record, uint32_t p, dp_hash *root)
{
    const dp_part_cuts *cuts = &sim->oracle->cuts;
    const dp_part_row *part = &record->parts[p];
    dp_toy_term terms[DP_LISTED_STANDARD];
    uint8_t blob[DP_TOY_BLOB_MAX];
    unsigned __int128 all = 0;
    uint32_t size = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        all += (part->from >> i & 1U) != 0 ? record->listed[i].w : 0;
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        if ((part->from >> i & 1U) == 0) {
            continue;
        }
        const dp_parcel_book *parcel = dp_oracle_parcel(sim->oracle, &listed->root);
        if (parcel == NULL || parcel->parts == NULL || parcel->parts->n != cuts->n) {
            return false;
        }
        const uint32_t object = dp_shelf_find(&sim->shelf, &parcel->parts->refs[p].root);
        const unsigned __int128 share =
            all == 0 ? 0 : (unsigned __int128)listed->w * listed->clip * 32768 / all;
        terms[n++] =
            (dp_toy_term){.blob = dp_shelf_bytes(&sim->shelf, object), .q = (uint32_t)share};
    }
    if (counts_twice(terms, n)) {
        dp_sim_fail(sim, "S3", dp_sim_index(sim, &part->owner),
                    "part %u of round %llu counts one object twice", p, wide(record->round));
    }
    if (dp_toy_reduce(terms, n, cuts->first[p], dp_part_end(cuts, p),
                      dp_oracle_reduce_nonce(record->round, p), blob, &size) != DP_OK) {
        return false;
    }
    *root = dp_shelf_root(&sim->shelf, dp_view_of(blob, size));
    return true;
}

static bool check_part(dp_sim *sim, const dp_record *record, uint32_t p)
{
    const dp_part_row *part = &record->parts[p];
    const uint32_t owner = dp_sim_index(sim, &part->owner);
    unsigned __int128 w = 0;
    dp_hash root;

    if (owner >= sim->plan.nodes) {
        dp_sim_fail(sim, "S4", 0, "a stranger owns part %u of round %llu", p, wide(record->round));
        return false;
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        w += (part->from >> i & 1U) != 0 ? record->listed[i].w : 0;
    }
    const uint32_t q =
        record->w_total == 0 ? 0 : (uint32_t)(w * ((uint64_t)1 << 31) / record->w_total);
    if (part->q != q) {
        dp_sim_fail(sim, "S4", owner, "part %u of round %llu has share %u where %u is right", p,
                    wide(record->round), part->q, q);
        return false;
    }
    if (!add_up(sim, record, p, &root) || !dp_hash_equal(&root, &part->root)) {
        dp_sim_fail(sim, "S4", owner, "part %u of round %llu is not the sum of what is in it", p,
                    wide(record->round));
        return false;
    }
    return true;
}

uint32_t dp_oracle_parts(dp_sim *sim, const dp_record *record, dp_toy_term terms[DP_PARTS_MAX])
{
    dp_peer peers[DP_LISTED_STANDARD];
    uint32_t rates[DP_LISTED_STANDARD];
    dp_part_layout layout;
    uint32_t n = 0;

    if (record->n_parts != sim->oracle->cuts.n) {
        dp_sim_fail(sim, "S4", 0, "round %llu has %u parts, and the chain says %u",
                    wide(record->round), record->n_parts, sim->oracle->cuts.n);
        return 0;
    }
    for (uint32_t p = 0; p < record->n_parts; p++) {
        if (record->parts[p].has) {
            if (!check_part(sim, record, p)) {
                return 0;
            }
            const uint32_t object = dp_shelf_find(&sim->shelf, &record->parts[p].root);
            terms[n++] =
                (dp_toy_term){.blob = dp_shelf_bytes(&sim->shelf, object), .q = record->parts[p].q};
        }
    }
    sim->totals.parts += record->n_parts;
    sim->totals.parts_missing += record->n_parts - n;
    for (uint32_t i = 0; i < record->n_listed; i++) {
        peers[i] = record->listed[i].peer;
        rates[i] = record->listed[i].rate;
    }
    dp_part_layout_of(&layout, peers, rates, record->n_listed);
    sim->oracle->cuts = layout.cuts;
    return n;
}
