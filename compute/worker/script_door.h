/* A script that trains, as the worker sees it (docs/TRAINER.md): a thread that serves script.sock,
 * the memory shared with the script, and what the script has to do next. The arithmetic is the
 * trainer's (trainer_script.h). Of a built-in model a script sees Hugging Face's tensors
 * (hf_layout.h).
 *
 * The trainer belongs to whoever is between enter and leave: the worker's compute thread during a
 * command, or this thread while it answers a question. While the script holds the buffer, commands
 * that move weights wait in enter, at most for the patience; then the script is cut off. */
#ifndef DP_COMPUTE_WORKER_SCRIPT_DOOR_H
#define DP_COMPUTE_WORKER_SCRIPT_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "compute/trainer/trainer_script.h"
#include "compute/worker/run_files.h"

typedef struct dp_script dp_script;

/* Totals since the last publication, and times since open. */
typedef struct dp_script_progress {
    dp_trainer_progress done;
    uint64_t trained_us;  /* with a script, not paused */
    uint64_t computed_us; /* of these, outside of looks */
} dp_script_progress;

typedef struct dp_script_setup {
    const char *path;          /* of the socket; copied */
    dp_trainer *trainer;       /* borrowed until close */
    const dp_run_files *files; /* that a script may read; borrowed until close; NULL: none */
    uint64_t patience_us;      /* 0: 5 s, and 1 s per 100 million elements */
    /* between copies that nobody asks for; 0: 1 s, and more if copies take long */
    uint64_t copy_every_us;
    void *context; /* of the calls below, which come on the thread of scripts */
    /* A script was welcomed; 0: it is gone. */
    void (*present)(void *context, uint32_t pid);
    /* A copy that was asked for was made, or will never come. */
    void (*copied)(void *context);
    /* It has taken steps; at most ten times a second. Without a script, also on the thread that
     * leaves: a publication would have these steps. */
    void (*stepped)(void *context, const dp_script_progress *progress);
} dp_script_setup;

/* Listens, and starts the thread. DP_TOOBIG, DP_IO, DP_NOMEM, DP_AGAIN (no threads), each with a
 * sentence but DP_NOMEM. */
DP_MUST dp_status dp_script_open(dp_script **out, const dp_script_setup *setup, dp_why *why);
/* Ends the thread, after which no call comes; removes the socket. Accepts NULL. */
void dp_script_close(dp_script *script);

/* On the compute thread. The calls below accept NULL: no script, and nothing to do. */

/* The trainer is the caller's until leave. moves: the command moves weights. */
void dp_script_enter(dp_script *script, bool moves);
/* The same for a micro-batch, of which one follows the other: a script that wants to speak comes
 * first. */
void dp_script_enter_step(dp_script *script);
/* The effect of a command on the weights: none, moved, or others in their place. */
typedef enum dp_script_change { DP_SCRIPT_SAME, DP_SCRIPT_MOVED, DP_SCRIPT_SET } dp_script_change;
void dp_script_leave(dp_script *script, dp_script_change change);

/* Between enter and leave. Asks the script for a copy of its weights at its next look, after which
 * copied is called. Returns how long that is worth waiting for, by the time that its steps take; 0:
 * no script has weights that are worth a copy. */
uint64_t dp_script_ask_copy(dp_script *script);
/* The question is over. */
void dp_script_ask_no_more(dp_script *script);
/* A TRAIN: round 0: training is paused. */
void dp_script_train(dp_script *script, uint64_t round, uint64_t tokens);

#endif
