/* The measurements that a voter makes of a decoded update d: cosines, likeness and gain
 * (docs/decisions/006-judging-updates.md). Vectors are n floats. */
#ifndef DP_BENCH_DEFENCE_MEASURE_H
#define DP_BENCH_DEFENCE_MEASURE_H

#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/rng.h"
#include "base/run/judged.h"
#include "base/run/manifest.h"
#include "bench/defence_plan.h"
#include "compute/data/data.h"
#include "compute/model/gpt.h"
#include "compute/model/model.h"

double defence_dot(const float *a, const float *b, size_t n);
double defence_norm(const float *a, size_t n);
/* 0 if one of them is zero. */
double defence_cosine(const float *a, const float *b, size_t n);

typedef struct defence_likeness {
    uint8_t bits[DP_LIKENESS_BYTES];
} defence_likeness;

/* Signs of 256 random projections (Charikar 2002) of a count sketch of 4096 sums (Charikar, Chen,
 * Farach-Colton 2002), which keeps cosines to 1/64. */
defence_likeness defence_likeness_of(const float *d, size_t n);
uint32_t defence_distance(const defence_likeness *a, const defence_likeness *b);

/* Two copies of the model; the update under test moves one of them. */
typedef struct defence_eye {
    dp_model model;
    dp_gpt *now;
    dp_gpt *moved;
} defence_eye;

DP_MUST dp_status defence_eye_open(defence_eye *eye, const dp_manifest *manifest, dp_why *why);
void defence_eye_close(defence_eye *eye); /* Accepts a zeroed one. */
void defence_eye_theta(defence_eye *eye, const float *theta);
/* Moves it to theta - step d. */
void defence_eye_move(defence_eye *eye, const float *theta, const float *d, double step);

/* Windows that a test draws from: held-out ones, or training samples first .. first + count - 1 in
 * the order of seed. */
typedef struct defence_source {
    const dp_data *data;
    uint64_t seed;
    uint64_t first;
    uint64_t count; /* 0: held-out windows */
} defence_source;

/* gains[i]: the loss per token of theta less that of the moved model, on window i of n_windows,
 * DEFENCE_WINDOW tokens each, drawn with replacement. */
DP_MUST dp_status defence_gains(defence_eye *eye, const defence_source *source, dp_rng *rng,
                                uint32_t n_windows, double *gains);

typedef struct defence_gain {
    double mean;
    double error; /* standard error of the mean */
} defence_gain;

/* n >= 2. */
defence_gain defence_gain_of(const double *gains, uint32_t n);

#endif
