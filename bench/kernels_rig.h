/* Shared by the parts of bench_kernels: a card with tensors of a step's shapes on it, the time of
 * one launch, and a line of the result. */
#ifndef DP_BENCH_KERNELS_RIG_H
#define DP_BENCH_KERNELS_RIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/cuda/attention.h"
#include "compute/cuda/device.h"

enum { RIG_VOCAB = 50257, RIG_PADDED = 50304 };

/* Pieces of the card's memory; kernels use the same piece for different tensors. */
typedef enum rig_slot {
    RIG_X,
    RIG_Y,
    RIG_DY,
    RIG_DX,
    RIG_WIDE,
    RIG_D_WIDE,
    RIG_QKV,
    RIG_D_QKV,
    RIG_LOGITS,
    RIG_TABLE,
    RIG_GAIN,
    RIG_GAINS,
    RIG_STATS,
    RIG_LSE,
    RIG_SCRATCH,
    RIG_TOKENS,
    RIG_PIECES,
    RIG_TERMS,
    RIG_NEWS,
    RIG_SLOTS
} rig_slot;

typedef struct rig {
    dp_cuda_device device;
    size_t rows;
    size_t length;
    size_t tokens;
    size_t width;
    size_t heads;
    size_t head;    /* width of one, for attention and rotations */
    size_t chunk;   /* rows of logits */
    size_t words;   /* different ones among the tokens */
    size_t repeats; /* timed launches of each kernel, at most RIG_REPEATS_MAX */
    dp_cuda_attention_path path;
    dp_codec codec; /* of an encoding */
    bool json;
    const char *only;
    void *at[RIG_SLOTS];
    size_t bytes[RIG_SLOTS];
    double copy; /* bytes a second, read and written */
} rig;

enum { RIG_REPEATS_MAX = 99 };

typedef dp_status (*rig_launch)(const rig *r, cudaStream_t stream);

/* A kernel of a step. */
typedef struct rig_kernel {
    const char *name;
    rig_launch run;
    double narrow; /* halves per token and channel that must be read or written */
    double flops;  /* products of length^2 / 2 * head, times 2, for each head and row */
    size_t head;   /* 0: 64 */
    bool logits;   /* a chunk of them is read and written instead */
    double words;  /* floats for each channel of every different word */
    double places; /* and of every position */
    double wide;   /* floats for each parameter */
} rig_kernel;

static inline float *rig_floats(const rig *r, rig_slot s)
{
    return r->at[s];
}

/* Vectors of parameters: as long as qkv. */
static inline size_t rig_parameters(const rig *r)
{
    return r->tokens * r->width * 3 / 2;
}

/* ---- bench_kernels.c */

/* False if --only gives another name. */
bool rig_wants(const rig *r, const char *name);
/* Median milliseconds of one launch. */
dp_status rig_time(rig *r, rig_launch run, float *ms);
/* flops 0: none are counted. */
void rig_print(const rig *r, const char *name, double ms, double bytes, double flops);
dp_status rig_put(rig *r, rig_slot s, const void *from, size_t bytes);
dp_status rig_get(rig *r, rig_slot s, void *to, size_t bytes);
/* Random halves near 1; read as floats they are near 1 too, by their high half. */
dp_status rig_fill(rig *r, rig_slot s, dp_rng *rng);

/* ---- kernels_step.c */

#define RIG_EMBED_TABLE "embed back, table alone"
#define RIG_EMBED_ATOMIC "embed back, by atomics"
#define RIG_ATTENTION_BACK "attention 64 back"

const rig_kernel *rig_step_kernels(size_t *count);
/* The largest scratch, in bytes, of these kernels. */
size_t rig_step_scratch(const rig *r);

/* ---- kernels_rounds.c */

/* Encodings by every codec, then the operations of a round on a blob. */
dp_status rig_run_rounds(rig *r);

#endif
