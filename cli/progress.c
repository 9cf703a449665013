#include "cli/progress.h"

#include <stdio.h>

#include "cli/json.h"
#include "cli/print.h"

int dp_progress(void *context, const json_t *notice)
{
    const dp_cmd *cmd = context;
    if (cmd->json) {
        return dp_cmd_print(json_deep_copy(notice));
    }
    char text[400];
    const long long ms = dp_json_int(notice, "ms", -1);
    snprintf(text, sizeof text, "%s: %s", dp_json_text(notice, "phase", "?"),
             dp_json_text(notice, "text", ""));
    dp_print_harmless(text);
    const bool begins = json_object_get(notice, "ok") == NULL;
    fprintf(stderr, "%s %s", begins ? "-" : dp_print_mark(dp_json_flag(notice, "ok")), text);
    if (ms >= 0) {
        fprintf(stderr, " (%lld ms)", ms);
    }
    fputc('\n', stderr);
    return 0;
}
