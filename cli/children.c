#include "cli/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"

/* The state that the signal handler reads and writes. */
static volatile sig_atomic_t interrupted;
static volatile sig_atomic_t passed_on;
static volatile pid_t children[DP_CHILDREN_MAX];

bool dp_children_interrupted(void)
{
    return interrupted != 0;
}

volatile pid_t *dp_children_pid(unsigned child)
{
    dp_assert(child < DP_CHILDREN_MAX);
    return &children[child];
}

void dp_children_signal(int number)
{
    for (unsigned i = 0; i < DP_CHILDREN_MAX; i++) {
        if (children[i] > 0) {
            kill(children[i], number);
        }
    }
}

static void on_signal(int number)
{
    (void)number;
    const int kept = errno;
    interrupted = 1;
    dp_children_signal(passed_on);
    errno = kept;
}

void dp_children_watch(int number)
{
    struct sigaction action = {.sa_handler = on_signal};
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    passed_on = number;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        sigaction(numbers[i], &action, NULL);
    }
}

bool dp_children_folder(const char *name, char path[DP_CLI_PATH_MAX])
{
    const char *const temporary = getenv("TMPDIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    snprintf(path, DP_CLI_PATH_MAX, "%.300s/dpnode-%.32s-XXXXXX",
             temporary != NULL && temporary[0] == '/' ? temporary : "/tmp", name);
    return mkdtemp(path) != NULL;
}

void dp_children_path(const char *folder, unsigned child, const char *what,
                      char path[DP_CLI_PATH_MAX])
{
    snprintf(path, DP_CLI_PATH_MAX, "%.400s/%s%u", folder, what, child + 1);
}
