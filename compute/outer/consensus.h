/* The outer step, with the same bits on every replica: theta moves against the weighted sum of the
 * decoded updates, with or without Nesterov momentum. Exact order, no threads inside a block, no
 * contraction; the weights come from the record.
 *
 * For each element: g = +0; then for each contributor, in the given order, whose blob stores this
 * element: g = g + f v. f holds the gain of the update's codec, so that an update that keeps all of
 * its work counts once in any run.
 *     mu = 0:  theta = theta - alpha g
 *     mu > 0:  u = s g;  m = (mu m) + u;  theta = theta - ((eta (u + (mu m))) + (r g))
 * The second, with s = 1 and r = 0, is Nesterov's form of Douillard et al. 2023 (DiLoCo). Every
 * operation is a rounded float operation.
 *
 * eta is alpha, or less: u + mu m reaches 1 + mu <m, u> / <u, u> times as far along u as u alone, m
 * being the new one. With a correlation rho^k between updates k rounds apart that is 1 + mu / (1 -
 * mu rho), which small rounds bring near 10 at mu = 0.9, and then the model overshoots. So eta
 * times the reach is at most DP_OUTER_REACH_MAX.
 *
 * s is 1, or |m| / |g| where that is less, m being the old one and not 0: momentum makes up for
 * short rounds, and the work of many rounds in one update, as after a time of pairwise averaging,
 * needs none. So m takes no more of an update than its own length, and the rest of it moves theta
 * once: r = (1 - s) min(1, alpha / (1 - mu)), where alpha / (1 - mu) is how far momentum would have
 * taken it in the end.
 *
 * The scalar products <mu m + g, g>, <g, g> and <m, m>, with the old m, are sums of exact products
 * in double, element by element within runs of DP_CODEC_RUN, then run by run. */
#ifndef DP_COMPUTE_OUTER_CONSENSUS_H
#define DP_COMPUTE_OUTER_CONSENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/part_cuts.h"

/* items of one command to a trainer, and the sum of earlier ones (slices.h) */
enum { DP_CONSENSUS_ITEMS_MAX = 33 };
#define DP_OUTER_REACH_MAX 1.5

typedef struct dp_outer {
    uint32_t alpha; /* Q16: length of the step */
    uint32_t mu;    /* Q16, below 65536: momentum; 0: none */
    bool long_once; /* s and r as above; otherwise 1 and 0, as in runs before manifest version 22 */
} dp_outer;

/* The reach and the lengths of a step; equal at every replica. */
typedef struct dp_outer_seen {
    double reach; /* 1 + mu <m, u> / <u, u>; 1 without momentum or update */
    float eta;
    float in_m; /* s: what of g goes into m */
    float once; /* r: how far the rest of g moves theta */
} dp_outer_seen;

/* The lengths follow from these; m is the old one. */
typedef struct dp_outer_sums {
    double along;  /* <mu m + g, g> */
    double square; /* <g, g> */
    double kept;   /* <m, m> */
} dp_outer_sums;

/* The step of an update with momentum; sums NULL: without. */
dp_outer_seen dp_outer_step(const dp_outer *outer, const dp_outer_sums *sums);

/* The items of a sum, in order of peer key, or of the parts that they are results of. */
typedef struct dp_consensus_items {
    const dp_view *blobs;
    const uint32_t *q; /* f_i = q_i 2^-31, or longer: steps */
    /* Place of each item in the vector, whole runs; NULL: the whole vector. */
    const dp_part_place *places;
    size_t n;
    /* f_i is multiplied by the gain of the update's codec (dp_codec_gain), as an outer step needs
     * it. */
    bool steps;
} dp_consensus_items;

/* f_i. The blob has been checked. */
float dp_consensus_factor(const dp_consensus_items *items, size_t i);

/* The outer step on theta and m, n floats each; m is NULL if mu is 0. Without items nothing moves,
 * m included. The blobs have been checked (dp_codec_check_at). DP_BADARG (too many), DP_NOMEM:
 * theta and m are untouched. DP_DIVERGED (a result is not finite), DP_BADMSG or DP_VERSION (a blob
 * was not checked): theta and m are undefined. seen may be NULL. */
DP_MUST dp_status dp_consensus_apply(float *theta, float *m, size_t n,
                                     const dp_consensus_items *items, const dp_outer *outer,
                                     dp_outer_seen *seen);

/* g, n floats: only the weighted sum above. Same statuses; after DP_BADMSG and DP_VERSION g is
 * undefined. */
DP_MUST dp_status dp_consensus_mean(float *g, size_t n, const dp_consensus_items *items);

/* g run by run, for callers that do not need all of it at once. */
typedef struct dp_consensus_sum dp_consensus_sum;

/* Opens the sum of elements first .. first + n - 1 of a vector, which begin a run. The blobs are of
 * these elements (codec.h), without places; views and q are copied, bytes borrowed until close.
 * DP_BADARG (no or too many items), DP_NOMEM, DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_consensus_sum_open(dp_consensus_sum **out, size_t first, size_t n,
                                        const dp_consensus_items *items);
void dp_consensus_sum_close(dp_consensus_sum *sum); /* Accepts NULL. */
/* The next run, lent until the next call; *length is 0 after the last. DP_BADMSG. */
DP_MUST dp_status dp_consensus_sum_next(dp_consensus_sum *sum, const float **g, size_t *length);

#endif
