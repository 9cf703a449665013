/* random: one element of every keep, chosen by the seed, values by codec_values.c; positions take
 * no bits. A control for sparse with the same number of values, not for use. The last of a run's
 * strata may be shorter. */
#include "base/rng.h"
#include "compute/codec/codec_family.h"

/* Entry i of run at lies in elements i keep .. min(length, (i + 1) keep) - 1. */
static void draw(const dp_codec *codec, uint64_t at, size_t length, size_t k, uint16_t *index)
{
    const uint64_t key = dp_mix64(codec->seed ^ dp_mix64(at));
    for (size_t i = 0; i < k; i++) {
        const size_t first = i * codec->keep;
        const size_t left = length - first;
        const size_t width = left < codec->keep ? left : codec->keep;
        index[i] = (uint16_t)(first + dp_mix64(key + i) % width);
    }
}

static dp_status write(const dp_codec_slice *slice, dp_writer *out)
{
    if (slice->ops->largest(slice->a, slice->length) >= DP_CODEC_INFINITY_BITS) {
        return DP_DIVERGED;
    }
    const size_t k = dp_codec_entries(slice->codec, slice->length);
    uint16_t index[DP_CODEC_KEPT_MAX];
    draw(slice->codec, slice->at, slice->length, k, index);
    (void)dp_codec_values_write(slice, index, k, out);
    return DP_OK;
}

static dp_status read(dp_codec_cursor *cursor, dp_codec_run *run)
{
    const size_t k = dp_codec_entries(&cursor->codec, run->length);
    DP_TRY(dp_codec_values_read(cursor, k, run));
    draw(&cursor->codec, cursor->at, run->length, k, run->index);
    return DP_OK;
}

const dp_codec_family dp_codec_random = {dp_codec_values_bytes_max, write, read, NULL};
