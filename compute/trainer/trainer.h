/* The trainer: local steps from batch to update, and a node's own work until a record settles it.
 * Knows no messages (worker.h) and decides no rounds.
 *
 * Every displacement of the weights is in exactly one work buffer: open O, frozen F, pending P
 * (published, undecided), or error feedback e. theta is the weights of all replicas; x, the
 * engine's weights, is the place of local training:
 *     x = A - F - O,    A = x at the publication while one is pending, else theta
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
#include "compute/rules/scaler.h"
#include "compute/rules/spike.h"
#include "compute/trainer/sample.h"

typedef struct dp_trainer dp_trainer;

typedef struct dp_trainer_setup {
    dp_view manifest;  /* canonical bytes, copied */
    dp_view tokenizer; /* tokenizer.json, or the table of tensors of a run of any model; copied */
    const dp_view *shards; /* in the order of the manifest; the bytes are borrowed until close */
    size_t n_shards;
    /* Of a run with adapters: the object of the base (base_weights.h), whose hash was checked;
     * borrowed until close. */
    dp_view base;
    uint8_t member[32];
    /* of this process, for random choices that are not repeated, as stochastic rounding */
    uint64_t seed;
    size_t threads;            /* 0: the default of the machine */
    const dp_backend *backend; /* NULL: the CPU */
    uint32_t device;           /* of the backend */
    /* Percent of a card's memory that training may take (plan.h); 0: all that is free. */
    uint32_t card_share;
    /* Process group of this host (process_group.h), for the backends that it serves; NULL: none.
     * Borrowed until close. */
    struct dp_process_group *team;
    /* Standalone (standalone.h): x is theta, batches go through the data in passes, and the
     * schedule alone sets the rate. Only init, load, work, eval, sample, last and the calls of
     * trainer_keep.h may be used. */
    bool alone;
    /* alone: rows of every micro-batch, so that nothing depends on the clock; at least 1 */
    uint32_t rows;
    /* Called during eval and sample, before each computation of the backend; NULL: nobody is. */
    void (*alive)(void *context);
    void *context;
} dp_trainer_setup;

/* Opens a trainer whose theta is zero until init or load. In a run of any model it has the vectors
 * of rounds alone, on the CPU: it always waits, and init, eval, sample and gains give
 * DP_UNSUPPORTED. DP_BADMSG, DP_BADARG, DP_TOOBIG (too
 * little memory, plan.h), DP_UNSUPPORTED (the backend lacks something that the run needs), DP_IO
 * (its device) with a sentence; DP_NOMEM.
 *
 * Every call below may give DP_IO if the device is gone; then only problem and close may follow. */
DP_MUST dp_status dp_trainer_open(dp_trainer **out, const dp_trainer_setup *setup, dp_why *why);
void dp_trainer_close(dp_trainer *trainer); /* Accepts NULL. */

/* The backend's sentence about the call that failed with DP_IO, else "". Lent until close. */
const char *dp_trainer_problem(const dp_trainer *trainer);

size_t dp_trainer_elements(const dp_trainer *trainer);
/* Its precision is the one in which this trainer computes. */
const dp_manifest *dp_trainer_manifest(const dp_trainer *trainer);

/* Sets theta from the manifest's seed, round 0. All work buffers are empty; moments are zero. */
DP_MUST dp_status dp_trainer_init(dp_trainer *trainer);
/* Loads theta, and the moments that the run has, from state bytes (state.h); all else as init. The
 * first steps after it warm up. DP_BADMSG, DP_VERSION, DP_DIVERGED, DP_IO. On failure nothing has
 * changed. */
DP_MUST dp_status dp_trainer_load(dp_trainer *trainer, uint64_t round, dp_view state);
/* The bytes of the state, lent until the next call, and their object root. DP_NOMEM, DP_IO. */
DP_MUST dp_status dp_trainer_state_bytes(dp_trainer *trainer, dp_view *state, dp_hash *root);
uint64_t dp_trainer_round(const dp_trainer *trainer);
/* Theta, x, e and F for tests and export, lent until the next call; the CPU lends them until
 * close. */
const float *dp_trainer_theta(const dp_trainer *trainer);
const float *dp_trainer_params(const dp_trainer *trainer);
const float *dp_trainer_feedback(const dp_trainer *trainer);
const float *dp_trainer_frozen(const dp_trainer *trainer);

/* A vector a, as little-endian floats, that an earlier process had published (DP_RESTORE_PENDING)
 * or frozen. PENDING: with DP_SETTLE_NONE it is pending again; INCLUDED: e = lambda beta (a - clip
 * decode(blob)); LEFT_OUT: e = lambda a. FROZEN: F = lambda a, and x moves with it. blob is needed
 * for PENDING that is not LEFT_OUT. DP_BADMSG, DP_VERSION, DP_DIVERGED, DP_BUSY (a publication is
 * pending): nothing has changed. */
typedef struct dp_trainer_earlier {
    dp_restore kind;
    dp_settle settle;
    uint32_t clip; /* Q16, of an included publication */
    /* Q16: how far work has aged while the node was away; unused for one that is pending again. */
    uint32_t lambda;
    /* FROZEN: steps of the work in F, which count as done here so that F keeps its weight. PENDING:
     * of the publication. */
    uint32_t steps;
    uint64_t tokens;   /* FROZEN: the same; PENDING: tokens of the publication with carried ones */
    uint64_t carried;  /* PENDING: these */
    dp_part_cuts cuts; /* INCLUDED in a round of parts: its cuts */
    uint32_t taken;    /* bit p: part p counts it; on other parts e = lambda a */
    dp_view a;
    dp_view blob;
} dp_trainer_earlier;

DP_MUST dp_status dp_trainer_restore(dp_trainer *trainer, const dp_trainer_earlier *earlier);

/* Sets the round that the next steps are for, and the tokens that the run has committed, for the
 * learning rate. */
void dp_trainer_aim(dp_trainer *trainer, uint64_t round, uint64_t tokens);
/* Sets the samples of the next steps: the ranges in order, the first of which has from->leased
 * samples of the lease before it (base/run/reach.h), then the member's own line from from->own on.
 * A trainer that has come farther continues there. Without this call, and after init and load, all
 * samples are of the own line. DP_IO. */
DP_MUST dp_status dp_trainer_lease(dp_trainer *trainer, const dp_reach *from,
                                   const dp_sample_range *ranges, uint32_t n);
/* How far the trainer has come with steps done or dropped. 0 after init and load, which empty the
 * work buffers. */
dp_reach dp_trainer_reach(const dp_trainer *trainer);
/* Computes one micro-batch of about 80 ms, or nothing if the trainer waits (below); some calls
 * complete an optimizer step. A step whose loss or gradient is not finite, whose loss is a spike
 * (spike.h), or whose batch has no token with a loss, is dropped and counted. DP_BADARG: the data
 * is too short. */
DP_MUST dp_status dp_trainer_work(dp_trainer *trainer);

/* True if there is no work before a publication or a record: the run exchanges gradients, and the
 * batch's gradient is ready. Always in a run of any model, whose steps are a script's. */
bool dp_trainer_waits(const dp_trainer *trainer);

/* Progress since the last publication; dropped steps count in neither steps nor tokens. */
typedef struct dp_trainer_progress {
    uint64_t round;
    uint32_t steps;
    uint32_t skipped; /* steps that were dropped */
    uint32_t spikes;  /* of these: loss spikes */
    uint32_t empty;   /* of these: no token with a loss; the others were not finite */
    uint64_t tokens;
    uint64_t carried; /* tokens of left-out publications, whose work is in e */
    double loss;      /* mean over these steps; 0 without steps */
    bool again;       /* of an offer: the steps are of a publication that was left out */
} dp_trainer_progress;

dp_trainer_progress dp_trainer_progress_of(const dp_trainer *trainer);
/* Gives what a publication of now would tell: progress. In a run of any model, where no step may
 * come any more, progress without tokens is given with the steps and tokens of the publication that
 * was left out last, which are then not in carried. */
dp_trainer_progress dp_trainer_offer(const dp_trainer *trainer);

/* Microseconds since open in which the backend computed local steps, and nothing else. */
uint64_t dp_trainer_computed_us(const dp_trainer *trainer);

/* The newest optimizer step. */
typedef enum dp_trainer_outcome {
    DP_STEP_DONE,
    DP_STEP_NOT_FINITE, /* dropped, as the others */
    DP_STEP_SPIKE,
    DP_STEP_EMPTY /* no token with a loss */
} dp_trainer_outcome;

typedef struct dp_trainer_last {
    uint64_t step; /* done or dropped, counted from 1 since init; 0: none yet */
    dp_trainer_outcome outcome;
    double loss; /* mean nats per token; NaN: unknown */
    double norm; /* of the gradient, before clipping; NaN: unknown */
    double rate;
} dp_trainer_last;

dp_trainer_last dp_trainer_last_of(const dp_trainer *trainer);

/* Publishes a = e + F + O as blob = encode(a); then F, O and e are empty and a is pending. blob and
 * a are lent until the next call. dense: int8 if the manifest's codec is sparse. DP_BUSY: a
 * publication is pending. DP_DIVERGED: a is not finite; the local work since the last settled point
 * is dropped, e is kept. */
DP_MUST dp_status dp_trainer_publish(dp_trainer *trainer, bool dense, dp_view *blob, dp_view *a);

/* The same in two calls, for a round of this density (dp_codec_of_round; DP_BADARG: not permitted,
 * nothing has changed). Between them only work, aim, lease and progress may be called. start fixes
 * the published work and may give DP_BUSY and DP_DIVERGED. ready: true if take returns without
 * waiting. take gives the status of publish, DP_DIVERGED included; after any status the publication
 * has failed or is pending. */
DP_MUST dp_status dp_trainer_publish_start(dp_trainer *trainer, bool dense, uint32_t keep);
DP_MUST dp_status dp_trainer_publish_ready(dp_trainer *trainer, bool *ready);
DP_MUST dp_status dp_trainer_publish_take(dp_trainer *trainer, dp_view *blob, dp_view *a);

/* As dp_codec_error for the pending publication: |a|, and the norm of the rest that the codec has
 * left out. DP_BADARG: none is pending; DP_IO. */
DP_MUST dp_status dp_trainer_codec_error(dp_trainer *trainer, double *norm, double *error);

typedef struct dp_trainer_record {
    uint64_t round;  /* of theta afterwards */
    uint64_t tokens; /* committed afterwards */
    uint32_t alpha;  /* Q16 */
    uint32_t clip;   /* Q16, of the own contribution */
    uint32_t lambda; /* Q16: e, F and O are scaled after settling */
    dp_settle settle;
    dp_part_cuts cuts; /* INCLUDED in a round of parts, as in dp_trainer_earlier */
    uint32_t taken;
    uint32_t contributors; /* publications in the record; 0: as many as items */
    /* Not 0: the update is the sum of so many that dp_trainer_add has made, and there are no
     * items. */
    uint32_t added;
    const uint32_t *q; /* Q31, n_items */
    const dp_view *blobs;
    const dp_part_range *ranges; /* of each item, in order; NULL: the whole vector */
    size_t n_items;
} dp_trainer_record;

/* Adds a slice of a record with more updates than one call takes (slices.h) to the sum of the at
 * updates before it; at 0 starts a sum. theta and the work buffers stay. The sum lies in the memory
 * that lends states and publications, so any call that lends one ends it. DP_BADARG (at is not the
 * number added so far, or too many at once), DP_BADMSG, DP_VERSION, DP_DIVERGED, DP_NOMEM: the sum
 * is gone. */
DP_MUST dp_status dp_trainer_add(dp_trainer *trainer, uint32_t at, const dp_view *blobs,
                                 const uint32_t *q, uint32_t n_items);

/* Applies a record: the outer step on theta and m (consensus.h); settles the pending publication; x
 * = theta_new + (x - A). With DP_SETTLE_NONE a pending publication stays pending. In a round of
 * parts each blob is a result on its range (part.h), and e keeps all of a on parts that do not
 * count the publication. lambda 0 discards all own work, its progress and the lease. DP_BADMSG,
 * DP_VERSION, DP_BADARG (blobs; INCLUDED with nothing pending; another sum): nothing has changed.
 * DP_NOMEM: nothing but the rounding of x, and a sum is gone. DP_DIVERGED: theta is not finite;
 * load another state. */
DP_MUST dp_status dp_trainer_apply(dp_trainer *trainer, const dp_trainer_record *record);
/* Reach of the outer step of the last record. */
dp_outer_seen dp_trainer_outer(const dp_trainer *trainer);

/* F += O, O = 0; blob: F by a dense codec; f: F itself; both lent until the next call. DP_BADARG:
 * the run exchanges gradients, which are not averaged in pairs. */
DP_MUST dp_status dp_trainer_freeze(dp_trainer *trainer, dp_view *blob, dp_view *f);
/* Pairwise averaging with D' = (w_own D_own + w_other D_other) / (w_own + w_other) of the decoded
 * blobs: F += D' - D_own, x -= D' - D_own, so that the sum of w F over both nodes is kept up to
 * rounding. *moved: sum of w_own * change of F. Without weights nothing moves. lambda, Q16: the
 * factor by which F has been scaled since it was frozen; the change is scaled by it too. */
DP_MUST dp_status dp_trainer_mix(dp_trainer *trainer, const uint64_t weights[2],
                                 const dp_view blobs[2], uint32_t lambda, double *moved);

/* A peer's update, and the samples that its author claims. */
typedef struct dp_trainer_update {
    dp_view blob;
    uint32_t scale;     /* Q16: its clipping factor */
    uint32_t tokens;    /* limit for measuring a gain, rounded up to whole windows; 0: no gain */
    uint64_t seed;      /* draws the windows */
    uint8_t member[32]; /* the author */
    uint64_t own;       /* first claimed sample of its own line */
    uint64_t own_count;
    uint32_t n_ranges; /* claimed ranges of the line of the run */
    const dp_sample_range *ranges;
} dp_trainer_update;

/* Measures the effect of an update (base/run/judged.h). align: the cosine with a of the newest own
 * publication since the last init or load; the first call can compare only with a pending one,
 * since a is remembered from then on. A gain is
 *     loss of theta - loss of theta - alpha scale (gain of the codec) decode(blob),
 * where the second model takes the step that the run would take if all updates were this one,
 * without momentum, and the gain of the codec counts if the manifest has it. Each gain uses at most
 * 256 whole windows, without repetition; its error is the standard error of the mean over windows,
 * and for a single window the gain itself. A loss that is not finite counts as 1000 nats per token
 * more. Runs that exchange gradients have no gain, because their optimizer decides the step.
 * Theta comes back to the bit, and nothing else changes but a sum of slices, which is gone. Take a
 * publication in progress before. DP_BADMSG, DP_VERSION (the blob), DP_DIVERGED (the loss of
 * theta), DP_AGAIN (the data is missing), DP_NOMEM: nothing was measured. */
DP_MUST dp_status dp_trainer_judge(dp_trainer *trainer, const dp_trainer_update *update,
                                   dp_judged *out);

typedef struct dp_trainer_score {
    double loss;          /* mean nats per token */
    double bits_per_byte; /* of text */
    uint64_t tokens;
} dp_trainer_score;

/* Loss of theta over at most tokens held-out tokens (0: all) of data, or of the run's data if data
 * is NULL, rounded up to whole windows. data was opened for the vocabulary of the tokenizer.
 * DP_NOTFOUND: no held-out tokens. */
DP_MUST dp_status dp_trainer_eval(dp_trainer *trainer, const dp_data *data, uint64_t tokens,
                                  dp_trainer_score *score);
/* Appends prompt (a line end if empty) and n tokens drawn from theta after it, as dp_sample_text
 * (sample_text.h). Every token costs a whole window, on any backend. */
DP_MUST dp_status dp_trainer_sample(dp_trainer *trainer, const dp_sampler *sampler,
                                    const char *prompt, size_t n, dp_buf *text);

#endif
