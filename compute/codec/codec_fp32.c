/* fp32, elements as they are, and its helpers that bf16 shares. */
#include <string.h>

#include "base/mutation.h"
#include "compute/codec/codec_family.h"
#include "compute/codec/codec_floats.h"
#include "compute/cpu/half.h"

bool dp_codec_floats_in_range(const dp_codec_ops *ops, const float *a, size_t n)
{
    return ops->largest(a, n) <= dp_float_bits(DP_CODEC_VALUE_MAX);
}

/* square and the elements from `first` on. */
static double go_on(double square, const dp_codec_run *run, size_t first)
{
    double odd = 0; /* M38: two sums that could be made at the same time. */
    for (size_t i = first; i < run->length; i++) {
        const double value = (double)run->value[i];
        if (dp_broken(38) && i % 2 == 1) {
            odd += value * value;
        } else {
            square += value * value;
        }
    }
    return dp_broken(38) ? square + odd : square;
}

/* Four runs side by side, as far as all of them go: a sum in order waits for each addition, four
 * sums do not for each other's. */
static size_t measure_four(const dp_codec_run *runs, double squares[DP_CODEC_ABREAST])
{
    _Static_assert((int)DP_CODEC_ABREAST == 4, "they are written out");
    size_t length = runs[0].length;
    double sums[DP_CODEC_ABREAST] = {0};
    for (size_t r = 1; r < DP_CODEC_ABREAST; r++) {
        length = runs[r].length < length ? runs[r].length : length;
    }
    for (size_t i = 0; i < length; i++) {
        const double a = (double)runs[0].value[i];
        const double b = (double)runs[1].value[i];
        const double c = (double)runs[2].value[i];
        const double d = (double)runs[3].value[i];
        sums[0] += a * a;
        sums[1] += b * b;
        sums[2] += c * c;
        sums[3] += d * d;
    }
    memcpy(squares, sums, sizeof sums);
    return length;
}

void dp_codec_floats_measure(dp_codec_run *runs, size_t n)
{
    double squares[DP_CODEC_ABREAST] = {0};
    const size_t done = n == DP_CODEC_ABREAST ? measure_four(runs, squares) : 0;
    for (size_t r = 0; r < n; r++) {
        runs[r].square = go_on(squares[r], &runs[r], done);
    }
}

static size_t run_bytes_max(const dp_codec *codec)
{
    (void)codec;
    return sizeof(float[DP_CODEC_RUN]);
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    if (!dp_codec_floats_in_range(slice->ops, slice->a, slice->length)) {
        return DP_DIVERGED;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    dp_write_bytes(out, slice->a, slice->length * sizeof(float));
#else
    for (size_t i = 0; i < slice->length; i++) {
        dp_write_u32(out, dp_float_bits(slice->a[i]));
    }
#endif
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    const dp_view bytes = dp_read_view(&cursor->reader, sizeof(float) * run->length);
    if (cursor->reader.failed) {
        return DP_BADMSG;
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    memcpy(run->value, bytes.data, bytes.size);
#else
    dp_reader reader = dp_reader_of(bytes);
    for (size_t i = 0; i < run->length; i++) {
        run->value[i] = dp_float_of_bits(dp_read_u32(&reader));
    }
#endif
    dp_codec_dense_begin(run);
    return dp_codec_floats_in_range(cursor->ops, run->value, run->length) ? DP_OK : DP_BADMSG;
}

const dp_codec_family dp_codec_fp32 = {run_bytes_max, write, read, dp_codec_floats_measure};
