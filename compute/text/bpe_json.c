/* tokenizer.json: reading the model and the added tokens (parts_json.h reads the other parts), and
 * refusing what would make other tokens. */
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/text/bpe.h"
#include "compute/text/bpe_parts.h"
#include "compute/text/parts_json.h"

enum { TEXT_MAX = 2 * DP_BPE_TOKEN_BYTES_MAX, QUOTE_MAX = 40 };

/* A token as the model knows it, from how the file writes it; false: it is none. */
static bool read_name(const dp_bpe *bpe, dp_view text, uint8_t bytes[TEXT_MAX], size_t *size)
{
    if (text.size > TEXT_MAX) {
        return false;
    }
    if (bpe->bytes) {
        return dp_bpe_read_token(text, bytes, size) == DP_OK;
    }
    if (text.size > 0) {
        memcpy(bytes, text.data, text.size);
    }
    *size = text.size;
    return true;
}

/* ---- Added tokens. */

/* The id that the vocabulary gives to a text. */
static bool find_written(const dp_bpe *bpe, const json_t *vocab, const json_t *text, uint32_t *id)
{
    if (!json_is_object(vocab)) {
        return dp_bpe_find(bpe, dp_json_view(text), id);
    }
    const json_t *const known = json_object_get(vocab, json_string_value(text));
    *id = (uint32_t)json_integer_value(known);
    return known != NULL;
}

static dp_status read_added(dp_bpe *bpe, const json_t *item, const json_t *vocab,
                            dp_normalizer *normalizer, dp_why *why)
{
    const json_t *const content = json_object_get(item, "content");
    const json_t *const number = json_object_get(item, "id");
    const json_int_t id = json_integer_value(number);
    uint32_t known;
    if (id >= DP_BPE_TOKENS_MAX && dp_json_flag(item, "special", false)) {
        return DP_OK; /* No model here has a row for it, so its text is text. Gemma 3 has one. */
    }
    if (!json_is_string(content) || !json_is_integer(number) || id < 0 || id >= DP_BPE_TOKENS_MAX) {
        return dp_why_set(why, DP_BADMSG,
                          "tokenizer.json: an added token needs a content and an id below %d",
                          DP_BPE_TOKENS_MAX);
    }
    const char *const text = json_string_value(content);
    if (find_written(bpe, vocab, content, &known) && known != (uint32_t)id) {
        return dp_why_set(why, DP_BADMSG,
                          "tokenizer.json: added token '%.*s' has id %lld, in the vocabulary %lld",
                          QUOTE_MAX, text, (long long)id, (long long)known);
    }
    const dp_bpe_added added = {.text = dp_json_view(content),
                                .id = (uint32_t)id,
                                .special = dp_json_flag(item, "special", false),
                                .normalized = dp_json_flag(item, "normalized", true),
                                .single_word = dp_json_flag(item, "single_word", false),
                                .takes_left = dp_json_flag(item, "lstrip", false),
                                .takes_right = dp_json_flag(item, "rstrip", false)};
    const dp_status status = dp_bpe_put_added(bpe, &added, normalizer);
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
    dp_normalizer *normalizer;
    DP_TRY(dp_normalizer_open(&normalizer, &bpe->normalizer, why));
    dp_status status = DP_OK;
    for (size_t i = 0; i < json_array_size(list) && status == DP_OK; i++) {
        status = read_added(bpe, json_array_get(list, i), vocab, normalizer, why);
    }
    dp_normalizer_close(normalizer);
    return status;
}

/* Hugging Face's tokenizers number added tokens outside of the vocabulary from its size on,
 * whatever the file says (tokenizers 0.23 warns): with other ids, texts have other tokens there. */
static dp_status check_numbers(const dp_bpe *bpe, const json_t *list, const json_t *vocab,
                               dp_why *why)
{
    size_t next = json_is_object(vocab) ? json_object_size(vocab) : json_array_size(vocab);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *const content = json_object_get(json_array_get(list, i), "content");
        const json_int_t id = json_integer_value(json_object_get(json_array_get(list, i), "id"));
        uint32_t known;
        if (find_written(bpe, vocab, content, &known) || id >= DP_BPE_TOKENS_MAX) {
            continue;
        }
        if ((size_t)id != next) {
            return dp_why_set(why, DP_UNSUPPORTED,
                              "tokenizer.json: added token '%.*s' has id %lld, and Hugging Face's "
                              "tokenizers give it %zu, the next after the vocabulary",
                              QUOTE_MAX, json_string_value(content), (long long)id, next);
        }
        next++;
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

/* The texts of all added tokens, which stay the file's. */
static dp_status list_added(const json_t *root, dp_words *words)
{
    const json_t *const list = json_object_get(root, "added_tokens");
    for (size_t i = 0; i < json_array_size(list) && i < DP_ADDED_MAX; i++) {
        const dp_view text = dp_json_view(json_object_get(json_array_get(list, i), "content"));
        uint32_t index;
        if (text.size > 0) {
            DP_TRY(dp_words_add(words, text, &index));
        }
    }
    return DP_OK;
}

static bool is_added(const dp_words *added, dp_view text)
{
    uint32_t index;
    return added->count > 0 && dp_words_find(added, text, &index);
}

static dp_status put_names(dp_bpe *bpe, const dp_words *added, const char **names, dp_why *why)
{
    for (uint32_t id = 0; id < DP_BPE_TOKENS_MAX; id++) {
        uint8_t bytes[TEXT_MAX];
        size_t size;
        if (names[id] == NULL) {
            continue;
        }
        const dp_view text = dp_view_text(names[id]);
        const bool readable = read_name(bpe, text, bytes, &size);
        const dp_status put =
            readable ? dp_bpe_put_token(bpe, id, dp_view_of(bytes, size)) : DP_BADMSG;
        if (put == DP_NOMEM) {
            return DP_NOMEM;
        }
        /* Added tokens may stand here too, written as they are; no merge makes them then. */
        if (put != DP_OK && (readable || !is_added(added, text))) {
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
    const int least = bpe->bytes ? DP_BPE_TOKENS_MIN : 1;
    dp_words added = {0};
    if (count < (size_t)least || count > DP_BPE_TOKENS_MAX) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json has %zu tokens; it may have %d to %d",
                          count, least, DP_BPE_TOKENS_MAX);
    }
    const char **const names = dp_alloc(DP_BPE_TOKENS_MAX, sizeof *names);
    if (names == NULL) {
        return DP_NOMEM;
    }
    dp_status status = sort_names(vocab, names, why);
    if (status == DP_OK) {
        status = list_added(root, &added);
    }
    if (status == DP_OK) {
        status = put_names(bpe, &added, names, why);
    }
    dp_words_close(&added);
    dp_free(names);
    return status;
}

/* ---- Merges. */

/* "left right", or ["left", "right"] as newer files write it. */
static bool split_merge(const json_t *item, dp_view halves[2])
{
    if (json_is_string(item)) {
        const dp_view text = dp_json_view(item);
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
        halves[i] = dp_json_view(json_array_get(item, i));
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
        if (!read_name(bpe, halves[i], bytes, &size) || size == 0 ||
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

/* ---- Models. */

static bool empty_or_null(const json_t *value)
{
    return value == NULL || json_is_null(value) ||
           (json_is_string(value) && json_string_length(value) == 0);
}

static dp_status read_unknown(dp_bpe *bpe, const json_t *model, dp_why *why)
{
    const json_t *const token = json_object_get(model, "unk_token");
    if (bpe->bytes || empty_or_null(token)) {
        return DP_OK; /* Every byte is known; or unknown characters vanish. */
    }
    if (!json_is_string(token) || !dp_bpe_find(bpe, dp_json_view(token), &bpe->unknown)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json: model.unk_token is no token");
    }
    return DP_OK;
}

static dp_status read_model_flags(dp_bpe *bpe, const json_t *model, dp_why *why)
{
    if (json_number_value(json_object_get(model, "dropout")) != 0 ||
        !empty_or_null(json_object_get(model, "continuing_subword_prefix")) ||
        !empty_or_null(json_object_get(model, "end_of_word_suffix"))) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "tokenizer.json: model has dropout, continuing_subword_prefix or "
                          "end_of_word_suffix, " DP_JSON_UNDONE);
    }
    bpe->ignore_merges = dp_json_flag(model, "ignore_merges", false);
    bpe->fuse_unknown = dp_json_flag(model, "fuse_unk", false);
    bpe->byte_fallback = dp_json_flag(model, "byte_fallback", false);
    return DP_OK;
}

static dp_status read_bpe(dp_bpe *bpe, const json_t *root, const json_t *model, dp_why *why)
{
    const json_t *const vocab = json_object_get(model, "vocab");
    const json_t *const merges = json_object_get(model, "merges");
    if (!json_is_object(vocab) || !json_is_array(merges)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json: model has no vocab and merges of a BPE");
    }
    DP_TRY(read_model_flags(bpe, model, why));
    DP_TRY(read_vocabulary(bpe, root, vocab, why));
    for (size_t i = 0; i < json_array_size(merges); i++) {
        DP_TRY(read_merge(bpe, json_array_get(merges, i), i, why));
    }
    return read_unknown(bpe, model, why);
}

/* [token, score] */
static dp_status read_scored(dp_bpe *bpe, const json_t *item, uint32_t id, dp_why *why)
{
    const json_t *const score = json_array_get(item, 1);
    const dp_view text = dp_json_view(json_array_get(item, 0));
    const double value = json_number_value(score);
    if (json_array_size(item) != 2 || !json_is_number(score) || !isfinite(value) ||
        text.size == 0) {
        return dp_why_set(why, DP_BADMSG,
                          "tokenizer.json: model.vocab[%u] is no pair of a token and a score", id);
    }
    const dp_status status = dp_bpe_put_token(bpe, id, text);
    if (status == DP_OK || status == DP_NOMEM) {
        bpe->unigram.scores[id] = value;
        return status;
    }
    return dp_why_set(why, DP_BADMSG, "tokenizer.json: token '%.*s' (id %u) %s",
                      (int)(text.size < QUOTE_MAX ? text.size : QUOTE_MAX), (const char *)text.data,
                      id, status == DP_EXISTS ? "stands there twice" : "is too long");
}

static dp_status fill_trie(dp_bpe *bpe, dp_why *why)
{
    dp_trie_entry *const entries = dp_alloc(bpe->count, sizeof *entries);
    if (entries == NULL) {
        return DP_NOMEM;
    }
    for (uint32_t id = 0; id < bpe->count; id++) {
        entries[id] = (dp_trie_entry){.text = bpe->tokens[id], .value = id};
    }
    const dp_status status = dp_trie_fill(&bpe->unigram.trie, entries, bpe->count);
    dp_free(entries);
    return status == DP_TOOBIG
               ? dp_why_set(why, DP_BADMSG, "tokenizer.json: its tokens are too long together")
               : status;
}

static dp_status read_unigram(dp_bpe *bpe, const json_t *model, dp_why *why)
{
    const json_t *const vocab = json_object_get(model, "vocab");
    const json_t *const unknown = json_object_get(model, "unk_id");
    const size_t count = json_array_size(vocab);
    dp_unigram *const u = &bpe->unigram;
    if (count == 0 || count > DP_BPE_TOKENS_MAX || !json_is_integer(unknown) ||
        json_integer_value(unknown) < 0 || (size_t)json_integer_value(unknown) >= count) {
        return dp_why_set(
            why, DP_BADMSG,
            "tokenizer.json: model needs a vocab of 1 to %d pairs and an unk_id in it",
            DP_BPE_TOKENS_MAX);
    }
    if (bpe->bytes || json_number_value(json_object_get(model, "alpha")) != 0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "tokenizer.json: model is a Unigram with %s, " DP_JSON_UNDONE,
                          bpe->bytes ? "a ByteLevel pre_tokenizer" : "alpha");
    }
    u->scores = dp_alloc(count, sizeof *u->scores);
    if (u->scores == NULL) {
        return DP_NOMEM;
    }
    double least = HUGE_VAL;
    for (uint32_t id = 0; id < count; id++) {
        DP_TRY(read_scored(bpe, json_array_get(vocab, id), id, why));
        least = u->scores[id] < least ? u->scores[id] : least;
    }
    u->count = (uint32_t)count;
    u->unknown = (uint32_t)json_integer_value(unknown);
    u->unknown_score = least - DP_UNIGRAM_UNKNOWN_PENALTY;
    bpe->unknown = u->unknown;
    bpe->byte_fallback = dp_json_flag(model, "byte_fallback", false);
    bpe->model = DP_BPE_UNIGRAM;
    return fill_trie(bpe, why);
}

/* Older files do not name the type. */
static dp_status read_model(dp_bpe *bpe, const json_t *root, dp_why *why)
{
    const json_t *const model = json_object_get(root, "model");
    const bool named = json_object_get(model, "type") != NULL;
    if (!json_is_object(model)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json has no model");
    }
    if (dp_json_has_type(model, "Unigram") ||
        (!named && json_is_array(json_object_get(model, "vocab")))) {
        return read_unigram(bpe, model, why);
    }
    return dp_json_has_type(model, "BPE") || !named ? read_bpe(bpe, root, model, why)
                                                    : dp_json_unknown("model", model, why);
}

/* ---- The file. */

static int append_json(const char *bytes, size_t size, void *out)
{
    return dp_buf_append(out, dp_view_of(bytes, size)) == DP_OK ? 0 : -1;
}

/* Keeps the parts around the model as they are, for dp_bpe_save. */
static dp_status keep_parts(dp_bpe *bpe, const json_t *root)
{
    static const char *const names[DP_PARTS] = {[DP_PART_NORMALIZER] = "normalizer",
                                                [DP_PART_PRE_TOKENIZER] = "pre_tokenizer",
                                                [DP_PART_POST_PROCESSOR] = "post_processor",
                                                [DP_PART_DECODER] = "decoder"};
    for (unsigned i = 0; i < DP_PARTS; i++) {
        const json_t *const part = json_object_get(root, names[i]);
        if (part == NULL) {
            DP_TRY(dp_buf_append(&bpe->parts[i], dp_view_text("null")));
        } else if (json_dump_callback(part, append_json, &bpe->parts[i],
                                      JSON_COMPACT | JSON_ENCODE_ANY) != 0) {
            return DP_NOMEM;
        }
    }
    return DP_OK;
}

static dp_status check_ends(const dp_bpe *bpe, dp_why *why)
{
    const dp_bpe_ends *const e = &bpe->ends;
    for (unsigned i = 0; i < e->n_before + e->n_after; i++) {
        const uint32_t id = i < e->n_before ? e->before[i] : e->after[i - e->n_before];
        if (dp_bpe_token(bpe, id).size == 0) {
            return dp_why_set(why, DP_BADMSG,
                              "tokenizer.json: post_processor adds token %u, which is none", id);
        }
    }
    return DP_OK;
}

static dp_status read_root(dp_bpe *bpe, const json_t *root, dp_why *why)
{
    DP_TRY(dp_json_normalizer(root, &bpe->normalizer, why));
    DP_TRY(dp_json_pre_tokenizer(root, &bpe->pieces, &bpe->bytes, why));
    DP_TRY(dp_json_decoder(root, bpe->bytes, &bpe->decoder, why));
    DP_TRY(dp_json_post_processor(root, &bpe->ends, why));
    DP_TRY(read_model(bpe, root, why));
    const json_t *const vocab = json_object_get(json_object_get(root, "model"), "vocab");
    DP_TRY(read_all_added(bpe, root, vocab, why));
    DP_TRY(check_ends(bpe, why));
    DP_TRY(keep_parts(bpe, root));
    const dp_status sealed = dp_bpe_seal(bpe);
    if (sealed == DP_NOTFOUND) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json: some byte has no token");
    }
    DP_TRY(sealed);
    return check_numbers(bpe, json_object_get(root, "added_tokens"), vocab, why);
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
