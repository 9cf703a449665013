#include "compute/unicode/utf8.h"

#include <stdint.h>
#include <string.h>
#include <utf8proc.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Bytes from here on begin characters that a form may change, or that join the one before. The
 * first mark is U+0300, cc 80; below it every character is its own NFC and joins none before it, so
 * text may be cut in front of one. In the other forms that holds for ASCII alone. */
typedef struct form_rule {
    uint8_t high;
    utf8proc_option_t options;
} form_rule;

static const form_rule rules[] = {
    [DP_NFC] = {0xcc, UTF8PROC_STABLE | UTF8PROC_COMPOSE},
    [DP_NFD] = {0xc0, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
    [DP_NFKC] = {0xc0, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
    [DP_NFKD] = {0xc0, UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT},
};

/* Bytes of the sequence that starts at at, or 0 if it is malformed. */
static size_t sequence_size(const uint8_t *at, size_t left)
{
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const uint8_t first = at[0];
    if (first < 0x80) {
        return 1;
    }
    const size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || size > left) {
        return 0;
    }
    uint32_t code = first & (0x7fU >> size);
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (at[i] & 0x3fU);
    }
    const bool surrogate = code >= 0xd800 && code < 0xe000;
    return code < least[size] || code > 0x10ffff || surrogate ? 0 : size;
}

static bool eight_are_ascii(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return (word & 0x8080808080808080U) == 0;
}

size_t dp_utf8_bad_at(dp_view text)
{
    size_t at = 0;
    while (at < text.size) {
        if (text.size - at >= 8 && eight_are_ascii(text.data + at)) {
            at += 8;
            continue;
        }
        const size_t size = sequence_size(text.data + at, text.size - at);
        if (size == 0) {
            return at;
        }
        at += size;
    }
    return at;
}

size_t dp_utf8_fit(dp_view text, size_t most)
{
    if (text.size <= most) {
        return text.size;
    }
    size_t size = most;
    while (size > 0 && (text.data[size] & 0xc0U) == 0x80U) {
        size--;
    }
    return size;
}

dp_status dp_utf8_check(dp_view text, dp_why *why)
{
    const size_t bad = dp_utf8_bad_at(text);
    if (bad < text.size) {
        return dp_why_set(
            why, DP_BADMSG,
            "the text is not UTF-8 at byte %zu; convert it first, for example with iconv", bad);
    }
    return DP_OK;
}

/* Continuation bytes start none. */
static bool starts_low(const form_rule *rule, uint8_t byte)
{
    return byte < 0x80 || (byte >= 0xc0 && byte < rule->high);
}

/* End of the stretch that starts at at and needs no look: low characters, without the last one,
 * which a mark may follow. */
static size_t skip_low(const form_rule *rule, dp_view text, size_t at)
{
    size_t last = at;
    while (at < text.size) {
        if (text.size - at >= 8 && eight_are_ascii(text.data + at)) {
            at += 8;
            last = at - 1;
            continue;
        }
        if (!starts_low(rule, text.data[at])) {
            return last;
        }
        last = at;
        at += text.data[at] < 0x80 ? 1 : 2;
    }
    return at;
}

/* From at, which may be one low character with marks, to the next low character. */
static size_t end_of_high(const form_rule *rule, dp_view text, size_t at)
{
    at++;
    while (at < text.size && !starts_low(rule, text.data[at])) {
        at++;
    }
    return at;
}

static dp_status check_marks(dp_view text, dp_why *why)
{
    size_t marks = 0;
    for (size_t at = 0; at < text.size;) {
        utf8proc_int32_t code;
        const utf8proc_ssize_t size =
            utf8proc_iterate(text.data + at, (utf8proc_ssize_t)(text.size - at), &code);
        dp_assert(size > 0);
        marks = utf8proc_get_property(code)->combining_class == 0 ? 0 : marks + 1;
        if (marks > DP_MARKS_MAX) {
            return dp_why_set(why, DP_BADMSG, "the text has more than %d combining marks in a row",
                              DP_MARKS_MAX);
        }
        at += (size_t)size;
    }
    return DP_OK;
}

static dp_status rewrite(utf8proc_option_t options, dp_view text, dp_buf *out, dp_why *why)
{
    const utf8proc_ssize_t size = (utf8proc_ssize_t)text.size;
    DP_TRY(check_marks(text, why));
    const utf8proc_ssize_t count = utf8proc_decompose(text.data, size, NULL, 0, options);
    if (count < 0) {
        return DP_TOOBIG;
    }
    /* Encoding in place needs a byte more than the code points take. */
    utf8proc_int32_t *const codes = dp_alloc((size_t)count + 1, sizeof *codes);
    if (codes == NULL) {
        return DP_NOMEM;
    }
    const utf8proc_ssize_t again = utf8proc_decompose(text.data, size, codes, count, options);
    dp_assert(again == count);
    const utf8proc_ssize_t made = utf8proc_reencode(codes, count, options);
    dp_assert(made >= 0);
    const dp_status status = dp_buf_append(out, dp_view_of(codes, (size_t)made));
    dp_free(codes);
    return status;
}

dp_status dp_normal_form_append(dp_normal_form form, dp_view text, dp_buf *out, dp_why *why)
{
    const form_rule *const rule = &rules[form];
    const size_t before = out->size;
    dp_status status = DP_OK;
    for (size_t at = 0; at < text.size && status == DP_OK;) {
        size_t end = skip_low(rule, text, at);
        if (end > at) {
            status = dp_buf_append(out, dp_view_of(text.data + at, end - at));
        } else {
            end = end_of_high(rule, text, at);
            status = rewrite(rule->options, dp_view_of(text.data + at, end - at), out, why);
        }
        at = end;
    }
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}

bool dp_utf8_is_space(uint32_t code)
{
    static const uint16_t spaces[] = {0x20,   0x85,   0xa0,   0x1680, 0x2028,
                                      0x2029, 0x202f, 0x205f, 0x3000};
    if ((code >= 9 && code <= 13) || (code >= 0x2000 && code <= 0x200a)) {
        return true;
    }
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++) {
        if (spaces[i] == code) {
            return true;
        }
    }
    return false;
}

uint32_t dp_utf8_char(dp_view text, size_t at, size_t *size)
{
    utf8proc_int32_t code;
    const utf8proc_ssize_t bytes =
        utf8proc_iterate(text.data + at, (utf8proc_ssize_t)(text.size - at), &code);
    dp_assert(bytes > 0);
    *size = (size_t)bytes;
    return (uint32_t)code;
}

size_t dp_utf8_before(dp_view text, size_t at)
{
    dp_assert(at > 0);
    size_t before = at - 1;
    while (before > 0 && (text.data[before] & 0xc0U) == 0x80U) {
        before--;
    }
    return before;
}
