/* Two engines with the same model, one on the tested backend and one on the CPU, and the sentences
 * for differences between them. Private to the self-test (backend_check*.c). */
#ifndef DP_COMPUTE_BACKEND_BACKEND_CHECK_INSIDE_H
#define DP_COMPUTE_BACKEND_BACKEND_CHECK_INSIDE_H

#include "compute/backend/backend.h"
#include "compute/backend/backend_check.h"

enum { DP_TWINS_ROWS = 2, DP_TWINS_LENGTH = 32, DP_TWINS_VOCAB = 96 };

/* Before dp_twins_open set the backends, the settings of the engines, tolerance and why; the rest
 * is zero. */
typedef struct dp_twins {
    const dp_backend *of[2]; /* the backend, the CPU */
    dp_engine *engines[2];
    dp_model model;
    dp_precision_kind precision;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
    dp_recompute recompute;
    double tolerance; /* relative, for near results */
    bool refused;     /* the device lacks this precision */
    dp_buf bytes;
    dp_view blobs[2][2]; /* [twin][blob of a, of F] */
    uint32_t tokens[DP_TWINS_ROWS * DP_TWINS_LENGTH + 1];
    dp_why *why;
} dp_twins;

/* Opens both engines. dp_twins_close may follow after any status. */
DP_MUST dp_status dp_twins_open(dp_twins *t, const dp_model_config *config, uint32_t device);
void dp_twins_close(dp_twins *t);

/* DP_OK if both engines hold the same bits. */
DP_MUST dp_status dp_twins_same(const dp_twins *t, dp_vector vector, const char *after);
/* The same of every vector. */
DP_MUST dp_status dp_twins_same_all(const dp_twins *t, const char *after);
/* DP_OK if values[0], of the backend, is within the tolerance of values[1], of the CPU. */
DP_MUST dp_status dp_twins_near(const dp_twins *t, const char *what, const double values[2]);
/* DP_UNSUPPORTED with the two numbers. */
DP_MUST dp_status dp_twins_differ(const dp_twins *t, const char *what, double got, double wanted);
/* The status of a call, with a sentence in why if it failed. */
DP_MUST dp_status dp_twins_told(const dp_twins *t, int twin, const char *call, dp_status status);

/* DP_TWINS_DO(t, copy, to, from): makes the same call on both engines. */
#define DP_TWINS_DO(t, call, ...)                                                                  \
    do {                                                                                           \
        for (int twin_ = 0; twin_ < 2; twin_++) {                                                  \
            DP_TRY(dp_twins_told((t), twin_, #call,                                                \
                                 (t)->of[twin_]->call((t)->engines[twin_], __VA_ARGS__)));         \
        }                                                                                          \
    } while (0)

/* ---- backend_check_apply.c */

/* Makes the same outer step on both engines and compares theta and m. */
DP_MUST dp_status dp_twins_apply(dp_twins *t, const dp_consensus_items *items,
                                 const dp_outer *outer);
/* The same with the first and the last of three parts of a blob, and nothing of the middle one.
 * Also DP_NOMEM. */
DP_MUST dp_status dp_twins_apply_parts(dp_twins *t, dp_view blob, const dp_outer *outer);

/* ---- backend_check_rounds.c */

/* Two publications, an outer step and a pairwise average with every codec. Both engines must hold
 * the same theta and feedback before. */
DP_MUST dp_status dp_twins_check_rounds(dp_twins *t);

/* ---- backend_check_optim.c */

/* Tests every optimizer and weight format that the backend claims, in fp32 if it has that. Statuses
 * as dp_backend_check. */
DP_MUST dp_status dp_backend_check_optimizers(const dp_backend *backend, uint32_t device,
                                              const dp_backend_told *told, dp_why *why);

#endif
