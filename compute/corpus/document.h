/* A line of JSON as one document: its text, and the parts of it that a model learns to write. Makes
 * tokens with marks (compute/data/shard.h) of it. Opens no files.
 *
 *   {"text": T}                       all of T has a loss
 *   {"prompt": P, "completion": C}    P and C behind each other; C and the token after it have one
 *   {"input": P, "output": C}         the same
 *   {"messages": [{"role": R, "content": T} ...]}   a chat, by the template of the tokenizer
 *                                     (chat.h); what the assistant says has a loss
 *
 * Other fields may be anything; but a chat, whose template may write its numbers, has no integer
 * beyond 64 bits. */
#ifndef DP_COMPUTE_CORPUS_DOCUMENT_H
#define DP_COMPUTE_CORPUS_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "compute/corpus/jsonl.h"
#include "compute/template/chat.h"
#include "compute/text/bpe.h"

/* The tokens around each document. */
typedef struct dp_document_ends {
    const uint32_t *before; /* borrowed */
    size_t n_before;
    uint32_t after;
    bool has_after;
} dp_document_ends;

typedef struct dp_document {
    /* borrowed; chat NULL: lines with messages are refused, with the sentence, if it is not "" */
    const dp_chat *chat;
    const dp_why *chat_why;
    dp_jsonl line;
    dp_buf text;
    dp_span spans[DP_CHAT_TURNS_MAX]; /* with a loss, in order */
    size_t n_spans;
    bool is_chat; /* no tokens stand around it but those that the template writes */
    dp_tokens tokens;
    dp_buf marks;   /* a byte for each token: dp_mark bits */
    dp_tokens room; /* of dp_document_encode */
} dp_document;

/* chat and its sentence are borrowed until close; either may be NULL. */
void dp_document_init(dp_document *document, const dp_chat *chat, const dp_why *chat_why);
void dp_document_close(dp_document *document);

/* True if an object of JSON lines is a document of the kinds above, and has no text in this field:
 * the first line of a file tells how its lines are read. Accepts any bytes. */
bool dp_document_is(dp_document *document, dp_view line, const char *field);
/* Reads a line: text and spans. An empty text for a blank line. field: the one of {"text"}. Accepts
 * any bytes. DP_BADMSG (none of the kinds above), DP_NOTFOUND (a chat without a template),
 * DP_UNSUPPORTED (with one that cannot be used), those of dp_chat_text, DP_TOOBIG, DP_NOMEM; why
 * does not name the line. */
DP_MUST dp_status dp_document_read(dp_document *document, dp_view line, const char *field,
                                   dp_why *why);
/* Makes tokens and marks of the text that was read. A span begins with the first token that differs
 * from those of the text before it alone, so that a token of both prompt and answer has a loss. The
 * first token of a document has none. The statuses of dp_encode. */
DP_MUST dp_status dp_document_encode(dp_document *document, dp_encoder *encoder,
                                     const dp_document_ends *ends, dp_why *why);
/* Tokens with a loss among the first count, which is at most tokens.count. */
size_t dp_document_losses(const uint8_t *marks, size_t count);

#endif
