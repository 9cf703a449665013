/* The fields of dp_trainer and the calls that its files share. Private to these: trainer.c (open,
 * progress), trainer_state.c (states), trainer_steps.c (training), trainer_lease.c (its samples),
 * trainer_gradients.c (runs that exchange gradients), trainer_publish.c (publications),
 * trainer_parts.c (rounds of parts), trainer_apply.c (records, pairwise averages), trainer_judge.c
 * (updates of others), trainer_score.c (loss and samples), trainer_keep.c (what a standalone
 * trainer keeps) and trainer_script.c (a script that trains). */
#ifndef DP_COMPUTE_TRAINER_TRAINER_INSIDE_H
#define DP_COMPUTE_TRAINER_TRAINER_INSIDE_H

#include "base/run/reach.h"
#include "compute/backend/backend.h"
#include "compute/codec/alignment.h"
#include "compute/data/data.h"
#include "compute/data/loader.h"
#include "compute/model/base_weights.h"
#include "compute/model/model.h"
#include "compute/model/state.h"
#include "compute/rules/scaler.h"
#include "compute/rules/schedule.h"
#include "compute/rules/spike.h"
#include "compute/text/bpe.h"
#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_script.h"

/* Local work since the last publication, or the work of one. */
typedef struct dp_trainer_tally {
    uint32_t steps;
    uint32_t restored; /* of steps: those of an earlier process, whose losses are unknown */
    uint32_t skipped;
    uint32_t spikes; /* of skipped */
    uint32_t empty;  /* of skipped */
    uint64_t tokens;
    uint64_t carried;
    double loss_sum; /* of the steps' mean losses */
} dp_trainer_tally;

/* In a run that exchanges gradients: n floats each; else NULL. */
typedef struct dp_trainer_gradients {
    float *g;    /* of the last batch, if ready */
    float *work; /* the mean of a round, and values for the engine */
    float *m;    /* of the outer step, as in the state */
    float *v;
    bool ready; /* g waits for its publication */
} dp_trainer_gradients;

/* Samples of one line that a script has drawn and not used. */
typedef struct dp_drawn_stretch {
    uint64_t count;
    bool own;     /* of the member's line, not the run's */
    bool expired; /* the lease has passed them: work on them has no tokens */
} dp_drawn_stretch;

typedef struct dp_trainer_script {
    dp_buf table;     /* in a run of any model: the bytes of the tensors' table */
    bool active;      /* in a run of a built-in model: a script takes the steps */
    uint64_t n_drawn; /* samples of all stretches */
    uint32_t n_stretches;
    dp_drawn_stretch stretches[DP_SCRIPT_STRETCHES_MAX]; /* in the order of drawing */
    bool leaseless; /* no lease was told since the last load, or since all work was discarded */
    dp_reach lease_from; /* the lease as it was told last */
    uint32_t n_lease;
    dp_sample_range lease[DP_LEASE_RANGES_MAX];
} dp_trainer_script;

struct dp_trainer {
    dp_manifest manifest;
    uint8_t member[32];
    uint64_t seed; /* of the process */
    dp_model model;
    dp_base_weights base; /* of a run with adapters; else zero */
    const dp_backend *backend;
    dp_engine *engine; /* of it: holds every vector */
    dp_schedule schedule;
    dp_spike losses;              /* of the steps since start or load */
    dp_scaler scaler;             /* of fp16 training */
    void (*alive)(void *context); /* as in the setup, or NULL */
    void *alive_context;
    uint32_t contributors; /* blobs of the record applied last; 0: none since start or load */
    dp_bpe *bpe;
    dp_data data;
    size_t n; /* elements of every vector */
    /* A is being encoded, ANCHOR is x at its start; pending_tally is its work. */
    bool publishing;
    bool apart;   /* the publication is encoded without e, which joins A afterwards */
    bool pending; /* A and ANCHOR are in use */
    dp_trainer_tally pending_tally;
    /* In a run of any model: the publication that was left out last, whose work is in e; its tokens
     * are counted in open.carried, too. Empty once it is in another publication. */
    dp_trainer_tally unsent;
    uint32_t left_out;    /* publications left out in a row, up to the last settled one */
    dp_view pending_blob; /* lent by the engine, or of restored */
    dp_buf restored;
    dp_buf bytes;   /* the state, a or F that was lent last */
    dp_view joined; /* in bytes: a record in slices as one update, during a call */
    /* places of the results of a record of parts, during a call */
    dp_part_place places[DP_PARTS_MAX];
    uint32_t added; /* updates whose sum is in bytes; 0: none */
    uint64_t state_round;
    dp_outer_seen outer; /* of the record applied last */
    bool judges;         /* a JUDGE has come: publications are remembered */
    dp_alignment own;    /* alignment with the newest publication */

    uint64_t aim_round; /* of the coming steps */
    uint64_t committed;
    dp_trainer_tally open;
    uint64_t step_count;  /* since init or load: warms up */
    uint64_t batch_count; /* alone: since init, done or dropped; names the samples */
    uint32_t rows_done;   /* of the step under way */
    uint32_t rows_next;   /* of the next micro-batch */
    uint32_t rows_max;    /* of any */
    uint32_t rows_seen;   /* numbers of rows that a micro-batch has had, as bits */
    double step_loss;     /* sum over the targets of the step under way */
    uint64_t step_losses; /* these targets */
    uint64_t computed_us; /* since open */
    dp_trainer_last last;
    dp_trainer_gradients gradients;
    bool alone;        /* without peers: theta is x, and there is no other vector */
    dp_loader *loader; /* of training batches */
    dp_reach drawn;    /* samples behind it, those of the step under way included */
    dp_reach reach;    /* without these */
    uint32_t n_ranges;
    dp_sample_range ranges[DP_LEASE_RANGES_MAX]; /* the rest of the lease */
    uint32_t *inputs;                            /* [rows_max][context], of an evaluation */
    uint32_t *targets;
    dp_trainer_script script;
};

/* The base of x: x = anchor - F - O. */
static inline dp_vector dp_trainer_anchor(const dp_trainer *trainer)
{
    return trainer->pending ? DP_VECTOR_ANCHOR : DP_VECTOR_THETA;
}

/* Vectors of the outer optimizer in a state: 0; 1, momentum, a vector of the engine; 2, the moments
 * of AdamW in gradients. */
uint32_t dp_trainer_moments(const dp_trainer *trainer);

/* Gives what a publication of now would tell. */
dp_trainer_tally dp_trainer_offered(const dp_trainer *trainer);
/* A record left this publication out. */
void dp_trainer_keep_unsent(dp_trainer *trainer, const dp_trainer_tally *tally);

/* Forget the step under way. */
DP_MUST dp_status dp_trainer_drop_step(dp_trainer *trainer);

/* trainer_gradients.c */
bool dp_trainer_has_gradients(const dp_trainer *trainer);
DP_MUST dp_status dp_trainer_gradients_open(dp_trainer *trainer);
void dp_trainer_gradients_close(dp_trainer *trainer);
/* Moments to 0. */
void dp_trainer_gradients_zero(dp_trainer *trainer);
/* Reads moments, and checks theta, of a state. DP_BADMSG, DP_DIVERGED: nothing has changed. */
DP_MUST dp_status dp_trainer_gradients_load(dp_trainer *trainer, const dp_state *from);
/* Appends the moments to the bytes of the state. */
DP_MUST dp_status dp_trainer_gradients_append(dp_trainer *trainer);
/* Takes the engine's gradients of a whole batch. */
DP_MUST dp_status dp_trainer_take_gradient(dp_trainer *trainer, float loss_scale);
/* a = e + g. DP_DIVERGED. */
DP_MUST dp_status dp_trainer_gather(dp_trainer *trainer);
/* The outer step of AdamW on theta and the moments, by the mean of the record. */
DP_MUST dp_status dp_trainer_step_of_all(dp_trainer *trainer, const dp_trainer_record *record);
void dp_trainer_gradients_age(dp_trainer *trainer, uint32_t lambda);

/* trainer_judge.c: remembers a, the own newest publication of n floats, if updates are compared
 * with it. */
void dp_trainer_remember(dp_trainer *trainer, const float *a);

/* Empties bytes, and returns it. */
dp_buf *dp_trainer_bytes_anew(dp_trainer *trainer);

/* trainer_parts.c */
/* Checks blobs, and finds their places in a record of parts (else ranges becomes NULL). A record in
 * slices becomes one of a single update, lent until the next use of bytes. Fills in contributors.
 * The statuses of dp_part_places. */
DP_MUST dp_status dp_trainer_join(dp_trainer *trainer, dp_trainer_record *record);
/* The items that such a record sums; lent until the next record. */
dp_consensus_items dp_trainer_items(const dp_trainer *trainer, const dp_trainer_record *record);
/* e of an included publication whose vector is A: beta (a - clip decode(blob)) on the parts that
 * count it, a on the others. The blob has been checked. */
DP_MUST dp_status dp_trainer_settle(dp_trainer *trainer, uint32_t clip, const dp_part_cuts *cuts,
                                    uint32_t taken, dp_view blob);

/* trainer_script.c */
/* Copies the table. DP_NOMEM. */
DP_MUST dp_status dp_trainer_script_open(dp_trainer *trainer, dp_view table);
void dp_trainer_script_close(dp_trainer *trainer);
/* Drawn samples of the own line, or of the run's, have no tokens any more. */
void dp_trainer_script_expire(dp_trainer *trainer, bool own);
/* The samples before from are others' or done. */
void dp_trainer_script_jump(dp_trainer *trainer, const dp_reach *from);

/* trainer_lease.c */
/* Seed of a member's own line: each differs from the others and from the line of the run. */
uint64_t dp_trainer_line_seed(const dp_trainer *trainer, const uint8_t member[32]);
/* The next samples, at most rows of them; marks them as drawn. */
dp_loader_place dp_trainer_next_place(const dp_trainer *trainer, uint32_t rows);
void dp_trainer_pass_over(dp_trainer *trainer, const dp_loader_place *place);
/* Until a lease comes, samples are of the own line. */
void dp_trainer_drop_lease(dp_trainer *trainer);

#endif
