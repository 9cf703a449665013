/* The dense codecs: fp32, bf16, and int8 with one fp16 scale per block of 256. */
#include <string.h>

#include "base/mutation.h"
#include "compute/codec_family.h"
#include "compute/half.h"

enum { INFINITY_BITS = 0x7f800000, MAGNITUDE_BITS = 0x7fffffff };

static uint32_t magnitude_bits(float value)
{
    return dp_float_bits(value) & MAGNITUDE_BITS;
}

/* Also false for what is not a number. */
static bool in_range(float value)
{
    return value <= DP_CODEC_VALUE_MAX && value >= -DP_CODEC_VALUE_MAX;
}

dp_status dp_codec_fp32_write(const float *a, size_t length, dp_writer *out)
{
    for (size_t i = 0; i < length; i++) {
        if (!in_range(a[i])) {
            return DP_DIVERGED;
        }
        dp_write_u32(out, dp_float_bits(a[i]));
    }
    return DP_OK;
}

dp_status dp_codec_bf16_write(const float *a, size_t length, dp_writer *out)
{
    for (size_t i = 0; i < length; i++) {
        if (!in_range(a[i])) {
            return DP_DIVERGED;
        }
        dp_write_u16(out, dp_bfloat_of(a[i]));
    }
    return DP_OK;
}

/* Checks the values and sums their squares, serially. */
static dp_status finish_floats(dp_codec_run *run)
{
    double square = 0;
#if DP_MUTATION == 38
    double odd = 0; /* Two sums that could be made at the same time. */
#endif
    for (size_t i = 0; i < run->length; i++) {
        if (!in_range(run->value[i])) {
            return DP_BADMSG;
        }
        const double value = (double)run->value[i];
#if DP_MUTATION == 38
        odd += i % 2 == 1 ? value * value : 0;
        square += i % 2 == 0 ? value * value : 0;
#else
        square += value * value;
#endif
    }
#if DP_MUTATION == 38
    square += odd;
#endif
    run->count = run->length;
    run->dense = true;
    run->energy = 0;
    run->square = square;
    return DP_OK;
}

static uint32_t load_u16(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8;
}

dp_status dp_codec_fp32_read(dp_reader *in, dp_codec_run *run)
{
    const dp_view bytes = dp_read_view(in, 4 * run->length);
    if (in->failed) {
        return DP_BADMSG;
    }
    for (size_t i = 0; i < run->length; i++) {
        const uint8_t *const at = bytes.data + 4 * i;
        run->value[i] = dp_float_of_bits(load_u16(at) | load_u16(at + 2) << 16);
    }
    return finish_floats(run);
}

dp_status dp_codec_bf16_read(dp_reader *in, dp_codec_run *run)
{
    const dp_view bytes = dp_read_view(in, 2 * run->length);
    if (in->failed) {
        return DP_BADMSG;
    }
    for (size_t i = 0; i < run->length; i++) {
        run->value[i] = dp_bfloat_value((uint16_t)load_u16(bytes.data + 2 * i));
    }
    return finish_floats(run);
}

/* Nearest integer, ties to even, for |value| < 2^22: adding 1.5 * 2^23 leaves no bit below the unit. */
static int32_t nearest(float value)
{
    const float shifted = value + 12582912.0F;
    return (int32_t)(shifted - 12582912.0F);
}

static dp_status write_block(const float *a, size_t length, dp_writer *out)
{
    uint32_t largest = 0;
    for (size_t i = 0; i < length; i++) {
        const uint32_t bits = magnitude_bits(a[i]);
        largest = bits > largest ? bits : largest;
    }
    if (largest >= INFINITY_BITS) {
        return DP_DIVERGED;
    }
    /* Rounded up, so that no value needs more than 127 steps unless the scale itself is at its limit. */
    const uint16_t half = dp_half_of((double)dp_float_of_bits(largest) / 127.0, true);
    const float scale = dp_half_value(half);
    dp_write_u16(out, half);
    uint8_t coded[DP_CODEC_BLOCK];
    for (size_t i = 0; i < length; i++) {
        float steps = half == 0 ? 0.0F : a[i] / scale;
        steps = steps > 127.0F ? 127.0F : steps < -127.0F ? -127.0F : steps;
        coded[i] = (uint8_t)nearest(steps);
    }
    dp_write_bytes(out, coded, length);
    return DP_OK;
}

dp_status dp_codec_int8_write(const float *a, size_t length, dp_writer *out)
{
    for (size_t done = 0; done < length; done += DP_CODEC_BLOCK) {
        const size_t left = length - done;
        DP_TRY(write_block(a + done, left < DP_CODEC_BLOCK ? left : DP_CODEC_BLOCK, out));
    }
    return DP_OK;
}

static dp_status read_block(dp_reader *in, float *value, size_t length, unsigned __int128 *energy)
{
    const uint16_t half = dp_read_u16(in);
    const dp_view steps = dp_read_view(in, length);
    if (in->failed || !dp_half_is_magnitude(half)) {
        return DP_BADMSG;
    }
    const float scale = dp_half_value(half);
    uint64_t squares = 0;
    for (size_t i = 0; i < length; i++) {
        const int32_t step = (int8_t)steps.data[i]; // NOLINT(bugprone-signed-char-misuse): a number
        if (step == -128) {
            return DP_BADMSG;
        }
        squares += (uint64_t)(step * step);
        value[i] = (float)step * scale; /* 7 and 11 bits: exact */
    }
    if (half == 0 && squares != 0) {
        return DP_BADMSG;
    }
    const unsigned __int128 grid = dp_half_grid(half);
    *energy += squares * grid * grid;
    return DP_OK;
}

dp_status dp_codec_int8_read(dp_reader *in, dp_codec_run *run)
{
    run->energy = 0;
    run->square = 0;
    for (size_t done = 0; done < run->length; done += DP_CODEC_BLOCK) {
        const size_t left = run->length - done;
        DP_TRY(read_block(in, run->value + done, left < DP_CODEC_BLOCK ? left : DP_CODEC_BLOCK,
                          &run->energy));
    }
    run->count = run->length;
    run->dense = true;
    return DP_OK;
}
