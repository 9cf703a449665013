#include "compute/corpus/document.h"

#include <jansson.h>
#include <string.h>

#include "base/assert.h"
#include "compute/data/shard.h"

enum { TEXT_BYTES_MAX = 2 * DP_JSONL_LINE_MAX };

/* The names of a prompt and its answer. */
static const char *const pairs[][2] = {{"prompt", "completion"}, {"input", "output"}};
enum { PAIRS = sizeof pairs / sizeof pairs[0] };

void dp_document_init(dp_document *d, const dp_chat *chat, const dp_why *chat_why)
{
    *d = (dp_document){.chat = chat, .chat_why = chat_why};
    dp_buf_init(&d->text, TEXT_BYTES_MAX);
    dp_buf_init(&d->marks, SIZE_MAX / 2);
}

void dp_document_close(dp_document *d)
{
    dp_jsonl_close(&d->line);
    dp_buf_close(&d->text);
    dp_buf_close(&d->marks);
    dp_tokens_close(&d->tokens);
    dp_tokens_close(&d->room);
    *d = (dp_document){.n_spans = 0};
}

static bool text_of(const json_t *object, const char *name, dp_view *text)
{
    const json_t *const value = json_object_get(object, name);
    if (!json_is_string(value)) {
        return false;
    }
    *text = dp_view_of(json_string_value(value), json_string_length(value));
    return true;
}

/* A prompt and its answer. */
static bool pair_of(const json_t *object, dp_view pair[2])
{
    for (size_t i = 0; i < PAIRS; i++) {
        if (text_of(object, pairs[i][0], &pair[0]) && text_of(object, pairs[i][1], &pair[1])) {
            return true;
        }
    }
    return false;
}

/* A published form, of Alpaca, whose "input" is only the second half of a prompt. */
static dp_status check_instruction(const json_t *object, dp_why *why)
{
    dp_view text;
    return text_of(object, "instruction", &text) && text_of(object, pairs[1][0], &text) &&
                   !text_of(object, pairs[0][0], &text)
               ? dp_why_set(why, DP_BADMSG,
                            "\"instruction\" beside \"input\" would not be learned: write both "
                            "into \"prompt\" and the answer into \"completion\" (python3 -m "
                            "dpnode.dataset --rename does it where no input says anything)")
               : DP_OK;
}

static bool is_chat(const json_t *object)
{
    return json_is_array(json_object_get(object, "messages"));
}

bool dp_document_is(dp_document *d, dp_view line, const char *field)
{
    dp_view pair[2];
    dp_view text;
    const bool parses = dp_jsonl_parse(&d->line, line, NULL) == DP_OK && d->line.root != NULL;
    const bool is = parses && !text_of(d->line.root, field, &text) &&
                    (is_chat(d->line.root) || pair_of(d->line.root, pair));
    dp_jsonl_close(&d->line);
    return is;
}

static dp_status read_chat(dp_document *d, dp_why *why)
{
    if (d->line.rounded) {
        return dp_why_set(why, DP_BADMSG, "an integer of a chat fits no 64 bits");
    }
    if (d->chat != NULL) {
        return dp_chat_text(d->chat, d->line.root, &d->text, d->spans, &d->n_spans, why);
    }
    if (d->chat_why != NULL && d->chat_why->text[0] != '\0') {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "%.140s; put one that can be used as chat_template.jinja beside the "
                          "tokenizer.json",
                          d->chat_why->text);
    }
    return dp_why_set(why, DP_NOTFOUND,
                      "a chat needs the template of its tokenizer: give the tokenizer.json of a "
                      "model (--tokenizer, or --from of a run), with its tokenizer_config.json or "
                      "chat_template.jinja beside it");
}

dp_status dp_document_read(dp_document *d, dp_view line, const char *field, dp_why *why)
{
    dp_view pair[2];
    dp_buf_clear(&d->text);
    d->n_spans = 0;
    d->is_chat = false;
    DP_TRY(dp_jsonl_parse(&d->line, line, why));
    if (d->line.root == NULL) {
        return DP_OK;
    }
    if (is_chat(d->line.root)) {
        d->is_chat = true;
        return read_chat(d, why);
    }
    DP_TRY(check_instruction(d->line.root, why));
    if (!pair_of(d->line.root, pair)) {
        pair[0] = dp_view_of(NULL, 0);
        if (!text_of(d->line.root, field, &pair[1])) {
            return dp_why_set(why, DP_BADMSG,
                              "no object with texts in the fields \"prompt\" and \"completion\", "
                              "or in \"%s\", or with a list of \"messages\"",
                              field);
        }
    }
    DP_TRY(dp_buf_append(&d->text, pair[0]));
    DP_TRY(dp_buf_append(&d->text, pair[1]));
    d->spans[0] = (dp_span){.begin = pair[0].size, .end = d->text.size};
    d->n_spans = 1;
    return DP_OK;
}

/* ---- Tokens. */

/* Tokens of the text that are those of its first bytes alone. */
static dp_status tokens_before(dp_document *d, dp_encoder *encoder, size_t bytes, size_t from,
                               size_t *count, dp_why *why)
{
    size_t n = 0;
    d->room.count = 0;
    if (bytes > 0) {
        DP_TRY(dp_encode(encoder, dp_view_of(d->text.data, bytes), &d->room, why));
    }
    while (n < d->room.count && from + n < d->tokens.count &&
           d->room.ids[n] == d->tokens.ids[from + n]) {
        n++;
    }
    *count = n;
    return DP_OK;
}

/* Tokens that the text has from token `from` on are marked from its spans. */
static dp_status mark_spans(dp_document *d, dp_encoder *encoder, size_t from, dp_why *why)
{
    const size_t all = d->tokens.count - from;
    for (size_t i = 0; i < d->n_spans; i++) {
        const dp_span span = d->spans[i];
        size_t first = 0;
        size_t last = all;
        dp_assert(span.begin <= span.end && span.end <= d->text.size);
        DP_TRY(tokens_before(d, encoder, span.begin, from, &first, why));
        if (span.end < d->text.size) {
            DP_TRY(tokens_before(d, encoder, span.end, from, &last, why));
        }
        for (size_t t = first; t < last && span.end > span.begin; t++) {
            d->marks.data[from + t] |= DP_MARK_LOSS;
        }
    }
    return DP_OK;
}

dp_status dp_document_encode(dp_document *d, dp_encoder *encoder, const dp_document_ends *ends,
                             dp_why *why)
{
    uint8_t *room;
    const size_t n_before = d->is_chat ? 0 : ends->n_before;
    d->tokens.count = 0;
    dp_buf_clear(&d->marks);
    DP_TRY(dp_tokens_append(&d->tokens, ends->before, n_before));
    DP_TRY(dp_encode(encoder, dp_buf_view(&d->text), &d->tokens, why));
    const size_t text_end = d->tokens.count;
    DP_TRY(dp_buf_reserve(&d->marks, text_end + 1, &room));
    memset(room, 0, text_end + 1);
    dp_buf_commit(&d->marks, text_end);
    DP_TRY(mark_spans(d, encoder, n_before, why));
    if (ends->has_after && !d->is_chat) {
        DP_TRY(dp_tokens_append(&d->tokens, &ends->after, 1));
        const uint8_t mark = DP_MARK_LOSS;
        DP_TRY(dp_buf_append(&d->marks, dp_view_of(&mark, 1)));
    }
    if (d->tokens.count > 0) {
        d->marks.data[0] = DP_MARK_BEGINS;
    }
    return DP_OK;
}

size_t dp_document_losses(const uint8_t *marks, size_t count)
{
    size_t losses = 0;
    for (size_t i = 0; i < count; i++) {
        losses += (marks[i] & DP_MARK_LOSS) != 0;
    }
    return losses;
}
