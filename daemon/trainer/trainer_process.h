/* The trainer process as the daemon sees it: starts it, watches it, speaks
 * base/trainer/trainer_msg.h with it, restarts it. It does not decide what to train. Loop thread
 * only. */
#ifndef DP_DAEMON_TRAINER_TRAINER_PROCESS_H
#define DP_DAEMON_TRAINER_TRAINER_PROCESS_H

#include <uv.h>

#include "base/trainer/trainer_msg.h"
#include "daemon/host/oom.h"
#include "daemon/trainer/restart.h"

enum {
    DP_TRAINER_QUEUE_MAX =
        256, /* packets waiting for the socket; beyond: the trainer counts as hung */
    DP_TRAINER_DEVICE_LIVES =
        3, /* deaths on a device in DP_TRAINER_WINDOW_MS after which the CPU computes */
    DP_TRAINER_WINDOW_MS = 10 * 60 * 1000,
    DP_TRAINER_HELLO_MS =
        75 * 1000, /* a process that is silent for so long after its start is replaced */
    /* between the end of its socket and its own, for a card takes its time; then it is killed, a
     * death of its own */
    DP_TRAINER_END_MS = 3000,
    DP_TRAINER_RETRY_MS = 1000, /* until there are descriptors or memory for a process again */
    DP_TRAINER_SOON_MS = 2000
};

typedef struct dp_trainer_process dp_trainer_process;

typedef struct dp_trainer_process_hooks {
    void *context;
    void (*started)(void *context); /* it said HELLO and waits for OPEN */
    void (*down)(void *context, const char *cause);
    /* fds are the callee's. */
    void (*message)(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds);
} dp_trainer_process_hooks;

typedef struct dp_trainer_process_config {
    uv_loop_t *loop;
    const char *program;
    const char *backend; /* the device that computes; NULL or "auto": it is not told */
    uint64_t threads;
    uint64_t processes; /* that compute there; 0 or 1: it is not told */
    uint64_t nice;
    uint64_t celsius_max; /* 0: it is not told, as below */
    uint64_t watts_max;
    uint64_t end_ms;         /* 0: DP_TRAINER_END_MS */
    const dp_oom_place *oom; /* where the kernel counts its kills; NULL: this machine's */
    dp_trainer_process_hooks hooks;
} dp_trainer_process_config;

DP_MUST dp_status dp_trainer_process_open(dp_trainer_process **trainer,
                                          const dp_trainer_process_config *config);
/* Spawn it; it is started again whenever it dies, until close. DP_NOTFOUND: no such program. */
DP_MUST dp_status dp_trainer_process_start(dp_trainer_process *trainer, dp_why *why);
/* Kills the process and frees everything when libuv has closed. Hooks are not called any more. */
void dp_trainer_process_close(dp_trainer_process *trainer);
/* Takes the fds in every case. DP_CLOSED: no process; the answer will not come. */
DP_MUST dp_status dp_trainer_process_tell(dp_trainer_process *trainer, const dp_trainer_msg *msg,
                                          const int *fds, uint32_t n_fds);
/* Kill it; it comes back like after any death. cause goes on "the trainer ...". */
void dp_trainer_process_kill(dp_trainer_process *trainer, const char *cause);
/* The same where it is not to blame: this daemon lacks memory or descriptors for it, or cannot
 * store its result. */
void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause);
int dp_trainer_process_pid(const dp_trainer_process *trainer); /* 0: not running */
uint32_t dp_trainer_process_restarts(const dp_trainer_process *trainer);
/* Deaths of its own in the last DP_TRAINER_WINDOW_MS, with the one that down tells; at most
 * DP_TRAINER_DEVICE_LIVES. None is a program that is missing or of another release, one that was
 * replaced, or one that was killed from outside (SIGKILL, SIGTERM), except by the kernel for lack
 * of memory, where that is known (oom.h). */
uint32_t dp_trainer_process_deaths(const dp_trainer_process *trainer);
/* Now and then: kills by the kernel since then are not the cause of a later death. */
void dp_trainer_process_look(dp_trainer_process *trainer);
/* Was it told that the CPU computes, by its config or since? */
bool dp_trainer_process_takes_cpu(const dp_trainer_process *trainer);
/* Lets the CPU compute from the trainer's next start on, until close: for a device on which the
 * trainer died again and again. */
void dp_trainer_process_take_cpu(dp_trainer_process *trainer);
/* Deaths in a row of one cause, of which each DP_RESTART_FORGIVE_MS of life takes one back. */
uint32_t dp_trainer_process_in_a_row(const dp_trainer_process *trainer);
/* It dies again and again: DP_RESTART_FAILS in a row. */
bool dp_trainer_process_fails(const dp_trainer_process *trainer);
/* Milliseconds until it is started again; 0: it runs, or is about to. */
uint64_t dp_trainer_process_next_ms(const dp_trainer_process *trainer);
/* A start that is more than DP_TRAINER_SOON_MS away comes within that time: others wait for a
 * trainer too. Once in DP_RESTART_EARLY_MS; true when this call did it. */
bool dp_trainer_process_start_early(dp_trainer_process *trainer);

#endif
