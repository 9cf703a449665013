/* up, down, version: the daemon itself. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/version.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/start/start.h"
#include "cli/watch/question.h"
#include "cli/watch/source.h"

enum { DOWN_WAIT_MS = 30 * 1000 };

static int run_up(dp_cmd *cmd)
{
    dp_client client;
    dp_control_error error;
    bool started = false;
    json_t *hello = NULL;
    int status = dp_start_if_none(cmd, &client, &started, &error);
    if (status == 0) {
        dp_packer packer = dp_client_begin(&client, "hello");
        dp_pack_map(&packer, 0);
        status = dp_client_call(&client, &packer, NULL, NULL, &hello, &error);
        dp_client_close(&client);
    }
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    if (cmd->json) {
        json_object_set_new(hello, "started", json_boolean(started));
        return dp_cmd_print(hello);
    }
    const char *run = dp_json_text(hello, "run", NULL);
    printf("%s dpnoded %s (pid %lld, %s).", dp_print_mark(true), started ? "started" : "is running",
           dp_json_int(hello, "pid", 0), dp_json_text(hello, "state", "?"));
    if (run != NULL) {
        printf(" Run: %s\n", run);
    } else {
        printf(" No run yet.\nto join one: dpnode join TOKEN   # a member prints a token: dpnode "
               "invite\nto create one: dpnode run create --demo kjv\n");
    }
    if (!started && (dp_cmd_option(cmd, "dir") != NULL || dp_cmd_option(cmd, "listen") != NULL)) {
        fprintf(stderr,
                "It keeps its --dir and --listen; to change them: dpnode down, then dpnode up.\n");
    }
    json_decref(hello);
    return 0;
}

const dp_verb dp_verb_up = {
    .name = "up",
    .run = run_up,
    .arguments = "",
    .summary = "start the daemon if it is not running",
    .examples = "  dpnode up\n  dpnode up --listen 0.0.0.0:7718\n",
    .options = {DP_START_OPTIONS},
};

typedef enum ending { ENDING_OVER, ENDING_LASTS, ENDING_UNKNOWN } ending;

/* Waits until the process has ended, or for DOWN_WAIT_MS. A kernel without pidfd_open (before 5.3)
 * cannot report it. */
static ending wait_for_end(long long pid)
{
    const int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0) {
        return errno == ESRCH ? ENDING_OVER : ENDING_UNKNOWN;
    }
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    const bool ended = poll(&wait, 1, DOWN_WAIT_MS) == 1;
    close(fd);
    return ended ? ENDING_OVER : ENDING_LASTS;
}

static int run_down(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *result = NULL;
    const int status = dp_client_ask(cmd, "down", &result, &error);
    if (status != 0) {
        return dp_cmd_fail(cmd, &error);
    }
    const long long pid = dp_json_int(result, "pid", 0);
    const ending is = wait_for_end(pid);
    const int answer = is == ENDING_LASTS ? DP_EXIT_TEMPORARY : 0;
    if (cmd->json) {
        json_object_set_new(result, "ended", json_boolean(is == ENDING_OVER));
        const int printed = dp_cmd_print(result);
        return printed != 0 ? printed : answer;
    }
    printf("%s dpnoded (pid %lld) %s; to start it again: dpnode up\n",
           dp_print_mark(is != ENDING_LASTS), pid,
           is == ENDING_OVER ? "has stopped" : "is stopping and still writes");
    json_decref(result);
    return answer;
}

const dp_verb dp_verb_down = {
    .name = "down",
    .run = run_down,
    .arguments = "",
    .summary = "stop the daemon; training continues on the other nodes",
    .examples = "  dpnode down\n",
};

static int run_version(dp_cmd *cmd)
{
    dp_control_error error;
    json_t *hello = NULL;
    const int status = dp_question_ask(cmd->socket, DP_SOURCE_WAIT_MS,
                                       &(dp_question){.method = "hello"}, &hello, &error);
    const char *daemon = status == 0 ? dp_json_text(hello, "version", "?") : NULL;
    if (cmd->json) {
        json_t *out = json_pack("{s:s,s:s*}", "version", DP_VERSION_TEXT, "daemon", daemon);
        json_decref(hello);
        return dp_cmd_print(out);
    }
    printf("dpnode %s\n", DP_VERSION_TEXT);
    if (daemon != NULL) {
        printf("dpnoded %s\n", daemon);
    }
    json_decref(hello);
    return 0;
}

const dp_verb dp_verb_version = {
    .name = "version",
    .run = run_version,
    .arguments = "",
    .summary = "print the version of dpnode and of the running daemon",
    .examples = "  dpnode version --json\n",
};
