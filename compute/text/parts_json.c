#include "compute/text/parts_json.h"

#include <stdio.h>
#include <string.h>

#include "base/assert.h"
#include "compute/unicode/pattern.h"

enum { PARTS_MAX = 32, PLACE_MAX = 96, TYPE_QUOTE_MAX = 40 };

/* A part of a list, or the only one. */
typedef struct json_part {
    const json_t *object;
    char place[PLACE_MAX];
} json_part;

dp_view dp_json_view(const json_t *string)
{
    return dp_view_of(json_string_value(string), json_string_length(string));
}

bool dp_json_has_type(const json_t *object, const char *type)
{
    const char *const text = json_string_value(json_object_get(object, "type"));
    return text != NULL && strcmp(text, type) == 0;
}

bool dp_json_flag(const json_t *object, const char *key, bool standard)
{
    const json_t *const value = json_object_get(object, key);
    return json_is_boolean(value) ? json_is_true(value) : standard;
}

dp_status dp_json_unknown(const char *place, const json_t *object, dp_why *why)
{
    const char *const type = json_string_value(json_object_get(object, "type"));
    if (!json_is_object(object)) {
        return dp_why_set(why, DP_BADMSG, "tokenizer.json: %s is no object", place);
    }
    return dp_why_set(why, DP_UNSUPPORTED,
                      "tokenizer.json: %s has the type '%.*s', " DP_JSON_UNDONE, place,
                      TYPE_QUOTE_MAX, type != NULL ? type : "");
}

static dp_status damaged(const json_part *part, const char *what, dp_why *why)
{
    return dp_why_set(why, DP_BADMSG, "tokenizer.json: %s %s", part->place, what);
}

static dp_status undone(const json_part *part, const char *what, dp_why *why)
{
    return dp_why_set(why, DP_UNSUPPORTED, "tokenizer.json: %s %s, " DP_JSON_UNDONE, part->place,
                      what);
}

/* Puts the parts of a Sequence in its place. */
static dp_status unfold(json_part *parts, unsigned *count, unsigned at, const char *list,
                        dp_why *why)
{
    const json_part whole = parts[at];
    const json_t *const items = json_object_get(whole.object, list);
    const size_t n = json_array_size(items);
    if (!json_is_array(items) || n + *count - 1 > PARTS_MAX) {
        return damaged(&whole, "needs a list of at most 32 parts", why);
    }
    memmove(parts + at + n, parts + at + 1, (*count - at - 1) * sizeof *parts);
    *count = *count - 1 + (unsigned)n;
    for (size_t i = 0; i < n; i++) {
        json_part *const p = &parts[at + i];
        p->object = json_array_get(items, i);
        const int size = snprintf(p->place, sizeof p->place, "%s.%s[%zu]", whole.place, list, i);
        if (size < 0 || (size_t)size >= sizeof p->place) {
            return damaged(&whole, "has lists within lists", why);
        }
    }
    return DP_OK;
}

/* A part of the file as a list, without those that are null. Each unfolding takes a list away. */
static dp_status list_parts(const json_t *root, const char *name, const char *list,
                            json_part parts[PARTS_MAX], unsigned *count, dp_why *why)
{
    const json_t *const object = json_object_get(root, name);
    *count = object != NULL && !json_is_null(object);
    if (*count == 0) {
        return DP_OK;
    }
    parts[0].object = object;
    snprintf(parts[0].place, sizeof parts[0].place, "%s", name);
    for (unsigned at = 0; at < *count;) {
        if (dp_json_has_type(parts[at].object, "Sequence")) {
            DP_TRY(unfold(parts, count, at, list, why));
        } else {
            at++;
        }
    }
    return DP_OK;
}

/* {"String": text} or {"Regex": text}. */
static bool read_pattern(const json_t *part, dp_view *text, dp_pattern_kind *kind)
{
    const json_t *const pattern = json_object_get(part, "pattern");
    const json_t *const literal = json_object_get(pattern, "String");
    const json_t *const regex = json_object_get(pattern, "Regex");
    *kind = json_is_string(literal) ? DP_PATTERN_LITERAL : DP_PATTERN_REGEX;
    *text = dp_json_view(json_is_string(literal) ? literal : regex);
    return text->size > 0 && text->size <= DP_PATTERN_BYTES_MAX;
}

/* ---- Normalizer. */

static dp_status copy(dp_buf *out, dp_view bytes)
{
    dp_buf_init(out, DP_PATTERN_BYTES_MAX);
    return dp_buf_append(out, bytes);
}

static dp_status read_replace(const json_part *part, dp_normalizer_step *step, dp_why *why)
{
    dp_view pattern;
    const json_t *const content = json_object_get(part->object, "content");
    if (!read_pattern(part->object, &pattern, &step->pattern_kind) || !json_is_string(content)) {
        return damaged(part, "needs a pattern and a content", why);
    }
    if (json_string_length(content) > DP_NORMALIZER_CONTENT_MAX) {
        return damaged(part, "has too long a content", why);
    }
    DP_TRY(copy(&step->pattern, pattern));
    return copy(&step->content, dp_json_view(content));
}

static dp_status read_prepend(const json_part *part, dp_normalizer_step *step, dp_why *why)
{
    const dp_view text = dp_json_view(json_object_get(part->object, "prepend"));
    if (text.size == 0 || text.size > DP_NORMALIZER_CONTENT_MAX) {
        return damaged(part, "needs a short text to prepend", why);
    }
    return copy(&step->content, text);
}

static dp_status read_precompiled(const json_part *part, dp_normalizer_step *step, dp_why *why)
{
    dp_why inner = {{0}};
    const dp_status status = dp_charsmap_open(
        &step->map, dp_json_view(json_object_get(part->object, "precompiled_charsmap")), &inner);
    return status == DP_OK || status == DP_NOMEM
               ? status
               : dp_why_set(why, status, "tokenizer.json: %s, precompiled_charsmap: %.200s",
                            part->place, inner.text);
}

static dp_status read_normalizer(const json_part *part, dp_normalizer_step *step, dp_why *why)
{
    const char *const type = json_string_value(json_object_get(part->object, "type"));
    if (type == NULL || !dp_normalizer_kind_of(type, &step->kind)) {
        return dp_json_unknown(part->place, part->object, why);
    }
    step->left = dp_json_flag(part->object, "strip_left", false);
    step->right = dp_json_flag(part->object, "strip_right", false);
    if (step->kind == DP_NORMALIZER_REPLACE) {
        return read_replace(part, step, why);
    }
    if (step->kind == DP_NORMALIZER_PREPEND) {
        return read_prepend(part, step, why);
    }
    return step->kind == DP_NORMALIZER_PRECOMPILED ? read_precompiled(part, step, why) : DP_OK;
}

static dp_status check_normalizer(const dp_normalizer_steps *steps, dp_why *why)
{
    dp_why inner = {{0}};
    dp_normalizer *normalizer;
    const dp_status status = dp_normalizer_open(&normalizer, steps, &inner);
    if (status != DP_OK) {
        return status == DP_NOMEM
                   ? status
                   : dp_why_set(why, status, "tokenizer.json: normalizer, %.300s, " DP_JSON_UNDONE,
                                inner.text);
    }
    dp_normalizer_close(normalizer);
    return DP_OK;
}

dp_status dp_json_normalizer(const json_t *root, dp_normalizer_steps *steps, dp_why *why)
{
    json_part parts[PARTS_MAX];
    unsigned count;
    DP_TRY(list_parts(root, "normalizer", "normalizers", parts, &count, why));
    for (unsigned i = 0; i < count; i++) {
        if (steps->count == DP_NORMALIZER_STEPS_MAX) {
            return damaged(&parts[i], "is one step too many", why);
        }
        steps->count++; /* A step that fails is closed with the others. */
        DP_TRY(read_normalizer(&parts[i], &steps->items[i], why));
    }
    return check_normalizer(steps, why);
}

/* ---- Pre-tokenizer. */

static bool behavior_of(const json_t *name, dp_split_behavior *behavior)
{
    static const char *const names[] = {[DP_SPLIT_ISOLATED] = "Isolated",
                                        [DP_SPLIT_REMOVED] = "Removed",
                                        [DP_SPLIT_CONTIGUOUS] = "Contiguous",
                                        [DP_SPLIT_MERGED_WITH_PREVIOUS] = "MergedWithPrevious",
                                        [DP_SPLIT_MERGED_WITH_NEXT] = "MergedWithNext"};
    for (unsigned i = 0; json_is_string(name) && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], json_string_value(name)) == 0) {
            *behavior = (dp_split_behavior)i;
            return true;
        }
    }
    return false;
}

typedef dp_status read_step(const json_part *part, dp_pretokenizer_step *step, dp_view *pattern,
                            dp_why *why);

static dp_status read_byte_level(const json_part *part, dp_pretokenizer_step *step,
                                 dp_view *pattern, dp_why *why)
{
    (void)why;
    if (dp_json_flag(part->object, "add_prefix_space", true)) {
        step->prefix = DP_PREFIX_ALWAYS;
        step->mark[0] = ' ';
        step->mark_bytes = 1;
    }
    if (dp_json_flag(part->object, "use_regex", true)) {
        *pattern = dp_view_text(DP_PRETOKENIZER_GPT2);
        step->kind = DP_PATTERN_REGEX;
    }
    return DP_OK;
}

static dp_status read_split(const json_part *part, dp_pretokenizer_step *step, dp_view *pattern,
                            dp_why *why)
{
    step->invert = dp_json_flag(part->object, "invert", false);
    if (!read_pattern(part->object, pattern, &step->kind) ||
        !behavior_of(json_object_get(part->object, "behavior"), &step->behavior)) {
        return damaged(part, "needs a pattern and a behavior that is known", why);
    }
    return DP_OK;
}

static dp_status read_digits(const json_part *part, dp_pretokenizer_step *step, dp_view *pattern,
                             dp_why *why)
{
    (void)why;
    *pattern = dp_view_text("\\p{N}");
    step->kind = DP_PATTERN_OURS;
    step->behavior = dp_json_flag(part->object, "individual_digits", false) ? DP_SPLIT_ISOLATED
                                                                            : DP_SPLIT_CONTIGUOUS;
    return DP_OK;
}

static dp_status read_punctuation(const json_part *part, dp_pretokenizer_step *step,
                                  dp_view *pattern, dp_why *why)
{
    const json_t *const behavior = json_object_get(part->object, "behavior");
    *pattern = dp_view_text("[!-/:-@\\[-`{-~\\p{P}]");
    step->kind = DP_PATTERN_OURS;
    if (behavior != NULL && !behavior_of(behavior, &step->behavior)) {
        return damaged(part, "needs a behavior that is known", why);
    }
    return DP_OK;
}

static dp_status read_white_space(const json_part *part, dp_pretokenizer_step *step,
                                  dp_view *pattern, dp_why *why)
{
    (void)part;
    (void)why;
    *pattern = dp_view_text("[" DP_PATTERN_SPACE "]");
    step->kind = DP_PATTERN_OURS;
    step->behavior = DP_SPLIT_REMOVED;
    return DP_OK;
}

/* Words and what stands between words and white space; with the joiners, as in Rust's regex. */
#define WORD DP_PATTERN_WORD "\\x{200c}\\x{200d}"

static dp_status read_words(const json_part *part, dp_pretokenizer_step *step, dp_view *pattern,
                            dp_why *why)
{
    (void)part;
    (void)why;
    *pattern = dp_view_text("[" WORD "]+|[^" WORD DP_PATTERN_SPACE "]+");
    step->kind = DP_PATTERN_OURS;
    step->behavior = DP_SPLIT_REMOVED;
    step->invert = true;
    return DP_OK;
}

/* A text of one character. */
static bool is_char(dp_view text)
{
    size_t marks = 0;
    for (size_t i = 0; i < text.size; i++) {
        marks += (text.data[i] & 0xc0U) != 0x80U;
    }
    return marks == 1 && text.size <= DP_MARK_BYTES_MAX;
}

static dp_status read_delimiter(const json_part *part, dp_pretokenizer_step *step, dp_view *pattern,
                                dp_why *why)
{
    *pattern = dp_json_view(json_object_get(part->object, "delimiter"));
    step->kind = DP_PATTERN_LITERAL;
    step->behavior = DP_SPLIT_REMOVED;
    return is_char(*pattern) ? DP_OK : damaged(part, "needs a delimiter of one character", why);
}

/* Of a Metaspace. An older key must not contradict. */
static dp_status read_prefix(const json_part *part, dp_prefix *prefix, dp_why *why)
{
    static const char *const names[] = {
        [DP_PREFIX_NEVER] = "never", [DP_PREFIX_FIRST] = "first", [DP_PREFIX_ALWAYS] = "always"};
    const json_t *const name = json_object_get(part->object, "prepend_scheme");
    bool known = name == NULL;
    *prefix = DP_PREFIX_ALWAYS;
    for (unsigned i = 0; json_is_string(name) && i < sizeof names / sizeof *names; i++) {
        if (strcmp(names[i], json_string_value(name)) == 0) {
            *prefix = (dp_prefix)i;
            known = true;
        }
    }
    if (!known ||
        (!dp_json_flag(part->object, "add_prefix_space", true) && *prefix != DP_PREFIX_NEVER)) {
        return damaged(part, "needs a prepend_scheme of always, first or never", why);
    }
    return DP_OK;
}

static dp_status read_metaspace(const json_part *part, dp_pretokenizer_step *step, dp_view *pattern,
                                dp_why *why)
{
    const dp_view mark = dp_json_view(json_object_get(part->object, "replacement"));
    if (!is_char(mark)) {
        return damaged(part, "needs a replacement of one character", why);
    }
    memcpy(step->mark, mark.data, mark.size);
    step->mark_bytes = (uint8_t)mark.size;
    step->replaces = true;
    if (dp_json_flag(part->object, "split", true)) {
        *pattern = mark;
        step->kind = DP_PATTERN_LITERAL;
        step->behavior = DP_SPLIT_MERGED_WITH_NEXT;
    }
    return read_prefix(part, &step->prefix, why);
}

static const struct {
    const char *type;
    read_step *read;
} pre_tokenizers[] = {
    {"ByteLevel", read_byte_level},
    {"Split", read_split},
    {"Digits", read_digits},
    {"Punctuation", read_punctuation},
    {"WhitespaceSplit", read_white_space},
    {"Whitespace", read_words},
    {"CharDelimiterSplit", read_delimiter},
    {"Metaspace", read_metaspace},
};

static dp_status add_step(const json_part *part, dp_pretokenizer_steps *steps, dp_why *why)
{
    dp_pretokenizer_step step = {.prefix = DP_PREFIX_NEVER};
    dp_view pattern = {NULL, 0};
    for (size_t i = 0; i < sizeof pre_tokenizers / sizeof *pre_tokenizers; i++) {
        if (!dp_json_has_type(part->object, pre_tokenizers[i].type)) {
            continue;
        }
        DP_TRY(pre_tokenizers[i].read(part, &step, &pattern, why));
        if (pattern.size == 0 && step.prefix == DP_PREFIX_NEVER && !step.replaces) {
            return DP_OK; /* It only says that pieces are bytes. */
        }
        const dp_status status = dp_pretokenizer_steps_add(steps, &step, pattern);
        return status == DP_TOOBIG ? damaged(part, "is one step too many", why) : status;
    }
    return dp_json_unknown(part->place, part->object, why);
}

static dp_status check_pre_tokenizer(const dp_pretokenizer_steps *steps, dp_why *why)
{
    dp_why inner = {{0}};
    dp_pretokenizer *pieces;
    const dp_status status = dp_pretokenizer_open(&pieces, steps, &inner);
    if (status != DP_OK) {
        return status == DP_NOMEM
                   ? status
                   : dp_why_set(why, status,
                                "tokenizer.json: pre_tokenizer, %.300s, " DP_JSON_UNDONE,
                                inner.text);
    }
    dp_pretokenizer_close(pieces);
    return DP_OK;
}

dp_status dp_json_pre_tokenizer(const json_t *root, dp_pretokenizer_steps *steps, bool *bytes,
                                dp_why *why)
{
    json_part parts[PARTS_MAX];
    unsigned count;
    *bytes = false;
    DP_TRY(list_parts(root, "pre_tokenizer", "pretokenizers", parts, &count, why));
    for (unsigned i = 0; i < count; i++) {
        if (*bytes) {
            return undone(&parts[i], "follows ByteLevel", why);
        }
        DP_TRY(add_step(&parts[i], steps, why));
        *bytes = dp_json_has_type(parts[i].object, "ByteLevel");
    }
    return check_pre_tokenizer(steps, why);
}

/* ---- Decoder. */

static bool take_text(dp_view text, uint8_t out[DP_DECODER_TEXT_MAX], uint8_t *size)
{
    if (text.size > DP_DECODER_TEXT_MAX) {
        return false;
    }
    if (text.size > 0) {
        memcpy(out, text.data, text.size);
    }
    *size = (uint8_t)text.size;
    return true;
}

static bool read_limit(const json_t *object, const char *key, uint32_t *limit)
{
    const json_int_t value = json_integer_value(json_object_get(object, key));
    *limit = value < 0 ? 0 : value > UINT16_MAX ? UINT16_MAX : (uint32_t)value;
    return value >= 0;
}

static dp_status read_decoder(const json_part *part, dp_decoder_step *step, dp_why *why)
{
    dp_view from = {NULL, 0};
    dp_prefix prefix = DP_PREFIX_NEVER;
    dp_pattern_kind kind = DP_PATTERN_LITERAL;
    bool right = true;
    if (step->kind == DP_DECODER_REPLACE) {
        right = read_pattern(part->object, &from, &kind) && kind == DP_PATTERN_LITERAL &&
                take_text(dp_json_view(json_object_get(part->object, "content")), step->to,
                          &step->to_bytes);
    } else if (step->kind == DP_DECODER_STRIP) {
        from = dp_json_view(json_object_get(part->object, "content"));
        right = is_char(from) && read_limit(part->object, "start", &step->start) &&
                read_limit(part->object, "stop", &step->stop);
    } else if (step->kind == DP_DECODER_METASPACE) {
        from = dp_json_view(json_object_get(part->object, "replacement"));
        DP_TRY(read_prefix(part, &prefix, why));
        step->drops = prefix != DP_PREFIX_NEVER;
        right = is_char(from);
    }
    if (!right || !take_text(from, step->from, &step->from_bytes)) {
        return undone(part, "has an unusual content", why);
    }
    return DP_OK;
}

dp_status dp_json_decoder(const json_t *root, bool bytes, dp_decoder *decoder, dp_why *why)
{
    json_part parts[PARTS_MAX];
    unsigned count;
    DP_TRY(list_parts(root, "decoder", "decoders", parts, &count, why));
    for (unsigned i = 0; i < count; i++) {
        const char *const type = json_string_value(json_object_get(parts[i].object, "type"));
        dp_decoder_step *const step = &decoder->items[decoder->count];
        if (decoder->count == DP_DECODER_STEPS_MAX) {
            return damaged(&parts[i], "is one step too many", why);
        }
        if (type == NULL || !dp_decoder_kind_of(type, &step->kind) ||
            bytes != (step->kind == DP_DECODER_BYTE_LEVEL)) {
            return dp_json_unknown(parts[i].place, parts[i].object, why);
        }
        DP_TRY(read_decoder(&parts[i], step, why));
        decoder->count++;
    }
    return DP_OK;
}

/* ---- Post-processor. */

static bool put_id(uint32_t ids[DP_BPE_ENDS_MAX], unsigned *count, const json_t *number)
{
    const json_int_t id = json_integer_value(number);
    if (!json_is_integer(number) || id < 0 || id >= DP_BPE_TOKENS_MAX ||
        *count == DP_BPE_ENDS_MAX) {
        return false;
    }
    ids[*count] = (uint32_t)id;
    (*count)++;
    return true;
}

/* "single": special tokens, the text, special tokens. */
static bool read_template(const json_t *object, dp_bpe_ends *ends)
{
    const json_t *const items = json_object_get(object, "single");
    const json_t *const tokens = json_object_get(object, "special_tokens");
    bool text = false;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *const item = json_array_get(items, i);
        const json_t *const special = json_object_get(item, "SpecialToken");
        const char *const name = json_string_value(json_object_get(special, "id"));
        if (json_object_get(item, "Sequence") != NULL && !text) {
            text = true;
            continue;
        }
        const json_t *const ids =
            name == NULL ? NULL : json_object_get(json_object_get(tokens, name), "ids");
        for (size_t j = 0; j < json_array_size(ids); j++) {
            const json_t *const id = json_array_get(ids, j);
            if (!(text ? put_id(ends->after, &ends->n_after, id)
                       : put_id(ends->before, &ends->n_before, id))) {
                return false;
            }
        }
        if (json_array_size(ids) == 0) {
            return false;
        }
    }
    return text;
}

/* "cls" before and "sep" after, each a pair of text and id. */
static bool read_pair(const json_t *object, dp_bpe_ends *ends)
{
    return put_id(ends->before, &ends->n_before,
                  json_array_get(json_object_get(object, "cls"), 1)) &&
           put_id(ends->after, &ends->n_after, json_array_get(json_object_get(object, "sep"), 1));
}

dp_status dp_json_post_processor(const json_t *root, dp_bpe_ends *ends, dp_why *why)
{
    json_part parts[PARTS_MAX];
    unsigned count;
    DP_TRY(list_parts(root, "post_processor", "processors", parts, &count, why));
    for (unsigned i = 0; i < count; i++) {
        const json_t *const object = parts[i].object;
        const bool template = dp_json_has_type(object, "TemplateProcessing");
        const bool pair = dp_json_has_type(object, "RobertaProcessing") ||
                          dp_json_has_type(object, "BertProcessing");
        if (dp_json_has_type(object, "ByteLevel")) {
            continue; /* It is about offsets. */
        }
        if (!template && !pair) {
            return dp_json_unknown(parts[i].place, object, why);
        }
        if (ends->n_before + ends->n_after > 0 ||
            !(template ? read_template(object, ends) : read_pair(object, ends))) {
            return damaged(&parts[i], "is no single text between at most 4 tokens each", why);
        }
    }
    return DP_OK;
}
