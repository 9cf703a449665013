/* What a codec costs and saves: GB/s of floats encoded and decoded on one core, bytes per parameter, and how far the sparse
 * codec's positions are from the entropy of choosing 64 of 4096.
 * bench_codec [--json] [--elements N]   4194304 if not given */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "compute/codec.h"

enum { REPEATS = 5 };

typedef struct result {
    double encode;
    double decode;
    double check;
    double bytes_per_parameter;
} result;

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A bell of values (twelve uniforms; Irwin 1927), as an update looks. */
static void fill(float *a, size_t n)
{
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (size_t i = 0; i < n; i++) {
        uint64_t sum = 0;
        uint64_t bits = 0;
        for (int j = 0; j < 12; j++) {
            bits = j % 6 == 0 ? dp_rng_next(&rng) : bits >> 10;
            sum += bits & 1023U;
        }
        a[i] = ((float)sum - 6138.0F) * 1e-6F;
    }
}

static double best(double time, double seconds)
{
    return time == 0 || seconds < time ? seconds : time;
}

static result measure(dp_codec_kind kind, const float *a, float *d, size_t n)
{
    dp_buf blob;
    dp_buf_init(&blob, dp_codec_bytes_max(kind, n));
    double encode = 0;
    double decode = 0;
    double check = 0;
    for (int i = 0; i < REPEATS; i++) {
        dp_buf_clear(&blob);
        const double start = cpu_s();
        dp_assert(dp_codec_encode(kind, a, n, &blob) == DP_OK);
        const double encoded = cpu_s();
        dp_assert(dp_codec_decode(dp_buf_view(&blob), d, n) == DP_OK);
        const double decoded = cpu_s();
        dp_assert(dp_codec_check(dp_buf_view(&blob), n) == DP_OK);
        encode = best(encode, encoded - start);
        decode = best(decode, decoded - encoded);
        check = best(check, cpu_s() - decoded);
    }
    const double gigabytes = 4e-9 * (double)n;
    const result r = {.encode = gigabytes / encode,
                      .decode = gigabytes / decode,
                      .check = gigabytes / check,
                      .bytes_per_parameter = (double)blob.size / (double)n};
    dp_buf_close(&blob);
    return r;
}

/* Bits of log2(4096 choose 64), two per entry, and two halves, in bytes per parameter: no code of this kind is shorter. */
static double entropy_bound(void)
{
    double bits = 0;
    for (int i = 0; i < DP_CODEC_TOP; i++) {
        bits += log2((double)(DP_CODEC_RUN - i) / (double)(i + 1));
    }
    return (bits + 2 * DP_CODEC_TOP + 32) / 8 / DP_CODEC_RUN;
}

int main(int argc, char **argv)
{
    bool json = false;
    size_t n = (size_t)1 << 22;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--elements") == 0 && i + 1 < argc) {
            i++;
            n = (size_t)strtoull(argv[i], NULL, 10);
        } else {
            fputs("usage: bench_codec [--json] [--elements N]\n", stderr);
            return 64;
        }
    }
    float *const a = dp_alloc(n, sizeof *a);
    float *const d = dp_alloc(n, sizeof *d);
    if (n == 0 || n > DP_CODEC_ELEMENTS_MAX || a == NULL || d == NULL) {
        fputs("bench_codec: not this many elements\n", stderr);
        return 65;
    }
    fill(a, n);
    const double bound = entropy_bound();
    if (json) {
        printf("{\"elements\": %zu, \"sparse_entropy_bound\": %.5f", n, bound);
    }
    for (unsigned kind = DP_CODEC_FP32; kind <= DP_CODEC_SPARSE; kind++) {
        const result r = measure((dp_codec_kind)kind, a, d, n);
        const char *const name = dp_codec_name((dp_codec_kind)kind);
        if (json) {
            printf(", \"%s\": {\"encode_gb_s\": %.3f, \"decode_gb_s\": %.3f, \"check_gb_s\": %.3f, "
                   "\"bytes_per_parameter\": %.5f}",
                   name, r.encode, r.decode, r.check, r.bytes_per_parameter);
        } else {
            printf("%-6s encode %7.2f  decode %7.2f  check %7.2f GB/s of floats   %.5f bytes per "
                   "parameter\n",
                   name, r.encode, r.decode, r.check, r.bytes_per_parameter);
        }
    }
    puts(json ? "}" : "");
    if (!json) {
        printf("sparse at the entropy bound would take %.5f\n", bound);
    }
    dp_free(a);
    dp_free(d);
    return 0;
}
