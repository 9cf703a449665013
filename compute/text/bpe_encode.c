/* Text to tokens, in the order that bpe.h tells. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "compute/unicode/pattern.h"
#include "compute/unicode/utf8.h"

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
    dp_normalizer *normalizer;
    dp_pretokenizer *pieces;
    dp_matcher *word; /* a word character; NULL: no token asks for it */
    slot *slots;
    dp_merge_room room;
    dp_unigram_room ways;
    uint32_t *ids; /* of one piece */
    size_t n_ids;
};

static bool any_single_word(const dp_added *added)
{
    for (uint32_t i = 0; i < added->count; i++) {
        if (added->items[i].single_word) {
            return true;
        }
    }
    return false;
}

static dp_status open_parts(dp_encoder *e, dp_why *why)
{
    DP_TRY(dp_normalizer_open(&e->normalizer, &e->bpe->normalizer, why));
    DP_TRY(dp_pretokenizer_open(&e->pieces, &e->bpe->pieces, why));
    if (!any_single_word(&e->bpe->added_raw) && !any_single_word(&e->bpe->added)) {
        return DP_OK;
    }
    return dp_matcher_open(&e->word, dp_view_text("[" DP_PATTERN_WORD "\\x{200c}\\x{200d}]"),
                           DP_PATTERN_OURS, why);
}

dp_status dp_encoder_open(dp_encoder **out, const dp_bpe *bpe, dp_why *why)
{
    dp_encoder *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    e->bpe = bpe;
    e->slots = dp_alloc(SLOTS, sizeof *e->slots);
    const dp_status status = e->slots == NULL ? DP_NOMEM : open_parts(e, why);
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
    dp_matcher_close(encoder->word);
    dp_normalizer_close(encoder->normalizer);
    dp_unigram_room_close(&encoder->ways);
    dp_merge_room_close(&encoder->room);
    dp_free(encoder->ids);
    dp_free(encoder->slots);
    dp_pretokenizer_close(encoder->pieces);
    dp_free(encoder);
}

/* Appends the tokens of the bytes of a character to ids; false: some byte has none. */
static bool put_bytes(const dp_bpe *bpe, dp_view bytes, uint32_t *ids, size_t *count)
{
    if (!bpe->byte_fallback) {
        return false;
    }
    for (size_t i = 0; i < bytes.size; i++) {
        if (bpe->byte_id[bytes.data[i]] == DP_NO_TOKEN) {
            return false;
        }
    }
    for (size_t i = 0; i < bytes.size; i++) {
        ids[*count + i] = bpe->byte_id[bytes.data[i]];
    }
    *count += bytes.size;
    return true;
}

static bool find_char(const dp_bpe *bpe, dp_view one, uint32_t *id)
{
    if (one.size == 1) {
        *id = bpe->char_id[one.data[0]];
        return *id != DP_NO_TOKEN;
    }
    return dp_bpe_find(bpe, one, id);
}

/* Tokens of the characters. A token for unknown characters is put when a known one or the end
 * follows, so after the bytes of characters between, as Hugging Face's tokenizers do it. */
static size_t put_chars(const dp_bpe *bpe, dp_view piece, uint32_t *ids)
{
    size_t count = 0;
    bool pending = false;
    size_t size = 0;
    for (size_t at = 0; at < piece.size; at += size) {
        uint32_t id;
        (void)dp_utf8_char(piece, at, &size);
        const dp_view one = dp_view_of(piece.data + at, size);
        const bool known = find_char(bpe, one, &id);
        if (!known && (put_bytes(bpe, one, ids, &count) || bpe->unknown == DP_NO_TOKEN)) {
            continue;
        }
        if (pending && (known || !bpe->fuse_unknown)) {
            ids[count] = bpe->unknown;
            count++;
        }
        pending = !known;
        if (known) {
            ids[count] = id;
            count++;
        }
    }
    if (pending) {
        ids[count] = bpe->unknown;
        count++;
    }
    return count;
}

static dp_status merge_piece(dp_encoder *e, dp_view piece, size_t *count)
{
    if (e->bpe->ignore_merges && dp_bpe_find(e->bpe, piece, &e->ids[0])) {
        *count = 1;
        return DP_OK;
    }
    if (!e->bpe->bytes) {
        *count = put_chars(e->bpe, piece, e->ids);
        return dp_merges_apply(&e->bpe->merges, &e->room, e->ids, count);
    }
    for (size_t i = 0; i < piece.size; i++) {
        e->ids[i] = e->bpe->byte_id[piece.data[i]];
    }
    *count = piece.size;
    return dp_merges_apply(&e->bpe->merges, &e->room, e->ids, count);
}

static dp_status unigram_piece(dp_encoder *e, dp_view piece, size_t *count)
{
    const dp_bpe *const bpe = e->bpe;
    size_t n = 0;
    DP_TRY(dp_unigram_apply(&bpe->unigram, &e->ways, piece));
    for (size_t i = 0; i < e->ways.n_parts; i++) {
        const dp_unigram_part *const p = &e->ways.parts[i];
        const dp_view text = dp_view_of(piece.data + p->begin, p->end - p->begin);
        uint32_t id = p->id;
        if (id == bpe->unknown && !dp_bpe_find(bpe, text, &id) &&
            put_bytes(bpe, text, e->ids, &n)) {
            continue;
        }
        e->ids[n] = id;
        n++;
    }
    *count = n;
    return DP_OK;
}

/* Leaves the tokens of piece in e->ids: at most one for each byte. */
static dp_status model_piece(dp_encoder *e, dp_view piece, size_t *count)
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
    return e->bpe->model == DP_BPE_UNIGRAM ? unigram_piece(e, piece, count)
                                           : merge_piece(e, piece, count);
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
        DP_TRY(model_piece(e, piece, &count));
        return dp_tokens_append(tokens, e->ids, count);
    }
    slot *const s = slot_of(e, piece);
    if (s->size == piece.size && memcmp(s->bytes, piece.data, piece.size) == 0) {
        return dp_tokens_append(tokens, s->ids, s->count);
    }
    DP_TRY(model_piece(e, piece, &count));
    if (count <= SLOT_IDS) {
        s->size = (uint8_t)piece.size;
        s->count = (uint8_t)count;
        memcpy(s->bytes, piece.data, piece.size);
        memcpy(s->ids, e->ids, count * sizeof *e->ids);
    }
    return dp_tokens_append(tokens, e->ids, count);
}

/* A stretch of text; first: its bytes that come from the first character of the document. */
typedef struct stretch {
    dp_view text;
    size_t first;
} stretch;

static dp_status encode_pieces(dp_encoder *e, stretch s, dp_tokens *tokens, dp_why *why)
{
    dp_view piece;
    DP_TRY(dp_pretokenizer_begin(e->pieces, s.text, s.first));
    for (;;) {
        const dp_status status = dp_pretokenizer_next(e->pieces, &piece, why);
        if (status != DP_OK) {
            return status == DP_NOTFOUND ? DP_OK : status;
        }
        DP_TRY(encode_piece(e, piece, tokens));
    }
}

static dp_status is_word_at(dp_encoder *e, dp_view text, size_t at, bool *is_word)
{
    size_t size;
    size_t begin;
    size_t end;
    (void)dp_utf8_char(text, at, &size);
    const dp_status status =
        dp_matcher_find(e->word, dp_view_of(text.data + at, size), 0, &begin, &end, NULL);
    *is_word = status == DP_OK;
    return status == DP_NOTFOUND ? DP_OK : status;
}

/* Whether no word character stands beside begin..end-1. */
static dp_status stands_alone(dp_encoder *e, dp_view text, size_t begin, size_t end, bool *alone)
{
    bool left = false;
    bool right = false;
    if (begin > 0) {
        DP_TRY(is_word_at(e, text, dp_utf8_before(text, begin), &left));
    }
    if (end < text.size) {
        DP_TRY(is_word_at(e, text, end, &right));
    }
    *alone = !left && !right;
    return DP_OK;
}

static size_t space_before(dp_view text, size_t at)
{
    size_t size;
    while (at > 0) {
        const size_t before = dp_utf8_before(text, at);
        if (!dp_utf8_is_space(dp_utf8_char(text, before, &size))) {
            break;
        }
        at = before;
    }
    return at;
}

static size_t space_after(dp_view text, size_t at)
{
    size_t size;
    while (at < text.size && dp_utf8_is_space(dp_utf8_char(text, at, &size))) {
        at += size;
    }
    return at;
}

typedef dp_status encode_part(dp_encoder *e, stretch s, dp_tokens *tokens, dp_why *why);

static dp_status encode_between(dp_encoder *e, encode_part *part, stretch s, size_t begin,
                                size_t end, dp_tokens *tokens, dp_why *why)
{
    const stretch inner = {.text = dp_view_of(s.text.data + begin, end - begin),
                           .first = s.first > begin ? s.first - begin : 0};
    return begin < end ? part(e, inner, tokens, why) : DP_OK;
}

/* Appends added tokens as they are, and passes the text between them to part. A token that takes
 * the white space after it does not keep others from beginning there. */
static dp_status around_added(dp_encoder *e, const dp_added *added, encode_part *part, stretch s,
                              dp_tokens *tokens, dp_why *why)
{
    size_t looked = 0; /* no token begins before */
    size_t done = 0;   /* all before is encoded */
    size_t begin;
    const dp_added_token *token;
    while (dp_added_next(added, s.text, looked, &begin, &token)) {
        size_t end = begin + token->text.size;
        bool alone = true;
        looked = end;
        if (token->single_word) {
            DP_TRY(stands_alone(e, s.text, begin, end, &alone));
        }
        if (!alone) {
            continue;
        }
        if (token->takes_left) {
            const size_t left = space_before(s.text, begin);
            begin = left > done ? left : done;
        }
        end = token->takes_right ? space_after(s.text, end) : end;
        DP_TRY(encode_between(e, part, s, done, begin, tokens, why));
        DP_TRY(dp_tokens_append(tokens, &token->id, 1));
        done = end;
    }
    return encode_between(e, part, s, done, s.text.size, tokens, why);
}

static dp_status encode_normalised(dp_encoder *e, stretch s, dp_tokens *tokens, dp_why *why)
{
    dp_view normal;
    size_t first;
    DP_TRY(dp_normalizer_apply(e->normalizer, s.text, &normal, &first, why));
    const stretch inner = {.text = normal, .first = s.first > 0 ? first : 0};
    return around_added(e, &e->bpe->added, encode_pieces, inner, tokens, why);
}

dp_status dp_encode(dp_encoder *encoder, dp_view text, dp_tokens *tokens, dp_why *why)
{
    const size_t before = tokens->count;
    const stretch whole = {.text = text, .first = 1};
    DP_TRY(dp_utf8_check(text, why));
    const dp_status status =
        around_added(encoder, &encoder->bpe->added_raw, encode_normalised, whole, tokens, why);
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
