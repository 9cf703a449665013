/* One round of bench_defence as attackers and voters see it: every publication decoded. Decides
 * nothing. */
#ifndef DP_BENCH_DEFENCE_ROUND_H
#define DP_BENCH_DEFENCE_ROUND_H

#include "base/rng.h"
#include "bench/defence_measure.h"
#include "bench/defence_plan.h"
#include "bench/quality_run.h"
#include "compute/codec/codec.h"

/* A worker of the run. Vectors are elements floats, owned. */
typedef struct defence_worker {
    dp_codec codec; /* of its publication */
    float *d;       /* decoded: what it publishes */
    float *honest;  /* decoded: what it would publish if it were honest */
    float *a;       /* before compression, of the newest publication */
    float *before;  /* a of the publication before that */
    float *work;    /* the local work of this round alone */
    bool has_a;
    bool has_before;
    bool counted;
    /* the run's step if all updates were d: alpha times the gain of the codec times the clip */
    double step;
    uint64_t own_first; /* samples of its own line since its last publication */
    uint64_t own_end;
    float *past[DEFENCE_HISTORY]; /* honest, by round modulo DEFENCE_HISTORY; of hostile workers */
} defence_worker;

typedef struct defence_round {
    uint64_t number; /* from 1 on */
    uint32_t n;
    uint32_t hostile; /* the last so many of n */
    size_t elements;
    double alpha;
    const float *theta;
    double median; /* lower median of the norms of d that are not 0 */
    dp_rng rng;
    defence_worker workers[QUALITY_WORKERS];
} defence_round;

/* DP_NOMEM: close must follow. */
DP_MUST dp_status defence_round_open(defence_round *round, const quality_plan *plan,
                                     uint32_t hostile, size_t elements, uint64_t seed);
void defence_round_close(defence_round *round); /* Accepts a zeroed one. */
/* Takes the publications of a round, all of them still honest. */
DP_MUST dp_status defence_round_take(defence_round *round, uint64_t number,
                                     const quality_seat *seats);
/* Computes median and steps again, after a change of some d. */
void defence_round_measure(defence_round *round);
bool defence_is_hostile(const defence_round *round, uint32_t worker);

/* Appends the blob of what the hostile worker sends to out, and decodes it into d. size: of
 * DEFENCE_DRIFT and DEFENCE_NUDGE. The same size gives the same bytes until the round changes. */
DP_MUST dp_status defence_forge(defence_round *round, defence_attack attack, uint32_t worker,
                                double size, dp_buf *out);

#endif
