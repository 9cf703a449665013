/* What the files of the self-test (backend_check*.c) share: one model on the backend that is tested
 * and on the CPU, and the words for a difference between them. Private to these. */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CHECK_INSIDE_H
#define DP_COMPUTE_BACKEND_BACKEND_CHECK_INSIDE_H

#include "compute/backend/backend.h"
#include "compute/backend/backend_check.h"

enum { DP_TWINS_ROWS = 2, DP_TWINS_LENGTH = 32, DP_TWINS_VOCAB = 96 };

/* What the backend told of gradients while it computed the others. */
typedef struct dp_twins_early {
    float *values; /* owned, as many as the model has */
    size_t first;  /* they are there from here on */
    bool rises;    /* it told of fewer after more */
} dp_twins_early;

/* Zeros, but for the backends, what the engines shall be, and why: as dp_twins_open wants them. */
typedef struct dp_twins {
    const dp_backend *of[2]; /* the backend, the CPU */
    dp_engine *engines[2];
    dp_model model;
    dp_precision_kind precision;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
    dp_recompute recompute;
    double tolerance; /* of what is near, relative */
    bool refused;     /* the device has not this precision */
    dp_buf bytes;
    dp_twins_early early;
    dp_view blobs[2][2]; /* [twin][blob of a, of F] */
    uint32_t tokens[DP_TWINS_ROWS * DP_TWINS_LENGTH + 1];
    dp_why *why;
} dp_twins;

/* Both engines; dp_twins_close may follow whatever the outcome. */
DP_MUST dp_status dp_twins_open(dp_twins *t, const dp_model_config *config, uint32_t device);
void dp_twins_close(dp_twins *t);

/* Both hold the same bits. */
DP_MUST dp_status dp_twins_same(const dp_twins *t, dp_vector vector, const char *after);
/* The same of every vector. */
DP_MUST dp_status dp_twins_same_all(const dp_twins *t, const char *after);
/* DP_OK if values[0], of the backend, is within the tolerance of values[1], of the CPU. */
DP_MUST dp_status dp_twins_near(const dp_twins *t, const char *what, const double values[2]);
/* DP_UNSUPPORTED with the two numbers. */
DP_MUST dp_status dp_twins_differ(const dp_twins *t, const char *what, double got, double wanted);
/* The sentence of a call that failed, unless it left one. */
DP_MUST dp_status dp_twins_told(const dp_twins *t, int twin, const char *call, dp_status status);

/* DP_TWINS_DO(t, copy, to, from): both make the same call. */
#define DP_TWINS_DO(t, call, ...)                                                                  \
    do {                                                                                           \
        for (int twin_ = 0; twin_ < 2; twin_++) {                                                  \
            DP_TRY(dp_twins_told((t), twin_, #call,                                                \
                                 (t)->of[twin_]->call((t)->engines[twin_], __VA_ARGS__)));         \
        }                                                                                          \
    } while (0)

/* ---- backend_check_apply.c */

/* Both make this outer step, and hold the same bits then. */
DP_MUST dp_status dp_twins_apply(dp_twins *t, const dp_consensus_items *items,
                                 const dp_outer *outer);
/* The same of two parts of a blob of the whole, with nothing of the one between them. DP_NOMEM
 * too. */
DP_MUST dp_status dp_twins_apply_parts(dp_twins *t, dp_view blob, const dp_outer *outer);

/* ---- backend_check_rounds.c */

/* Two publications, an outer step and a pairwise average with every codec. Both engines must hold
 * the same theta and feedback before. */
DP_MUST dp_status dp_twins_check_rounds(dp_twins *t);

/* ---- backend_check_optim.c */

/* Every optimizer and way of keeping weights that the backend says it has, in fp32, where it has
 * that. As dp_backend_check. */
DP_MUST dp_status dp_backend_check_optimizers(const dp_backend *backend, uint32_t device,
                                              const dp_backend_told *told, dp_why *why);

#endif
