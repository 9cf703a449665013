/* Products of rounded inputs without special instructions: bf16 or fp16 values as fp32, and the
 * products of fast_gemm.inl. At best as fast as fp32; the point of these tables is the same
 * arithmetic on every machine. */

typedef uint32_t dp_uvec __attribute__((vector_size(DP_LANES * 4)));

/* Rows of a that are rounded together; whole groups for every table. */
#define DP_ROUND_ROWS 48

DP_INLINE dp_vec round_bf16(dp_vec x)
{
    const dp_uvec bits = (dp_uvec)x;
    const dp_uvec rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
    const dp_uvec special = (dp_uvec)((bits & 0x7f800000U) == 0x7f800000U);
    return (dp_vec)((rounded & ~special) | (bits & special));
}

/* As dp_round_fp16, where the reasons stand. */
DP_INLINE dp_vec round_fp16(dp_vec x)
{
    const dp_uvec bits = (dp_uvec)x;
    const dp_uvec sign = bits & 0x80000000U;
    const dp_uvec size = bits & 0x7fffffffU;
    dp_uvec rounded = (size + 0xfffU + ((size >> 13) & 1U)) & ~0x1fffU;
    const dp_uvec over = (dp_uvec)(rounded > 0x477fe000U);
    rounded = (rounded & ~over) | (over & 0x7f800000U);
    const dp_uvec small = (dp_uvec)(size < 0x38800000U);
    const dp_uvec fine = (dp_uvec)(((dp_vec)(size & small) + dp_vec_set(0.5F)) - dp_vec_set(0.5F));
    rounded = (rounded & ~small) | (fine & small);
    const dp_uvec special = (dp_uvec)(size >= 0x7f800000U);
    return (dp_vec)((rounded & ~special) | (size & special) | sign);
}

DP_INLINE dp_vec round_to(dp_precision precision, dp_vec x)
{
    return precision == DP_BF16 ? round_bf16(x) : round_fp16(x);
}

DP_INLINE void round_floats(dp_precision precision, const float *x, float *y, size_t n)
{
    size_t i = 0;
    for (; i + DP_LANES <= n; i += DP_LANES) {
        dp_vec_store(y + i, round_to(precision, dp_vec_load(x + i)));
    }
    if (i < n) {
        dp_vec_store_some(y + i, round_to(precision, dp_vec_load_some(x + i, n - i, 0.0F)), n - i);
    }
}

/* The part of a product with terms [depth, depth + DP_OPS_DEPTH), DP_ROUND_ROWS rows from row
 * on. */
DP_INLINE void gemm_rounded_block(dp_precision precision, const dp_gemm *g, size_t row,
                                  size_t depth)
{
    const size_t rows = least_of(g->m - row, DP_ROUND_ROWS);
    const size_t k = least_of(g->k - depth, DP_OPS_DEPTH);
    const bool deep = g->a_depth != 1; /* Then rows stand beside each other. */
    const float *a = g->a + row * g->a_row + depth * g->a_depth;
    float some[DP_ROUND_ROWS * DP_OPS_DEPTH];
    for (size_t i = 0; i < (deep ? k : rows); i++) {
        round_floats(precision, a + i * (deep ? g->a_depth : g->a_row),
                     some + i * (deep ? DP_ROUND_ROWS : DP_OPS_DEPTH), deep ? rows : k);
    }
    dp_gemm part = *g;
    part.m = rows;
    part.k = k;
    part.a = some;
    part.a_row = deep ? 1 : DP_OPS_DEPTH;
    part.a_depth = deep ? DP_ROUND_ROWS : 1;
    part.packed_depth = g->packed_depth == 0 ? g->k : g->packed_depth;
    part.packed = g->packed + depth * DP_PANEL;
    part.c = g->c + row * g->ldc;
    if (depth > 0) {
        part.add = part.c;
        part.ld_add = part.ldc;
        part.bias = NULL;
    } else if (g->add != NULL) {
        part.add = g->add + row * g->ld_add;
    }
    fast_gemm(&part);
}

DP_INLINE void gemm_rounded(dp_precision precision, const dp_gemm *g)
{
    for (size_t row = 0; row < g->m; row += DP_ROUND_ROWS) {
        for (size_t depth = 0; depth < g->k; depth += DP_OPS_DEPTH) {
            gemm_rounded_block(precision, g, row, depth);
        }
    }
}

DP_INLINE void pack_rounded(dp_precision precision, size_t k, size_t n, float *packed)
{
    const size_t floats = (n + DP_PANEL - 1) / DP_PANEL * DP_PANEL * k;
    round_floats(precision, packed, packed, floats);
}

static void fast_pack_bf16(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                           float *packed)
{
    fast_pack(b, ld, transposed, k, n, packed);
    pack_rounded(DP_BF16, k, n, packed);
}

static void fast_pack_fp16(const float *b, size_t ld, bool transposed, size_t k, size_t n,
                           float *packed)
{
    fast_pack(b, ld, transposed, k, n, packed);
    pack_rounded(DP_FP16, k, n, packed);
}

static void fast_gemm_bf16(const dp_gemm *g)
{
    gemm_rounded(DP_BF16, g);
}

static void fast_gemm_fp16(const dp_gemm *g)
{
    gemm_rounded(DP_FP16, g);
}

/* Between packing a tile's operands and multiplying them. */
static void round_tile_bf16(float *packed, size_t n)
{
    round_floats(DP_BF16, packed, packed, n);
}

static void round_tile_fp16(float *packed, size_t n)
{
    round_floats(DP_FP16, packed, packed, n);
}

static void fast_gemm_tn_bf16(const dp_gemm_tn *g)
{
    gemm_tn_with(g, round_tile_bf16);
}

static void fast_gemm_tn_fp16(const dp_gemm_tn *g)
{
    gemm_tn_with(g, round_tile_fp16);
}
