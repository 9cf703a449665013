/* A tool of dpnode-worker, run as a process of its own: the command line links no engine. */
#ifndef DP_CLI_TOOL_H
#define DP_CLI_TOOL_H

#include <stdint.h>

#include "base/status.h"

enum {
    DP_CLI_TOOL_ARGUMENTS_MAX = 96,
    DP_CLI_TOOL_ANSWER_MAX = 64 * 1024,
    DP_CLI_TOOL_WORDS_MAX = 1024
};

typedef struct dp_cli_tool {
    int exit;                                /* of the tool */
    char answer[DP_CLI_TOOL_ANSWER_MAX + 1]; /* its standard output */
    char
        words[DP_CLI_TOOL_WORDS_MAX + 1]; /* its standard error, without the line feed at the end */
} dp_cli_tool;

/* arguments: after the program's name, ended by NULL. Waits until the tool ends. DP_NOTFOUND: dpnode-worker cannot be run;
 * DP_TOOBIG (arguments, answer), DP_AGAIN (no process). */
DP_MUST dp_status dp_cli_tool_run(dp_cli_tool *tool, const char *const *arguments);

/* The same for a tool that tells as it goes: each line of its standard output, without its line feed, is given to on_line; one
 * of more than DP_CLI_TOOL_LINE_MAX bytes is cut. SIGINT and SIGTERM to this process are passed on to the tool meanwhile, and
 * it gets SIGTERM should this process die. answer stays empty. */
enum { DP_CLI_TOOL_LINE_MAX = 4096 };
typedef void dp_cli_on_line(void *context, const char *line);
DP_MUST dp_status dp_cli_tool_follow(dp_cli_tool *tool, const char *const *arguments,
                                     dp_cli_on_line *on_line, void *context);

#endif
