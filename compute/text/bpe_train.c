/* Training: pair counts over the different pieces of the text, kept up to date from merge to
 * merge. */
#include <string.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "compute/machine/words.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "compute/text/pretokenizer.h"
#include "compute/unicode/utf8.h"

/* A longer piece is counted in cuts: a single word of a thousand bytes says nothing about
 * language. */
enum { WORD_BYTES_MAX = 1024 };

typedef struct pair_count {
    uint64_t pair; /* left << 32 | right */
    bool used;
    int64_t count;
} pair_count;

typedef struct trainer {
    dp_words words;
    uint32_t *ids;  /* symbols of all words; each keeps the room of its bytes */
    size_t *begin;  /* of each word in ids */
    uint16_t *size; /* symbols of each word now */
    pair_count *pairs;
    size_t n_slots;
    size_t n_used;
} trainer;

_Static_assert(WORD_BYTES_MAX <= UINT16_MAX, "the size of a word fits u16");

static void trainer_close(trainer *t)
{
    dp_words_close(&t->words);
    dp_free(t->ids);
    dp_free(t->begin);
    dp_free(t->size);
    dp_free(t->pairs);
}

static dp_status count_piece(trainer *t, dp_view piece)
{
    while (piece.size > 0) {
        const size_t size = piece.size < WORD_BYTES_MAX ? piece.size : WORD_BYTES_MAX;
        uint32_t index;
        DP_TRY(dp_words_add(&t->words, dp_view_of(piece.data, size), &index));
        piece = dp_view_of(piece.data + size, piece.size - size);
    }
    return DP_OK;
}

static dp_status count_words(trainer *t, const dp_bpe *bpe, dp_view text, dp_why *why)
{
    if (text.size == 0) {
        return dp_why_set(why, DP_BADARG, "the text is empty");
    }
    dp_pretokenizer *pieces;
    DP_TRY(dp_utf8_check(text, why));
    DP_TRY(dp_pretokenizer_open(&pieces, &bpe->pieces, why));
    dp_status status = dp_pretokenizer_begin(pieces, text, 1);
    while (status == DP_OK) {
        dp_view piece;
        status = dp_pretokenizer_next(pieces, &piece, why);
        if (status == DP_OK) {
            status = count_piece(t, piece);
        }
    }
    dp_pretokenizer_close(pieces);
    return status == DP_NOTFOUND ? DP_OK : status;
}

static pair_count *slot_of(pair_count *pairs, size_t n_slots, uint64_t pair)
{
    size_t slot = (size_t)dp_mix64(pair) & (n_slots - 1);
    while (pairs[slot].used && pairs[slot].pair != pair) {
        slot = (slot + 1) & (n_slots - 1);
    }
    return &pairs[slot];
}

/* Pairs that do not occur any more are dropped on the way. */
static dp_status resize(trainer *t)
{
    size_t live = 0;
    for (size_t i = 0; i < t->n_slots; i++) {
        live += t->pairs[i].used && t->pairs[i].count > 0;
    }
    size_t n_slots = 4096;
    while (n_slots < 4 * live) {
        n_slots *= 2;
    }
    pair_count *const pairs = dp_alloc(n_slots, sizeof *pairs);
    if (pairs == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < t->n_slots; i++) {
        if (t->pairs[i].used && t->pairs[i].count > 0) {
            *slot_of(pairs, n_slots, t->pairs[i].pair) = t->pairs[i];
        }
    }
    dp_free(t->pairs);
    t->pairs = pairs;
    t->n_slots = n_slots;
    t->n_used = live;
    return DP_OK;
}

/* Add sign * (times of the word) to the counts of its pairs. */
static dp_status count_pairs(trainer *t, uint32_t word, int64_t sign)
{
    const uint32_t *const ids = t->ids + t->begin[word];
    const int64_t times = sign * (int64_t)t->words.times[word];
    for (size_t i = 0; i + 1 < t->size[word]; i++) {
        if (2 * t->n_used >= t->n_slots) {
            DP_TRY(resize(t));
        }
        const uint64_t pair = (uint64_t)ids[i] << 32 | ids[i + 1];
        pair_count *const slot = slot_of(t->pairs, t->n_slots, pair);
        if (!slot->used) {
            *slot = (pair_count){.pair = pair, .used = true};
            t->n_used++;
        }
        slot->count += times;
    }
    return DP_OK;
}

static dp_status lay_out(trainer *t, const dp_bpe *bpe)
{
    size_t total = 0;
    for (uint32_t i = 0; i < t->words.count; i++) {
        total += t->words.words[i].size;
    }
    t->ids = dp_alloc(total, sizeof *t->ids);
    t->begin = dp_alloc(t->words.count, sizeof *t->begin);
    t->size = dp_alloc(t->words.count, sizeof *t->size);
    if (t->ids == NULL || t->begin == NULL || t->size == NULL) {
        return DP_NOMEM;
    }
    uint32_t byte_id[256];
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        uint32_t id = 0;
        if (!dp_bpe_find(bpe, dp_view_of(&byte, 1), &id)) {
            return DP_CORRUPT;
        }
        byte_id[i] = id;
    }
    size_t at = 0;
    for (uint32_t i = 0; i < t->words.count; i++) {
        const dp_view word = t->words.words[i];
        t->begin[i] = at;
        t->size[i] = (uint16_t)word.size;
        for (size_t j = 0; j < word.size; j++) {
            t->ids[at + j] = byte_id[word.data[j]];
        }
        at += word.size;
        DP_TRY(count_pairs(t, i, 1));
    }
    return DP_OK;
}

/* The most frequent pair whose token would not be too long; false if none occurs twice. */
static bool best_pair(const trainer *t, const dp_bpe *bpe, uint64_t *pair)
{
    int64_t most = 1;
    for (size_t i = 0; i < t->n_slots; i++) {
        const pair_count *const p = &t->pairs[i];
        if (!p->used || p->count < most || (p->count == most && (most == 1 || p->pair > *pair))) {
            continue;
        }
        const size_t size = dp_bpe_token(bpe, (uint32_t)(p->pair >> 32)).size +
                            dp_bpe_token(bpe, (uint32_t)p->pair).size;
        if (size <= DP_BPE_TOKEN_BYTES_MAX) {
            most = p->count;
            *pair = p->pair;
        }
    }
    return most > 1;
}

/* Merge all left-right neighbours in ids[0..count-1] from left to right; returns the new count. */
static size_t merge_all(uint32_t *ids, size_t count, dp_merge merge)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && ids[i] == merge.left && ids[i + 1] == merge.right) {
            ids[kept] = merge.result;
            i++;
        } else {
            ids[kept] = ids[i];
        }
        kept++;
    }
    return kept;
}

static dp_status merge_words(trainer *t, dp_merge merge)
{
    for (uint32_t word = 0; word < t->words.count; word++) {
        uint32_t *const ids = t->ids + t->begin[word];
        const size_t size = t->size[word];
        size_t i = 0;
        while (i + 1 < size && !(ids[i] == merge.left && ids[i + 1] == merge.right)) {
            i++;
        }
        if (i + 1 >= size) {
            continue;
        }
        DP_TRY(count_pairs(t, word, -1));
        t->size[word] = (uint16_t)merge_all(ids, size, merge);
        DP_TRY(count_pairs(t, word, 1));
    }
    return DP_OK;
}

static dp_status merge_once(trainer *t, dp_bpe *bpe, uint64_t pair)
{
    const uint32_t left = (uint32_t)(pair >> 32);
    const uint32_t right = (uint32_t)pair;
    const dp_view a = dp_bpe_token(bpe, left);
    const dp_view b = dp_bpe_token(bpe, right);
    uint8_t joined[DP_BPE_TOKEN_BYTES_MAX];
    memcpy(joined, a.data, a.size);
    memcpy(joined + a.size, b.data, b.size);
    const dp_view bytes = dp_view_of(joined, a.size + b.size);
    /* Two ways to one string share a token. */
    const dp_status added = dp_bpe_add_token(bpe, bytes);
    if (added != DP_OK && added != DP_EXISTS) {
        return added;
    }
    DP_TRY(dp_bpe_add_merge(bpe, left, right));
    uint32_t result = 0;
    if (!dp_bpe_find(bpe, bytes, &result)) {
        return DP_CORRUPT;
    }
    return merge_words(t, (dp_merge){.left = left, .right = right, .result = result});
}

static dp_status train(trainer *t, dp_bpe *bpe, dp_view text, size_t n_tokens, dp_why *why)
{
    const dp_pretokenizer_step step = {.kind = DP_PATTERN_REGEX, .behavior = DP_SPLIT_ISOLATED};
    DP_TRY(dp_pretokenizer_steps_add(&bpe->pieces, &step, dp_view_text(DP_PRETOKENIZER_GPT2)));
    DP_TRY(dp_bpe_add_bytes(bpe));
    DP_TRY(count_words(t, bpe, text, why));
    DP_TRY(lay_out(t, bpe));
    uint64_t pair = 0;
    /* Merges that make no new token are few, but bounded all the same. */
    while (dp_bpe_count(bpe) < n_tokens && bpe->merges.count < DP_BPE_TOKENS_MAX &&
           best_pair(t, bpe, &pair)) {
        DP_TRY(merge_once(t, bpe, pair));
    }
    return dp_bpe_seal(bpe);
}

dp_status dp_bpe_train(dp_bpe **out, dp_view text, size_t n_tokens, dp_why *why)
{
    if (n_tokens < DP_BPE_TOKENS_MIN || n_tokens > DP_BPE_TOKENS_MAX) {
        return dp_why_set(why, DP_BADARG, "a tokenizer has %d to %d tokens", DP_BPE_TOKENS_MIN,
                          DP_BPE_TOKENS_MAX);
    }
    dp_bpe *bpe;
    DP_TRY(dp_bpe_new(&bpe));
    trainer t = {0};
    const dp_status status = train(&t, bpe, text, n_tokens, why);
    trainer_close(&t);
    if (status != DP_OK) {
        dp_bpe_close(bpe);
        return status;
    }
    *out = bpe;
    return DP_OK;
}
