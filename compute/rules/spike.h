/* Detects loss spikes: a rule over a series of losses that drops a step which stands out from those
 * before. (Over norms of gradients, whose tails are long, it dropped one step in ten of a quiet run
 * of 4,000.) Pure, without clock; the trainer skips the step, counts it and reports it.
 *
 * x is a spike when x > median + z * max(1.4826 MAD, 0.01 |median|) over the last good values, with
 * MAD the median distance from the median: Hampel's rule (1974; Davies, Gather 1993), where 1.4826
 * makes MAD the standard deviation of normal numbers. The second term keeps the noise of a flat
 * series from counting as a spike. Dropping the batches around a spike is what Chowdhery et al.
 * 2022 (PaLM, section 5.1) did by hand. A lasting level is no spike: after DP_SPIKE_ROW_MAX in a
 * row, or at once where the weights were moved, the next value is good and the series begins
 * anew. */
#ifndef DP_COMPUTE_RULES_SPIKE_H
#define DP_COMPUTE_RULES_SPIKE_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DP_SPIKE_WINDOW = 64, /* values kept */
    DP_SPIKE_MIN = 16,    /* with fewer values none is a spike */
    DP_SPIKE_ROW_MAX = 5
};

/* Part of a checkpoint. All zero: nothing seen. */
typedef struct dp_spike {
    float recent[DP_SPIKE_WINDOW]; /* a ring */
    uint32_t count;                /* of recent, at most DP_SPIKE_WINDOW */
    uint32_t next;                 /* place of the next value */
    uint32_t row;                  /* spikes since the last good value */
} dp_spike;

/* The weights were moved by something else than a step: if the next value stands out, it is a new
 * level. */
void dp_spike_moved(dp_spike *spike);

/* False: value is a spike. True: it is kept in the series. value is finite; z > 0, or 0: nothing is
 * a spike. */
bool dp_spike_is_good(dp_spike *spike, double value, double z);

#endif
