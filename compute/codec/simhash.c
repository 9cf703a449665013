#include "compute/codec/simhash.h"

#include <string.h>

#include "base/rng.h"
#include "compute/codec/codec.h"

enum { SUMS = 4096, BITS = 8 * DP_LIKENESS_BYTES, WORD_BITS = 64, WORDS = BITS / WORD_BITS };

static const uint64_t second_stage = UINT64_C(1) << 63;

/* value where bit 0 of sign is 0, else -value. */
static double with_sign(double value, uint64_t sign)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits ^= sign << 63;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void add_run(const dp_codec_run *run, uint64_t first, double sums[SUMS])
{
    for (size_t i = 0; i < run->count; i++) {
        const uint64_t hash = dp_mix64(first + (run->dense ? i : run->index[i]));
        sums[hash % SUMS] += with_sign((double)run->value[i], hash >> 63);
    }
}

/* 64 projections. */
static uint64_t signs_of(const double sums[SUMS], uint64_t word)
{
    double along[WORD_BITS] = {0};
    for (uint64_t b = 0; b < SUMS; b++) {
        const uint64_t hash = dp_mix64(second_stage + WORDS * b + word);
        for (unsigned j = 0; j < WORD_BITS; j++) {
            along[j] += with_sign(sums[b], hash >> j & 1U);
        }
    }
    uint64_t signs = 0;
    for (unsigned j = 0; j < WORD_BITS; j++) {
        signs |= (uint64_t)(along[j] < 0) << j;
    }
    return signs;
}

dp_status dp_simhash(dp_view blob, size_t n, uint8_t out[DP_LIKENESS_BYTES])
{
    double sums[SUMS] = {0};
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open(&cursor, blob, n));
    uint64_t first = 0;
    dp_codec_run run;
    while (cursor.left > 0) {
        DP_TRY(dp_codec_next(&cursor, &run));
        add_run(&run, first, sums);
        first += run.length;
    }
    dp_writer writer = dp_writer_of(out, DP_LIKENESS_BYTES);
    for (uint64_t word = 0; word < WORDS; word++) {
        dp_write_u64(&writer, signs_of(sums, word));
    }
    return DP_OK;
}
