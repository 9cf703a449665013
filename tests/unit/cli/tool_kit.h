/* A mock of dpnode-worker as a tool: records its arguments and gives its answers. A test that
 * includes this is linked with --wrap of dp_cli_tool_run and dp_cli_tool_follow; test_tool.c tests
 * the process itself. */
#ifndef DP_TESTS_UNIT_CLI_TOOL_KIT_H
#define DP_TESTS_UNIT_CLI_TOOL_KIT_H

#include <stdio.h>
#include <string.h>

#include "cli/tool.h"
#include "tests/lib/check.h"

static struct {
    uint32_t n_runs;
    char words[4096]; /* of the last run, each followed by a blank */
    dp_status status; /* of the run itself */
    int exit;
    const char *answer; /* its standard output, with ' for ", or NULL */
    const char *says;   /* its standard error, or NULL */
} tool_kit;

dp_status __wrap_dp_cli_tool_run(dp_cli_tool *tool, const char *const *arguments);
dp_status __wrap_dp_cli_tool_follow(dp_cli_tool *tool, const char *const *arguments,
                                    dp_cli_on_line *on_line, void *context);

static inline void tool_remember(dp_cli_tool *tool, const char *const *arguments)
{
    tool_kit.n_runs++;
    tool_kit.words[0] = '\0';
    for (size_t i = 0; arguments[i] != NULL; i++) {
        CHECK(strlen(tool_kit.words) + strlen(arguments[i]) + 2 < sizeof tool_kit.words);
        strcat(tool_kit.words, arguments[i]);
        strcat(tool_kit.words, " ");
    }
    tool->exit = tool_kit.exit;
    snprintf(tool->words, sizeof tool->words, "%s", tool_kit.says != NULL ? tool_kit.says : "");
    snprintf(tool->answer, sizeof tool->answer, "%s",
             tool_kit.answer != NULL ? tool_kit.answer : "");
    for (char *at = tool->answer; *at != '\0'; at++) {
        *at = *at == '\'' ? '"' : *at;
    }
}

dp_status __wrap_dp_cli_tool_run(dp_cli_tool *tool, const char *const *arguments)
{
    tool_remember(tool, arguments);
    return tool_kit.status;
}

dp_status __wrap_dp_cli_tool_follow(dp_cli_tool *tool, const char *const *arguments,
                                    dp_cli_on_line *on_line, void *context)
{
    tool_remember(tool, arguments);
    for (char *at = tool->answer; *at != '\0';) {
        char *const end = strchrnul(at, '\n');
        const bool last = *end == '\0';
        *end = '\0';
        on_line(context, at);
        at = last ? end : end + 1;
    }
    tool->answer[0] = '\0';
    return tool_kit.status;
}

/* Was it called with these words, and no others between them? */
static inline bool tool_got(const char *words)
{
    if (strstr(tool_kit.words, words) == NULL) {
        print_error("the tool got: %s\n", tool_kit.words);
        return false;
    }
    return true;
}

#endif
