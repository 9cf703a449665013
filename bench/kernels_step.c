/* The kernels of a step, one launch each. */
#include "bench/kernels_atomic.h"
#include "bench/kernels_rig.h"
#include "compute/cuda/act.h"
#include "compute/cuda/columns.h"
#include "compute/cuda/embed.h"
#include "compute/cuda/head.h"
#include "compute/cuda/norm.h"
#include "compute/cuda/optim.h"
#include "compute/cuda/rope.h"
#include "compute/cuda/vectors.h"
#include "compute/model/optim.h"

static dp_cuda_norm norm_of(const rig *r, bool rms)
{
    return (dp_cuda_norm){.rows = r->tokens,
                          .width = r->width,
                          .rms = rms,
                          .eps = 1e-5F,
                          .stream = DP_BF16,
                          .type = DP_BF16,
                          .x = r->at[RIG_X],
                          .gain = rig_floats(r, RIG_GAIN),
                          .bias = rms ? NULL : rig_floats(r, RIG_GAIN),
                          .mean = rig_floats(r, RIG_STATS),
                          .rstd = rig_floats(r, RIG_STATS) + r->tokens};
}

static dp_status layer_norm(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, false);
    return dp_cuda_norm_forward(&norm, NULL, NULL, r->at[RIG_Y], stream);
}

static dp_status add_layer_norm(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, false);
    return dp_cuda_norm_forward(&norm, r->at[RIG_DY], r->at[RIG_DX], r->at[RIG_Y], stream);
}

static dp_status rms_norm(const rig *r, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, true);
    return dp_cuda_norm_forward(&norm, NULL, NULL, r->at[RIG_Y], stream);
}

static dp_status norm_back(const rig *r, float *d_sum, cudaStream_t stream)
{
    const dp_cuda_norm norm = norm_of(r, false);
    return dp_cuda_norm_backward(&norm, r->at[RIG_DY], r->at[RIG_DX], r->at[RIG_DX],
                                 rig_floats(r, RIG_GAINS), rig_floats(r, RIG_GAINS) + r->width,
                                 d_sum, rig_floats(r, RIG_SCRATCH), stream);
}

static dp_status layer_norm_back(const rig *r, cudaStream_t stream)
{
    return norm_back(r, NULL, stream);
}

/* With the gradient of the bias of the product before it. */
static dp_status layer_norm_bias_back(const rig *r, cudaStream_t stream)
{
    return norm_back(r, rig_floats(r, RIG_GAINS) + 2 * r->width, stream);
}

static dp_cuda_activation act_of(const rig *r, dp_activation_kind kind)
{
    return (dp_cuda_activation){kind, DP_BF16, r->tokens, (kind == DP_SWIGLU ? 2 : 4) * r->width,
                                r->at[RIG_WIDE]};
}

static dp_status gelu(const rig *r, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, DP_GELU);
    return dp_cuda_activation_forward(&act, r->at[RIG_D_WIDE], stream);
}

static dp_status act_back(const rig *r, dp_activation_kind kind, float *d_bias, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, kind);
    return dp_cuda_activation_backward(&act, r->at[RIG_D_WIDE], 4 * r->width, r->at[RIG_D_WIDE],
                                       NULL, d_bias, rig_floats(r, RIG_SCRATCH), stream);
}

static dp_status gelu_back(const rig *r, cudaStream_t stream)
{
    return act_back(r, DP_GELU, NULL, stream);
}

static dp_status gelu_bias_back(const rig *r, cudaStream_t stream)
{
    return act_back(r, DP_GELU, rig_floats(r, RIG_GAINS), stream);
}

static dp_status swiglu(const rig *r, cudaStream_t stream)
{
    const dp_cuda_activation act = act_of(r, DP_SWIGLU);
    return dp_cuda_activation_forward(&act, r->at[RIG_D_WIDE], stream);
}

static dp_status swiglu_back(const rig *r, cudaStream_t stream)
{
    return act_back(r, DP_SWIGLU, NULL, stream);
}

/* Of q, k and v together: the only bias that no other kernel sums. */
static dp_status bias_grad(const rig *r, cudaStream_t stream)
{
    return dp_cuda_add_columns(r->at[RIG_D_QKV], DP_BF16, r->tokens, 3 * r->width, 3 * r->width,
                               rig_floats(r, RIG_GAINS), rig_floats(r, RIG_SCRATCH), stream);
}

static dp_cuda_rope rope_of(const rig *r, bool norms)
{
    return (dp_cuda_rope){.rows = r->tokens,
                          .length = r->length,
                          .heads = r->heads,
                          .kv_heads = r->heads,
                          .head = r->head,
                          .type = DP_BF16,
                          /* any numbers */
                          .angles = rig_floats(r, RIG_TABLE),
                          .q_gain = norms ? rig_floats(r, RIG_GAIN) : NULL,
                          .k_gain = norms ? rig_floats(r, RIG_GAIN) : NULL,
                          .eps = 1e-6F,
                          .q_rstd = rig_floats(r, RIG_STATS),
                          .k_rstd = rig_floats(r, RIG_STATS) + r->tokens * r->heads,
                          .x = r->at[RIG_QKV],
                          .ld = 3 * r->width};
}

static dp_status rope(const rig *r, cudaStream_t stream)
{
    const dp_cuda_rope turn = rope_of(r, false);
    return dp_cuda_rope_forward(&turn, r->at[RIG_D_QKV], 3 * r->width, stream);
}

static dp_status qk_rope(const rig *r, cudaStream_t stream)
{
    const dp_cuda_rope turn = rope_of(r, true);
    return dp_cuda_rope_forward(&turn, r->at[RIG_D_QKV], 3 * r->width, stream);
}

static dp_status qk_rope_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_rope turn = rope_of(r, true);
    return dp_cuda_rope_backward(&turn, r->at[RIG_D_QKV], 3 * r->width, rig_floats(r, RIG_GAINS),
                                 rig_floats(r, RIG_GAINS) + r->head, rig_floats(r, RIG_SCRATCH),
                                 stream);
}

static dp_cuda_attention attention_of(const rig *r)
{
    char *const qkv = r->at[RIG_QKV];
    return (dp_cuda_attention){.type = DP_BF16,
                               .rows = r->rows,
                               .length = r->length,
                               .heads = r->heads,
                               .kv_heads = r->heads,
                               .head = r->head,
                               .q = qkv,
                               .k = qkv + 2 * r->width,
                               .ld_qk = 3 * r->width,
                               .v = qkv + 4 * r->width,
                               .ld_v = 3 * r->width,
                               .out = r->at[RIG_Y],
                               .ld_out = r->width,
                               .lse = rig_floats(r, RIG_LSE),
                               .path = r->path};
}

static dp_status attention(const rig *r, cudaStream_t stream)
{
    const dp_cuda_attention a = attention_of(r);
    return dp_cuda_attention_forward(&a, stream);
}

static dp_status attention_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_attention a = attention_of(r);
    char *const d = r->at[RIG_D_QKV];
    const dp_cuda_attention_grads g = {.d_out = r->at[RIG_DY],
                                       .dq = d,
                                       .dk = d + 2 * r->width,
                                       .dv = d + 4 * r->width,
                                       .ld_d = 3 * r->width,
                                       .scratch = rig_floats(r, RIG_SCRATCH)};
    return dp_cuda_attention_backward(&a, &g, stream);
}

static dp_status classify(const rig *r, cudaStream_t stream)
{
    const dp_cuda_classifier c = {.type = DP_BF16,
                                  .logits = r->at[RIG_LOGITS],
                                  .targets = r->at[RIG_TOKENS],
                                  .rows = r->chunk,
                                  .vocab = RIG_VOCAB,
                                  .ld = RIG_PADDED,
                                  .scale = 1.0F,
                                  .losses = rig_floats(r, RIG_STATS)};
    return dp_cuda_classify(&c, stream);
}

static dp_cuda_embed embed_of(const rig *r)
{
    return (dp_cuda_embed){r->at[RIG_TOKENS], r->rows, r->length, RIG_VOCAB, r->width, DP_BF16};
}

static dp_status embed(const rig *r, cudaStream_t stream)
{
    const dp_cuda_embed e = embed_of(r);
    return dp_cuda_embed_forward(&e, rig_floats(r, RIG_TABLE), rig_floats(r, RIG_TABLE),
                                 r->at[RIG_X], stream);
}

static dp_status embed_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_embed e = embed_of(r);
    return dp_cuda_embed_backward(&e, r->at[RIG_DX], rig_floats(r, RIG_TABLE),
                                  rig_floats(r, RIG_TABLE), r->at[RIG_SCRATCH], stream);
}

/* Only of the table, for comparison with the version by atomics. */
static dp_status embed_table_back(const rig *r, cudaStream_t stream)
{
    const dp_cuda_embed e = embed_of(r);
    return dp_cuda_embed_backward(&e, r->at[RIG_DX], rig_floats(r, RIG_TABLE), NULL,
                                  r->at[RIG_SCRATCH], stream);
}

#if defined(DP_BENCH_ATOMICS)
static dp_status embed_atomic_back(const rig *r, cudaStream_t stream)
{
    return kernels_embed_atomic(r->at[RIG_TOKENS], r->tokens, r->width, r->at[RIG_DX],
                                rig_floats(r, RIG_TABLE), stream);
}
#endif

/* ---- vectors of parameters */

static dp_status adamw(const rig *r, cudaStream_t stream)
{
    const dp_cuda_optim_terms *const terms = r->at[RIG_TERMS];
    return dp_cuda_adamw(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_WIDE), rig_floats(r, RIG_QKV),
                         rig_floats(r, RIG_D_QKV), r->at[RIG_PIECES],
                         rig_parameters(r) / DP_NORM_BLOCK, &terms->adamw, stream);
}

static size_t pieces_of(const rig *r)
{
    return rig_parameters(r) / DP_NORM_BLOCK;
}

static const dp_cuda_layer_terms *layer_terms(const rig *r)
{
    return &((const dp_cuda_optim_terms *)r->at[RIG_TERMS])->layer;
}

/* Sums stand in scratch; the rate of the only tensor is a gain. */
static dp_status lamb_look(const rig *r, cudaStream_t stream)
{
    return dp_cuda_lamb_look(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_WIDE),
                             rig_floats(r, RIG_QKV), rig_floats(r, RIG_D_QKV), r->at[RIG_PIECES],
                             pieces_of(r), layer_terms(r), r->at[RIG_SCRATCH], stream);
}

static dp_status lamb_move(const rig *r, cudaStream_t stream)
{
    return dp_cuda_lamb_move(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_WIDE),
                             rig_floats(r, RIG_QKV), r->at[RIG_PIECES], pieces_of(r),
                             layer_terms(r), rig_floats(r, RIG_GAIN), stream);
}

static dp_status lars_look(const rig *r, cudaStream_t stream)
{
    return dp_cuda_lars_look(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_QKV), r->at[RIG_PIECES],
                             pieces_of(r), r->at[RIG_SCRATCH], stream);
}

static dp_status lars_move(const rig *r, cudaStream_t stream)
{
    return dp_cuda_lars_move(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_WIDE),
                             rig_floats(r, RIG_D_QKV), r->at[RIG_PIECES], pieces_of(r),
                             layer_terms(r), rig_floats(r, RIG_GAIN), stream);
}

/* All parameters as one matrix, as wide as the output of an MLP layer. */
static dp_status muon_momentum(const rig *r, cudaStream_t stream)
{
    const dp_cuda_optim_terms *const terms = r->at[RIG_TERMS];
    const size_t columns = 4 * r->width;
    return dp_cuda_muon_momentum(rig_floats(r, RIG_D_WIDE), rig_floats(r, RIG_D_QKV), columns,
                                 rig_parameters(r) / columns, columns, &terms->muon,
                                 rig_floats(r, RIG_QKV), stream);
}

static dp_status muon_move(const rig *r, cudaStream_t stream)
{
    const dp_cuda_optim_terms *const terms = r->at[RIG_TERMS];
    const size_t columns = 4 * r->width;
    return dp_cuda_muon_move(rig_floats(r, RIG_WIDE), columns, rig_floats(r, RIG_QKV),
                             rig_parameters(r) / columns, columns, 1, 1.0, &terms->muon, stream);
}

static dp_status bf16_nearest(const rig *r, cudaStream_t stream)
{
    return dp_cuda_nearest(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_WIDE), rig_parameters(r),
                           stream);
}

/* After nearest: no master is initialized again. */
static dp_status bf16_masters(const rig *r, cudaStream_t stream)
{
    return dp_cuda_masters(rig_floats(r, RIG_D_WIDE), rig_floats(r, RIG_WIDE), rig_parameters(r),
                           stream);
}

static dp_status bf16_chance(const rig *r, cudaStream_t stream)
{
    const dp_cuda_optim_terms *const terms = r->at[RIG_TERMS];
    return dp_cuda_chance(rig_floats(r, RIG_WIDE), rig_parameters(r), 0, 7, &terms->step, stream);
}

static dp_status squares(const rig *r, cudaStream_t stream)
{
    return dp_cuda_squares(rig_floats(r, RIG_WIDE), rig_parameters(r), r->at[RIG_D_WIDE], stream);
}

static dp_status snapshot(const rig *r, cudaStream_t stream)
{
    return dp_cuda_snapshot(rig_floats(r, RIG_WIDE), rig_floats(r, RIG_D_WIDE),
                            rig_floats(r, RIG_QKV), rig_floats(r, RIG_D_QKV), rig_parameters(r),
                            r->at[RIG_SCRATCH], stream);
}

/* ---- the table. Gradients of embeddings are accumulated; AdamW reads and writes x, m and v, and
 * reads gradients; for others see their headers. */

static const rig_kernel kernels[] = {
    {"layer norm", layer_norm, 2, 0, 0, false, 0, 0, 0},
    {"add, layer norm", add_layer_norm, 4, 0, 0, false, 0, 0, 0},
    {"rms norm", rms_norm, 2, 0, 0, false, 0, 0, 0},
    {"layer norm back", layer_norm_back, 4, 0, 0, false, 0, 0, 0},
    {"layer norm, bias back", layer_norm_bias_back, 4, 0, 0, false, 0, 0, 0},
    {"gelu", gelu, 8, 0, 0, false, 0, 0, 0},
    {"gelu back", gelu_back, 12, 0, 0, false, 0, 0, 0},
    {"gelu, bias back", gelu_bias_back, 12, 0, 0, false, 0, 0, 0},
    {"swiglu", swiglu, 6, 0, 0, false, 0, 0, 0},
    {"swiglu back", swiglu_back, 10, 0, 0, false, 0, 0, 0},
    {"bias grad", bias_grad, 3, 0, 0, false, 0, 0, 0},
    {"rope", rope, 4, 0, 0, false, 0, 0, 0},
    {"q k norm, rope", qk_rope, 4, 0, 0, false, 0, 0, 0},
    {"q k norm, rope back", qk_rope_back, 6, 0, 0, false, 0, 0, 0},
    {"attention 64", attention, 4, 4, 0, false, 0, 0, 0},
    {"attention 64 back", attention_back, 8, 10, 0, false, 0, 0, 0},
    {"attention 128", attention, 4, 4, 128, false, 0, 0, 0},
    {"attention 128 back", attention_back, 8, 10, 128, false, 0, 0, 0},
    {"softmax, cross-entropy", classify, 0, 0, 0, true, 0, 0, 0},
    {"embed", embed, 1, 0, 0, false, 1, 1, 0},
    {"embed back", embed_back, 1, 0, 0, false, 2, 2, 0},
    {RIG_EMBED_TABLE, embed_table_back, 1, 0, 0, false, 2, 0, 0},
#if defined(DP_BENCH_ATOMICS)
    {RIG_EMBED_ATOMIC, embed_atomic_back, 1, 0, 0, false, 2, 0, 0},
#endif
    {"adamw", adamw, 0, 0, 0, false, 0, 0, 7},
    {"lamb look", lamb_look, 0, 0, 0, false, 0, 0, 6},
    {"lamb move", lamb_move, 0, 0, 0, false, 0, 0, 4},
    {"lars look", lars_look, 0, 0, 0, false, 0, 0, 2},
    {"lars move", lars_move, 0, 0, 0, false, 0, 0, 5},
    {"muon momentum", muon_momentum, 0, 0, 0, false, 0, 0, 4},
    {"muon move", muon_move, 0, 0, 0, false, 0, 0, 3},
    {"bf16 nearest", bf16_nearest, 0, 0, 0, false, 0, 0, 2},
    {"bf16 masters", bf16_masters, 0, 0, 0, false, 0, 0, 2},
    {"bf16 by chance", bf16_chance, 0, 0, 0, false, 0, 0, 2},
    {"squares", squares, 0, 0, 0, false, 0, 0, 1},
    {"snapshot", snapshot, 0, 0, 0, false, 0, 0, 4},
};

const rig_kernel *rig_step_kernels(size_t *count)
{
    *count = sizeof kernels / sizeof kernels[0];
    return kernels;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t rig_step_scratch(const rig *r)
{
    const size_t floats = larger(
        larger(dp_cuda_norm_scratch(r->tokens, r->width),
               dp_cuda_columns_scratch(r->tokens, 4 * r->width)),
        larger(dp_cuda_rope_scratch(128), dp_cuda_attention_scratch(r->rows, r->heads, r->length)));
    return larger(floats * sizeof(float), dp_cuda_embed_scratch(r->tokens, r->width));
}
