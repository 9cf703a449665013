#include "compute/text/pretokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

/* Unicode's White_Space, inside a class. */
#define SPACE "\\x{9}-\\x{d}\\x{85}\\p{Z}"
#define CONTRACTIONS "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
#define WORD "[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
#define TAIL_GIVEN " ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"
#define TAIL                                                                                       \
    " ?[^" SPACE "\\p{L}\\p{N}]+[\\r\\n]*|[" SPACE "]*[\\r\\n]+|[" SPACE "]+(?![^" SPACE           \
    "])|[" SPACE "]+"

typedef struct pattern {
    const char *given; /* in tokenizer.json */
    const char *run;   /* by pcre2, the same pieces */
} pattern;

static const pattern patterns[DP_PRETOKENIZER_KINDS] = {
    [DP_PRETOKENIZER_GPT2] = {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|"
                              "\\s+(?!\\S)|\\s+",
                              "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" SPACE
                              "\\p{L}\\p{N}]+|[" SPACE "]+(?![^" SPACE "])|[" SPACE "]+"},
    [DP_PRETOKENIZER_LLAMA3] = {CONTRACTIONS "|" WORD "|\\p{N}{1,3}|" TAIL_GIVEN,
                                CONTRACTIONS "|" WORD "|\\p{N}{1,3}|" TAIL},
    [DP_PRETOKENIZER_QWEN2] = {CONTRACTIONS "|" WORD "|\\p{N}|" TAIL_GIVEN,
                               CONTRACTIONS "|" WORD "|\\p{N}|" TAIL},
};

/* Of one piece; none of the patterns goes back further than its own start, so only a piece of many
 * white-space characters comes near. */
enum { MATCHES_MAX = 4 * DP_PIECE_BYTES_MAX };

struct dp_pretokenizer {
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *context;
};

const char *dp_pretokenizer_pattern(dp_pretokenizer_kind kind)
{
    dp_assert(kind < DP_PRETOKENIZER_KINDS);
    return patterns[kind].given;
}

bool dp_pretokenizer_kind_of(const char *text, dp_pretokenizer_kind *kind)
{
    for (unsigned i = 0; i < DP_PRETOKENIZER_KINDS; i++) {
        if (strcmp(patterns[i].given, text) == 0) {
            *kind = (dp_pretokenizer_kind)i;
            return true;
        }
    }
    return false;
}

dp_status dp_pretokenizer_open(dp_pretokenizer **out, dp_pretokenizer_kind kind, dp_why *why)
{
    dp_assert(kind < DP_PRETOKENIZER_KINDS);
    dp_pretokenizer *const pieces = dp_alloc(1, sizeof *pieces);
    if (pieces == NULL) {
        return DP_NOMEM;
    }
    int error;
    PCRE2_SIZE where;
    pieces->code = pcre2_compile((PCRE2_SPTR)patterns[kind].run, PCRE2_ZERO_TERMINATED,
                                 PCRE2_UTF | PCRE2_UCP, &error, &where, NULL);
    if (pieces->code == NULL) {
        dp_pretokenizer_close(pieces);
        return dp_why_set(why, DP_UNSUPPORTED, "this build of pcre2 has no Unicode support");
    }
    /* Without a compiler for this machine the interpreter does the same, slower. */
    if (pcre2_jit_compile(pieces->code, PCRE2_JIT_COMPLETE) != 0) {
        error = 0;
    }
    pieces->match = pcre2_match_data_create_from_pattern(pieces->code, NULL);
    pieces->context = pcre2_match_context_create(NULL);
    if (pieces->match == NULL || pieces->context == NULL) {
        dp_pretokenizer_close(pieces);
        return DP_NOMEM;
    }
    pcre2_set_match_limit(pieces->context, MATCHES_MAX);
    *out = pieces;
    return DP_OK;
}

void dp_pretokenizer_close(dp_pretokenizer *pieces)
{
    if (pieces == NULL) {
        return;
    }
    pcre2_match_context_free(pieces->context);
    pcre2_match_data_free(pieces->match);
    pcre2_code_free(pieces->code);
    dp_free(pieces);
}

dp_status dp_pretokenizer_next(dp_pretokenizer *pieces, dp_view text, size_t at, size_t *size,
                               dp_why *why)
{
    dp_assert(at < text.size);
    const uint32_t options = PCRE2_NO_UTF_CHECK | PCRE2_ANCHORED;
    int found = pcre2_match(pieces->code, text.data, text.size, at, options, pieces->match,
                            pieces->context);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
        found = pcre2_match(pieces->code, text.data, text.size, at, options | PCRE2_NO_JIT,
                            pieces->match, pieces->context);
    }
    const PCRE2_SIZE *const range = pcre2_get_ovector_pointer(pieces->match);
    if (found <= 0 || range[1] <= at || range[1] - at > DP_PIECE_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG,
                          "the text has a word of more than %d MiB at byte %zu; is it text?",
                          DP_PIECE_BYTES_MAX >> 20, at);
    }
    *size = range[1] - at;
    return DP_OK;
}
