#include "base/log.h"

#include <ctype.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <time.h>

static struct {
    FILE *out; /* NULL: stderr. */
    dp_log_level least;
    const char *program;
    bool json;
    dp_log_writer *write; /* NULL: to out. */
    void *context;
} sink = {.least = DP_LOG_INFO};

void dp_log_init(FILE *out, dp_log_level least, const char *program)
{
    sink.out = out;
    sink.least = least;
    sink.program = program;
}

void dp_log_set_writer(dp_log_writer *write, void *context)
{
    sink.write = write;
    sink.context = context;
}

void dp_log_set_json(bool json)
{
    sink.json = json;
}

static const char *level_name(dp_log_level level)
{
    switch (level) {
    case DP_LOG_DEBUG:
        return "debug";
    case DP_LOG_INFO:
        return "info";
    case DP_LOG_WARN:
        return "warn";
    case DP_LOG_ERROR:
        return "error";
    }
    return "unknown";
}

/* A line under construction. A value that does not fit is left out whole, and the line is marked as
 * cut. */
typedef struct line {
    char text[DP_LOG_LINE_MAX];
    size_t size;
    bool cut;
} line;

/* Bytes kept for the end of the line. */
enum { LINE_TAIL_BYTES = 16 };

static bool line_add(line *l, const char *text, size_t size)
{
    if (l->cut || size > sizeof l->text - LINE_TAIL_BYTES - l->size) {
        l->cut = true;
        return false;
    }
    memcpy(l->text + l->size, text, size);
    l->size += size;
    return true;
}

const char *dp_log_quote(char *out, const char *text)
{
    size_t size = 0;

    out[size++] = '"';
    for (; *text != '\0' && size + 4 <= DP_LOG_TEXT_MAX; text++) {
        if (*text == '"' || *text == '\\') {
            out[size++] = '\\';
        }
        out[size++] = *text;
    }
    out[size++] = '"';
    out[size] = '\0';
    return out;
}

/* Bytes of the UTF-8 character at text, at most left; 0 if it is none (RFC 3629, table of section
 * 4). */
static size_t utf8_size(const unsigned char *text, size_t left)
{
    const unsigned char lead = text[0];
    size_t size = 1;
    unsigned char least = 0x80;
    unsigned char most = 0xbf;

    if (lead < 0x80) {
        return 1;
    }
    if (lead < 0xc2 || lead > 0xf4) {
        return 0;
    }
    size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : least;
    most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : most;
    if (left < size || text[1] < least || text[1] > most) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if (text[i] < 0x80 || text[i] > 0xbf) {
            return 0;
        }
    }
    return size;
}

/* Text of a peer must not make a second line or an escape sequence. */
static void clean(char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        size_t size = utf8_size((const unsigned char *)text, left);

        if (size == 0 || (size == 1 && iscntrl((unsigned char)*text))) {
            *text = '?';
            size = 1;
        }
        text += size;
        left -= size;
    }
}

/* End of the value at text: the first space that stands in no quotes. */
static const char *value_end(const char *text)
{
    bool quoted = false;

    for (; *text != '\0' && (quoted || *text != ' '); text++) {
        if (quoted && *text == '\\' && text[1] != '\0') {
            text++;
        } else if (*text == '"') {
            quoted = !quoted;
        }
    }
    return text;
}

/* Numbers as JSON writes them; "0x1f", "007", "1." and "nan" are text. */
static bool is_json_number(const char *text, size_t size)
{
    size_t i = size > 0 && text[0] == '-' ? 1 : 0;
    const size_t digits = i;

    while (i < size && isdigit((unsigned char)text[i])) {
        i++;
    }
    if (i == digits || (text[digits] == '0' && i > digits + 1)) {
        return false;
    }
    if (i + 1 < size && text[i] == '.' && isdigit((unsigned char)text[i + 1])) {
        for (i++; i < size && isdigit((unsigned char)text[i]);) {
            i++;
        }
    }
    return i == size;
}

/* True for "..." with a backslash only before a quote or a backslash: such a value is a JSON string
 * as it stands. */
static bool is_json_string(const char *text, size_t size)
{
    if (size < 2 || text[0] != '"' || text[size - 1] != '"') {
        return false;
    }
    for (size_t i = 1; i < size - 1; i++) {
        if (text[i] == '\\' && i + 2 < size && (text[i + 1] == '"' || text[i + 1] == '\\')) {
            i++;
        } else if (text[i] == '"' || text[i] == '\\') {
            return false;
        }
    }
    return true;
}

/* One pair as ,"key":value. All or nothing. */
static void json_add(line *l, const char *key, size_t key_size, const char *value, size_t size)
{
    const size_t start = l->size;
    const bool bare = is_json_string(value, size) || is_json_number(value, size);

    line_add(l, l->size > 1 ? ",\"" : "\"", l->size > 1 ? 2 : 1);
    line_add(l, key, key_size);
    line_add(l, bare ? "\":" : "\":\"", bare ? 2 : 3);
    for (size_t i = 0; i < size; i++) {
        if (!bare && (value[i] == '"' || value[i] == '\\')) {
            line_add(l, "\\", 1);
        }
        line_add(l, value + i, 1);
    }
    line_add(l, "\"", bare ? 0 : 1);
    if (l->cut) {
        l->size = start;
    }
}

/* Turns clean key=value text into the members of an object. A word without '=' is left out. */
static void json_add_pairs(line *l, const char *text)
{
    while (*text != '\0') {
        const char *const end = value_end(text);
        const char *const equals = memchr(text, '=', (size_t)(end - text));

        if (equals != NULL && equals > text && memchr(text, '"', (size_t)(equals - text)) == NULL &&
            memchr(text, '\\', (size_t)(equals - text)) == NULL) {
            json_add(l, text, (size_t)(equals - text), equals + 1, (size_t)(end - equals - 1));
        }
        text = *end == '\0' ? end : end + 1;
    }
}

static void write_line(line *l)
{
    if (sink.write != NULL) {
        sink.write(sink.context, l->text, l->size);
        return;
    }
    FILE *const out = sink.out != NULL ? sink.out : stderr;

    /* A failed write of the log cannot be reported anywhere. */
    if (fwrite(l->text, 1, l->size, out) == l->size) {
        (void)fflush(out);
    }
}

void dp_log(dp_log_level level, const char *event, const char *format, ...)
{
    char pairs[DP_LOG_LINE_MAX];
    line l = {0};
    struct timespec now = {0};
    struct tm parts = {0};
    va_list arguments;

    if (level < sink.least) {
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &parts);
    const int head = snprintf(pairs, sizeof pairs,
                              "ts=%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ lvl=%s prog=%s evt=%s ",
                              parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday, parts.tm_hour,
                              parts.tm_min, parts.tm_sec, now.tv_nsec / 1000, level_name(level),
                              sink.program != NULL ? sink.program : "-", event);
    if (head < 0 || (size_t)head >= sizeof pairs) {
        return;
    }
    va_start(arguments, format);
    const int body = vsnprintf(pairs + head, sizeof pairs - (size_t)head, format, arguments);
    va_end(arguments);
    if (body < 0) {
        return;
    }
    clean(pairs);
    if (sink.json) {
        line_add(&l, "{", 1);
        json_add_pairs(&l, pairs);
    } else {
        const size_t size = strnlen(pairs, sizeof l.text - LINE_TAIL_BYTES);
        l.cut = !line_add(&l, pairs, size) || pairs[size] != '\0';
    }
    const bool cut = l.cut || (size_t)head + (size_t)body >= sizeof pairs;
    l.size -= !sink.json && l.size > 0 && l.text[l.size - 1] == ' ' ? 1 : 0;
    const char *const tail =
        sink.json ? (cut ? ",\"cut\":1}\n" : "}\n") : (cut ? " cut=1\n" : "\n");
    memcpy(l.text + l.size, tail, strlen(tail));
    l.size += strlen(tail);
    write_line(&l);
}
