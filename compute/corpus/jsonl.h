/* JSON lines: one document per line, its text in a field of an object. */
#ifndef DP_COMPUTE_CORPUS_JSONL_H
#define DP_COMPUTE_CORPUS_JSONL_H

#include <stdbool.h>

#include "base/bytes.h"

enum { DP_JSONL_LINE_MAX = 64 << 20 }; /* bytes */

/* Parses lines, which may end in a line end. A zeroed one is empty and open. */
typedef struct dp_jsonl {
    void *root;   /* json_t of the last line, which owns its text */
    bool rounded; /* one of its integers fits no 64 bits: all are real numbers */
} dp_jsonl;

void dp_jsonl_close(dp_jsonl *jsonl);
/* True for a line of blanks alone. */
bool dp_jsonl_is_blank(dp_view line);
/* Parses one line; root is NULL for a blank one, else any JSON value until the next call or close.
 * Accepts any bytes. DP_BADMSG (not JSON), DP_TOOBIG; why does not name the line. */
DP_MUST dp_status dp_jsonl_parse(dp_jsonl *jsonl, dp_view line, dp_why *why);
/* True for an object of JSON. Accepts any bytes. */
bool dp_jsonl_is_object(dp_view line);
/* The text of one line, lent until the next call or close: UTF-8, may hold NUL, empty for a blank
 * line. Accepts any bytes. DP_BADMSG (no object, no such field, not a text; other fields may be
 * anything), DP_TOOBIG; why does not name the line. */
DP_MUST dp_status dp_jsonl_read(dp_jsonl *jsonl, dp_view line, const char *field, dp_view *text,
                                dp_why *why);

/* The lines of a file, or of a pipe, one after the other. fd is -1 unless it is open. */
typedef struct dp_lines {
    int fd;
    dp_buf bytes; /* read and not yet handed out */
    size_t begin;
    bool begun; /* a line was handed out */
    bool ended;
    bool inside; /* of a line that is too long: the rest of it is not handed out */
} dp_lines;

/* DP_IO, DP_NOTFOUND with a sentence; then it is closed. */
DP_MUST dp_status dp_lines_open(dp_lines *lines, const char *path, dp_why *why);
void dp_lines_close(dp_lines *lines); /* Accepts a closed one. */
/* The next line without its end, and the first without a byte order mark, lent until the next call.
 * DP_NOTFOUND: there are no more; DP_TOOBIG: it is too long, and the next call goes on behind it;
 * DP_IO, DP_NOMEM. */
DP_MUST dp_status dp_lines_next(dp_lines *lines, dp_view *line, dp_why *why);

#endif
