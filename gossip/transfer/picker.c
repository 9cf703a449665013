#include "gossip/transfer/picker.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/transfer/picker_internal.h"

enum { HEDGE_ROOM_MAX = DP_HEDGES_AT_ONCE * DP_HEDGE_SHARE };
#define PAUSE_US DP_SECOND /* after an error of our own disk */
#define LONELY_US                                                                                  \
    (250 * DP_MS) /* without a linked holder: by then somebody in between may have it */

dp_status dp_picker_open(dp_picker **picker, const dp_picker_config *config)
{
    if (config->members == NULL || config->members_max == 0 ||
        config->members_max > DP_MEMBERS_MAX) {
        return DP_BADARG;
    }
    dp_picker *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        return DP_NOMEM;
    }
    made->chunk_us = dp_alloc(config->members_max, sizeof *made->chunk_us);
    made->patience_us = dp_alloc(config->members_max, sizeof *made->patience_us);
    made->servings = dp_alloc(config->members_max, sizeof *made->servings);
    made->windows = dp_alloc(config->members_max, sizeof *made->windows);
    if (made->chunk_us == NULL || made->patience_us == NULL || made->servings == NULL ||
        made->windows == NULL) {
        dp_picker_close(made);
        return DP_NOMEM;
    }
    made->members = config->members;
    made->members_max = config->members_max;
    made->hedge_room = HEDGE_ROOM_MAX;
    made->update_bytes_max = config->update_bytes_max;
    made->state_bytes_max = config->state_bytes_max;
    dp_rng_init(&made->rng, config->seed ^ 0x737072656164ULL);
    *picker = made;
    return DP_OK;
}

void dp_picker_close(dp_picker *picker)
{
    if (picker == NULL) {
        return;
    }
    dp_free(picker->windows);
    dp_free(picker->servings);
    dp_free(picker->chunk_us);
    dp_free(picker->patience_us);
    dp_free(picker);
}
static dp_want *find(dp_picker *picker, const dp_hash *root)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        dp_want *const want = &picker->wants[picker->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return want;
        }
    }
    return NULL;
}
/* Into the queue where its priority and order belong. */
static void queue_in(dp_picker *picker, uint32_t index)
{
    const dp_want *const want = &picker->wants[index];
    uint32_t at = picker->n_wanted++;

    dp_assert(index < DP_WANTED_MAX);
    dp_assert(picker->n_wanted <= DP_WANTED_MAX);
    while (at > 0) {
        const dp_want *const before = &picker->wants[picker->queue[at - 1]];
        if (before->priority < want->priority ||
            (before->priority == want->priority && before->order < want->order)) {
            break;
        }
        picker->queue[at] = picker->queue[at - 1];
        at--;
    }
    picker->queue[at] = (uint8_t)index;
}

static void queue_out(dp_picker *picker, uint32_t index)
{
    uint32_t at = 0;

    dp_assert(index < DP_WANTED_MAX);
    dp_assert(picker->n_wanted > 0);
    while (picker->queue[at] != index) {
        at++;
        dp_assert(at < picker->n_wanted);
    }
    picker->n_wanted--;
    memmove(&picker->queue[at], &picker->queue[at + 1], picker->n_wanted - at);
}

static void forget(dp_picker *picker, dp_want *want)
{
    dp_picker_end_flights(picker, dp_want_index(picker, want), DP_MEMBER_NONE, DP_MEMBER_NONE);
    want->used = false;
    queue_out(picker, dp_want_index(picker, want));
}

/* ---- wishes ---- */

dp_status dp_picker_want(dp_picker *picker, dp_time now, const dp_hash *root, uint64_t size,
                         dp_object_use use, dp_priority priority, dp_out *out)
{
    dp_assert((uint32_t)priority < DP_PRIORITY_COUNT);
    dp_want *want = find(picker, root);

    if (want != NULL) {
        if (priority < want->priority) {
            queue_out(picker, dp_want_index(picker, want));
            want->priority = priority;
            queue_in(picker, dp_want_index(picker, want));
        }
        return DP_OK;
    }
    for (uint32_t i = 0; i < DP_WANTED_MAX && want == NULL; i++) {
        want = picker->wants[i].used ? NULL : &picker->wants[i];
    }
    if (want == NULL) {
        return DP_TOOBIG;
    }
    *want = (dp_want){.used = true,
                      .root = *root,
                      .size = size,
                      .told = size,
                      .order = ++picker->order,
                      .use = use,
                      .priority = priority,
                      .info_from = DP_MEMBER_NONE,
                      .lonely_at = dp_time_after(now, LONELY_US),
                      .info_next = (uint32_t)dp_rng_below(&picker->rng, picker->members_max)};
    queue_in(picker, dp_want_index(picker, want));
    dp_picker_fill(picker, now, out);
    return DP_OK;
}

void dp_picker_expect(dp_picker *picker, const dp_hash *root, uint64_t bytes)
{
    dp_want *const want = find(picker, root);

    if (want != NULL && want->size == 0) {
        want->told = bytes;
    }
}

void dp_picker_holder(dp_picker *picker, dp_time now, const dp_hash *root, uint32_t member,
                      dp_out *out)
{
    dp_want *const want = find(picker, root);

    dp_assert(member < picker->members_max);
    if (want != NULL && member < picker->members_max && dp_picker_believe(want, member)) {
        dp_picker_fill(picker, now, out);
    }
}

void dp_picker_holders_all(dp_picker *picker, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(picker, root);

    if (want != NULL && !want->all) {
        want->all = true;
        want->lonely_at = DP_NEVER;
        dp_picker_fill(picker, now, out);
    }
}

void dp_picker_cancel(dp_picker *picker, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(picker, root);

    if (want == NULL) {
        return;
    }
    if (want->begun &&
        dp_out_room(out, 1)) { /* The part of it that came is of no use to anybody. */
        dp_action *const action = dp_out_add(out, DP_DO_OBJECT_DROP);
        action->u.keep.root = want->root;
        action->u.keep.use = want->use;
    }
    forget(picker, want);
    dp_picker_fill(picker, now, out);
}

bool dp_picker_wants(const dp_picker *picker, const dp_hash *root)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        if (dp_hash_equal(&picker->wants[picker->queue[i]].root, root)) {
            return true;
        }
    }
    return false;
}

static bool asks_all(const dp_want *want, dp_priority priority)
{
    return want->all && want->priority <= priority;
}

bool dp_picker_asks_all(const dp_picker *picker, const dp_hash *root, dp_priority priority)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *want = &picker->wants[picker->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return asks_all(want, priority);
        }
    }
    return false;
}

uint32_t dp_picker_hesitant(const dp_picker *picker, dp_priority priority,
                            dp_hash roots[DP_WANTED_MAX])
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *want = &picker->wants[picker->queue[i]];
        if (!asks_all(want, priority)) {
            roots[n++] = want->root;
        }
    }
    return n;
}

bool dp_picker_waits(const dp_picker *picker, const dp_hash *root)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *want = &picker->wants[picker->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return !want->begun;
        }
    }
    return false;
}

bool dp_picker_unsure(const dp_picker *picker, const dp_hash *root)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *want = &picker->wants[picker->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            return want->size == 0;
        }
    }
    return false;
}

/* ---- messages ---- */

/* Of data the manifest says the size. */
static uint64_t bytes_max(const dp_picker *picker, dp_object_use use)
{
    uint64_t most = 0;

    if (use == DP_USE_BLOB || use == DP_USE_EXCHANGE) {
        most = picker->update_bytes_max;
    } else if (use == DP_USE_STATE) {
        most = picker->state_bytes_max;
    }
    return most != 0 && !dp_broken(183) ? most : DP_OBJECT_BYTES_MAX;
}

void dp_picker_info(dp_picker *picker, dp_time now, const dp_event *event, dp_out *out)
{
    dp_want *const want = find(picker, &event->u.object.root);
    const uint32_t member = dp_members_find(picker->members, &event->u.object.peer);

    if (want == NULL || want->begun || member == DP_MEMBER_NONE || member >= picker->members_max) {
        return;
    }
    const uint32_t n_chunks = dp_object_chunks(event->u.object.size);
    if (event->u.object.size > bytes_max(picker, want->use) ||
        (want->size != 0 && want->size != event->u.object.size)) {
        dp_picker_blame(picker, want, member, DP_BAD_CHUNKS_MAX, "wrong size", out);
        dp_picker_plan_pardon(picker, want, now);
        want->info_from = DP_MEMBER_NONE;
        dp_picker_fill(picker, now, out);
        return;
    }
    want->size = event->u.object.size;
    want->n_chunks = n_chunks;
    want->begun = true;
    want->failures = 0;
    want->info_from = DP_MEMBER_NONE;
    dp_want_set_bit(want->holders, member, true);
    if (n_chunks > 0) {
        memcpy(picker->leaves, event->u.object.leaves, n_chunks * sizeof picker->leaves[0]);
    }
    dp_action *const action = dp_out_add(out, DP_DO_OBJECT_BEGIN);
    action->u.object.root = want->root;
    action->u.object.size = want->size;
    action->u.object.leaves = picker->leaves;
    action->u.object.use = want->use;
    dp_picker_fill(picker, now, out);
}

/* The member that was asked for size and leaves says that it lacks them. */
static void no_info(dp_picker *picker, dp_want *want, uint32_t member, dp_status status,
                    dp_time now, dp_out *out)
{
    dp_assert(member < picker->members_max);
    if (member == want->info_from && status == DP_NOTFOUND) {
        want->info_from = DP_MEMBER_NONE;
        dp_picker_lacks(picker, want, member, now);
        dp_picker_fill(picker, now, out);
    }
}

void dp_picker_chunk(dp_picker *picker, dp_time now, const dp_event *event, dp_out *out)
{
    dp_want *const want = find(picker, &event->u.chunk.root);
    const uint32_t chunk = event->u.chunk.index;
    const uint32_t member = dp_members_find(picker->members, &event->u.chunk.peer);

    if (want == NULL || member == DP_MEMBER_NONE || member >= picker->members_max) {
        return;
    }
    if (!want->begun) {
        no_info(picker, want, member, event->u.chunk.status, now, out);
        return;
    }
    if (chunk >= want->n_chunks) {
        return;
    }
    if (event->u.chunk.status == DP_OK) {
        dp_picker_measure(picker, want, chunk, member, now);
        if (want->have[chunk] == 0) {
            want->n_have++;
            picker->n_came++;
            picker->hedge_room += picker->hedge_room < HEDGE_ROOM_MAX ? 1 : 0;
        }
        want->have[chunk] = 1;
        dp_want_set_bit(want->holders, member, true);
        want->failures = 0;
        dp_picker_end_flights(picker, dp_want_index(picker, want), chunk, DP_MEMBER_NONE);
    } else {
        dp_picker_end_flights(picker, dp_want_index(picker, want), chunk, member);
        if (event->u.chunk.status == DP_BADHASH || event->u.chunk.status == DP_BADMSG) {
            dp_picker_blame(picker, want, member, 1, "bad chunks", out);
            dp_picker_plan_pardon(picker, want, now);
        } else if (event->u.chunk.status == DP_NOTFOUND || event->u.chunk.status == DP_DENIED) {
            dp_picker_lacks(picker, want, member, now);
        } else {
            want->pause_until = dp_time_after(now, PAUSE_US);
        }
    }
    dp_picker_fill(picker, now, out);
}

void dp_picker_object(dp_picker *picker, dp_time now, const dp_hash *root, dp_out *out)
{
    dp_want *const want = find(picker, root);

    if (want != NULL) {
        forget(picker, want);
        dp_picker_fill(picker, now, out);
    }
}

void dp_picker_link_up(dp_picker *picker, dp_time now, uint32_t member, dp_out *out)
{
    dp_assert(member < picker->members_max);
    (void)member;
    dp_picker_fill(picker, now, out);
}

void dp_picker_link_down(dp_picker *picker, dp_time now, uint32_t member, dp_out *out)
{
    dp_assert(member < picker->members_max);
    dp_picker_end_flights(picker, DP_MEMBER_NONE, DP_MEMBER_NONE, member);
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        dp_want *const want = &picker->wants[picker->queue[i]];
        want->info_from = want->info_from == member ? DP_MEMBER_NONE : want->info_from;
        dp_picker_plan_pardon(picker, want, now);
        dp_picker_plan_forgiving(picker, want, now);
    }
    dp_picker_fill(picker, now, out);
}

void dp_picker_tick(dp_picker *picker, dp_time now, dp_out *out)
{
    uint64_t late = 0; /* bit per want: chunks that were asked for together are one wait in vain */
    _Static_assert(DP_WANTED_MAX <= 64, "a bit per want");

    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &picker->flights[i];
        if (!f->used || !dp_time_reached(now, f->deadline)) {
            continue;
        }
        dp_want *const want = &picker->wants[f->wanted];
        dp_picker_chunk_late(picker, f);
        want->failures += (late >> f->wanted & 1U) == 0 ? 1 : 0;
        late |= 1ULL << f->wanted;
        dp_picker_note_holder(picker, f->member, "slow", out);
        f->used = false;
        picker->n_flights--;
    }
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        dp_want *const want = &picker->wants[picker->queue[i]];
        if (!want->begun && want->info_from != DP_MEMBER_NONE &&
            dp_time_reached(now, want->info_deadline)) {
            dp_want_set_bit(want->silent, want->info_from, true);
            want->info_from = DP_MEMBER_NONE;
        }
        if (want->pause_until.us != 0 && dp_time_reached(now, want->pause_until)) {
            want->pause_until = (dp_time){0};
        }
        if (want->forgive_at.us != 0 && dp_time_reached(now, want->forgive_at)) {
            dp_picker_forgive(picker, want);
        }
        if (want->pardon_at.us != 0 && dp_time_reached(now, want->pardon_at)) {
            dp_picker_pardon(picker, want);
        }
        if (dp_time_reached(now, want->lonely_at)) {
            /* Its holders are out of reach, perhaps for ever; somebody in between may have it. */
            want->all = want->all || !dp_picker_has_holder(picker, want);
            want->lonely_at = want->all ? DP_NEVER : dp_time_after(now, LONELY_US);
        }
    }
    dp_picker_fill(picker, now, out);
    /* A late chunk of an object that has others to ask for is looked at again later. */
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &picker->flights[i];
        if (f->used && dp_time_reached(now, f->hedge_at)) {
            f->hedge_at = dp_picker_hedge_again(picker, &picker->wants[f->wanted], now);
        }
    }
}

dp_time dp_picker_wake(const dp_picker *picker)
{
    dp_time wake = DP_NEVER;

    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &picker->flights[i];
        if (f->used) {
            wake = dp_time_min(wake, dp_time_min(f->deadline, f->hedge_at));
        }
    }
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *const want = &picker->wants[picker->queue[i]];
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
