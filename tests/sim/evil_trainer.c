/* A trainer that lies: false contributions. Also the judge, from the records, of how far they may
 * move the model. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/record/part_sum.h"
#include "gossip/round/round_msg.h"
#include "tests/sim/evil.h"
#include "tests/sim/oracle_internal.h"

static const int64_t largest = (int64_t)1 << 40; /* of the toy's code */

/* ---- blobs ---- */

static uint32_t encode(const dp_toy_vector values, uint64_t nonce, uint8_t out[DP_TOY_BLOB_MAX])
{
    dp_writer w = dp_writer_of(out, DP_TOY_BLOB_MAX);

    dp_write_u64(&w, nonce);
    dp_write_u16(&w, DP_TOY_ELEMENTS);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        dp_write_u16(&w, (uint16_t)i);
        dp_write_u64(&w, (uint64_t)values[i]);
    }
    dp_assert(!w.full);
    return (uint32_t)w.size;
}

static int64_t bounded(__int128 value)
{
    return value > largest ? largest : value < -largest ? -largest : (int64_t)value;
}

static void spoil(dp_sim *sim, uint32_t trick, dp_toy_vector values)
{
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (trick == DP_WORK_SCALED) {
            values[i] = bounded((__int128)values[i] * 1000);
        } else if (trick == DP_WORK_FLIPPED) {
            values[i] = -values[i];
        } else if (trick == DP_WORK_EXTREME) {
            values[i] = dp_evil_below(sim, 2) == 0 ? largest : -largest;
        } else if (trick == DP_WORK_TINY) {
            values[i] = i == 0 ? 1 : 0;
        }
    }
}

/* Puts the other contribution to the same round on its disk, so that peers can fetch it. */
static void make_second(dp_host *host, const dp_toy_vector values, uint64_t round)
{
    dp_sim *sim = host->sim;
    dp_evil *e = sim->evil;
    dp_toy_vector other;
    uint8_t blob[DP_TOY_BLOB_MAX];

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        other[i] = -values[i];
    }
    const uint32_t size = encode(other, dp_rng_next(&e->rng), blob);
    const uint32_t object = dp_shelf_add(&sim->shelf, dp_view_of(blob, size));
    dp_disk_use(&host->disk, object, DP_USE_BLOB, true);
    host->disk.uses[object] |= 1;
    e->second_root = sim->shelf.items[object].root;
    e->second_bytes = sim->shelf.items[object].size;
    e->second_round = round;
    e->second_owner = host->index;
    dp_oracle_published(host, &e->second_root);
}

/* Copies all parts but one, which is its own, of the publication that it heard last: another list,
 * so another root. */
static void copy_parts(dp_sim *sim, dp_toy_parcel *parcel, uint64_t round)
{
    static uint8_t bytes[DP_TOY_PARTS_BYTES_MAX];
    const dp_part_list *theirs = &sim->evil->ready.parts;
    uint32_t ends[DP_PARTS_MAX];
    dp_toy_vector values = {0};
    dp_toy_vector part;
    unsigned __int128 energy = 0;
    dp_writer w = dp_writer_of(bytes, sizeof bytes);

    if (!sim->evil->has_ready || sim->evil->ready.round != round || theirs->n != parcel->cuts.n) {
        return; /* It has not heard of a publication that it could copy. */
    }
    const uint32_t own = (uint32_t)dp_evil_below(sim, theirs->n);
    for (uint32_t p = 0; p < theirs->n; p++) {
        const uint32_t object = dp_shelf_find(&sim->shelf, &theirs->refs[p].root);
        dp_assert(object != DP_SHELF_NONE);
        dp_write_view(&w, p == own ? dp_toy_part(parcel, p) : dp_shelf_bytes(&sim->shelf, object));
        ends[p] = (uint32_t)w.size;
    }
    dp_assert(!w.full);
    memcpy(parcel->parts, bytes, w.size);
    memcpy(parcel->part_ends, ends, theirs->n * sizeof ends[0]);
    for (uint32_t p = 0; p < theirs->n; p++) {
        DP_IGNORE(dp_toy_decode(dp_toy_part(parcel, p), part, &energy)); /* Both are honest. */
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            values[i] += part[i];
        }
    }
    parcel->blob_size = encode(values, dp_rng_next(&sim->evil->rng), parcel->blob);
    DP_IGNORE(dp_toy_decode(dp_view_of(parcel->blob, parcel->blob_size), values, &parcel->energy));
    sim->totals.copied++;
}

void dp_evil_publishes(dp_host *host, dp_toy_parcel *parcel, uint64_t round)
{
    dp_sim *sim = host->sim;
    dp_toy_vector values;

    if (!dp_evil_does(sim, host->index, DP_EVIL_TRAINER)) {
        return;
    }
    const uint32_t trick = sim->evil->tricks[DP_EVIL_TRAINER];
    /* The first of the parts that are sent. */
    if (trick == DP_WORK_GARBAGE && parcel->cuts.n > 0) {
        for (uint32_t i = 0; i < parcel->part_ends[0]; i++) {
            parcel->parts[i] = (uint8_t)dp_evil_below(sim, 256);
        }
        return;
    }
    if (trick == DP_WORK_COPIED && parcel->cuts.n > 0) {
        copy_parts(sim, parcel, round);
        return;
    }
    if (trick == DP_WORK_GARBAGE) {
        parcel->blob_size = 1 + (uint32_t)dp_evil_below(sim, DP_TOY_BLOB_MAX);
        for (uint32_t i = 0; i < parcel->blob_size; i++) {
            parcel->blob[i] = (uint8_t)dp_evil_below(sim, 256);
        }
        return;
    }
    const dp_status decoded =
        dp_toy_decode(dp_view_of(parcel->blob, parcel->blob_size), values, &parcel->energy);
    dp_assert(decoded == DP_OK);
    if (trick == DP_WORK_TWO) {
        make_second(host, values, round);
    } else if (trick >= DP_WORK_SCALED && trick <= DP_WORK_TINY) {
        spoil(sim, trick, values);
        parcel->blob_size = encode(values, dp_rng_next(&sim->evil->rng), parcel->blob);
        DP_IGNORE(dp_toy_decode(dp_view_of(parcel->blob, parcel->blob_size), values,
                                &parcel->energy)); /* It was encoded just now. */
    }
}

/* ---- claims ---- */

static void lie_in_numbers(dp_sim *sim, dp_ready *ready)
{
    if (ready->parted) { /* READY states the bytes twice, and peers get no other size. */
        ready->energy = DP_ENERGY_MAX + 1;
        return;
    }
    switch (dp_mix64(sim->evil->side_salt + ready->round) % 7) {
    case 0:
        ready->bytes++;
        break;
    case 1:
        ready->carried = (uint64_t)1 << 44;
        break;
    case 2:
        ready->carried = UINT64_MAX;
        break;
    case 3:
        ready->steps = 0;
        break;
    case 4:
        ready->tokens = UINT64_MAX;
        break;
    case 5:
        ready->state_root.bytes[3] ^= 1;
        break;
    default:
        ready->bytes = UINT64_MAX;
        break;
    }
}

size_t dp_evil_rewrite_ready(dp_host *host, uint32_t to, uint8_t *message, size_t size, size_t room)
{
    dp_evil *e = host->sim->evil;
    const dp_crypto crypto = dp_sim_crypto(host);
    const dp_hash fork = {{0}};
    dp_ready ready;
    dp_writer w = dp_writer_of(message, room);

    if (dp_ready_msg_read(dp_view_of(message, size), &ready) != DP_OK ||
        !dp_peer_equal(&ready.peer, &host->peer)) {
        return size; /* Forwarded for another member. */
    }
    if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_INFLATED) {
        ready.tokens = DP_TOKENS_MAX;
        ready.steps = 1;
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_NOTHING) {
        ready.root.bytes[5] ^= 1;
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_COPIED &&
               !ready.parted) { /* Of parts: copy_parts. */
        if (!e->has_ready || e->ready.round != ready.round) {
            return 0; /* It has not heard of a publication that it could copy. */
        }
        ready.root = e->ready.root;
        ready.bytes = e->ready.bytes;
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_TWO && e->second_round == ready.round &&
               e->second_owner == host->index && dp_evil_side(host->sim, to)) {
        ready.root = e->second_root;
        ready.bytes = e->second_bytes;
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_NUMBERS) {
        lie_in_numbers(host->sim, &ready);
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_CARRIED) {
        ready.carried = (uint64_t)1 << 44;
        /* Only this member knows its position on its own line. */
        ready.reach.own += ready.round << 28;
    }
    dp_assert(dp_ready_sign(&ready, &crypto, &host->sim->run, &fork));
    dp_ready_msg_write(&w, &ready);
    return w.size;
}

size_t dp_evil_rewrite_part(dp_host *host, uint8_t *message, size_t size, size_t room)
{
    const dp_evil *e = host->sim->evil;
    const dp_crypto crypto = dp_sim_crypto(host);
    const dp_hash fork = {{0}};
    dp_part_word word;
    dp_writer w = dp_writer_of(message, room);

    if (dp_part_msg_read(dp_view_of(message, size), &word) != DP_OK ||
        !dp_peer_equal(&word.owner, &host->peer)) {
        return size; /* Forwarded for another member. */
    }
    if (e->tricks[DP_EVIL_TRAINER] ==
        /* Claims more contributions than any other, none of which was announced. */
        DP_WORK_NOTHING) {
        word.n = DP_PART_SOURCES_MAX;
        for (uint32_t i = 0; i < word.n; i++) {
            memset(&word.sources[i], (int)(i + 1), sizeof word.sources[i]);
        }
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_NUMBERS) {
        word.bytes++;
    }
    dp_assert(dp_part_sign(&word, &crypto, &host->sim->run, &fork));
    dp_part_msg_write(&w, &word);
    return w.size;
}

/* Changes the sum of a collector, or withholds it: the owner of the part must manage without it. */
size_t dp_evil_rewrite_sum(dp_host *host, uint8_t *message, size_t size, size_t room)
{
    const dp_evil *e = host->sim->evil;
    const dp_crypto crypto = dp_sim_crypto(host);
    const dp_hash fork = {{0}};
    dp_part_word word;
    dp_writer w = dp_writer_of(message, room);

    if (dp_site_sum_msg_read(dp_view_of(message, size), &word) != DP_OK ||
        !dp_peer_equal(&word.owner, &host->peer)) {
        return size;
    }
    if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_TINY) {
        return 0; /* It has announced the sum. */
    }
    if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_NOTHING) {
        memset(&word.root, 9, sizeof word.root);
    } else if (e->tricks[DP_EVIL_TRAINER] == DP_WORK_NUMBERS) {
        word.bytes++;
    } else if (e->tricks[DP_EVIL_TRAINER] ==
               DP_WORK_TWO) { /* Names another publication than the announced one. */
        word.sources[0].root.bytes[0] ^= 1;
    }
    dp_assert(dp_site_sum_sign(&word, &crypto, &host->sim->run, &fork));
    dp_site_sum_msg_write(&w, &word);
    return w.size;
}

void dp_evil_adds_up(dp_host *host, uint32_t part, uint8_t blob[DP_TOY_BLOB_MAX], uint32_t *size)
{
    dp_sim *sim = host->sim;
    dp_toy_vector values;
    unsigned __int128 energy = 0;

    if (part < DP_REDUCE_SUM || !dp_evil_does(sim, host->index, DP_EVIL_TRAINER) ||
        dp_toy_decode(dp_view_of(blob, *size), values, &energy) != DP_OK || energy == 0) {
        return;
    }
    if (sim->evil->tricks[DP_EVIL_TRAINER] == DP_WORK_GARBAGE) {
        for (uint32_t i = 0; i < *size; i++) {
            blob[i] = (uint8_t)dp_evil_below(sim, 256);
        }
    } else if (sim->evil->tricks[DP_EVIL_TRAINER] ==
               DP_WORK_EXTREME) { /* Within its part, beyond any bound: a wrong
                                                         sum within it is taken, and provable. */
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            values[i] = values[i] != 0 ? largest : 0;
        }
        *size = encode(values, dp_rng_next(&sim->evil->rng), blob);
    }
}

bool dp_evil_steals(const dp_sim *sim, uint32_t liar, uint32_t author)
{
    return dp_evil_does(sim, liar, DP_EVIL_TRAINER) &&
           sim->evil->tricks[DP_EVIL_TRAINER] == DP_WORK_COPIED && author != liar;
}

/* ---- influence ---- */

static uint32_t rounds_of(const dp_member_book *m, uint64_t round)
{
    const uint64_t since = m->included != 0 ? m->included : m->admitted_round;
    const uint64_t gap = m->member && round > since ? round - since : 1;

    return gap > 4 ? 4 : (uint32_t)gap;
}

static long double length(const long double *vector)
{
    long double sum = 0;

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        sum += vector[i] * vector[i];
    }
    /* Newton's method, from above: the simulator links no math library. */
    long double root = sum > 1 ? sum : 1;
    for (uint32_t i = 0; i < 100; i++) {
        root = (root + sum / root) / 2;
    }
    return root;
}

/* With n listed and f <= (n-1)/4 of them liars (any f < n/2 + 1 would do for the argument): weights
 *   each is at most 4 m, m the lower median; at least n/2 + 1 of all are at least m, so at least
 *   n/2 + 1 - f of the honest; hence the liars' share of W is at most 4 f / (4 f + n/2 + 1 - f)
 *   norms    |c d| (12 / k) <= sqrt(M), and M, the lower median of energies per round, is at most
 *            that of some honest one: |c d| <= k max(|d_h| / k_h) <= 4 max(|d_h| / k_h) over the
 *            honest h
 * so what liars move, before alpha, is at most the product. n/2 is rounded down. */
void dp_evil_influence(dp_sim *sim, const dp_record *record)
{
    long double moved[DP_TOY_ELEMENTS] = {0};
    long double honest = 0;
    uint32_t f = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *item = &record->listed[i];
        const uint32_t owner = dp_sim_index(sim, &item->peer);
        const uint32_t object = dp_shelf_find(&sim->shelf, &item->root);
        const bool lies = dp_evil_is(sim, owner);
        dp_toy_vector values;
        unsigned __int128 energy = 0;
        for (uint32_t k = 0; k < i; k++) {
            if (dp_hash_equal(&record->listed[k].root, &item->root)) {
                dp_sim_fail(sim, "S3", owner, "round %llu counts one blob twice",
                            (unsigned long long)record->round);
            }
        }
        long double own[DP_TOY_ELEMENTS] = {0};
        if (object == DP_SHELF_NONE || owner >= sim->plan.nodes ||
            dp_toy_decode(dp_shelf_bytes(&sim->shelf, object), values, &energy) != DP_OK) {
            return; /* S4 is for others to judge. */
        }
        for (uint32_t k = 0; k < DP_TOY_ELEMENTS; k++) {
            own[k] = (long double)values[k];
            moved[k] += lies ? own[k] * item->q / 2147483648.0L : 0;
        }
        const long double per_round =
            length(own) / rounds_of(&sim->oracle->members[owner], record->round);
        f += lies ? 1 : 0;
        honest = !lies && per_round > honest ? per_round : honest;
    }
    const uint32_t n = record->n_listed;
    sim->totals.lies += f;
    if (f == 0 || 2 * f > n) {
        sim->totals.unbounded += f > 0 ? 1 : 0;
        return;
    }
    const long double share = 4.0L * f / (3.0L * f + (long double)(n / 2) + 1);
    const long double bound = share * 4 * honest;
    const long double much = length(moved);
    if (much > bound * (1 + 1e-9L)) {
        dp_sim_fail(sim, "S15", 0,
                    "liars, %u of %u listed, move %.0Lf in round %llu; %.0Lf is the bound", f, n,
                    much, (unsigned long long)record->round, bound);
    }
}

/* ---- the schedule ---- */

/* Tokens in a millisecond of the fastest trainer of this world. */
static uint64_t fastest(const dp_sim *sim)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < sim->plan.nodes; i++) {
        const uint64_t speed = (uint64_t)DP_TOY_TOKENS_PER_STEP * 1000 / sim->hosts[i].step_us;
        most = speed > most ? speed : most;
    }
    return most;
}

/* The tokens counted for liars are at most 16 times those that the fastest trainer could have made
 * since the liars were counted last. The check allows twice as much, since a publication may hold
 * the work of a longer time than lies between two records, and it sums over all records, since
 * tokens over the bound of one count in the next. */
void dp_evil_schedule(dp_sim *sim, const dp_record *record)
{
    dp_evil *e = sim->evil;
    uint32_t f = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *item = &record->listed[i];
        const uint32_t owner = dp_sim_index(sim, &item->peer);
        if (owner >= sim->plan.nodes) {
            return; /* S4 is for others to judge. */
        }
        const uint64_t since =
            e->counted_ms[owner] != 0 ? e->counted_ms[owner] : sim->manifest.created_ms;
        const uint64_t span = record->time_ms > since ? record->time_ms - since : 0;
        const bool lies = dp_evil_is(sim, owner);
        f += lies ? 1 : 0;
        e->most +=
            lies ? 32 * fastest(sim) * (span > 1000 ? span : 1000) : item->tokens + item->carried;
        e->counted_ms[owner] = record->time_ms;
    }
    e->swayed = e->swayed || 2 * f > record->n_listed;
    if (!e->swayed && record->tokens_total > e->most) {
        dp_sim_fail(
            sim, "S20", 0,
            "round %llu moves the schedule to %llu tokens, and %llu is the most that can be",
            (unsigned long long)record->round, (unsigned long long)record->tokens_total,
            (unsigned long long)e->most);
    }
}

/* ---- exchanges ---- */

/* Claims more work than possible: on the samples of its lease, or on additional ones of its own
 * line. */
size_t dp_evil_rewrite_terms(dp_host *host, uint8_t *message, size_t size, size_t room)
{
    const uint32_t trick = host->sim->evil->tricks[DP_EVIL_TRAINER];
    dp_mix_msg msg;
    dp_writer w = dp_writer_of(message, room);

    if ((trick != DP_WORK_CARRIED && trick != DP_WORK_INFLATED) ||
        dp_mix_msg_read(dp_view_of(message, size), &msg) != DP_OK) {
        return size;
    }
    msg.terms.tokens = (uint64_t)1 << 60;
    if (trick == DP_WORK_CARRIED) {
        msg.terms.reach.own += (uint64_t)1 << 41;
        msg.terms.steps = UINT32_MAX;
    } else {
        msg.terms.steps = 1;
    }
    dp_mix_msg_write(&w, &msg);
    dp_assert(!w.full);
    return w.size;
}

void dp_evil_prepared(dp_host *host, const dp_mix_row *row)
{
    dp_sim *sim = host->sim;
    const uint64_t most = 128 * fastest(sim) * (sim->now_us / 1000 + 1000);

    if (sim->evil == NULL || dp_evil_is(sim, host->index) || sim->evil->swayed ||
        row->other.tokens <= most) {
        return;
    }
    dp_sim_fail(sim, "S21", host->index,
                "takes %llu tokens in an exchange, and %llu is the most that can be",
                (unsigned long long)row->other.tokens, (unsigned long long)most);
}
