#include "compute/template/chat.h"

#include <string.h>

#include "base/alloc.h"
#include "compute/template/template.h"
#include "compute/template/template_value.h"

struct dp_chat {
    dp_template *template;
    dp_template *with_tools; /* of the lines that have tools; NULL: the other one, or */
    dp_status tools_status;  /* not DP_OK: it cannot be used, */
    dp_why tools_why;        /* and why */
    json_t *tokens;          /* names of special tokens and their texts */
};

/* ---- The template and its words. */

static const char *const token_names[] = {"bos_token", "eos_token", "unk_token", "pad_token"};

/* A special token: a text, or an object with its text as content. */
static const char *token_text(json_t *config, const char *name)
{
    json_t *const value = json_object_get(config, name);
    return json_string_value(json_is_object(value) ? json_object_get(value, "content") : value);
}

/* A template of a list; NULL: there is none of this name. */
static json_t *find_template(json_t *list, const char *wanted)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *const one = json_array_get(list, i);
        const char *const name = json_string_value(json_object_get(one, "name"));
        json_t *const text = json_object_get(one, "template");
        if (name != NULL && strcmp(name, wanted) == 0 && json_is_string(text)) {
            return text;
        }
    }
    return NULL;
}

static dp_status open_one(dp_template **out, dp_view source, const char *name, dp_why *why)
{
    dp_why inner = {{0}};
    const dp_status status = dp_template_open(out, source, &inner);
    return status == DP_OK
               ? DP_OK
               : dp_why_set(why, status, "the chat template%s cannot be used: %.400s", name,
                            inner.text[0] != '\0' ? inner.text : dp_status_text(status));
}

static dp_view view_of(json_t *text)
{
    return dp_view_of(json_string_value(text), json_string_length(text));
}

/* The template for chats without tools, lent. DP_NOTFOUND. */
static dp_status find_source(json_t *config, dp_view jinja, dp_view *source, dp_why *why)
{
    json_t *const given = json_object_get(config, "chat_template");
    json_t *const found = json_is_string(given) ? given : find_template(given, "default");
    if (jinja.size == 0 && found == NULL) {
        return dp_why_set(why, DP_NOTFOUND, "the tokenizer has no chat_template");
    }
    *source = jinja.size > 0 ? jinja : view_of(found);
    return DP_OK;
}

static dp_status open_templates(dp_chat *chat, json_t *config, dp_view jinja, dp_why *why)
{
    json_t *const tools = find_template(json_object_get(config, "chat_template"), "tool_use");
    dp_view source;
    DP_TRY(find_source(config, jinja, &source, why));
    if (tools != NULL && jinja.size == 0) {
        chat->tools_status =
            open_one(&chat->with_tools, view_of(tools), " tool_use", &chat->tools_why);
    }
    return chat->tools_status == DP_NOMEM ? DP_NOMEM : open_one(&chat->template, source, "", why);
}

static dp_status take_tokens(dp_chat *chat, json_t *config)
{
    chat->tokens = json_object();
    for (size_t i = 0; i < sizeof token_names / sizeof token_names[0]; i++) {
        const char *const text = token_text(config, token_names[i]);
        if (text != NULL &&
            json_object_set_new(chat->tokens, token_names[i], json_string(text)) != 0) {
            return DP_NOMEM;
        }
    }
    return chat->tokens != NULL ? DP_OK : DP_NOMEM;
}

/* *root: NULL if config is empty; else the caller's. */
static dp_status read_config(dp_view config, json_t **root, dp_why *why)
{
    json_error_t error;
    *root = NULL;
    if (config.size > DP_CHAT_CONFIG_MAX) {
        return dp_why_set(why, DP_TOOBIG, "tokenizer_config.json is larger than %d MiB",
                          DP_CHAT_CONFIG_MAX >> 20);
    }
    if (config.size > 0) {
        /* Its texts alone are read, and model_max_length is often 10^30. */
        *root = json_loadb((const char *)config.data, config.size, JSON_DECODE_INT_AS_REAL, &error);
        if (*root == NULL) {
            return dp_why_set(why, DP_BADMSG, "tokenizer_config.json is no JSON: line %d: %s",
                              error.line, error.text);
        }
    }
    return DP_OK;
}

dp_status dp_chat_source(dp_view config, dp_view jinja, dp_buf *out, dp_why *why)
{
    json_t *root;
    dp_view source;
    DP_TRY(read_config(config, &root, why));
    dp_status status = find_source(root, jinja, &source, why);
    if (status == DP_OK) {
        status = dp_buf_append(out, source);
    }
    json_decref(root);
    return status;
}

dp_status dp_chat_open(dp_chat **out, dp_view config, dp_view jinja, dp_why *why)
{
    json_t *root;
    DP_TRY(read_config(config, &root, why));
    dp_chat *const chat = dp_alloc(1, sizeof *chat);
    dp_status status = chat == NULL ? DP_NOMEM : open_templates(chat, root, jinja, why);
    if (status == DP_OK) {
        status = take_tokens(chat, root);
    }
    json_decref(root);
    if (status != DP_OK) {
        dp_chat_close(chat);
        return status;
    }
    *out = chat;
    return DP_OK;
}

void dp_chat_close(dp_chat *chat)
{
    if (chat != NULL) {
        dp_template_close(chat->template);
        dp_template_close(chat->with_tools);
        json_decref(chat->tokens);
        dp_free(chat);
    }
}

/* ---- Text. */

/* By the template that is for chats with tools, or the one for others. */
static dp_status run_template(const dp_chat *chat, json_t *variables, dp_buf *out, dp_why *why)
{
    const bool tools = !json_is_null(json_object_get(variables, "tools"));
    if (tools && chat->tools_status != DP_OK) {
        return dp_why_set(why, chat->tools_status, "%s", chat->tools_why.text);
    }
    return dp_template_run(tools && chat->with_tools != NULL ? chat->with_tools : chat->template,
                           variables, out, why);
}

/* Appends what the template writes of the first count messages. */
static dp_status write_some(const dp_chat *chat, json_t *object, size_t count, bool prompts,
                            dp_buf *out, dp_why *why)
{
    json_t *const all = json_object_get(object, "messages");
    json_t *const tools = json_object_get(object, "tools");
    json_t *const variables = json_copy(chat->tokens);
    json_t *const messages = json_array();
    int bad = variables == NULL || messages == NULL;
    for (size_t i = 0; i < count && bad == 0; i++) {
        bad = json_array_append(messages, json_array_get(all, i));
    }
    bad |= json_object_set(variables, "messages", messages);
    bad |= json_object_set_new(variables, "add_generation_prompt", json_boolean(prompts));
    bad |=
        json_object_set_new(variables, "tools", tools != NULL ? json_incref(tools) : json_null());
    bad |= json_object_set_new(variables, "documents", json_null());
    const dp_status status = bad != 0 ? DP_NOMEM : run_template(chat, variables, out, why);
    json_decref(messages);
    json_decref(variables);
    return status;
}

/* A run of the template by itself; empties buf first. */
static dp_status write_alone(const dp_chat *chat, json_t *object, size_t count, bool prompts,
                             dp_buf *buf, dp_why *why)
{
    dp_buf_clear(buf);
    return write_some(chat, object, count, prompts, buf, why);
}

/* ---- Spans. */

/* The length of the beginning that both have, in whole characters. */
static size_t common(dp_view a, dp_view b)
{
    size_t n = 0;
    while (n < a.size && n < b.size && a.data[n] == b.data[n]) {
        n++;
    }
    while (n > 0 && n < a.size && (a.data[n] & 0xc0) == 0x80) {
        n--; /* Not inside of a character. */
    }
    return n;
}

static dp_view content_of(json_t *message)
{
    json_t *const content = json_object_get(message, "content");
    const dp_view text = json_is_string(content)
                             ? dp_view_of(json_string_value(content), json_string_length(content))
                             : dp_view_of(NULL, 0);
    return dp_text_strip(text, NULL, true, true);
}

/* The search for the spans of one chat. */
typedef struct search {
    const dp_chat *chat;
    json_t *object;
    json_t *messages;
    dp_view text;   /* of the whole chat */
    size_t at;      /* behind the contents that were found so far */
    size_t learned; /* behind the last span of the assistant */
    dp_buf before;
    dp_buf upto;
} search;

static size_t later(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* By what the template writes before the turn and up to it. *from: where the text of its content
 * may begin, at the earliest. */
static dp_status span_by_prompt(search *s, size_t turn, dp_span *span, bool *found, size_t *from,
                                dp_why *why)
{
    size_t at;
    const dp_view content = content_of(json_array_get(s->messages, turn));
    *found = false;
    *from = s->at;
    dp_status status = write_alone(s->chat, s->object, turn, true, &s->before, why);
    if (status == DP_OK) {
        status = write_alone(s->chat, s->object, turn + 1, false, &s->upto, why);
    }
    if (status == DP_BADARG) { /* It takes whole chats alone. */
        return DP_OK;
    }
    DP_TRY(status);
    const dp_view before = dp_buf_view(&s->before);
    const dp_view upto = dp_buf_view(&s->upto);
    const size_t end = common(upto, s->text);
    const size_t begin = common(before, s->text);
    if (begin != before.size || (begin == 0 && turn > 0)) {
        /* The content may begin as the prompt goes on. */
        *from = later(s->at, begin > content.size ? begin - content.size : 0);
        return DP_OK;
    }
    *from = later(s->learned, begin);
    if (end <= begin || common(before, upto) != begin) {
        return DP_OK;
    }
    const dp_view said = dp_text_cut(s->text, begin, end - begin);
    *found = end == upto.size || (content.size > 0 && dp_text_find(said, content, 0, &at));
    *span = (dp_span){before.size, end};
    return DP_OK;
}

/* By its content, of which the text begins nowhere before from. */
static bool span_by_content(search *s, dp_view content, size_t from, dp_span *span)
{
    const char *const end_token = json_string_value(json_object_get(s->chat->tokens, "eos_token"));
    size_t at;
    if (content.size == 0 || !dp_text_find(s->text, content, from, &at)) {
        return false;
    }
    const size_t end = at + content.size;
    const dp_view token = dp_view_text(end_token != NULL ? end_token : "");
    const dp_view rest = dp_view_of(s->text.data + end, s->text.size - end);
    *span = (dp_span){at, end + (common(rest, token) == token.size ? token.size : 0)};
    return true;
}

static bool is_assistant(json_t *message)
{
    const char *const role = json_string_value(json_object_get(message, "role"));
    return role != NULL && strcmp(role, "assistant") == 0;
}

static dp_status find_spans(search *s, dp_span *spans, size_t *n_spans, dp_why *why)
{
    *n_spans = 0;
    for (size_t i = 0; i < json_array_size(s->messages); i++) {
        dp_span span = {0, 0};
        bool found = false;
        size_t from = s->at;
        json_t *const message = json_array_get(s->messages, i);
        const bool speaks = is_assistant(message);
        if (speaks) {
            DP_TRY(span_by_prompt(s, i, &span, &found, &from, why));
        }
        found = (found && span.begin >= s->learned) ||
                span_by_content(s, content_of(message), from, &span);
        s->at = found ? span.end : s->at;
        if (!found || !speaks) {
            continue;
        }
        s->learned = span.end;
        if (*n_spans == DP_CHAT_TURNS_MAX) {
            return dp_why_set(why, DP_TOOBIG, "the assistant has more than %d turns",
                              DP_CHAT_TURNS_MAX);
        }
        spans[(*n_spans)++] = span;
    }
    return DP_OK;
}

static dp_status check_messages(json_t *messages, dp_why *why)
{
    if (!json_is_array(messages) || json_array_size(messages) == 0) {
        return dp_why_set(why, DP_BADMSG, "\"messages\" is no list of messages");
    }
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!json_is_string(json_object_get(json_array_get(messages, i), "role"))) {
            return dp_why_set(why, DP_BADMSG, "message %zu has no \"role\"", i + 1);
        }
    }
    return DP_OK;
}

dp_status dp_chat_text(const dp_chat *chat, json_t *object, dp_buf *text,
                       dp_span spans[DP_CHAT_TURNS_MAX], size_t *n_spans, dp_why *why)
{
    search s = {.chat = chat, .object = object, .messages = json_object_get(object, "messages")};
    const size_t from = text->size;
    DP_TRY(check_messages(s.messages, why));
    dp_buf_init(&s.before, DP_TEMPLATE_TEXT_MAX);
    dp_buf_init(&s.upto, DP_TEMPLATE_TEXT_MAX);
    dp_status status = write_some(chat, object, json_array_size(s.messages), false, text, why);
    if (status == DP_OK) {
        s.text = dp_text_cut(dp_buf_view(text), from, text->size - from);
        status = find_spans(&s, spans, n_spans, why);
    }
    if (status == DP_OK && *n_spans == 0) {
        status = dp_why_set(why, DP_BADARG,
                            "the chat template writes no turn of an assistant, which alone is "
                            "learned");
    }
    dp_buf_close(&s.upto);
    dp_buf_close(&s.before);
    for (size_t i = 0; i < *n_spans && status == DP_OK; i++) {
        spans[i].begin += from;
        spans[i].end += from;
    }
    if (status != DP_OK) {
        text->size = from;
    }
    return status;
}
