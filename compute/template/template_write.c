/* Values as text: Python's str(), repr() and json.dumps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/template/template.h"
#include "compute/template/template_value.h"

/* How a value is written inside of others. */
typedef struct style {
    const dp_json_style *json; /* NULL: str() or repr() */
    unsigned depth;
} style;

static dp_status put(dp_buf *out, const char *text)
{
    return dp_buf_append(out, dp_view_text(text));
}

static dp_status put_integer(int64_t integer, dp_buf *out)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)integer);
    return put(out, text);
}

/* The shortest digits that give the same number, as Python's repr() has them. */
static dp_status put_real(double real, dp_buf *out)
{
    enum { DIGITS = 17, FIXED = 16 };
    char text[64];
    int digits = 1;
    if (!isfinite(real)) {
        return put(out, isnan(real) ? "nan" : real > 0 ? "inf" : "-inf");
    }
    do {
        snprintf(text, sizeof text, "%.*e", digits - 1, real);
    } while (strtod(text, NULL) != real && digits++ < DIGITS);
    const int power = atoi(strchr(text, 'e') + 1); /* NOLINT(cert-err34-c): our own digits */
    if (power >= -4 && power < FIXED) {
        const int behind = digits - 1 - power;
        snprintf(text, sizeof text, "%.*f", behind > 1 ? behind : 1, real);
    }
    return put(out, text);
}

/* The code point of a character of UTF-8. */
static uint32_t point_of(dp_view c)
{
    static const uint8_t masks[] = {0x7f, 0x1f, 0x0f, 0x07};
    uint32_t point = c.data[0] & masks[c.size < 4 ? c.size - 1 : 3];
    for (size_t i = 1; i < c.size && i < 4; i++) {
        point = point << 6 | (c.data[i] & 0x3fU);
    }
    return point;
}

/* As \uXXXX, of which a character beyond 16 bits takes two. */
static dp_status put_by_number(dp_view c, dp_buf *out)
{
    char text[16];
    const uint32_t point = point_of(c);
    if (point > 0xffff) {
        snprintf(text, sizeof text, "\\u%04x\\u%04x", 0xd800 + ((point - 0x10000) >> 10),
                 0xdc00 + (point & 0x3ff));
    } else {
        snprintf(text, sizeof text, "\\u%04x", point);
    }
    return put(out, text);
}

static dp_status put_escaped(dp_view text, const char *quotes, const dp_json_style *json,
                             dp_buf *out)
{
    static const char from[] = "\n\r\t\b\f";
    static const char to[] = "nrtbf";
    DP_TRY(put(out, quotes));
    for (size_t i = 0; i < text.size; i++) {
        const uint8_t c = text.data[i];
        const char *const found = c != 0 ? strchr(from, c) : NULL;
        const bool named = found != NULL && (json != NULL || found - from < 3);
        char escape[16] = {(char)c, '\0'};
        if (json != NULL && json->ascii_alone && c >= 0x7f) {
            const size_t size = dp_text_character(text, i);
            DP_TRY(put_by_number(dp_text_cut(text, i, size), out));
            i += size - 1;
            continue;
        }
        if (c == '\\' || c == (uint8_t)quotes[0]) {
            snprintf(escape, sizeof escape, "\\%c", c);
        } else if (named) {
            snprintf(escape, sizeof escape, "\\%c", to[found - from]);
        } else if (c < ' ' || (c == 0x7f && json == NULL)) {
            snprintf(escape, sizeof escape, json != NULL ? "\\u%04x" : "\\x%02x", c);
        }
        DP_TRY(dp_buf_append(out, dp_view_of((const uint8_t *)escape, strlen(escape))));
    }
    return put(out, quotes);
}

static dp_status put_text(dp_view text, const dp_json_style *json, dp_buf *out)
{
    const bool single = text.size > 0 && memchr(text.data, '\'', text.size) != NULL &&
                        memchr(text.data, '"', text.size) == NULL;
    return put_escaped(text, json != NULL || single ? "\"" : "'", json, out);
}

static dp_status put_inside(const dp_value *value, style s, dp_buf *out);

static dp_status put_line(style s, dp_buf *out)
{
    if (s.json == NULL || !s.json->lines) {
        return DP_OK;
    }
    DP_TRY(put(out, "\n"));
    for (unsigned i = 0; i < s.depth; i++) {
        DP_TRY(dp_buf_append(out, s.json->indent));
    }
    return DP_OK;
}

/* The sign between two items, with the line end of an indented list. */
static dp_status put_comma(style s, size_t index, dp_buf *out)
{
    if (index > 0) {
        DP_TRY(dp_buf_append(out, s.json != NULL ? s.json->comma : dp_view_text(", ")));
    }
    return put_line(s, out);
}

static dp_status put_list(const dp_template_list *list, style s, dp_buf *out)
{
    const style inner = {s.json, s.depth + 1};
    const bool tuple = list->is_tuple && s.json == NULL;
    DP_TRY(put(out, tuple ? "(" : "["));
    for (size_t i = 0; i < list->count; i++) {
        DP_TRY(put_comma(inner, i, out));
        DP_TRY(put_inside(&list->items[i], inner, out));
    }
    DP_TRY(list->count > 0 ? put_line(s, out) : DP_OK);
    return put(out, !tuple ? "]" : list->count == 1 ? ",)" : ")");
}

static dp_status put_dict(const dp_template_dict *dict, style s, dp_buf *out)
{
    const style inner = {s.json, s.depth + 1};
    DP_TRY(put(out, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        DP_TRY(put_comma(inner, i, out));
        DP_TRY(put_text(dict->entries[i].key, s.json, out));
        DP_TRY(dp_buf_append(out, s.json != NULL ? s.json->colon : dp_view_text(": ")));
        DP_TRY(put_inside(&dict->entries[i].value, inner, out));
    }
    DP_TRY(dict->count > 0 ? put_line(s, out) : DP_OK);
    return put(out, "}");
}

/* NOLINTNEXTLINE(misc-no-recursion): bounded by depth */
static dp_status put_inside(const dp_value *v, style s, dp_buf *out)
{
    if (s.depth > DP_TEMPLATE_DEPTH_MAX) {
        return DP_TOOBIG;
    }
    switch (v->kind) {
    case DP_NONE:
        return put(out, s.json != NULL ? "null" : "None");
    case DP_BOOL:
        return put(out, s.json != NULL ? (v->u.truth ? "true" : "false")
                        : v->u.truth   ? "True"
                                       : "False");
    case DP_INT:
        return put_integer(v->u.integer, out);
    case DP_FLOAT:
        return put_real(v->u.real, out);
    case DP_TEXT:
        return put_text(v->u.text, s.json, out);
    case DP_LIST:
        return put_list(v->u.list, s, out);
    case DP_DICT:
        return put_dict(v->u.dict, s, out);
    case DP_UNDEFINED:
    case DP_MACRO:
    case DP_FUNCTION:
        break;
    }
    return s.json != NULL ? DP_BADARG
                          : put(out, v->kind == DP_UNDEFINED ? "Undefined" : dp_value_name(v));
}

dp_status dp_value_write(const dp_value *value, bool repr, dp_buf *out)
{
    if (value->kind == DP_UNDEFINED) {
        return DP_OK;
    }
    return value->kind == DP_TEXT && !repr ? dp_buf_append(out, value->u.text)
                                           : put_inside(value, (style){.depth = 0}, out);
}

dp_status dp_value_write_json(const dp_value *value, const dp_json_style *json, dp_buf *out)
{
    return put_inside(value, (style){.json = json}, out);
}
