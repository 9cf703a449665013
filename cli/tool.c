#include "cli/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/paths.h"
#include "cli/print.h"

enum { CANNOT_RUN = 127 };

/* ---- words ---- */

void dp_cli_words_add(dp_cli_words *words, const char *word)
{
    /* Stores one too many, so that the excess is noticed. */
    if (words->count <= DP_CLI_TOOL_ARGUMENTS_MAX) {
        words->list[words->count] = word;
        words->count++;
    }
}

void dp_cli_words_pair(dp_cli_words *words, const char *flag, const char *value)
{
    if (value != NULL) {
        dp_cli_words_add(words, flag);
        dp_cli_words_add(words, value);
    }
}

void dp_cli_words_option(dp_cli_words *words, const dp_cmd *cmd, const char *flag)
{
    dp_cli_words_pair(words, flag, dp_cmd_option(cmd, flag + 2));
}

int dp_cli_tool_manifest(const dp_manifest *manifest, char path[DP_CLI_TOOL_PATH_MAX])
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    const int fd = memfd_create("manifest", 0);
    if (fd >= 0 && (dp_manifest_encode(manifest, bytes, &size) != DP_OK ||
                    pwrite(fd, bytes, size, 0) != (ssize_t)size)) {
        close(fd);
        return -1;
    }
    snprintf(path, DP_CLI_TOOL_PATH_MAX, "/proc/self/fd/%d", fd);
    return fd;
}

/* ---- the process ---- */

/* Runs in the child, and ends it. */
static void become_worker(const char *program, const char *const *arguments, int out, int err)
{
    const char *list[DP_CLI_TOOL_ARGUMENTS_MAX + 2] = {program};
    char *vector[DP_CLI_TOOL_ARGUMENTS_MAX + 2];
    const int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (none < 0 || dup2(none, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(err, STDERR_FILENO) < 0) {
        _exit(CANNOT_RUN);
    }
    for (size_t i = 0; arguments[i] != NULL; i++) {
        list[i + 1] = arguments[i];
    }
    memcpy(vector, list,
           sizeof vector); /* execvp takes writable strings, but does not write to them. */
    umask(dp_path_user_umask());
    execvp(program, vector);
    _exit(CANNOT_RUN);
}

/* Reads to the end of the pipe; output that does not fit is dropped, so that the tool is not
 * blocked. */
static bool read_all(int fd, char *text, size_t max)
{
    size_t size = 0;
    bool fits = true;
    for (;;) {
        char rest[512];
        const ssize_t n =
            size < max ? read(fd, text + size, max - size) : read(fd, rest, sizeof rest);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            break;
        }
        fits = fits && size < max;
        size += size < max ? (size_t)n : 0;
    }
    text[size] = '\0';
    return fits;
}

/* Passes on lines as they arrive. */
static void read_lines(int fd, dp_cli_on_line *on_line, void *context)
{
    char line[DP_CLI_TOOL_LINE_MAX + 1];
    char piece[4096];
    size_t size = 0;
    for (;;) {
        const ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return; /* An incomplete line is ignored. */
        }
        for (ssize_t i = 0; i < n; i++) {
            if (piece[i] == '\n') {
                line[size] = '\0';
                on_line(context, line);
                size = 0;
            } else if (size < DP_CLI_TOOL_LINE_MAX) {
                line[size] = piece[i];
                size++;
            }
        }
    }
}

typedef struct child {
    pid_t pid;
    int out;
    int err;
} child;

static void end_streams(const child *c)
{
    close(c->out);
    close(c->err);
}

/* Standard error is one sentence, which fits into a pipe, so it is read after the answer. */
static dp_status finish(dp_cli_tool *tool, const child *c)
{
    int status = 0;
    (void)read_all(c->err, tool->words, DP_CLI_TOOL_WORDS_MAX);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) {
    }
    for (size_t size = strlen(tool->words); size > 0 && tool->words[size - 1] == '\n'; size--) {
        tool->words[size - 1] = '\0';
    }
    tool->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return tool->exit == CANNOT_RUN ? DP_NOTFOUND : DP_OK;
}

static dp_status start(child *c, const char *name, const char *const *arguments, bool dies_with_us)
{
    char program[DP_CLI_PATH_MAX];
    int out[2];
    int err[2];
    size_t count = 0;
    while (arguments[count] != NULL) {
        count++;
    }
    if (count > DP_CLI_TOOL_ARGUMENTS_MAX) {
        return DP_TOOBIG;
    }
    if (pipe2(out, O_CLOEXEC) != 0) {
        return DP_AGAIN;
    }
    if (pipe2(err, O_CLOEXEC) != 0) {
        close(out[0]);
        close(out[1]);
        return DP_AGAIN;
    }
    dp_path_program(name, program);
    fflush(NULL);
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        if (dies_with_us && (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)) {
            _exit(CANNOT_RUN);
        }
        become_worker(program, arguments, out[1], err[1]);
    }
    close(out[1]);
    close(err[1]);
    *c = (child){.pid = pid, .out = out[0], .err = err[0]};
    if (pid < 0) {
        end_streams(c);
        return DP_AGAIN;
    }
    return DP_OK;
}

dp_status dp_cli_tool_run_program(dp_cli_tool *tool, const char *program,
                                  const char *const *arguments)
{
    child c;
    DP_TRY(start(&c, program, arguments, false));
    const bool fits = read_all(c.out, tool->answer, DP_CLI_TOOL_ANSWER_MAX);
    const dp_status status = finish(tool, &c);
    end_streams(&c);
    return status != DP_OK || fits ? status : DP_TOOBIG;
}

dp_status dp_cli_tool_run(dp_cli_tool *tool, const char *const *arguments)
{
    return dp_cli_tool_run_program(tool, "dpnode-worker", arguments);
}

static volatile pid_t followed;

static void pass_on(int number)
{
    if (followed > 0) {
        kill(followed, number);
    }
}

dp_status dp_cli_tool_follow(dp_cli_tool *tool, const char *const *arguments,
                             dp_cli_on_line *on_line, void *context)
{
    const struct sigaction passing = {.sa_handler = pass_on};
    struct sigaction before[2];
    child c;
    tool->answer[0] = '\0';
    DP_TRY(start(&c, "dpnode-worker", arguments, true));
    followed = c.pid;
    sigaction(SIGINT, &passing, &before[0]);
    sigaction(SIGTERM, &passing, &before[1]);
    read_lines(c.out, on_line, context);
    const dp_status status = finish(tool, &c);
    followed = 0;
    sigaction(SIGINT, &before[0], NULL);
    sigaction(SIGTERM, &before[1], NULL);
    end_streams(&c);
    return status;
}

/* ---- failures ---- */

int dp_cli_tool_missing(const dp_cmd *cmd, dp_status status)
{
    dp_control_error error;
    if (status == DP_NOTFOUND) {
        dp_error_set(&error, DP_EXIT_UNAVAILABLE, "E0505",
                     "install dpnode-worker beside dpnode, or add its folder to PATH",
                     "dpnode-worker cannot be run", "");
    } else if (status == DP_TOOBIG) {
        dp_error_set(&error, DP_EXIT_SOFTWARE, "E0504", "give fewer or shorter arguments",
                     "dpnode-worker could not be asked, or its answer is too large",
                     dp_status_text(status));
    } else {
        dp_error_set(&error, DP_EXIT_TEMPORARY, "E0109", "try again", "no process could be started",
                     dp_status_text(status));
    }
    return dp_cmd_fail(cmd, &error);
}

static const dp_cli_failure *find_row(const dp_cli_failure *rows, int exit)
{
    for (; rows != NULL && rows->exit != 0; rows++) {
        if (rows->exit == exit) {
            return rows;
        }
    }
    return NULL;
}

int dp_cli_tool_failed(const dp_cmd *cmd, const dp_cli_tool *tool, const dp_cli_failure *rows,
                       const char *unexpected)
{
    char help[96];
    snprintf(help, sizeof help, "dpnode %s --help", cmd->verb->name);
    const dp_cli_failure common[] = {
        {DP_EXIT_USAGE, "E0001", help, "an option's value is not valid"},
        {DP_EXIT_NOINPUT, "E0502", "check the path", "a file does not exist"},
        {DP_EXIT_IO, "E0503", "check the free space (df -h) and the folder's permissions (ls -ld)",
         "a file cannot be read or written"},
        {0, NULL, NULL, NULL}};
    dp_control_error error;
    const dp_cli_failure *row = find_row(rows, tool->exit);
    row = row != NULL ? row : find_row(common, tool->exit);
    if (row == NULL) {
        dp_error_set(&error, DP_EXIT_SOFTWARE, "E0504", unexpected, "dpnode-worker ended too early",
                     tool->words);
        return dp_cmd_fail(cmd, &error);
    }
    dp_error_set(&error, row->exit, row->code, row->fix, row->what, tool->words);
    *strchrnul(error.why, '\n') = '\0'; /* The usage text of the tool does not apply to dpnode. */
    return dp_cmd_fail(cmd, &error);
}

void dp_cli_tool_print_documents(const json_t *answer)
{
    const long long bad_lines = dp_json_int(answer, "bad_lines", 0);
    if (json_object_get(answer, "losses") != NULL) {
        printf("  %lld tokens have a loss; %lld fill windows\n", dp_json_int(answer, "losses", 0),
               dp_json_int(answer, "padding", 0));
    }
    if (dp_json_int(answer, "cut", 0) > 0) {
        printf("  %lld documents were longer than model.context and were cut\n",
               dp_json_int(answer, "cut", 0));
    }
    if (dp_json_int(answer, "left_out", 0) > 0) {
        printf("  %lld documents had nothing to learn (no answer, or none before the cut) and were "
               "left out\n",
               dp_json_int(answer, "left_out", 0));
    }
    if (bad_lines > 0) {
        printf("%s %lld %s skipped; the first: ", dp_print_mark(false), bad_lines,
               bad_lines > 1 ? "lines were" : "line was");
        dp_print_text(dp_json_text(answer, "first_bad", ""));
        printf("\n");
    }
}
