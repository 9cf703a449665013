/* tokenizer.json: writing and reading the parts that a byte-level BPE has. */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/bpe.h"
#include "compute/bpe_parts.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX };

/* A token as tokenizer.json writes it; returns the size. */
static size_t token_text(const dp_bpe *bpe, uint32_t id, char out[TEXT_MAX])
{
    const dp_view bytes = dp_bpe_token(bpe, id);
    size_t size = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        size += dp_bpe_write_byte(bytes.data[i], out + size);
    }
    return size;
}

static json_t *vocabulary(const dp_bpe *bpe)
{
    json_t *const vocab = json_object();
    for (uint32_t id = 0; vocab != NULL && id < dp_bpe_count(bpe); id++) {
        char text[TEXT_MAX + 1];
        text[token_text(bpe, id, text)] = '\0';
        if (json_object_set_new(vocab, text, json_integer(id)) != 0) {
            json_decref(vocab);
            return NULL;
        }
    }
    return vocab;
}

static json_t *merge_list(const dp_bpe *bpe)
{
    json_t *const merges = json_array();
    for (size_t i = 0; merges != NULL && i < dp_bpe_merges(bpe); i++) {
        uint32_t left;
        uint32_t right;
        char text[2 * TEXT_MAX + 1];
        dp_bpe_merge(bpe, i, &left, &right);
        size_t size = token_text(bpe, left, text);
        text[size] = ' ';
        size++;
        size += token_text(bpe, right, text + size);
        if (json_array_append_new(merges, json_stringn(text, size)) != 0) {
            json_decref(merges);
            return NULL;
        }
    }
    return merges;
}

static int append_json(const char *bytes, size_t size, void *out)
{
    return dp_buf_append(out, dp_view_of(bytes, size)) == DP_OK ? 0 : -1;
}

dp_status dp_bpe_save(const dp_bpe *bpe, dp_buf *out)
{
    json_t *const root = json_pack(
        "{s:s, s:n, s:n, s:[], s:n, s:{s:s, s:b, s:b, s:b}, s:n, s:{s:s, s:b, s:b, s:b}, "
        "s:{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:o, s:o}}",
        "version", "1.0", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer",
        "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1, "use_regex", 1,
        "post_processor", "decoder", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
        "use_regex", 1, "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
        "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "vocab", vocabulary(bpe), "merges",
        merge_list(bpe));
    if (root == NULL) {
        return DP_NOMEM;
    }
    const size_t before = out->size;
    const int failed = json_dump_callback(root, append_json, out, JSON_INDENT(1));
    json_decref(root);
    if (failed) {
        out->size = before;
        return DP_NOMEM;
    }
    return DP_OK;
}

/* names: count NULLs, to be filled by id. */
static dp_status read_names(dp_bpe *bpe, const json_t *vocab, const char **names, size_t count,
                            dp_why *why)
{
    json_t *const all =
        (json_t *)(uintptr_t)vocab; /* Iterating changes nothing, but jansson asks for it. */
    for (void *at = json_object_iter(all); at != NULL; at = json_object_iter_next(all, at)) {
        const json_t *const value = json_object_iter_value(at);
        const json_int_t id = json_integer_value(value);
        if (!json_is_integer(value) || id < 0 || (size_t)id >= count || names[id] != NULL) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: token ids must be 0 to %zu, each once", count - 1);
        }
        names[id] = json_object_iter_key(at);
    }
    for (size_t id = 0; id < count; id++) {
        uint8_t bytes[TEXT_MAX];
        size_t size;
        const dp_view text = dp_view_text(names[id]);
        const bool readable =
            text.size <= sizeof bytes && dp_bpe_read_token(text, bytes, &size) == DP_OK;
        const dp_status added =
            readable ? dp_bpe_add_token(bpe, dp_view_of(bytes, size)) : DP_BADMSG;
        if (added == DP_NOMEM) {
            return DP_NOMEM;
        }
        if (added != DP_OK) {
            return dp_why_set(why, DP_BADMSG, "tokenizer.json: token %zu is not a byte-level token",
                              id);
        }
    }
    return DP_OK;
}

static dp_status read_vocabulary(dp_bpe *bpe, const json_t *vocab, dp_why *why)
{
    const size_t count = json_object_size(vocab);
    if (count < DP_BPE_TOKENS_MIN || count > DP_BPE_TOKENS_MAX) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json has %zu tokens; it may have %d to %d",
                          count, DP_BPE_TOKENS_MIN, DP_BPE_TOKENS_MAX);
    }
    const char **const names = dp_alloc(count, sizeof *names);
    if (names == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = read_names(bpe, vocab, names, count, why);
    dp_free(names);
    return status;
}

static bool token_id(const dp_bpe *bpe, dp_view text, uint32_t *id)
{
    uint8_t bytes[TEXT_MAX];
    size_t size;
    return text.size <= sizeof bytes && dp_bpe_read_token(text, bytes, &size) == DP_OK &&
           dp_bpe_find(bpe, dp_view_of(bytes, size), id);
}

/* "left right", or ["left", "right"] as newer files write it. */
static bool read_merge(dp_bpe *bpe, const json_t *item)
{
    dp_view left;
    dp_view right;
    if (json_is_string(item)) {
        const dp_view text = dp_view_of(json_string_value(item), json_string_length(item));
        const uint8_t *const space = text.size > 0 ? memchr(text.data, ' ', text.size) : NULL;
        if (space == NULL) {
            return false;
        }
        const size_t size = (size_t)(space - text.data);
        left = dp_view_of(text.data, size);
        right = dp_view_of(space + 1, text.size - size - 1);
    } else {
        const json_t *const a = json_array_get(item, 0);
        const json_t *const b = json_array_get(item, 1);
        if (json_array_size(item) != 2 || !json_is_string(a) || !json_is_string(b)) {
            return false;
        }
        left = dp_view_of(json_string_value(a), json_string_length(a));
        right = dp_view_of(json_string_value(b), json_string_length(b));
    }
    uint32_t left_id;
    uint32_t right_id;
    return token_id(bpe, left, &left_id) && token_id(bpe, right, &right_id) &&
           dp_bpe_add_merge(bpe, left_id, right_id) == DP_OK;
}

static bool has_type(const json_t *object, const char *type)
{
    const char *const text = json_string_value(json_object_get(object, "type"));
    return text != NULL && strcmp(text, type) == 0;
}

static dp_status read_root(dp_bpe *bpe, const json_t *root, dp_why *why)
{
    const json_t *const model = json_object_get(root, "model");
    const json_t *const before = json_object_get(root, "pre_tokenizer");
    const json_t *const normalizer = json_object_get(root, "normalizer");
    const json_t *const merges = json_object_get(model, "merges");
    if (!has_type(model, "BPE") || !has_type(before, "ByteLevel") || !json_is_array(merges)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json is not a byte-level BPE");
    }
    if ((normalizer != NULL && !json_is_null(normalizer)) ||
        json_is_true(json_object_get(before, "add_prefix_space")) ||
        json_is_false(json_object_get(before, "use_regex")) ||
        json_array_size(json_object_get(root, "added_tokens")) > 0) {
        return dp_why_set(why, DP_BADMSG,
                          "tokenizer.json has a normalizer, a prefix space, another pattern or "
                          "added tokens; these are "
                          "not supported");
    }
    DP_TRY(read_vocabulary(bpe, json_object_get(model, "vocab"), why));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        if (!read_merge(bpe, json_array_get(merges, i))) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: merge %zu does not join two tokens to a third", i);
        }
    }
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
