/* The state of the trainer process. The private header of trainer_process.c and trainer_look.c. */
#ifndef DP_DAEMON_TRAINER_TRAINER_LIFE_H
#define DP_DAEMON_TRAINER_TRAINER_LIFE_H

#include "base/list.h"
#include "daemon/trainer/trainer_process.h"

typedef struct packet {
    dp_list item;
    dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds;
} packet;

/* One life of the process. Its memory is freed when both handles are closed. */
typedef struct life {
    uv_process_t process;
    uv_poll_t poll;
    dp_trainer_process *trainer; /* NULL after the trainer has dropped it */
    int socket;
    uint32_t n_handles;
    bool exited;
    bool said_hello;
    bool hung_up; /* it has closed its end; nothing is read or sent any more */
    dp_list queue;
    uint32_t n_queued;
    dp_trainer_msg incoming;
} life;

struct dp_trainer_process {
    dp_trainer_process_config config;
    char program[512];
    char backend[512];
    life *life;
    uv_timer_t *restart; /* runs until HELLO, the end, or the next start */
    dp_restart backoff;
    /* uv_now at the HELLO of this life, or of the last one; 0: none */
    uint64_t began_ms;
    uint32_t n_starts;
    uint64_t deaths[DP_TRAINER_DEVICE_LIVES]; /* uv_now of the last deaths of its own, a ring */
    uint32_t n_deaths;
    dp_oom oom; /* of the present life */
    bool closing;
    bool held; /* no process runs, nor starts */
};

#endif
