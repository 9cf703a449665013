#include "compute/machine/words.h"

#include "base/alloc.h"
#include "base/rng.h"

/* FNV-1a (Fowler, Noll, Vo), finished by a mixer because its low bits are weak. */
static uint64_t hash_of(dp_view word)
{
    uint64_t hash = 0xcbf29ce484222325U;
    for (size_t i = 0; i < word.size; i++) {
        hash = (hash ^ word.data[i]) * 0x100000001b3U;
    }
    return dp_mix64(hash);
}

void dp_words_close(dp_words *words)
{
    dp_free(words->words);
    dp_free(words->times);
    dp_free(words->slots);
    *words = (dp_words){0};
}

/* Where the word stands or would stand, or n_slots after too many looks. */
static uint32_t slot_of(const dp_words *words, dp_view word)
{
    uint32_t slot = (uint32_t)hash_of(word) & (words->n_slots - 1);
    for (uint32_t looks = 0; looks < DP_WORDS_PROBES_MAX; looks++) {
        if (words->slots[slot] == 0 || dp_view_equal(words->words[words->slots[slot] - 1], word)) {
            return slot;
        }
        slot = (slot + 1) & (words->n_slots - 1);
    }
    return words->n_slots;
}

static dp_status grow(dp_words *words)
{
    const uint32_t capacity = words->capacity == 0 ? 1024 : 2 * words->capacity;
    if (capacity > DP_WORDS_MAX) {
        return DP_TOOBIG;
    }
    dp_view *const larger = dp_realloc(words->words, capacity * sizeof *larger);
    if (larger == NULL) {
        return DP_NOMEM;
    }
    words->words = larger;
    uint64_t *const times = dp_realloc(words->times, capacity * sizeof *times);
    if (times == NULL) {
        return DP_NOMEM;
    }
    words->times = times;
    uint32_t *const slots = dp_alloc((size_t)2 * capacity, sizeof *slots);
    if (slots == NULL) {
        return DP_NOMEM;
    }
    dp_free(words->slots);
    words->slots = slots;
    words->n_slots = 2 * capacity;
    words->capacity = capacity;
    for (uint32_t i = 0; i < words->count; i++) {
        const uint32_t slot = slot_of(words, words->words[i]);
        if (slot == words->n_slots) {
            return DP_TOOBIG;
        }
        slots[slot] = i + 1;
    }
    return DP_OK;
}

dp_status dp_words_add(dp_words *words, dp_view word, uint32_t *index)
{
    if (words->count == words->capacity) {
        DP_TRY(grow(words));
    }
    const uint32_t slot = slot_of(words, word);
    if (slot == words->n_slots) {
        return DP_TOOBIG;
    }
    if (words->slots[slot] == 0) {
        words->words[words->count] = word;
        words->times[words->count] = 0;
        words->count++;
        words->slots[slot] = words->count;
    }
    *index = words->slots[slot] - 1;
    words->times[*index]++;
    return DP_OK;
}

bool dp_words_find(const dp_words *words, dp_view word, uint32_t *index)
{
    if (words->count == 0) {
        return false;
    }
    const uint32_t slot = slot_of(words, word);
    if (slot == words->n_slots || words->slots[slot] == 0) {
        return false;
    }
    *index = words->slots[slot] - 1;
    return true;
}
