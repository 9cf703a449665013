/* A mock of all of cli/start/start.h, the start of daemons. For verbs that start one if none
 * answers; used with verb_kit.h. */
#ifndef DP_TESTS_UNIT_CLI_START_KIT_H
#define DP_TESTS_UNIT_CLI_START_KIT_H

#include "cli/start/start.h"
#include "tests/unit/cli/verb_kit.h"

static struct {
    bool starts; /* none ran before */
    int fails;   /* the exit status of a start; 0: it does not fail */
    uint32_t n;  /* daemons started */
    uint32_t n_undone;
    char dir[DP_CLI_PATH_MAX]; /* of the last daemon */
    char words[1024];          /* its further arguments, with blanks between them */
} start_kit;

static inline int start_fail(dp_control_error *error)
{
    dp_error_set(error, start_kit.fails, "E0102", "", "dpnoded cannot be started", "");
    return start_kit.fails;
}

int dp_start_spawn(const dp_start *start, pid_t *pid, dp_control_error *error)
{
    if (start_kit.fails != 0) {
        return start_fail(error);
    }
    snprintf(start_kit.dir, sizeof start_kit.dir, "%s", start->dir);
    start_kit.words[0] = '\0';
    for (size_t i = 0; start->extra != NULL && start->extra[i] != NULL; i++) {
        strncat(start_kit.words, start->extra[i],
                sizeof start_kit.words - strlen(start_kit.words) - 2);
        strcat(start_kit.words, " ");
    }
    start_kit.n++;
    *pid = (pid_t)((1U << 30) + start_kit.n); /* above what Linux gives: no process is hit */
    return 0;
}

int dp_start_daemon(const dp_start *start, pid_t *pid, dp_control_error *error)
{
    return dp_start_spawn(start, pid, error);
}

int dp_start_if_none(const dp_cmd *cmd, dp_client *client, bool *started, dp_control_error *error)
{
    if (start_kit.fails != 0) {
        return start_fail(error);
    }
    *started = start_kit.starts;
    start_kit.n += start_kit.starts ? 1 : 0;
    return dp_client_open(client, cmd->socket, error) == DP_OK ? 0 : error->exit;
}

bool dp_start_would(const dp_cmd *cmd, char dir[DP_CLI_PATH_MAX])
{
    (void)cmd;
    snprintf(dir, DP_CLI_PATH_MAX, "%s", "/tmp");
    return start_kit.starts;
}

void dp_start_undo(const dp_cmd *cmd)
{
    (void)cmd;
    start_kit.n_undone++;
}

/* A setup of cmocka. */
static inline int start_setup(void **state)
{
    memset(&start_kit, 0, sizeof start_kit);
    return verb_setup(state);
}

#define START_TEST(test) cmocka_unit_test_setup(test, start_setup)

#endif
