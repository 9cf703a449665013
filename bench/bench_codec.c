/* Cost and gain of each codec on one core: GB/s of floats encoded, checked and decoded, each also
 * as a share of memcpy's in the same run; seconds for 124M parameters to encode and to decode and
 * apply the blobs of eight peers; bytes per parameter beside the entropy bound of the encoded
 * values; and the error |a - d| / |a|. Process CPU time, best of five.
 * bench_codec [--json] [--elements N] [--only CODEC]   16777216 if not given */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "compute/codec/codec.h"
#include "compute/outer/consensus.h"

enum { REPEATS = 5, PEERS = 8, SYMBOLS = 256 };
#define PARAMETERS 124439808.0 /* GPT-2 */

/* The default options of each, then others. */
static const dp_codec others[] = {{.kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2},
                                  {.kind = DP_CODEC_SPARSE, .keep = 32, .bits = 2},
                                  {.kind = DP_CODEC_SPARSE, .keep = 32, .bits = 1},
                                  {.kind = DP_CODEC_SPARSE, .keep = 128, .bits = 2},
                                  {.kind = DP_CODEC_INT8, .block = 1024}};
enum { N_OTHERS = sizeof others / sizeof others[0] };

typedef struct result {
    double encode; /* seconds */
    double plain;  /* encode with plain loops */
    double check;
    double decode;
    double apply; /* decode and apply of PEERS blobs */
    double bytes; /* per parameter */
    double bound;
    double error;
} result;

typedef struct bench {
    size_t n;
    float *a;
    float *d;
    double copy; /* seconds of memcpy */
    bool json;
} bench;

/* Values of nearly normal distribution (sum of twelve uniform ones; Irwin 1927), like an
 * update's. */
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

/* ---- Entropy bounds, in bytes per parameter. */

/* log2 of the number of choices of k places in a run, the bits of the values, and the centroids. */
static double bound_of_kept(const dp_codec *codec)
{
    const size_t k = DP_CODEC_RUN / codec->keep;
    double bits = 0;
    for (size_t i = 0; i < k; i++) {
        bits += log2((double)(DP_CODEC_RUN - i) / (double)(i + 1));
    }
    return (bits + codec->bits * ((double)k + 16)) / 8 / DP_CODEC_RUN;
}

/* Entropy of the codes of a blob of whole blocks, one or two codes per byte, and the scales. */
static double bound_of_blocks(const dp_codec *codec, dp_view blob)
{
    const bool halves = codec->kind != DP_CODEC_INT8;
    const size_t bytes = halves ? codec->block / 2 : codec->block;
    uint64_t counts[SYMBOLS] = {0};
    double total = 0;
    for (size_t at = DP_CODEC_HEADER_BYTES + 2; at + bytes <= blob.size; at += bytes + 2) {
        for (size_t i = 0; i < bytes; i++) {
            const uint8_t byte = blob.data[at + i];
            counts[halves ? byte & 15U : byte]++;
            total++;
            if (halves) {
                counts[byte >> 4]++;
                total++;
            }
        }
    }
    double bits = 0;
    for (size_t i = 0; i < SYMBOLS; i++) {
        if (counts[i] > 0) {
            bits -= (double)counts[i] / total * log2((double)counts[i] / total);
        }
    }
    return bits / 8 + 2.0 / codec->block;
}

static double bound_of(const dp_codec *codec, dp_view blob, size_t n)
{
    if (codec->keep > 0) {
        return bound_of_kept(codec);
    }
    return codec->block > 0 ? bound_of_blocks(codec, blob)
                            : (double)(blob.size - DP_CODEC_HEADER_BYTES) / (double)n;
}

/* ---- Times. */

static double time_encode(const bench *b, const dp_codec_ops *ops, const dp_codec *codec,
                          dp_buf *blob)
{
    double time = 0;
    for (int i = 0; i < REPEATS; i++) {
        dp_buf_clear(blob);
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        dp_assert(dp_codec_encode_with(ops, codec, b->a, b->n, blob) == DP_OK);
        time = best(time, bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    return time;
}

/* Eight peers sent the same blob. It takes as long as eight different ones, since a blob exceeds
 * the caches. */
static double time_apply(const bench *b, dp_view blob)
{
    dp_view blobs[PEERS];
    uint32_t q[PEERS];
    for (size_t i = 0; i < PEERS; i++) {
        blobs[i] = blob;
        q[i] = 0x10000000U;
    }
    const dp_outer outer = {.alpha = 65536};
    double time = 0;
    memset(b->d, 0, b->n * sizeof *b->d);
    for (int i = 0; i < REPEATS; i++) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        dp_assert(dp_consensus_apply(b->d, NULL, b->n,
                                     &(dp_consensus_items){.blobs = blobs, .q = q, .n = PEERS},
                                     &outer, NULL) == DP_OK);
        time = best(time, bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    return time;
}

static result measure(const bench *b, const dp_codec *codec)
{
    dp_buf blob;
    dp_buf_init(&blob, dp_codec_bytes_max(codec, b->n));
    result r = {.plain = time_encode(b, dp_codec_ops_reference(), codec, &blob)};
    r.encode = time_encode(b, dp_codec_ops_best(), codec, &blob);
    const dp_view view = dp_buf_view(&blob);
    for (int i = 0; i < REPEATS; i++) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        dp_assert(dp_codec_check(view, b->n) == DP_OK);
        const double checked = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        dp_assert(dp_codec_decode(view, b->d, b->n) == DP_OK);
        r.decode = best(r.decode, bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - checked);
        r.check = best(r.check, checked - start);
    }
    r.apply = time_apply(b, view);
    r.bytes = (double)blob.size / (double)b->n;
    r.bound = bound_of(codec, view, b->n);
    double norm;
    dp_assert(dp_codec_error(view, b->a, b->n, &norm, &r.error) == DP_OK);
    r.error /= norm;
    dp_buf_close(&blob);
    return r;
}

static void report(const bench *b, const dp_codec *codec)
{
    const result r = measure(b, codec);
    const double gigabytes = 4e-9 * (double)b->n;
    const double scale = PARAMETERS / (double)b->n;
    char name[64];
    if (codec->keep > 0) {
        snprintf(name, sizeof name, "%s-1/%u-%ubit", dp_codec_name(codec->kind), codec->keep,
                 codec->bits);
    } else if (codec->block > 0) {
        snprintf(name, sizeof name, "%s-%u", dp_codec_name(codec->kind), codec->block);
    } else {
        snprintf(name, sizeof name, "%s", dp_codec_name(codec->kind));
    }
    if (b->json) {
        printf(", \"%s\": {\"encode_gb_s\": %.3f, \"check_gb_s\": %.3f, \"decode_gb_s\": %.3f, "
               "\"encode_of_memcpy\": %.3f, \"decode_of_memcpy\": %.3f, \"encode_of_plain\": %.3f, "
               "\"encode_124m_s\": %.4f, \"apply8_124m_s\": %.4f, \"bytes_per_parameter\": %.5f, "
               "\"entropy_bound\": %.5f, \"of_bound\": %.4f, \"relative_error\": %.5f}",
               name, gigabytes / r.encode, gigabytes / r.check, gigabytes / r.decode,
               b->copy / r.encode, b->copy / r.decode, r.plain / r.encode, r.encode * scale,
               r.apply * scale, r.bytes, r.bound, r.bytes / r.bound, r.error);
        return;
    }
    printf("%-18s encode %6.2f  check %6.2f  decode %6.2f GB/s  of memcpy %4.2f %4.2f  of plain "
           "%5.2f  124M: encode %6.3f s, apply of 8 %6.3f s  %.5f B, bound %.5f, error %.4f\n",
           name, gigabytes / r.encode, gigabytes / r.check, gigabytes / r.decode,
           b->copy / r.encode, b->copy / r.decode, r.plain / r.encode, r.encode * scale,
           r.apply * scale, r.bytes, r.bound, r.error);
}

static void run(bench *b, const char *only)
{
    fill(b->a, b->n);
    memset(b->d, 0, b->n * sizeof *b->d);
    for (int i = 0; i < REPEATS; i++) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        memcpy(b->d, b->a, b->n * sizeof *b->d);
        b->copy = best(b->copy, bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start);
    }
    const double gb_s = 4e-9 * (double)b->n / b->copy;
    printf(b->json ? "{\"elements\": %zu, \"loops\": \"%s\", \"memcpy_gb_s\": %.3f"
                   : "%zu elements, loops of %s, memcpy %.2f GB/s\n",
           b->n, dp_codec_ops_best()->name, gb_s);
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (size_t i = 0; i < count; i++) {
        const dp_codec codec = dp_codec_default(rows[i].kind);
        if (only == NULL || strcmp(only, dp_codec_name(codec.kind)) == 0) {
            report(b, &codec);
        }
    }
    for (size_t i = 0; i < N_OTHERS; i++) {
        if (only == NULL || strcmp(only, dp_codec_name(others[i].kind)) == 0) {
            report(b, &others[i]);
        }
    }
    if (b->json) {
        puts("}");
    }
}

int main(int argc, char **argv)
{
    bench b = {.n = (size_t)1 << 24};
    const char *only = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            b.json = true;
        } else if (strcmp(argv[i], "--elements") == 0 && i + 1 < argc) {
            i++;
            b.n = (size_t)strtoull(argv[i], NULL, 10);
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            i++;
            only = argv[i];
        } else {
            fputs("usage: bench_codec [--json] [--elements N] [--only CODEC]\n", stderr);
            return 64;
        }
    }
    b.a = dp_alloc(b.n, sizeof *b.a);
    b.d = dp_alloc(b.n, sizeof *b.d);
    if (b.n == 0 || b.n > DP_CODEC_ELEMENTS_MAX || b.a == NULL || b.d == NULL) {
        fputs("bench_codec: not this many elements\n", stderr);
        return 65;
    }
    run(&b, only);
    dp_free(b.a);
    dp_free(b.d);
    return 0;
}
