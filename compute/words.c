#include "compute/words.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"

enum { WORDS_MAX = 1 << 30 };

static const char pattern[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";

struct dp_split {
    dp_view text;
    size_t at;
    size_t piece_end; /* of a long piece that is handed out in cuts */
    pcre2_code *code;
    pcre2_match_data *match;
};

/* Bytes of the sequence that starts at at, or 0 if it is malformed (RFC 3629: no surrogates, nothing overlong). */
static size_t sequence_size(const uint8_t *at, size_t left)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = at[0];
    if (first < 0x80) {
        return 1;
    }
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || size > left) {
        return 0;
    }
    uint32_t code = first & (0x7fU >> size);
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (at[i] & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[size] || code > 0x10ffff || surrogate ? 0 : size;
}

size_t dp_utf8_bad_at(dp_view text)
{
    size_t at = 0;
    while (at < text.size) {
        const size_t size = sequence_size(text.data + at, text.size - at);
        if (size == 0) {
            return at;
        }
        at += size;
    }
    return at;
}

dp_status dp_split_open(dp_split **out, dp_view text, dp_why *why)
{
    if (text.size == 0) {
        return dp_why_set(why, DP_BADARG, "the text is empty");
    }
    const size_t bad = dp_utf8_bad_at(text);
    if (bad < text.size) {
        return dp_why_set(
            why, DP_BADMSG,
            "the text is not UTF-8 at byte %zu; convert it first, for example with iconv", bad);
    }
    dp_split *const split = dp_alloc(1, sizeof *split);
    if (split == NULL) {
        return DP_NOMEM;
    }
    split->text = text;
    int error;
    PCRE2_SIZE where;
    split->code = pcre2_compile((PCRE2_SPTR)pattern, sizeof pattern - 1, PCRE2_UTF | PCRE2_UCP,
                                &error, &where, NULL);
    if (split->code == NULL) {
        dp_split_close(split);
        return dp_why_set(why, DP_UNSUPPORTED, "this build of pcre2 has no Unicode support");
    }
    /* Without a compiler for this machine the interpreter does the same, slower. */
    if (pcre2_jit_compile(split->code, PCRE2_JIT_COMPLETE) != 0) {
        error = 0;
    }
    split->match = pcre2_match_data_create_from_pattern(split->code, NULL);
    if (split->match == NULL) {
        dp_split_close(split);
        return DP_NOMEM;
    }
    *out = split;
    return DP_OK;
}

void dp_split_close(dp_split *split)
{
    if (split == NULL) {
        return;
    }
    pcre2_match_data_free(split->match);
    pcre2_code_free(split->code);
    dp_free(split);
}

bool dp_split_next(dp_split *split, dp_view *piece)
{
    if (split->at == split->text.size) {
        return false;
    }
    if (split->at == split->piece_end) {
        const int found = pcre2_match(split->code, split->text.data, split->text.size, split->at,
                                      PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED, split->match, NULL);
        const PCRE2_SIZE *const range = pcre2_get_ovector_pointer(split->match);
        /* Every character begins a match; should the matcher give up on a monster, cutting it is as good. */
        split->piece_end = found > 0 && range[1] > split->at ? range[1] : split->text.size;
    }
    const size_t left = split->piece_end - split->at;
    const size_t size = left < DP_PIECE_BYTES_MAX ? left : DP_PIECE_BYTES_MAX;
    *piece = dp_view_of(split->text.data + split->at, size);
    split->at += size;
    return true;
}

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

static uint32_t slot_of(const dp_words *words, dp_view word)
{
    uint32_t slot = (uint32_t)hash_of(word) & (words->n_slots - 1);
    while (words->slots[slot] != 0 && !dp_view_equal(words->words[words->slots[slot] - 1], word)) {
        slot = (slot + 1) & (words->n_slots - 1);
    }
    return slot;
}

static dp_status grow(dp_words *words)
{
    const uint32_t capacity = words->capacity == 0 ? 1024 : 2 * words->capacity;
    if (capacity > WORDS_MAX) {
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
        slots[slot_of(words, words->words[i])] = i + 1;
    }
    return DP_OK;
}

dp_status dp_words_add(dp_words *words, dp_view word, uint32_t *index)
{
    if (words->count == words->capacity) {
        DP_TRY(grow(words));
    }
    const uint32_t slot = slot_of(words, word);
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
    const uint32_t at = words->slots[slot_of(words, word)];
    if (at == 0) {
        return false;
    }
    *index = at - 1;
    return true;
}
