/* The trainer: local steps from batch to update, and what a node keeps of its own work until a
 * record settles it. Speaks no protocol (worker.h) and decides no rounds.
 *
 * Every displacement of the weights lies in exactly one drawer: open O, frozen F, pending P
 *     (published, undecided), or error feedback e. theta is what all replicas hold; x, the engine's
 *     weights, is where local training stands: x = A - F - O,    A = x at the publication while one
 *     is pending, else theta
 * so O is never stored. In a run that exchanges gradients (trainer_gradients.c) O is the gradient
 * of the last batch, F is empty and x is theta. All vectors have the layout of the model's arena.
 * One thread calls at a time. */
#ifndef DP_COMPUTE_TRAINER_TRAINER_H
#define DP_COMPUTE_TRAINER_TRAINER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/run/judged.h"
#include "base/run/manifest.h"
#include "base/run/reach.h"
#include "base/trainer/trainer_msg.h"
#include "compute/backend/backend.h"
#include "compute/data/data.h"
#include "compute/model/optim.h"
#include "compute/model/scaler.h"
#include "compute/model/spike.h"

typedef struct dp_trainer dp_trainer;

typedef struct dp_trainer_setup {
    dp_view manifest;      /* canonical bytes, copied */
    dp_view tokenizer;     /* tokenizer.json, copied */
    const dp_view *shards; /* as the manifest lists them; their bytes are borrowed until close */
    size_t n_shards;
    uint8_t member[32];
    uint64_t seed;  /* of this process: chance that need not come again, as in rounding by chance */
    size_t threads; /* 0: as many as the machine gives */
    const dp_backend *backend; /* who computes; NULL: the CPU */
    uint32_t device;           /* of the backend's */
    /* processes that train with this one (team.h); the CPU alone has them; NULL: none. Borrowed */
    struct dp_team *team;
    /* Without peers (solo.h): x is theta, batches go through the data in passes, and the schedule
     * alone sets the rate. Only init, load, work, eval, sample, last and what trainer_keep.c has
     * may be called then. */
    bool alone;
    /* alone: of every micro-batch, so that nothing depends on the clock; at least 1 */
    uint32_t rows;
} dp_trainer_setup;

/* Theta is zero until init or load. DP_BADMSG, DP_BADARG, DP_TOOBIG (the machine has too little
 * memory, plan.h), DP_UNSUPPORTED (the backend has not what the run asks for), DP_IO (its device)
 * with a sentence; DP_NOMEM.
 *
 * Every call below may give DP_IO when the device is gone: then only problem and close may
 * follow. */
DP_MUST dp_status dp_trainer_open(dp_trainer **out, const dp_trainer_setup *setup, dp_why *why);
void dp_trainer_close(dp_trainer *trainer); /* Accepts NULL. */

/* What the backend says about the call that failed with DP_IO, else "". Lent until close. */
const char *dp_trainer_problem(const dp_trainer *trainer);

size_t dp_trainer_elements(const dp_trainer *trainer);
const dp_manifest *dp_trainer_manifest(const dp_trainer *trainer);

/* Theta from the manifest's seed, round 0. Nothing is open, frozen, pending or fed back; moments
 * are zero. */
DP_MUST dp_status dp_trainer_init(dp_trainer *trainer);
/* Theta, and m where the run has it, from state bytes (state.h), else the same. The first steps
 * after it warm up. On failure nothing has changed. */
DP_MUST dp_status dp_trainer_load(dp_trainer *trainer, uint64_t round, dp_view state);
/* State bytes, lent until the next call, and their object root. DP_NOMEM. */
DP_MUST dp_status dp_trainer_state_bytes(dp_trainer *trainer, dp_view *state, dp_hash *root);
uint64_t dp_trainer_round(const dp_trainer *trainer);
/* Theta, x, e and F for tests and export, as they are now, lent until the next call; the CPU lends
 * them until close. */
const float *dp_trainer_theta(const dp_trainer *trainer);
const float *dp_trainer_params(const dp_trainer *trainer);
const float *dp_trainer_feedback(const dp_trainer *trainer);
const float *dp_trainer_frozen(const dp_trainer *trainer);

/* What an earlier process had published (DP_RESTORE_PENDING) or frozen: a is its vector as
 * little-endian floats. PENDING with DP_SETTLE_NONE is pending again; INCLUDED: e = lambda beta (a
 * - clip decode(blob)); LEFT_OUT: e = lambda a. FROZEN: F = lambda a and x moves with it. blob is
 * needed for PENDING that is not LEFT_OUT. DP_BADMSG, DP_VERSION, DP_DIVERGED, DP_BUSY (something
 * is pending already): nothing has changed. */
typedef struct dp_trainer_earlier {
    dp_restore kind;
    dp_settle settle;
    uint32_t clip; /* Q16, of an included publication */
    /* Q16: what is left of work that aged while the node was away; not of what is pending again */
    uint32_t lambda;
    /* FROZEN: of the work in F; they count as done here, so that F keeps its weight */
    uint32_t steps;
    uint64_t tokens;   /* FROZEN: the same; PENDING: that it told, carried ones included */
    dp_part_cuts cuts; /* INCLUDED in a round of parts: its cuts; e = lambda a on parts that are */
    uint32_t taken;    /* not in taken: bit p for part p */
    dp_view a;
    dp_view blob;
} dp_trainer_earlier;

DP_MUST dp_status dp_trainer_restore(dp_trainer *trainer, const dp_trainer_earlier *earlier);

/* Which round the coming steps are for, and the tokens that the run has committed, for the learning
 * rate. */
void dp_trainer_aim(dp_trainer *trainer, uint64_t round, uint64_t tokens);
/* The samples of the coming steps: the ranges one after the other, the first of which begins where
 * from->leased lies behind (base/run/reach.h), then the member's own line from from->own on. Where
 * the trainer has come farther it goes on from there. Without this, and after init and load, all
 * are of the own line. DP_IO. */
DP_MUST dp_status dp_trainer_lease(dp_trainer *trainer, const dp_reach *from,
                                   const dp_sample_range *ranges, uint32_t n);
/* How far it has come with the steps that were done or dropped. 0 after init and load, which empty
 * the drawers. */
dp_reach dp_trainer_reach(const dp_trainer *trainer);
/* One micro-batch, or nothing where the trainer waits (below); sized to take about 80 ms; now and
 * then it completes an optimizer step. A step whose loss or gradient is not finite is dropped and
 * counted, and so is one whose loss is a spike (spike.h). DP_BADARG: the data is too short. */
DP_MUST dp_status dp_trainer_work(dp_trainer *trainer);

/* In a run that exchanges gradients: from now on each of these parts of a batch's gradient is told
 * as soon as backward has ended it, in the batch's last micro-batch, on the thread of
 * dp_trainer_work, which waits: its blob, as the coming publication has it, in pieces from the last
 * part to the first; parts of nothing are not told. A hint: where the step is dropped, or a record
 * comes before the publication, that one has other bytes, and a backend need not tell of all, or of
 * any. cuts are copied; NULL: nobody. Without gradients nobody is told. */
/* at: bytes of the blob before this piece; 0 begins a blob, also where the one before has not
 * ended. */
typedef void (*dp_trainer_take_part)(void *context, uint32_t part, size_t at, dp_view piece,
                                     bool last);
void dp_trainer_on_part(dp_trainer *trainer, const dp_part_cuts *cuts, dp_trainer_take_part take,
                        void *context);

/* There is nothing to work on before a publication or a record: the run exchanges gradients, and
 * that of the batch is here. */
bool dp_trainer_waits(const dp_trainer *trainer);

/* Since the last publication; steps that were dropped are in neither. */
typedef struct dp_trainer_progress {
    uint64_t round;
    uint32_t steps;
    uint32_t skipped; /* steps that were dropped */
    uint32_t spikes;  /* of these, for a spike; the others were not finite */
    uint64_t tokens;
    uint64_t carried; /* tokens of publications that were left out and ride along in e */
    double loss;      /* mean over these steps; 0 without steps */
} dp_trainer_progress;

dp_trainer_progress dp_trainer_progress_of(const dp_trainer *trainer);

/* Microseconds that the backend computed on local steps, since open: nothing else that a trainer
 * does counts. */
uint64_t dp_trainer_computed_us(const dp_trainer *trainer);

/* The newest optimizer step. */
typedef enum dp_trainer_outcome {
    DP_STEP_DONE,
    DP_STEP_NOT_FINITE, /* dropped */
    DP_STEP_SPIKE       /* dropped */
} dp_trainer_outcome;

typedef struct dp_trainer_last {
    uint64_t step; /* done or dropped, counted from 1 since init; 0: none yet */
    dp_trainer_outcome outcome;
    double loss; /* mean nats per token; not a number where it is not known */
    double norm; /* of the gradient, before clipping; the same */
    double rate;
} dp_trainer_last;

dp_trainer_last dp_trainer_last_of(const dp_trainer *trainer);

/* a = e + F + O; blob = encode(a); then F, O and e are empty and a is pending. blob and a are lent
 * until the next call. dense: int8 where the manifest says sparse. DP_BUSY: one is pending already.
 * DP_DIVERGED: a is not finite; the local work since the last settled point is dropped, e is
 * kept. */
DP_MUST dp_status dp_trainer_publish(dp_trainer *trainer, bool dense, dp_view *blob, dp_view *a);

/* The same in two, for a round of this density (dp_codec_of_round; DP_BADARG: not permitted,
 * nothing has changed), between which the trainer may work, aim and lease, and tell progress, and
 * nothing else: start is the moment that is published, and may give DP_BUSY and DP_DIVERGED; ready:
 * whether take would give it without waiting; take gives what publish does, DP_DIVERGED included.
 * Whatever take gives, the publication is over or pending. */
DP_MUST dp_status dp_trainer_publish_start(dp_trainer *trainer, bool dense, uint32_t keep);
DP_MUST dp_status dp_trainer_publish_ready(dp_trainer *trainer, bool *ready);
DP_MUST dp_status dp_trainer_publish_take(dp_trainer *trainer, dp_view *blob, dp_view *a);

/* Of the pending publication's blob, as dp_codec_error: |a|, and what the codec leaves over of it.
 * DP_BADARG: none is pending; DP_IO. */
DP_MUST dp_status dp_trainer_codec_error(dp_trainer *trainer, double *norm, double *error);

typedef struct dp_trainer_record {
    uint64_t round;  /* that theta holds afterwards */
    uint64_t tokens; /* committed afterwards */
    uint32_t alpha;  /* Q16 */
    uint32_t clip;   /* Q16, of the own contribution */
    uint32_t lambda; /* Q16: e, F and O are scaled after settling */
    dp_settle settle;
    dp_part_cuts cuts; /* INCLUDED in a round of parts, as in dp_trainer_earlier */
    uint32_t taken;
    uint32_t contributors; /* publications in the record; 0: as many as items */
    /* not 0: its update is the sum that dp_trainer_add has made of so many; no items then */
    uint32_t added;
    const uint32_t *q; /* Q31, n_items */
    const dp_view *blobs;
    const dp_part_range *ranges; /* of each; they follow one another. NULL: all of the vector */
    size_t n_items;
} dp_trainer_record;

/* A record of more updates than one call is given, in slices (slices.h): these are added to the sum
 * of the at updates before them; at 0 begins anew. theta and the drawers stay as they are. The sum
 * lies where state and publications are lent from, so it is gone after any call that lends one.
 * DP_BADARG (not so many have been added, or too many at once), DP_BADMSG, DP_VERSION, DP_DIVERGED,
 * DP_NOMEM: there is no sum then. */
DP_MUST dp_status dp_trainer_add(dp_trainer *trainer, uint32_t at, const dp_view *blobs,
                                 const uint32_t *q, uint32_t n_items);

/* The outer step on theta and m (consensus.h); settle what is pending; x = theta_new + (x - A).
 * With DP_SETTLE_NONE a pending publication stays pending. In a round of parts each blob is a
 * result on its range (part.h), and e keeps all of a where a part does not count the publication.
 * With lambda 0 nothing of its work is left, no progress either, and its lease is over. DP_BADMSG,
 * DP_VERSION, DP_BADARG (blobs; INCLUDED but nothing pending; another sum): nothing has changed.
 * DP_NOMEM: neither, but for the rounding of x; a sum is gone. DP_DIVERGED: theta is not finite;
 * load another. */
DP_MUST dp_status dp_trainer_apply(dp_trainer *trainer, const dp_trainer_record *record);
/* How far the outer step of the record applied last reached. */
dp_outer_seen dp_trainer_outer(const dp_trainer *trainer);

/* F += O, O = 0; blob: F by a dense codec, f: F itself; lent until the next call. DP_BADARG:
 * gradients are not exchanged in pairs. */
DP_MUST dp_status dp_trainer_freeze(dp_trainer *trainer, dp_view *blob, dp_view *f);
/* D' = (w_own D_own + w_other D_other) / (w_own + w_other) of the decoded blobs; F += D' - D_own, x
 * -= D' - D_own, so that over both nodes sum w F is kept to rounding. *moved: sum of w_own * change
 * of F. Without weight nothing moves. lambda, Q16: by what F has been scaled since it was frozen;
 * the change is scaled alike, as if the exchange had come before. */
DP_MUST dp_status dp_trainer_mix(dp_trainer *trainer, const uint64_t weights[2],
                                 const dp_view blobs[2], uint32_t lambda, double *moved);

/* Somebody else's update, and what its author says it trained on. */
typedef struct dp_trainer_update {
    dp_view blob;
    uint32_t scale;     /* Q16: what clipping leaves of it */
    uint32_t tokens;    /* of a gain, at most, rounded up to whole windows; 0: none is measured */
    uint64_t seed;      /* draws the windows */
    uint8_t member[32]; /* the author */
    uint64_t own;       /* samples of its line, from this one on */
    uint64_t own_count;
    uint32_t n_ranges; /* and these of the run's */
    const dp_sample_range *ranges;
} dp_trainer_update;

/* What the update would do (base/run/judged.h). The alignment is that with the newest publication's
 *     a since the last init or load, which is kept from the first call on: that one compares with
 *     the pending publication alone. A gain is the loss of theta less that of theta - alpha scale
 *     (gain of the codec, where the manifest has it) decode(blob),
 * the step that the run would make if all updates were this one, without momentum; on at most 256
 * whole windows of a kind, without repetition. Its error is the standard error of the mean over
 * windows, and of a single window as large as the gain. A loss that is not finite counts as a
 * thousand nats per token more. Runs that exchange gradients have no gain: their optimizer says how
 * far a gradient leads. Theta comes back to the bit, and nothing else changes but a sum of slices,
 * which is gone. A publication under way must be taken before. DP_BADMSG, DP_VERSION (the blob),
 * DP_DIVERGED (the loss of theta), DP_AGAIN (data is not here), DP_NOMEM: nothing is known. */
DP_MUST dp_status dp_trainer_judge(dp_trainer *trainer, const dp_trainer_update *update,
                                   dp_judged *out);

typedef struct dp_trainer_score {
    double loss;          /* mean nats per token */
    double bits_per_byte; /* of text */
    uint64_t tokens;
} dp_trainer_score;

/* Loss of theta over at most tokens held-out tokens (0: all) of data, or where it is NULL of its
 * own, rounded up to whole windows. data was opened for the vocabulary of the tokenizer.
 * DP_NOTFOUND: none held out. */
DP_MUST dp_status dp_trainer_eval(dp_trainer *trainer, const dp_data *data, uint64_t tokens,
                                  dp_trainer_score *score);
/* prompt (if empty, a line end) and n tokens after it, drawn from theta, as UTF-8 text; other bytes
 * become U+FFFD. */
DP_MUST dp_status dp_trainer_sample(dp_trainer *trainer, const char *prompt, size_t n,
                                    uint64_t seed, dp_buf *text);

#endif
