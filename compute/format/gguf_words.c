#include "compute/format/gguf_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "compute/cpu/half.h"
#include "compute/text/bpe_parts.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX };

/* llama.cpp's kinds of tokens. */
enum { NORMAL = 1, CONTROL = 3, USER_DEFINED = 4, UNUSED = 5 };

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
    const char *pattern; /* in tokenizer.json */
    const char *name;
} known_pieces[] = {
    {DP_PRETOKENIZER_GPT2, "gpt-2"},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}|" TAIL, "llama-bpe"},
    {CONTRACTIONS "|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}|" TAIL, "qwen2"},
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

static void write_tokens(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab)
{
    begin_array(pairs, "tokenizer.ggml.tokens", DP_GGUF_TEXT, vocab);
    for (uint32_t id = 0; id < vocab; id++) {
        char text[TEXT_MAX];
        const dp_view bytes = dp_bpe_token(bpe, id);
        const dp_added_token *const added = added_of(bpe, id);
        if (added != NULL) {
            dp_gguf_string(pairs, added->text);
        } else if (bytes.size > 0) {
            dp_gguf_string(pairs, dp_view_of(text, token_text(bytes, text)));
        } else {
            snprintf(text, sizeof text, "[PAD%" PRIu32 "]", id);
            dp_gguf_string(pairs, dp_view_text(text));
        }
    }
    begin_array(pairs, "tokenizer.ggml.token_type", DP_GGUF_I32, vocab);
    for (uint32_t id = 0; id < vocab; id++) {
        const dp_added_token *const added = added_of(bpe, id);
        const uint32_t plain = dp_bpe_token(bpe, id).size > 0 ? NORMAL : UNUSED;
        dp_gguf_u32(pairs, added == NULL ? plain : added->special ? CONTROL : USER_DEFINED);
    }
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

/* The name by which llama.cpp knows how the text is cut; NULL: it knows none. */
static const char *pieces_name(const dp_bpe *bpe)
{
    const dp_pretokenizer_step *const step = &bpe->pieces.items[0];
    const bool all =
        step->behavior == DP_SPLIT_ISOLATED || (step->behavior == DP_SPLIT_REMOVED && step->invert);
    const dp_normalizer_steps *const n = &bpe->normalizer;
    const bool plain = n->count == 0 || (n->count == 1 && n->items[0].kind == DP_NORMALIZER_NFC);
    if (!bpe->bytes || !plain || bpe->pieces.count != 1 || !all ||
        step->prefix != DP_PREFIX_NEVER) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof known_pieces / sizeof *known_pieces; i++) {
        if (dp_view_equal(dp_view_of(step->pattern, step->pattern_bytes),
                          dp_view_text(known_pieces[i].pattern))) {
            return known_pieces[i].name;
        }
    }
    return NULL;
}

bool dp_gguf_words_known(const dp_bpe *bpe)
{
    return pieces_name(bpe) != NULL;
}

void dp_gguf_words(dp_gguf_pairs *pairs, const dp_bpe *bpe, uint32_t vocab)
{
    uint32_t end = 0;
    size_t n_begin = 0;
    dp_assert(pieces_name(bpe) != NULL);
    dp_gguf_pair_text(pairs, "tokenizer.ggml.model", "gpt2");
    dp_gguf_pair_text(pairs, "tokenizer.ggml.pre", pieces_name(bpe));
    write_tokens(pairs, bpe, vocab);
    write_merges(pairs, bpe);
    const uint32_t *const begin = dp_bpe_begin_of_text(bpe, &n_begin);
    const bool ends = dp_bpe_end_of_text(bpe, &end);
    if (ends || n_begin > 0) {
        dp_gguf_pair_u32(pairs, "tokenizer.ggml.bos_token_id", n_begin > 0 ? begin[0] : end);
    }
    if (ends) {
        dp_gguf_pair_u32(pairs, "tokenizer.ggml.eos_token_id", end);
    }
    dp_gguf_key(pairs, "tokenizer.ggml.add_bos_token", DP_GGUF_BOOL);
    dp_gguf_raw(pairs, n_begin > 0 ? "\1" : "\0", 1);
}
