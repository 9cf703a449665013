/* tokenizer.json: writing. The keys and their order are those of Hugging Face's tokenizers. */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX };

/* A token as tokenizer.json writes it; returns the size. */
static size_t token_text(dp_view bytes, char out[TEXT_MAX])
{
    size_t size = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        size += dp_bpe_write_byte(bytes.data[i], out + size);
    }
    return size;
}

static json_t *vocabulary(const dp_bpe *bpe)
{
    json_t *const vocab = json_object();
    for (uint32_t i = 0; vocab != NULL && i < bpe->words.count; i++) {
        char text[TEXT_MAX + 1];
        text[token_text(bpe->words.words[i], text)] = '\0';
        if (json_object_set_new(vocab, text, json_integer(bpe->word_ids[i])) != 0) {
            json_decref(vocab);
            return NULL;
        }
    }
    return vocab;
}

static json_t *merge_list(const dp_bpe *bpe)
{
    json_t *const merges = json_array();
    for (uint32_t i = 0; merges != NULL && i < bpe->merges.count; i++) {
        const dp_merge *const m = &bpe->merges.items[i];
        char text[2 * TEXT_MAX + 1];
        size_t size = token_text(bpe->tokens[m->left], text);
        text[size] = ' ';
        size++;
        size += token_text(bpe->tokens[m->right], text + size);
        if (json_array_append_new(merges, json_stringn(text, size)) != 0) {
            json_decref(merges);
            return NULL;
        }
    }
    return merges;
}

static json_t *added_token(const dp_bpe *bpe, const dp_added_token *token, bool normalized)
{
    const dp_view text = bpe->tokens[token->id];
    return json_pack("{s:I, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)token->id, "content",
                     (const char *)text.data, text.size, "single_word", 0, "lstrip", 0, "rstrip", 0,
                     "normalized", normalized, "special", token->special);
}

static const dp_added_token *with_id(const dp_added *added, uint32_t id)
{
    for (uint32_t i = 0; i < added->count; i++) {
        if (added->items[i].id == id) {
            return &added->items[i];
        }
    }
    return NULL;
}

/* In order of ids, as the tokenizers write them. */
static json_t *added_list(const dp_bpe *bpe)
{
    json_t *const list = json_array();
    uint32_t left = bpe->added.count + bpe->added_raw.count;
    for (uint32_t id = 0; list != NULL && left > 0 && id < bpe->count; id++) {
        const dp_added_token *const raw = with_id(&bpe->added_raw, id);
        const dp_added_token *const token = raw != NULL ? raw : with_id(&bpe->added, id);
        if (token == NULL) {
            continue;
        }
        if (json_array_append_new(list, added_token(bpe, token, raw == NULL)) != 0) {
            json_decref(list);
            return NULL;
        }
        left--;
    }
    return list;
}

static json_t *normalizer(const dp_bpe *bpe)
{
    return bpe->nfc ? json_pack("{s:s}", "type", "NFC") : json_null();
}

static json_t *byte_level(bool use_regex)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", use_regex);
}

static json_t *pre_tokenizer(const dp_bpe *bpe)
{
    if (bpe->pieces == DP_PRETOKENIZER_GPT2) {
        return byte_level(true);
    }
    return json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence", "pretokenizers",
                     "type", "Split", "pattern", "Regex", dp_pretokenizer_pattern(bpe->pieces),
                     "behavior", "Isolated", "invert", 0, byte_level(false));
}

static json_t *model(const dp_bpe *bpe)
{
    json_t *const made = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b}", "type", "BPE", "dropout",
                                   "unk_token", "continuing_subword_prefix", "end_of_word_suffix",
                                   "fuse_unk", 0, "byte_fallback", 0);
    if (made == NULL ||
        (bpe->ignore_merges && json_object_set_new(made, "ignore_merges", json_true()) != 0) ||
        json_object_set_new(made, "vocab", vocabulary(bpe)) != 0 ||
        json_object_set_new(made, "merges", merge_list(bpe)) != 0) {
        json_decref(made);
        return NULL;
    }
    return made;
}

static int append_json(const char *bytes, size_t size, void *out)
{
    return dp_buf_append(out, dp_view_of(bytes, size)) == DP_OK ? 0 : -1;
}

dp_status dp_bpe_save(const dp_bpe *bpe, dp_buf *out)
{
    json_t *const root = json_pack(
        "{s:s, s:n, s:n, s:o, s:o, s:o, s:n, s:o, s:o}", "version", "1.0", "truncation", "padding",
        "added_tokens", added_list(bpe), "normalizer", normalizer(bpe), "pre_tokenizer",
        pre_tokenizer(bpe), "post_processor", "decoder", byte_level(true), "model", model(bpe));
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
