#include "compute/corpus/end_tokens.h"

#include <jansson.h>
#include <string.h>

#include "compute/corpus/chat_files.h"
#include "compute/template/chat.h"

enum { TEXT_BYTES_MAX = 1 << 20 };

static const char answer[] = "The answer is 42.";

static void add(dp_end_tokens *ends, uint32_t id)
{
    for (size_t i = 0; i < ends->count; i++) {
        if (ends->ids[i] == id) {
            return;
        }
    }
    ends->ids[ends->count] = id;
    ends->count++;
}

/* eos_token is a text, or an object that has it as content. */
static void add_eos_token(dp_end_tokens *ends, dp_view config, const dp_bpe *bpe)
{
    json_t *const root =
        json_loadb((const char *)config.data, config.size, JSON_DECODE_INT_AS_REAL, NULL);
    const json_t *const given = json_object_get(root, "eos_token");
    const json_t *const text = json_is_object(given) ? json_object_get(given, "content") : given;
    uint32_t id;
    if (json_is_string(text) &&
        dp_bpe_special(bpe, dp_view_of(json_string_value(text), json_string_length(text)), &id)) {
        add(ends, id);
    }
    json_decref(root);
}

/* The text that the template writes behind an answer, as part of the turn. False: none. */
static bool behind_answer(const dp_chat *chat, dp_buf *text, dp_view *behind)
{
    dp_span spans[DP_CHAT_TURNS_MAX];
    size_t n_spans = 0;
    dp_why why;
    json_t *const object =
        json_pack("{s:[{s:s,s:s},{s:s,s:s}]}", "messages", "role", "user", "content", "What is it?",
                  "role", "assistant", "content", answer);
    const bool written =
        object != NULL && dp_chat_text(chat, object, text, spans, &n_spans, &why) == DP_OK;
    json_decref(object);
    if (!written || n_spans == 0) {
        return false;
    }
    const char *const end = (const char *)text->data + spans[n_spans - 1].end;
    const char *const begin = (const char *)text->data + spans[n_spans - 1].begin;
    const char *const at = memmem(begin, (size_t)(end - begin), answer, strlen(answer));
    if (at == NULL) {
        return false;
    }
    *behind = dp_view_of(at + strlen(answer), (size_t)(end - at) - strlen(answer));
    return true;
}

static dp_status add_turn_end(dp_end_tokens *ends, const dp_chat *chat, const dp_bpe *bpe)
{
    dp_buf text;
    dp_view behind;
    dp_tokens tokens = {0};
    dp_buf_init(&text, TEXT_BYTES_MAX);
    const dp_status status =
        behind_answer(chat, &text, &behind) ? dp_bpe_encode(bpe, behind, &tokens, NULL) : DP_OK;
    for (size_t i = 0; i < tokens.count; i++) {
        uint32_t id;
        if (dp_bpe_special(bpe, dp_bpe_token(bpe, tokens.ids[i]), &id) && id == tokens.ids[i]) {
            add(ends, id);
            break;
        }
    }
    dp_tokens_close(&tokens);
    dp_buf_close(&text);
    return status == DP_NOMEM ? status : DP_OK;
}

dp_status dp_end_tokens_find(dp_end_tokens *out, const char *folder, const dp_bpe *bpe, dp_why *why)
{
    dp_end_tokens found = {.count = 0};
    dp_buf files[DP_CHAT_FILES];
    dp_chat *chat = NULL;
    dp_why unusable;
    uint32_t id;
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        dp_buf_init(&files[i], DP_CHAT_CONFIG_MAX);
    }
    if (dp_bpe_end_of_text(bpe, &id)) {
        add(&found, id);
    }
    dp_status status = dp_chat_files_read(folder, files, why);
    if (status == DP_OK) {
        add_eos_token(&found, dp_buf_view(&files[0]), bpe);
        const dp_status opened =
            dp_chat_open(&chat, dp_buf_view(&files[0]), dp_buf_view(&files[1]), &unusable);
        status = opened == DP_OK      ? add_turn_end(&found, chat, bpe)
                 : opened == DP_NOMEM ? opened
                                      : DP_OK;
    }
    dp_chat_close(chat);
    for (size_t i = 0; i < DP_CHAT_FILES; i++) {
        dp_buf_close(&files[i]);
    }
    if (status == DP_OK) {
        *out = found;
    }
    return status;
}
