/* tokenizer.json: writing. The keys and their order are those of Hugging Face's tokenizers. */
#include <jansson.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX };

/* A token as tokenizer.json writes it; returns the size. */
static size_t token_text(const dp_bpe *bpe, dp_view bytes, char out[TEXT_MAX])
{
    size_t size = 0;
    for (size_t i = 0; bpe->bytes && i < bytes.size; i++) {
        size += dp_bpe_write_byte(bytes.data[i], out + size);
    }
    if (!bpe->bytes) {
        memcpy(out, bytes.data, bytes.size);
        size = bytes.size;
    }
    return size;
}

static json_t *vocabulary(const dp_bpe *bpe)
{
    json_t *const vocab = json_object();
    for (uint32_t i = 0; vocab != NULL && i < bpe->words.count; i++) {
        char text[TEXT_MAX + 1];
        text[token_text(bpe, bpe->words.words[i], text)] = '\0';
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
        char left[TEXT_MAX];
        char right[TEXT_MAX];
        const size_t left_size = token_text(bpe, bpe->tokens[m->left], left);
        const size_t right_size = token_text(bpe, bpe->tokens[m->right], right);
        char text[2 * TEXT_MAX + 1];
        memcpy(text, left, left_size);
        text[left_size] = ' ';
        memcpy(text + left_size + 1, right, right_size);
        /* A token of characters may have a space itself. */
        json_t *const made = bpe->bytes ? json_stringn(text, left_size + 1 + right_size)
                                        : json_pack("[s%, s%]", left, left_size, right, right_size);
        if (json_array_append_new(merges, made) != 0) {
            json_decref(merges);
            return NULL;
        }
    }
    return merges;
}

static json_t *scored(const dp_bpe *bpe)
{
    json_t *const vocab = json_array();
    for (uint32_t id = 0; vocab != NULL && id < bpe->unigram.count; id++) {
        const dp_view text = bpe->tokens[id];
        json_t *const pair =
            json_pack("[s%, f]", (const char *)text.data, text.size, bpe->unigram.scores[id]);
        if (json_array_append_new(vocab, pair) != 0) {
            json_decref(vocab);
            return NULL;
        }
    }
    return vocab;
}

static json_t *added_token(const dp_bpe *bpe, const dp_added_token *token, bool normalized)
{
    const dp_view text = bpe->tokens[token->id];
    return json_pack("{s:I, s:s%, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)token->id, "content",
                     (const char *)text.data, text.size, "single_word", token->single_word,
                     "lstrip", token->takes_left, "rstrip", token->takes_right, "normalized",
                     normalized, "special", token->special);
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

/* A part as it was read, or as training makes it. */
static json_t *part(const dp_bpe *bpe, dp_bpe_part which)
{
    const dp_buf *const text = &bpe->parts[which];
    if (text->size > 0) {
        return json_loadb((const char *)text->data, text->size, JSON_DECODE_ANY, NULL);
    }
    return which == DP_PART_PRE_TOKENIZER || which == DP_PART_DECODER
               ? json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                           "trim_offsets", 1, "use_regex", 1)
               : json_null();
}

static json_t *unigram(const dp_bpe *bpe)
{
    return json_pack("{s:s, s:I, s:o, s:b}", "type", "Unigram", "unk_id",
                     (json_int_t)bpe->unigram.unknown, "vocab", scored(bpe), "byte_fallback",
                     bpe->byte_fallback);
}

static json_t *model(const dp_bpe *bpe)
{
    if (bpe->model == DP_BPE_UNIGRAM) {
        return unigram(bpe);
    }
    const dp_view unknown = dp_bpe_token(bpe, bpe->unknown);
    json_t *const made = json_pack(
        "{s:s, s:n, s:o, s:n, s:n, s:b, s:b}", "type", "BPE", "dropout", "unk_token",
        bpe->unknown == DP_NO_TOKEN ? json_null()
                                    : json_stringn((const char *)unknown.data, unknown.size),
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", bpe->fuse_unknown,
        "byte_fallback", bpe->byte_fallback);
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
    json_t *const root =
        json_pack("{s:s, s:n, s:n, s:o, s:o, s:o, s:o, s:o, s:o}", "version", "1.0", "truncation",
                  "padding", "added_tokens", added_list(bpe), "normalizer",
                  part(bpe, DP_PART_NORMALIZER), "pre_tokenizer", part(bpe, DP_PART_PRE_TOKENIZER),
                  "post_processor", part(bpe, DP_PART_POST_PROCESSOR), "decoder",
                  part(bpe, DP_PART_DECODER), "model", model(bpe));
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
