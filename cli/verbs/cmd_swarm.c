/* swarm: several real daemons on this machine with one run, for tests. It removes all of its
 * files. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/children.h"
#include "cli/json.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "cli/start/start.h"
#include "cli/verbs/cmd_join.h"
#include "cli/verbs/cmd_rounds.h"
#include "cli/verbs/cmd_run.h"

enum { NODES_MAX = DP_CHILDREN_MAX, END_MS_MAX = 10 * 1000, LOOK_EVERY_MS = 20 };

typedef struct swarm {
    const dp_cmd *cmd;
    unsigned count;
    char dir[DP_CLI_PATH_MAX];
    bool dir_is_ours;
    uint64_t rounds_left; /* rounds that count every node, until it ends by itself; 0: unlimited */
} swarm;

static void node_path(const swarm *self, unsigned index, const char *what,
                      char path[DP_CLI_PATH_MAX])
{
    dp_children_path(self->dir, index, what, path);
}

static int make_dir(swarm *self, dp_control_error *error)
{
    const char *given = dp_cmd_option(self->cmd, "dir");
    bool made = false;
    if (given != NULL) {
        made =
            dp_path_absolute(given, self->dir) == DP_OK && dp_path_make_folders(self->dir) == DP_OK;
    } else {
        self->dir_is_ours = dp_children_folder("swarm", self->dir);
        made = self->dir_is_ours;
    }
    char socket[DP_CLI_PATH_MAX];
    node_path(self, NODES_MAX, "s", socket);
    if (made && strlen(socket) <= DP_CONTROL_PATH_MAX) {
        return 0;
    }
    dp_error_set(error, DP_EXIT_CANTCREATE, "E0108", "give a shorter path with --dir",
                 made ? "the folder's path is too long for sockets" : "the folder cannot be made",
                 self->dir);
    return error->exit;
}

static int start_node(const swarm *self, unsigned index, dp_client *client, dp_control_error *error)
{
    static const char *const extra[] = {"--listen", "127.0.0.1:0", "--threads", "1", "--ballast",
                                        "1M",       "--margin",    "1M",        NULL};
    char dir[DP_CLI_PATH_MAX];
    char socket[DP_CLI_PATH_MAX];
    pid_t pid = 0;
    node_path(self, index, "node", dir);
    node_path(self, index, "s", socket);
    const dp_start start = {
        .dir = dir, .socket = socket, .extra = extra, .pid = dp_children_pid(index)};
    const int status = dp_start_daemon(&start, &pid, error);
    if (status != 0) {
        return status;
    }
    if (dp_client_open(client, socket, error) != DP_OK) {
        dp_client_close(client);
        return error->exit;
    }
    return 0;
}

static int say_node(const swarm *self, unsigned index, const char *name)
{
    char socket[DP_CLI_PATH_MAX];
    node_path(self, index, "s", socket);
    if (self->cmd->json) {
        return dp_cmd_print(json_pack("{s:s,s:o,s:i}", "node", name, "socket",
                                      dp_json_string(socket), "pid", (int)*dp_children_pid(index)));
    }
    printf("%s %-8s pid %d   DPNODE_SOCKET=%s\n", dp_print_mark(true), name,
           (int)*dp_children_pid(index), socket);
    return fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
}

/* The founder (index 0) creates the run, and token gets the invite; the others join by it. */
static int bring_in(const swarm *self, unsigned index, const dp_run_input *input, char **token,
                    dp_control_error *error)
{
    dp_client client;
    char name[16];
    json_t *result = NULL;
    snprintf(name, sizeof name, "node%u", index + 1);
    int status = start_node(self, index, &client, error);
    if (status != 0) {
        return status;
    }
    if (index == 0) {
        status = dp_run_create(&client, input, name, NULL, NULL, &result, error);
        if (status == 0) {
            status = dp_invite_own(&client, token, error);
        }
        if (status == 0 && *token == NULL) {
            dp_error_set(error, DP_EXIT_SOFTWARE, "E0199", "", "out of memory", "");
            status = error->exit;
        }
    } else {
        status = dp_join(&client, *token, name, NULL, NULL, &result, error);
    }
    json_decref(result);
    dp_client_close(&client);
    return status != 0 ? status : say_node(self, index, name);
}

static int on_round(void *context, const json_t *notice)
{
    swarm *self = context;
    const json_t *round = json_object_get(notice, "round");
    int status = 0;
    if (self->cmd->json) {
        status = dp_cmd_print(json_deep_copy(round));
    } else {
        dp_rounds_print(round, false);
        status = fflush(stdout) == 0 ? 0 : DP_EXIT_IO;
    }
    const bool whole = dp_json_int(round, "listed", 0) >= (long long)self->count;
    const bool last = whole && self->rounds_left == 1;
    self->rounds_left -= whole && self->rounds_left > 0;
    return status != 0 ? status : last ? DP_EXIT_INTERRUPTED : 0;
}

/* Prints rounds of the first node until a signal, or so many of them. Both are successful ends. */
static int follow(swarm *self, dp_control_error *error)
{
    dp_client client;
    char socket[DP_CLI_PATH_MAX];
    json_t *result = NULL;
    node_path(self, 0, "s", socket);
    if (dp_client_open(&client, socket, error) != DP_OK) {
        dp_client_close(&client);
        return error->exit;
    }
    if (!self->cmd->json) {
        dp_rounds_print_head(false);
    }
    dp_packer packer = dp_client_begin(&client, "rounds");
    dp_pack_map(&packer, 2);
    dp_pack_text(&packer, "last");
    dp_pack_u64(&packer, 0);
    dp_pack_text(&packer, "follow");
    dp_pack_bool(&packer, true);
    const int status = dp_client_call(&client, &packer, on_round, self, &result, error);
    json_decref(result);
    dp_client_close(&client);
    return status == DP_EXIT_INTERRUPTED && error->code[0] == '\0' ? 0 : status;
}

static bool all_ended(void)
{
    bool ended = true;
    for (unsigned i = 0; i < NODES_MAX; i++) {
        volatile pid_t *const pid = dp_children_pid(i);
        if (*pid > 0 && (waitpid(*pid, NULL, WNOHANG) == *pid || errno == ECHILD)) {
            *pid = 0;
        }
        ended = ended && *pid <= 0;
    }
    return ended;
}

static void end_all(const swarm *self)
{
    const struct timespec pause = {.tv_nsec = LOOK_EVERY_MS * 1000000L};
    dp_children_signal(SIGINT); /* At once: a drain would have no use. */
    for (unsigned waited = 0; !all_ended() && waited < END_MS_MAX; waited += LOOK_EVERY_MS) {
        nanosleep(&pause, NULL);
    }
    for (unsigned i = 0; i < NODES_MAX; i++) {
        volatile pid_t *const pid = dp_children_pid(i);
        if (*pid > 0) {
            kill(*pid, SIGKILL);
            waitpid(*pid, NULL, 0);
            *pid = 0;
        }
    }
    if (self->dir_is_ours) {
        DP_IGNORE(dp_path_remove_tree(
            self->dir)); /* Remaining files are in the folder for temporary files. */
    }
}

static int run_all(swarm *self, const dp_run_input *input, dp_control_error *error)
{
    char *token = NULL;
    int status = 0;
    for (unsigned i = 0; i < self->count && status == 0 && !dp_children_interrupted(); i++) {
        status = bring_in(self, i, input, &token, error);
    }
    free(token);
    if (status == 0 && !dp_children_interrupted()) {
        if (!self->cmd->json) {
            printf("All nodes have joined. With one of these sockets try: dpnode top, status, "
                   "peers, sample. Ctrl-C ends them all.\n");
            fflush(stdout);
        }
        status = follow(self, error);
    }
    return dp_children_interrupted() ? 0 : status;
}

static int run_swarm(dp_cmd *cmd)
{
    static dp_run_input input;
    swarm self = {.cmd = cmd};
    dp_run_source source = {.path = cmd->n_args > 0 ? cmd->args[0] : NULL,
                            .demo = dp_cmd_option(cmd, "demo"),
                            .text = dp_cmd_option(cmd, "text")};
    dp_control_error error = {.exit = 0};
    uint64_t count = 3;
    if (source.path == NULL && source.demo == NULL) {
        source.demo = "kjv";
    }
    if (!dp_cmd_number(cmd, "nodes", 1, NODES_MAX, &count, &error) ||
        !dp_cmd_number(cmd, "rounds", 1, UINT32_MAX, &self.rounds_left, &error)) {
        return dp_cmd_fail(cmd, &error);
    }
    self.count = (unsigned)count;
    dp_children_watch(SIGINT);
    int status = dp_run_input_open(&source, &input, &error);
    if (status == 0) {
        status = make_dir(&self, &error);
    }
    if (status == 0) {
        status = run_all(&self, &input, &error);
    }
    dp_run_input_close(&input);
    end_all(&self);
    return status != 0 && error.code[0] != '\0' ? dp_cmd_fail(cmd, &error) : status;
}

const dp_verb dp_verb_swarm = {
    .name = "swarm",
    .run = run_swarm,
    .arguments = "[FILE]",
    .summary = "start several nodes on this machine that train one model; Ctrl-C ends them",
    .examples = "  dpnode swarm -n 3\n  dpnode swarm -n 5 run.yaml --text book.txt\n",
    .n_args_max = 1,
    .options = {{"nodes", 'n', "N", "number of nodes, 1 to 32 [3]"},
                {"demo", 0, "NAME", "a built-in manifest [kjv]"},
                {"text", 0, "FILE", "UTF-8 text to train on"},
                {"rounds", 0, "N", "end after N rounds that count every node"},
                {"dir", 0, "PATH", "keep the nodes' folders here [a temporary folder]"}},
};
