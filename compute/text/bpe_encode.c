/* Text to tokens, in the order that bpe.h tells. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "compute/text/utf8.h"

/* The tokens of pieces seen before, one piece per slot, the newest wins: text repeats its words, so
 * nine of ten pieces are found, in memory that does not grow. A slot is a cache line. */
enum { SLOTS = 1 << 16, SLOT_BYTES = 22, SLOT_IDS = 10 };

typedef struct slot {
    uint8_t size; /* of the piece; 0: empty */
    uint8_t count;
    uint8_t bytes[SLOT_BYTES];
    uint32_t ids[SLOT_IDS];
} slot;

_Static_assert(sizeof(slot) == 64, "a slot is a cache line");

struct dp_encoder {
    const dp_bpe *bpe;
    dp_pretokenizer *pieces;
    slot *slots;
    dp_merge_room room;
    uint32_t *ids; /* of one piece */
    size_t n_ids;
    dp_buf normal;
};

dp_status dp_encoder_open(dp_encoder **out, const dp_bpe *bpe, dp_why *why)
{
    dp_encoder *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    e->bpe = bpe;
    e->slots = dp_alloc(SLOTS, sizeof *e->slots);
    dp_status status =
        e->slots == NULL ? DP_NOMEM : dp_pretokenizer_open(&e->pieces, bpe->pieces, why);
    if (status != DP_OK) {
        dp_encoder_close(e);
        return status;
    }
    *out = e;
    return DP_OK;
}

void dp_encoder_close(dp_encoder *encoder)
{
    if (encoder == NULL) {
        return;
    }
    dp_buf_close(&encoder->normal);
    dp_merge_room_close(&encoder->room);
    dp_free(encoder->ids);
    dp_free(encoder->slots);
    dp_pretokenizer_close(encoder->pieces);
    dp_free(encoder);
}

/* Leaves the tokens of piece in e->ids. */
static dp_status merge_piece(dp_encoder *e, dp_view piece, size_t *count)
{
    if (e->n_ids < piece.size) {
        dp_free(e->ids);
        e->n_ids = 0;
        e->ids = dp_alloc(2 * piece.size, sizeof *e->ids);
        if (e->ids == NULL) {
            return DP_NOMEM;
        }
        e->n_ids = 2 * piece.size;
    }
    if (e->bpe->ignore_merges && dp_bpe_find(e->bpe, piece, &e->ids[0])) {
        *count = 1;
        return DP_OK;
    }
    for (size_t i = 0; i < piece.size; i++) {
        e->ids[i] = e->bpe->byte_id[piece.data[i]];
    }
    *count = piece.size;
    return dp_merges_apply(&e->bpe->merges, &e->room, e->ids, count);
}

static slot *slot_of(const dp_encoder *e, dp_view piece)
{
    uint64_t words[3] = {piece.size, 0, 0};
    memcpy((uint8_t *)words + 1, piece.data, piece.size);
    const uint64_t hash = dp_mix64(words[0] ^ dp_mix64(words[1] ^ dp_mix64(words[2])));
    return &e->slots[hash % SLOTS];
}

static dp_status encode_piece(dp_encoder *e, dp_view piece, dp_tokens *tokens)
{
    size_t count;
    if (piece.size > SLOT_BYTES) {
        DP_TRY(merge_piece(e, piece, &count));
        return dp_tokens_append(tokens, e->ids, count);
    }
    slot *const s = slot_of(e, piece);
    if (s->size == piece.size && memcmp(s->bytes, piece.data, piece.size) == 0) {
        return dp_tokens_append(tokens, s->ids, s->count);
    }
    DP_TRY(merge_piece(e, piece, &count));
    if (count <= SLOT_IDS) {
        s->size = (uint8_t)piece.size;
        s->count = (uint8_t)count;
        memcpy(s->bytes, piece.data, piece.size);
        memcpy(s->ids, e->ids, count * sizeof *e->ids);
    }
    return dp_tokens_append(tokens, e->ids, count);
}

static dp_status encode_pieces(dp_encoder *e, dp_view text, dp_tokens *tokens, dp_why *why)
{
    for (size_t at = 0; at < text.size;) {
        size_t size;
        DP_TRY(dp_pretokenizer_next(e->pieces, text, at, &size, why));
        DP_TRY(encode_piece(e, dp_view_of(text.data + at, size), tokens));
        at += size;
    }
    return DP_OK;
}

typedef dp_status encode_part(dp_encoder *e, dp_view text, dp_tokens *tokens, dp_why *why);

/* Appends added tokens as they are, and passes the text between them to part. */
static dp_status around_added(dp_encoder *e, const dp_added *added, encode_part *part, dp_view text,
                              dp_tokens *tokens, dp_why *why)
{
    size_t at = 0;
    size_t begin;
    const dp_added_token *token;
    while (dp_added_next(added, text, at, &begin, &token)) {
        if (begin > at) {
            DP_TRY(part(e, dp_view_of(text.data + at, begin - at), tokens, why));
        }
        DP_TRY(dp_tokens_append(tokens, &token->id, 1));
        at = begin + token->text.size;
    }
    return at < text.size ? part(e, dp_view_of(text.data + at, text.size - at), tokens, why)
                          : DP_OK;
}

static dp_status encode_normalised(dp_encoder *e, dp_view text, dp_tokens *tokens, dp_why *why)
{
    dp_view normal = text;
    if (e->bpe->nfc) {
        dp_buf_clear(&e->normal);
        e->normal.max = 4 * text.size + 64; /* A character takes at most three times its bytes. */
        DP_TRY(dp_nfc_append(text, &e->normal, why));
        normal = dp_buf_view(&e->normal);
    }
    return around_added(e, &e->bpe->added, encode_pieces, normal, tokens, why);
}

dp_status dp_encode(dp_encoder *encoder, dp_view text, dp_tokens *tokens, dp_why *why)
{
    const size_t before = tokens->count;
    DP_TRY(dp_utf8_check(text, why));
    const dp_status status =
        around_added(encoder, &encoder->bpe->added_raw, encode_normalised, text, tokens, why);
    if (status != DP_OK) {
        tokens->count = before;
    }
    return status;
}

dp_status dp_bpe_encode(const dp_bpe *bpe, dp_view text, dp_tokens *tokens, dp_why *why)
{
    dp_encoder *encoder;
    DP_TRY(dp_encoder_open(&encoder, bpe, why));
    const dp_status status = dp_encode(encoder, text, tokens, why);
    dp_encoder_close(encoder);
    return status;
}
