/* The trainer of the simulator: a model of a few integers that executes the commands of
 * base/trainer/trainer_msg.h exactly, so that every aggregate can be computed again and every unit
 * of displacement has one place. Has no clock; the host makes its steps.
 *
 * Numbers are int64 in fixed point. Displacement d means theta - x. It lies in one work buffer:
 *     open O, frozen F, pending P (the vector a of a publication without an outcome) or residual e.
 *     At all times, per element, made = O + F + P + e + applied + discarded
 * where applied is what records took (clip * decoded blob) and discarded what beta, lambda and
 * crashes threw away. */
#ifndef DP_SIM_TOY_H
#define DP_SIM_TOY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/run/reach.h"
#include "base/trainer/trainer_msg.h"
#include "gossip/record/part.h"

enum {
    DP_TOY_ELEMENTS = 24,
    DP_TOY_KEPT = DP_TOY_ELEMENTS / 2, /* a sparse blob holds the largest half, or dp_toy_kept */
    DP_TOY_STATE_BYTES = 8 + 2 * 8 * DP_TOY_ELEMENTS,
    DP_TOY_BLOB_MAX = 32 + 10 * DP_TOY_ELEMENTS,
    DP_TOY_PARTS_BYTES_MAX = 10 * DP_PARTS_MAX + 10 * DP_TOY_ELEMENTS,
    DP_TOY_SPANS_MAX = 32,
    DP_TOY_VECTOR_BYTES = 16 + 8 * DP_TOY_ELEMENTS + 8 + 24 * DP_TOY_SPANS_MAX,
    DP_TOY_TOKENS_PER_STEP =
        1 << 24 /* a step draws one sample; 256 are as many tokens as a record may state */
};

typedef int64_t dp_toy_vector[DP_TOY_ELEMENTS];

/* The model, equal at all replicas: theta, and the momentum m of the outer step, which the root of
 * a state also covers. */
typedef struct dp_toy_model {
    dp_toy_vector theta;
    dp_toy_vector m;
} dp_toy_model;

/* Samples first .. end - 1 of a line: 0 the run's, 1 + index that of a member. */
typedef struct dp_toy_span {
    uint64_t line;
    uint64_t first;
    uint64_t end;
} dp_toy_span;

/* The samples whose work is in a work buffer, in the order in which they were drawn. */
typedef struct dp_toy_samples {
    uint32_t n;
    dp_toy_span spans[DP_TOY_SPANS_MAX];
} dp_toy_samples;

typedef struct dp_toy_work {
    uint32_t steps;
    uint64_t tokens;
} dp_toy_work;

typedef struct dp_toy {
    uint32_t member; /* moves towards its own target */
    uint32_t beta_milli;
    uint32_t keep;  /* of its next publication (dp_toy_kept) */
    uint64_t round; /* of the model */
    bool has_theta;
    bool pending; /* P holds a publication without an outcome */
    dp_toy_model model;
    dp_toy_vector x;
    dp_toy_vector e;
    dp_toy_vector open;
    dp_toy_vector frozen;
    dp_toy_vector a;       /* P */
    dp_toy_vector a_moved; /* the part of P that x still shows (F + O at publication) */
    dp_toy_vector sent;    /* decoded blob of P */
    dp_part_cuts cuts;     /* of P, in rounds of parts */
    dp_toy_vector made;
    dp_toy_vector applied;
    dp_toy_vector discarded;
    dp_toy_work open_work;
    dp_toy_work frozen_work;
    uint64_t carried; /* tokens in e of publications that were left out */
    uint64_t pending_tokens;
    uint64_t noise;
    dp_reach reach; /* samples of this work */
    uint32_t n_ranges;
    dp_sample_range ranges[DP_LEASE_RANGES_MAX]; /* of its lease that it has not drawn */
    dp_toy_samples in_open;
    dp_toy_samples in_frozen;
    dp_toy_samples in_a;
    dp_toy_samples in_e;
} dp_toy;

/* Result of one publication or freeze. */
typedef struct dp_toy_parcel {
    uint8_t blob[DP_TOY_BLOB_MAX];
    uint32_t blob_size;
    /* PUBLISH in a round of parts: these objects are sent, and blob is the whole */
    dp_part_cuts cuts;
    uint8_t parts[DP_TOY_PARTS_BYTES_MAX];
    uint32_t part_ends[DP_PARTS_MAX];    /* in parts: the end of each */
    uint8_t vector[DP_TOY_VECTOR_BYTES]; /* a, or F */
    unsigned __int128 energy;
    dp_toy_work work;
    uint64_t carried;
    dp_reach reach;
    dp_toy_samples samples; /* all samples in it, also of earlier publications that were left out */
} dp_toy_parcel;

/* One term of the outer step. */
typedef struct dp_toy_term {
    dp_view blob;
    uint32_t q; /* Q31 */
} dp_toy_term;

/* Outcome of a publication. */
typedef struct dp_toy_outcome {
    dp_settle settle;
    uint32_t clip_q16;
    dp_part_cuts cuts; /* n = 0: counted as a whole */
    uint32_t taken;    /* else bit p: part p counts it */
} dp_toy_outcome;

void dp_toy_init(dp_toy *toy, uint32_t member, uint32_t beta_milli, uint64_t noise);
/* theta from the seed of the manifest, round 0. */
void dp_toy_first(uint64_t model_seed, dp_toy_model *model);
void dp_toy_state(uint64_t round, const dp_toy_model *model, uint8_t state[DP_TOY_STATE_BYTES]);
/* Starts again from this model: empties every work buffer, and counts the contents as discarded. */
void dp_toy_start(dp_toy *toy, uint64_t round, const dp_toy_model *model);
DP_MUST dp_status dp_toy_load(dp_toy *toy, dp_view state);
/* TRAIN: continues from the present position, or from reach, where ranges begin. */
void dp_toy_lease(dp_toy *toy, const dp_reach *reach, const dp_sample_range *ranges, uint32_t n);
void dp_toy_train(dp_toy *toy, uint32_t steps);
/* P := e + F + O. There must be no publication under way. */
void dp_toy_publish(dp_toy *toy, bool dense, const dp_part_cuts *cuts, uint64_t nonce,
                    dp_toy_parcel *parcel);
dp_view dp_toy_part(const dp_toy_parcel *parcel, uint32_t part);
/* Brings back a publication (DP_SETTLE_NONE: still pending; else the outcome replaces e) or a
 * frozen displacement; lambda applies only to the vector that is brought back. DP_BADMSG. */
DP_MUST dp_status dp_toy_restore(dp_toy *toy, bool frozen, dp_view vector, dp_view blob,
                                 const dp_toy_outcome *outcome, uint32_t lambda_q16);
void dp_toy_apply(dp_toy *toy, uint64_t round, const dp_toy_model *model,
                  const dp_toy_outcome *outcome, uint32_t lambda_q16);
/* F += O. */
void dp_toy_freeze(dp_toy *toy, uint64_t nonce, dp_toy_parcel *parcel);
/* F += lambda * change, change = w_other * (other - own) / (w_own + w_other), each element towards
 * zero. blobs and weights: own, other. */
DP_MUST dp_status dp_toy_mix(dp_toy *toy, const dp_view blobs[2], const uint64_t weights[2],
                             uint32_t lambda_q16, dp_toy_vector change);
/* True if the identity above holds, and x shows the work that is not yet applied: theta - O - F -
 * the part of P made since. */
bool dp_toy_balanced(const dp_toy *toy);

/* Number of elements, of length, in a sparse blob of this density; keep 0: no span, one half. */
uint32_t dp_toy_kept(uint32_t length, uint32_t keep);
/* Number of elements in this blob, which must decode. */
uint32_t dp_toy_holds(dp_view blob);
/* Elements of these shares of a vector, first .. end - 1. */
uint32_t dp_toy_element(uint32_t share);
/* The part that contains this element. */
uint32_t dp_toy_part_of(const dp_part_cuts *cuts, uint32_t element);
/* The owner's sum of these parts, each times q, as a blob: lossy, like every encoding here. blob:
 * DP_TOY_BLOB_MAX. DP_BADMSG. */
DP_MUST dp_status dp_toy_reduce(const dp_toy_term *terms, uint32_t count, uint32_t first_share,
                                uint32_t end_share, uint64_t nonce, uint8_t *blob, uint32_t *size);
/* Total decoder: any bytes give a vector and its energy or DP_BADMSG. */
DP_MUST dp_status dp_toy_decode(dp_view blob, dp_toy_vector out, unsigned __int128 *energy);
/* The same for a part: the blob has no element outside of it. */
DP_MUST dp_status dp_toy_decode_part(dp_view blob, uint32_t first_share, uint32_t end_share,
                                     dp_toy_vector out, unsigned __int128 *energy);
/* g = sum q * blob, m = g + m / 4, theta -= alpha (g + m / 4) (Sutskever et al. 2013, equation 4,
 * with mu = 1/4); order-free. Shared with the oracle, which calls it on its own model.
 * DP_BADMSG. */
DP_MUST dp_status dp_toy_outer(dp_toy_model *model, uint32_t alpha_q16, const dp_toy_term *terms,
                               uint32_t count);

#endif
