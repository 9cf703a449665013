#include "compute/corpus/jsonl.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>
#include <unistd.h>

#include "compute/machine/files.h"

enum { READ_BYTES = 1 << 20 };

void dp_jsonl_close(dp_jsonl *jsonl)
{
    json_decref(jsonl->root);
    *jsonl = (dp_jsonl){0};
}

bool dp_jsonl_is_blank(dp_view line)
{
    static const char blanks[] = {' ', '\t', '\r', '\n'};
    size_t at = 0;
    while (at < line.size && memchr(blanks, line.data[at], sizeof blanks) != NULL) {
        at++;
    }
    return at == line.size;
}

dp_status dp_jsonl_parse(dp_jsonl *jsonl, dp_view line, dp_why *why)
{
    json_error_t error;
    dp_jsonl_close(jsonl);
    if (line.size > DP_JSONL_LINE_MAX) {
        return dp_why_set(why, DP_TOOBIG, "it is longer than %d MiB", DP_JSONL_LINE_MAX >> 20);
    }
    if (dp_jsonl_is_blank(line)) {
        return DP_OK;
    }
    const char *const text = (const char *)line.data;
    jsonl->root = json_loadb(text, line.size, JSON_ALLOW_NUL, &error);
    if (jsonl->root == NULL && json_error_code(&error) == json_error_numeric_overflow) {
        jsonl->root = json_loadb(text, line.size, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
        jsonl->rounded = jsonl->root != NULL;
    }
    return jsonl->root != NULL
               ? DP_OK
               : dp_why_set(why, DP_BADMSG, "not JSON at column %d: %s", error.column, error.text);
}

bool dp_jsonl_is_object(dp_view line)
{
    dp_jsonl jsonl = {0};
    const bool parses = dp_jsonl_parse(&jsonl, line, NULL) == DP_OK;
    const json_t *const root = jsonl.root;
    const bool is = parses && json_is_object(root);
    dp_jsonl_close(&jsonl);
    return is;
}

dp_status dp_jsonl_read(dp_jsonl *jsonl, dp_view line, const char *field, dp_view *text,
                        dp_why *why)
{
    DP_TRY(dp_jsonl_parse(jsonl, line, why));
    if (jsonl->root == NULL) {
        *text = dp_view_of(NULL, 0);
        return DP_OK;
    }
    const json_t *const value = json_object_get(jsonl->root, field);
    if (!json_is_string(value)) {
        return dp_why_set(why, DP_BADMSG, "no object with a text in the field \"%s\"", field);
    }
    *text = dp_view_of(json_string_value(value), json_string_length(value));
    return DP_OK;
}

/* ---- The lines of a file. */

dp_status dp_lines_open(dp_lines *l, const char *path, dp_why *why)
{
    *l = (dp_lines){.fd = -1};
    DP_TRY(dp_file_open_once(path, &l->fd, why));
    dp_buf_init(&l->bytes, DP_JSONL_LINE_MAX + READ_BYTES);
    return DP_OK;
}

void dp_lines_close(dp_lines *l)
{
    dp_buf_close(&l->bytes);
    if (l->fd >= 0) {
        close(l->fd);
    }
    *l = (dp_lines){.fd = -1};
}

/* Reads on behind what is not yet handed out. */
static dp_status read_more(dp_lines *l, dp_why *why)
{
    uint8_t *room;
    dp_buf_consume(&l->bytes, l->begin);
    l->begin = 0;
    const dp_status status = dp_buf_reserve(&l->bytes, READ_BYTES, &room);
    if (status == DP_TOOBIG) {
        dp_buf_clear(&l->bytes);
        l->inside = true;
        return dp_why_set(why, status, "it is longer than %d MiB", DP_JSONL_LINE_MAX >> 20);
    }
    DP_TRY(status);
    const ssize_t n = read(l->fd, room, READ_BYTES);
    if (n < 0 && errno != EINTR) {
        return dp_why_set(why, DP_IO, "it cannot be read");
    }
    l->ended = n == 0;
    dp_buf_commit(&l->bytes, n > 0 ? (size_t)n : 0);
    return DP_OK;
}

/* Programs of Windows put a byte order mark in front of a file, which is nothing of its text. */
static void skip_mark(dp_lines *l, dp_view *line)
{
    if (!l->begun && line->size >= 3 && memcmp(line->data, "\xef\xbb\xbf", 3) == 0) {
        *line = dp_view_of(line->data + 3, line->size - 3);
    }
    l->begun = true;
}

dp_status dp_lines_next(dp_lines *l, dp_view *line, dp_why *why)
{
    size_t looked = l->begin;
    for (;;) {
        const size_t left = l->bytes.size - looked;
        const uint8_t *const end = left > 0 ? memchr(l->bytes.data + looked, '\n', left) : NULL;
        if (end != NULL || (l->ended && l->bytes.size > l->begin)) {
            const size_t size =
                (end != NULL ? (size_t)(end - l->bytes.data) : l->bytes.size) - l->begin;
            *line = dp_view_of(l->bytes.data + l->begin, size);
            l->begin += size + (end != NULL);
            looked = l->begin;
            if (!l->inside) {
                skip_mark(l, line);
                return DP_OK;
            }
            l->inside = false;
            continue;
        }
        if (l->ended) {
            return DP_NOTFOUND;
        }
        if (l->inside) {
            l->begin = l->bytes.size;
        }
        looked = l->bytes.size - l->begin;
        DP_TRY(read_more(l, why));
    }
}
