/* Any bytes as a line of JSON lines: a text in UTF-8, or a sentence. */
#include <stdlib.h>

#include "compute/corpus/document.h"
#include "compute/corpus/jsonl.h"
#include "compute/unicode/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same bytes as a document: its text, with spans in it, or a sentence. */
static void read_document(dp_view line)
{
    dp_document document;
    dp_why why = {{0}};
    dp_document_init(&document, NULL, NULL);
    const dp_status status = dp_document_read(&document, line, "text", &why);
    const bool spans = document.n_spans == 0 || (document.spans[0].begin <= document.spans[0].end &&
                                                 document.spans[0].end <= document.text.size);
    if (!spans || (status != DP_OK && why.text[0] == '\0') ||
        (status == DP_OK && dp_utf8_bad_at(dp_buf_view(&document.text)) != document.text.size)) {
        abort();
    }
    (void)dp_document_is(&document, line, "text");
    dp_document_close(&document);
}

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
    read_document(dp_view_of(data, size));
    return 0;
}
