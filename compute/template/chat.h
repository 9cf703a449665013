/* A chat as text, by the chat template of its tokenizer, and which parts of it the assistant says.
 * Opens no files.
 *
 * A turn of the assistant begins where the template, asked for the chat before it with
 * add_generation_prompt, ends; and ends where the chat up to it ends, however the template writes
 * it. Where a template writes a chat differently once more turns follow, a turn is the text of its
 * content and an end-of-text token right behind it, behind what the template writes before the
 * turn; a turn whose content the template does not write has no span. */
#ifndef DP_COMPUTE_TEMPLATE_CHAT_H
#define DP_COMPUTE_TEMPLATE_CHAT_H

#include <jansson.h>
#include <stddef.h>

#include "base/bytes.h"

enum {
    DP_CHAT_TURNS_MAX = 256,      /* of the assistant: each costs two more runs of the template */
    DP_CHAT_CONFIG_MAX = 16 << 20 /* bytes of tokenizer_config.json */
};

/* Bytes [begin, end) of a text. */
typedef struct dp_span {
    size_t begin;
    size_t end;
} dp_span;

typedef struct dp_chat dp_chat;

/* config: tokenizer_config.json of Hugging Face, for its special tokens and, unless jinja has bytes
 * (chat_template.jinja), its chat_template: a text, or a list in which one is named "default", and
 * perhaps one "tool_use", which chats with tools use; where that one cannot be used, such chats are
 * refused. Either may be empty. Accepts any bytes. DP_NOTFOUND: there is no template; DP_BADMSG;
 * and those of dp_template_open. */
DP_MUST dp_status dp_chat_open(dp_chat **out, dp_view config, dp_view jinja, dp_why *why);
void dp_chat_close(dp_chat *chat); /* Accepts NULL. */
/* Appends the source of the template that dp_chat_open would take for chats without tools, whether
 * it can be used here or not. DP_NOTFOUND, DP_BADMSG, DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_chat_source(dp_view config, dp_view jinja, dp_buf *out, dp_why *why);
/* Appends the text of an object with messages, and perhaps tools, and gives the spans of the
 * assistant in it, in order. The template has messages, tools (none without), documents (none),
 * add_generation_prompt and the special tokens. DP_BADMSG (no messages), DP_BADARG (the template
 * refuses it, or writes no turn of an assistant), DP_UNSUPPORTED, DP_TOOBIG, DP_NOMEM; why does not
 * name the line. */
DP_MUST dp_status dp_chat_text(const dp_chat *chat, json_t *object, dp_buf *text,
                               dp_span spans[DP_CHAT_TURNS_MAX], size_t *n_spans, dp_why *why);

#endif
