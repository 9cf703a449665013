#include "compute/bpe.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "compute/bpe_parts.h"
#include "compute/words.h"

enum {
    MERGES_MAX = DP_BPE_TOKENS_MAX,
    PAIR_SLOTS = 4 * MERGES_MAX, /* a power of two */
    BLOCK_BYTES = 64 * 1024,
    BLOCKS_MAX = DP_BPE_TOKENS_MAX * DP_BPE_TOKEN_BYTES_MAX / BLOCK_BYTES + 1024,
    NO_MERGE = MERGES_MAX
};

typedef struct merge {
    uint32_t left;
    uint32_t right;
    uint32_t result;
} merge;

struct dp_bpe {
    dp_words tokens;             /* id -> bytes and back */
    uint8_t *blocks[BLOCKS_MAX]; /* where the bytes of the tokens stand; they never move */
    size_t n_blocks;
    size_t block_used;
    merge *merges;
    size_t n_merges;
    uint32_t *pairs; /* open addressing: merge index + 1, or 0 */
    uint32_t byte_id[256];
};

void dp_tokens_close(dp_tokens *tokens)
{
    dp_free(tokens->ids);
    *tokens = (dp_tokens){0};
}

static dp_status append_ids(dp_tokens *tokens, const uint32_t *ids, size_t count)
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
    memcpy(tokens->ids + tokens->count, ids, count * sizeof *ids);
    tokens->count += count;
    return DP_OK;
}

dp_status dp_bpe_new(dp_bpe **out)
{
    dp_bpe *const bpe = dp_alloc(1, sizeof *bpe);
    if (bpe == NULL) {
        return DP_NOMEM;
    }
    bpe->merges = dp_alloc(MERGES_MAX, sizeof *bpe->merges);
    bpe->pairs = dp_alloc(PAIR_SLOTS, sizeof *bpe->pairs);
    bpe->block_used = BLOCK_BYTES;
    if (bpe->merges == NULL || bpe->pairs == NULL) {
        dp_bpe_close(bpe);
        return DP_NOMEM;
    }
    *out = bpe;
    return DP_OK;
}

void dp_bpe_close(dp_bpe *bpe)
{
    if (bpe == NULL) {
        return;
    }
    dp_words_close(&bpe->tokens);
    for (size_t i = 0; i < bpe->n_blocks; i++) {
        dp_free(bpe->blocks[i]);
    }
    dp_free(bpe->merges);
    dp_free(bpe->pairs);
    dp_free(bpe);
}

size_t dp_bpe_count(const dp_bpe *bpe)
{
    return bpe->tokens.count;
}

dp_view dp_bpe_token(const dp_bpe *bpe, uint32_t id)
{
    return id < bpe->tokens.count ? bpe->tokens.words[id] : dp_view_of(NULL, 0);
}

size_t dp_bpe_merges(const dp_bpe *bpe)
{
    return bpe->n_merges;
}

void dp_bpe_merge(const dp_bpe *bpe, size_t index, uint32_t *left, uint32_t *right)
{
    dp_assert(index < bpe->n_merges);
    *left = bpe->merges[index].left;
    *right = bpe->merges[index].right;
}

bool dp_bpe_find(const dp_bpe *bpe, dp_view bytes, uint32_t *id)
{
    return dp_words_find(&bpe->tokens, bytes, id);
}

dp_status dp_bpe_add_token(dp_bpe *bpe, dp_view bytes)
{
    uint32_t id;
    if (bytes.size == 0) {
        return DP_BADARG;
    }
    if (bytes.size > DP_BPE_TOKEN_BYTES_MAX || bpe->tokens.count == DP_BPE_TOKENS_MAX) {
        return DP_TOOBIG;
    }
    if (dp_bpe_find(bpe, bytes, &id)) {
        return DP_EXISTS;
    }
    if (BLOCK_BYTES - bpe->block_used < bytes.size) {
        dp_assert(bpe->n_blocks < BLOCKS_MAX);
        uint8_t *const block = dp_alloc(1, BLOCK_BYTES);
        if (block == NULL) {
            return DP_NOMEM;
        }
        bpe->blocks[bpe->n_blocks] = block;
        bpe->n_blocks++;
        bpe->block_used = 0;
    }
    uint8_t *const at = bpe->blocks[bpe->n_blocks - 1] + bpe->block_used;
    memcpy(at, bytes.data, bytes.size);
    DP_TRY(dp_words_add(&bpe->tokens, dp_view_of(at, bytes.size), &id));
    bpe->block_used += bytes.size;
    return DP_OK;
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

dp_status dp_bpe_add_bytes(dp_bpe *bpe)
{
    for (uint32_t code = '!'; code < 256 + 68; code++) {
        for (unsigned byte = 0; byte < 256; byte++) {
            const uint8_t one = (uint8_t)byte;
            if (dp_bpe_code_point(one) == code) {
                DP_TRY(dp_bpe_add_token(bpe, dp_view_of(&one, 1)));
            }
        }
    }
    dp_assert(bpe->tokens.count == 256);
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
        unsigned byte = 0;
        while (byte < 256 && dp_bpe_code_point((uint8_t)byte) != code) {
            byte++;
        }
        if (byte == 256) {
            return DP_BADMSG;
        }
        out[n] = (uint8_t)byte;
        n++;
    }
    *size = n;
    return DP_OK;
}

static uint32_t pair_slot(const dp_bpe *bpe, uint32_t left, uint32_t right)
{
    uint32_t slot = (uint32_t)dp_mix64((uint64_t)left << 16 | right) & (PAIR_SLOTS - 1);
    while (bpe->pairs[slot] != 0) {
        const merge *const m = &bpe->merges[bpe->pairs[slot] - 1];
        if (m->left == left && m->right == right) {
            break;
        }
        slot = (slot + 1) & (PAIR_SLOTS - 1);
    }
    return slot;
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
    if (bpe->n_merges == MERGES_MAX) {
        return DP_TOOBIG;
    }
    memcpy(joined, a.data, a.size);
    memcpy(joined + a.size, b.data, b.size);
    if (!dp_bpe_find(bpe, dp_view_of(joined, a.size + b.size), &id)) {
        return DP_NOTFOUND;
    }
    const uint32_t slot = pair_slot(bpe, left, right);
    if (bpe->pairs[slot] != 0) {
        return DP_EXISTS;
    }
    bpe->merges[bpe->n_merges] = (merge){.left = left, .right = right, .result = id};
    bpe->n_merges++;
    bpe->pairs[slot] = (uint32_t)bpe->n_merges;
    return DP_OK;
}

bool dp_bpe_seal(dp_bpe *bpe)
{
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        uint32_t id;
        if (!dp_bpe_find(bpe, dp_view_of(&byte, 1), &id)) {
            return false;
        }
        bpe->byte_id[i] = id;
    }
    return true;
}

size_t dp_bpe_merge_all(uint32_t *ids, size_t count, uint32_t left, uint32_t right, uint32_t result)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (i + 1 < count && ids[i] == left && ids[i + 1] == right) {
            ids[kept] = result;
            i++;
        } else {
            ids[kept] = ids[i];
        }
        kept++;
    }
    return kept;
}

/* The earliest merge that applies to two neighbours, or NO_MERGE. */
static size_t best_merge(const dp_bpe *bpe, const uint32_t *ids, size_t count)
{
    size_t best = NO_MERGE;
    for (size_t i = 0; i + 1 < count; i++) {
        const uint32_t at = bpe->pairs[pair_slot(bpe, ids[i], ids[i + 1])];
        if (at != 0 && at - 1 < best) {
            best = at - 1;
        }
    }
    return best;
}

static size_t encode_piece(const dp_bpe *bpe, dp_view piece, uint32_t ids[DP_PIECE_BYTES_MAX])
{
    size_t count = piece.size;
    for (size_t i = 0; i < count; i++) {
        ids[i] = bpe->byte_id[piece.data[i]];
    }
    for (;;) {
        const size_t best = best_merge(bpe, ids, count);
        if (best == NO_MERGE) {
            return count;
        }
        const merge *const m = &bpe->merges[best];
        count = dp_bpe_merge_all(ids, count, m->left, m->right, m->result);
    }
}

/* Tokens of each different piece, found once: begin[i]..begin[i + 1] in ids. */
typedef struct cache {
    dp_words words;
    dp_tokens ids;
    size_t *begin;
    size_t capacity;
} cache;

static dp_status remember(cache *known, const dp_bpe *bpe, dp_view piece)
{
    const size_t needed = (size_t)known->words.count + 1;
    if (needed > known->capacity) {
        size_t *const larger = dp_realloc(known->begin, 2 * needed * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        known->begin = larger;
        known->capacity = 2 * needed;
    }
    uint32_t ids[DP_PIECE_BYTES_MAX];
    const size_t count = encode_piece(bpe, piece, ids);
    known->begin[needed - 2] = known->ids.count;
    DP_TRY(append_ids(&known->ids, ids, count));
    known->begin[needed - 1] = known->ids.count;
    return DP_OK;
}

static dp_status encode_pieces(const dp_bpe *bpe, dp_split *split, cache *known, dp_tokens *tokens)
{
    dp_view piece;
    while (dp_split_next(split, &piece)) {
        uint32_t index;
        DP_TRY(dp_words_add(&known->words, piece, &index));
        if (known->words.times[index] == 1) {
            DP_TRY(remember(known, bpe, piece));
        }
        const size_t begin = known->begin[index];
        DP_TRY(append_ids(tokens, known->ids.ids + begin, known->begin[index + 1] - begin));
    }
    return DP_OK;
}

dp_status dp_bpe_encode(const dp_bpe *bpe, dp_view text, dp_tokens *tokens, dp_why *why)
{
    dp_split *split;
    DP_TRY(dp_split_open(&split, text, why));
    cache known = {0};
    const size_t before = tokens->count;
    const dp_status status = encode_pieces(bpe, split, &known, tokens);
    if (status != DP_OK) {
        tokens->count = before;
    }
    dp_words_close(&known.words);
    dp_tokens_close(&known.ids);
    dp_free(known.begin);
    dp_split_close(split);
    return status;
}

dp_status dp_bpe_decode(const dp_bpe *bpe, const uint32_t *ids, size_t count, dp_buf *out)
{
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= bpe->tokens.count) {
            return DP_BADARG;
        }
        DP_TRY(dp_buf_append(out, bpe->tokens.words[ids[i]]));
    }
    return DP_OK;
}
