#include "cli/plan.h"

#include <stdio.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/tool.h"

json_t *dp_plan_ask(const dp_manifest *manifest, const char *backend)
{
    static dp_cli_tool tool; /* too large for a stack */
    char path[DP_CLI_TOOL_PATH_MAX];
    const int fd = dp_cli_tool_manifest(manifest, path);
    if (fd < 0) {
        return NULL;
    }
    const char *const arguments[] = {"--plan", path, backend != NULL ? "--backend" : NULL, backend,
                                     NULL};
    json_t *plan = NULL;
    if (dp_cli_tool_run(&tool, arguments) == DP_OK && tool.exit == 0) {
        plan = json_loads(tool.answer, 0, NULL);
    }
    close(fd);
    return plan;
}

void dp_plan_print(const json_t *plan)
{
    static const struct {
        const char *key;
        const char *text;
    } rows[] = {{"weights", "weights, fp32"},
                {"gradients", "gradients"},
                {"moments", "state of the optimizer"},
                {"anchors", "theta, error feedback, what is published and frozen"},
                {"packed", "weights packed for products"},
                {"buffers", "states and blobs on their way, scratch"},
                {"activations", "activations and their gradients"},
                {"total", "together"}};
    char text[DP_PRINT_CELL_MAX];
    char there[DP_PRINT_CELL_MAX];
    dp_print_count(dp_json_real(plan, "parameters", 0), text);
    printf("memory of a node that trains these %s parameters:\n", text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_print_bytes((uint64_t)dp_json_real(plan, rows[i].key, 0), text);
        printf("  %10s  %s\n", text, rows[i].text);
    }
    dp_print_bytes((uint64_t)dp_json_real(plan, "budget", 0), there);
    if (!json_is_true(json_object_get(plan, "fits"))) {
        printf("%s not on this machine: %s\n", dp_print_mark(false), dp_json_text(plan, "why", ""));
        return;
    }
    const double at_once = dp_json_real(plan, "rows", 0);
    printf("%s this machine has %s for it: %.0f %s at a time, recomputed: %s, packs: %s\n",
           dp_print_mark(true), there, at_once, at_once > 1 ? "sequences" : "sequence",
           dp_json_text(plan, "recompute", "?"), dp_json_text(plan, "packs", "?"));
}
