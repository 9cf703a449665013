/* Decoding: tokens as tokenizer.json writes them to text, in steps as it lists them. */
#ifndef DP_COMPUTE_TEXT_DECODER_H
#define DP_COMPUTE_TEXT_DECODER_H

#include <stdbool.h>

#include "base/bytes.h"

enum {
    DP_DECODER_STEPS_MAX = 16,
    DP_DECODER_TEXT_MAX = 64,
    DP_DECODER_GROWTH_MAX = 16 /* times the bytes of the tokens, by all steps */
};

/* The order is that of the table in decoder.c. */
typedef enum dp_decoder_kind {
    DP_DECODER_BYTE_LEVEL, /* nothing to do: the bytes of tokens are kept as they are */
    DP_DECODER_REPLACE,
    DP_DECODER_BYTE_FALLBACK, /* <0x41> is a byte; bytes that are not UTF-8 are U+FFFD each */
    DP_DECODER_FUSE,          /* all tokens become one */
    DP_DECODER_STRIP,         /* up to so many of a character, from both ends of each token */
    DP_DECODER_METASPACE,     /* marks are spaces; those of the first token are nothing */
    DP_DECODER_KINDS
} dp_decoder_kind;

typedef struct dp_decoder_step {
    dp_decoder_kind kind;
    uint8_t from[DP_DECODER_TEXT_MAX]; /* that is replaced or stripped, or the mark */
    uint8_t from_bytes;
    uint8_t to[DP_DECODER_TEXT_MAX];
    uint8_t to_bytes;
    uint32_t start; /* at most so many are stripped */
    uint32_t stop;
    bool drops; /* marks of the first token */
} dp_decoder_step;

/* A zeroed one is empty and open: tokens with a space between. */
typedef struct dp_decoder {
    dp_decoder_step items[DP_DECODER_STEPS_MAX];
    unsigned count;
} dp_decoder;

/* The kind whose type tokenizer.json writes like this; false: none. */
bool dp_decoder_kind_of(const char *type, dp_decoder_kind *kind);
/* Bytes of text that a token stands for in the middle of others. */
size_t dp_decoder_text_bytes(const dp_decoder *decoder, dp_view token);
/* The byte that a token such as <0x41> names; false: it names none. */
bool dp_decoder_byte(dp_view token, uint8_t *byte);
/* Appends the text of the tokens. DP_TOOBIG (growth, out), DP_NOMEM: out is unchanged. */
DP_MUST dp_status dp_decoder_append(const dp_decoder *decoder, const dp_view *tokens, size_t count,
                                    dp_buf *out);

#endif
