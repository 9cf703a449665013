/* The first process of a team: the lives of the others. */
#include "compute/backend/process_group.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/backend/process_group_inside.h"
#include "compute/machine/numa.h"

/* Closes all descriptors of the first process but socket: their readers wait until every copy is
 * closed. */
static void keep_only(int socket)
{
    if (socket > STDERR_FILENO + 1) {
        close_range(STDERR_FILENO + 1, (unsigned)socket - 1, 0);
    }
    close_range((unsigned)socket + 1, ~0U, 0);
}

static void live(int socket, pid_t first)
{
    /* Also where the first process is killed before it could say so. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != first) {
        _exit(1);
    }
    /* A terminal signals all processes; only the first one reacts. */
    DP_IGNORE(signal(SIGINT, SIG_IGN) == SIG_ERR);
    DP_IGNORE(signal(SIGTERM, SIG_IGN) == SIG_ERR);
    keep_only(socket);
    dp_process_group_serve(socket);
    _exit(0);
}

static dp_status fork_one(dp_process_group *team, uint32_t rank)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return DP_IO;
    }
    const pid_t first = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        live(pair[1], first);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return DP_NOMEM;
    }
    team->others[rank].pid = pid;
    team->others[rank].socket = pair[0];
    return DP_OK;
}

dp_status dp_process_group_start(dp_process_group **out, uint32_t processes, uint32_t lanes,
                                 dp_why *why)
{
    const uint32_t wanted = lanes != 0 ? lanes : processes;
    if (processes == 0 || processes > DP_PROCESS_BARRIER_PROCESSES_MAX || wanted < processes ||
        wanted > DP_ZERO_LANES_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "%u processes with %u lanes: 1 to %d processes, and a "
                          "lane or more for each, %d at most",
                          processes, wanted, DP_PROCESS_BARRIER_PROCESSES_MAX, DP_ZERO_LANES_MAX);
    }
    dp_process_group *const team = dp_alloc(1, sizeof *team);
    if (team == NULL) {
        return DP_NOMEM;
    }
    team->processes = processes;
    team->lanes = wanted;
    team->open_ms = DP_PROCESS_GROUP_WAIT_US / 1000;
    dp_status status = DP_OK;
    for (uint32_t rank = 1; rank < processes && status == DP_OK; rank++) {
        status = fork_one(team, rank);
    }
    if (status != DP_OK) {
        dp_process_group_close(team);
        return dp_why_set(why, status, "no room for %u processes that compute", processes);
    }
    *out = team;
    return DP_OK;
}

/* It holds nothing that another one needs. */
static void end_one(const dp_process_group *team, uint32_t rank)
{
    close(team->others[rank].socket);
    DP_IGNORE(kill(team->others[rank].pid, SIGKILL) != 0);
    DP_IGNORE(waitpid(team->others[rank].pid, NULL, 0) < 0); /* It is gone, as it should be. */
}

void dp_process_group_close(dp_process_group *team)
{
    if (team == NULL) {
        return;
    }
    for (uint32_t rank = 1; rank < team->processes; rank++) {
        if (team->others[rank].pid > 0) {
            end_one(team, rank);
        }
    }
    dp_free(team->cards);
    dp_free(team);
}

uint32_t dp_process_group_processes(const dp_process_group *team)
{
    return team->processes;
}

uint32_t dp_process_group_lanes(const dp_process_group *team)
{
    return team->lanes;
}

void dp_process_group_bind(const dp_process_group *team)
{
    DP_IGNORE(dp_numa_bind(DP_NUMA_FOLDER, 0, team->processes)); /* Else it runs anywhere. */
}
