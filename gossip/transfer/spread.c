#include "gossip/transfer/spread.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/transfer/spread_internal.h"

enum { HEDGE_ROOM_MAX = DP_HEDGES_AT_ONCE * DP_HEDGE_SHARE };
#define PAUSE_US DP_SECOND /* after an error of our own disk */
#define LONELY_US                                                                                  \
    (250 * DP_MS) /* without a linked holder: by then somebody in between may have it */

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
    made->patience_us = dp_alloc(config->members_max, sizeof *made->patience_us);
    made->servings = dp_alloc(config->members_max, sizeof *made->servings);
    made->windows = dp_alloc(config->members_max, sizeof *made->windows);
    if (made->chunk_us == NULL || made->patience_us == NULL || made->servings == NULL ||
        made->windows == NULL) {
        dp_spread_close(made);
        return DP_NOMEM;
    }
    made->members = config->members;
    made->members_max = config->members_max;
    made->hedge_room = HEDGE_ROOM_MAX;
    made->update_bytes_max = config->update_bytes_max;
    made->state_bytes_max = config->state_bytes_max;
    dp_rng_init(&made->rng, config->seed ^ 0x737072656164ULL);
    *spread = made;
    return DP_OK;
}

void dp_spread_close(dp_spread *spread)
{
    if (spread == NULL) {
        return;
    }
    dp_free(spread->windows);
    dp_free(spread->servings);
    dp_free(spread->chunk_us);
    dp_free(spread->patience_us);
    dp_free(spread);
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
/* Into the queue where its priority and order belong. */
static void queue_in(dp_spread *spread, uint32_t index)
{
    const dp_want *const want = &spread->wants[index];
    uint32_t at = spread->n_wanted++;

    dp_assert(index < DP_WANTED_MAX);
    dp_assert(spread->n_wanted <= DP_WANTED_MAX);
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

    dp_assert(index < DP_WANTED_MAX);
    dp_assert(spread->n_wanted > 0);
    while (spread->queue[at] != index) {
        at++;
        dp_assert(at < spread->n_wanted);
    }
    spread->n_wanted--;
    memmove(&spread->queue[at], &spread->queue[at + 1], spread->n_wanted - at);
}

static void forget(dp_spread *spread, dp_want *want)
{
    dp_spread_end_flights(spread, dp_want_index(spread, want), DP_MEMBER_NONE, DP_MEMBER_NONE);
    want->used = false;
    queue_out(spread, dp_want_index(spread, want));
}

/* ---- wishes ---- */

dp_status dp_spread_want(dp_spread *spread, dp_time now, const dp_hash *root, uint64_t size,
                         dp_object_use use, dp_priority priority, dp_out *out)
{
    dp_assert((uint32_t)priority < DP_PRIORITY_COUNT);
    dp_want *want = find(spread, root);

    if (want != NULL) {
        if (priority < want->priority) {
            queue_out(spread, dp_want_index(spread, want));
            want->priority = priority;
            queue_in(spread, dp_want_index(spread, want));
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
                      .told = size,
                      .order = ++spread->order,
                      .use = use,
                      .priority = priority,
                      .info_from = DP_MEMBER_NONE,
                      .lonely_at = dp_time_after(now, LONELY_US),
                      .info_next = (uint32_t)dp_rng_below(&spread->rng, spread->members_max)};
    queue_in(spread, dp_want_index(spread, want));
    dp_spread_fill(spread, now, out);
    return DP_OK;
}

void dp_spread_expect(dp_spread *spread, const dp_hash *root, uint64_t bytes)
{
    dp_want *const want = find(spread, root);

    if (want != NULL && want->size == 0) {
        want->told = bytes;
    }
}

void dp_spread_holder(dp_spread *spread, dp_time now, const dp_hash *root, uint32_t member,
                      dp_out *out)
{
    dp_want *const want = find(spread, root);

    dp_assert(member < spread->members_max);
    if (want != NULL && member < spread->members_max && dp_spread_believe(want, member)) {
        dp_spread_fill(spread, now, out);
    }
}

void dp_spread_holders_all(dp_spread *spread, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(spread, root);

    if (want != NULL && !want->all) {
        want->all = true;
        want->lonely_at = DP_NEVER;
        dp_spread_fill(spread, now, out);
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
    dp_spread_fill(spread, now, out);
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

static bool asks_all(const dp_want *want, dp_priority priority)
{
    return want->all && want->priority <= priority;
}

bool dp_spread_asks_all(const dp_spread *spread, const dp_hash *root, dp_priority priority)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        const dp_want *want = &spread->wants[spread->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return asks_all(want, priority);
        }
    }
    return false;
}

uint32_t dp_spread_hesitant(const dp_spread *spread, dp_priority priority,
                            dp_hash roots[DP_WANTED_MAX])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        const dp_want *want = &spread->wants[spread->queue[i]];
        if (!asks_all(want, priority)) {
            roots[n++] = want->root;
        }
    }
    return n;
}

bool dp_spread_waits(const dp_spread *spread, const dp_hash *root)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        const dp_want *want = &spread->wants[spread->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return !want->begun;
        }
    }
    return false;
}

bool dp_spread_unsure(const dp_spread *spread, const dp_hash *root)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        const dp_want *want = &spread->wants[spread->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return want->size == 0;
        }
    }
    return false;
}

/* ---- what comes ---- */

/* Of data the manifest says the size. */
static uint64_t bytes_max(const dp_spread *spread, dp_object_use use)
{
    uint64_t most = 0;

    if (use == DP_USE_BLOB || use == DP_USE_EXCHANGE) {
        most = spread->update_bytes_max;
    } else if (use == DP_USE_STATE) {
        most = spread->state_bytes_max;
    }
    return most != 0 && !dp_broken(183) ? most : DP_OBJECT_BYTES_MAX;
}

void dp_spread_info(dp_spread *spread, dp_time now, const dp_event *event, dp_out *out)
{
    dp_want *const want = find(spread, &event->u.object.root);
    const uint32_t member = dp_members_find(spread->members, &event->u.object.peer);

    if (want == NULL || want->begun || member == DP_MEMBER_NONE || member >= spread->members_max) {
        return;
    }
    const uint32_t n_chunks = dp_object_chunks(event->u.object.size);
    if (event->u.object.size > bytes_max(spread, want->use) ||
        (want->size != 0 && want->size != event->u.object.size)) {
        dp_spread_blame(spread, want, member, DP_BAD_CHUNKS_MAX, "wrong size", out);
        dp_spread_plan_pardon(spread, want, now);
        want->info_from = DP_MEMBER_NONE;
        dp_spread_fill(spread, now, out);
        return;
    }
    want->size = event->u.object.size;
    want->n_chunks = n_chunks;
    want->begun = true;
    want->failures = 0;
    want->info_from = DP_MEMBER_NONE;
    dp_want_set_bit(want->holders, member, true);
    if (n_chunks > 0) {
        memcpy(spread->leaves, event->u.object.leaves, n_chunks * sizeof spread->leaves[0]);
    }
    dp_action *const action = dp_out_add(out, DP_DO_OBJECT_BEGIN);
    action->u.object.root = want->root;
    action->u.object.size = want->size;
    action->u.object.leaves = spread->leaves;
    action->u.object.use = want->use;
    dp_spread_fill(spread, now, out);
}

/* The member that was asked for size and leaves says that it lacks them. */
static void no_info(dp_spread *spread, dp_want *want, uint32_t member, dp_status status,
                    dp_time now, dp_out *out)
{
    dp_assert(member < spread->members_max);
    if (member == want->info_from && status == DP_NOTFOUND) {
        want->info_from = DP_MEMBER_NONE;
        dp_spread_lacks(spread, want, member, now);
        dp_spread_fill(spread, now, out);
    }
}

void dp_spread_chunk(dp_spread *spread, dp_time now, const dp_event *event, dp_out *out)
{
    dp_want *const want = find(spread, &event->u.chunk.root);
    const uint32_t chunk = event->u.chunk.index;
    const uint32_t member = dp_members_find(spread->members, &event->u.chunk.peer);

    if (want == NULL || member == DP_MEMBER_NONE || member >= spread->members_max) {
        return;
    }
    if (!want->begun) {
        no_info(spread, want, member, event->u.chunk.status, now, out);
        return;
    }
    if (chunk >= want->n_chunks) {
        return;
    }
    if (event->u.chunk.status == DP_OK) {
        dp_spread_measure(spread, want, chunk, member, now);
        if (want->have[chunk] == 0) {
            want->n_have++;
            spread->n_came++;
            spread->hedge_room += spread->hedge_room < HEDGE_ROOM_MAX ? 1 : 0;
        }
        want->have[chunk] = 1;
        dp_want_set_bit(want->holders, member, true);
        want->failures = 0;
        dp_spread_end_flights(spread, dp_want_index(spread, want), chunk, DP_MEMBER_NONE);
    } else {
        dp_spread_end_flights(spread, dp_want_index(spread, want), chunk, member);
        if (event->u.chunk.status == DP_BADHASH || event->u.chunk.status == DP_BADMSG) {
            dp_spread_blame(spread, want, member, 1, "bad chunks", out);
            dp_spread_plan_pardon(spread, want, now);
        } else if (event->u.chunk.status == DP_NOTFOUND || event->u.chunk.status == DP_DENIED) {
            dp_spread_lacks(spread, want, member, now);
        } else {
            want->pause_until = dp_time_after(now, PAUSE_US);
        }
    }
    dp_spread_fill(spread, now, out);
}

void dp_spread_object(dp_spread *spread, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(spread, root);

    if (want != NULL) {
        forget(spread, want);
        dp_spread_fill(spread, now, out);
    }
}

void dp_spread_link_up(dp_spread *spread, dp_time now, uint32_t member, dp_out *out)
{
    dp_assert(member < spread->members_max);
    (void)member;
    dp_spread_fill(spread, now, out);
}

void dp_spread_link_down(dp_spread *spread, dp_time now, uint32_t member, dp_out *out)
{
    dp_assert(member < spread->members_max);
    dp_spread_end_flights(spread, DP_MEMBER_NONE, DP_MEMBER_NONE, member);
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        dp_want *const want = &spread->wants[spread->queue[i]];
        want->info_from = want->info_from == member ? DP_MEMBER_NONE : want->info_from;
        dp_spread_plan_pardon(spread, want, now);
        dp_spread_plan_forgiving(spread, want, now);
    }
    dp_spread_fill(spread, now, out);
}

void dp_spread_tick(dp_spread *spread, dp_time now, dp_out *out)
{
    uint64_t late = 0; /* bit per want: chunks that were asked for together are one wait in vain */
    _Static_assert(DP_WANTED_MAX <= 64, "a bit per want");

    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (!f->used || !dp_time_reached(now, f->deadline)) {
            continue;
        }
        dp_want *const want = &spread->wants[f->wanted];
        dp_spread_chunk_late(spread, f);
        want->failures += (late >> f->wanted & 1U) == 0 ? 1 : 0;
        late |= 1ULL << f->wanted;
        dp_spread_note_holder(spread, f->member, "slow", out);
        f->used = false;
        spread->n_flights--;
    }
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        dp_want *const want = &spread->wants[spread->queue[i]];
        if (!want->begun && want->info_from != DP_MEMBER_NONE &&
            dp_time_reached(now, want->info_deadline)) {
            dp_want_set_bit(want->silent, want->info_from, true);
            want->info_from = DP_MEMBER_NONE;
        }
        if (want->pause_until.us != 0 && dp_time_reached(now, want->pause_until)) {
            want->pause_until = (dp_time){0};
        }
        if (want->forgive_at.us != 0 && dp_time_reached(now, want->forgive_at)) {
            dp_spread_forgive(spread, want);
        }
        if (want->pardon_at.us != 0 && dp_time_reached(now, want->pardon_at)) {
            dp_spread_pardon(spread, want);
        }
        if (dp_time_reached(now, want->lonely_at)) {
            /* Its holders are out of reach, perhaps for ever; somebody in between may have it. */
            want->all = want->all || !dp_spread_has_holder(spread, want);
            want->lonely_at = want->all ? DP_NEVER : dp_time_after(now, LONELY_US);
        }
    }
    dp_spread_fill(spread, now, out);
    /* A late chunk of an object that has others to ask for is looked at again later. */
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (f->used && dp_time_reached(now, f->hedge_at)) {
            f->hedge_at = dp_spread_hedge_again(spread, &spread->wants[f->wanted], now);
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
        if (want->forgive_at.us != 0) {
            wake = dp_time_min(wake, want->forgive_at);
        }
        wake = dp_time_min(wake, want->lonely_at);
        if (want->pardon_at.us != 0) {
            wake = dp_time_min(wake, want->pardon_at);
        }
    }
    return wake;
}
