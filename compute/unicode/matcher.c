#include "compute/unicode/matcher.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/unicode/pattern.h"

/* Steps of one match. The published patterns go through a piece a few times at most; one that was
 * made to go back and forth stops here, and so does the whole text. */
enum {
    STEPS_LEAST = 1 << 16,
    STEPS_PER_BYTE = 16, /* of the text that is left */
    STEPS_MOST = 4 * DP_PIECE_BYTES_MAX
};

struct dp_matcher {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
};

static dp_status compile(dp_matcher *m, dp_view pattern, dp_why *why)
{
    int error;
    PCRE2_SIZE where;
    uint32_t unicode = 0;
    uint32_t empty = 0;
    if (pcre2_config(PCRE2_CONFIG_UNICODE, &unicode) < 0 || unicode == 0) {
        return dp_why_set(why, DP_UNSUPPORTED, "this build of pcre2 has no Unicode support");
    }
    m->code = pcre2_compile((PCRE2_SPTR)pattern.data, pattern.size, PCRE2_UTF | PCRE2_UCP, &error,
                            &where, NULL);
    if (m->code == NULL) {
        char text[128];
        pcre2_get_error_message(error, (PCRE2_UCHAR *)text, sizeof text);
        return dp_why_set(why, DP_UNSUPPORTED, "pcre2 does not take the pattern: %s", text);
    }
    if (pcre2_pattern_info(m->code, PCRE2_INFO_MATCHEMPTY, &empty) != 0 || empty != 0) {
        return dp_why_set(why, DP_UNSUPPORTED, "the pattern may match the empty text");
    }
    /* Without a compiler for this machine the interpreter does the same, slower. */
    if (pcre2_jit_compile(m->code, PCRE2_JIT_COMPLETE) != 0) {
        error = 0;
    }
    m->match = pcre2_match_data_create_from_pattern(m->code, NULL);
    m->context = pcre2_match_context_create(NULL);
    return m->match == NULL || m->context == NULL ? DP_NOMEM : DP_OK;
}

static dp_status translate(dp_view pattern, dp_pattern_kind kind, dp_buf *out, dp_why *why)
{
    switch (kind) {
    case DP_PATTERN_REGEX:
        return dp_pattern_translate(pattern, out, why);
    case DP_PATTERN_LITERAL:
        return dp_pattern_quote(pattern, out);
    case DP_PATTERN_OURS:
        return dp_buf_append(out, pattern);
    }
    return DP_BADARG;
}

dp_status dp_matcher_open(dp_matcher **out, dp_view pattern, dp_pattern_kind kind, dp_why *why)
{
    dp_matcher *const m = dp_alloc(1, sizeof *m);
    if (m == NULL) {
        return DP_NOMEM;
    }
    dp_buf text;
    /* \x{10ffff} stands for one to four bytes. */
    dp_buf_init(&text, (size_t)16 * DP_PATTERN_BYTES_MAX);
    dp_status status = translate(pattern, kind, &text, why);
    if (status == DP_OK) {
        status = compile(m, dp_buf_view(&text), why);
    }
    dp_buf_close(&text);
    if (status != DP_OK) {
        dp_matcher_close(m);
        return status;
    }
    *out = m;
    return DP_OK;
}

void dp_matcher_close(dp_matcher *matcher)
{
    if (matcher == NULL) {
        return;
    }
    pcre2_match_context_free(matcher->context);
    pcre2_match_data_free(matcher->match);
    pcre2_code_free(matcher->code);
    dp_free(matcher);
}

dp_status dp_matcher_find(dp_matcher *matcher, dp_view text, size_t at, size_t *begin, size_t *end,
                          dp_why *why)
{
    dp_assert(at <= text.size);
    const size_t left = text.size - at;
    const size_t steps =
        left < STEPS_MOST / STEPS_PER_BYTE ? STEPS_LEAST + STEPS_PER_BYTE * left : STEPS_MOST;
    pcre2_set_match_limit(matcher->context, (uint32_t)steps);
    const uint32_t options = PCRE2_NO_UTF_CHECK;
    int found = pcre2_match(matcher->code, text.data, text.size, at, options, matcher->match,
                            matcher->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
        found = pcre2_match(matcher->code, text.data, text.size, at, options | PCRE2_NO_JIT,
                            matcher->match, matcher->context);
    }
    if (found == PCRE2_ERROR_NOMATCH) {
        return DP_NOTFOUND;
    }
    if (found == PCRE2_ERROR_MATCHLIMIT) {
        return dp_why_set(why, DP_TOOBIG,
                          "a pattern of the tokenizer takes more than %zu steps at byte %zu of its "
                          "text",
                          steps, at);
    }
    const PCRE2_SIZE *const range = pcre2_get_ovector_pointer(matcher->match);
    if (found <= 0 || range[1] <= range[0] || range[1] - range[0] > DP_PIECE_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG,
                          "the text has a word of more than %d MiB at byte %zu; is it text?",
                          DP_PIECE_BYTES_MAX >> 20, at);
    }
    *begin = range[0];
    *end = range[1];
    return DP_OK;
}
