/* The state of a worker and the calls that its files share. Private to worker*.c: worker.c has the
 * two threads, worker_commands.c the commands, worker_open.c OPEN, worker_parts.c rounds of parts,
 * worker_judge.c JUDGE and worker_rest.c the rests that keep it below its limits. */
#ifndef DP_COMPUTE_WORKER_WORKER_INSIDE_H
#define DP_COMPUTE_WORKER_WORKER_INSIDE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/trainer/trainer_msg.h"
#include "compute/machine/governor.h"
#include "compute/machine/stopwatch.h"
#include "compute/trainer/trainer.h"
#include "compute/worker/worker.h"

enum {
    DP_WORKER_OPEN_FDS = 2, /* manifest and tokenizer, before the shards */
    DP_WORKER_SHARDS_MAX = DP_TRAINER_FDS_MAX - DP_WORKER_OPEN_FDS,
    DP_WORKER_VIEWS_MAX = 2 /* bulk parts of an answer */
};

_Static_assert((int)DP_WORKER_SHARDS_MAX >= (int)DP_MANIFEST_SHARDS_MAX,
               "OPEN has room for all data");

typedef struct dp_worker_command {
    dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds;
} dp_worker_command;

/* Parts of the coming publication that were told already (worker_parts.c). They stay here until it
 * is told. */
typedef struct dp_worker_early {
    uint64_t round;
    dp_part_cuts cuts;
    uint32_t told; /* bit p: fds[p] is the sealed blob of part p */
    int fds[DP_PARTS_MAX];
    bool failed;   /* to take a piece of the part that comes now: the rest of it is passed over */
    bool has_open; /* open holds what came of that */
    int open;
} dp_worker_early;

typedef struct dp_worker {
    int socket;
    dp_worker_options options;
    pthread_mutex_t lock; /* guards queue, head, count, closed */
    pthread_cond_t changed;
    dp_worker_command *queue;
    uint32_t head;
    uint32_t count;
    bool closed;
    atomic_size_t elements; /* 0 until OPEN is done; the service thread checks blobs with it */

    /* The compute thread's own. */
    dp_trainer *trainer;
    dp_view shards[DP_WORKER_SHARDS_MAX];
    bool ready; /* theta is there */
    bool training;
    bool stopped;
    bool publishing;          /* a publication is being made while steps go on */
    dp_trainer_msg published; /* its answer, but for what comes with the blob */
    uint64_t told_steps;      /* done or dropped, since a publication, or since work was let go */
    uint64_t told_us;
    dp_laps laps; /* run from TRAIN until it is stopped */
    dp_worker_early early;
    const dp_backend *backend; /* who computes, once the trainer is open */
    dp_governor governor;
    uint64_t look_us;       /* when sensors are read again */
    uint64_t rested_us;     /* since when it rests, after */
    uint64_t worked_us;     /* ... so long a micro-batch */
    uint64_t rest_until_us; /* no micro-batch before; UINT64_MAX: until it is cooler */
    bool told_blind;        /* that a limit has no sensor */
} dp_worker;

void dp_worker_close_fds(const int *fds, uint32_t n_fds);

/* Send msg with views as memfds, DP_WORKER_VIEWS_MAX at most. Both threads. */
DP_MUST dp_status dp_worker_answer(const dp_worker *w, const dp_trainer_msg *msg,
                                   const dp_view *views, uint32_t n_views);

/* Answer PUBLISHED with blob and a (views), and with the parts of the blob; sets the energy of the
 * whole. DP_BADMSG: it is none. */
DP_MUST dp_status dp_worker_answer_parts(dp_worker *w, dp_trainer_msg *msg, const dp_view views[2]);
/* The blobs of a command's items. DP_BADMSG with a sentence: not as many files, or none of ours;
 * then nothing is mapped. */
DP_MUST dp_status dp_worker_map_items(const dp_worker *w, const dp_worker_command *c,
                                      dp_view blobs[DP_TRAINER_ITEMS_MAX], dp_why *why);
void dp_worker_unmap_items(const dp_worker_command *c, const dp_view *blobs);
/* Tell of the parts of the coming gradients, cut so; cuts->n = 0: of none. What was told stays
 * while cuts and round do. */
void dp_worker_tell_early(dp_worker *w, const dp_part_cuts *cuts);
void dp_worker_forget_early(dp_worker *w);
/* OPEN (worker_open.c). DP_EXISTS: a trainer is open already; the statuses of dp_trainer_open and
 * dp_memfd_map. */
DP_MUST dp_status dp_worker_open_trainer(dp_worker *w, const dp_worker_command *c, dp_why *why);
/* REDUCE, ADD. */
DP_MUST dp_status dp_worker_reduce(dp_worker *w, const dp_worker_command *c, dp_why *why);
DP_MUST dp_status dp_worker_add(dp_worker *w, const dp_worker_command *c, dp_why *why);
/* JUDGE (worker_judge.c). DP_IO alone is a failure: what cannot be measured is answered as that. */
DP_MUST dp_status dp_worker_judge(dp_worker *w, const dp_worker_command *c, dp_why *why);

/* A command (0: no telling which) cannot be done; why, or NULL, may hold a better sentence than the
 * status has. Where memory or descriptors are missing nothing that came is to blame, and the next
 * process may have better luck: gives status, so that this one ends. A question of a person is not
 * worth that. Both threads. */
DP_MUST dp_status dp_worker_answer_failed(const dp_worker *w, dp_trainer_kind of, dp_status status,
                                          const dp_why *why);

/* The compute thread's. Do one command, answer it and close its files; or one micro-batch of
 * training, and tell STEP when it is time. Not DP_OK: this process cannot go on. */
DP_MUST dp_status dp_worker_obey(dp_worker *w, const dp_worker_command *c);
DP_MUST dp_status dp_worker_train_on(dp_worker *w);

/* Rests between micro-batches (worker_rest.c), the compute thread's. When to look again: reads
 * sensors where it is time; 0: there are no limits. Is it resting now? Never while a publication is
 * made, which is looked after between micro-batches. */
uint64_t dp_worker_rests_until(dp_worker *w);
bool dp_worker_rests(const dp_worker *w);
/* A micro-batch took so long. */
void dp_worker_worked(dp_worker *w, uint64_t worked_us);

/* Close the trainer, and give back its data. */
void dp_worker_drop_trainer(dp_worker *w);

#endif
