/* What the first process and the others of a team share: the board in shared memory, and what each
 * does when it is told, with an engine of the CPU (team_member.c) or with one on a card
 * (team_card.c). Private to team*.c. */
#ifndef DP_COMPUTE_BACKEND_TEAM_INSIDE_H
#define DP_COMPUTE_BACKEND_TEAM_INSIDE_H

#include <limits.h>
#include <sys/types.h>

#include "compute/backend/team.h"

enum {
    DP_TEAM_WAIT_US = 600 * 1000 * 1000, /* no micro-batch of one lane takes so long */
    DP_TEAM_FDS = 2                      /* of the board, of ZeRO's memory */
};

typedef enum dp_team_command {
    DP_TEAM_STEP,
    DP_TEAM_DROP,
    DP_TEAM_REDUCE,
    DP_TEAM_UPDATE,
    DP_TEAM_RESET,
    DP_TEAM_GATHER,  /* a vector of the optimizer, to ZeRO's shared weights */
    DP_TEAM_SCATTER, /* the same from there */
    DP_TEAM_SUMS,    /* of cards: the summed gradient, to the same place */
    DP_TEAM_LINK,    /* of cards: NCCL between them */
    DP_TEAM_QUIT,
    DP_TEAM_COMMANDS
} dp_team_command;

/* Which lanes begin at 0 before a step. */
typedef enum dp_team_clean {
    DP_TEAM_CLEAN_NONE,
    DP_TEAM_CLEAN_OTHERS,
    DP_TEAM_CLEAN_ALL
} dp_team_clean;

/* In shared memory; the first process writes it before the gate opens, the others their own answers
 * before it opens again. */
typedef struct dp_team_board {
    dp_gate gate;
    dp_team_command command;
    dp_team_clean clean;
    bool moved; /* the weights are those in ZeRO's shared ones */
    bool last;  /* the last vector to be scattered */
    bool linked;
    _Atomic bool link_failed; /* for one of them, so that none waits longer */
    dp_card_link_id link_id;
    float scale;
    uint32_t rows;
    uint32_t length;
    uint32_t vector; /* of the optimizer, in the order of dp_optim_vectors */
    uint64_t updates;
    dp_optim_options options;
    double norm;
    double losses[DP_ZERO_LANES_MAX];          /* of this step */
    dp_status statuses[DP_GATE_PROCESSES_MAX]; /* of what was told last */
    dp_why whys[DP_GATE_PROCESSES_MAX];
    uint32_t tokens[]; /* x, then y: [rows_max][context] each */
} dp_team_board;

/* What the others are told of a model. Not stored, not sent to other builds: they are forks. */
typedef struct dp_team_order {
    dp_model_config model;
    dp_engine_setup setup; /* its pointers mean nothing there */
    dp_zero_setup zero;    /* the same */
    size_t board_bytes;
    /* Of cards. */
    char path[PATH_MAX];       /* of the backend's library; "": it is in the program */
    const dp_backend *backend; /* where that is so; NULL with path "": the CPU */
    uint32_t device;
} dp_team_order;

/* What each of the others answers once it is ready, or is not. */
typedef struct dp_team_verdict {
    dp_status status;
    dp_why why;
} dp_team_verdict;

/* One process with a model. */
typedef struct dp_team_member {
    uint32_t rank;
    uint32_t rows_max; /* of a micro-batch */
    size_t context;
    dp_gpt *gpt; /* borrowed; NULL with a card */
    dp_pool *pool;
    const dp_backend *backend; /* of the card */
    dp_engine *engine;         /* on it, borrowed */
    dp_zero_card card;
    /* since they were gathered; of a card x comes first */
    dp_optim_vector vectors[DP_BACKEND_STATE_MAX];
    size_t n_vectors;     /* of the optimizer */
    dp_team_board *board; /* the mapping */
    size_t board_bytes;
    bool entered;
    dp_zero *zero;
} dp_team_member;

struct dp_team {
    uint32_t processes;
    uint32_t lanes;
    struct dp_team_cards *cards; /* owned; NULL: the CPU computes */
    uint32_t open_ms; /* for an answer to an order: DP_TEAM_WAIT_US, unless a test says less */
    struct {
        pid_t pid;
        int socket;
    } others[DP_GATE_PROCESSES_MAX]; /* from 1 on */
};

/* The cards of a team, a process each. */
typedef struct dp_team_cards {
    dp_backend table; /* what trains sees */
    const dp_backend *inner;
    char path[PATH_MAX];
    uint32_t devices[DP_GATE_PROCESSES_MAX];
    void (*tell)(const char *sentence);
} dp_team_cards;

/* What an engine of the first process computes with: gpt, or backend and engine. Borrowed until it
 * is closed. */
typedef struct dp_team_body {
    dp_gpt *gpt;
    dp_pool *pool;
    const dp_backend *backend;
    dp_engine *engine;
} dp_team_body;

/* Opens own, the member of the first process, and the members of all others with the model of
 * setup; returns when every process has answered. DP_NOMEM, DP_BADARG, DP_IO with a sentence: some
 * processes may hold the model; dp_team_member_close must follow, and no command may be sent. */
DP_MUST dp_status dp_team_set_up(const dp_team *team, dp_team_member *own,
                                 const dp_engine_setup *setup, dp_why *why);
/* dp_team_open for either. */
DP_MUST dp_status dp_team_open_with(dp_team_engine **out, dp_team *team,
                                    const dp_engine_setup *setup, const dp_team_body *body,
                                    dp_why *why);
/* Where the vectors that dp_team_lend lent stand in the first process's engine; of a card. */
const dp_optim_vector *dp_team_card_x(const dp_team_engine *engine);

/* A command of a card's member. */
typedef dp_status (*dp_team_do)(dp_team_member *m, dp_why *why);
extern const dp_team_do dp_team_card_commands[DP_TEAM_COMMANDS];
/* What ZeRO asks of a card. */
dp_zero_card dp_team_card_of(dp_team_member *m);
/* The lane's rows of the batch that stands on the board; no rows: it has none. */
dp_gpt_batch dp_team_rows_of(const dp_team_member *m, uint32_t lane);

/* Maps the board and joins ZeRO. setup.rank is this process's. Whatever comes, close must
 * follow. */
DP_MUST dp_status dp_team_member_open(dp_team_member *m, const dp_team_order *order,
                                      const int fds[DP_TEAM_FDS], dp_why *why);
void dp_team_member_close(dp_team_member *m);
/* Does what the board says; the status and the sentence go there too. */
void dp_team_member_obey(dp_team_member *m);

/* The life of one of the others: order after order until the socket ends. */
void dp_team_serve(int socket);

#endif
