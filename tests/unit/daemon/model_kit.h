/* A run with a checkpoint, and a mock of dpnode-worker as the daemon's tool: records its arguments;
 * the test gives its answer. For files of daemon/control that hand a checkpoint to a tool. */
#ifndef DP_TESTS_UNIT_DAEMON_MODEL_KIT_H
#define DP_TESTS_UNIT_DAEMON_MODEL_KIT_H

#include <sys/stat.h>
#include <unistd.h>

#include "daemon/host/tool.h"
#include "store/ckpt.h"
#include "store/inside.h"
#include "tests/unit/daemon/call_kit.h"

enum { WORDS_MAX = 16 };

static struct {
    char folder[DP_CONFIG_PATH_MAX];
    dp_status folders; /* what making it gives */
    dp_status runs;
    uint32_t n_words;
    char words[WORDS_MAX][DP_CONFIG_PATH_MAX + 64];
    dp_tool_done *done;
    void *context;
    uint32_t n_removed;
} tool;

dp_status dp_tool_folder(const dp_daemon *daemon, char path[DP_CONFIG_PATH_MAX])
{
    (void)daemon;
    snprintf(path, DP_CONFIG_PATH_MAX, "%s", tool.folder);
    return tool.folders;
}

void dp_tool_folder_remove(const char *path)
{
    assert_string_equal(path, tool.folder);
    tool.n_removed++;
}

dp_status dp_tool_file(const char *folder, const char *name, dp_view bytes)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "we");
    CHECK(file != NULL && fwrite(bytes.data, 1, bytes.size, file) == bytes.size);
    return fclose(file) == 0 ? DP_OK : DP_IO;
}

dp_status dp_tool_run(dp_daemon *daemon, const char *program, const char *const *arguments,
                      dp_tool_done *done, void *context)
{
    (void)program;
    (void)daemon;
    for (tool.n_words = 0; arguments[tool.n_words] != NULL; tool.n_words++) {
        CHECK(tool.n_words < WORDS_MAX);
        snprintf(tool.words[tool.n_words], sizeof tool.words[0], "%s", arguments[tool.n_words]);
    }
    tool.done = done;
    tool.context = context;
    return tool.runs;
}

static inline bool is_running(void *context)
{
    return tool.done != NULL || call_is_answered(context);
}

/* A run with a tokenizer and, at a round, a checkpoint. */
static inline void open_run(uint64_t round)
{
    memset(&tool, 0, sizeof tool);
    dp_driver *driver = call_open();
    tempdir_file(&desk.shelf.dir, "tool", tool.folder);
    assert_int_equal(mkdir(tool.folder, 0700), 0);
    call_kit.has_manifest = true;
    memcpy(driver->facts.manifest, "manifest", 8);
    driver->facts.manifest_bytes = 8;
    driver->manifest.tokenizer = put_noise(desk.shelf.store, 3, 300, DP_PIN_DATA, 0);
    if (round > 0) {
        uint8_t *bytes = noise(round, 5000);
        dp_ckpt ckpt = {.round = round, .slot = round, .state_root = name_of(round)};
        CHECK_OK(
            dp_ckpt_save(desk.shelf.store, &driver->facts.run, &ckpt, dp_view_of(bytes, 5000)));
        free(bytes);
    }
}

static inline long size_of(const char *name)
{
    char path[DP_CONFIG_PATH_MAX + 64];
    struct stat info;
    snprintf(path, sizeof path, "%s/%s", tool.folder, name);
    return stat(path, &info) == 0 ? (long)info.st_size : -1;
}

#endif
