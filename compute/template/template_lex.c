/* The pieces of a source, with blanks trimmed as Jinja does with trim_blocks and lstrip_blocks. */
#include <string.h>

#include "compute/template/template_node.h"

typedef struct lexer {
    dp_arena *arena;
    dp_view source;
    size_t at;
    uint32_t line;
    bool line_begins; /* the tag before ended with a line end */
    dp_lexeme *list;
    size_t count;
    size_t room;
    dp_why *why;
} lexer;

static dp_status fail(const lexer *l, const char *what)
{
    return dp_why_set(l->why, DP_BADMSG, "line %u of the template: %s", l->line, what);
}

static dp_status add(lexer *l, dp_lexeme_kind kind, dp_view text)
{
    if (l->count == l->room) {
        const size_t more = l->room == 0 ? 64 : 2 * l->room;
        dp_lexeme *const wider = dp_arena_take(l->arena, more * sizeof *wider);
        if (wider == NULL) {
            return DP_NOMEM;
        }
        if (l->count > 0) {
            memcpy(wider, l->list, l->count * sizeof *wider);
        }
        l->list = wider;
        l->room = more;
    }
    l->list[l->count++] = (dp_lexeme){.kind = kind, .line = l->line, .text = text};
    return DP_OK;
}

static bool here(const lexer *l, const char *word)
{
    const size_t size = strlen(word);
    return l->source.size - l->at >= size && memcmp(l->source.data + l->at, word, size) == 0;
}

static uint8_t byte_at(const lexer *l, size_t at)
{
    return at < l->source.size ? l->source.data[at] : 0;
}

static void skip(lexer *l, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        l->line += l->source.data[l->at + i] == '\n';
    }
    l->at += bytes;
}

static void skip_blanks(lexer *l)
{
    for (size_t n = dp_text_blank(l->source, l->at); n > 0; n = dp_text_blank(l->source, l->at)) {
        skip(l, n);
    }
}

/* Behind a tag: strips says that it ended with "-"; trims, that the line end goes. */
static void after_tag(lexer *l, bool strips, bool trims)
{
    const size_t from = l->at;
    if (strips) {
        skip_blanks(l);
    } else if (trims && byte_at(l, l->at) == '\n') {
        skip(l, 1);
    }
    l->line_begins = l->at > from && l->source.data[l->at - 1] == '\n';
}

/* The size of a text without the blanks at its end, of which a line end is one or not. */
static size_t size_without_blanks(dp_view text, bool lines)
{
    size_t size = text.size;
    for (;;) {
        const size_t n = dp_text_blank_before(text, size);
        if (n == 0 || (!lines && text.data[size - 1] == '\n')) {
            return size;
        }
        size -= n;
    }
}

/* The text up to the next tag, whose first byte is at end. */
static dp_status lex_text(lexer *l, size_t end)
{
    dp_view text = dp_text_cut(l->source, l->at, end - l->at);
    const uint8_t kind = byte_at(l, end + 1);
    const uint8_t sign = byte_at(l, end + 2);
    if (end < l->source.size && sign == '-') {
        text.size = size_without_blanks(text, true);
    } else if (end < l->source.size && kind != '{' && sign != '+') {
        const size_t from = size_without_blanks(text, false);
        const bool begins = from > 0 ? text.data[from - 1] == '\n' : l->line_begins;
        text.size = begins ? from : text.size;
    }
    if (text.size > 0) {
        DP_TRY(add(l, DP_LEX_TEXT, text));
    }
    skip(l, end - l->at);
    return DP_OK;
}

static size_t find_tag(const lexer *l)
{
    size_t at = l->at;
    while (at + 1 < l->source.size) {
        const uint8_t next = l->source.data[at + 1];
        if (l->source.data[at] == '{' && (next == '{' || next == '%' || next == '#')) {
            return at;
        }
        at++;
    }
    return l->source.size;
}

static dp_status lex_comment(lexer *l)
{
    size_t end = l->at + 2;
    while (end + 1 < l->source.size &&
           !(l->source.data[end] == '#' && l->source.data[end + 1] == '}')) {
        end++;
    }
    if (end + 1 >= l->source.size) {
        return fail(l, "a comment does not end");
    }
    const uint8_t sign = end > l->at + 2 ? l->source.data[end - 1] : 0;
    skip(l, end + 2 - l->at);
    after_tag(l, sign == '-', sign != '+');
    return DP_OK;
}

/* The digits of a number from here on, most of them; those that are none end it. */
static size_t digits_at(const lexer *l, size_t at, int base, size_t most, uint32_t *number)
{
    size_t n = 0;
    for (*number = 0; n < most; n++) {
        const uint8_t c = byte_at(l, at + n);
        const uint8_t small = c >= 'A' && c <= 'F' ? (uint8_t)(c + 32) : c;
        const int digit = small >= '0' && small <= '9'   ? small - '0'
                          : small >= 'a' && small <= 'f' ? small - 'a' + 10
                                                         : 16;
        if (digit >= base) {
            break;
        }
        *number = *number * (unsigned)base + (unsigned)digit;
    }
    return n;
}

static size_t put_character(uint8_t *text, uint32_t point)
{
    const size_t size = point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--) {
        text[i] = (uint8_t)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    text[0] = (uint8_t)(first[size] | point);
    return size;
}

/* A character by its number, whose escape is no shorter than its bytes. *used: of the source. */
static dp_status lex_number(lexer *l, size_t at, uint8_t *text, size_t *size, size_t *used)
{
    uint32_t point;
    const uint8_t kind = byte_at(l, at + 1);
    const size_t wanted = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    const size_t got =
        wanted > 0 ? digits_at(l, at + 2, 16, wanted, &point) : digits_at(l, at + 1, 8, 3, &point);
    *used = wanted > 0 ? 2 + got : 1 + got;
    if ((wanted > 0 && got < wanted) || point > 0x10ffff || (point >= 0xd800 && point < 0xe000)) {
        return fail(l, "an escape of a string is no character");
    }
    *size = put_character(text, point);
    return DP_OK;
}

/* An escape of a string, or a byte that is none, as bytes of text. */
static dp_status lex_escape(lexer *l, size_t at, uint8_t *text, size_t *size, size_t *used)
{
    static const char from[] = "ntrfvab\\'\"";
    static const char to[] = "\n\t\r\f\v\a\b\\'\"";
    const uint8_t next = byte_at(l, at + 1);
    const char *const escape = next != 0 ? strchr(from, next) : NULL;
    if (next == 'x' || next == 'u' || next == 'U' || (next >= '0' && next <= '7')) {
        return lex_number(l, at, text, size, used);
    }
    if (next == 'N') {
        return dp_why_set(l->why, DP_UNSUPPORTED,
                          "line %u of the template: characters by their names are not known",
                          l->line);
    }
    *used = escape != NULL || next == '\n' ? 2 : 1;
    *size = next != '\n';
    text[0] = escape != NULL ? (uint8_t)to[escape - from] : '\\';
    return DP_OK;
}

/* A string, with its escapes resolved. */
static dp_status lex_string(lexer *l)
{
    const uint8_t quote = l->source.data[l->at];
    size_t end = l->at + 1;
    while (end < l->source.size && l->source.data[end] != quote) {
        end += l->source.data[end] == '\\' ? 2 : 1;
    }
    if (end >= l->source.size) {
        return fail(l, "a string does not end");
    }
    uint8_t *const text = dp_arena_take(l->arena, end - l->at);
    if (text == NULL) {
        return DP_NOMEM;
    }
    size_t size = 0;
    for (size_t i = l->at + 1; i < end;) {
        size_t made = 1;
        size_t used = 1;
        text[size] = l->source.data[i];
        if (l->source.data[i] == '\\') {
            DP_TRY(lex_escape(l, i, text + size, &made, &used));
        }
        size += made;
        i += used;
    }
    const dp_status status = add(l, DP_LEX_STRING, dp_view_of(text, size));
    skip(l, end + 1 - l->at);
    return status;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(uint8_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static dp_status lex_word(lexer *l)
{
    size_t end = l->at;
    dp_lexeme_kind kind = DP_LEX_NAME;
    if (is_letter(l->source.data[end])) {
        while (is_letter(byte_at(l, end)) || is_digit(byte_at(l, end))) {
            end++;
        }
    } else {
        kind = DP_LEX_INT;
        while (is_digit(byte_at(l, end)) || byte_at(l, end) == '_') {
            end++;
        }
        if (byte_at(l, end) == '.' && is_digit(byte_at(l, end + 1))) {
            kind = DP_LEX_FLOAT;
            end++;
            while (is_digit(byte_at(l, end))) {
                end++;
            }
        }
        const size_t sign = byte_at(l, end + 1) == '-' || byte_at(l, end + 1) == '+' ? 2 : 1;
        if (byte_at(l, end) == 'e' && is_digit(byte_at(l, end + sign))) {
            kind = DP_LEX_FLOAT;
            end += sign;
            while (is_digit(byte_at(l, end))) {
                end++;
            }
        }
    }
    const dp_status status = add(l, kind, dp_view_of(l->source.data + l->at, end - l->at));
    l->at = end;
    return status;
}

static dp_status lex_sign(lexer *l)
{
    static const char *const signs[] = {"==", "!=", "<=", ">=", "//", "**", "+", "-", "*",
                                        "/",  "%",  "~",  "<",  ">",  "=",  "(", ")", "[",
                                        "]",  "{",  "}",  ",",  ":",  ".",  "|"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        if (here(l, signs[i])) {
            const size_t size = strlen(signs[i]);
            const dp_status status = add(l, DP_LEX_SIGN, dp_view_of(l->source.data + l->at, size));
            l->at += size;
            return status;
        }
    }
    return fail(l, "a character that has no meaning here");
}

/* The inside of a tag up to its end. */
static dp_status lex_tag(lexer *l, bool is_block)
{
    const char *const ends[2] = {is_block ? "%}" : "}}", is_block ? "-%}" : "-}}"};
    unsigned open = 0; /* brackets: "}}" may close two objects */
    for (;;) {
        skip_blanks(l);
        if (l->at >= l->source.size) {
            return fail(l, "a tag does not end");
        }
        const bool plus = is_block && here(l, "+%}");
        const bool strips = here(l, ends[1]);
        if (open == 0 && (plus || strips || here(l, ends[0]))) {
            DP_TRY(add(l, is_block ? DP_LEX_BLOCK_END : DP_LEX_OUTPUT_END, (dp_view){0}));
            l->at += plus || strips ? 3 : 2;
            after_tag(l, strips, is_block && !plus);
            return DP_OK;
        }
        const uint8_t c = l->source.data[l->at];
        if (c == '"' || c == '\'') {
            DP_TRY(lex_string(l));
        } else if (is_letter(c) || is_digit(c)) {
            DP_TRY(lex_word(l));
        } else {
            open += c == '(' || c == '[' || c == '{';
            open -= open > 0 && (c == ')' || c == ']' || c == '}');
            DP_TRY(lex_sign(l));
        }
    }
}

dp_status dp_template_lex(dp_arena *arena, dp_view source, dp_lexeme **out, dp_why *why)
{
    lexer l = {.arena = arena, .source = source, .line = 1, .line_begins = true, .why = why};
    if (l.source.size > 0 && l.source.data[l.source.size - 1] == '\n') {
        l.source.size--; /* Jinja: keep_trailing_newline is off. */
    }
    while (l.at < l.source.size) {
        DP_TRY(lex_text(&l, find_tag(&l)));
        if (l.at >= l.source.size) {
            break;
        }
        const uint8_t kind = l.source.data[l.at + 1];
        if (kind == '#') {
            DP_TRY(lex_comment(&l));
            continue;
        }
        DP_TRY(add(&l, kind == '%' ? DP_LEX_BLOCK_BEGIN : DP_LEX_OUTPUT_BEGIN, (dp_view){0}));
        l.at += 2;
        l.at += byte_at(&l, l.at) == '-' || (kind == '%' && byte_at(&l, l.at) == '+');
        DP_TRY(lex_tag(&l, kind == '%'));
    }
    DP_TRY(add(&l, DP_LEX_END, (dp_view){0}));
    *out = l.list;
    return DP_OK;
}
