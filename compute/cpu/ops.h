/* The operations of the engine on ranges of rows, as a table per instruction set; no threads, no
 * memory, no model.
 *
 * dp_ops_reference() is the reference: plain loops. dp_ops_best() does the same in vectors of this
 * machine. All matrices are row-major fp32, pointers do not overlap unless noted, "ld" is the
 * distance of rows in elements. The order of a sum depends only on the shape of the whole
 * operation, so that callers may divide rows and columns among threads in any way and get the same
 * bits. */
#ifndef DP_COMPUTE_CPU_OPS_H
#define DP_COMPUTE_CPU_OPS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/run/model_config.h"
#include "base/run/token_marks.h"
#include "compute/cpu/precision.h"

enum {
    DP_OPS_TILE = 128,      /* columns of a weight gradient that are packed at a time */
    DP_OPS_DEPTH = 256,     /* terms of a product that are summed before the sum goes to memory */
    DP_OPS_TILE_ROOM = 144, /* a tile's rows or columns rounded up to whole groups or panels */
    DP_OPS_TILE_SCRATCH = 2 * 144 * 256,
    DP_OPS_QUERY_ROWS = 48, /* queries that attention treats together */
    DP_OPS_PANEL_MAX = 64,  /* most columns of a packed panel */
    DP_OPS_TABLES_MAX = 7   /* of a precision, and one that is NULL */
};

/* c = a * b (+ add) (+ bias in each row). */
typedef struct dp_gemm {
    size_t m;
    size_t n;
    size_t k;
    const float *a; /* element (row, depth) at a[row * a_row + depth * a_depth] */
    size_t a_row;
    size_t a_depth; /* a_row or a_depth is 1 */
    /* a is a panel that pack() made, whose columns are the rows: m at most panel, a_row 1, a_depth
     * panel. Depths are those of the panel, of so many terms. */
    bool a_packed;
    const float *packed; /* b [k][n] from pack() */
    size_t packed_depth; /* the k that pack() was given, if more than k; 0: k */
    float *c;            /* [m][n] */
    size_t ldc;
    const float *add; /* [m][n] or NULL; may be c */
    size_t ld_add;
    const float *bias; /* [n] or NULL */
    /* First column, below n; after the last comes column 0. For speed only: threads with the same b
     * then read different parts of it at a time. */
    size_t begin;
} dp_gemm;

/* c += a' * b, or with fresh c = 0 + a' * b: rows of a weight's gradient. */
typedef struct dp_gemm_tn {
    size_t m; /* at most the table's tile_rows */
    size_t n; /* any; a is brought together once for all */
    size_t k;
    const float *a; /* [k][m] */
    size_t lda;
    const float *b; /* [k][n] */
    size_t ldb;
    float *c; /* [m][n] */
    size_t ldc;
    bool fresh; /* c is not read; the same bits as if it held 0 */
    /* c is not used again soon. For speed only: a fresh one may be written past the caches. */
    bool cold;
    float *scratch; /* the table's tile_scratch floats, 64-byte aligned */
} dp_gemm_tn;

/* LayerNorm of rows (Ba, Kiros, Hinton 2016), eps 1e-5. */
typedef struct dp_norm_rows {
    size_t rows;
    size_t width;
    const float *x;    /* [rows][width] */
    const float *gain; /* [width] */
    float *mean;       /* [rows], written by norm_forward, read by the others */
    float *rstd;       /* [rows], the same */
} dp_norm_rows;

/* RMSNorm (Zhang, Sennrich 2019) of rows, or of the heads of q or k: y = x * rstd * gain, rstd =
 * 1/sqrt(mean(x^2) + eps). */
typedef struct dp_rms_rows {
    size_t rows;
    size_t groups; /* of a row, side by side, each normed by itself; 1: the row */
    size_t width;  /* of a group */
    float eps;
    const float *x;    /* [rows][groups][width] at ld */
    size_t ld;         /* >= groups * width */
    const float *gain; /* [width] */
    float *rstd;       /* [rows][groups], written by rms_forward, read by the others */
} dp_rms_rows;

/* Rotary positions (Su et al. 2021) of the heads of q or k, in halves as Hugging Face has them:
 * element i < width/2 turns with element i + width/2 by position * theta^(-2i/width). */
typedef struct dp_rope_rows {
    size_t rows;
    size_t groups; /* heads side by side */
    size_t width;  /* of a head, even */
    float *x;      /* [rows][groups][width] at ld, in place */
    size_t ld;
    const float *angles; /* [length][width] from dp_rope_angles */
    size_t first;        /* row r has position (first + r) % length, unless ... */
    size_t length;
    const uint32_t *positions; /* ... they stand here: [rows], each below length; or NULL */
} dp_rope_rows;

/* The query heads of one sequence that share a head of k and v (Ainslie et al. 2023; one of each:
 * plain attention): causal softmax attention. */
typedef struct dp_attention {
    size_t length; /* keys and values */
    /* forward only, below length: keys before the first query. q, out and lse hold the queries of
     * positions past .. length - 1 alone */
    size_t past;
    size_t head;   /* width of a head */
    size_t groups; /* query heads, side by side in q, out, d_out and dq; 0: 1 */
    size_t window; /* a query sees so many tokens, its own the last (Beltagy et al. 2020); 0: all */
    const uint32_t *positions; /* [length] in its document, which a query sees; NULL: one for all */
    float scale;               /* of the scores; 0: 1/sqrt(head) */
    float cap;                 /* scores s become cap * tanh(s / cap) (Gemma Team 2024); 0: none */
    const float *q;            /* [length - past][groups][head] */
    const float *k;            /* [length][head] */
    const float *v;            /* the same */
    size_t ld_qkv;             /* of v, dq, dk and dv, and of q and k unless ld_qk says otherwise */
    size_t ld_qk;              /* 0: ld_qkv */
    size_t ld_q;               /* of q, forward only; 0: as k */
    /* [length - past][groups][head], written by forward, read by backward */
    float *out;
    size_t ld_out;
    /* [groups][length - past]: log of the sum of exp of a row's scores; written by forward */
    float *lse;
    const float *d_out; /* backward: as out */
    float *dq;          /* backward, written. dk and dv are sums over the query heads in order */
    float *dk;
    float *dv;
    float *scratch; /* dp_attention_scratch() floats, 64-byte aligned */
} dp_attention;

/* The first token that a query sees. */
static inline size_t dp_attention_first(const dp_attention *a, size_t query)
{
    const size_t first = a->window == 0 || query < a->window ? 0 : query + 1 - a->window;
    const size_t begin = a->positions == NULL ? 0 : query - a->positions[query];
    return first > begin ? first : begin;
}

static inline double dp_attention_scale(const dp_attention *a)
{
    return a->scale != 0.0F ? (double)a->scale : 1.0 / sqrt((double)a->head);
}

/* Softmax cross-entropy of rows of logits against their targets. */
typedef struct dp_classifier {
    float *logits;           /* [rows][vocab] */
    const uint32_t *targets; /* [rows], each < vocab; DP_TOKEN_NO_LOSS: loss and gradient are 0 */
    size_t rows;
    size_t vocab;
    /* c > 0: of c * tanh(logit / c) instead of the logit (Gemma Team 2024); 0: none */
    float softcap;
    float scale;   /* 0: the logits are overwritten; else they become scale * d(loss)/d(logits) */
    float *losses; /* [rows], nats */
} dp_classifier;

typedef struct dp_adamw_terms {
    float lr; /* already divided by 1 - beta1^t */
    float beta1;
    float beta2;
    float eps;
    float lr_decay;   /* lr * decay */
    float v_scale;    /* 1 / (1 - beta2^t) */
    float grad_scale; /* clipping */
} dp_adamw_terms;

typedef enum dp_activation_kind {
    DP_GELU,   /* x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) (Hendrycks, Gimpel 2016) */
    DP_RELU2,  /* max(x, 0)^2 (So et al. 2021) */
    DP_SWIGLU, /* gate * sigmoid(gate) * up (Shazeer 2020); a row of x is its gates, then its ups */
    DP_GELU_ERF, /* x/2 * (1 + erf(x/sqrt(2))) (Hendrycks, Gimpel 2016) */
    DP_GEGLU,    /* GELU(gate) * up (Shazeer 2020); x as that of SwiGLU */
    DP_ACTIVATION_KINDS
} dp_activation_kind;

typedef struct dp_activation {
    size_t inputs; /* values of x for each value of y */
    /* x: [rows][inputs * width], y: [rows][width]. */
    void (*forward)(const float *x, size_t rows, size_t width, float *y);
    /* y as forward. d: [rows][inputs * width]; the first width values of each row are dy on entry,
     * all are dx after. */
    void (*backward)(const float *x, size_t rows, size_t width, float *y, float *d);
} dp_activation;

typedef struct dp_ops {
    /* "reference", "generic", "avx2", "avx512", and these with "-bf16" or "-fp16"; "avx512bf16",
     * "amx" */
    const char *name;
    /* Precision of the inputs of gemm and gemm_tn, which are rounded to it (b when it is packed);
     * products and sums are fp32. A table may also round the inputs of products in attention (q, k,
     * v, probabilities, gradients), and take bf16 below 2^-126 as 0. */
    dp_precision precision;
    size_t terms;        /* elements of a column in one float of a packed panel */
    size_t panel;        /* columns of a packed panel */
    size_t tile_rows;    /* most rows of a weight gradient that gemm_tn takes at a time */
    size_t tile_scratch; /* floats that it needs */

    /* packed: dp_packed_floats(ops, k, n). b is [k][n], or [n][k] if transposed, at ld. */
    void (*pack)(const float *b, size_t ld, bool transposed, size_t k, size_t n, float *packed);
    void (*gemm)(const dp_gemm *gemm);
    void (*gemm_tn)(const dp_gemm_tn *gemm);

    void (*norm_forward)(const dp_norm_rows *norm, const float *bias, float *y);
    /* y again from the kept mean and rstd: the same bits as norm_forward gave. */
    void (*norm_again)(const dp_norm_rows *norm, const float *bias, float *y);
    /* dx = residual + d(loss)/dx for dy [rows][width]. dx may be residual. */
    void (*norm_backward)(const dp_norm_rows *norm, const float *dy, const float *residual,
                          float *dx);
    /* d_gain += , d_bias += over all rows, columns [first, last) only. */
    void (*norm_grads)(const dp_norm_rows *norm, const float *dy, size_t first, size_t last,
                       float *d_gain, float *d_bias);

    void (*rms_forward)(const dp_rms_rows *norm, float *y, size_t ld_y);
    /* y again from the kept rstd: the same bits. */
    void (*rms_again)(const dp_rms_rows *norm, float *y, size_t ld_y);
    /* dx = residual + d(loss)/dx, all three [rows][groups][width] at ld_d. residual may be NULL; dx
     * may be residual or dy. */
    void (*rms_backward)(const dp_rms_rows *norm, const float *dy, const float *residual, float *dx,
                         size_t ld_d);
    /* d_gain += over all rows and groups, columns [first, last) of a group only. */
    void (*rms_grads)(const dp_rms_rows *norm, const float *dy, size_t ld_dy, size_t first,
                      size_t last, float *d_gain);

    /* back: by the negative angles, which is the gradient. */
    void (*rope)(const dp_rope_rows *rope, bool back);

    void (*attention_forward)(const dp_attention *attention);
    void (*attention_backward)(const dp_attention *attention);

    dp_activation activations[DP_ACTIVATION_KINDS];

    void (*classifier)(const dp_classifier *classifier);
    /* x = cap * tanh(x / cap), cap > 0. */
    void (*softcap)(float *x, size_t n, float cap);

    /* sum[j] += sum over rows of x[row][j], j in [first, last). */
    void (*add_columns)(const float *x, size_t ld, size_t rows, size_t first, size_t last,
                        float *sum);
    void (*add)(const float *x, float *y, size_t n); /* y += x */
    void (*adamw)(const dp_adamw_terms *terms, float *params, float *m, float *v,
                  const float *grads, size_t n);
    double (*sum_of_squares)(const float *x, size_t n);
} dp_ops;

static inline size_t dp_packed_floats(const dp_ops *ops, size_t k, size_t n)
{
    return (n + ops->panel - 1) / ops->panel * ops->panel * ((k + ops->terms - 1) / ops->terms);
}

/* Floats of scratch for one head of a sequence of this length, for every table. */
static inline size_t dp_attention_scratch(size_t length, size_t head)
{
    const size_t padded_length = length + DP_OPS_PANEL_MAX;
    const size_t padded_head = head + DP_OPS_PANEL_MAX;
    return 2 * padded_length * padded_head + padded_length * padded_head +
           (size_t)2 * DP_OPS_QUERY_ROWS * (padded_length + 16) +
           (size_t)2 * DP_OPS_QUERY_ROWS * padded_head + (size_t)2 * DP_OPS_QUERY_ROWS;
}

/* The turns of rotary positions: pair i of a head turns by theta^(-2i/turned) from one position to
 * the next, pairs beyond turned/2 not at all, stretched by scaling (base/run/model_config.h). */
typedef struct dp_rope_turns {
    double theta;
    size_t width;  /* of a head */
    size_t turned; /* of its channels; 0: all */
    dp_rope_scaling scaling;
    double factor;
    double low;
    double high;
    double context;
} dp_rope_turns;

/* The turn of a pair, in radians per position. */
double dp_rope_turn(const dp_rope_turns *turns, size_t pair);
/* For every position < length: the cosines of its width/2 angles, then their sines. Computed in
 * double. */
void dp_rope_angles(const dp_rope_turns *turns, size_t length, float *angles);

const dp_ops *dp_ops_reference(void);
/* The fastest fp32 table of this processor. */
const dp_ops *dp_ops_best(void);
/* The fastest of a precision; the same in every process on a kind of processor. Any thread. */
const dp_ops *dp_ops_best_in(dp_precision precision);
/* True if the processor has instructions for bf16 that are faster than those for fp32. */
bool dp_ops_has_fast_bf16(void);
/* Every fp32 table of this build that this processor can run, the reference first, then from the
 * one that is slowest on most processors; NULL beyond the last. */
const dp_ops *dp_ops_at(size_t index);
/* The same of a precision; the first is the reference. */
const dp_ops *dp_ops_at_in(dp_precision precision, size_t index);

#endif
