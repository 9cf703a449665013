#include "cli/plan.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/disk.h"
#include "base/run/prepared.h"
#include "cli/children.h"
#include "cli/json.h"
#include "cli/manifest_yaml.h"
#include "cli/print.h"
#include "cli/tool.h"

enum {
    FILES_MAX = 4096, /* files of a folder that are examined */
    /* size from which a text is assumed to be long enough: a token rarely has 16 bytes */
    TOKEN_BYTES_MOST = 64
};

/* The size of a file, or of those files of a folder whose names have this ending. */
static uint64_t bytes_of(const char *path, const char *end)
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
        if (size > strlen(end) && strcmp(entry->d_name + size - strlen(end), end) == 0 &&
            fstatat(dirfd(folder), entry->d_name, &info, 0) == 0 && S_ISREG(info.st_mode)) {
            bytes += (uint64_t)info.st_size;
        }
    }
    if (folder != NULL) {
        closedir(folder);
    }
    return bytes;
}

uint64_t dp_plan_data_bytes(const char *path)
{
    return bytes_of(path, ".bin");
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

void dp_plan_print(const json_t *plan, bool external)
{
    static const struct {
        const char *key;
        const char *text;
    } rows[] = {{"weights", "weights, fp32"},
                {"gradients", "gradients"},
                {"moments", "state of the optimizer"},
                {"anchors", "theta, error feedback, published and frozen work"},
                {"packed", "weights packed for products"},
                {"base", "weights below the adapters"},
                {"data", "training data"},
                {"buffers", "buffers for states and updates"},
                {"daemon", "states and updates that the daemon holds"},
                {"activations", "activations and their gradients"},
                {"total", "total"}};
    char text[DP_PRINT_CELL_MAX];
    char there[DP_PRINT_CELL_MAX];
    dp_print_count(dp_json_real(plan, "parameters", 0), text);
    printf("Memory that %s for %s parameters:\n",
           external ? "a node of this run needs, without the script," : "training needs", text);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bool maybe = external || strcmp(rows[i].key, "base") == 0;
        if (maybe && dp_json_real(plan, rows[i].key, 0) == 0) {
            continue; /* No network, no optimizer, no data; no adapters. */
        }
        dp_print_bytes((uint64_t)dp_json_real(plan, rows[i].key, 0), text);
        printf("  %10s  %s\n", text, rows[i].text);
    }
    dp_print_bytes((uint64_t)dp_json_real(plan, "budget", 0), there);
    if (!json_is_true(json_object_get(plan, "fits"))) {
        printf("%s does not fit this machine: %s\n", dp_print_mark(false),
               dp_json_text(plan, "why", ""));
        return;
    }
    if (external) {
        printf("%s fits: this machine has %s; the script that trains the model needs more on top\n",
               dp_print_mark(true), there);
        return;
    }
    if (dp_json_real(plan, "base", 0) > 0) {
        printf("  The CPU trains adapters; a graphics card does not yet.\n");
    }
    const double at_once = dp_json_real(plan, "rows", 0);
    printf("%s fits: this machine has %s; trains %.0f %s at a time, recomputes: %s, packed "
           "weights: %s\n",
           dp_print_mark(true), there, at_once, at_once > 1 ? "sequences" : "sequence",
           dp_json_text(plan, "recompute", "?"), dp_json_text(plan, "packs", "?"));
}

static bool prepares(const dp_manifest *manifest, const char *path, const char *folder, bool skip,
                     char why[DP_PLAN_WHY_MAX])
{
    static dp_cli_tool tool; /* too large for a stack */
    char manifest_path[DP_CLI_TOOL_PATH_MAX];
    const int fd = dp_cli_tool_manifest(manifest, manifest_path);
    if (fd < 0) {
        return true;
    }
    const char *const arguments[] = {"--prepare",  path,          folder,
                                     "--manifest", manifest_path, skip ? "--skip-bad-lines" : NULL,
                                     NULL};
    const dp_status run = dp_cli_tool_run(&tool, arguments);
    close(fd);
    snprintf(why, DP_PLAN_WHY_MAX, "%.*s", DP_PLAN_WHY_MAX - 1, tool.words);
    return run != DP_OK || tool.exit == 0;
}

bool dp_plan_text_holds(const dp_manifest *manifest, const char *path, bool skip,
                        char why[DP_PLAN_WHY_MAX])
{
    char folder[DP_CLI_PATH_MAX];
    const uint64_t training = 1000 - (uint64_t)manifest->val_per_mille;
    const uint64_t tokens =
        ((uint64_t)manifest->context + 1) * 1000 / (training > 0 ? training : 1);
    if (bytes_of(path, "") >= tokens * TOKEN_BYTES_MOST ||
        /* No space here: the daemon tries in its own folder. */
        !dp_children_folder("text", folder)) {
        return true;
    }
    const bool holds = prepares(manifest, path, folder, skip, why);
    DP_IGNORE(dp_path_remove_tree(folder)); /* It is in the folder for temporary files. */
    return holds;
}

bool dp_plan_disk_holds(const dp_manifest *manifest, uint64_t data_bytes, const char *dir,
                        char why[DP_PLAN_WHY_MAX])
{
    char path[DP_CLI_PATH_MAX];
    uint64_t there = 0;
    snprintf(path, sizeof path, "%s", dir);
    while (
        /* A folder that does not exist yet will be on its parent's disk. */
        !dp_disk_free(path, &there)) {
        char *const slash = strrchr(path, '/');
        if (slash == NULL || slash == path) {
            return true;
        }
        *slash = '\0';
    }
    const uint64_t needs = /* Prepared, and in the store. */
        dp_prepared_disk_bytes(manifest, 2 * data_bytes);
    char takes[DP_PRINT_CELL_MAX];
    char free_text[DP_PRINT_CELL_MAX];
    dp_print_bytes(needs, takes);
    dp_print_bytes(there, free_text);
    snprintf(why, DP_PLAN_WHY_MAX, "data and two states need %s, %s are free in %.300s", takes,
             free_text, path);
    return there >= needs;
}

bool dp_plan_tensors(const char *path, dp_manifest *manifest, char why[DP_PLAN_WHY_MAX])
{
    static dp_cli_tool tool; /* too large for a stack */
    const char *const arguments[] = {"--tensors", path, NULL};
    if (dp_cli_tool_run(&tool, arguments) != DP_OK) {
        return true;
    }
    json_t *const told = tool.exit == 0 ? json_loads(tool.answer, 0, NULL) : NULL;
    const long long elements = dp_json_int(told, "elements", 0);
    manifest->elements = elements > 0 ? (uint64_t)elements : manifest->elements;
    json_decref(told);
    snprintf(why, DP_PLAN_WHY_MAX, "%.*s", DP_PLAN_WHY_MAX - 1, tool.words);
    return tool.exit == 0;
}

bool dp_plan_model(const char *weights, dp_model_config *model)
{
    static dp_cli_tool tool; /* too large for a stack */
    static dp_manifest_file file;
    const char *const arguments[] = {"--model", weights, NULL};
    dp_why what = {""};
    dp_why fix = {""};
    const bool good =
        dp_cli_tool_run(&tool, arguments) == DP_OK && tool.exit == 0 &&
        dp_manifest_yaml_read(dp_view_text(tool.answer), "", NULL, &file, &what, &fix) == DP_OK;
    *model = good ? dp_manifest_model(&file.manifest) : *model;
    return good;
}
