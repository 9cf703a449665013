/* The shared memory of a process group (the board), its commands, and the member that each process
 * is: with an engine of the CPU (process_group_member.c) or of a card (process_group_card.c).
 * Private to team*.c. */
#ifndef DP_COMPUTE_BACKEND_PROCESS_GROUP_INSIDE_H
#define DP_COMPUTE_BACKEND_PROCESS_GROUP_INSIDE_H

#include <limits.h>
#include <sys/types.h>

#include "compute/backend/process_group.h"

enum {
    /* longer than any micro-batch of a lane, and than a card is waited for (compute/cuda/device.h),
     * so that the process of a card that hangs says so itself */
    DP_PROCESS_GROUP_WAIT_US = 660 * 1000 * 1000,
    DP_PROCESS_GROUP_FDS = 2 /* the board, the memory of ZeRO */
};

typedef enum dp_process_group_command {
    DP_PROCESS_GROUP_STEP,
    DP_PROCESS_GROUP_DROP,
    DP_PROCESS_GROUP_REDUCE,
    DP_PROCESS_GROUP_UPDATE,
    DP_PROCESS_GROUP_RESET,
    DP_PROCESS_GROUP_GATHER,  /* a vector of the optimizer to ZeRO's shared weights */
    DP_PROCESS_GROUP_SCATTER, /* the reverse */
    DP_PROCESS_GROUP_SUMS,    /* cards: the summed gradient, to ZeRO's shared weights */
    DP_PROCESS_GROUP_LINK,    /* cards: opens NCCL between them */
    DP_PROCESS_GROUP_QUIT,
    DP_PROCESS_GROUP_COMMANDS
} dp_process_group_command;

/* Lanes that are set to 0 before a step. */
typedef enum dp_process_group_clean {
    DP_PROCESS_GROUP_CLEAN_NONE,
    DP_PROCESS_GROUP_CLEAN_OTHERS,
    DP_PROCESS_GROUP_CLEAN_ALL
} dp_process_group_clean;

/* In shared memory. The first process writes a command before the barrier opens, the others write
 * their answers before it opens again. */
typedef struct dp_process_group_board {
    dp_process_barrier gate;
    dp_process_group_command command;
    dp_process_group_clean clean;
    bool moved; /* take the weights from ZeRO's shared memory */
    bool last;  /* this is the last vector to scatter */
    bool linked;
    _Atomic bool link_failed; /* set by one process, so that the others stop waiting */
    dp_card_link_id link_id;
    float scale;
    uint32_t rows;
    uint32_t length;
    uint32_t vector; /* of the optimizer, in the order of dp_optim_vectors */
    uint64_t updates;
    dp_optim_options options;
    double norm;
    double losses[DP_ZERO_LANES_MAX];                     /* of the last step */
    dp_status statuses[DP_PROCESS_BARRIER_PROCESSES_MAX]; /* of the last command */
    dp_why whys[DP_PROCESS_BARRIER_PROCESSES_MAX];
    uint32_t tokens[]; /* x, then y: [rows_max][context] each */
} dp_process_group_board;

/* The model that the other processes open. Sent between forks of one program only, never stored. */
typedef struct dp_process_group_order {
    dp_model_config model;
    dp_engine_setup setup; /* without its pointers */
    dp_zero_setup zero;    /* likewise */
    size_t board_bytes;
    /* For cards. */
    char path[PATH_MAX];       /* of the backend's library; "": none */
    const dp_backend *backend; /* the backend if path is ""; NULL: the CPU */
    uint32_t device;
} dp_process_group_order;

/* Answer of a process to an order. */
typedef struct dp_process_group_verdict {
    dp_status status;
    dp_why why;
} dp_process_group_verdict;

/* One process with a model. */
typedef struct dp_process_group_member {
    uint32_t rank;
    uint32_t rows_max; /* of a micro-batch */
    size_t context;
    dp_gpt *gpt; /* borrowed; NULL with a card */
    dp_pool *pool;
    const dp_backend *backend; /* of the card */
    dp_engine *engine;         /* on it, borrowed */
    dp_zero_card card;
    /* Filled by the first GATHER; with a card x comes first. */
    dp_optim_vector vectors[DP_BACKEND_STATE_MAX];
    size_t n_vectors;              /* of the optimizer */
    dp_process_group_board *board; /* the mapping */
    size_t board_bytes;
    bool entered;
    dp_zero *zero;
} dp_process_group_member;

struct dp_process_group {
    uint32_t processes;
    uint32_t lanes;
    struct dp_process_group_cards *cards; /* owned; NULL: the CPU computes */
    uint32_t
        open_ms; /* limit for the answer to an order: DP_PROCESS_GROUP_WAIT_US, shorter in a test */
    struct {
        pid_t pid;
        int socket;
    } others[DP_PROCESS_BARRIER_PROCESSES_MAX]; /* from 1 on */
};

/* The cards of a team, a process each. */
typedef struct dp_process_group_cards {
    dp_backend table; /* the table that the trainer uses */
    const dp_backend *inner;
    char path[PATH_MAX];
    uint32_t devices[DP_PROCESS_BARRIER_PROCESSES_MAX];
    void (*tell)(const char *sentence);
} dp_process_group_cards;

/* The engine of the first process: gpt, or backend and engine. Borrowed until close. */
typedef struct dp_process_group_body {
    dp_gpt *gpt;
    dp_pool *pool;
    const dp_backend *backend;
    dp_engine *engine;
} dp_process_group_body;

/* Opens own, the member of the first process, and the members of all others with the model of
 * setup; returns when every process has answered. DP_NOMEM, DP_BADARG, DP_IO with a sentence: some
 * processes may hold the model; dp_process_group_member_close must follow, and no command may be
 * sent. */
DP_MUST dp_status dp_process_group_set_up(const dp_process_group *team,
                                          dp_process_group_member *own,
                                          const dp_engine_setup *setup, dp_why *why);
/* dp_process_group_open for the CPU and for cards. */
DP_MUST dp_status dp_process_group_open_with(dp_process_group_engine **out, dp_process_group *team,
                                             const dp_engine_setup *setup,
                                             const dp_process_group_body *body, dp_why *why);
/* For cards: x of the vectors that dp_process_group_lend has lent. */
const dp_optim_vector *dp_process_group_card_x(const dp_process_group_engine *engine);

/* A command of a card's member. */
typedef dp_status (*dp_process_group_do)(dp_process_group_member *m, dp_why *why);
extern const dp_process_group_do dp_process_group_card_commands[DP_PROCESS_GROUP_COMMANDS];
/* The calls of a card for ZeRO. */
dp_zero_card dp_process_group_card_of(dp_process_group_member *m);
/* The rows of a lane in the batch on the board; rows is 0 if it has none. */
dp_gpt_batch dp_process_group_rows_of(const dp_process_group_member *m, uint32_t lane);

/* Maps the board and joins ZeRO. setup.rank is that of this process. dp_process_group_member_close
 * must follow, after any status. */
DP_MUST dp_status dp_process_group_member_open(dp_process_group_member *m,
                                               const dp_process_group_order *order,
                                               const int fds[DP_PROCESS_GROUP_FDS], dp_why *why);
void dp_process_group_member_close(dp_process_group_member *m);
/* Executes the command on the board; status and sentence go there too. */
void dp_process_group_member_obey(dp_process_group_member *m);

/* The loop of a process but the first: order after order until the socket closes. */
void dp_process_group_serve(int socket);

#endif
