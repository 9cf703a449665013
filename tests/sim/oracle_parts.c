/* The judge of parts: computes every result that a record names again from the publications of its
 * contributors, with weights and shares by the same integers, and checks that the layout of the
 * next round follows from the record. */
#include "gossip/ledger/weights.h"
#include "tests/sim/oracle_internal.h"

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

uint64_t dp_oracle_reduce_nonce(uint64_t round, uint32_t part)
{
    return 1ULL << 63 | round << 8 | part;
}

/* A part contains the same nonzero work only once, under any name. */
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

/* Some of the contributions of a part, and their sum. */
typedef struct sum_of {
    dp_toy_term terms[DP_LISTED_DEFAULT];
    unsigned __int128 w[DP_LISTED_DEFAULT];
    uint32_t clip[DP_LISTED_DEFAULT];
    uint32_t n;
} sum_of;

static void add_term(sum_of *sum, dp_view blob, unsigned __int128 w, uint32_t clip)
{
    sum->terms[sum->n].blob = blob;
    sum->w[sum->n] = w;
    sum->clip[sum->n++] = clip;
}

static dp_status reduce(dp_sim *sim, const dp_record *record, uint32_t p, uint32_t tag, sum_of *sum,
                        dp_hash *root)
{
    const dp_part_cuts *cuts = &sim->oracle->cuts;
    uint8_t blob[DP_TOY_BLOB_MAX];
    unsigned __int128 all = 0;
    uint32_t size = 0;

    for (uint32_t i = 0; i < sum->n; i++) {
        all += sum->w[i];
    }
    for (uint32_t i = 0; i < sum->n; i++) {
        sum->terms[i].q = (uint32_t)(all == 0 ? 0 : sum->w[i] * sum->clip[i] * 32768 / all);
    }
    DP_TRY(dp_toy_reduce(sum->terms, sum->n, cuts->first[p], dp_part_end(cuts, p),
                         dp_oracle_reduce_nonce(record->round, p + tag), blob, &size));
    *root = dp_shelf_root(&sim->shelf, dp_view_of(blob, size));
    return DP_OK;
}

/* The bytes of contribution i published for part p. */
static bool object_of(dp_sim *sim, const dp_record *record, uint32_t p, uint32_t i, dp_view *blob)
{
    const dp_parcel_book *parcel = dp_oracle_parcel(sim->oracle, &record->listed[i].root);

    if (parcel == NULL || parcel->parts == NULL || parcel->parts->n != sim->oracle->cuts.n) {
        return false;
    }
    *blob = dp_shelf_bytes(&sim->shelf, dp_shelf_find(&sim->shelf, &parcel->parts->refs[p].root));
    return true;
}

/* Is this sum of a site correct? *w: weight of all that is in it. */
static bool check_sum(dp_sim *sim, const dp_record *record, uint32_t p, const dp_site_sum *said,
                      unsigned __int128 *w)
{
    const uint32_t collector = dp_sim_index(sim, &record->listed[said->collector].peer);
    sum_of sum = {.n = 0};
    dp_hash root;

    *w = 0;
    for (uint32_t i = 0; i < record->n_listed; i++) {
        dp_view blob;
        if ((said->from >> i & 1U) != 0) {
            if (!object_of(sim, record, p, i, &blob)) {
                return false;
            }
            add_term(&sum, blob, record->listed[i].w, record->listed[i].clip);
            *w += record->listed[i].w;
        }
    }
    if (reduce(sim, record, p, DP_REDUCE_SUM, &sum, &root) != DP_OK ||
        !dp_hash_equal(&root, &said->root)) {
        dp_sim_fail(sim, "S4", collector, "a sum of a site in part %u of round %llu is another", p,
                    wide(record->round));
        return false;
    }
    sim->totals.site_sums++;
    return true;
}

/* The sum of this part that contains contribution i; NULL: none. */
static const dp_site_sum *site_of(const dp_record *record, const dp_part_row *part, uint32_t i)
{
    for (uint32_t k = 0; k < part->n_sums; k++) {
        if ((record->sums[part->first_sum + k].from >> i & 1U) != 0) {
            return &record->sums[part->first_sum + k];
        }
    }
    return NULL;
}

/* Computes the correct result of part p. False: its contributors did not publish the needed
 * objects. */
static bool add_up(dp_sim *sim, const dp_record *record, uint32_t p, dp_hash *root)
{
    const dp_part_row *part = &record->parts[p];
    dp_toy_term single[DP_LISTED_DEFAULT];
    sum_of sum = {.n = 0};
    uint32_t n = 0;
    uint32_t done = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_site_sum *site = site_of(record, part, i);
        unsigned __int128 w = record->listed[i].w;
        dp_view blob;
        if ((part->from >> i & 1U) == 0) {
            continue;
        }
        if (!object_of(sim, record, p, i, &blob)) {
            return false;
        }
        single[n++] = (dp_toy_term){.blob = blob};
        if (site == NULL) {
            add_term(&sum, blob, w, record->listed[i].clip);
        } else if ((done & site->from) == 0) {
            done |= site->from;
            if (!check_sum(sim, record, p, site, &w)) {
                return false;
            }
            add_term(&sum, dp_shelf_bytes(&sim->shelf, dp_shelf_find(&sim->shelf, &site->root)), w,
                     DP_CLIP_ONE);
        }
    }
    if (counts_twice(single, n)) {
        dp_sim_fail(sim, "S3", dp_sim_index(sim, &part->owner),
                    "part %u of round %llu counts one object twice", p, wide(record->round));
    }
    return reduce(sim, record, p, 0, &sum, root) == DP_OK;
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
    dp_peer peers[DP_LISTED_DEFAULT];
    uint32_t rates[DP_LISTED_DEFAULT];
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
