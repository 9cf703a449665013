#include "cli/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/paths.h"

enum { CANNOT_RUN = 127 };

/* In the child. Ends it. */
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
           sizeof vector); /* execvp wants its strings writable, and does not write. */
    execvp(program, vector);
    _exit(CANNOT_RUN);
}

/* All until the end of the pipe; what does not fit is dropped, so that the tool is not held up. */
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

/* Standard error is a sentence, which a pipe holds whole, so it can wait until the answer is read. */
static dp_status follow(dp_cli_tool *tool, pid_t pid, int out, int err)
{
    int status = 0;
    const bool fits = read_all(out, tool->answer, DP_CLI_TOOL_ANSWER_MAX);
    (void)read_all(err, tool->words, DP_CLI_TOOL_WORDS_MAX);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    for (size_t size = strlen(tool->words); size > 0 && tool->words[size - 1] == '\n'; size--) {
        tool->words[size - 1] = '\0';
    }
    tool->exit = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    if (tool->exit == CANNOT_RUN) {
        return DP_NOTFOUND;
    }
    return fits ? DP_OK : DP_TOOBIG;
}

dp_status dp_cli_tool_run(dp_cli_tool *tool, const char *const *arguments)
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
    dp_path_program("dpnode-worker", program);
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        become_worker(program, arguments, out[1], err[1]);
    }
    close(out[1]);
    close(err[1]);
    const dp_status status = pid < 0 ? DP_AGAIN : follow(tool, pid, out[0], err[0]);
    close(out[0]);
    close(err[0]);
    return status;
}
