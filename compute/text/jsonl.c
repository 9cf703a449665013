#include "compute/text/jsonl.h"

#include <jansson.h>
#include <string.h>

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
    jsonl->root = json_loadb((const char *)line.data, line.size, JSON_ALLOW_NUL, &error);
    return jsonl->root != NULL
               ? DP_OK
               : dp_why_set(why, DP_BADMSG, "not JSON at column %d: %s", error.column, error.text);
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
