/* The plain loops of the codecs: the definition of right. */
#include <string.h>

#include "base/assert.h"
#include "compute/cpu/codec_element.h"
#include "compute/cpu/codec_ops.h"
#include "compute/cpu/codec_tables.h"

enum {
    DIGIT_BITS = 11, /* 31 bits of magnitude as digits of 11, 10 and 10 */
    DIGITS = 1 << DIGIT_BITS
};

static uint32_t plain_largest(const float *a, size_t n)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = dp_element_key(a[i]);
        largest = key > largest ? key : largest;
    }
    return largest;
}

/* ---- The k largest: a radix selection over bits, as one block of a graphics processor does it. */

/* Of the count keys, the digit (key >> shift, limit values) that holds the *rank-th largest; *rank
 * becomes its rank among the keys with that digit. 1 <= *rank <= count. */
static uint32_t digit_of_rank(const uint32_t *keys, size_t count, unsigned shift, uint32_t limit,
                              size_t *rank)
{
    uint16_t histogram[DIGITS] = {0};
    dp_assert(limit <= DIGITS && count <= DP_CODEC_RUN);
    for (size_t i = 0; i < count; i++) {
        histogram[(keys[i] >> shift) & (limit - 1)]++;
    }
    uint32_t digit = limit - 1;
    while (histogram[digit] < *rank) {
        *rank -= histogram[digit];
        digit--;
    }
    return digit;
}

static size_t keep_digit(uint32_t *keys, size_t count, unsigned shift, uint32_t digit,
                         uint32_t limit)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const uint32_t key = keys[i];
        keys[kept] = key;
        kept += ((key >> shift) & (limit - 1)) == digit;
    }
    return kept;
}

/* The k-th largest key, and how many of the keys equal to it belong to the k. */
static uint32_t threshold_of(const float *a, size_t n, size_t k, size_t *equal)
{
    uint32_t work[DP_CODEC_RUN];
    for (size_t i = 0; i < n; i++) {
        work[i] = dp_element_key(a[i]);
    }
    static const struct {
        unsigned shift;
        uint32_t limit;
    } digits[3] = {{20, 2048}, {10, 1024}, {0, 1024}};
    size_t rank = k;
    size_t count = n;
    uint32_t threshold = 0;
    for (size_t i = 0; i < 3; i++) {
        const uint32_t digit = digit_of_rank(work, count, digits[i].shift, digits[i].limit, &rank);
        count = keep_digit(work, count, digits[i].shift, digit, digits[i].limit);
        threshold |= digit << digits[i].shift;
    }
    *equal = rank;
    return threshold;
}

static void plain_choose(const float *a, size_t n, size_t k, uint32_t largest, uint16_t *index)
{
    (void)largest;
    size_t equal;
    const uint32_t threshold = threshold_of(a, n, k, &equal);
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        const uint32_t key = dp_element_key(a[i]);
        if (key < threshold) {
            continue;
        }
        if (key == threshold) {
            if (equal == 0) {
                continue;
            }
            equal--;
        }
        index[kept] = (uint16_t)i;
        kept++;
    }
    dp_assert(kept == k);
}

/* ---- The rest. */

static void plain_steps(const float *a, size_t n, float scale, float most, int8_t *q)
{
    for (size_t i = 0; i < n; i++) {
        q[i] = dp_element_step(a[i], scale, most);
    }
}

static uint32_t plain_unsteps(const int8_t *q, size_t n, float scale, float *d)
{
    uint32_t squares = 0;
    for (size_t i = 0; i < n; i++) {
        const int32_t step = q[i]; /* NOLINT(bugprone-signed-char-misuse): a number */
        squares += (uint32_t)(step * step);
        d[i] = (float)step * scale; /* 7 and 11 bits: exact */
    }
    return squares;
}

static uint64_t plain_sum(const float *a, size_t n, uint32_t top)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += dp_element_magnitude(a[i], top);
    }
    return sum;
}

static void plain_signs(const float *a, size_t n, uint8_t *out)
{
    memset(out, 0, (n + 7) / 8);
    for (size_t i = 0; i < n; i++) {
        out[i / 8] |= (uint8_t)((a[i] < 0 ? 1U : 0U) << (i % 8));
    }
}

static uint32_t plain_lookup(const uint8_t *code, size_t n, const float value[16],
                             const uint32_t weight[16], float *d)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        d[i] = value[code[i]];
        sum += weight[code[i]];
    }
    return sum;
}

static void plain_add(float *acc, const float *v, size_t n, float f)
{
    for (size_t i = 0; i < n; i++) {
        acc[i] += f * v[i];
    }
}

static bool plain_move(float *theta, const float *acc, size_t n, float step)
{
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        theta[i] -= step * acc[i];
        finite = finite && dp_element_key(theta[i]) < 0x7f800000U;
    }
    return finite;
}

static void plain_squares(const float *a, const float *d, size_t n, double sums[2])
{
    enum { LANES = 8 };
    double lanes[2][LANES] = {{0}};
    for (size_t i = 0; i < n; i++) {
        const double value = (double)a[i];
        const double rest = value - (double)d[i];
        lanes[0][i % LANES] += value * value;
        lanes[1][i % LANES] += rest * rest;
    }
    for (size_t j = 0; j < LANES; j++) {
        sums[0] += lanes[0][j];
        sums[1] += lanes[1][j];
    }
}

const dp_codec_ops dp_codec_ops_plain = {
    .name = "plain",
    .largest = plain_largest,
    .choose = plain_choose,
    .steps = plain_steps,
    .unsteps = plain_unsteps,
    .sum = plain_sum,
    .signs = plain_signs,
    .lookup = plain_lookup,
    .add = plain_add,
    .move = plain_move,
    .squares = plain_squares,
};
