/* Any bytes as an update blob and as a state: a status, or finite values that encode to a blob of
 * a fixed point, the same by all tables. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/outer/part.h"

/* More elements than a small input can name would only slow the fuzzer down. */
enum { ELEMENTS_MAX = 3 * DP_CODEC_RUN, BLOB_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* d by the same codec, by all tables alike, and back. */
static void there_and_back(const dp_codec *codec, const float *d, size_t n, float *again)
{
    dp_buf blob;
    dp_buf_init(&blob, BLOB_BYTES_MAX);
    must(dp_codec_encode(codec, d, n, &blob) == DP_OK);
    must(blob.size <= dp_codec_bytes_max(codec, n));
    dp_buf plain;
    dp_buf_init(&plain, BLOB_BYTES_MAX);
    must(dp_codec_encode_with(dp_codec_ops_reference(), codec, d, n, &plain) == DP_OK);
    must(dp_view_equal(dp_buf_view(&blob), dp_buf_view(&plain)));
    must(dp_codec_decode(dp_buf_view(&blob), again, n) == DP_OK);
    dp_buf_close(&plain);
    dp_buf_close(&blob);
}

/* A decoded vector must encode again by the same codec, and the vector decoded from that is a fixed
 * point. For codecs of floats the first vector is one already. */
static void encode_again(const dp_codec *codec, const float *d, size_t n)
{
    static float once[ELEMENTS_MAX];
    static float twice[ELEMENTS_MAX];
    there_and_back(codec, d, n, once);
    there_and_back(codec, once, n, twice);
    must(memcmp(once, twice, n * sizeof *d) == 0);
    must(codec->block + codec->keep != 0 || memcmp(once, d, n * sizeof *d) == 0);
}

/* A part of a vector: what an owner adds up of it is again a part of the same place. */
static void look_at_part(dp_view bytes, size_t first, size_t n)
{
    static const uint32_t q = UINT32_C(1) << 31;
    const dp_part_place place = {.first = first, .n = n};
    const dp_codec int8 = dp_codec_default(DP_CODEC_INT8);
    unsigned __int128 energy = 0;
    const dp_part_items items = {.blobs = &bytes, .q = &q, .n = 1};
    dp_part_sum sum;
    dp_buf out;
    if (n > ELEMENTS_MAX || dp_part_energy(bytes, place, &energy) != DP_OK) {
        return;
    }
    dp_buf_init(&out, BLOB_BYTES_MAX);
    const dp_status status = dp_part_reduce(&int8, place, &items, &out, &sum);
    must(status == DP_OK || status == DP_DIVERGED); /* Halves do not hold what fp32 may. */
    if (status == DP_OK) {
        must(dp_part_energy(dp_buf_view(&out), place, &energy) == DP_OK && energy == sum.energy);
    }
    dp_buf_close(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static float d[ELEMENTS_MAX];
    const dp_view bytes = dp_view_of(data, size);
    uint64_t round;
    dp_state state;
    if (dp_state_open(&state, bytes) == DP_OK && state.elements <= ELEMENTS_MAX) {
        (void)!dp_state_read(bytes, &round, d, (size_t)state.elements);
    }
    dp_codec codec;
    uint64_t n;
    if (dp_codec_peek(bytes, &codec, &n) != DP_OK) {
        return 0;
    }
    look_at_part(bytes, (size_t)(n >> 32) * DP_CODEC_RUN, (size_t)(n & UINT32_MAX));
    unsigned __int128 energy = 0;
    if (n > ELEMENTS_MAX || dp_codec_energy(bytes, (size_t)n, &energy) != DP_OK) {
        return 0;
    }
    must(energy <= DP_CODEC_ENERGY_MAX);
    must(dp_codec_check(bytes, (size_t)n) == DP_OK);
    must(dp_codec_decode(bytes, d, (size_t)n) == DP_OK);
    for (size_t i = 0; i < n; i++) {
        must(isfinite(d[i]));
    }
    encode_again(&codec, d, (size_t)n);
    return 0;
}
