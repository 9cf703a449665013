/* The judge of mass: checks which publication was counted, left out or taken back, computes the
 * weights again from the blobs, and checks that pair exchanges neither create nor lose
 * displacement. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/pairs/mix_msg.h"
#include "tests/sim/evil.h"
#include "tests/sim/forks.h"
#include "tests/sim/oracle_internal.h"

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

dp_root_book *dp_oracle_root(dp_oracle *oracle, const dp_hash *root)
{
    for (uint32_t i = oracle->n_roots; i > 0; i--) {
        if (dp_hash_equal(&oracle->roots[i - 1].root, root)) {
            return &oracle->roots[i - 1];
        }
    }
    return NULL;
}

void dp_oracle_published(dp_host *host, const dp_hash *root)
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_oracle *o = host->sim->oracle;
    uint64_t capacity = o->roots_capacity;

    if (dp_oracle_root(o, root) != NULL) {
        return;
    }
    o->roots = dp_oracle_room(o->roots, o->n_roots, &capacity, sizeof *o->roots);
    o->roots_capacity = (uint32_t)capacity;
    o->roots[o->n_roots++] = (dp_root_book){.root = *root, .owner = host->index};
}

static bool is_of_round(const dp_claim_book *claim, uint32_t owner, const dp_ready *ready)
{
    return claim->owner == owner && claim->round == ready->round &&
           dp_hash_equal(&claim->base, &ready->base);
}

void dp_oracle_ready(dp_host *host, const dp_ready *ready)
{
    if (host->sim->forks != NULL) {
        dp_forks_announced(host, &ready->root);
        return;
    }
    dp_sim *sim = host->sim;
    dp_oracle *o = sim->oracle;
    uint64_t capacity = o->claims_capacity;
    const uint32_t owner = dp_sim_index(sim, &ready->peer);

    dp_oracle_announced(host, &ready->root);
    for (uint32_t i = o->n_claims; i > 0; i--) {
        const dp_claim_book *claim = &o->claims[i - 1];
        if (is_of_round(claim, owner, ready) && dp_hash_equal(&claim->root, &ready->root)) {
            /* Announced again; one that was lost with the disk may come back in others' records. */
            return;
        }
    }
    for (uint32_t i = o->n_claims; i > 0; i--) {
        const dp_claim_book *claim = &o->claims[i - 1];
        if (is_of_round(claim, owner, ready) && !claim->forgotten) {
            dp_sim_fail(sim, "B4", host->index, "node %u announces two publications for round %llu",
                        owner, wide(ready->round));
            return;
        }
    }
    o->claims = dp_oracle_room(o->claims, o->n_claims, &capacity, sizeof *o->claims);
    o->claims_capacity = (uint32_t)capacity;
    o->claims[o->n_claims++] = (dp_claim_book){
        .owner = owner, .round = ready->round, .base = ready->base, .root = ready->root};
}

/* Has its author announced it for this round? */
static bool was_told(const dp_oracle *o, uint32_t owner, uint64_t round, const dp_hash *root)
{
    for (uint32_t i = o->n_claims; i > 0; i--) {
        const dp_claim_book *claim = &o->claims[i - 1];
        if (claim->owner == owner && claim->round == round && dp_hash_equal(&claim->root, root)) {
            return true;
        }
    }
    return false;
}

/* Checks that a late update counts in the next round or never, and only in a run that has this
 * rule. */
static void check_age(dp_sim *sim, const dp_record *record, uint32_t index)
{
    const uint32_t owner = dp_sim_index(sim, &record->listed[index].peer);

    if (dp_listed_age(record, index) == 0) {
        return;
    }
    sim->totals.aged++;
    if (!sim->plan.stale || owner >= sim->plan.nodes || !sim->oracle->members[owner].member ||
        !was_told(sim->oracle, owner, record->round - 1, &record->listed[index].root)) {
        dp_sim_fail(sim, "S4", owner,
                    "round %llu counts as late a publication that was not told for the one before",
                    wide(record->round));
    }
}

void dp_oracle_listed(dp_sim *sim, const dp_record *record, uint32_t index)
{
    const uint64_t round = record->round;
    const dp_listed *listed = &record->listed[index];
    dp_root_book *book = dp_oracle_root(sim->oracle, &listed->root);
    const uint32_t owner = dp_sim_index(sim, &listed->peer);

    check_age(sim, record, index);

    if (book != NULL && dp_evil_steals(sim, owner, book->owner)) {
        return; /* Its author holds it for left out, correctly. */
    }
    if (book == NULL || sim->hosts[book->owner].name != owner) {
        dp_sim_fail(sim, "S4", owner, "round %llu lists a blob that this node never made",
                    wide(round));
    } else if (book->listed != 0) {
        dp_sim_fail(sim, "S3", owner, "a blob is counted in round %llu and in round %llu",
                    wide(book->listed), wide(round));
    } else if (book->left_out) {
        dp_sim_fail(sim, "S3", owner, "round %llu counts a blob that its owner had taken back",
                    wide(round));
    } else {
        book->listed = round;
        book->clip = listed->clip;
        book->cuts = sim->oracle->cuts;
        for (uint32_t p = 0; p < record->n_parts; p++) {
            book->taken |= (record->parts[p].from >> index & 1U) << p;
        }
        dp_oracle_samples(sim, round, listed);
    }
}

void dp_oracle_settled(dp_host *host, const dp_hash *root, const dp_toy_outcome *outcome,
                       uint64_t round)
{
    const dp_settle settle = outcome->settle;
    const uint32_t clip_q16 = outcome->clip_q16;

    if (host->sim->forks != NULL) {
        dp_forks_settled(host, root);
        return;
    }
    dp_root_book *book = dp_oracle_root(host->sim->oracle, root);

    if (book == NULL) {
        dp_sim_fail(host->sim, "B4", host->index, "settles a publication that it never made");
    } else if (settle == DP_SETTLE_INCLUDED && (book->listed == 0 || book->clip != clip_q16)) {
        dp_sim_fail(host->sim, "B4", host->index,
                    "takes its publication as counted in round %llu; the chain says round %llu, "
                    "clip %u not %u",
                    wide(round), wide(book->listed), book->clip, clip_q16);
    } else if (settle == DP_SETTLE_INCLUDED && book->cuts.n > 0 &&
               (book->taken != outcome->taken ||
                memcmp(&book->cuts, &outcome->cuts, sizeof book->cuts) != 0)) {
        dp_sim_fail(
            host->sim, "F4", host->index,
            "takes parts %#x of its publication as counted in round %llu; the chain says %#x",
            outcome->taken, wide(round), book->taken);
    } else if (settle == DP_SETTLE_LEFT_OUT && book->listed != 0) {
        dp_sim_fail(host->sim, "B4", host->index,
                    "takes back a publication that was counted in round %llu", wide(book->listed));
    } else if (settle == DP_SETTLE_LEFT_OUT) {
        book->left_out = true;
    }
}

/* ---- weights (SAFETY E), written a second time ---- */

static uint64_t root_of(unsigned __int128 value)
{
    uint64_t low = 0;
    uint64_t high = UINT64_MAX;

    while (low < high) {
        const uint64_t middle = low + (high - low) / 2 + 1;
        if ((unsigned __int128)middle * middle <= value) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

static int rising(const void *a, const void *b)
{
    unsigned __int128 x;
    unsigned __int128 y;

    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

static unsigned __int128 lower_median(const unsigned __int128 *values, uint32_t n)
{
    unsigned __int128 sorted[DP_LISTED_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        if (values[i] != 0) {
            sorted[count++] = values[i];
        }
    }
    if (count == 0) {
        return 0;
    }
    qsort(sorted, count, sizeof sorted[0], rising);
    return sorted[(count - 1) / 2];
}

static uint32_t clip_of(unsigned __int128 energy, unsigned __int128 median)
{
    uint32_t shift = 0;

    if (energy <= median) {
        return 65536;
    }
    while ((energy >> shift) >> 64 != 0) {
        shift++;
    }
    return (uint32_t)root_of(((median >> shift) << 32) / (energy >> shift));
}

static unsigned __int128 energy_of(dp_sim *sim, const dp_hash *root)
{
    dp_toy_vector values;
    unsigned __int128 energy = 0;
    const uint32_t object = dp_shelf_find(&sim->shelf, root);

    if (object == DP_SHELF_NONE ||
        dp_toy_decode(dp_shelf_bytes(&sim->shelf, object), values, &energy) != DP_OK) {
        dp_sim_fail(sim, "S4", 0, "a decided blob does not decode");
    }
    return energy;
}

/* A late member keeps its share of the step (SAFETY B3): it was counted lately, and is not counted
 * now. */
static void check_late(dp_sim *sim, const dp_record *record)
{
    const dp_member_book *members = sim->oracle->members;
    uint64_t n_members = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        n_members += members[i].member ? 1 : 0;
    }
    const uint64_t most = sim->plan.contributors;
    const uint64_t window = 4 * ((n_members + most - 1) / most);
    for (uint32_t i = 0; i < record->n_late; i++) {
        const uint32_t late = dp_sim_index(sim, &record->late[i]);
        bool twice = i > 0 && dp_peer_compare(&record->late[i - 1], &record->late[i]) >= 0;
        for (uint32_t k = 0; k < record->n_listed; k++) {
            twice = twice || dp_peer_equal(&record->late[i], &record->listed[k].peer);
        }
        if (late >= sim->plan.nodes || twice || !members[late].member ||
            members[late].included == 0 || members[late].included + window < record->round) {
            dp_sim_fail(sim, "B3", late < sim->plan.nodes ? late : 0,
                        "round %llu calls somebody late who is not", wide(record->round));
            return;
        }
    }
}

/* If no fault can make a node look dead, a member that was counted lately and is not counted now
 * must be late: otherwise the step of the others would be too long (SAFETY B3). */
static void check_nobody_forgotten(dp_sim *sim, const dp_record *record)
{
    enum {
        HARMLESS = 1 << DP_FAULT_DELAY | 1 << DP_FAULT_COPY | 1 << DP_FAULT_REORDER |
                   1 << DP_FAULT_SLOW | 1 << DP_FAULT_DISK | 1 << DP_FAULT_CLOCK |
                   1 << DP_FAULT_TRAINER
    };
    const dp_member_book *members = sim->oracle->members;
    const bool harmless = (sim->plan.on & ~(uint32_t)HARMLESS) == 0 && !sim->plan.core &&
                          sim->plan.kill_share == 0 && sim->plan.churn_us == 0 &&
                          sim->plan.life_us == 0;

    for (uint32_t i = 0; i < sim->plan.nodes && harmless; i++) {
        bool named = sim->plan.nodes > sim->plan.contributors || members[i].included == 0 ||
                     members[i].included + 4 < record->round;
        for (uint32_t k = 0; k < record->n_listed; k++) {
            named = named || dp_peer_equal(&sim->hosts[i].peer, &record->listed[k].peer);
        }
        for (uint32_t k = 0; k < record->n_late; k++) {
            named = named || dp_peer_equal(&sim->hosts[i].peer, &record->late[k]);
        }
        if (!named) {
            dp_sim_fail(sim, "B3", i, "round %llu forgets a member that is late",
                        wide(record->round));
        }
    }
}

static uint64_t rounds_in(const dp_member_book *m, uint64_t round)
{
    const uint64_t since = m->included != 0 ? m->included : m->admitted_round;
    const uint64_t gap = round > since ? round - since : 1;

    return gap < 1 ? 1 : gap > 4 ? 4 : gap;
}

/* The whole blob of a publication; in rounds of parts only its author has it. */
static const dp_hash *blob_of(const dp_sim *sim, const dp_hash *root)
{
    const dp_parcel_book *parcel = dp_oracle_parcel(sim->oracle, root);

    return parcel != NULL ? &parcel->blob_root : root;
}

void dp_oracle_weights(dp_sim *sim, const dp_record *record)
{
    dp_oracle *o = sim->oracle;
    dp_member_book *members = sim->oracle->members;
    unsigned __int128 energies[DP_LISTED_MAX] = {0};
    unsigned __int128 weights[DP_LISTED_MAX] = {0};
    unsigned __int128 total = 0;
    const uint32_t n = record->n_listed;

    for (uint32_t i = 0; i < n; i++) {
        const dp_listed *item = &record->listed[i];
        const uint32_t owner = dp_sim_index(sim, &item->peer);
        dp_assert(owner < sim->plan.nodes);
        /* A node that this record admits has no history. */
        const uint64_t made = record->round - dp_listed_age(record, i);
        const uint64_t k = members[owner].member ? rounds_in(&members[owner], made) : 1;
        energies[i] = energy_of(sim, blob_of(sim, &item->root)) * (12 / k) * (12 / k);
        weights[i] =
            item->steps == 0 ? 0 : (unsigned __int128)item->tokens * item->tokens / item->steps;
    }
    check_late(sim, record);
    check_nobody_forgotten(sim, record);
    unsigned __int128 middle = lower_median(energies, n);
    unsigned __int128 most = 4 * lower_median(weights, n);
    if (sim->plan.parts) { /* Against the record before (SAFETY F2); nothing before the first. */
        const unsigned __int128 before = o->clip_median;
        o->clip_median = middle;
        middle = before != 0 ? before : ~(unsigned __int128)0;
        most = o->w_median != 0 ? 4 * o->w_median : ~(unsigned __int128)0;
    }
    for (uint32_t i = 0; i < n; i++) {
        weights[i] = weights[i] > most ? most : weights[i];
        total += weights[i];
    }
    o->w_median = lower_median(weights, n);
    for (uint32_t i = 0; i < record->n_late; i++) {
        const uint32_t late = dp_sim_index(sim, &record->late[i]);
        total += late < sim->plan.nodes ? members[late].w : 0;
    }
    for (uint32_t i = 0; i < n; i++) {
        const dp_listed *item = &record->listed[i];
        const uint32_t owner = dp_sim_index(sim, &item->peer);
        const uint32_t whole = sim->plan.gradients ? 65536 : clip_of(energies[i], middle);
        const uint32_t clip = dp_listed_age(record, i) != 0 ? whole / 2 : whole;
        const uint32_t q = total == 0 ? 0 : (uint32_t)(weights[i] * clip * 32768 / total);
        if (item->w != weights[i] || item->clip != clip || item->q != q) {
            dp_sim_fail(
                sim, "S4", owner,
                "round %llu gives weight %llu clip %u share %u, and %llu %u %u would be right",
                wide(record->round), wide(item->w), item->clip, item->q, wide((uint64_t)weights[i]),
                clip, q);
            return;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t owner = dp_sim_index(sim, &record->listed[i].peer);
        members[owner].included = record->round - dp_listed_age(record, i);
        members[owner].w = (uint64_t)weights[i];
    }
}

/* ---- pair exchanges ---- */

static dp_mix_book *mix_of(dp_oracle *o, const uint8_t exchange[16])
{
    uint64_t capacity = o->mixes_capacity;

    for (uint32_t i = o->n_mixes; i > 0; i--) {
        if (memcmp(o->mixes[i - 1].exchange, exchange, 16) == 0) {
            return &o->mixes[i - 1];
        }
    }
    o->mixes = dp_oracle_room(o->mixes, o->n_mixes, &capacity, sizeof *o->mixes);
    o->mixes_capacity = (uint32_t)capacity;
    dp_mix_book *book = &o->mixes[o->n_mixes++];
    memset(book, 0, sizeof *book);
    memcpy(book->exchange, exchange, 16);
    return book;
}

/* Both F of one exchange move away from the same model (SAFETY C5: same base only). */
static bool same_base(const dp_mix_book *book)
{
    return book->n_frozen < 2 || book->frozen[0].round == book->frozen[1].round;
}

void dp_oracle_frozen(dp_host *host, const uint8_t exchange[16])
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_mix_book *book = mix_of(host->sim->oracle, exchange);
    uint32_t i = 0;

    while (i < book->n_frozen && book->frozen[i].owner != host->index) {
        i++;
    }
    if (i < 2) {
        book->frozen[i].owner = host->index;
        book->frozen[i].round = host->toy.round;
        book->n_frozen = i == book->n_frozen ? i + 1 : book->n_frozen;
    }
}

void dp_oracle_exchange_sent(dp_host *host, dp_view message)
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_mix_msg msg;

    if (dp_mix_msg_read(message, &msg) != DP_OK) {
        dp_sim_fail(host->sim, "W1", host->index,
                    "sent a word of an exchange that does not decode");
        return;
    }
    dp_mix_book *book = mix_of(host->sim->oracle, msg.id.bytes);
    if (msg.type == DP_MSG_MIX_COMMIT) {
        book->asked = true;
    } else if (msg.type == DP_MSG_MIX_DONE) {
        book->committed = true;
    } else if (msg.type == DP_MSG_MIX_STATUS && msg.status == DP_MIX_STATUS_ABORTED) {
        memmove(book->refused, book->refused + 1, sizeof book->refused - sizeof book->refused[0]);
        book->refused[DP_ORACLE_TICKETS - 1] = msg.ticket;
    }
}

static bool was_refused(const dp_mix_book *book, uint64_t ticket)
{
    for (uint32_t i = 0; i < DP_ORACLE_TICKETS; i++) {
        if (book->refused[i] == ticket && ticket != 0) {
            return true;
        }
    }
    return false;
}

/* Checks that a node is bound after it has asked its partner to commit: only the answer of the
 * other side, or a fence, unlocks its F (SAFETY C5). */
static void check_unlock(dp_host *host, dp_mix_book *book, const dp_mix_row *row)
{
    const dp_member_book *members = host->sim->oracle->members;
    const uint32_t other = dp_sim_index(host->sim, &row->peer);

    if (row->mark == DP_MIX_MARK_DONE && row->initiator && !book->committed) {
        dp_sim_fail(host->sim, "C5", host->index,
                    "takes an exchange as done that node %u has not committed", other);
    } else if (row->mark == DP_MIX_MARK_ABORTED && row->initiator && book->asked &&
               !was_refused(book, row->ticket) &&
               !(other < host->sim->plan.nodes && members[other].fenced)) {
        dp_sim_fail(host->sim, "C5", host->index,
                    "gives up an exchange in doubt, and node %u has not refused it", other);
    }
}

/* Checks that a fifth of a node's own work remains, for any weight that the other claims. */
static void check_share(dp_host *host, const dp_mix_side *side)
{
    const unsigned __int128 all = (unsigned __int128)side->w_own + side->w_other;

    if (side->damp > 65536 || 5 * (unsigned __int128)side->damp * side->w_other > 4 * 65536 * all) {
        dp_sim_fail(host->sim, "S14", host->index,
                    "gives up more than four fifths of its work in an exchange");
    }
}

/* Sum of w * F over the pair: each element moves by less than one unit per side by rounding. */
static void check_pair(dp_host *host, const dp_mix_book *book)
{
    const dp_mix_side *a = &book->sides[0];
    const dp_mix_side *b = &book->sides[1];

    if (!dp_hash_equal(&a->own_root, &b->other_root) ||
        !dp_hash_equal(&b->own_root, &a->other_root) || a->w_own != b->w_other ||
        b->w_own != a->w_other || a->damp != b->damp) {
        dp_sim_fail(host->sim, "S14", host->index,
                    "nodes %u and %u mixed different things in one exchange", a->owner, b->owner);
        return;
    }
    if (!same_base(book)) {
        dp_sim_fail(host->sim, "S14", host->index,
                    "nodes %u and %u mixed work on the models of two rounds", a->owner, b->owner);
        return;
    }
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        const __int128 sum = (__int128)a->w_own * a->change[i] + (__int128)b->w_own * b->change[i];
        const __int128 slack = (__int128)a->w_own + b->w_own;
        if (sum > slack || sum < -slack) {
            dp_sim_fail(host->sim, "S14", host->index,
                        "an exchange of nodes %u and %u made displacement", a->owner, b->owner);
            return;
        }
    }
}

/* Either both sides move or none, unless one lost its disk or was fenced forever. */
static void check_both(dp_host *host, const dp_mix_book *book)
{
    const dp_member_book *members = host->sim->oracle->members;

    for (uint32_t i = 0; i < book->n_sides && book->aborted; i++) {
        const dp_mix_side *side = &book->sides[i];
        const bool same = side->owner == book->aborter
                              ? dp_hash_equal(&side->own_root, &book->aborted_own) &&
                                    dp_hash_equal(&side->other_root, &book->aborted_other)
                              : dp_hash_equal(&side->own_root, &book->aborted_other) &&
                                    dp_hash_equal(&side->other_root, &book->aborted_own);
        if (same && !members[side->owner].fenced && !members[side->owner].forgot &&
            !members[book->aborter].fenced && !members[book->aborter].forgot) {
            dp_sim_fail(host->sim, "C5", host->index,
                        "node %u moved in an exchange that node %u has aborted", side->owner,
                        book->aborter);
        }
    }
}

void dp_oracle_exchange(dp_host *host, const dp_action *action)
{
    dp_mix_row row;

    if (action->u.store.bytes.size == 0) {
        return;
    }
    if (dp_mix_row_read(action->u.store.bytes, &row) != DP_OK) {
        dp_sim_fail(host->sim, "D2", host->index, "a row of the exchange journal does not decode");
        return;
    }
    dp_evil_prepared(host, &row);
    dp_mix_book *book = mix_of(host->sim->oracle, action->u.store.exchange);
    check_unlock(host, book, &row);
    if (row.mark == DP_MIX_MARK_ABORTED) {
        book->aborted = true;
        book->aborter = host->index;
        book->aborted_own = row.own.root;
        book->aborted_other = row.other.root;
        check_both(host, book);
    }
}

void dp_oracle_mixed(dp_host *host, const dp_action *mix, const dp_toy_vector change)
{
    if (host->sim->forks != NULL) {
        return;
    }
    dp_mix_book *book = mix_of(host->sim->oracle, mix->u.mix.exchange);
    dp_mix_side side = {.owner = host->index,
                        .own_root = mix->u.mix.own_root,
                        .other_root = mix->u.mix.other_root,
                        .w_own = mix->u.mix.weight_own,
                        .w_other = mix->u.mix.weight_other,
                        .damp = mix->u.mix.damp};

    memcpy(side.change, change, sizeof side.change);
    for (uint32_t i = 0; i < book->n_sides; i++) {
        if (book->sides[i].owner == host->index) {
            if (memcmp(book->sides[i].change, change, sizeof side.change) != 0) {
                dp_sim_fail(host->sim, "S14", host->index,
                            "mixes an exchange a second time, differently");
            }
            return;
        }
    }
    if (book->n_sides == 2) {
        dp_sim_fail(host->sim, "S14", host->index, "is the third in one exchange");
        return;
    }
    book->sides[book->n_sides++] = side;
    check_share(host, &side);
    check_both(host, book);
    if (book->n_sides == 2) {
        check_pair(host, book);
    }
}
