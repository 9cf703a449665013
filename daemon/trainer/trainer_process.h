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
        256, /* packets waiting for the socket; with more the trainer counts as hung */
    DP_TRAINER_DEVICE_LIVES =
        3, /* deaths on a device in DP_TRAINER_WINDOW_MS after which the CPU computes */
    DP_TRAINER_WINDOW_MS = 10 * 60 * 1000,
    DP_TRAINER_HELLO_MS =
        75 * 1000, /* a process that is silent for this time after its start is replaced */
    /* between the end of its socket and its own end, since closing a card takes time; then it is
     * killed, which counts as a death of its own */
    DP_TRAINER_END_MS = 3000,
    DP_TRAINER_RETRY_MS = 1000, /* wait if there are no descriptors or no memory for a process */
    DP_TRAINER_SOON_MS = 2000
};

typedef struct dp_trainer_process dp_trainer_process;

typedef struct dp_trainer_process_hooks {
    void *context;
    void (*started)(void *context); /* it sent HELLO and waits for OPEN */
    void (*down)(void *context, const char *cause);
    /* The callee owns the fds. */
    void (*message)(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds);
} dp_trainer_process_hooks;

typedef struct dp_trainer_process_config {
    uv_loop_t *loop;
    const char *program;
    const char *backend; /* the device that computes; NULL or "auto": not passed on */
    uint64_t threads;
    uint64_t processes; /* that compute there; 0 or 1: not passed on */
    uint64_t nice;
    uint64_t celsius_max; /* 0: not passed on; the same below */
    uint64_t watts_max;
    uint64_t vram_share;     /* percent of a card's memory */
    const char *script;      /* path of the socket for scripts; "" or NULL: not passed on */
    uint64_t end_ms;         /* 0: DP_TRAINER_END_MS */
    const dp_oom_place *oom; /* folder of the kernel's counters of kills; NULL: this machine's */
    dp_trainer_process_hooks hooks;
} dp_trainer_process_config;

/* The owner's limits that change while it lives. */
typedef struct dp_trainer_limits {
    uint64_t threads;
    uint64_t nice;
    uint64_t celsius_max;
    uint64_t watts_max;
    uint64_t vram_share;
} dp_trainer_limits;

DP_MUST dp_status dp_trainer_process_open(dp_trainer_process **trainer,
                                          const dp_trainer_process_config *config);
/* Spawns it; it is restarted after each death, until close. DP_NOTFOUND: no such program. */
DP_MUST dp_status dp_trainer_process_start(dp_trainer_process *trainer, dp_why *why);
/* Kills the process and frees everything when libuv has closed its handles. Hooks are no longer
 * called. */
void dp_trainer_process_close(dp_trainer_process *trainer);
/* Those of the next process; the running one goes on with its own. */
void dp_trainer_process_limit(dp_trainer_process *trainer, const dp_trainer_limits *limits);
/* Takes the fds in every case. DP_CLOSED: no process; there will be no answer. */
DP_MUST dp_status dp_trainer_process_tell(dp_trainer_process *trainer, const dp_trainer_msg *msg,
                                          const int *fds, uint32_t n_fds);
/* Kills it; it restarts as after any death. cause continues "the trainer ...". */
void dp_trainer_process_kill(dp_trainer_process *trainer, const char *cause);
/* The same if it is not at fault: this daemon lacks memory or descriptors for it, or cannot store
 * its result. */
void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause);
/* The same if the model does not fit this machine's memory: it restarts after minutes, since each
 * start reads all of the run's data. */
void dp_trainer_process_postpone(dp_trainer_process *trainer, const char *cause);
/* Ends it as replace does, and starts none before it is let go. */
void dp_trainer_process_hold(dp_trainer_process *trainer, const char *cause);
/* Starts it, if it was held. */
void dp_trainer_process_let_go(dp_trainer_process *trainer);
int dp_trainer_process_pid(const dp_trainer_process *trainer); /* 0: not running */
uint32_t dp_trainer_process_restarts(const dp_trainer_process *trainer);
/* Deaths of its own in the last DP_TRAINER_WINDOW_MS, including the one that the hook down reports;
 * at most DP_TRAINER_DEVICE_LIVES. These do not count: a program that is missing or of another
 * release, a replaced process, and one killed from outside (SIGKILL, SIGTERM), except by the kernel
 * for lack of memory, if that is known (oom.h). */
uint32_t dp_trainer_process_deaths(const dp_trainer_process *trainer);
/* Call repeatedly: kills by the kernel before this call do not count as the cause of a later
 * death. */
void dp_trainer_process_look(dp_trainer_process *trainer);
/* Does the CPU compute, by its config or since? */
bool dp_trainer_process_takes_cpu(const dp_trainer_process *trainer);
/* Lets the CPU compute from the trainer's next start on, until close: for a device on which the
 * trainer died repeatedly. */
void dp_trainer_process_take_cpu(dp_trainer_process *trainer);
/* Consecutive deaths of one cause; each DP_RESTART_FORGIVE_MS of life forgives one. */
uint32_t dp_trainer_process_in_a_row(const dp_trainer_process *trainer);
/* It dies repeatedly: DP_RESTART_FAILS consecutive deaths. */
bool dp_trainer_process_fails(const dp_trainer_process *trainer);
/* Milliseconds until it is restarted; 0: it runs, is about to start, or is held. */
uint64_t dp_trainer_process_next_ms(const dp_trainer_process *trainer);
/* If the next start is more than DP_TRAINER_SOON_MS away, moves it to within this time: other
 * members wait for the trainer. Once in DP_RESTART_EARLY_MS; true if this call moved it. */
bool dp_trainer_process_start_early(dp_trainer_process *trainer);

#endif
