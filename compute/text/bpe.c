#include "compute/text/bpe.h"

#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/text/bpe_parts.h"

void dp_tokens_close(dp_tokens *tokens)
{
    dp_free(tokens->ids);
    *tokens = (dp_tokens){0};
}

dp_status dp_tokens_append(dp_tokens *tokens, const uint32_t *ids, size_t count)
{
    if (tokens->capacity - tokens->count < count) {
        const size_t capacity = 2 * (tokens->capacity + count);
        uint32_t *const larger = dp_realloc(tokens->ids, capacity * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        tokens->ids = larger;
        tokens->capacity = capacity;
    }
    if (count > 0) {
        memcpy(tokens->ids + tokens->count, ids, count * sizeof *ids);
    }
    tokens->count += count;
    return DP_OK;
}

dp_status dp_bpe_new(dp_bpe **out)
{
    dp_bpe *const bpe = dp_alloc(1, sizeof *bpe);
    if (bpe == NULL) {
        return DP_NOMEM;
    }
    bpe->block_used = DP_BPE_BLOCK_BYTES;
    bpe->bytes = true;
    bpe->unknown = DP_NO_TOKEN;
    for (unsigned i = 0; i < DP_PARTS; i++) {
        dp_buf_init(&bpe->parts[i], DP_BPE_JSON_BYTES_MAX);
    }
    *out = bpe;
    return DP_OK;
}

void dp_bpe_close(dp_bpe *bpe)
{
    if (bpe == NULL) {
        return;
    }
    for (unsigned i = 0; i < DP_PARTS; i++) {
        dp_buf_close(&bpe->parts[i]);
    }
    dp_normalizer_steps_close(&bpe->normalizer);
    dp_pretokenizer_steps_close(&bpe->pieces);
    dp_unigram_close(&bpe->unigram);
    dp_added_close(&bpe->added);
    dp_added_close(&bpe->added_raw);
    dp_words_close(&bpe->added_words);
    dp_free(bpe->added_ids);
    dp_free(bpe->text_bytes);
    dp_merges_close(&bpe->merges);
    dp_words_close(&bpe->words);
    dp_free(bpe->word_ids);
    dp_free(bpe->tokens);
    for (size_t i = 0; i < bpe->n_blocks; i++) {
        dp_free(bpe->blocks[i]);
    }
    dp_free(bpe);
}

size_t dp_bpe_count(const dp_bpe *bpe)
{
    return bpe->count;
}

dp_view dp_bpe_token(const dp_bpe *bpe, uint32_t id)
{
    return id < bpe->count ? bpe->tokens[id] : dp_view_of(NULL, 0);
}

size_t dp_bpe_text_bytes(const dp_bpe *bpe, uint32_t id)
{
    return id < bpe->count ? bpe->text_bytes[id] : 0;
}

bool dp_bpe_find(const dp_bpe *bpe, dp_view bytes, uint32_t *id)
{
    uint32_t index;
    if (!dp_words_find(&bpe->words, bytes, &index)) {
        return false;
    }
    *id = bpe->word_ids[index];
    return true;
}

/* Copies bytes to where they stay. */
static dp_status keep(dp_bpe *bpe, dp_view bytes, dp_view *kept)
{
    if (bytes.size == 0) {
        return DP_BADARG;
    }
    if (bytes.size > DP_BPE_TOKEN_BYTES_MAX) {
        return DP_TOOBIG;
    }
    if (DP_BPE_BLOCK_BYTES - bpe->block_used < bytes.size) {
        if (bpe->n_blocks == DP_BPE_BLOCKS_MAX) {
            return DP_TOOBIG;
        }
        uint8_t *const block = dp_alloc(1, DP_BPE_BLOCK_BYTES);
        if (block == NULL) {
            return DP_NOMEM;
        }
        bpe->blocks[bpe->n_blocks] = block;
        bpe->n_blocks++;
        bpe->block_used = 0;
    }
    uint8_t *const at = bpe->blocks[bpe->n_blocks - 1] + bpe->block_used;
    memcpy(at, bytes.data, bytes.size);
    bpe->block_used += bytes.size;
    *kept = dp_view_of(at, bytes.size);
    return DP_OK;
}

/* Room for ids up to id; then they have no bytes. */
static dp_status make_room(dp_bpe *bpe, uint32_t id)
{
    if (id >= DP_BPE_TOKENS_MAX) {
        return DP_TOOBIG;
    }
    if (id >= bpe->capacity) {
        uint32_t capacity = bpe->capacity == 0 ? 512 : 2 * bpe->capacity;
        while (capacity <= id) {
            capacity *= 2;
        }
        dp_view *const larger = dp_realloc(bpe->tokens, capacity * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        bpe->tokens = larger;
        uint16_t *const sizes = dp_realloc(bpe->text_bytes, capacity * sizeof *sizes);
        if (sizes == NULL) {
            return DP_NOMEM;
        }
        bpe->text_bytes = sizes;
        memset(larger + bpe->capacity, 0, (capacity - bpe->capacity) * sizeof *larger);
        memset(sizes + bpe->capacity, 0, (capacity - bpe->capacity) * sizeof *sizes);
        bpe->capacity = capacity;
    }
    return DP_OK;
}

static void set_token(dp_bpe *bpe, uint32_t id, dp_view bytes)
{
    bpe->tokens[id] = bytes;
    bpe->count = id >= bpe->count ? id + 1 : bpe->count;
}

dp_status dp_bpe_put_token(dp_bpe *bpe, uint32_t id, dp_view bytes)
{
    uint32_t index;
    dp_view kept;
    DP_TRY(make_room(bpe, id));
    if (bpe->tokens[id].size != 0 || dp_words_find(&bpe->words, bytes, &index)) {
        return DP_EXISTS;
    }
    if (bpe->words.count == bpe->n_word_ids) {
        const uint32_t more = bpe->n_word_ids == 0 ? 512 : 2 * bpe->n_word_ids;
        uint32_t *const larger = dp_realloc(bpe->word_ids, more * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        bpe->word_ids = larger;
        bpe->n_word_ids = more;
    }
    DP_TRY(keep(bpe, bytes, &kept));
    DP_TRY(dp_words_add(&bpe->words, kept, &index));
    bpe->word_ids[index] = id;
    set_token(bpe, id, kept);
    return DP_OK;
}

dp_status dp_bpe_add_token(dp_bpe *bpe, dp_view bytes)
{
    return dp_bpe_put_token(bpe, bpe->count, bytes);
}

static dp_status add_pattern(dp_bpe *bpe, const dp_bpe_added *added, dp_view text)
{
    const dp_added_token token = {.text = text,
                                  .id = added->id,
                                  .special = added->special,
                                  .single_word = added->single_word,
                                  .takes_left = added->takes_left,
                                  .takes_right = added->takes_right};
    return dp_added_add(added->normalized ? &bpe->added : &bpe->added_raw, token);
}

/* The text to look for: in normalised text, the token's own text normalised. */
static dp_status pattern_of(dp_bpe *bpe, const dp_bpe_added *added, dp_view kept,
                            dp_normalizer *normalizer, dp_view *pattern)
{
    size_t first;
    dp_view normal = kept;
    *pattern = kept;
    if (!added->normalized || normalizer == NULL) {
        return DP_OK;
    }
    DP_TRY(dp_normalizer_apply(normalizer, kept, &normal, &first, NULL));
    return dp_view_equal(normal, kept) ? DP_OK : keep(bpe, normal, pattern);
}

/* Notes the text of an added token. */
static dp_status name_added(dp_bpe *bpe, dp_view text, uint32_t id)
{
    uint32_t index;
    if (bpe->added_words.count == bpe->n_added_ids) {
        const uint32_t more = bpe->n_added_ids == 0 ? 64 : 2 * bpe->n_added_ids;
        uint32_t *const larger = dp_realloc(bpe->added_ids, more * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        bpe->added_ids = larger;
        bpe->n_added_ids = more;
    }
    DP_TRY(dp_words_add(&bpe->added_words, text, &index));
    bpe->added_ids[index] = id;
    return DP_OK;
}

dp_status dp_bpe_put_added(dp_bpe *bpe, const dp_bpe_added *added, dp_normalizer *normalizer)
{
    dp_view kept;
    dp_view pattern;
    uint32_t id;
    DP_TRY(make_room(bpe, added->id));
    if (dp_bpe_special(bpe, added->text, &id)) {
        return DP_EXISTS;
    }
    const dp_view there = bpe->tokens[added->id];
    if (there.size != 0 && !dp_view_equal(there, added->text)) {
        return DP_EXISTS;
    }
    DP_TRY(keep(bpe, added->text, &kept));
    DP_TRY(pattern_of(bpe, added, kept, normalizer, &pattern));
    DP_TRY(add_pattern(bpe, added, pattern));
    DP_TRY(name_added(bpe, kept, added->id));
    set_token(bpe, added->id, kept);
    bpe->text_bytes[added->id] = added->special ? 0 : (uint16_t)kept.size;
    return DP_OK;
}

dp_status dp_bpe_add_special(dp_bpe *bpe, dp_view text, uint32_t *id)
{
    const dp_bpe_added added = {.text = text, .id = bpe->count, .special = true};
    DP_TRY(dp_bpe_put_added(bpe, &added, NULL));
    *id = added.id;
    return DP_OK;
}

bool dp_bpe_end_of_text(const dp_bpe *bpe, uint32_t *id)
{
    /* The last is DeepSeek's, with full-width bars and marks for spaces. */
    static const char *const names[] = {
        "<|endoftext|>", "<|end_of_text|>",
        "</s>",          "<|end|>",
        "<eos>",         "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>"};
    if (bpe->ends.n_after > 0) {
        *id = bpe->ends.after[0];
        return true;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (dp_bpe_special(bpe, dp_view_text(names[i]), id)) {
            return true;
        }
    }
    return false;
}

const uint32_t *dp_bpe_begin_of_text(const dp_bpe *bpe, size_t *count)
{
    *count = bpe->ends.n_before;
    return bpe->ends.before;
}

bool dp_bpe_special(const dp_bpe *bpe, dp_view text, uint32_t *id)
{
    uint32_t index;
    if (bpe->added_words.count == 0 || !dp_words_find(&bpe->added_words, text, &index)) {
        return false;
    }
    *id = bpe->added_ids[index];
    return true;
}

uint32_t dp_bpe_code_point(uint8_t byte)
{
    if ((byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte != 0xad)) {
        return byte;
    }
    if (byte <= ' ') {
        return 256U + byte;
    }
    return byte == 0xad ? 256U + 67U : 256U + 33U + (byte - 0x7fU);
}

/* The other way; false for code points that stand for no byte. */
static bool byte_of(uint32_t code, uint8_t *byte)
{
    uint32_t guess = code;
    if (code >= 256) {
        guess = code - 256;
        guess = guess <= ' ' ? guess : guess == 67 ? 0xad : guess - 33 + 0x7f;
    }
    *byte = (uint8_t)guess;
    return guess < 256 && dp_bpe_code_point(*byte) == code;
}

dp_status dp_bpe_add_bytes(dp_bpe *bpe)
{
    for (uint32_t code = '!'; code < 256 + 68; code++) {
        uint8_t one;
        if (byte_of(code, &one)) {
            DP_TRY(dp_bpe_add_token(bpe, dp_view_of(&one, 1)));
        }
    }
    dp_assert(bpe->count == 256);
    return DP_OK;
}

size_t dp_bpe_write_byte(uint8_t byte, char out[2])
{
    const uint32_t code = dp_bpe_code_point(byte);
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    out[0] = (char)(0xc0U | code >> 6);
    out[1] = (char)(0x80U | (code & 0x3fU));
    return 2;
}

dp_status dp_bpe_read_token(dp_view text, uint8_t *out, size_t *size)
{
    size_t n = 0;
    for (size_t at = 0; at < text.size; at++) {
        uint32_t code = text.data[at];
        if (code >= 0x80) {
            at++;
            if ((code & 0xe0U) != 0xc0U || at == text.size) {
                return DP_BADMSG;
            }
            code = (code & 0x1fU) << 6 | (text.data[at] & 0x3fU);
        }
        if (!byte_of(code, &out[n])) {
            return DP_BADMSG;
        }
        n++;
    }
    *size = n;
    return DP_OK;
}

dp_status dp_bpe_add_merge(dp_bpe *bpe, uint32_t left, uint32_t right)
{
    const dp_view a = dp_bpe_token(bpe, left);
    const dp_view b = dp_bpe_token(bpe, right);
    uint8_t joined[2 * DP_BPE_TOKEN_BYTES_MAX];
    uint32_t id;
    if (a.size == 0 || b.size == 0) {
        return DP_BADARG;
    }
    memcpy(joined, a.data, a.size);
    memcpy(joined + a.size, b.data, b.size);
    if (!dp_bpe_find(bpe, dp_view_of(joined, a.size + b.size), &id)) {
        return DP_NOTFOUND;
    }
    return dp_merges_add(&bpe->merges, (dp_merge){.left = left, .right = right, .result = id});
}

/* Tokens for bytes: the bytes themselves, or names such as <0x41>. */
static void find_bytes(dp_bpe *bpe)
{
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", i);
        const dp_view text = bpe->bytes ? dp_view_of(&byte, 1) : dp_view_text(name);
        if (!dp_bpe_find(bpe, text, &bpe->byte_id[i])) {
            bpe->byte_id[i] = DP_NO_TOKEN;
        }
    }
    for (unsigned i = 0; i < 128; i++) {
        const uint8_t byte = (uint8_t)i;
        if (!dp_bpe_find(bpe, dp_view_of(&byte, 1), &bpe->char_id[i])) {
            bpe->char_id[i] = DP_NO_TOKEN;
        }
    }
}

/* Whether no token but those that begin with marks has one: then no merge crosses the place before
 * a word's first mark, and text may be cut there without a change of its tokens. */
static bool marks_only_begin(const dp_bpe *bpe, dp_view mark)
{
    for (uint32_t i = 0; i < bpe->merges.count; i++) {
        const dp_view t = bpe->tokens[bpe->merges.items[i].result];
        size_t at = 0;
        while (t.size - at >= mark.size && memcmp(t.data + at, mark.data, mark.size) == 0) {
            at += mark.size;
        }
        if (at < t.size && memmem(t.data + at, t.size - at, mark.data, mark.size) != NULL) {
            return false;
        }
    }
    return true;
}

/* Text without a pretokenizer is one piece. Words are cut where that changes nothing, so that they
 * are found in the encoder's cache. */
static dp_status cut_words(dp_bpe *bpe)
{
    static const char words[] = "\\x{2581}+[^\\x{2581}]*|[^\\x{2581}]+";
    const dp_view mark = dp_view_text("\xe2\x96\x81");
    const dp_pretokenizer_step step = {.kind = DP_PATTERN_OURS, .behavior = DP_SPLIT_ISOLATED};
    uint32_t id;
    if (bpe->model != DP_BPE_MERGES || bpe->bytes || bpe->ignore_merges ||
        !dp_bpe_find(bpe, mark, &id) || !marks_only_begin(bpe, mark) ||
        bpe->pieces.count == DP_PRETOKENIZER_STEPS_MAX) {
        return DP_OK;
    }
    DP_TRY(dp_pretokenizer_steps_add(&bpe->pieces, &step, dp_view_text(words)));
    bpe->cuts_words = true;
    return DP_OK;
}

/* Special tokens mark text and are none: their names are no bytes that a model could learn. */
static void count_no_text(dp_bpe *bpe, const dp_added *added)
{
    for (uint32_t i = 0; i < added->count; i++) {
        if (added->items[i].special) {
            bpe->text_bytes[added->items[i].id] = 0;
        }
    }
}

dp_status dp_bpe_seal(dp_bpe *bpe)
{
    find_bytes(bpe);
    for (unsigned i = 0; bpe->bytes && i < 256; i++) {
        if (bpe->byte_id[i] == DP_NO_TOKEN) {
            return DP_NOTFOUND;
        }
    }
    for (uint32_t id = 0; id < bpe->count; id++) {
        const dp_view t = bpe->tokens[id];
        const size_t size = bpe->bytes ? t.size : dp_decoder_text_bytes(&bpe->decoder, t);
        bpe->text_bytes[id] = (uint16_t)(size < UINT16_MAX ? size : UINT16_MAX);
    }
    count_no_text(bpe, &bpe->added);
    count_no_text(bpe, &bpe->added_raw);
    return cut_words(bpe);
}

/* An added token of normalised text is decoded as it stands there. */
static dp_view decoded(const dp_bpe *bpe, uint32_t id)
{
    for (uint32_t i = 0; i < bpe->added.count; i++) {
        if (bpe->added.items[i].id == id) {
            return bpe->added.items[i].text;
        }
    }
    return bpe->tokens[id];
}

static dp_status decode_by_steps(const dp_bpe *bpe, const uint32_t *ids, size_t count, dp_buf *out)
{
    dp_view *const tokens = dp_alloc(count + 1, sizeof *tokens);
    size_t n = 0;
    if (tokens == NULL) {
        return DP_NOMEM;
    }
    for (size_t i = 0; i < count; i++) {
        tokens[n] = decoded(bpe, ids[i]);
        n += tokens[n].size > 0;
    }
    const dp_status status = dp_decoder_append(&bpe->decoder, tokens, n, out);
    dp_free(tokens);
    return status;
}

dp_status dp_bpe_decode(const dp_bpe *bpe, const uint32_t *ids, size_t count, dp_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= bpe->count) {
            return DP_BADARG;
        }
    }
    if (!bpe->bytes) {
        return decode_by_steps(bpe, ids, count, out);
    }
    for (size_t i = 0; i < count; i++) {
        DP_TRY(dp_buf_append(out, bpe->tokens[ids[i]]));
    }
    return DP_OK;
}
