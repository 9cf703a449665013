#include "compute/text/merges.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"

void dp_merges_close(dp_merges *merges)
{
    dp_free(merges->items);
    dp_free(merges->slots);
    *merges = (dp_merges){0};
}

static uint32_t home_of(uint32_t n_slots, uint32_t left, uint32_t right)
{
    return (uint32_t)dp_mix64((uint64_t)left << 32 | right) & (n_slots - 1);
}

/* Where the pair stands or would stand, or n_slots after too many looks. */
static uint32_t slot_of(const dp_merges *merges, uint32_t left, uint32_t right)
{
    uint32_t slot = home_of(merges->n_slots, left, right);
    for (uint32_t looks = 0; looks < DP_MERGES_PROBES_MAX; looks++) {
        if (merges->slots[slot] == 0) {
            return slot;
        }
        const dp_merge *const m = &merges->items[merges->slots[slot] - 1];
        if (m->left == left && m->right == right) {
            return slot;
        }
        slot = (slot + 1) & (merges->n_slots - 1);
    }
    return merges->n_slots;
}

static dp_status grow(dp_merges *merges)
{
    const uint32_t capacity = merges->capacity == 0 ? 1024 : 2 * merges->capacity;
    dp_merge *const items = dp_realloc(merges->items, capacity * sizeof *items);
    if (items == NULL) {
        return DP_NOMEM;
    }
    merges->items = items;
    uint32_t *const slots = dp_alloc((size_t)4 * capacity, sizeof *slots);
    if (slots == NULL) {
        return DP_NOMEM;
    }
    dp_free(merges->slots);
    merges->slots = slots;
    merges->n_slots = 4 * capacity;
    merges->capacity = capacity;
    for (uint32_t i = 0; i < merges->count; i++) {
        const uint32_t slot = slot_of(merges, items[i].left, items[i].right);
        if (slot == merges->n_slots) {
            return DP_TOOBIG;
        }
        slots[slot] = i + 1;
    }
    return DP_OK;
}

dp_status dp_merges_add(dp_merges *merges, dp_merge merge)
{
    if (merges->count == DP_MERGES_MAX) {
        return DP_TOOBIG;
    }
    if (merges->count == merges->capacity) {
        DP_TRY(grow(merges));
    }
    const uint32_t slot = slot_of(merges, merge.left, merge.right);
    if (slot == merges->n_slots) {
        return DP_TOOBIG;
    }
    if (merges->slots[slot] != 0) {
        return DP_EXISTS;
    }
    merges->items[merges->count] = merge;
    merges->count++;
    merges->slots[slot] = merges->count;
    return DP_OK;
}

uint32_t dp_merges_find(const dp_merges *merges, uint32_t left, uint32_t right)
{
    if (merges->n_slots == 0) {
        return DP_NO_MERGE;
    }
    const uint32_t slot = slot_of(merges, left, right);
    /* An empty slot holds 0, which becomes DP_NO_MERGE. */
    return slot == merges->n_slots ? DP_NO_MERGE : merges->slots[slot] - 1;
}

void dp_merge_room_close(dp_merge_room *room)
{
    dp_free(room->memory);
    *room = (dp_merge_room){0};
}

static size_t apply_short(const dp_merges *merges, uint32_t *ids, size_t count)
{
    uint32_t ranks[DP_MERGES_SHORT]; /* of ids[i] and ids[i + 1] */
    for (size_t i = 0; i + 1 < count; i++) {
        ranks[i] = dp_merges_find(merges, ids[i], ids[i + 1]);
    }
    while (count > 1) {
        size_t at = 0;
        for (size_t i = 1; i + 1 < count; i++) {
            at = ranks[i] < ranks[at] ? i : at;
        }
        if (ranks[at] == DP_NO_MERGE) {
            break;
        }
        ids[at] = merges->items[ranks[at]].result;
        memmove(ids + at + 1, ids + at + 2, (count - at - 2) * sizeof *ids);
        count--;
        if (at + 1 < count) {
            memmove(ranks + at + 1, ranks + at + 2, (count - at - 2) * sizeof *ranks);
            ranks[at] = dp_merges_find(merges, ids[at], ids[at + 1]);
        }
        if (at > 0) {
            ranks[at - 1] = dp_merges_find(merges, ids[at - 1], ids[at]);
        }
    }
    return count;
}

/* A pair that merged when it was noted; at: of its left one. Small is first. */
typedef struct chance {
    uint32_t rank;
    uint32_t at;
} chance;

/* A long piece as a list within the array: ids of removed places are NONE. */
typedef struct list {
    uint32_t *ids;
    uint32_t *next; /* place of the right neighbour, or count */
    uint32_t *before;
    uint32_t count;
    chance *heap;
    size_t n_heap;
} list;

static const uint32_t NONE = UINT32_MAX;

static bool earlier(chance a, chance b)
{
    return a.rank < b.rank || (a.rank == b.rank && a.at < b.at);
}

static void push(list *l, chance c)
{
    size_t i = l->n_heap;
    l->n_heap++;
    while (i > 0 && earlier(c, l->heap[(i - 1) / 2])) {
        l->heap[i] = l->heap[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    l->heap[i] = c;
}

static chance pop(list *l)
{
    const chance first = l->heap[0];
    l->n_heap--;
    const chance c = l->heap[l->n_heap];
    size_t i = 0;
    for (;;) {
        size_t child = 2 * i + 1;
        if (child >= l->n_heap) {
            break;
        }
        if (child + 1 < l->n_heap && earlier(l->heap[child + 1], l->heap[child])) {
            child++;
        }
        if (!earlier(l->heap[child], c)) {
            break;
        }
        l->heap[i] = l->heap[child];
        i = child;
    }
    l->heap[i] = c;
    return first;
}

static uint32_t rank_at(const dp_merges *merges, const list *l, uint32_t at)
{
    const uint32_t next = l->next[at];
    return l->ids[at] == NONE || next == l->count
               ? DP_NO_MERGE
               : dp_merges_find(merges, l->ids[at], l->ids[next]);
}

static void note(const dp_merges *merges, list *l, uint32_t at)
{
    const uint32_t rank = rank_at(merges, l, at);
    if (rank != DP_NO_MERGE) {
        push(l, (chance){.rank = rank, .at = at});
    }
}

static void apply_long(const dp_merges *merges, list *l)
{
    for (uint32_t i = 0; i < l->count; i++) {
        l->next[i] = i + 1;
        l->before[i] = i == 0 ? l->count : i - 1;
    }
    for (uint32_t i = 0; i < l->count; i++) {
        note(merges, l, i);
    }
    while (l->n_heap > 0) {
        const chance c = pop(l);
        if (rank_at(merges, l, c.at) != c.rank) {
            continue; /* One of the two has merged with another since. */
        }
        const uint32_t gone = l->next[c.at];
        const uint32_t after = l->next[gone];
        l->ids[c.at] = merges->items[c.rank].result;
        l->ids[gone] = NONE;
        l->next[c.at] = after;
        if (after < l->count) {
            l->before[after] = c.at;
        }
        note(merges, l, c.at);
        if (l->before[c.at] < l->count) {
            note(merges, l, l->before[c.at]);
        }
    }
}

dp_status dp_merges_apply(const dp_merges *merges, dp_merge_room *room, uint32_t *ids,
                          size_t *count)
{
    const size_t n = *count;
    if (n <= DP_MERGES_SHORT) {
        *count = apply_short(merges, ids, n);
        return DP_OK;
    }
    dp_assert(n < UINT32_MAX / 4);
    /* Each pair at the start and two after each merge are noted: fewer than 3n. */
    const size_t size = n * (2 * sizeof(uint32_t) + 3 * sizeof(chance));
    if (room->size < size) {
        dp_free(room->memory);
        *room = (dp_merge_room){.memory = dp_alloc(1, size), .size = size};
        if (room->memory == NULL) {
            room->size = 0;
            return DP_NOMEM;
        }
    }
    chance *const heap = room->memory;
    uint32_t *const links = (uint32_t *)(heap + 3 * n);
    list l = {.ids = ids, .next = links, .before = links + n, .count = (uint32_t)n, .heap = heap};
    apply_long(merges, &l);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        if (ids[i] != NONE) {
            ids[kept] = ids[i];
            kept++;
        }
    }
    *count = kept;
    return DP_OK;
}
