/* web: becomes dpnode-web, a program of its own, so that dpnode links no HTTP library. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cli/paths.h"
#include "cli/web/options.h"

enum { WORDS_MAX = 16, PASSED = 4 };

static int run_web(dp_cmd *cmd)
{
    static const char *const passed[PASSED] = {"listen", "name", "sample", "tensorboard"};
    static char flags[PASSED][16];
    char program[DP_CLI_PATH_MAX];
    const char *list[WORDS_MAX] = {"dpnode-web", "--socket", cmd->socket};
    char *vector[WORDS_MAX];
    size_t n = 3;
    dp_control_error error;

    for (size_t i = 0; i < PASSED; i++) {
        if (dp_cmd_option(cmd, passed[i]) != NULL) {
            snprintf(flags[i], sizeof flags[i], "--%s", passed[i]);
            list[n++] = flags[i];
            list[n++] = dp_cmd_option(cmd, passed[i]);
        }
    }
    if (cmd->json) {
        list[n++] = "--json";
    }
    dp_path_program("dpnode-web", program);
    memcpy(vector, list,
           sizeof vector); /* execvp wants its strings writable, and does not write. */
    execvp(program, vector);
    const int cause = errno;
    dp_error_set(&error, DP_EXIT_UNAVAILABLE, "E0606",
                 "install dpnode-web beside dpnode, or add its folder to PATH",
                 "dpnode-web cannot be run",
                 strerror(cause)); /* NOLINT(concurrency-mt-unsafe): one thread */
    return dp_cmd_fail(cmd, &error);
}

const dp_verb dp_verb_web = {
    .name = "web",
    .run = run_web,
    .arguments = "",
    .summary = DP_WEB_SUMMARY,
    .examples = "  dpnode web\n  dpnode web --listen 0.0.0.0:7719 --name node1.example\n",
    .options = {DP_WEB_OPTIONS},
};
