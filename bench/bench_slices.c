/* The cost of adding up a round's updates in slices (compute/outer/slices.h): CPU seconds of all
 * the slices and of the outer step of their sum, divided by those of outer steps that apply the
 * same updates one slice at a time; these measure the decoding and adding that is needed in any
 * case. Best of three.
 *   update stands for all */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "compute/codec/codec.h"
#include "compute/outer/slices.h"

enum { REPEATS = 3, UPDATES_MAX = 1024 };

typedef struct bench {
    size_t n;
    size_t updates;
    float *theta;
    dp_buf blob;
    dp_buf sum;
    dp_view views[DP_SLICE_ITEMS_MAX];
    uint32_t q[DP_SLICE_ITEMS_MAX];
} bench;

static const dp_outer outer = {.alpha = 65536};
static const uint32_t q_one = UINT32_C(1) << 31;

static size_t slice_of(const bench *b, size_t at)
{
    return b->updates - at < DP_SLICE_ITEMS_MAX ? b->updates - at : (size_t)DP_SLICE_ITEMS_MAX;
}

static double in_slices(bench *b)
{
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_buf_clear(&b->sum);
    for (size_t at = 0; at < b->updates; at += slice_of(b, at)) {
        dp_assert(dp_slice_add(&b->sum, b->n, b->views, b->q, slice_of(b, at), false) == DP_OK);
    }
    const dp_view sum = dp_buf_view(&b->sum);
    dp_assert(dp_consensus_apply(b->theta, NULL, b->n,
                                 &(dp_consensus_items){.blobs = &sum, .q = &q_one, .n = 1}, &outer,
                                 NULL) == DP_OK);
    return bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static double at_once(bench *b)
{
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (size_t at = 0; at < b->updates; at += slice_of(b, at)) {
        dp_assert(dp_consensus_apply(
                      b->theta, NULL, b->n,
                      &(dp_consensus_items){.blobs = b->views, .q = b->q, .n = slice_of(b, at)},
                      &outer, NULL) == DP_OK);
    }
    return bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static void prepare(bench *b)
{
    const dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (size_t i = 0; i < b->n; i++) {
        b->theta[i] = ((float)dp_rng_below(&rng, 2000001) - 1e6F) * 1e-8F;
    }
    dp_buf_init(&b->blob, dp_codec_bytes_max(&codec, b->n));
    dp_buf_init(&b->sum, dp_codec_bytes_max_any(b->n));
    dp_assert(dp_codec_encode(&codec, b->theta, b->n, &b->blob) == DP_OK);
    for (size_t i = 0; i < DP_SLICE_ITEMS_MAX; i++) {
        b->views[i] = dp_buf_view(&b->blob);
        b->q[i] = (uint32_t)(q_one / b->updates);
    }
}

static void run(bench *b, bool json)
{
    double slices = 1e9;
    double once = 1e9;
    for (int i = 0; i < REPEATS; i++) {
        const double s = in_slices(b);
        const double o = at_once(b);
        slices = s < slices ? s : slices;
        once = o < once ? o : once;
    }
    printf(json ? "{\"elements\": %zu, \"updates\": %zu, \"slices_s\": %.4f, \"at_once_s\": %.4f, "
                  "\"ratio\": %.3f}\n"
                : "%zu elements, %zu updates: %.3f s in slices, %.3f s without sums, ratio %.2f\n",
           b->n, b->updates, slices, once, slices / once);
}

int main(int argc, char **argv)
{
    static bench b = {.n = (size_t)1 << 24, .updates = 256};
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--elements") == 0 && i + 1 < argc) {
            b.n = (size_t)strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--updates") == 0 && i + 1 < argc) {
            b.updates = (size_t)strtoull(argv[++i], NULL, 10);
        } else {
            fputs("usage: bench_slices [--json] [--elements N] [--updates N]\n", stderr);
            return 64;
        }
    }
    b.theta = dp_alloc(b.n, sizeof *b.theta);
    if (b.n == 0 || b.n > DP_CODEC_ELEMENTS_MAX || b.updates == 0 || b.updates > UPDATES_MAX ||
        b.theta == NULL) {
        fputs("bench_slices: not so many elements or updates\n", stderr);
        return 65;
    }
    prepare(&b);
    run(&b, json);
    dp_buf_close(&b.sum);
    dp_buf_close(&b.blob);
    dp_free(b.theta);
    return 0;
}
