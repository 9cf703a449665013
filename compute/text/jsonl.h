/* JSON lines: one document per line, its text in a field of an object. Parses one line; opens no
 * files. */
#ifndef DP_COMPUTE_TEXT_JSONL_H
#define DP_COMPUTE_TEXT_JSONL_H

#include "base/bytes.h"

enum { DP_JSONL_LINE_MAX = 64 << 20 }; /* bytes */

/* Parses lines, which may end in a line end. A zeroed one is empty and open. */
typedef struct dp_jsonl {
    void *root; /* json_t of the last line, which owns its text */
} dp_jsonl;

void dp_jsonl_close(dp_jsonl *jsonl);
/* The text of one line, lent until the next call or close: UTF-8, may hold NUL, empty for a blank
 * line. Accepts any bytes. DP_BADMSG (no object, no such field, not a text; other fields may be
 * anything), DP_TOOBIG; why does not name the line. */
DP_MUST dp_status dp_jsonl_read(dp_jsonl *jsonl, dp_view line, const char *field, dp_view *text,
                                dp_why *why);

#endif
