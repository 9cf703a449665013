/* Any bytes as an update blob and as a state: a status, or finite values that encode to a blob that decodes to them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "compute/codec.h"
#include "compute/state.h"

/* More elements than a small input can name would only slow the fuzzer down. */
enum { ELEMENTS_MAX = 3 * DP_CODEC_RUN, BLOB_BYTES_MAX = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* What decodes must encode again by the same codec to a blob that checks. */
static void encode_again(dp_codec_kind kind, const float *d, size_t n)
{
    static float again[ELEMENTS_MAX];
    dp_buf blob;
    dp_buf_init(&blob, BLOB_BYTES_MAX);
    must(dp_codec_encode(kind, d, n, &blob) == DP_OK);
    must(dp_codec_decode(dp_buf_view(&blob), again, n) == DP_OK);
    must(kind == DP_CODEC_INT8 || kind == DP_CODEC_SPARSE || memcmp(again, d, n * sizeof *d) == 0);
    dp_buf_close(&blob);
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
    dp_codec_kind kind;
    if (dp_codec_kind_of(bytes, &kind) != DP_OK) {
        return 0;
    }
    uint64_t n = 0;
    for (size_t i = 0; i < 8; i++) {
        n |= (uint64_t)data[8 + i] << (8 * i);
    }
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
    encode_again(kind, d, (size_t)n);
    return 0;
}
