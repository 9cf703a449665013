#include "compute/text/bpe.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/text/bpe_parts.h"
#include "compute/text/utf8.h"

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
    *out = bpe;
    return DP_OK;
}

void dp_bpe_close(dp_bpe *bpe)
{
    if (bpe == NULL) {
        return;
    }
    dp_added_close(&bpe->added);
    dp_added_close(&bpe->added_raw);
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
        memset(larger + bpe->capacity, 0, (capacity - bpe->capacity) * sizeof *larger);
        bpe->tokens = larger;
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
    const dp_added_token token = {.text = text, .id = added->id, .special = added->special};
    return dp_added_add(added->normalized ? &bpe->added : &bpe->added_raw, token);
}

dp_status dp_bpe_put_added(dp_bpe *bpe, const dp_bpe_added *added)
{
    dp_view kept;
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
    if (added->normalized && bpe->nfc) {
        /* It is looked for in text in normal form, so it is looked for in its own. */
        dp_buf normal;
        dp_view pattern = kept;
        dp_buf_init(&normal, (size_t)4 * DP_BPE_TOKEN_BYTES_MAX);
        dp_status status = dp_nfc_append(added->text, &normal, NULL);
        if (status == DP_OK) {
            status = keep(bpe, dp_buf_view(&normal), &pattern);
        }
        dp_buf_close(&normal);
        DP_TRY(status);
        DP_TRY(add_pattern(bpe, added, pattern));
    } else {
        DP_TRY(add_pattern(bpe, added, kept));
    }
    set_token(bpe, added->id, kept);
    return DP_OK;
}

dp_status dp_bpe_add_special(dp_bpe *bpe, dp_view text, uint32_t *id)
{
    const dp_bpe_added added = {.text = text, .id = bpe->count, .special = true};
    DP_TRY(dp_bpe_put_added(bpe, &added));
    *id = added.id;
    return DP_OK;
}

bool dp_bpe_end_of_text(const dp_bpe *bpe, uint32_t *id)
{
    static const char *const names[] = {"<|endoftext|>", "<|end_of_text|>", "</s>", "<|end|>"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (dp_bpe_special(bpe, dp_view_text(names[i]), id)) {
            return true;
        }
    }
    return false;
}

bool dp_bpe_special(const dp_bpe *bpe, dp_view text, uint32_t *id)
{
    const dp_added *const both[] = {&bpe->added_raw, &bpe->added};
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t j = 0; j < both[i]->count; j++) {
            if (dp_view_equal(bpe->tokens[both[i]->items[j].id], text)) {
                *id = both[i]->items[j].id;
                return true;
            }
        }
    }
    return false;
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

bool dp_bpe_seal(dp_bpe *bpe)
{
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        if (!dp_bpe_find(bpe, dp_view_of(&byte, 1), &bpe->byte_id[i])) {
            return false;
        }
    }
    return true;
}

dp_status dp_bpe_decode(const dp_bpe *bpe, const uint32_t *ids, size_t count, dp_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= bpe->count) {
            return DP_BADARG;
        }
        DP_TRY(dp_buf_append(out, bpe->tokens[ids[i]]));
    }
    return DP_OK;
}
