/* tokenizer.json: reading the parts that a byte-level BPE has, and refusing parts that would make
 * other tokens. */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX, QUOTE_MAX = 40 };

static dp_view text_of(const json_t *string)
{
    return dp_view_of(json_string_value(string), json_string_length(string));
}

static bool has_type(const json_t *object, const char *type)
{
    const char *const text = json_string_value(json_object_get(object, "type"));
    return text != NULL && strcmp(text, type) == 0;
}

/* Absent counts as standard. */
static bool flag(const json_t *object, const char *key, bool standard)
{
    const json_t *const value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : standard;
}

/* ---- Added tokens. */

static dp_status read_added(dp_bpe *bpe, const json_t *item, const json_t *vocab, dp_why *why)
{
    const json_t *const content = json_object_get(item, "content");
    const json_t *const number = json_object_get(item, "id");
    const json_int_t id = json_integer_value(number);
    if (!json_is_string(content) || !json_is_integer(number) || id < 0 || id >= DP_BPE_TOKENS_MAX) {
        return dp_why_set(why, DP_BADMSG,
                          "tokenizer.json: an added token needs a content and an id below %d",
                          DP_BPE_TOKENS_MAX);
    }
    const char *const text = json_string_value(content);
    if (flag(item, "single_word", false) || flag(item, "lstrip", false) ||
        flag(item, "rstrip", false)) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "tokenizer.json: added token '%.*s' is single_word, lstrip or rstrip, "
                          "which this program does not do",
                          QUOTE_MAX, text);
    }
    const json_t *const known = json_object_get(vocab, text);
    if (known != NULL && json_integer_value(known) != id) {
        return dp_why_set(why, DP_BADMSG,
                          "tokenizer.json: added token '%.*s' has id %lld, in the vocabulary %lld",
                          QUOTE_MAX, text, (long long)id, (long long)json_integer_value(known));
    }
    const dp_bpe_added added = {.text = text_of(content),
                                .id = (uint32_t)id,
                                .special = flag(item, "special", false),
                                .normalized = flag(item, "normalized", true)};
    const dp_status status = dp_bpe_put_added(bpe, &added);
    if (status == DP_OK || status == DP_NOMEM) {
        return status;
    }
    return dp_why_set(why, DP_BADMSG, "tokenizer.json: added token '%.*s', id %lld: %s", QUOTE_MAX,
                      text, (long long)id,
                      status == DP_EXISTS   ? "another token has this id, or this text"
                      : status == DP_TOOBIG ? "it is too long, or there are too many"
                                            : "it cannot be read");
}

static dp_status read_all_added(dp_bpe *bpe, const json_t *root, const json_t *vocab, dp_why *why)
{
    const json_t *const list = json_object_get(root, "added_tokens");
    for (size_t i = 0; i < json_array_size(list); i++) {
        DP_TRY(read_added(bpe, json_array_get(list, i), vocab, why));
    }
    return DP_OK;
}

/* ---- Vocabulary. */

/* names: count NULLs, to be filled by id. */
static dp_status sort_names(const json_t *vocab, const char **names, dp_why *why)
{
    json_t *const all =
        (json_t *)(uintptr_t)vocab; /* Iterating changes nothing, but jansson asks for it. */
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        const json_t *const value = json_object_iter_value(at);
        const json_int_t id = json_integer_value(value);
        const char *const name = json_object_iter_key(at);
        if (!json_is_integer(value) || id < 0 || id >= DP_BPE_TOKENS_MAX) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: token '%.*s' needs an id from 0 to %d", QUOTE_MAX,
                              name, DP_BPE_TOKENS_MAX - 1);
        }
        if (names[id] != NULL) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: tokens '%.*s' and '%.*s' both have id %lld",
                              QUOTE_MAX, names[id], QUOTE_MAX, name, (long long)id);
        }
        names[id] = name;
    }
    return DP_OK;
}

static bool is_added(const json_t *root, const char *name)
{
    const json_t *const list = json_object_get(root, "added_tokens");
    for (size_t i = 0; i < json_array_size(list) && i < DP_ADDED_MAX; i++) {
        const char *const text =
            json_string_value(json_object_get(json_array_get(list, i), "content"));
        if (text != NULL && strcmp(text, name) == 0) {
            return true;
        }
    }
    return false;
}

static dp_status put_names(dp_bpe *bpe, const json_t *root, const char **names, dp_why *why)
{
    unsigned strange = 0;
    for (uint32_t id = 0; id < DP_BPE_TOKENS_MAX; id++) {
        uint8_t bytes[TEXT_MAX];
        size_t size;
        if (names[id] == NULL) {
            continue;
        }
        const dp_view text = dp_view_text(names[id]);
        const bool readable =
            text.size <= sizeof bytes && dp_bpe_read_token(text, bytes, &size) == DP_OK;
        const dp_status put =
            readable ? dp_bpe_put_token(bpe, id, dp_view_of(bytes, size)) : DP_BADMSG;
        if (put == DP_NOMEM) {
            return DP_NOMEM;
        }
        /* Added tokens may stand here too, written as they are; no merge makes them then. */
        strange += !readable;
        if (put != DP_OK && !(!readable && strange <= DP_ADDED_MAX && is_added(root, names[id]))) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: token '%.*s' (id %u) is not written in bytes of 1 "
                              "to %d",
                              QUOTE_MAX, names[id], id, DP_BPE_TOKEN_BYTES_MAX);
        }
    }
    return DP_OK;
}

static dp_status read_vocabulary(dp_bpe *bpe, const json_t *root, const json_t *vocab, dp_why *why)
{
    const size_t count = json_object_size(vocab);
    if (count < DP_BPE_TOKENS_MIN || count > DP_BPE_TOKENS_MAX) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json has %zu tokens; it may have %d to %d",
                          count, DP_BPE_TOKENS_MIN, DP_BPE_TOKENS_MAX);
    }
    const char **const names = dp_alloc(DP_BPE_TOKENS_MAX, sizeof *names);
    if (names == NULL) {
        return DP_NOMEM;
    }
    dp_status status = sort_names(vocab, names, why);
    if (status == DP_OK) {
        status = put_names(bpe, root, names, why);
    }
    dp_free(names);
    return status;
}

/* ---- Merges. */

/* "left right", or ["left", "right"] as newer files write it. */
static bool split_merge(const json_t *item, dp_view halves[2])
{
    if (json_is_string(item)) {
        const dp_view text = text_of(item);
        const uint8_t *const space = text.size > 0 ? memchr(text.data, ' ', text.size) : NULL;
        if (space == NULL) {
            return false;
        }
        const size_t size = (size_t)(space - text.data);
        halves[0] = dp_view_of(text.data, size);
        halves[1] = dp_view_of(space + 1, text.size - size - 1);
        return true;
    }
    for (size_t i = 0; i < 2; i++) {
        if (json_array_size(item) != 2 || !json_is_string(json_array_get(item, i))) {
            return false;
        }
        halves[i] = text_of(json_array_get(item, i));
    }
    return true;
}

static dp_status read_merge(dp_bpe *bpe, const json_t *item, size_t index, dp_why *why)
{
    dp_view halves[2];
    uint32_t ids[2];
    if (!split_merge(item, halves)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json: merge %zu is not a pair", index);
    }
    for (size_t i = 0; i < 2; i++) {
        uint8_t bytes[TEXT_MAX];
        size_t size;
        if (halves[i].size > sizeof bytes || dp_bpe_read_token(halves[i], bytes, &size) != DP_OK ||
            !dp_bpe_find(bpe, dp_view_of(bytes, size), &ids[i])) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: merge %zu joins '%.*s', which is no token", index,
                              (int)(halves[i].size < QUOTE_MAX ? halves[i].size : QUOTE_MAX),
                              (const char *)halves[i].data);
        }
    }
    const dp_status status = dp_bpe_add_merge(bpe, ids[0], ids[1]);
    if (status == DP_OK || status == DP_NOMEM) {
        return status;
    }
    return dp_why_set(why, DP_BADMSG, "tokenizer.json: merge %zu, of tokens %u and %u, %s", index,
                      ids[0], ids[1],
                      status == DP_NOTFOUND ? "makes no token of the vocabulary"
                      : status == DP_EXISTS ? "stands there twice"
                                            : "is one too many");
}

/* ---- Patterns that make the pieces. */

static bool empty_or_null(const json_t *value)
{
    return value == NULL || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static dp_status read_model_flags(dp_bpe *bpe, const json_t *model, dp_why *why)
{
    if (json_number_value(json_object_get(model, "dropout")) != 0 ||
        !empty_or_null(json_object_get(model, "continuing_subword_prefix")) ||
        !empty_or_null(json_object_get(model, "end_of_word_suffix"))) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "tokenizer.json: this program does not do dropout, "
                          "continuing_subword_prefix and end_of_word_suffix");
    }
    bpe->ignore_merges = flag(model, "ignore_merges", false);
    return DP_OK;
}

static dp_status read_normalizer(dp_bpe *bpe, const json_t *normalizer, dp_why *why)
{
    if (normalizer == NULL || json_is_null(normalizer)) {
        return DP_OK;
    }
    if (!has_type(normalizer, "NFC")) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "tokenizer.json: the only normalizer that this program does is NFC");
    }
    bpe->nfc = true;
    return DP_OK;
}

/* A byte-level step that adds nothing. */
static bool plain_byte_level(const json_t *step, bool use_regex)
{
    return has_type(step, "ByteLevel") && !flag(step, "add_prefix_space", true) &&
           flag(step, "use_regex", true) == use_regex;
}

/* Isolated matches, or text between matches removed: the same with patterns that match all text. */
static bool read_split(const json_t *step, dp_pretokenizer_kind *kind)
{
    const char *const pattern =
        json_string_value(json_object_get(json_object_get(step, "pattern"), "Regex"));
    const char *const behavior = json_string_value(json_object_get(step, "behavior"));
    const bool invert = flag(step, "invert", false);
    return has_type(step, "Split") && pattern != NULL && behavior != NULL &&
           strcmp(behavior, invert ? "Removed" : "Isolated") == 0 &&
           dp_pretokenizer_kind_of(pattern, kind);
}

static dp_status read_pre_tokenizer(dp_bpe *bpe, const json_t *before, dp_why *why)
{
    const json_t *const steps = json_object_get(before, "pretokenizers");
    if (plain_byte_level(before, true)) {
        bpe->pieces = DP_PRETOKENIZER_GPT2;
        return DP_OK;
    }
    if (has_type(before, "Sequence") && json_array_size(steps) == 2 &&
        read_split(json_array_get(steps, 0), &bpe->pieces) &&
        plain_byte_level(json_array_get(steps, 1), false)) {
        return DP_OK;
    }
    return dp_why_set(why, DP_UNSUPPORTED,
                      "tokenizer.json: its pre_tokenizer is not that of GPT-2, Llama-3 or Qwen, "
                      "the ones that this program does");
}

static dp_status read_root(dp_bpe *bpe, const json_t *root, dp_why *why)
{
    const json_t *const model = json_object_get(root, "model");
    const json_t *const vocab = json_object_get(model, "vocab");
    const json_t *const merges = json_object_get(model, "merges");
    /* Older files do not name the type. */
    if (!(has_type(model, "BPE") || json_object_get(model, "type") == NULL) ||
        !json_is_object(vocab) || !json_is_array(merges)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json is not a byte-level BPE");
    }
    DP_TRY(read_model_flags(bpe, model, why));
    DP_TRY(read_normalizer(bpe, json_object_get(root, "normalizer"), why));
    DP_TRY(read_pre_tokenizer(bpe, json_object_get(root, "pre_tokenizer"), why));
    DP_TRY(read_vocabulary(bpe, root, vocab, why));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        DP_TRY(read_merge(bpe, json_array_get(merges, i), i, why));
    }
    DP_TRY(read_all_added(bpe, root, vocab, why));
    if (!dp_bpe_seal(bpe)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json: some byte has no token");
    }
    return DP_OK;
}

dp_status dp_bpe_load(dp_bpe **out, dp_view json, dp_why *why)
{
    if (json.size > DP_BPE_JSON_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG, "tokenizer.json is larger than %d MiB",
                          DP_BPE_JSON_BYTES_MAX >> 20);
    }
    json_error_t error;
    json_t *const root = json_loadb(json.size > 0 ? (const char *)json.data : "", json.size,
                                    JSON_REJECT_DUPLICATES, &error);
    if (root == NULL) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json, line %d: %s", error.line, error.text);
    }
    dp_bpe *bpe = NULL;
    dp_status status = dp_bpe_new(&bpe);
    if (status == DP_OK) {
        status = read_root(bpe, root, why);
    }
    json_decref(root);
    if (status != DP_OK) {
        dp_bpe_close(bpe);
        return status;
    }
    *out = bpe;
    return DP_OK;
}
