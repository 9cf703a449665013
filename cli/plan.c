#include "cli/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/json.h"
#include "cli/paths.h"
#include "cli/print.h"

enum { ANSWER_BYTES_MAX = 8192 };

/* In the child. Ends it. */
static void become_worker(const char *program, int in, int out)
{
    const int none = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (none < 0 || dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
        dup2(none, STDERR_FILENO) < 0) {
        _exit(127);
    }
    execlp(program, program, "--plan", "-", (char *)NULL);
    _exit(127);
}

/* All that comes until the end, or until there is no room. */
static size_t read_answer(int fd, char *answer)
{
    size_t size = 0;
    while (size < ANSWER_BYTES_MAX) {
        const ssize_t got = read(fd, answer + size, ANSWER_BYTES_MAX - size);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            break;
        }
        size += (size_t)got;
    }
    return size;
}

/* The manifest, which a pipe holds whole, goes in before the worker starts: nobody waits for anybody. */
static bool fill_pipe(int fd, const dp_manifest *manifest)
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    return dp_manifest_encode(manifest, bytes, &size) == DP_OK &&
           write(fd, bytes, size) == (ssize_t)size;
}

static json_t *ask(const char *program, int in, const int out[2])
{
    char answer[ANSWER_BYTES_MAX];
    int status = 0;
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
        become_worker(program, in, out[1]);
    }
    close(out[1]);
    if (pid < 0) {
        return NULL;
    }
    const size_t size = read_answer(out[0], answer);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return NULL;
    }
    return json_loadb(answer, size, 0, NULL);
}

json_t *dp_plan_ask(const dp_manifest *manifest)
{
    char program[DP_CLI_PATH_MAX];
    int in[2];
    int out[2];
    dp_path_program("dpnode-worker", program);
    if (pipe2(in, O_CLOEXEC) != 0) {
        return NULL;
    }
    json_t *plan = NULL;
    const bool filled = fill_pipe(in[1], manifest);
    close(in[1]);
    if (filled && pipe2(out, O_CLOEXEC) == 0) {
        plan = ask(program, in[0], out);
        close(out[0]);
    }
    close(in[0]);
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
    printf("%s this machine has %s for it: %.0f sequences at a time, recomputed: %s\n",
           dp_print_mark(true), there, dp_json_real(plan, "rows", 0),
           dp_json_text(plan, "recompute", "?"));
}
