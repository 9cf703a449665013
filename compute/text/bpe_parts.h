/* The tokenizer as a struct, and its construction. Private to compute/text/bpe*.c and their
 * tests. */
#ifndef DP_COMPUTE_TEXT_BPE_PARTS_H
#define DP_COMPUTE_TEXT_BPE_PARTS_H

#include "compute/machine/words.h"
#include "compute/text/added.h"
#include "compute/text/bpe.h"
#include "compute/text/decoder.h"
#include "compute/text/merges.h"
#include "compute/text/normalizer.h"
#include "compute/text/pretokenizer.h"
#include "compute/text/unigram.h"

enum {
    DP_BPE_BLOCK_BYTES = 64 * 1024,
    DP_BPE_BLOCKS_MAX = DP_BPE_TOKENS_MAX * DP_BPE_TOKEN_BYTES_MAX / DP_BPE_BLOCK_BYTES + 1024
};

#define DP_NO_TOKEN UINT32_MAX

typedef enum dp_bpe_model { DP_BPE_MERGES, DP_BPE_UNIGRAM } dp_bpe_model;

/* Parts of tokenizer.json that are kept as they were read, for writing. */
typedef enum dp_bpe_part {
    DP_PART_NORMALIZER,
    DP_PART_PRE_TOKENIZER,
    DP_PART_POST_PROCESSOR,
    DP_PART_DECODER,
    DP_PARTS
} dp_bpe_part;

enum { DP_BPE_ENDS_MAX = 4 };

/* Tokens around a document, as the post-processor adds them. */
typedef struct dp_bpe_ends {
    uint32_t before[DP_BPE_ENDS_MAX];
    uint32_t after[DP_BPE_ENDS_MAX];
    unsigned n_before;
    unsigned n_after;
} dp_bpe_ends;

struct dp_bpe {
    dp_bpe_model model;
    bool bytes; /* pieces are bytes, and each byte has a token; else characters */
    dp_normalizer_steps normalizer;
    dp_pretokenizer_steps pieces;
    bool cuts_words; /* the last step of pieces is dp_bpe_seal's, and changes no token */
    dp_decoder decoder;
    dp_bpe_ends ends;
    dp_buf parts[DP_PARTS]; /* JSON; empty: as training makes it */
    bool ignore_merges;     /* a piece that is a token is not merged */
    bool fuse_unknown;      /* unknown neighbours are one token */
    bool byte_fallback;     /* an unknown character becomes its bytes, if all have a token */
    uint32_t unknown;     /* the token for other unknown characters, or DP_NO_TOKEN: they vanish */
    dp_view *tokens;      /* by id; empty: unused */
    uint16_t *text_bytes; /* by id; as long as tokens, filled by dp_bpe_seal */
    uint32_t count;
    uint32_t capacity;
    uint8_t *blocks[DP_BPE_BLOCKS_MAX]; /* hold the bytes of tokens, which never move */
    size_t n_blocks;
    size_t block_used;
    dp_words words;     /* bytes of tokens that the model can make -> index */
    uint32_t *word_ids; /* index -> id; as long as words.capacity once was */
    uint32_t n_word_ids;
    dp_merges merges;
    dp_unigram unigram;
    dp_added added_raw; /* found before normalising */
    dp_added added;     /* found after */
    dp_words added_words;
    uint32_t *added_ids; /* index in added_words -> id */
    uint32_t n_added_ids;
    uint32_t byte_id[256]; /* token of a byte, or DP_NO_TOKEN */
    uint32_t char_id[128]; /* of a character of one byte, where pieces are characters */
};

/* An empty tokenizer: no tokens, no merges, no steps, pieces of bytes. */
DP_MUST dp_status dp_bpe_new(dp_bpe **out);
/* The 256 one-byte tokens with ids 0..255, in the order of bpe.h. */
DP_MUST dp_status dp_bpe_add_bytes(dp_bpe *bpe);
/* Token id for these bytes (copied), which merges may make. DP_EXISTS (id or bytes), DP_TOOBIG (id,
 * length), DP_BADARG (empty), DP_NOMEM. */
DP_MUST dp_status dp_bpe_put_token(dp_bpe *bpe, uint32_t id, dp_view bytes);
/* The same with the next id. */
DP_MUST dp_status dp_bpe_add_token(dp_bpe *bpe, dp_view bytes);
/* Adds a token that stands in text as it is; its id may be new, or that of a token with the same
 * text. As above, also DP_BADMSG (too many combining marks). */
typedef struct dp_bpe_added {
    dp_view text;
    uint32_t id;
    bool special;
    bool normalized;
    bool single_word;
    bool takes_left;
    bool takes_right;
} dp_bpe_added;
/* normalizer: of the tokenizer's steps; may be NULL if there are none. */
DP_MUST dp_status dp_bpe_put_added(dp_bpe *bpe, const dp_bpe_added *added,
                                   dp_normalizer *normalizer);

bool dp_bpe_find(const dp_bpe *bpe, dp_view bytes, uint32_t *id);
/* Adds the next merge; its result is the token of the joined bytes. DP_NOTFOUND: no such token;
 * DP_EXISTS: the pair merges already; DP_BADARG (ids), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_bpe_add_merge(dp_bpe *bpe, uint32_t left, uint32_t right);
/* Prepares encoding, after the last token and merge. DP_NOTFOUND: pieces are bytes, and a byte has
 * no token; DP_NOMEM. */
DP_MUST dp_status dp_bpe_seal(dp_bpe *bpe);

/* The code point by which tokenizer.json writes a byte: itself where it prints, else 256 and up. */
uint32_t dp_bpe_code_point(uint8_t byte);
/* The code point in UTF-8 (1 or 2 bytes); returns the size. */
size_t dp_bpe_write_byte(uint8_t byte, char out[2]);
/* Bytes of a token as tokenizer.json writes it; DP_BADMSG for other characters. out holds text.size
 * bytes. */
DP_MUST dp_status dp_bpe_read_token(dp_view text, uint8_t *out, size_t *size);

#endif
