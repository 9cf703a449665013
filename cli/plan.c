#include "cli/plan.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/print.h"
#include "cli/tool.h"

enum { FILES_MAX = 4096 }; /* of a folder that are looked at */

uint64_t dp_plan_data_bytes(const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return 0;
    }
    if (!S_ISDIR(info.st_mode)) {
        return info.st_size > 0 ? (uint64_t)info.st_size : 0;
    }
    DIR *folder = opendir(path);
    uint64_t bytes = 0;
    for (int i = 0; folder != NULL && i < FILES_MAX; i++) {
        const struct dirent *entry =
            readdir(folder); /* NOLINT(concurrency-mt-unsafe): one thread */
        if (entry == NULL) {
            break;
        }
        const size_t size = strlen(entry->d_name);
        if (size > 4 && strcmp(entry->d_name + size - 4, ".bin") == 0 &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && info.st_size > 0) {
            bytes += (uint64_t)info.st_size;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return bytes;
}

json_t *dp_plan_ask(const dp_manifest *manifest, const char *backend, uint64_t data_bytes)
{
    static dp_cli_tool tool; /* too large for a stack */
    char path[DP_CLI_TOOL_PATH_MAX];
    const int fd = dp_cli_tool_manifest(manifest, path);
    if (fd < 0) {
        return NULL;
    }
    char data[24];
    snprintf(data, sizeof data, "%" PRIu64, data_bytes);
    const char *const arguments[] = {
        "--plan", path, "--data", data, backend != NULL ? "--backend" : NULL, backend, NULL};
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
                {"data", "the data, held for the trainer"},
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
