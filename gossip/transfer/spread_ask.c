/* Chooses the next chunk to ask for, and the member to ask. */
#include <string.h>

#include "base/assert.h"
#include "gossip/transfer/spread_internal.h"

enum {
    HEDGE_COST = DP_HEDGE_SHARE, /* each chunk that came gives back one */
    GUESSES = 4,    /* so many times dearer is a chunk of whom nobody said that it has it */
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

bool dp_spread_may_ask(const dp_spread *spread, const dp_want *want, uint32_t member)
{
    dp_assert(member < spread->members_max);
    return member < spread->members_max && !dp_want_bit(want->banned, member) &&
           (want->all || dp_want_bit(want->holders, member));
}

uint32_t dp_spread_flights_of(const dp_spread *spread, uint32_t member)
{
    uint32_t n = 0;

    dp_assert(spread->n_flights <= DP_FLIGHTS_MAX);
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        n += spread->flights[i].used && spread->flights[i].member == member;
    }
    return n;
}

static bool is_flying(const dp_spread *spread, uint32_t want, uint32_t chunk, uint32_t member)
{
    dp_assert(chunk < DP_CHUNKS_MAX);
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &spread->flights[i];
        if (f->used && f->wanted == want && f->chunk == chunk &&
            (member == DP_MEMBER_NONE || f->member == member)) {
            return true;
        }
    }
    return false;
}

/* The expected cost of a chunk from this member. A member that only may have it costs several times
 * as much, for the vain requests. */
static uint64_t chunk_cost(const dp_spread *spread, const dp_want *want, uint32_t member)
{
    const uint64_t took_us = spread->chunk_us[member] != 0
                                 ? spread->chunk_us[member]
                                 : dp_members_at(spread->members, member)->rtt.srtt_us;

    const uint32_t doubts = want->lacking < DOUBTS_MAX ? want->lacking : DOUBTS_MAX;

    return (took_us + 1000) *
           (dp_want_bit(want->holders, member) ? 1U : (uint32_t)GUESSES << doubts);
}

/* The first of the queue's data, or of its states where all data came, that somebody linked has and
 * that waits for chunks behind an update; NULL: there is none. */
static const dp_want *behind(const dp_spread *spread, const dp_want *want)
{
    const dp_want *first = NULL;

    for (uint32_t i = spread->n_wanted; i > 0 && want->priority < DP_PRIORITY_DATA; i--) {
        const dp_want *const other = &spread->wants[spread->queue[i - 1]];
        if (other->priority < DP_PRIORITY_DATA) {
            break;
        }
        if (other->begun && other->n_have < other->n_chunks &&
            dp_spread_has_holder(spread, other)) {
            first = other;
        }
    }
    return first;
}

/* The part of its room that such an object does not use yet: at this member, or in all with
 * DP_MEMBER_NONE. */
static uint32_t room_for(const dp_spread *spread, const dp_want *other, uint32_t member,
                         uint32_t room)
{
    for (uint32_t i = 0; spread->n_flights > 0 && room > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &spread->flights[i];
        const bool its_own = f->used && f->wanted == dp_want_index(spread, other) &&
                             (member == DP_MEMBER_NONE || f->member == member);
        room -= its_own ? 1 : 0;
    }
    return room;
}

/* Is somebody being asked of whom nobody said that it has it? One at a time: the chunks of an
 * object are asked for together, and a member that lacks one lacks all. */
static bool is_guessing(const dp_spread *spread, const dp_want *want)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &spread->flights[i];
        if (f->used && f->wanted == dp_want_index(spread, want) &&
            !dp_want_bit(want->holders, f->member)) {
            return true;
        }
    }
    return false;
}

/* The holder with the fewest chunks under way, then the fastest, then whoever comes first from a
 * random start. */
static uint32_t choose_holder(dp_spread *spread, const dp_want *want, uint32_t chunk)
{
    const dp_rowset *linked = dp_members_linked(spread->members);
    const uint32_t start = (uint32_t)dp_rng_below(&spread->rng, dp_members_count(spread->members));
    const uint32_t first = place_from(linked, start);
    const dp_want *const other = behind(spread, want);
    const bool guessing = is_guessing(spread, want);
    uint32_t best = DP_MEMBER_NONE;
    uint64_t best_cost = UINT64_MAX;

    dp_assert(chunk < want->n_chunks);
    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t member = linked->at[(first + k) % linked->count];
        if (!dp_spread_may_ask(spread, want, member) ||
            (guessing && !dp_want_bit(want->holders, member))) {
            continue;
        }
        const uint32_t flying = dp_spread_flights_of(spread, member);
        const bool leaves_room = other != NULL && dp_spread_may_ask(spread, other, member);
        const uint32_t room = leaves_room ? room_for(spread, other, member, BEHIND_PER_HOLDER) : 0;
        if (flying >= dp_spread_window(spread, want, member) - room ||
            is_flying(spread, dp_want_index(spread, want), chunk, member)) {
            continue;
        }
        const uint64_t cost = ((uint64_t)flying + 1) * chunk_cost(spread, want, member);
        if (cost < best_cost) {
            best_cost = cost;
            best = member;
        }
    }
    return best;
}

static dp_flight *free_flight(dp_spread *spread, const dp_want *want)
{
    const dp_want *const other = behind(spread, want);
    const uint32_t most =
        DP_FLIGHTS_MAX -
        (other != NULL ? room_for(spread, other, DP_MEMBER_NONE, BEHIND_IN_ALL) : 0);

    for (uint32_t i = 0; spread->n_flights < most && i < DP_FLIGHTS_MAX; i++) {
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
    dp_assert(chunk < want->n_chunks);
    dp_assert(spread->n_flights <= DP_FLIGHTS_MAX);
    dp_flight *const f = free_flight(spread, want);
    if (f == NULL || !dp_out_room(out, 1)) {
        return false;
    }
    const uint32_t member = choose_holder(spread, want, chunk);
    if (member == DP_MEMBER_NONE) {
        return false;
    }
    if (spread->n_flights++ == 0) {
        dp_spread_rate_begin(spread, now);
    }
    *f = (dp_flight){.used = true,
                     .hedge = hedge,
                     .wanted = dp_want_index(spread, want),
                     .chunk = chunk,
                     .member = member,
                     .sent = now,
                     .hedge_at = dp_time_after(now, dp_spread_hedge_wait(spread, want)),
                     .deadline = dp_time_after(now, dp_spread_chunk_wait(spread, want, member))};
    dp_action *const action = dp_out_add(out, DP_DO_GET_CHUNK);
    action->u.get.peer = dp_members_at(spread->members, member)->peer;
    action->u.get.root = want->root;
    action->u.get.index = chunk;
    return true;
}

/* The next linked member that may be asked, from where the search stands: known holders before
 * others, and none that was silent. DP_MEMBER_NONE: all were asked, or nobody may be. */
static uint32_t next_holder(const dp_spread *spread, const dp_want *want)
{
    const dp_rowset *linked = dp_members_linked(spread->members);
    const uint32_t first = place_from(linked, want->info_next % dp_members_count(spread->members));
    uint32_t best = DP_MEMBER_NONE;

    for (uint32_t k = 0; k < linked->count; k++) {
        const uint32_t member = linked->at[(first + k) % linked->count];
        if (!dp_spread_may_ask(spread, want, member) || dp_want_bit(want->silent, member)) {
            continue;
        }
        if (dp_want_bit(want->holders, member)) {
            return member;
        }
        best = best == DP_MEMBER_NONE ? member : best;
    }
    return best;
}

/* The way, and not the line, is what its chunks take their time for. Behind a thin line size and
 * leaves may come after what was asked for with them, which is dropped then, and sent twice. */
static bool is_way_long(const dp_spread *spread, uint32_t member)
{
    const uint64_t trip_us = dp_members_at(spread->members, member)->rtt.srtt_us;

    dp_assert(member < spread->members_max);
    return spread->chunk_us[member] != 0 && spread->chunk_us[member] <= AHEAD_TRIPS * trip_us;
}

/* Chunks that this member alone can be asked for when it has told size and leaves. They count as
 * under way until then, and leave the room of what waits behind. */
static uint32_t ahead_of(const dp_spread *spread, const dp_want *want, uint32_t member)
{
    const uint64_t chunks = dp_object_chunks(want->told);
    uint32_t all = DP_FLIGHTS_MAX - spread->n_flights;
    uint32_t its = dp_spread_flights_of(spread, member);

    if (want->all || !dp_want_bit(want->holders, member) || behind(spread, want) != NULL ||
        dp_spread_has_another(spread, want, member) || !is_way_long(spread, member)) {
        return 0;
    }
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        const dp_want *const other = &spread->wants[spread->queue[i]];
        if (other != want && !other->begun && other->info_from != DP_MEMBER_NONE) {
            all -= other->ahead < all ? other->ahead : all;
            its += other->info_from == member ? other->ahead : 0;
        }
    }
    const uint32_t room = its < DP_FLIGHTS_PER_HOLDER ? DP_FLIGHTS_PER_HOLDER - its : 0;
    const uint32_t most = room < all ? room : all;
    return chunks < most ? (uint32_t)chunks : most;
}

static void ask_info(dp_spread *spread, dp_want *want, dp_time now, dp_out *out)
{
    uint32_t member = next_holder(spread, want);

    if (member == DP_MEMBER_NONE && dp_spread_has_holder(spread, want)) {
        memset(want->silent, 0, sizeof want->silent);
        dp_spread_ask_lacking(want); /* They may have it by now, and the others do not answer. */
        want->asked_all++;
        member = next_holder(spread, want);
    }
    want->info_from = DP_MEMBER_NONE;
    if (member == DP_MEMBER_NONE || !dp_out_room(out, 1)) {
        return;
    }
    want->info_from = member;
    want->info_next = member + 1;
    want->info_deadline = dp_time_after(now, dp_spread_info_wait(spread, want, member));
    want->ahead = ahead_of(spread, want, member);
    dp_action *const action = dp_out_add(out, DP_DO_GET_INFO);
    action->u.get.peer = dp_members_at(spread->members, member)->peer;
    action->u.get.root = want->root;
    action->u.get.ahead = want->ahead;
}

/* Ask again for last chunks that are late, each of one more holder. */
static void hedge(dp_spread *spread, dp_want *want, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; spread->n_flights > 0 && i < DP_FLIGHTS_MAX; i++) {
        dp_flight *const f = &spread->flights[i];
        if (!f->used || f->wanted != dp_want_index(spread, want) || f->hedge_at.us == UINT64_MAX ||
            !dp_time_reached(now, f->hedge_at)) {
            continue;
        }
        /* Nobody else now: another holder may be known soon, long before the deadline of one that
         * is gone. */
        f->hedge_at = dp_spread_hedge_again(spread, want, now);
        if (spread->hedge_room >= HEDGE_COST && ask_chunk(spread, want, f->chunk, true, now, out)) {
            f->hedge_at = DP_NEVER;
            spread->hedge_room -= HEDGE_COST;
            spread->n_hedged++;
        }
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
            !is_flying(spread, dp_want_index(spread, want), chunk, DP_MEMBER_NONE) &&
            !ask_chunk(spread, want, chunk, false, now, out)) {
            return;
        }
    }
    hedge(spread, want, now, out); /* every remaining chunk is under way */
}

void dp_spread_fill(dp_spread *spread, dp_time now, dp_out *out)
{
    for (uint32_t i = 0; i < spread->n_wanted; i++) {
        fill_one(spread, &spread->wants[spread->queue[i]], now, out);
    }
}

void dp_spread_end_flights(dp_spread *spread, uint32_t want, uint32_t chunk, uint32_t member)
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
