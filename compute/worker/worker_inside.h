/* The state of a worker and the calls that its files share. Private to worker*.c: worker.c has the
 * two threads, worker_commands.c the commands, worker_open.c OPEN, worker_parts.c rounds of parts,
 * worker_judge.c JUDGE, worker_questions.c EVAL and SAMPLE, worker_rest.c the rests that keep it
 * below its limits and worker_script.c the script that trains in its place. */
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
#include "compute/worker/script_door.h"
#include "compute/worker/sensor_look.h"
#include "compute/worker/worker.h"

enum {
    DP_WORKER_OPEN_FDS = 2, /* manifest and tokenizer, before the shards */
    DP_WORKER_SHARDS_MAX = DP_TRAINER_FDS_MAX - DP_WORKER_OPEN_FDS,
    DP_WORKER_VIEWS_MAX = 2 /* memfds of an answer */
};

_Static_assert((int)DP_WORKER_SHARDS_MAX >= (int)DP_MANIFEST_SHARDS_MAX,
               "OPEN has room for all data");

typedef struct dp_worker_command {
    dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds;
} dp_worker_command;

typedef struct dp_worker {
    int socket;
    dp_worker_options options;
    pthread_mutex_t lock; /* guards queue, head, count, closed, copied */
    pthread_cond_t changed;
    dp_worker_command *queue;
    uint32_t head;
    uint32_t count;
    bool closed;
    bool copied; /* the copy that a deferred command waits for was made, or will never come */
    atomic_size_t elements; /* 0 until OPEN is done; the service thread checks blobs with it */
    atomic_bool scripted;   /* a script takes the steps; set under the lock of the door */

    /* The compute thread's own. */
    dp_trainer *trainer;
    dp_view shards[DP_WORKER_SHARDS_MAX];
    bool ready; /* theta is set */
    bool training;
    bool stopped;
    dp_run_files files;       /* that a script of a built-in model may read */
    dp_script *script;        /* the door for scripts; NULL: none */
    uint64_t scripted_us;     /* that scripts have computed since the trainer is open */
    bool deferred;            /* a PUBLISH or FREEZE waits for a copy of the script's weights */
    dp_trainer_msg waiting;   /* that command */
    uint64_t waits_until_us;  /* by dp_now_us: then it is made of the last copy */
    bool publishing;          /* a publication is encoded beside steps */
    dp_trainer_msg published; /* its answer, without the fields that depend on the blob */
    /* steps done or dropped that STEP has reported since the last publication or reset */
    uint64_t told_steps;
    uint64_t told_us;
    dp_laps laps;              /* run from TRAIN until training stops */
    const dp_backend *backend; /* set once the trainer is open */
    dp_governor governor;
    uint64_t look_us;           /* next reading of sensors */
    uint64_t rested_us;         /* start of the rest, after a micro-batch */
    uint64_t worked_us;         /* ... that took so long */
    uint64_t rest_until_us;     /* end of the rest; UINT64_MAX: until it is cooler */
    bool told_blind;            /* reported that a limit has no sensor */
    bool told_mute;             /* reported that the sensors do not answer */
    dp_sensor_look *sensors;    /* NULL: nothing was read yet, or there is no thread */
    uint64_t feel_us;           /* without limits: the next reading, for people */
    dp_sensor_reading felt;     /* the last reading */
    atomic_uint script_celsius; /* of it, while a script computes, for the thread of scripts; ... */
    atomic_uint script_watts;   /* ... 0: unknown */
    bool told_resting;          /* by RESTING, as last sent */
} dp_worker;

void dp_worker_close_fds(const int *fds, uint32_t n_fds);

/* Sends msg with views as memfds, DP_WORKER_VIEWS_MAX at most. Both threads. */
DP_MUST dp_status dp_worker_answer(const dp_worker *w, const dp_trainer_msg *msg,
                                   const dp_view *views, uint32_t n_views);

/* Answers PUBLISHED with blob and a (views) and with the parts of the blob; sets the energy of the
 * whole. DP_BADMSG: the blob is invalid. */
DP_MUST dp_status dp_worker_answer_parts(dp_worker *w, dp_trainer_msg *msg, const dp_view views[2]);
/* Maps the blobs of a command's items. DP_BADMSG with a sentence: another number of files, or an
 * invalid file; then nothing is mapped. */
DP_MUST dp_status dp_worker_map_items(const dp_worker *w, const dp_worker_command *c,
                                      dp_view blobs[DP_TRAINER_ITEMS_MAX], dp_why *why);
void dp_worker_unmap_items(const dp_worker_command *c, const dp_view *blobs);
/* OPEN (worker_open.c). DP_EXISTS: a trainer is open already; the statuses of dp_trainer_open and
 * dp_memfd_map. */
DP_MUST dp_status dp_worker_open_trainer(dp_worker *w, const dp_worker_command *c, dp_why *why);
/* REDUCE, ADD. */
DP_MUST dp_status dp_worker_reduce(dp_worker *w, const dp_worker_command *c, dp_why *why);
DP_MUST dp_status dp_worker_add(dp_worker *w, const dp_worker_command *c, dp_why *why);
/* JUDGE (worker_judge.c). Fails with DP_IO only; a measurement that fails is answered as failed. */
DP_MUST dp_status dp_worker_judge(dp_worker *w, const dp_worker_command *c, dp_why *why);

/* EVAL, SAMPLE (worker_questions.c). alive: sends STEP of this worker if it is due. */
DP_MUST dp_status dp_worker_eval(dp_worker *w, const dp_worker_command *c, dp_why *why);
DP_MUST dp_status dp_worker_sample(dp_worker *w, const dp_worker_command *c, dp_why *why);
void dp_worker_alive(void *context);

/* Answers FAILED for a command of this kind (0: unknown). why, or NULL, may have a better sentence
 * than the status. If memory or descriptors were missing, the command is valid and the next process
 * may succeed: returns status, so that this process ends, unless the command is EVAL or SAMPLE.
 * Both threads. */
DP_MUST dp_status dp_worker_answer_failed(const dp_worker *w, dp_trainer_kind of, dp_status status,
                                          const dp_why *why);

/* On the compute thread. obey executes one command, answers it and closes its files; train_on
 * computes one micro-batch and sends STEP when it is due. Not DP_OK: this process must end. */
DP_MUST dp_status dp_worker_obey(dp_worker *w, const dp_worker_command *c);
DP_MUST dp_status dp_worker_train_on(dp_worker *w);
/* Sends STEP; true if the last one is so long ago that another may go out. */
DP_MUST dp_status dp_worker_tell_step(dp_worker *w);
bool dp_worker_step_is_due(const dp_worker *w);

/* On the compute thread: the copy that the deferred command has waited for is there. */
bool dp_worker_has_copy(dp_worker *w);
/* Executes and answers the deferred command, with the weights that the trainer has now. */
DP_MUST dp_status dp_worker_obey_deferred(dp_worker *w);

/* Rests between micro-batches (worker_rest.c), on the compute thread. rests_until reads sensors if
 * it is time and returns the next reading; 0: no limits. rests: true during a rest, but never while
 * a publication is encoded, which is looked after between micro-batches. */
uint64_t dp_worker_rests_until(dp_worker *w);
bool dp_worker_rests(const dp_worker *w);
/* The last reading of the sensors, some seconds old: with limits that of rests_until, without them
 * one that is asked for here and never waited for. celsius INT32_MIN, watts 0: unknown. */
dp_sensor_reading dp_worker_feel(dp_worker *w);
/* The same while a script computes, with limits too; returns the time of the next reading. */
uint64_t dp_worker_feels_until(dp_worker *w);
/* Tells that a micro-batch took worked_us. */
void dp_worker_worked(dp_worker *w, uint64_t worked_us);
/* The owner's limits from now on; sensors are read at the next moment between micro-batches. */
void dp_worker_limit(dp_worker *w, uint32_t celsius_max, uint32_t watts_max);
/* True while the machine must cool before anything is computed: sensors are read even if nobody
 * asks for training, so that the end is told. */
bool dp_worker_cools(const dp_worker *w);

/* True if the engine has steps to take: training is on, no script takes them, and there is no
 * publication or record to wait for. */
bool dp_worker_trains(const dp_worker *w);
/* Sends a publication that the engine has begun, once it is there, although the engine has no
 * steps to take any more. Between enter and leave of the script. */
DP_MUST dp_status dp_worker_end_publication(dp_worker *w, dp_script_change *change);

/* worker_script.c: keeps the files of OPEN that a script may read. */
void dp_worker_keep_files(dp_worker *w, const dp_worker_command *c);
/* Opens the door for scripts, unless it is open or the run exchanges gradients. If it cannot be
 * opened, tells why, and the node goes on without. */
void dp_worker_open_script(dp_worker *w);
/* The effect of a command on the script's weights; of one that failed, the one that it may have
 * had. */
dp_script_change dp_worker_changes(dp_trainer_kind kind, dp_status status);

/* Closes the trainer and unmaps its data. */
void dp_worker_drop_trainer(dp_worker *w);

#endif
