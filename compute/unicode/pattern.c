#include "compute/unicode/pattern.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/assert.h"

/* A group that is open, or the whole pattern. */
typedef struct group {
    bool looks;     /* ahead or behind: it takes no text */
    bool caseless;  /* it or one around it */
    bool empty;     /* the alternative so far may match the empty text */
    bool any_empty; /* an alternative before may */
} group;

typedef struct translation {
    dp_view given;
    size_t at;
    dp_buf *out;
    group groups[DP_PATTERN_GROUPS_MAX];
    unsigned depth;
    uint32_t letter; /* the character before, in a group without case; else 0 */
    dp_status status;
    dp_why *why;
} translation;

/* A character, or a set as it stands inside a class. */
typedef struct item {
    bool is_set;
    bool negated; /* all that is not in the set */
    bool anchor;  /* set is to be written as it is */
    uint32_t code;
    char set[64];
} item;

static void refuse(translation *t, dp_status status, const char *what)
{
    if (t->status == DP_OK) {
        t->status = dp_why_set(t->why, status, "the pattern has %s before byte %zu", what, t->at);
    }
}

static void put(translation *t, const char *text)
{
    if (t->status == DP_OK) {
        t->status = dp_buf_append(t->out, dp_view_text(text));
    }
}

static bool is_alnum(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static void put_code(translation *t, uint32_t code)
{
    char text[16];
    snprintf(text, sizeof text, is_alnum(code) ? "%c" : "\\x{%x}", code);
    put(t, text);
}

static bool more(const translation *t)
{
    return t->status == DP_OK && t->at < t->given.size;
}

/* The byte that comes, or 0. */
static uint8_t peek(const translation *t, size_t ahead)
{
    return t->given.size - t->at > ahead ? t->given.data[t->at + ahead] : 0;
}

static bool take(translation *t, const char *text)
{
    const size_t size = strlen(text);
    if (t->given.size - t->at < size || memcmp(t->given.data + t->at, text, size) != 0) {
        return false;
    }
    t->at += size;
    return true;
}

static uint32_t take_char(translation *t)
{
    utf8proc_int32_t code;
    const utf8proc_ssize_t size =
        utf8proc_iterate(t->given.data + t->at, (utf8proc_ssize_t)(t->given.size - t->at), &code);
    if (size <= 0) {
        refuse(t, DP_BADMSG, "bytes that are not UTF-8");
        t->at = t->given.size;
        return 0;
    }
    t->at += (size_t)size;
    return (uint32_t)code;
}

/* ---- Escapes. */

/* Names that both know: general categories as they are, scripts by their Script property, which is
 * what Oniguruma means. */
static const char *const categories[] = {"L",  "Lu", "Ll", "Lt", "Lm", "Lo", "M",  "Mn", "Mc", "Me",
                                         "N",  "Nd", "Nl", "No", "P",  "Pc", "Pd", "Ps", "Pe", "Pi",
                                         "Pf", "Po", "S",  "Sm", "Sc", "Sk", "So", "Z",  "Zs", "Zl",
                                         "Zp", "C",  "Cc", "Cf", "Co", "Cn", "Cs"};
static const char *const scripts[] = {
    "Arabic",    "Armenian", "Bengali",  "Bopomofo", "Cyrillic", "Devanagari", "Ethiopic",
    "Georgian",  "Greek",    "Gujarati", "Gurmukhi", "Han",      "Hangul",     "Hebrew",
    "Hiragana",  "Kannada",  "Katakana", "Khmer",    "Lao",      "Latin",      "Malayalam",
    "Mongolian", "Myanmar",  "Sinhala",  "Tamil",    "Telugu",   "Thai",       "Tibetan"};

static bool known_name(const char *const *names, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

static void take_property(translation *t, bool negated, item *out)
{
    char name[16];
    size_t size = 0;
    if (!take(t, "{")) {
        refuse(t, DP_UNSUPPORTED, "\\p without a name in braces");
        return;
    }
    if (take(t, "^")) {
        negated = !negated;
    }
    while (more(t) && peek(t, 0) != '}' && size + 1 < sizeof name) {
        name[size] = (char)t->given.data[t->at];
        size++;
        t->at++;
    }
    name[size] = '\0';
    const bool category = known_name(categories, sizeof categories / sizeof *categories, name);
    const bool script = known_name(scripts, sizeof scripts / sizeof *scripts, name);
    if (!take(t, "}") || (!category && !script)) {
        refuse(t, DP_UNSUPPORTED, "a property that is not known here");
        return;
    }
    snprintf(out->set, sizeof out->set, "\\%c{%s%s}", negated ? 'P' : 'p', script ? "sc:" : "",
             name);
    out->is_set = true;
}

static int hex_of(uint8_t c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    const uint8_t low = c | 0x20U;
    return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

/* From least to most digits. */
static uint32_t take_hex(translation *t, unsigned least, unsigned most)
{
    uint32_t code = 0;
    unsigned n = 0;
    while (n < most && hex_of(peek(t, 0)) >= 0) {
        code = code << 4 | (uint32_t)hex_of(peek(t, 0));
        t->at++;
        n++;
    }
    if (n < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
        refuse(t, DP_BADMSG, "a malformed number of a character");
    }
    return code;
}

static void take_number(translation *t, uint32_t kind, item *out)
{
    if (kind == 'u') {
        out->code = take_hex(t, 4, 4);
    } else if (take(t, "{")) {
        out->code = take_hex(t, 1, 8);
        if (!take(t, "}")) {
            refuse(t, DP_BADMSG, "a malformed number of a character");
        }
    } else {
        out->code = take_hex(t, 2, 2);
        if (out->code >= 0x80) {
            refuse(t, DP_UNSUPPORTED, "\\x of a byte that is no character");
        }
    }
}

/* Sets by a letter, and anchors. */
static bool set_of(uint32_t letter, item *out)
{
    static const struct {
        char letter;
        bool negated;
        bool anchor;
        const char *set;
    } known[] = {
        {'s', false, false, DP_PATTERN_SPACE},
        {'S', true, false, DP_PATTERN_SPACE},
        {'d', false, false, "\\p{Nd}"},
        {'D', false, false, "\\P{Nd}"},
        {'A', false, true, "\\A"},
        {'z', false, true, "\\z"},
        {'Z', false, true, "(?=\\x{a}?\\z)"},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if ((uint32_t)known[i].letter == letter) {
            out->is_set = true;
            out->negated = known[i].negated;
            out->anchor = known[i].anchor;
            snprintf(out->set, sizeof out->set, "%s", known[i].set);
            return true;
        }
    }
    return false;
}

/* After a backslash. */
static void take_escape(translation *t, item *out)
{
    static const char letters[] = "rntfvae";
    static const uint8_t codes[] = {'\r', '\n', '\t', '\f', '\v', 7, 27};
    if (!more(t)) {
        refuse(t, DP_BADMSG, "a backslash at its end");
        return;
    }
    const uint32_t c = take_char(t);
    const char *const plain = c < 0x80 && c != 0 ? strchr(letters, (int)c) : NULL;
    if (plain != NULL) {
        out->code = codes[plain - letters];
    } else if (c == 'p' || c == 'P') {
        take_property(t, c == 'P', out);
    } else if (c == 'x' || c == 'u') {
        take_number(t, c, out);
    } else if (set_of(c, out)) {
        return;
    } else if (is_alnum(c)) {
        refuse(t, DP_UNSUPPORTED, "an escape that is not done here");
    } else {
        out->code = c;
    }
}

/* ---- Characters in any case. */

/* Characters of several others, such as the ligature of f and i, fold to these pairs. */
static bool folds_with(uint32_t a, uint32_t b)
{
    static const char pairs[] = "ssstfffifl";
    for (size_t i = 0; i + 1 < sizeof pairs; i += 2) {
        if ((a | 0x20U) == (uint32_t)pairs[i] && (b | 0x20U) == (uint32_t)pairs[i + 1]) {
            return true;
        }
    }
    return false;
}

static void check_case(translation *t, const item *i)
{
    const uint32_t before = t->letter;
    t->letter = 0;
    if (!t->groups[t->depth].caseless) {
        return;
    }
    if (i->is_set || i->code >= 0x80 || folds_with(before, i->code)) {
        refuse(t, DP_UNSUPPORTED, "(?i:) around more than single letters of ASCII");
    }
    t->letter = i->code;
}

/* ---- Classes. */

static void put_in_class(translation *t, const item *i)
{
    if (i->anchor || i->negated) {
        refuse(t, DP_UNSUPPORTED, "an escape in brackets that is not done here");
    } else if (i->is_set) {
        put(t, i->set);
    } else {
        put_code(t, i->code);
    }
}

static item take_item(translation *t)
{
    item i = {.code = 0};
    if (take(t, "\\")) {
        take_escape(t, &i);
    } else {
        i.code = take_char(t);
    }
    check_case(t, &i);
    t->letter = 0;
    return i;
}

/* A character, a set or a range. */
static void take_range(translation *t)
{
    const item low = take_item(t);
    put_in_class(t, &low);
    if (low.is_set || peek(t, 0) != '-' || peek(t, 1) == ']' || peek(t, 1) == 0) {
        return;
    }
    t->at++;
    const item high = take_item(t);
    if (high.is_set || high.code < low.code || peek(t, 0) == '-') {
        refuse(t, DP_UNSUPPORTED, "a range that is not done here");
        return;
    }
    put(t, "-");
    put_code(t, high.code);
}

/* After the opening bracket. Classes inside are joined to it. */
static void take_class(translation *t)
{
    unsigned open = 1;
    bool first = true;
    if (take(t, "\\s\\S]") || take(t, "\\S\\s]")) {
        put(t, "[\\x{0}-\\x{10ffff}]");
        return;
    }
    put(t, take(t, "^") ? "[^" : "[");
    while (open > 0 && more(t)) {
        if (take(t, "]")) {
            open--;
            if (first) {
                refuse(t, DP_UNSUPPORTED, "empty brackets");
            }
        } else if (take(t, "[:") || take(t, "[^") || take(t, "&&")) {
            refuse(t, DP_UNSUPPORTED, "[:, [^ or && within brackets");
        } else if (take(t, "[")) {
            open++;
            first = true;
            continue;
        } else {
            take_range(t);
        }
        first = false;
    }
    put(t, "]");
    if (open > 0) {
        refuse(t, DP_BADMSG, "brackets that do not close");
    }
}

/* ---- Repetition. */

static bool take_count(translation *t, unsigned *count)
{
    unsigned value = 0;
    const size_t start = t->at;
    while (peek(t, 0) >= '0' && peek(t, 0) <= '9' && value <= DP_PATTERN_REPEATS_MAX) {
        value = 10 * value + (peek(t, 0) - '0');
        t->at++;
    }
    *count = value;
    return t->at > start;
}

/* {n}, {n,}, {n,m} or {,m}; anything else is a brace as it is. */
static bool take_interval(translation *t, unsigned *least, unsigned *most)
{
    const size_t start = t->at;
    t->at++;
    const bool low = take_count(t, least);
    bool high = low;
    *most = *least;
    if (take(t, ",")) {
        high = take_count(t, most);
        if (!high) {
            *most = DP_PATTERN_REPEATS_MAX;
        }
    }
    if (!take(t, "}") || (!low && !high)) {
        t->at = start;
        return false;
    }
    char text[32];
    if (high) {
        snprintf(text, sizeof text, "{%u,%u}", *least, *most);
    } else {
        snprintf(text, sizeof text, "{%u,}", *least);
    }
    put(t, text);
    if (*least > *most || *most > DP_PATTERN_REPEATS_MAX || peek(t, 0) == '?' ||
        peek(t, 0) == '+') {
        refuse(t, DP_UNSUPPORTED, "a repetition that is not done here");
    }
    return true;
}

/* Takes the repetition that may follow a part. empty: the part may match the empty text; fixed: it
 * may not be repeated. */
static void end_part(translation *t, bool empty, bool fixed)
{
    unsigned least = 1;
    unsigned most = 1;
    const uint8_t c = peek(t, 0);
    bool repeated = true;
    if (c == '?' || c == '*' || c == '+') {
        const char sign[2] = {(char)c, '\0'};
        least = c == '+';
        most = c == '?' ? 1 : 2;
        t->at++;
        put(t, sign);
        if (take(t, "?")) {
            put(t, "?");
        } else if (take(t, "+")) {
            put(t, "+");
        }
    } else {
        repeated = c == '{' && take_interval(t, &least, &most);
    }
    const uint8_t next = peek(t, 0);
    if (repeated && (fixed || (empty && most > 1) || next == '?' || next == '*' || next == '+')) {
        refuse(t, DP_UNSUPPORTED, "a repetition that is not done here");
    }
    if (repeated) {
        t->letter = 0;
    }
    group *const g = &t->groups[t->depth];
    g->empty = g->empty && (empty || least == 0);
}

/* ---- Groups and the whole. */

static void open_group(translation *t)
{
    static const struct {
        const char *given;
        const char *written;
        bool looks;
        bool caseless;
    } kinds[] = {
        {"(?:", "(?:", false, false},  {"(?=", "(?=", true, false},   {"(?!", "(?!", true, false},
        {"(?<=", "(?<=", true, false}, {"(?<!", "(?<!", true, false}, {"(?i:", "(?i:", false, true},
        {"(", "(?:", false, false},
    };
    const bool caseless = t->groups[t->depth].caseless;
    if (t->depth + 1 == DP_PATTERN_GROUPS_MAX) {
        refuse(t, DP_UNSUPPORTED, "too many groups within each other");
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!take(t, kinds[i].given)) {
            continue;
        }
        if (kinds[i].given[1] == '\0' && (peek(t, 0) == '?' || peek(t, 0) == '*')) {
            refuse(t, DP_UNSUPPORTED, "a kind of group that is not done here");
        }
        put(t, kinds[i].written);
        t->depth++;
        t->groups[t->depth] = (group){
            .looks = kinds[i].looks, .caseless = caseless || kinds[i].caseless, .empty = true};
        t->letter = 0;
        return;
    }
}

static void close_group(translation *t)
{
    const group g = t->groups[t->depth];
    t->at++;
    if (t->depth == 0) {
        refuse(t, DP_BADMSG, "a parenthesis that closes nothing");
        return;
    }
    put(t, ")");
    t->depth--;
    t->letter = 0;
    end_part(t, g.looks || g.empty || g.any_empty, g.looks);
}

static void take_part(translation *t)
{
    item i = {.code = 0};
    if (take(t, "[")) {
        take_class(t);
        end_part(t, false, false);
        return;
    }
    if (take(t, "\\")) {
        take_escape(t, &i);
    } else if (take(t, ".")) {
        i = (item){.is_set = true, .negated = true, .set = "\\x{a}"};
    } else if (take(t, "^")) {
        i = (item){.is_set = true, .anchor = true, .set = "(?:\\A|(?<=\\x{a})(?!\\z))"};
    } else if (take(t, "$")) {
        i = (item){.is_set = true, .anchor = true, .set = "(?=\\x{a}|\\z)"};
    } else {
        i.code = take_char(t);
    }
    check_case(t, &i);
    if (!i.is_set) {
        put_code(t, i.code);
    } else if (i.anchor) {
        put(t, i.set);
    } else {
        put(t, i.negated ? "[^" : "[");
        put(t, i.set);
        put(t, "]");
    }
    end_part(t, i.anchor, i.anchor);
}

static void take_one(translation *t)
{
    group *const g = &t->groups[t->depth];
    const uint8_t c = peek(t, 0);
    if (c == '(') {
        open_group(t);
    } else if (c == ')') {
        close_group(t);
    } else if (take(t, "|")) {
        g->any_empty = g->any_empty || g->empty;
        g->empty = true;
        t->letter = 0;
        put(t, "|");
    } else if (c == '*' || c == '+' || c == '?') {
        refuse(t, DP_BADMSG, "a repetition of nothing");
    } else {
        take_part(t);
    }
}

dp_status dp_pattern_translate(dp_view given, dp_buf *out, dp_why *why)
{
    translation t = {.given = given, .out = out, .why = why};
    t.groups[0].empty = true;
    if (given.size > DP_PATTERN_BYTES_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the pattern is longer than %d bytes",
                          DP_PATTERN_BYTES_MAX);
    }
    while (more(&t)) {
        take_one(&t);
    }
    if (t.depth > 0) {
        refuse(&t, DP_BADMSG, "a group that does not close");
    }
    if (t.groups[0].empty || t.groups[0].any_empty) {
        refuse(&t, DP_UNSUPPORTED, "an alternative that matches the empty text");
    }
    return t.status;
}

dp_status dp_pattern_quote(dp_view text, dp_buf *out)
{
    translation t = {.given = text, .out = out};
    while (more(&t)) {
        put_code(&t, take_char(&t));
    }
    return t.status;
}
