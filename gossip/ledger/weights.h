/* How much each contribution moves the model: weights, clip factors and Q31 shares of one round, in
 * exact integers (SAFETY E), so that every node computes the same. Sees numbers only. */
#ifndef DP_GOSSIP_LEDGER_WEIGHTS_H
#define DP_GOSSIP_LEDGER_WEIGHTS_H

#include <stdint.h>

enum { DP_CLIP_ONE = 65536 /* Q16 */ };

typedef struct dp_weight_in {
    uint64_t tokens;          /* at most UINT32_MAX */
    uint32_t steps;           /* 0 gives weight 0 */
    uint32_t rounds;          /* k: 1..4 rounds of work may be in the blob */
    uint32_t age;             /* 1: of the round before, so half its clip; else 0 */
    unsigned __int128 energy; /* sum of squares, at most 2^112 */
} dp_weight_in;

typedef struct dp_weight_out {
    uint64_t w; /* floor(tokens^2 / steps), at most 4 times the lower median */
    /* Q16: 65536, or sqrt(M / E') when E' = E (12 / k)^2 is above M; at age 1 half of it */
    uint32_t clip;
    uint32_t q; /* Q31: floor(w * clip * 2^15 / W) */
} dp_weight_out;

typedef struct dp_weight_sum {
    unsigned __int128 w;      /* W: all w of this round and late_w */
    unsigned __int128 median; /* M: lower median of the E' that are not 0; 0 if all are */
} dp_weight_sum;

/* n in 1..DP_LISTED_MAX. late_w: sum of the last weights of the members listed late (each counted
 * once). */
dp_weight_sum dp_weights(const dp_weight_in *in, uint32_t n, unsigned __int128 late_w,
                         dp_weight_out *out);

/* One contribution to a round of parts, whose owners add it up before they know the others (SAFETY
 * F2): w is clamped to 4 w_median and clipped against clip_median, both of the record before; 0:
 * there is none, and nothing is clamped or clipped. q is 0. */
dp_weight_out dp_weight_before(const dp_weight_in *in, uint64_t w_median,
                               unsigned __int128 clip_median);
/* The sums of n of them as dp_weights gives them; fills in q. */
dp_weight_sum dp_weights_before(const dp_weight_in *in, uint32_t n, unsigned __int128 late_w,
                                dp_weight_out *out);

/* Two nodes that exchange work in a pair (mix.h): the factor, Q16, by which the change of both is
 * damped, the same for both in either order, so that sum w F stays what it was. The smaller gives
 * up at most 4/5 of its own, as of a round in which it is the median the larger may have 4/5; and
 * the longer of the two is taken for no longer than the shorter, or than four rounds' work where
 * that is more (k = 4 below clip_median, which is the M of the record before; 0: nothing is
 * clipped). */
uint32_t dp_weight_pair(const uint64_t w[2], const unsigned __int128 energy[2],
                        unsigned __int128 clip_median);

/* Q31: floor(w * clip * 2^15 / all), 0 of nothing. w: of one, or of up to 32. */
uint32_t dp_weight_share(unsigned __int128 w, uint32_t clip, unsigned __int128 all);

/* floor(sqrt(value)). */
uint64_t dp_isqrt(unsigned __int128 value);

#endif
