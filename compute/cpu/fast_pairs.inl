/* Packing of operands that are rounded to bf16: two terms of a sum, a pair, are one 32-bit word, so
 * depths go by twos and a missing second one is 0. Values below 2^-126 count as 0. */

/* Rows ahead of a pair at which those of a later one are asked for. */
#define DP_PACK_ROWS 8

/* Rows before its own that a row of a is asked for: each is on a page of its own. */
#define DP_ROWS_AHEAD 6

_Static_assert(DP_LANES == 16, "pairs are packed in vectors of sixteen");

/* x[0..n), n <= 32, rounded: pairs side by side, 0 beyond n. */
DP_INLINE __m512i round_run(const float *x, size_t n)
{
    dp_vec low;
    dp_vec high = {0};
    if (n >= 2 * DP_LANES) {
        low = dp_vec_load(x);
        high = dp_vec_load(x + DP_LANES);
    } else if (n >= DP_LANES) {
        low = dp_vec_load(x);
        high = dp_vec_load_some(x + DP_LANES, n - DP_LANES, 0.0F);
    } else {
        low = dp_vec_load_some(x, n, 0.0F);
    }
    return (__m512i)_mm512_cvtne2ps_pbh((__m512)high, (__m512)low);
}

/* Pairs of two vectors: the first in the low halves of the lanes. */
DP_INLINE __m512i round_pairs(dp_vec first, dp_vec second)
{
    const __m512i order =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
    return _mm512_permutexvar_epi16(order, both);
}

DP_INLINE dp_vec load_columns(const float *x, size_t n)
{
    return n >= DP_LANES ? dp_vec_load(x) : dp_vec_load_some(x, n, 0.0F);
}

/* Two rows of x become pairs in room for `room` columns, a multiple of 4; columns beyond n are
 * 0. */
DP_INLINE void pair_rows(const float *first, const float *second, size_t n, size_t room,
                         uint32_t *to)
{
    for (size_t j = 0; j < room; j += DP_LANES) {
        const size_t left = n > j ? n - j : 0;
        const dp_vec a = load_columns(first + (left > 0 ? j : 0), left);
        const dp_vec b =
            second == NULL ? (dp_vec){0} : load_columns(second + (left > 0 ? j : 0), left);
        const __m512i pairs = round_pairs(a, b);
        if (room - j >= DP_LANES) {
            _mm512_storeu_si512(to + j, pairs);
        } else {
            _mm512_mask_storeu_epi32(to + j, (__mmask16)((1U << (room - j)) - 1U), pairs);
        }
    }
}

/* x [k][n] at ld as [part][pair][room], a part having `room` columns, those beyond n 0. */
DP_INLINE void pack_pairs(const float *x, size_t ld, size_t k, size_t n, size_t room,
                          uint32_t *packed)
{
    const size_t pairs = (k + 1) / 2;
    for (size_t pair = 0; pair < pairs; pair++) {
        const float *first = x + 2 * pair * ld;
        const float *second = 2 * pair + 1 < k ? first + ld : NULL;
        for (size_t column = 0; column < n; column += room) {
            DP_FETCH(first + DP_PACK_ROWS * ld + column);
            DP_FETCH(first + (DP_PACK_ROWS + 1) * ld + column);
            pair_rows(first + column, second == NULL ? NULL : second + column,
                      least_of(n - column, room), room, packed + column * pairs + pair * room);
        }
    }
}

/* Sixteen columns of b [columns][k] from its pair `pair` on, at most sixteen pairs. */
DP_INLINE void pack_square(const float *b, size_t ld, size_t k, size_t columns, size_t pair,
                           float *panel)
{
    const size_t pairs = least_of((k + 1) / 2 - pair, DP_LANES);
    float square[DP_LANES * DP_LANES]; /* only moved, never computed with */
    float turned[DP_LANES * DP_LANES];
    for (size_t j = 0; j < DP_LANES; j++) {
        const __m512i run =
            j < columns ? round_run(b + j * ld + 2 * pair, k - 2 * pair) : _mm512_setzero_si512();
        _mm512_storeu_si512(square + j * DP_LANES, run);
    }
    if (pairs == DP_LANES) {
        dp_transpose(square, DP_LANES, panel + pair * DP_PANEL, DP_PANEL);
        return;
    }
    dp_transpose(square, DP_LANES, turned, DP_LANES);
    for (size_t i = 0; i < pairs; i++) {
        memcpy(panel + (pair + i) * DP_PANEL, turned + i * DP_LANES, DP_LANES * sizeof *panel);
    }
}

/* packed [panel][pair][DP_PANEL], two terms in the place of a float. */
static void fast_pack(const float *b, size_t ld, bool transposed, size_t k, size_t n, float *packed)
{
    if (!transposed) {
        pack_pairs(b, ld, k, n, DP_PANEL, (uint32_t *)(void *)packed);
        return;
    }
    const size_t pairs = (k + 1) / 2;
    for (size_t column = 0; column < n; column += DP_PANEL) {
        for (size_t j = 0; j < DP_PANEL; j += DP_LANES) {
            const size_t left = n - column > j ? n - column - j : 0;
            for (size_t pair = 0; pair < pairs; pair += DP_LANES) {
                pack_square(b + (left > 0 ? column + j : 0) * ld, ld, k, left, pair,
                            packed + column * pairs + j);
            }
        }
    }
}

/* Asks for part of a row of a, before rows up to it are rounded. */
DP_INLINE void fetch_run(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i += DP_LINE_FLOATS) {
        DP_FETCH(x + i);
    }
}
