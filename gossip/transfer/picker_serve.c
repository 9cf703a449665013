/* Limits on requests by peers; counts of the transfers under way, and the check of their tables. */
#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/transfer/picker_internal.h"

/* ---- serving ---- */

/* A token bucket: DP_SERVES_PER_SECOND a second, as many at once. */
static void fill(dp_serving *s, dp_time now)
{
    if (s->filled.us == 0) {
        *s = (dp_serving){.tokens = DP_SERVES_PER_SECOND, .filled = now};
    }
    const uint64_t step_us = DP_SECOND / DP_SERVES_PER_SECOND;
    const uint64_t gained = dp_time_between(s->filled, now) / step_us;
    if (gained + s->tokens >= DP_SERVES_PER_SECOND) {
        *s = (dp_serving){.tokens = DP_SERVES_PER_SECOND, .filled = now};
    } else {
        s->tokens += (uint32_t)gained;
        s->filled = dp_time_after(s->filled, gained * step_us);
    }
}

/* One for each peer, and another for all guests together. */
bool dp_picker_serve_allows(dp_picker *picker, dp_time now, uint32_t member)
{
    dp_assert(member < picker->members_max);
    dp_assert(member < picker->members_max);
    dp_serving *const own = &picker->servings[member];
    dp_serving *const shared =
        dp_members_is_guest(picker->members, member) && !dp_broken(197) ? &picker->guests : own;

    fill(own, now);
    fill(shared, now);
    if (own->tokens == 0 || shared->tokens == 0) {
        return false;
    }
    own->tokens--;
    shared->tokens -= shared != own ? 1 : 0;
    return true;
}

static bool serve(dp_picker *picker, dp_time now, uint32_t member, dp_action_type type,
                  const dp_hash *root, uint32_t index, dp_out *out)
{
    dp_assert(member < dp_members_count(picker->members) && member < picker->members_max);
    if (!dp_picker_serve_allows(picker, now, member) || !dp_out_room(out, 1)) {
        return false;
    }
    dp_action *const action = dp_out_add(out, type);
    action->u.get.peer = dp_members_at(picker->members, member)->peer;
    action->u.get.root = *root;
    action->u.get.index = index;
    return true;
}

bool dp_picker_serve_info(dp_picker *picker, dp_time now, uint32_t member, const dp_hash *root,
                          dp_out *out)
{
    return serve(picker, now, member, DP_DO_SERVE_INFO, root, 0, out);
}

bool dp_picker_serve_chunk(dp_picker *picker, dp_time now, uint32_t member, const dp_hash *root,
                           uint32_t index, dp_out *out)
{
    return index < DP_CHUNKS_MAX && serve(picker, now, member, DP_DO_SERVE_CHUNK, root, index, out);
}

/* ---- looking ---- */

uint64_t dp_picker_bytes_waiting(const dp_picker *picker)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *const want = &picker->wants[picker->queue[i]];
        const uint64_t have = (uint64_t)want->n_have * dp_object_chunk_bytes(want->size);
        bytes += want->size > have ? want->size - have : 0;
    }
    return bytes;
}

uint64_t dp_picker_bytes_of(const dp_picker *picker, const dp_hash *root)
{
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        const dp_want *const want = &picker->wants[picker->queue[i]];
        if (dp_hash_equal(&want->root, root)) {
            const uint64_t bytes = (uint64_t)want->n_have * dp_object_chunk_bytes(want->size);
            return bytes < want->size ? bytes : want->size;
        }
    }
    return 0;
}

uint64_t dp_picker_came(const dp_picker *picker)
{
    return picker->n_came;
}

uint64_t dp_picker_hedged(const dp_picker *picker)
{
    return picker->n_hedged;
}

uint64_t dp_picker_bytes_wanted(const dp_picker *picker)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < DP_WANTED_MAX; i++) {
        bytes += picker->wants[i].used ? picker->wants[i].size : 0;
    }
    return bytes;
}

uint32_t dp_picker_sources(const dp_picker *picker)
{
    uint32_t sources = 0;

    for (uint32_t i = 0; i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *f = &picker->flights[i];
        bool counted = !f->used;
        for (uint32_t k = 0; k < i && !counted; k++) {
            counted = picker->flights[k].used && picker->flights[k].member == f->member;
        }
        sources += counted ? 0 : 1;
    }
    return sources;
}

uint32_t dp_picker_count(const dp_picker *picker)
{
    return picker->n_wanted;
}

dp_status dp_picker_check(const dp_picker *picker, dp_why *why)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < DP_WANTED_MAX; i++) {
        const dp_want *const want = &picker->wants[i];
        if (!want->used) {
            continue;
        }
        used++;
        uint32_t have = 0;
        for (uint32_t k = 0; k < want->n_chunks; k++) {
            have += want->have[k];
        }
        if (have != want->n_have || want->n_chunks > DP_CHUNKS_MAX || want->order > picker->order) {
            return dp_why_set(why, DP_CORRUPT,
                              "chunk picker: object %u counts %u chunks and holds %u", i,
                              want->n_have, have);
        }
    }
    for (uint32_t i = 1; i < picker->n_wanted; i++) {
        const dp_want *const a = &picker->wants[picker->queue[i - 1]];
        const dp_want *const b = &picker->wants[picker->queue[i]];
        if (a->priority > b->priority || (a->priority == b->priority && a->order >= b->order)) {
            return dp_why_set(why, DP_CORRUPT, "chunk picker: the queue is out of order at %u", i);
        }
    }
    if (used != picker->n_wanted) {
        return dp_why_set(why, DP_CORRUPT, "chunk picker: %u objects wanted, %u counted", used,
                          picker->n_wanted);
    }
    uint32_t flights = 0;
    for (uint32_t i = 0; i < DP_FLIGHTS_MAX; i++) {
        const dp_flight *const f = &picker->flights[i];
        if (!f->used) {
            continue;
        }
        flights++;
        const dp_want *const want = &picker->wants[f->wanted];
        if (!want->used || f->chunk >= want->n_chunks || want->have[f->chunk] != 0 ||
            DP_FLIGHTS_PER_HOLDER + picker->windows[f->member] > DP_FLIGHTS_MAX) {
            return dp_why_set(why, DP_CORRUPT,
                              "chunk picker: flight %u is for nothing that is wanted", i);
        }
    }
    if (flights != picker->n_flights) {
        return dp_why_set(why, DP_CORRUPT, "chunk picker: %u flights, %u counted", flights,
                          picker->n_flights);
    }
    return DP_OK;
}
