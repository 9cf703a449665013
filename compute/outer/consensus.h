/* The outer step that every replica computes alike: theta moves against the weighted sum of the
 * decoded updates, with or without Nesterov momentum. Exact order, no threads inside a block, no
 * contraction; the weights come from the record.
 *
 * For each element: g = +0; for the contributors in the given order, where the blob stores this
 *   element: g = g + f v. The length of the step follows from what each update is: f holds the gain
 *   of its codec, so that one which keeps all of its work counts once in whatever run. mu = 0:
 *   theta = theta - alpha g
 *   mu > 0:  m = (mu m) + g;  theta = theta - eta (g + (mu m))      (Nesterov's form of Douillard
 *     et al. 2023, DiLoCo)
 * every operation a rounded float one.
 *
 * eta is alpha, or less: g + mu m reaches 1 + mu <m, g> / <g, g> times as far along g as g alone, m
 * being the new one. With a correlation rho^k between updates k rounds apart that is 1 + mu / (1 -
 * mu rho), which small rounds bring near 10 at mu = 0.9, and then the model overshoots. So eta
 * times the reach is at most DP_OUTER_REACH_MAX. Both scalar products are sums of exact products in
 * double, element by element within runs of DP_CODEC_RUN, then run by run. */
#ifndef DP_COMPUTE_OUTER_CONSENSUS_H
#define DP_COMPUTE_OUTER_CONSENSUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/run/part_cuts.h"

/* Those of one command to a trainer, and the sum of what came before them (slices.h). */
enum { DP_CONSENSUS_ITEMS_MAX = 33 };
#define DP_OUTER_REACH_MAX 1.5

typedef struct dp_outer {
    uint32_t alpha; /* Q16: length of the step */
    uint32_t mu;    /* Q16, below 65536: momentum; 0: none */
} dp_outer;

/* What a step with momentum was; the same at every replica. */
typedef struct dp_outer_seen {
    double reach; /* 1 + mu <m, g> / <g, g>; 1 without momentum or update */
    float eta;
} dp_outer_seen;

/* What is added up, in order of peer key, or of the parts that each is the result of. */
typedef struct dp_consensus_items {
    const dp_view *blobs;
    const uint32_t *q; /* f_i = q_i 2^-31, or longer: steps */
    /* the elements that each stores, from where a run begins to where one ends; NULL: all */
    const dp_part_place *places;
    size_t n;
    /* f_i is times the gain of the update's codec (dp_codec_gain): they are added up for an outer
     * step */
    bool steps;
} dp_consensus_items;

/* f_i. The blob has been checked. */
float dp_consensus_factor(const dp_consensus_items *items, size_t i);

/* theta, m: n floats; m is NULL when mu is 0. Without items nothing moves, m included.
 * The blobs have been checked (dp_codec_check_at). DP_BADARG (too many), DP_NOMEM: theta and m are
 * untouched. DP_DIVERGED when a result is not finite, DP_BADMSG or DP_VERSION when a blob was not
 * checked after all: neither may be used. seen may be NULL. */
DP_MUST dp_status dp_consensus_apply(float *theta, float *m, size_t n,
                                     const dp_consensus_items *items, const dp_outer *outer,
                                     dp_outer_seen *seen);

/* g, n floats: the weighted sum above and nothing more. The same statuses; after DP_BADMSG and
 * DP_VERSION g may not be used. */
DP_MUST dp_status dp_consensus_mean(float *g, size_t n, const dp_consensus_items *items);

/* g run by run, for those who need not hold all of it. */
typedef struct dp_consensus_sum dp_consensus_sum;

/* Of elements first .. first + n - 1 of a vector, where a run begins and of which the blobs are
 * (codec.h), without places; views and q are copied, bytes borrowed until close. DP_BADARG (there
 * is no item, or too many), DP_NOMEM, DP_BADMSG, DP_VERSION. */
DP_MUST dp_status dp_consensus_sum_open(dp_consensus_sum **out, size_t first, size_t n,
                                        const dp_consensus_items *items);
void dp_consensus_sum_close(dp_consensus_sum *sum); /* Accepts NULL. */
/* The next run, lent until the next call; *length is 0 after the last. DP_BADMSG. */
DP_MUST dp_status dp_consensus_sum_next(dp_consensus_sum *sum, const float **g, size_t *length);

#endif
