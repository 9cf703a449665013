/* Chooses the next chunk to ask for, and the member to ask. */
#include <string.h>

#include "base/assert.h"
#include "gossip/transfer/picker_internal.h"

enum {
    HEDGE_COST = DP_HEDGE_SHARE, /* each chunk that came gives back one */
    GUESSES = 4,    /* so many times dearer is a chunk of a member that is not a known holder */
    DOUBTS_MAX = 6, /* twice as dear after each that lacked it, so often */
    AHEAD_TRIPS =
        4 /* round trips that a chunk may take where one less is worth a request too early */
};

/* Chunks under way that data, and after them a state, always have room for: on a line that the
 * updates of the rounds fill they would never come, and a node that needs them would never train,
 * or would fall ever further behind. */
enum { BEHIND_PER_HOLDER = 1, BEHIND_IN_ALL = DP_FLIGHTS_PER_HOLDER };

/* Place in the list of linked rows of the first one that is not before start; the list goes
 * round. */
static uint32_t place_from(const dp_rowset *linked, uint32_t start)
{
    const uint32_t place = dp_rowset_place(linked, start);

    return place < linked->count ? place : 0;
}

bool dp_picker_may_ask(const dp_picker *picker, const dp_want *want, uint32_t member)
{
    dp_assert(member < picker->members_max);
    return member < picker->members_max && !dp_want_bit(want->banned, member) &&
           (want->all || dp_want_bit(want->holders, member));
}

uint32_t dp_picker_flights_of(const dp_picker *picker, uint32_t member)
{
    uint32_t n = 0;

    dp_assert(picker->n_flights <= DP_FLIGHTS_MAX);
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        n += picker->flights[i].used && picker->flights[i].member == member;
    }
    return n;
}

static bool is_flying(const dp_picker *picker, uint32_t want, uint32_t chunk, uint32_t member)
{
    dp_assert(chunk < DP_CHUNKS_MAX);
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &picker->flights[i];
        if (f->used && f->wanted == want && f->chunk == chunk &&
            (member == DP_MEMBER_NONE || f->member == member)) {
            return true;
        }
    }
    return false;
}

/* The expected cost of a chunk from this member. A member that only may have it costs several times
 * as much, for the vain requests. */
static uint64_t chunk_cost(const dp_picker *picker, const dp_want *want, uint32_t member)
{
    const uint64_t took_us = picker->chunk_us[member] != 0
                                 ? picker->chunk_us[member]
                                 : dp_members_at(picker->members, member)->rtt.srtt_us;

    const uint32_t doubts = want->lacking < DOUBTS_MAX ? want->lacking : DOUBTS_MAX;

    return (took_us + 1000) *
           (dp_want_bit(want->holders, member) ? 1U : (uint32_t)GUESSES << doubts);
}

/* The first of the queue's data, or of its states where all data came, that somebody linked has and
 * that waits for chunks behind an update; NULL: there is none. */
static const dp_want *behind(const dp_picker *picker, const dp_want *want)
{
    const dp_want *first = NULL;

    for (uint32_t i = picker->n_wanted; i > 0 && want->priority < DP_PRIORITY_DATA; i--) {
        const dp_want *const other = &picker->wants[picker->queue[i - 1]];
        if (other->priority < DP_PRIORITY_DATA) {
            break;
        }
        if (other->begun && other->n_have < other->n_chunks &&
            dp_picker_has_holder(picker, other)) {
            first = other;
        }
    }
    return first;
}

/* The part of its room that such an object does not use yet: at this member, or in all with
 * DP_MEMBER_NONE. */
static uint32_t room_for(const dp_picker *picker, const dp_want *other, uint32_t member,
                         uint32_t room)
{
    for (uint32_t i = 0; picker->n_flights > 0 && room > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &picker->flights[i];
        const bool its_own = f->used && f->wanted == dp_want_index(picker, other) &&
                             (member == DP_MEMBER_NONE || f->member == member);
        room -= its_own ? 1 : 0;
    }
    return room;
}

/* Is a member being asked that is not a known holder? One at a time: the chunks of an object are
 * asked for together, and a member that lacks one lacks all. */
static bool is_guessing(const dp_picker *picker, const dp_want *want)
{
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &picker->flights[i];
        if (f->used && f->wanted == dp_want_index(picker, want) &&
            !dp_want_bit(want->holders, f->member)) {
            return true;
        }
    }
    return false;
}

/* The holder with the fewest chunks under way, then the fastest, then the first one from a random
 * start. */
static uint32_t choose_holder(dp_picker *picker, const dp_want *want, uint32_t chunk)
{
    const dp_rowset *linked = dp_members_linked(picker->members);
    const uint32_t start = (uint32_t)dp_rng_below(&picker->rng, dp_members_count(picker->members));
    const uint32_t first = place_from(linked, start);
    const dp_want *const other = behind(picker, want);
    const bool guessing = is_guessing(picker, want);
    uint32_t best = DP_MEMBER_NONE;
    uint64_t best_cost = UINT64_MAX;

    dp_assert(chunk < want->n_chunks);
    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t member = linked->at[(first + k) % linked->count];
        if (!dp_picker_may_ask(picker, want, member) ||
            (guessing && !dp_want_bit(want->holders, member))) {
            continue;
        }
        const uint32_t flying = dp_picker_flights_of(picker, member);
        const bool leaves_room = other != NULL && dp_picker_may_ask(picker, other, member);
        const uint32_t room = leaves_room ? room_for(picker, other, member, BEHIND_PER_HOLDER) : 0;
        if (flying >= dp_picker_window(picker, want, member) - room ||
            is_flying(picker, dp_want_index(picker, want), chunk, member)) {
            continue;
        }
        const uint64_t cost = ((uint64_t)flying + 1) * chunk_cost(picker, want, member);
        if (cost < best_cost) {
            best_cost = cost;
            best = member;
        }
    }
    return best;
}

static dp_flight *free_flight(dp_picker *picker, const dp_want *want)
{
    const dp_want *const other = behind(picker, want);
    const uint32_t most =
        DP_FLIGHTS_MAX -
        (other != NULL ? room_for(picker, other, DP_MEMBER_NONE, BEHIND_IN_ALL) : 0);

    for (uint32_t i = 0; picker->n_flights < most && i < DP_FLIGHTS_MAX; i++) {
        if (!picker->flights[i].used) {
            return &picker->flights[i];
        }
    }
    return NULL;
}

/* False when no flight, no holder or no room is left for this chunk. */
static bool ask_chunk(dp_picker *picker, dp_want *want, uint32_t chunk, bool hedge, dp_time now,
                      dp_out *out)
{
    dp_assert(chunk < want->n_chunks);
    dp_assert(picker->n_flights <= DP_FLIGHTS_MAX);
    dp_flight *const f = free_flight(picker, want);
    if (f == NULL || !dp_out_room(out, 1)) {
        return false;
    }
    const uint32_t member = choose_holder(picker, want, chunk);
    if (member == DP_MEMBER_NONE) {
        return false;
    }
    if (picker->n_flights++ == 0) {
        dp_picker_rate_begin(picker, now);
    }
    *f = (dp_flight){.used = true,
                     .hedge = hedge,
                     .wanted = dp_want_index(picker, want),
                     .chunk = chunk,
                     .member = member,
                     .sent = now,
                     .hedge_at = dp_time_after(now, dp_picker_hedge_wait(picker, want)),
                     .deadline = dp_time_after(now, dp_picker_chunk_wait(picker, want, member))};
    dp_action *const action = dp_out_add(out, DP_DO_GET_CHUNK);
    action->u.get.peer = dp_members_at(picker->members, member)->peer;
    action->u.get.root = want->root;
    action->u.get.index = chunk;
    return true;
}

/* The next linked member that may be asked, from where the search stands: known holders before
 * others, and none that was silent. DP_MEMBER_NONE: all were asked, or nobody may be. */
static uint32_t next_holder(const dp_picker *picker, const dp_want *want)
{
    const dp_rowset *linked = dp_members_linked(picker->members);
    const uint32_t first = place_from(linked, want->info_next % dp_members_count(picker->members));
    uint32_t best = DP_MEMBER_NONE;

    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t member = linked->at[(first + k) % linked->count];
        if (!dp_picker_may_ask(picker, want, member) || dp_want_bit(want->silent, member)) {
            continue;
        }
        if (dp_want_bit(want->holders, member)) {
            return member;
        }
        best = best == DP_MEMBER_NONE ? member : best;
    }
    return best;
}

/* Its chunks take their time for the way, not for the line. Behind a thin line size and leaves may
 * come after the chunks that were requested with them; these are dropped then, and sent twice. */
static bool is_way_long(const dp_picker *picker, uint32_t member)
{
    const uint64_t trip_us = dp_members_at(picker->members, member)->rtt.srtt_us;

    dp_assert(member < picker->members_max);
    return picker->chunk_us[member] != 0 && picker->chunk_us[member] <= AHEAD_TRIPS * trip_us;
}

/* Chunks that this member alone can be asked for when it has told size and leaves. They count as
 * under way until then, and leave the room of the objects that wait behind. */
static uint32_t ahead_of(const dp_picker *picker, const dp_want *want, uint32_t member)
{
    const uint64_t chunks = dp_object_chunks(want->told);
    uint32_t all = DP_FLIGHTS_MAX - picker->n_flights;
    uint32_t its = dp_picker_flights_of(picker, member);

    if (want->all || !dp_want_bit(want->holders, member) || behind(picker, want) != NULL ||
        dp_picker_has_another(picker, want, member) || !is_way_long(picker, member)) {
        return 0;
    }
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *const other = &picker->wants[picker->queue[i]];
        if (other != want && !other->begun && other->info_from != DP_MEMBER_NONE) {
            all -= other->ahead < all ? other->ahead : all;
            its += other->info_from == member ? other->ahead : 0;
        }
    }
    const uint32_t room = its < DP_FLIGHTS_PER_HOLDER ? DP_FLIGHTS_PER_HOLDER - its : 0;
    const uint32_t most = room < all ? room : all;
    return chunks < most ? (uint32_t)chunks : most;
}

static void ask_info(dp_picker *picker, dp_want *want, dp_time now, dp_out *out)
{
    uint32_t member = next_holder(picker, want);

    if (member == DP_MEMBER_NONE && dp_picker_has_holder(picker, want)) {
        memset(want->silent, 0, sizeof want->silent);
        dp_picker_ask_lacking(want); /* They may have it by now, and the others do not answer. */
        want->asked_all++;
        member = next_holder(picker, want);
    }
    want->info_from = DP_MEMBER_NONE;
    if (member == DP_MEMBER_NONE || !dp_out_room(out, 1)) {
        return;
    }
    want->info_from = member;
    want->info_next = member + 1;
    want->info_deadline = dp_time_after(now, dp_picker_info_wait(picker, want, member));
    want->ahead = ahead_of(picker, want, member);
    dp_action *const action = dp_out_add(out, DP_DO_GET_INFO);
    action->u.get.peer = dp_members_at(picker->members, member)->peer;
    action->u.get.root = want->root;
    action->u.get.ahead = want->ahead;
}

/* Ask again for last chunks that are late, each of one more holder. */
static void hedge(dp_picker *picker, dp_want *want, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &picker->flights[i];
        if (!f->used || f->wanted != dp_want_index(picker, want) || f->hedge_at.us == UINT64_MAX ||
            !dp_time_reached(now, f->hedge_at)) {
            continue;
        }
        /* Nobody else now: another holder may be known soon, long before the deadline of one that
         * is gone. */
        f->hedge_at = dp_picker_hedge_again(picker, want, now);
        if (picker->hedge_room >= HEDGE_COST && ask_chunk(picker, want, f->chunk, true, now, out)) {
            f->hedge_at = DP_NEVER;
            picker->hedge_room -= HEDGE_COST;
            picker->n_hedged++;
        }
    }
}

static void fill_one(dp_picker *picker, dp_want *want, dp_time now, dp_out *out)
{
    if (!dp_time_reached(now, want->pause_until)) {
        return;
    }
    if (!want->begun) {
        if (want->info_from == DP_MEMBER_NONE) {
            ask_info(picker, want, now, out);
        }
        return;
    }
    for (uint32_t chunk = 0; chunk < want->n_chunks; chunk++) {
        if (want->have[chunk] == 0 &&
            !is_flying(picker, dp_want_index(picker, want), chunk, DP_MEMBER_NONE) &&
            !ask_chunk(picker, want, chunk, false, now, out)) {
            return;
        }
    }
    hedge(picker, want, now, out); /* every remaining chunk is under way */
}

void dp_picker_fill(dp_picker *picker, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        fill_one(picker, &picker->wants[picker->queue[i]], now, out);
    }
}

void dp_picker_end_flights(dp_picker *picker, uint32_t want, uint32_t chunk, uint32_t member)
{
    for (uint32_t i = 0; picker->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &picker->flights[i];
        if (f->used && (want == DP_MEMBER_NONE || f->wanted == want) &&
            (chunk == DP_MEMBER_NONE || f->chunk == chunk) &&
            (member == DP_MEMBER_NONE || f->member == member)) {
            f->used = false;
            picker->n_flights--;
        }
    }
}
