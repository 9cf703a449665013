#include "gossip/spread.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/spread_internal.h"

enum { DOUBLINGS_MAX = 5 };
#define INFO_WAIT_US (250 * DP_MS)
#define PAUSE_US DP_SECOND                /* after an error of our own disk */
#define LONELY_US DP_SECOND               /* without a linked holder */
#define PARDON_US (5 * DP_SECOND)         /* doubled with each pardon, up to 16 times */
#define GUESS_BYTES_PER_SECOND 1000000ULL /* before anything was measured */

dp_status dp_spread_open(dp_spread **spread, const dp_spread_config *config)
{
    if (config->members == NULL || config->members_max == 0 ||
        config->members_max > DP_MEMBERS_MAX) {
        return DP_BADARG;
    }
    dp_spread *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        return DP_NOMEM;
    }
    made->chunk_us = dp_alloc(config->members_max, sizeof *made->chunk_us);
    made->servings = dp_alloc(config->members_max, sizeof *made->servings);
    if (made->chunk_us == NULL || made->servings == NULL) {
        dp_spread_close(made);
        return DP_NOMEM;
    }
    made->members = config->members;
    made->members_max = config->members_max;
    dp_rng_init(&made->rng, config->seed ^ 0x737072656164ULL);
    *spread = made;
    return DP_OK;
}

void dp_spread_close(dp_spread *spread)
{
    if (spread == NULL) {
        return;
    }
    dp_free(spread->servings);
    dp_free(spread->chunk_us);
    dp_free(spread);
}

static bool bit_of(const uint64_t *bits, uint32_t index)
{
    return (bits[index / 64] >> (index % 64) & 1U) != 0;
}

static void bit_set(uint64_t *bits, uint32_t index, bool on)
{
    const uint64_t mask = 1ULL << (index % 64);

    bits[index / 64] = on ? bits[index / 64] | mask : bits[index / 64] & ~mask;
}

static dp_want *find(dp_spread *spread, const dp_hash *root)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        dp_want *const want = &spread->wants[spread->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return want;
        }
    }
    return NULL;
}

static uint32_t index_of(const dp_spread *spread, const dp_want *want)
{
    return (uint32_t)(want - spread->wants);
}

/* ---- waiting times ---- */

static dp_span *span_of(dp_spread *spread, uint64_t size)
{
    uint32_t class = 0;

    for (uint32_t bytes = dp_object_chunk_bytes(size);
         bytes > DP_CHUNK_BYTES_MIN && class + 1 < CLASSES; bytes /= 2) {
        class ++;
    }
    return &spread->spans[class];
}

static uint64_t clamp_wait(uint64_t wait_us)
{
    return wait_us < DP_CHUNK_WAIT_US_MIN   ? DP_CHUNK_WAIT_US_MIN
           : wait_us > DP_CHUNK_WAIT_US_MAX ? DP_CHUNK_WAIT_US_MAX
                                            : wait_us;
}

/* Twice the 95th percentile, doubled for each wait in vain before. */
static uint64_t chunk_wait(dp_spread *spread, const dp_want *want)
{
    const uint64_t p95 = dp_span_percentile(span_of(spread, want->size), 95);
    const uint64_t guess = DP_CHUNK_WAIT_US_MIN +
                           dp_object_chunk_bytes(want->size) * DP_SECOND / GUESS_BYTES_PER_SECOND;
    const uint32_t doublings = want->failures < DOUBLINGS_MAX ? want->failures : DOUBLINGS_MAX;

    return clamp_wait((p95 != 0 ? 2 * p95 : 2 * guess) << doublings);
}

/* When a last chunk is asked of a second holder: at the time by which most others had come. */
static uint64_t hedge_wait(dp_spread *spread, const dp_want *want)
{
    const uint64_t p95 = dp_span_percentile(span_of(spread, want->size), 95);

    return p95 != 0 ? p95 : chunk_wait(spread, want) / 2;
}

uint64_t dp_spread_chunk_p95(const dp_spread *spread)
{
    uint64_t worst = 0;

    for (uint32_t i = 0; i < CLASSES; i++) {
        const uint64_t p95 = dp_span_percentile(&spread->spans[i], 95);
        worst = p95 > worst ? p95 : worst;
    }
    return worst;
}

/* ---- choosing ---- */

/* Place in the list of linked rows of the first one that is not before start; the list goes round. */
static uint32_t place_from(const dp_rowset *linked, uint32_t start)
{
    const uint32_t place = dp_rowset_place(linked, start);

    return place < linked->count ? place : 0;
}

/* member: linked. */
static bool may_ask(const dp_spread *spread, const dp_want *want, uint32_t member)
{
    return member < spread->members_max && !bit_of(want->banned, member) &&
           (want->all || bit_of(want->holders, member));
}

uint32_t dp_spread_flights_of(const dp_spread *spread, uint32_t member)
{
    uint32_t n = 0;

    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        n += spread->flights[i].used && spread->flights[i].member == member;
    }
    return n;
}

static bool is_flying(const dp_spread *spread, uint32_t want, uint32_t chunk, uint32_t member)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &spread->flights[i];
        if (f->used && f->wanted == want && f->chunk == chunk &&
            (member == DP_MEMBER_NONE || f->member == member)) {
            return true;
        }
    }
    return false;
}

/* The holder with the fewest chunks under way, then the fastest, then whoever comes first from a random start. */
static uint32_t choose_holder(dp_spread *spread, const dp_want *want, uint32_t chunk)
{
    const dp_rowset *linked = dp_members_linked(spread->members);
    const uint32_t start = (uint32_t)dp_rng_below(&spread->rng, dp_members_count(spread->members));
    const uint32_t first = place_from(linked, start);
    uint32_t best = DP_MEMBER_NONE;
    uint64_t best_cost = UINT64_MAX;

    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t member = linked->at[(first + k) % linked->count];
        if (!may_ask(spread, want, member)) {
            continue;
        }
        const uint32_t flying = dp_spread_flights_of(spread, member);
        if (flying >= DP_FLIGHTS_PER_HOLDER ||
            is_flying(spread, index_of(spread, want), chunk, member)) {
            continue;
        }
        const uint64_t cost = ((uint64_t)flying + 1) * ((uint64_t)spread->chunk_us[member] + 1000);
        if (cost < best_cost) {
            best_cost = cost;
            best = member;
        }
    }
    return best;
}

static dp_flight *free_flight(dp_spread *spread)
{
    for (uint32_t i = 0; spread->n_flights < DP_FLIGHTS_MAX && i < DP_FLIGHTS_MAX; i++) {
        if (!spread->flights[i].used) {
            return &spread->flights[i];
        }
    }
    return NULL;
}

/* False when no flight, no holder or no room is left for this chunk. */
static bool ask_chunk(dp_spread *spread, dp_want *want, uint32_t chunk, bool hedge, dp_time now,
                      dp_out *out)
{
    dp_flight *const f = free_flight(spread);
    if (f == NULL || !dp_out_room(out, 1)) {
        return false;
    }
    const uint32_t member = choose_holder(spread, want, chunk);
    if (member == DP_MEMBER_NONE) {
        return false;
    }
    spread->n_flights++;
    *f = (dp_flight){.used = true,
                     .hedge = hedge,
                     .wanted = index_of(spread, want),
                     .chunk = chunk,
                     .member = member,
                     .sent = now,
                     .hedge_at = dp_time_after(now, hedge_wait(spread, want)),
                     .deadline = dp_time_after(now, chunk_wait(spread, want))};
    dp_action *const action = dp_out_add(out, DP_DO_GET_CHUNK);
    action->u.get.peer = dp_members_at(spread->members, member)->peer;
    action->u.get.root = want->root;
    action->u.get.index = chunk;
    return true;
}

static void ask_info(dp_spread *spread, dp_want *want, dp_time now, dp_out *out)
{
    const dp_rowset *linked = dp_members_linked(spread->members);
    const uint32_t first = place_from(linked, want->info_next % dp_members_count(spread->members));

    want->info_from = DP_MEMBER_NONE;
    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t member = linked->at[(first + k) % linked->count];
        if (!may_ask(spread, want, member) || !dp_out_room(out, 1)) {
            continue;
        }
        const uint32_t doublings = want->failures < DOUBLINGS_MAX ? want->failures : DOUBLINGS_MAX;
        const uint64_t wait_us = dp_rtt_timeout(&dp_members_at(spread->members, member)->rtt,
                                                INFO_WAIT_US, INFO_WAIT_US, DP_CHUNK_WAIT_US_MAX);
        want->info_from = member;
        want->info_next = member + 1;
        want->info_deadline = dp_time_after(now, clamp_wait(wait_us << doublings));
        dp_action *const action = dp_out_add(out, DP_DO_GET_INFO);
        action->u.get.peer = dp_members_at(spread->members, member)->peer;
        action->u.get.root = want->root;
        return;
    }
}

/* Ask again for last chunks that are late, each of one more holder. */
static void hedge(dp_spread *spread, dp_want *want, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (!f->used || f->wanted != index_of(spread, want) || f->hedge_at.us == UINT64_MAX ||
            !dp_time_reached(now, f->hedge_at)) {
            continue;
        }
        const uint32_t chunk = f->chunk;
        f->hedge_at = DP_NEVER;
        DP_IGNORE(
            ask_chunk(spread, want, chunk, true, now, out)); /* nobody else: the deadline will do */
    }
}

static void fill_one(dp_spread *spread, dp_want *want, dp_time now, dp_out *out)
{
    if (!dp_time_reached(now, want->pause_until)) {
        return;
    }
    if (!want->begun) {
        if (want->info_from == DP_MEMBER_NONE) {
            ask_info(spread, want, now, out);
        }
        return;
    }
    for (uint32_t chunk = 0; chunk < want->n_chunks; chunk++) {
        if (want->have[chunk] == 0 &&
            !is_flying(spread, index_of(spread, want), chunk, DP_MEMBER_NONE) &&
            !ask_chunk(spread, want, chunk, false, now, out)) {
            return;
        }
    }
    hedge(spread, want, now, out); /* every remaining chunk is under way */
}

/* Use what is free, objects in order of priority, then of arrival. */
static void fill(dp_spread *spread, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        fill_one(spread, &spread->wants[spread->queue[i]], now, out);
    }
}

/* Into the queue where its priority and order belong. */
static void queue_in(dp_spread *spread, uint32_t index)
{
    const dp_want *const want = &spread->wants[index];
    uint32_t at = spread->n_wanted++;

    while (at > 0) {
        const dp_want *const before = &spread->wants[spread->queue[at - 1]];
        if (before->priority < want->priority ||
            (before->priority == want->priority && before->order < want->order)) {
            break;
        }
        spread->queue[at] = spread->queue[at - 1];
        at--;
    }
    spread->queue[at] = (uint8_t)index;
}

static void queue_out(dp_spread *spread, uint32_t index)
{
    uint32_t at = 0;

    while (spread->queue[at] != index) {
        at++;
        dp_assert(at < spread->n_wanted);
    }
    spread->n_wanted--;
    memmove(&spread->queue[at], &spread->queue[at + 1], spread->n_wanted - at);
}

static void end_flights(dp_spread *spread, uint32_t want, uint32_t chunk, uint32_t member)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (f->used && (want == DP_MEMBER_NONE || f->wanted == want) &&
            (chunk == DP_MEMBER_NONE || f->chunk == chunk) &&
            (member == DP_MEMBER_NONE || f->member == member)) {
            f->used = false;
            spread->n_flights--;
        }
    }
}

static void forget(dp_spread *spread, dp_want *want)
{
    end_flights(spread, index_of(spread, want), DP_MEMBER_NONE, DP_MEMBER_NONE);
    want->used = false;
    queue_out(spread, index_of(spread, want));
}

/* ---- wishes ---- */

dp_status dp_spread_want(dp_spread *spread, dp_time now, const dp_hash *root, uint64_t size,
                         dp_object_use use, dp_priority priority, dp_out *out)
{
    dp_assert((uint32_t)priority < DP_PRIORITY_COUNT);
    dp_want *want = find(spread, root);

    if (want != NULL) {
        if (priority < want->priority) {
            queue_out(spread, index_of(spread, want));
            want->priority = priority;
            queue_in(spread, index_of(spread, want));
        }
        return DP_OK;
    }
    for (uint32_t i = 0; i < DP_WANTED_MAX && want == NULL; i++) {
        want = spread->wants[i].used ? NULL : &spread->wants[i];
    }
    if (want == NULL) {
        return DP_TOOBIG;
    }
    *want = (dp_want){.used = true,
                      .root = *root,
                      .size = size,
                      .order = ++spread->order,
                      .use = use,
                      .priority = priority,
                      .info_from = DP_MEMBER_NONE,
                      .lonely_at = dp_time_after(now, LONELY_US),
                      .info_next = (uint32_t)dp_rng_below(&spread->rng, spread->members_max)};
    queue_in(spread, index_of(spread, want));
    fill(spread, now, out);
    return DP_OK;
}

void dp_spread_holder(dp_spread *spread, dp_time now, const dp_hash *root, uint32_t member,
                      dp_out *out)
{
    dp_want *const want = find(spread, root);

    if (want != NULL && member < spread->members_max && !bit_of(want->holders, member)) {
        bit_set(want->holders, member, true);
        fill(spread, now, out);
    }
}

void dp_spread_holders_all(dp_spread *spread, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(spread, root);

    if (want != NULL && !want->all) {
        want->all = true;
        want->lonely_at = DP_NEVER;
        fill(spread, now, out);
    }
}

void dp_spread_cancel(dp_spread *spread, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(spread, root);

    if (want == NULL) {
        return;
    }
    if (want->begun &&
        dp_out_room(out, 1)) { /* The part of it that came is of no use to anybody. */
        dp_action *const action = dp_out_add(out, DP_DO_OBJECT_DROP);
        action->u.keep.root = want->root;
        action->u.keep.use = want->use;
    }
    forget(spread, want);
    fill(spread, now, out);
}

bool dp_spread_wants(const dp_spread *spread, const dp_hash *root)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        if (dp_hash_equal(&spread->wants[spread->queue[i]].root, root)) {
            return true;
        }
    }
    return false;
}

/* ---- what comes ---- */

static void note_holder(const dp_spread *spread, uint32_t member, const char *cause, dp_out *out)
{
    dp_out_note(out, (dp_note){.code = DP_NOTE_FETCH,
                               .peer = dp_members_at(spread->members, member)->peer,
                               .cause = cause});
}

static bool has_holder(const dp_spread *spread, const dp_want *want)
{
    const dp_rowset *linked = dp_members_linked(spread->members);

    for (uint32_t k = 0; k < linked->count; k++) {
        if (may_ask(spread, want, linked->at[k])) {
            return true;
        }
    }
    return false;
}

/* No holder was left for a while: those that lacked it may have it by now; liars stay out. */
static void forgive(const dp_spread *spread, dp_want *want)
{
    if (has_holder(spread, want)) {
        return;
    }
    memset(want->banned, 0, sizeof want->banned);
    for (uint32_t i = 0; i < want->n_faults; i++) {
        if (want->faults[i].bad >= DP_BAD_CHUNKS_MAX) {
            bit_set(want->banned, want->faults[i].member, true);
        }
    }
}

/* One more bad answer of a holder. */
static void blame(dp_spread *spread, dp_want *want, uint32_t member, uint32_t weight,
                  const char *cause, dp_out *out)
{
    uint32_t at = 0;

    while (at < want->n_faults && want->faults[at].member != member) {
        at++;
    }
    if (at == want->n_faults) {
        if (at == FAULTS_MAX) {
            bit_set(want->banned, member, true); /* too many liars to count: no second chance */
            return;
        }
        want->faults[want->n_faults++] = (dp_fault){.member = member};
    }
    want->faults[at].bad += weight;
    if (want->faults[at].bad >= DP_BAD_CHUNKS_MAX && !bit_of(want->banned, member)) {
        bit_set(want->banned, member, true);
        end_flights(spread, index_of(spread, want), DP_MEMBER_NONE, member);
        note_holder(spread, member, cause, out);
    }
}

/* Only liars are left. Their disks may be well again, and what a voter has accepted may need what nobody else holds: they
 * are asked again, ever more rarely, and one more lie is enough. */
static void plan_pardon(const dp_spread *spread, dp_want *want, dp_time now)
{
    if (want->pardon_at.us == 0 && want->n_faults > 0 && !has_holder(spread, want)) {
        want->pardon_at = dp_time_after(now, PARDON_US << (want->pardons < 4 ? want->pardons : 4));
    }
}

static void pardon(const dp_spread *spread, dp_want *want)
{
    const bool alone = !has_holder(spread, want);

    want->pardon_at = (dp_time){0};
    want->pardons++;
    for (uint32_t i = 0; alone && i < want->n_faults; i++) {
        want->faults[i].bad = DP_BAD_CHUNKS_MAX - 1;
        bit_set(want->banned, want->faults[i].member, false);
    }
}

void dp_spread_info(dp_spread *spread, dp_time now, const dp_event *event, dp_out *out)
{
    dp_want *const want = find(spread, &event->u.object.root);
    const uint32_t member = dp_members_find(spread->members, &event->u.object.peer);

    if (want == NULL || want->begun || member == DP_MEMBER_NONE || member >= spread->members_max) {
        return;
    }
    const uint32_t n_chunks = dp_object_chunks(event->u.object.size);
    if (n_chunks > DP_CHUNKS_MAX || (want->size != 0 && want->size != event->u.object.size)) {
        blame(spread, want, member, DP_BAD_CHUNKS_MAX, "wrong size", out);
        plan_pardon(spread, want, now);
        want->info_from = DP_MEMBER_NONE;
        fill(spread, now, out);
        return;
    }
    want->size = event->u.object.size;
    want->n_chunks = n_chunks;
    want->begun = true;
    want->failures = 0;
    want->info_from = DP_MEMBER_NONE;
    bit_set(want->holders, member, true);
    if (n_chunks > 0) {
        memcpy(spread->leaves, event->u.object.leaves, n_chunks * sizeof spread->leaves[0]);
    }
    dp_action *const action = dp_out_add(out, DP_DO_OBJECT_BEGIN);
    action->u.object.root = want->root;
    action->u.object.size = want->size;
    action->u.object.leaves = spread->leaves;
    action->u.object.use = want->use;
    fill(spread, now, out);
}

static void measure(dp_spread *spread, const dp_want *want, uint32_t chunk, uint32_t member,
                    dp_time now)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &spread->flights[i];
        if (f->used && f->wanted == index_of(spread, want) && f->chunk == chunk &&
            f->member == member) {
            const uint64_t took_us = dp_time_between(f->sent, now);
            const uint32_t took =
                took_us < DP_CHUNK_WAIT_US_MAX ? (uint32_t)took_us : (uint32_t)DP_CHUNK_WAIT_US_MAX;
            dp_span_add(span_of(spread, want->size), took);
            spread->chunk_us[member] =
                spread->chunk_us[member] == 0
                    ? took
                    : (uint32_t)((3ULL * spread->chunk_us[member] + took) / 4);
        }
    }
}

void dp_spread_chunk(dp_spread *spread, dp_time now, const dp_event *event, dp_out *out)
{
    dp_want *const want = find(spread, &event->u.chunk.root);
    const uint32_t chunk = event->u.chunk.index;
    const uint32_t member = dp_members_find(spread->members, &event->u.chunk.peer);

    if (want == NULL || !want->begun || chunk >= want->n_chunks || member == DP_MEMBER_NONE ||
        member >= spread->members_max) {
        return;
    }
    if (event->u.chunk.status == DP_OK) {
        measure(spread, want, chunk, member, now);
        want->n_have += want->have[chunk] == 0;
        want->have[chunk] = 1;
        want->failures = 0;
        end_flights(spread, index_of(spread, want), chunk, DP_MEMBER_NONE);
    } else {
        end_flights(spread, index_of(spread, want), chunk, member);
        if (event->u.chunk.status == DP_BADHASH || event->u.chunk.status == DP_BADMSG) {
            blame(spread, want, member, 1, "bad chunks", out);
            plan_pardon(spread, want, now);
        } else if (event->u.chunk.status == DP_NOTFOUND || event->u.chunk.status == DP_DENIED) {
            bit_set(want->banned, member, true); /* it has lost it, or is too busy */
            if (!has_holder(spread, want)) {
                want->pause_until = dp_time_after(now, PAUSE_US);
            }
        } else {
            want->pause_until = dp_time_after(now, PAUSE_US);
        }
    }
    fill(spread, now, out);
}

void dp_spread_object(dp_spread *spread, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(spread, root);

    if (want != NULL) {
        forget(spread, want);
        fill(spread, now, out);
    }
}

void dp_spread_link_up(dp_spread *spread, dp_time now, uint32_t member, dp_out *out)
{
    (void)member;
    fill(spread, now, out);
}

void dp_spread_link_down(dp_spread *spread, dp_time now, uint32_t member, dp_out *out)
{
    end_flights(spread, DP_MEMBER_NONE, DP_MEMBER_NONE, member);
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        dp_want *const want = &spread->wants[spread->queue[i]];
        want->info_from = want->info_from == member ? DP_MEMBER_NONE : want->info_from;
        plan_pardon(spread, want, now);
    }
    fill(spread, now, out);
}

void dp_spread_tick(dp_spread *spread, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (!f->used || !dp_time_reached(now, f->deadline)) {
            continue;
        }
        dp_want *const want = &spread->wants[f->wanted];
        uint32_t *const smoothed = &spread->chunk_us[f->member];
        /* Doubled, so that others are asked first; one good chunk repairs most of it. */
        *smoothed = *smoothed == 0                         ? (uint32_t)DP_CHUNK_WAIT_US_MIN
                    : *smoothed < DP_CHUNK_WAIT_US_MAX / 2 ? *smoothed * 2
                                                           : (uint32_t)DP_CHUNK_WAIT_US_MAX;
        want->failures++;
        note_holder(spread, f->member, "slow", out);
        f->used = false;
        spread->n_flights--;
    }
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        dp_want *const want = &spread->wants[spread->queue[i]];
        if (!want->begun && want->info_from != DP_MEMBER_NONE &&
            dp_time_reached(now, want->info_deadline)) {
            want->info_from = DP_MEMBER_NONE;
            want->failures++;
        }
        if (want->pause_until.us != 0 && dp_time_reached(now, want->pause_until)) {
            want->pause_until = (dp_time){0};
            forgive(spread, want);
        }
        if (want->pardon_at.us != 0 && dp_time_reached(now, want->pardon_at)) {
            pardon(spread, want);
        }
        if (dp_time_reached(now, want->lonely_at)) {
            /* Its holders are out of reach, perhaps for ever; somebody in between may have it. */
            want->all = want->all || !has_holder(spread, want);
            want->lonely_at = want->all ? DP_NEVER : dp_time_after(now, LONELY_US);
        }
    }
    fill(spread, now, out);
    /* A late chunk of an object that has others to ask for is looked at again later. */
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (f->used && dp_time_reached(now, f->hedge_at)) {
            f->hedge_at = dp_time_after(now, hedge_wait(spread, &spread->wants[f->wanted]));
        }
    }
}

dp_time dp_spread_wake(const dp_spread *spread)
{
    dp_time wake = DP_NEVER;

    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &spread->flights[i];
        if (f->used) {
            wake = dp_time_min(wake, dp_time_min(f->deadline, f->hedge_at));
        }
    }
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        const dp_want *const want = &spread->wants[spread->queue[i]];
        if (!want->begun && want->info_from != DP_MEMBER_NONE) {
            wake = dp_time_min(wake, want->info_deadline);
        }
        if (want->pause_until.us != 0) {
            wake = dp_time_min(wake, want->pause_until);
        }
        wake = dp_time_min(wake, want->lonely_at);
        if (want->pardon_at.us != 0) {
            wake = dp_time_min(wake, want->pardon_at);
        }
    }
    return wake;
}
