/* Any bytes as a line of JSON lines: a text in UTF-8, or a sentence. */
#include <stdlib.h>

#include "compute/text/jsonl.h"
#include "compute/unicode/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_jsonl jsonl = {0};
    dp_view text = {0};
    dp_why why = {{0}};
    const dp_status status = dp_jsonl_read(&jsonl, dp_view_of(data, size), "text", &text, &why);
    if (status == DP_OK ? dp_utf8_bad_at(text) != text.size : why.text[0] == '\0') {
        abort();
    }
    dp_jsonl_close(&jsonl);
    return 0;
}
