/* Any bytes as a template, then a zero byte, then variables or a chat as JSON: text within its
 * bounds, or a sentence; spans lie in the text. */
#include <stdlib.h>
#include <string.h>

#include "compute/template/chat.h"
#include "compute/template/template.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { OUT_MAX = 1 << 20 };

static void run(const dp_template *t, json_t *variables)
{
    dp_buf out;
    dp_why why = {{0}};
    dp_buf_init(&out, OUT_MAX);
    const dp_status status = dp_template_run(t, variables, &out, &why);
    const bool bare = status == DP_OK || status == DP_NOMEM || status == DP_TOOBIG;
    if ((status != DP_OK && out.size != 0) || (!bare && why.text[0] == '\0')) {
        abort();
    }
    dp_buf_close(&out);
}

static void speak(dp_view source, json_t *object)
{
    static dp_span spans[DP_CHAT_TURNS_MAX];
    dp_chat *chat;
    dp_buf text;
    dp_why why = {{0}};
    size_t n = 0;
    size_t at = 0;
    if (dp_chat_open(&chat, dp_view_of(NULL, 0), source, &why) != DP_OK) {
        return;
    }
    dp_buf_init(&text, OUT_MAX);
    if (dp_chat_text(chat, object, &text, spans, &n, &why) == DP_OK) {
        for (size_t i = 0; i < n; i++) {
            if (spans[i].begin < at || spans[i].end < spans[i].begin || spans[i].end > text.size) {
                abort();
            }
            at = spans[i].end;
        }
    }
    dp_buf_close(&text);
    dp_chat_close(chat);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *const end = size > 0 ? memchr(data, '\0', size) : NULL;
    const size_t source = end != NULL ? (size_t)(end - data) : size;
    const size_t rest = end != NULL ? source + 1 : size;
    dp_template *t;
    dp_why why = {{0}};
    json_t *variables = json_loadb((const char *)data + rest, size - rest, JSON_ALLOW_NUL, NULL);
    variables = variables != NULL ? variables : json_object();
    if (dp_template_open(&t, dp_view_of(data, source), &why) == DP_OK) {
        run(t, variables);
        dp_template_close(t);
    } else if (why.text[0] == '\0') {
        abort();
    }
    speak(dp_view_of(data, source), variables);
    json_decref(variables);
    return 0;
}
