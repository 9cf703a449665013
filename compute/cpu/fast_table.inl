/* All kernels of one instruction set. The including file has set DP_LANES, DP_PANEL, DP_GROUP and
 * the target, and DP_BF16_PAIRS or DP_BF16_TILES if its products are those of bf16. */

/* Of a column that a float of a packed panel holds. */
#if defined(DP_BF16_PAIRS) || defined(DP_BF16_TILES)
#define DP_TERMS 2
#else
#define DP_TERMS 1
#endif

#include "compute/cpu/simd.h"

#include "compute/cpu/fast_activation.inl"
#include "compute/cpu/fast_tile.inl"
#if defined(DP_BF16_TILES)
#include "compute/cpu/fast_gemm_amx.inl"
#elif defined(DP_BF16_PAIRS)
#include "compute/cpu/fast_gemm_bf16.inl"
#else
#include "compute/cpu/fast_gemm.inl"
#include "compute/cpu/fast_rounded.inl"
#endif
#include "compute/cpu/fast_point.inl"
#include "compute/cpu/fast_rms.inl"
#include "compute/cpu/fast_rope.inl"
#include "compute/cpu/fast_softmax.inl"

#include "compute/cpu/fast_norm.inl"

#include "compute/cpu/fast_classifier.inl"

#include "compute/cpu/fast_attention.inl"

_Static_assert(DP_PANEL <= DP_OPS_PANEL_MAX && DP_PANEL % DP_LANES == 0,
               "panels are whole vectors");
#if !defined(DP_BF16_TILES)
#define DP_GRADIENT_ROWS DP_OPS_TILE
#define DP_GRADIENT_SCRATCH DP_OPS_TILE_SCRATCH
_Static_assert((DP_OPS_TILE + DP_GROUP - 1) / DP_GROUP * DP_GROUP <= DP_OPS_TILE_ROOM,
               "tiles fit their room");
_Static_assert(2 * DP_OPS_TILE_ROOM * DP_OPS_DEPTH <= DP_OPS_TILE_SCRATCH,
               "tiles fit their scratch");
#endif

/* suffix: of the products' names, empty or that of a precision. */
#define DP_FAST_TABLE(table_name, table_precision, suffix)                                         \
    {                                                                                              \
        .name = (table_name), .precision = (table_precision), .panel = DP_PANEL,                   \
        .terms = DP_TERMS, .tile_rows = DP_GRADIENT_ROWS, .tile_scratch = DP_GRADIENT_SCRATCH,     \
        .pack = fast_pack##suffix, .gemm = fast_gemm##suffix, .gemm_tn = fast_gemm_tn##suffix,     \
        .norm_forward = fast_norm_forward, .norm_again = fast_norm_again,                          \
        .norm_backward = fast_norm_backward, .norm_grads = fast_norm_grads,                        \
        .rms_forward = fast_rms_forward, .rms_again = fast_rms_again,                              \
        .rms_backward = fast_rms_backward, .rms_grads = fast_rms_grads, .rope = fast_rope,         \
        .attention_forward = fast_attention_forward,                                               \
        .attention_backward = fast_attention_backward,                                             \
        .activations =                                                                             \
            {                                                                                      \
                [DP_GELU] = {1, fast_gelu_forward, fast_gelu_backward},                            \
                [DP_RELU2] = {1, fast_relu2_forward, fast_relu2_backward},                         \
                [DP_SWIGLU] = {2, fast_swiglu_forward, fast_swiglu_backward},                      \
                [DP_GELU_ERF] = {1, fast_gelu_erf_forward, fast_gelu_erf_backward},                \
                [DP_GEGLU] = {2, fast_geglu_forward, fast_geglu_backward},                         \
            },                                                                                     \
        .classifier = fast_classifier, .softcap = fast_softcap, .add_columns = fast_add_columns,   \
        .add = fast_add, .adamw = fast_adamw, .sum_of_squares = fast_sum_of_squares,               \
    }
