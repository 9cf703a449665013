#include "compute/format/gguf_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cpu/half.h"
#include "compute/text/bpe_parts.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX };

/* llama.cpp's kinds of tokens. */
enum { NORMAL = 1, UNKNOWN = 2, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5, BYTE = 6 };

/* SentencePiece's mark for a space, U+2581. */
#define MARK "\342\226\201"

void dp_gguf_raw(dp_gguf_pairs *pairs, const void *bytes, size_t size)
{
    if (pairs->status == DP_OK) {
        pairs->status = dp_buf_append(pairs->out, dp_view_of(bytes, size));
    }
}

void dp_gguf_u32(dp_gguf_pairs *pairs, uint32_t value)
{
    const uint8_t bytes[4] = {(uint8_t)value, (uint8_t)(value >> 8), (uint8_t)(value >> 16),
                              (uint8_t)(value >> 24)};
    dp_gguf_raw(pairs, bytes, sizeof bytes);
}

void dp_gguf_u64(dp_gguf_pairs *pairs, uint64_t value)
{
    dp_gguf_u32(pairs, (uint32_t)value);
    dp_gguf_u32(pairs, (uint32_t)(value >> 32));
}

void dp_gguf_string(dp_gguf_pairs *pairs, dp_view text)
{
    dp_gguf_u64(pairs, text.size);
    dp_gguf_raw(pairs, text.data, text.size);
}

void dp_gguf_key(dp_gguf_pairs *pairs, const char *key, uint32_t type)
{
    dp_gguf_string(pairs, dp_view_text(key));
    dp_gguf_u32(pairs, type);
    pairs->count++;
}

void dp_gguf_pair_u32(dp_gguf_pairs *pairs, const char *key, uint32_t value)
{
    dp_gguf_key(pairs, key, DP_GGUF_U32);
    dp_gguf_u32(pairs, value);
}

void dp_gguf_pair_real(dp_gguf_pairs *pairs, const char *key, float value)
{
    dp_gguf_key(pairs, key, DP_GGUF_REAL);
    dp_gguf_u32(pairs, dp_float_bits(value));
}

void dp_gguf_pair_text(dp_gguf_pairs *pairs, const char *key, const char *value)
{
    dp_gguf_key(pairs, key, DP_GGUF_TEXT);
    dp_gguf_string(pairs, dp_view_text(value));
}

static void begin_array(dp_gguf_pairs *pairs, const char *key, uint32_t type, uint64_t count)
{
    dp_gguf_key(pairs, key, DP_GGUF_ARRAY);
    dp_gguf_u32(pairs, type);
    dp_gguf_u64(pairs, count);
}

#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define TAIL " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

static const struct {
    const char *patterns[2]; /* in tokenizer.json, of one step or two */
    bool ignores_merges;     /* llama.cpp takes a piece that is a token as it is */
    const char *name;
} known_pieces[] = {
    {{DP_PRETOKENIZER_GPT2}, false, "gpt-2"},
    {{CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" TAIL}, true, "llama-bpe"},
    {{CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" TAIL}, false, "dbrx"},
    {{CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" TAIL}, false, "qwen2"},
    {{"\\p{N}", DP_PRETOKENIZER_GPT2}, false, "smollm"},
};

/* As tokenizer.json writes it; returns the size. */
static size_t token_text(dp_view bytes, char out[TEXT_MAX])
{
    size_t size = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        size += dp_bpe_write_byte(bytes.data[i], out + size);
    }
    return size;
}

static const dp_added_token *added_of(const dp_bpe *bpe, uint32_t id)
{
    const dp_added *const tables[] = {&bpe->added_raw, &bpe->added};
    for (size_t t = 0; t < 2; t++) {
        for (uint32_t i = 0; i < tables[t]->count; i++) {
            if (tables[t]->items[i].id == id) {
                return &tables[t]->items[i];
            }
        }
    }
    return NULL;
}

/* llama.cpp's kind of a token. */
static uint32_t kind_of(const dp_bpe *bpe, uint32_t id)
{
    const dp_added_token *const added = added_of(bpe, id);
    const dp_view bytes = dp_bpe_token(bpe, id);
    uint8_t byte;
    if (!bpe->bytes && id == bpe->unknown) {
        return UNKNOWN;
    }
    if (added != NULL) {
        return added->special ? CONTROL : USER_DEFINED;
    }
    if (bytes.size == 0) {
        return UNUSED;
    }
    return !bpe->bytes && dp_decoder_byte(bytes, &byte) ? BYTE : NORMAL;
}

static void write_tokens(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab)
{
    begin_array(pairs, "tokenizer.ggml.tokens", DP_GGUF_TEXT, vocab);
    for (uint32_t id = 0; id < vocab; id++) {
        char text[TEXT_MAX];
        const dp_view bytes = dp_bpe_token(bpe, id);
        const dp_added_token *const added = added_of(bpe, id);
        if (added != NULL || (bytes.size > 0 && !bpe->bytes)) {
            dp_gguf_string(pairs, bytes);
        } else if (bytes.size > 0) {
            dp_gguf_string(pairs, dp_view_of(text, token_text(bytes, text)));
        } else {
            snprintf(text, sizeof text, "[PAD%" PRIu32 "]", id);
            dp_gguf_string(pairs, dp_view_text(text));
        }
    }
    begin_array(pairs, "tokenizer.ggml.token_type", DP_GGUF_I32, vocab);
    for (uint32_t id = 0; id < vocab; id++) {
        dp_gguf_u32(pairs, kind_of(bpe, id));
    }
}

/* Of the merges that make a token, the rank of the first: less is joined sooner. */
static void write_scores(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab)
{
    const dp_merges *const m = &bpe->merges;
    begin_array(pairs, "tokenizer.ggml.scores", DP_GGUF_REAL, vocab);
    float *const scores = dp_alloc(vocab, sizeof *scores);
    if (scores == NULL) {
        pairs->status = DP_NOMEM;
        return;
    }
    for (uint32_t i = m->count; i > 0; i--) {
        scores[m->items[i - 1].result] = -(float)(i - 1);
    }
    for (uint32_t id = 0; id < vocab; id++) {
        dp_gguf_u32(pairs, dp_float_bits(scores[id]));
    }
    dp_free(scores);
}

static void write_merges(dp_gguf_pairs *pairs, const dp_bpe *bpe)
{
    begin_array(pairs, "tokenizer.ggml.merges", DP_GGUF_TEXT, bpe->merges.count);
    for (uint32_t i = 0; i < bpe->merges.count; i++) {
        char text[2 * TEXT_MAX + 1];
        const dp_merge *const merge = &bpe->merges.items[i];
        size_t size = token_text(bpe->tokens[merge->left], text);
        text[size] = ' ';
        size++;
        size += token_text(bpe->tokens[merge->right], text + size);
        dp_gguf_string(pairs, dp_view_of(text, size));
    }
}

/* ---- which tokenizers llama.cpp knows ---- */

static bool step_is(const dp_pretokenizer_step *step, const char *pattern)
{
    const bool all =
        step->behavior == DP_SPLIT_ISOLATED || (step->behavior == DP_SPLIT_REMOVED && step->invert);
    return all && step->prefix == DP_PREFIX_NEVER && !step->replaces &&
           dp_view_equal(dp_view_of(step->pattern, step->pattern_bytes), dp_view_text(pattern));
}

/* The name by which llama.cpp knows how text is cut; NULL: it knows none. */
static const char *pieces_name(const dp_bpe *bpe)
{
    const dp_normalizer_steps *const n = &bpe->normalizer;
    const dp_pretokenizer_steps *const pieces = &bpe->pieces;
    if (n->count > 1 || (n->count == 1 && n->items[0].kind != DP_NORMALIZER_NFC)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof known_pieces / sizeof *known_pieces; i++) {
        const char *const *const patterns = known_pieces[i].patterns;
        const unsigned count = patterns[1] != NULL ? 2 : 1;
        bool same = pieces->count == count && known_pieces[i].ignores_merges == bpe->ignore_merges;
        for (unsigned k = 0; k < count && same; k++) {
            same = step_is(&pieces->items[k], patterns[k]);
        }
        if (same) {
            return known_pieces[i].name;
        }
    }
    return NULL;
}

static bool is_text(const dp_buf *text, const char *other)
{
    return dp_view_equal(dp_buf_view(text), dp_view_text(other));
}

/* Whether spaces become marks and nothing else changes, as in SentencePiece; *prefix: with one in
 * front. */
static bool marks_spaces(const dp_bpe *bpe, bool *prefix)
{
    const dp_normalizer_steps *const n = &bpe->normalizer;
    const dp_pretokenizer_step *const step = &bpe->pieces.items[0];
    const unsigned steps = bpe->pieces.count - (bpe->cuts_words ? 1 : 0); /* of the file */
    const dp_view mark = dp_view_text(MARK);
    *prefix = false;
    if (n->count == 0) { /* A Metaspace that does not cut. */
        *prefix = step->prefix != DP_PREFIX_NEVER;
        return steps == 1 && step->replaces && step->pattern == NULL &&
               dp_view_equal(dp_view_of(step->mark, step->mark_bytes), mark);
    }
    const dp_normalizer_step *const first = &n->items[0];
    const dp_normalizer_step *const last = &n->items[n->count - 1];
    *prefix = first->kind == DP_NORMALIZER_PREPEND && is_text(&first->content, MARK);
    /* After the normalizer there is no space that a step could cut at. */
    const bool whole =
        steps == 0 ||
        (steps == 1 && !step->replaces && !step->invert && step->prefix == DP_PREFIX_NEVER &&
         step->kind == DP_PATTERN_LITERAL &&
         dp_view_equal(dp_view_of(step->pattern, step->pattern_bytes), dp_view_text(" ")));
    return n->count == (*prefix ? 2U : 1U) && last->kind == DP_NORMALIZER_REPLACE &&
           last->pattern_kind == DP_PATTERN_LITERAL && is_text(&last->pattern, " ") &&
           is_text(&last->content, MARK) && whole;
}

static bool has_bytes(const dp_bpe *bpe)
{
    for (size_t i = 0; i < 256; i++) {
        if (bpe->byte_id[i] == DP_NO_TOKEN) {
            return false;
        }
    }
    return bpe->byte_fallback;
}

/* Whether the merges of each token follow each other. seen: room for a flag of each token. */
static bool merges_are_grouped(const dp_bpe *bpe, bool *seen)
{
    for (uint32_t i = 0; i < bpe->merges.count; i++) {
        const uint32_t result = bpe->merges.items[i].result;
        if (seen[result] && bpe->merges.items[i - 1].result != result) {
            return false;
        }
        seen[result] = true;
    }
    return true;
}

/* Whether each split of a token into two that text can have is a merge. */
static bool splits_are_merges(const dp_bpe *bpe, uint32_t id)
{
    const dp_view text = dp_bpe_token(bpe, id);
    for (size_t at = 1; at < text.size; at++) {
        uint32_t left;
        uint32_t right;
        if (dp_bpe_find(bpe, dp_view_of(text.data, at), &left) &&
            dp_bpe_find(bpe, dp_view_of(text.data + at, text.size - at), &right) &&
            kind_of(bpe, left) == NORMAL && kind_of(bpe, right) == NORMAL &&
            dp_merges_find(&bpe->merges, left, right) == DP_NO_MERGE) {
            return false;
        }
    }
    return true;
}

static dp_status check_merges(const dp_bpe *bpe, dp_why *why)
{
    bool *const seen = dp_alloc(dp_bpe_count(bpe), sizeof *seen);
    if (seen == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for the tokens of a GGUF file");
    }
    bool same = merges_are_grouped(bpe, seen);
    dp_free(seen);
    for (uint32_t id = 0; id < dp_bpe_count(bpe) && same; id++) {
        same = kind_of(bpe, id) != NORMAL || splits_are_merges(bpe, id);
    }
    return same ? DP_OK
                : dp_why_set(why, DP_UNSUPPORTED,
                             "the tokenizer's merges are no scores of tokens, as SentencePiece "
                             "makes them, so llama.cpp would make other tokens: export without "
                             "--gguf");
}

dp_status dp_gguf_words_check(const dp_bpe *bpe, dp_why *why)
{
    bool prefix;
    if (bpe->model == DP_BPE_MERGES && bpe->bytes && pieces_name(bpe) != NULL) {
        return DP_OK;
    }
    if (bpe->model != DP_BPE_MERGES || bpe->bytes || !marks_spaces(bpe, &prefix) ||
        bpe->ignore_merges || !has_bytes(bpe)) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "the tokenizer is none of those that a GGUF file can name here (GPT-2, "
                          "Llama 3, Qwen2, SmolLM, SentencePiece's BPE): export without --gguf, "
                          "and convert that folder with llama.cpp's own program");
    }
    return check_merges(bpe, why);
}

/* ---- their pairs ---- */

static void write_flag(dp_gguf_pairs *pairs, const char *key, bool value)
{
    dp_gguf_key(pairs, key, DP_GGUF_BOOL);
    dp_gguf_raw(pairs, value ? "\1" : "\0", 1);
}

void dp_gguf_words(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab)
{
    uint32_t end = 0;
    size_t n_begin = 0;
    bool prefix = false;
    dp_gguf_pair_text(pairs, "tokenizer.ggml.model", bpe->bytes ? "gpt2" : "llama");
    dp_gguf_pair_text(pairs, "tokenizer.ggml.pre", bpe->bytes ? pieces_name(bpe) : "default");
    write_tokens(pairs, bpe, vocab);
    if (bpe->bytes) {
        write_merges(pairs, bpe);
    } else {
        const bool known = marks_spaces(bpe, &prefix);
        dp_assert(known);
        write_scores(pairs, bpe, vocab);
        write_flag(pairs, "tokenizer.ggml.add_space_prefix", prefix);
    }
    const uint32_t *const begin = dp_bpe_begin_of_text(bpe, &n_begin);
    const bool ends = dp_bpe_end_of_text(bpe, &end);
    if (ends || n_begin > 0) {
        dp_gguf_pair_u32(pairs, "tokenizer.ggml.bos_token_id", n_begin > 0 ? begin[0] : end);
    }
    if (ends) {
        dp_gguf_pair_u32(pairs, "tokenizer.ggml.eos_token_id", end);
    }
    if (!bpe->bytes && bpe->unknown != DP_NO_TOKEN) {
        dp_gguf_pair_u32(pairs, "tokenizer.ggml.unknown_token_id", bpe->unknown);
    }
    write_flag(pairs, "tokenizer.ggml.add_bos_token", n_begin > 0);
}
