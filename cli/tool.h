/* Runs a tool of dpnode-worker as a separate process, because the command line links no engine,
 * and reports its failures. */
#ifndef DP_CLI_TOOL_H
#define DP_CLI_TOOL_H

#include <jansson.h>

#include "base/run/manifest.h"
#include "cli/cmd.h"

enum {
    DP_CLI_TOOL_ARGUMENTS_MAX = 96,
    /* A word has at most 128 KiB (MAX_ARG_STRLEN), and an answer repeats a prompt, as JSON. */
    DP_CLI_TOOL_ANSWER_MAX = 1024 * 1024,
    DP_CLI_TOOL_WORDS_MAX = 1024,
    DP_CLI_TOOL_PATH_MAX = 64
};

typedef struct dp_cli_tool {
    int exit;                                /* of the tool */
    char answer[DP_CLI_TOOL_ANSWER_MAX + 1]; /* its standard output */
    /* its standard error, without the line feed at the end */
    char words[DP_CLI_TOOL_WORDS_MAX + 1];
} dp_cli_tool;

/* The arguments after the program's name, ended by NULL; zeroed at the start. Arguments beyond the
 * maximum are left out, and then the run returns DP_TOOBIG. */
typedef struct dp_cli_words {
    const char *list[DP_CLI_TOOL_ARGUMENTS_MAX + 2];
    size_t count;
} dp_cli_words;

void dp_cli_words_add(dp_cli_words *words, const char *word);
/* Adds a flag, and its value if value is not NULL. */
void dp_cli_words_pair(dp_cli_words *words, const char *flag, const char *value);
/* Adds an option of the verb, if given, that the tool has under the same name, flag ("--out"). */
void dp_cli_words_option(dp_cli_words *words, const dp_cmd *cmd, const char *flag);
/* Makes a file in memory with the manifest, which tools inherit: its descriptor, and its path for
 * them. -1: no memory. */
int dp_cli_tool_manifest(const dp_manifest *manifest, char path[DP_CLI_TOOL_PATH_MAX]);

/* arguments: after the program's name, ended by NULL. Waits until the tool ends. DP_NOTFOUND:
 * dpnode-worker cannot be run; DP_TOOBIG (arguments, answer), DP_AGAIN (no process). */
DP_MUST dp_status dp_cli_tool_run(dp_cli_tool *tool, const char *const *arguments);

/* The same for another program of this release ("dpnoded"). */
DP_MUST dp_status dp_cli_tool_run_program(dp_cli_tool *tool, const char *program,
                                          const char *const *arguments);

/* The same for a tool that reports its progress: on_line gets each line of its standard output,
 * without line feed; one of more than DP_CLI_TOOL_LINE_MAX bytes is cut. SIGINT and SIGTERM to this
 * process are passed on to the tool meanwhile, and it gets SIGTERM if this process dies. answer
 * stays empty. */
enum { DP_CLI_TOOL_LINE_MAX = 4096 };
typedef void dp_cli_on_line(void *context, const char *line);
DP_MUST dp_status dp_cli_tool_follow(dp_cli_tool *tool, const char *const *arguments,
                                     dp_cli_on_line *on_line, void *context);

/* The option of verbs that read JSON lines. */
#define DP_SKIP_OPTION                                                                             \
    {                                                                                              \
        "skip-bad-lines", 0, NULL, "skip lines of JSON that cannot be used, and count them"        \
    }
/* Prints what the tool counts of documents that are kept apart and of bad lines, if its answer has
 * it (compute/corpus/document_counts.h). */
void dp_cli_tool_print_documents(const json_t *answer);

/* The meaning of an exit status of the tool for a verb. */
typedef struct dp_cli_failure {
    int exit;
    const char *code;
    const char *fix;
    const char *what;
} dp_cli_failure;

/* Reports the reason why there was no answer, and returns the exit status: no process, no memory,
 * no such program ... */
int dp_cli_tool_missing(const dp_cmd *cmd, dp_status status);
/* ... or the tool's own failure, with its output as the reason. The first row of its exit status
 * counts, of the verb's rows (ended by an exit of 0, may be NULL), then of the common ones: an
 * option, a path, a disk. unexpected: the fix for any other end. */
int dp_cli_tool_failed(const dp_cmd *cmd, const dp_cli_tool *tool, const dp_cli_failure *rows,
                       const char *unexpected);

#endif
