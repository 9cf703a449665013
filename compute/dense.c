#include "compute/dense.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"

/* The loops below are plain and vectorised by the compiler, once for each of these sets of instructions. What they compute is
 * the same: integers, and single operations on floats. */
#if defined(__x86_64__)
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2")))
#define MIDDLE __attribute__((target("avx2")))
#define HAS_WIDE                                                                                   \
    (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&                   \
     __builtin_cpu_supports("avx512vl"))
#define HAS_MIDDLE __builtin_cpu_supports("avx2")
#else
#define WIDE
#define MIDDLE
#define HAS_WIDE 0
#define HAS_MIDDLE 0
#endif
#define BODY static inline __attribute__((always_inline))

/* name(parameters), as name_wide, name_middle and name_plain around one body, and the choice between them. */
#define CLONES(name, parameters, arguments)                                                        \
    WIDE static void name##_wide parameters                                                        \
    {                                                                                              \
        name##_body arguments;                                                                     \
    }                                                                                              \
    MIDDLE static void name##_middle parameters                                                    \
    {                                                                                              \
        name##_body arguments;                                                                     \
    }                                                                                              \
    static void name parameters                                                                    \
    {                                                                                              \
        if (HAS_WIDE) {                                                                            \
            name##_wide arguments;                                                                 \
        } else if (HAS_MIDDLE) {                                                                   \
            name##_middle arguments;                                                               \
        } else {                                                                                   \
            name##_body arguments;                                                                 \
        }                                                                                          \
    }

#define UNIT 17179869184.0F /* 2^34 */

enum {
    FP32_MAX_BITS = 0x45ffffff, /* just below 2^13 */
    Q_MAX = 127,
    K_BYTES = 4
};

/* ---- largest magnitude, as the bits of a float: NaN above infinity above all numbers ---- */

BODY void largest_body(const uint8_t *x, size_t n, uint32_t *bits)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t one;
        memcpy(&one, x + 4 * i, sizeof one);
        one &= 0x7fffffffU;
        most = one > most ? one : most;
    }
    *bits = most;
}
CLONES(largest, (const uint8_t *x, size_t n, uint32_t *bits), (x, n, bits))

/* The same of what is copied on the way. */
BODY void copy_body(const float *restrict x, size_t n, uint8_t *restrict out, uint32_t *bits)
{
    uint32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t one;
        memcpy(&one, x + i, sizeof one);
        memcpy(out + 4 * i, &one, sizeof one);
        one &= 0x7fffffffU;
        most = one > most ? one : most;
    }
    *bits = most;
}
CLONES(copy, (const float *x, size_t n, uint8_t *out, uint32_t *bits), (x, n, out, bits))

/* ---- int8 ---- */

BODY void quantise_body(const float *x, size_t n, float scale, int8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = (int8_t)(int32_t)rintf(x[i] * scale);
    }
}
CLONES(quantise, (const float *x, size_t n, float scale, int8_t *q), (x, n, scale, q))

BODY void add_block_body(const int8_t *q, size_t n, int64_t factor, int64_t *sum)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] += factor * q[i];
    }
}
CLONES(add_block, (const int8_t *q, size_t n, int64_t factor, int64_t *sum), (q, n, factor, sum))

BODY void scale_block_body(const int8_t *q, size_t n, float factor, float *x)
{
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)q[i] * factor;
    }
}
CLONES(scale_block, (const int8_t *q, size_t n, float factor, float *x), (q, n, factor, x))

/* ---- fp32 ---- */

BODY void begin_body(const float *x, size_t n, int64_t weight, int64_t *sum)
{
    for (size_t i = 0; i < n; i++) {
        sum[i] = weight * (int64_t)rintf(x[i] * UNIT);
    }
}
CLONES(begin, (const float *x, size_t n, int64_t weight, int64_t *sum), (x, n, weight, sum))

BODY void add_floats_body(const uint8_t *x, size_t n, int64_t weight, int64_t *sum)
{
    for (size_t i = 0; i < n; i++) {
        float one;
        memcpy(&one, x + 4 * i, sizeof one);
        sum[i] += weight * (int64_t)rintf(one * UNIT);
    }
}
CLONES(add_floats, (const uint8_t *x, size_t n, int64_t weight, int64_t *sum), (x, n, weight, sum))

BODY void mean_body(const int64_t *sum, size_t n, double factor, float *mean)
{
    for (size_t i = 0; i < n; i++) {
        mean[i] = (float)((double)sum[i] * factor);
    }
}
CLONES(mean, (const int64_t *sum, size_t n, double factor, float *mean), (sum, n, factor, mean))

/* ---- own values and one to three parts to their mean, without a sum in memory ---- */

typedef struct blend {
    float *x;
    const uint8_t *parts[DP_TERMS_PARTS_MAX]; /* of a block, without k */
    int64_t factors[DP_TERMS_PARTS_MAX];
    int64_t weight;
    double factor;
    size_t n;
} blend;

BODY int64_t units_of(const uint8_t *part, size_t i, bool floats)
{
    float one;
    if (!floats) {
        return (int8_t)part[i];
    }
    memcpy(&one, part + 4 * i, sizeof one);
    return (int64_t)rintf(one * UNIT);
}

/* floats and n_parts are constants wherever this is put. */
BODY void blend_body(const blend *all, bool floats, uint32_t n_parts)
{
    float *restrict x = all->x;
    const uint8_t *restrict first = all->parts[0];
    const uint8_t *restrict second = all->parts[n_parts > 1 ? 1 : 0];
    const uint8_t *restrict third = all->parts[n_parts > 2 ? 2 : 0];
    const int64_t factors[] = {all->factors[0], all->factors[1], all->factors[2]};
    const int64_t weight = all->weight;
    const double factor = all->factor;
    const size_t n = all->n;
    for (size_t i = 0; i < n; i++) {
        int64_t sum = weight * (int64_t)rintf(x[i] * UNIT);
        sum += factors[0] * units_of(first, i, floats);
        if (n_parts > 1) {
            sum += factors[1] * units_of(second, i, floats);
        }
        if (n_parts > 2) {
            sum += factors[2] * units_of(third, i, floats);
        }
        x[i] = (float)((double)sum * factor);
    }
}
#define BLEND(name, floats, n_parts)                                                               \
    BODY void name##_body(const blend *all)                                                        \
    {                                                                                              \
        blend_body(all, floats, n_parts);                                                          \
    }                                                                                              \
    CLONES(name, (const blend *all), (all))
BLEND(blend_float, true, 1)
BLEND(blend_two_floats, true, 2)
BLEND(blend_three_floats, true, 3)
BLEND(blend_byte, false, 1)
BLEND(blend_two_bytes, false, 2)
BLEND(blend_three_bytes, false, 3)

/* ---- the calls ---- */

size_t dp_dense_bytes(uint8_t codec, size_t n)
{
    switch (codec) {
    case DP_DENSE_FP32:
        return 4 * n;
    case DP_DENSE_INT8:
        return n + (n + DP_DENSE_BLOCK - 1) / DP_DENSE_BLOCK * K_BYTES;
    default:
        return 0;
    }
}

static dp_status check_floats(const uint8_t *x, size_t n)
{
    uint32_t bits = 0;
    largest(x, n, &bits);
    return bits <= FP32_MAX_BITS ? DP_OK : DP_DIVERGED;
}

/* k = ceil(2^34 most / 127): in doubles the product is exact, and only the quotient is rounded. */
static dp_status encode_block(const float *x, size_t n, uint8_t *out)
{
    uint32_t bits = 0;
    float most = 0;
    largest((const uint8_t *)x, n, &bits);
    memcpy(&most, &bits, sizeof most);
    const double wanted = bits < 0x7f800000U ? ceil((double)most * (double)UNIT / Q_MAX) : INFINITY;
    if (!(wanted <= (double)UINT32_MAX)) {
        return DP_DIVERGED;
    }
    const uint32_t k = (uint32_t)wanted;
    dp_writer writer = dp_writer_of(out, K_BYTES);
    dp_write_u32(&writer, k);
    if (k == 0) {
        memset(out + K_BYTES, 0, n);
        return DP_OK;
    }
    quantise(x, n, (float)((double)UNIT / k), (int8_t *)out + K_BYTES);
    return DP_OK;
}

/* Blocks of both codecs have DP_DENSE_BLOCK elements; what a whole one takes as bytes. */
static size_t block_stride(uint8_t codec)
{
    return dp_dense_bytes(codec, DP_DENSE_BLOCK);
}

static size_t block_size(size_t n, size_t at)
{
    return n - at < DP_DENSE_BLOCK ? n - at : DP_DENSE_BLOCK;
}

/* The next block, which the processor would ask for only when it is read: each is a page of its own. Also beyond the end, where
 * nothing happens. */
static void prefetch(const float *x)
{
    enum { LINE = 64 / sizeof(float) };
    for (size_t i = 0; i < DP_DENSE_BLOCK; i += LINE) {
        __builtin_prefetch(x + i);
    }
}

dp_status dp_dense_encode(uint8_t codec, const float *x, size_t n, uint8_t *out)
{
    dp_assert(codec == DP_DENSE_FP32 || codec == DP_DENSE_INT8);
    for (size_t at = 0; at < n; at += DP_DENSE_BLOCK) {
        const size_t size = block_size(n, at);
        prefetch(x + at + size);
        if (codec == DP_DENSE_FP32) {
            uint32_t bits = 0;
            copy(x + at, size, out, &bits);
            if (bits > FP32_MAX_BITS) {
                return DP_DIVERGED;
            }
        } else {
            DP_TRY(encode_block(x + at, size, out));
        }
        out += block_stride(codec);
    }
    return DP_OK;
}

dp_status dp_dense_check(uint8_t codec, dp_view bytes, size_t n)
{
    if (bytes.size == 0 || bytes.size != dp_dense_bytes(codec, n)) {
        return DP_BADMSG; /* An unknown codec has no bytes, as no elements have. */
    }
    return codec == DP_DENSE_FP32 ? check_floats(bytes.data, n) : DP_OK;
}

static uint32_t read_k(const uint8_t *bytes)
{
    dp_reader reader = dp_reader_of(dp_view_of(bytes, K_BYTES));
    return dp_read_u32(&reader);
}

/* The block at element at of everything, to its mean in x. */
static dp_status blend_blocks(const dp_terms *terms, size_t at, double factor)
{
    static void (*const blends[2][DP_TERMS_PARTS_MAX])(const blend *all) = {
        {blend_float, blend_two_floats, blend_three_floats},
        {blend_byte, blend_two_bytes, blend_three_bytes}};
    const bool floats = terms->codec == DP_DENSE_FP32;
    const size_t offset = at / DP_DENSE_BLOCK * block_stride(terms->codec);
    blend one = {.x = terms->x + at,
                 .weight = terms->weight,
                 .factor = factor,
                 .n = block_size(terms->n, at)};
    DP_TRY(check_floats((const uint8_t *)one.x, one.n));
    for (uint32_t i = 0; i < terms->n_parts; i++) {
        const uint8_t *part = terms->parts[i] + offset;
        one.parts[i] = floats ? part : part + K_BYTES;
        one.factors[i] = floats ? (int64_t)terms->weights[i]
                                : (int64_t)((uint64_t)terms->weights[i] * read_k(part));
    }
    blends[floats ? 0 : 1][terms->n_parts - 1](&one);
    return DP_OK;
}

/* The block at element at of everything, to sum. */
static dp_status add_blocks(const dp_terms *terms, size_t at, int64_t *sum)
{
    const size_t size = block_size(terms->n, at);
    const size_t offset = at / DP_DENSE_BLOCK * block_stride(terms->codec);
    if (!terms->begun) {
        DP_TRY(check_floats((const uint8_t *)(terms->x + at), size));
        begin(terms->x + at, size, terms->weight, sum);
    }
    for (uint32_t i = 0; i < terms->n_parts; i++) {
        const uint8_t *part = terms->parts[i] + offset;
        if (terms->codec == DP_DENSE_FP32) {
            add_floats(part, size, terms->weights[i], sum);
        } else {
            add_block((const int8_t *)part + K_BYTES, size,
                      (int64_t)((uint64_t)terms->weights[i] * read_k(part)), sum);
        }
    }
    return DP_OK;
}

dp_status dp_dense_add(const dp_terms *terms)
{
    dp_assert(terms->codec == DP_DENSE_FP32 || terms->codec == DP_DENSE_INT8);
    dp_assert(terms->n_parts <= DP_TERMS_PARTS_MAX);
    for (size_t at = 0; at < terms->n; at += DP_DENSE_BLOCK) {
        DP_TRY(add_blocks(terms, at, terms->sum + at));
    }
    return DP_OK;
}

static void decode_block(const uint8_t *bytes, size_t n, float *x)
{
    scale_block((const int8_t *)bytes + K_BYTES, n, (float)read_k(bytes) / UNIT, x);
}

dp_status dp_dense_mean(const dp_terms *terms, uint64_t weights, uint8_t *out)
{
    const double factor = 1.0 / ((double)UNIT * (double)weights);
    int64_t sum[DP_DENSE_BLOCK];
    dp_assert(terms->codec == DP_DENSE_FP32 || terms->codec == DP_DENSE_INT8);
    dp_assert(weights > 0 && terms->n_parts <= DP_TERMS_PARTS_MAX);
    for (size_t at = 0; at < terms->n; at += DP_DENSE_BLOCK) {
        const size_t size = block_size(terms->n, at);
        float *x = terms->x + at;
        prefetch(x + size);
        if (!terms->begun && terms->n_parts > 0) {
            DP_TRY(blend_blocks(terms, at, factor));
        } else {
            if (terms->begun) {
                memcpy(sum, terms->sum + at, size * sizeof *sum);
            }
            DP_TRY(add_blocks(terms, at, sum));
            mean(sum, size, factor, x);
        }
        if (terms->codec == DP_DENSE_FP32) {
            memcpy(out, x, 4 * size); /* Of values in range the mean is. */
        } else {
            DP_TRY(encode_block(x, size, out));
            decode_block(out, size, x);
        }
        out += block_stride(terms->codec);
    }
    return DP_OK;
}

dp_status dp_dense_decode(uint8_t codec, dp_view bytes, size_t n, float *x)
{
    DP_TRY(dp_dense_check(codec, bytes, n));
    if (codec == DP_DENSE_FP32) {
        memcpy(x, bytes.data, bytes.size);
        return DP_OK;
    }
    for (size_t at = 0; at < n; at += DP_DENSE_BLOCK) {
        decode_block(bytes.data + at / DP_DENSE_BLOCK * block_stride(codec), block_size(n, at),
                     x + at);
    }
    return DP_OK;
}
