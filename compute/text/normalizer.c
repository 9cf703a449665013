#include "compute/text/normalizer.h"

#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "compute/unicode/utf8.h"

struct dp_normalizer {
    const dp_normalizer_steps *steps;
    dp_matcher *matchers[DP_NORMALIZER_STEPS_MAX]; /* of steps that replace a regular expression */
    dp_buf texts[2];                               /* written by turns */
    dp_buf start;                                  /* what becomes of the first bytes alone */
    size_t first; /* bytes of the text of now that come from its first character */
};

typedef dp_status apply_step(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                             dp_why *why);

static dp_status append_code(dp_buf *out, uint32_t code)
{
    utf8proc_uint8_t bytes[4];
    const utf8proc_ssize_t size = utf8proc_encode_char((utf8proc_int32_t)code, bytes);
    return dp_buf_append(out, dp_view_of(bytes, (size_t)size));
}

static dp_status apply_form(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out, dp_why *why)
{
    static const dp_normal_form forms[] = {[DP_NORMALIZER_NFC] = DP_NFC,
                                           [DP_NORMALIZER_NFD] = DP_NFD,
                                           [DP_NORMALIZER_NFKC] = DP_NFKC,
                                           [DP_NORMALIZER_NFKD] = DP_NFKD};
    return dp_normal_form_append(forms[n->steps->items[step].kind], text, out, why);
}

/* U+0130 is the only character of two lower ones (SpecialCasing.txt, without conditions). */
static dp_status apply_lowercase(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                                 dp_why *why)
{
    (void)n;
    (void)step;
    (void)why;
    for (size_t at = 0; at < text.size;) {
        size_t size;
        const uint32_t code = dp_utf8_char(text, at, &size);
        if (code == 0x130) {
            DP_TRY(dp_buf_append(out, dp_view_text("i\xcc\x87")));
        } else {
            DP_TRY(append_code(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code)));
        }
        at += size;
    }
    return DP_OK;
}

static dp_status apply_strip(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                             dp_why *why)
{
    const dp_normalizer_step *const s = &n->steps->items[step];
    size_t begin = 0;
    size_t end = text.size;
    size_t size;
    (void)why;
    while (s->left && begin < end && dp_utf8_is_space(dp_utf8_char(text, begin, &size))) {
        begin += size;
    }
    while (s->right && end > begin) {
        const size_t last = dp_utf8_before(text, end);
        if (!dp_utf8_is_space(dp_utf8_char(text, last, &size))) {
            break;
        }
        end = last;
    }
    n->first = n->first > begin ? n->first - begin : 0;
    return dp_buf_append(out, dp_view_of(text.data + begin, end - begin));
}

static bool is_mark(uint32_t code)
{
    const utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)code);
    return category == UTF8PROC_CATEGORY_MN || category == UTF8PROC_CATEGORY_MC ||
           category == UTF8PROC_CATEGORY_ME;
}

static dp_status apply_strip_accents(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                                     dp_why *why)
{
    (void)n;
    (void)step;
    (void)why;
    for (size_t at = 0; at < text.size;) {
        size_t size;
        if (!is_mark(dp_utf8_char(text, at, &size))) {
            DP_TRY(dp_buf_append(out, dp_view_of(text.data + at, size)));
        }
        at += size;
    }
    return DP_OK;
}

static bool in_ranges(const uint32_t (*ranges)[2], size_t count, uint32_t code)
{
    for (size_t i = 0; i < count; i++) {
        if (code >= ranges[i][0] && code <= ranges[i][1]) {
            return true;
        }
    }
    return false;
}

/* The rules that SentencePiece calls nmt, as Hugging Face's tokenizers list them. */
static dp_status apply_nmt(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out, dp_why *why)
{
    static const uint32_t gone[][2] = {{1, 8},       {0xb, 0xb},   {0xe, 0x1f},
                                       {0x7f, 0x7f}, {0x8f, 0x8f}, {0x9f, 0x9f}};
    static const uint32_t spaces[][2] = {{9, 10},          {12, 13},         {0x1680, 0x1680},
                                         {0x200b, 0x200f}, {0x2028, 0x2029}, {0x2581, 0x2581},
                                         {0xfeff, 0xfeff}, {0xfffd, 0xfffd}};
    (void)n;
    (void)step;
    (void)why;
    for (size_t at = 0; at < text.size;) {
        size_t size;
        const uint32_t code = dp_utf8_char(text, at, &size);
        if (in_ranges(gone, sizeof gone / sizeof *gone, code)) {
            at += size;
            continue;
        }
        if (in_ranges(spaces, sizeof spaces / sizeof *spaces, code)) {
            DP_TRY(dp_buf_append(out, dp_view_text(" ")));
        } else {
            DP_TRY(dp_buf_append(out, dp_view_of(text.data + at, size)));
        }
        at += size;
    }
    return DP_OK;
}

/* Where pattern stands at or after at. DP_NOTFOUND: nowhere. */
static dp_status find(dp_normalizer *n, unsigned step, dp_view text, size_t at, size_t *begin,
                      size_t *end, dp_why *why)
{
    const dp_normalizer_step *const s = &n->steps->items[step];
    if (s->pattern_kind == DP_PATTERN_REGEX) {
        return dp_matcher_find(n->matchers[step], text, at, begin, end, why);
    }
    const uint8_t *const found =
        s->pattern.size == 1
            ? memchr(text.data + at, s->pattern.data[0], text.size - at)
            : memmem(text.data + at, text.size - at, s->pattern.data, s->pattern.size);
    if (found == NULL) {
        return DP_NOTFOUND;
    }
    *begin = (size_t)(found - text.data);
    *end = *begin + s->pattern.size;
    return DP_OK;
}

/* A replacement of several characters counts as coming from the last of them. first: of the text
 * before. */
static size_t first_after(size_t first, size_t now, size_t begin, size_t end, size_t content)
{
    if (begin >= first) {
        return now;
    }
    return end <= first ? now + content - (end - begin) : now - (first - begin);
}

static dp_status apply_replace(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                               dp_why *why)
{
    const dp_view content = dp_buf_view(&n->steps->items[step].content);
    const size_t first = n->first;
    size_t at = 0;
    while (at < text.size) {
        size_t begin;
        size_t end;
        const dp_status status = find(n, step, text, at, &begin, &end, why);
        if (status == DP_NOTFOUND) {
            break;
        }
        DP_TRY(status);
        DP_TRY(dp_buf_append(out, dp_view_of(text.data + at, begin - at)));
        DP_TRY(dp_buf_append(out, content));
        n->first = first_after(first, n->first, begin, end, content.size);
        at = end;
    }
    return dp_buf_append(out, dp_view_of(text.data + at, text.size - at));
}

static dp_status apply_prepend(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                               dp_why *why)
{
    const dp_view content = dp_buf_view(&n->steps->items[step].content);
    (void)why;
    n->first += n->first > 0 ? content.size : 0;
    DP_TRY(dp_buf_append(out, content));
    return dp_buf_append(out, text);
}

static dp_status apply_precompiled(dp_normalizer *n, unsigned step, dp_view text, dp_buf *out,
                                   dp_why *why)
{
    (void)why;
    return dp_charsmap_append(n->steps->items[step].map, text, out);
}

static const struct {
    const char *type; /* in tokenizer.json */
    apply_step *apply;
    bool maps;  /* the first bytes become what they become alone */
    bool keeps; /* and if that is nothing, the next character counts as first */
} kinds[DP_NORMALIZER_KINDS] = {
    [DP_NORMALIZER_NFC] = {"NFC", apply_form, true, true},
    [DP_NORMALIZER_NFD] = {"NFD", apply_form, true, true},
    [DP_NORMALIZER_NFKC] = {"NFKC", apply_form, true, true},
    [DP_NORMALIZER_NFKD] = {"NFKD", apply_form, true, true},
    [DP_NORMALIZER_LOWERCASE] = {"Lowercase", apply_lowercase, true, true},
    [DP_NORMALIZER_STRIP] = {"Strip", apply_strip, false, false},
    [DP_NORMALIZER_STRIP_ACCENTS] = {"StripAccents", apply_strip_accents, true, false},
    [DP_NORMALIZER_NMT] = {"Nmt", apply_nmt, true, false},
    [DP_NORMALIZER_REPLACE] = {"Replace", apply_replace, false, false},
    [DP_NORMALIZER_PREPEND] = {"Prepend", apply_prepend, false, false},
    [DP_NORMALIZER_PRECOMPILED] = {"Precompiled", apply_precompiled, true, true},
};

void dp_normalizer_steps_close(dp_normalizer_steps *steps)
{
    for (unsigned i = 0; i < steps->count; i++) {
        dp_buf_close(&steps->items[i].pattern);
        dp_buf_close(&steps->items[i].content);
        dp_charsmap_close(steps->items[i].map);
    }
    *steps = (dp_normalizer_steps){.count = 0};
}

bool dp_normalizer_kind_of(const char *type, dp_normalizer_kind *kind)
{
    for (unsigned i = 0; i < DP_NORMALIZER_KINDS; i++) {
        if (strcmp(kinds[i].type, type) == 0) {
            *kind = (dp_normalizer_kind)i;
            return true;
        }
    }
    return false;
}

static dp_status open_matchers(dp_normalizer *n, dp_why *why)
{
    for (unsigned i = 0; i < n->steps->count; i++) {
        const dp_normalizer_step *const s = &n->steps->items[i];
        dp_why inner = {{0}};
        if (s->kind != DP_NORMALIZER_REPLACE || s->pattern_kind != DP_PATTERN_REGEX) {
            continue;
        }
        const dp_status status =
            dp_matcher_open(&n->matchers[i], dp_buf_view(&s->pattern), s->pattern_kind, &inner);
        if (status != DP_OK) {
            return status == DP_NOMEM ? status
                                      : dp_why_set(why, status, "step %u: %.300s", i, inner.text);
        }
    }
    return DP_OK;
}

dp_status dp_normalizer_open(dp_normalizer **out, const dp_normalizer_steps *steps, dp_why *why)
{
    dp_normalizer *const n = dp_alloc(1, sizeof *n);
    if (n == NULL) {
        return DP_NOMEM;
    }
    n->steps = steps;
    const dp_status status = open_matchers(n, why);
    if (status != DP_OK) {
        dp_normalizer_close(n);
        return status;
    }
    *out = n;
    return DP_OK;
}

void dp_normalizer_close(dp_normalizer *normalizer)
{
    if (normalizer == NULL) {
        return;
    }
    for (unsigned i = 0; i < normalizer->steps->count; i++) {
        dp_matcher_close(normalizer->matchers[i]);
    }
    dp_buf_close(&normalizer->start);
    dp_buf_close(&normalizer->texts[0]);
    dp_buf_close(&normalizer->texts[1]);
    dp_free(normalizer);
}

/* Follows the first bytes through a step, before the step is applied to the whole text. */
static dp_status follow_first(dp_normalizer *n, unsigned step, dp_view text, dp_why *why)
{
    const dp_normalizer_kind kind = n->steps->items[step].kind;
    n->first = n->first < text.size ? n->first : text.size;
    while (n->first < text.size && (text.data[n->first] & 0xc0U) == 0x80U) {
        n->first++; /* Whole characters. */
    }
    if (!kinds[kind].maps || n->first == 0) {
        return DP_OK;
    }
    dp_buf_clear(&n->start);
    n->start.max = DP_NORMALIZER_GROWTH_MAX * n->first;
    DP_TRY(kinds[kind].apply(n, step, dp_view_of(text.data, n->first), &n->start, why));
    n->first = n->start.size == 0 && kinds[kind].keeps ? 1 : n->start.size;
    return DP_OK;
}

dp_status dp_normalizer_apply(dp_normalizer *normalizer, dp_view text, dp_view *normal,
                              size_t *first, dp_why *why)
{
    dp_view now = text;
    normalizer->first = 0;
    if (text.size > 0) {
        (void)dp_utf8_char(text, 0, &normalizer->first);
    }
    for (unsigned i = 0; i < normalizer->steps->count && now.size > 0; i++) {
        dp_buf *const out = &normalizer->texts[i % 2];
        dp_buf_clear(out);
        out->max = DP_NORMALIZER_GROWTH_MAX * text.size + DP_NORMALIZER_CONTENT_MAX;
        dp_status status = follow_first(normalizer, i, now, why);
        if (status == DP_OK) {
            status = kinds[normalizer->steps->items[i].kind].apply(normalizer, i, now, out, why);
        }
        if (status == DP_TOOBIG && why != NULL && why->text[0] == '\0') {
            return dp_why_set(why, status, "the text grows to more than %d times its size",
                              DP_NORMALIZER_GROWTH_MAX);
        }
        DP_TRY(status);
        now = dp_buf_view(out);
    }
    *normal = now;
    *first = normalizer->first < now.size ? normalizer->first : now.size;
    return DP_OK;
}
