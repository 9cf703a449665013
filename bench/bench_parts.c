/* CPU time in which a node processes the bytes of a round, on one core: rounds of parts
 * (compute/outer/part.h) beside the whole exchange of the same publications, in one run, and their
 * ratio. Whole: measure the node's own blob, check all blobs, and check them again when they are
 * applied, as the trainer does (trainer_parts.c). Parts: cut the own blob, check one part of each
 * blob, add them up and encode the sum; check all results, and check them again when they are
 * applied, each on its range. Process CPU time, best of five.
 *   not given */
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
#include "compute/outer/part.h"

enum { REPEATS = 5, NODES_MAX = DP_PARTS_MAX };

static const uint32_t q_one = UINT32_C(1) << 31;
static const dp_outer outer = {.alpha = 65536};

typedef struct bench {
    size_t n;
    uint32_t nodes;
    const dp_codec *codec;
    float *theta;
    dp_buf blob; /* of the own publication, and of all */
    dp_part_cuts cuts;
    dp_part_range ranges[NODES_MAX];
    uint32_t q[NODES_MAX];     /* shares of the sum */
    uint32_t whole[NODES_MAX]; /* of the results, 1 each */
    dp_buf pieces[NODES_MAX];  /* the parts of the blob, each contiguous */
    dp_buf sum;
} bench;

static double whole_exchange(const bench *b)
{
    const dp_view blob = dp_buf_view(&b->blob);
    dp_view blobs[NODES_MAX];
    unsigned __int128 energy = 0;
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_assert(dp_codec_energy(blob, b->n, &energy) == DP_OK);
    for (uint32_t i = 0; i < b->nodes; i++) {
        blobs[i] = blob;
        dp_assert(dp_codec_energy(blob, b->n, &energy) == DP_OK);
    }
    for (uint32_t i = 0; i < b->nodes; i++) {
        dp_assert(dp_codec_check(blob, b->n) == DP_OK);
    }
    const dp_consensus_items items = {.blobs = blobs, .q = b->q, .n = b->nodes};
    dp_assert(dp_consensus_apply(b->theta, NULL, b->n, &items, &outer, NULL) == DP_OK);
    return bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static dp_part_place place_of(const bench *b, uint32_t p)
{
    dp_part_place place;
    dp_assert(dp_part_place_of(b->ranges[p], b->n, &place) == DP_OK);
    return place;
}

/* For the node that owns the first part. */
static double round_of_parts(bench *b)
{
    dp_part_blob parts[DP_PARTS_MAX];
    dp_view views[NODES_MAX];
    unsigned __int128 energy = 0;
    const dp_part_items items = {.blobs = views, .q = b->q, .n = b->nodes};
    dp_part_sum sum;
    dp_buf_clear(&b->sum);
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_assert(dp_part_cut(dp_buf_view(&b->blob), b->n, &b->cuts, parts, &energy) == DP_OK);
    for (uint32_t i = 0; i < b->nodes; i++) {
        views[i] = dp_buf_view(&b->pieces[0]);
        dp_assert(dp_part_energy(views[i], place_of(b, 0), &energy) == DP_OK);
    }
    dp_assert(dp_part_reduce(b->codec, place_of(b, 0), &items, &b->sum, &sum) == DP_OK);
    for (uint32_t p = 0; p < b->nodes; p++) {
        views[p] = p == 0 ? dp_buf_view(&b->sum) : dp_buf_view(&b->pieces[p]);
        dp_assert(dp_part_energy(views[p], place_of(b, p), &energy) == DP_OK);
    }
    const dp_part_results results = {
        .ranges = b->ranges, .blobs = views, .q = b->whole, .n = b->nodes};
    dp_part_place places[DP_PARTS_MAX];
    dp_assert(dp_part_places(&results, b->n, places) == DP_OK);
    const dp_consensus_items found = {
        .blobs = views, .q = b->whole, .places = places, .n = b->nodes};
    dp_assert(dp_consensus_apply(b->theta, NULL, b->n, &found, &outer, NULL) == DP_OK);
    return bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static void open_nodes(bench *b, uint32_t nodes)
{
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    b->nodes = nodes;
    b->cuts = (dp_part_cuts){.n = nodes};
    for (uint32_t p = 0; p < nodes; p++) {
        b->cuts.first[p] = (uint16_t)(DP_PART_WHOLE / nodes * p);
        b->q[p] = q_one / nodes;
        b->whole[p] = q_one;
    }
    dp_assert(dp_part_cut(dp_buf_view(&b->blob), b->n, &b->cuts, parts, &energy) == DP_OK);
    for (uint32_t p = 0; p < nodes; p++) {
        const dp_view header = dp_view_of(parts[p].header, sizeof parts[p].header);
        b->ranges[p] = dp_part_range_of(&b->cuts, p);
        dp_buf_init(&b->pieces[p], header.size + parts[p].runs.size);
        dp_assert(dp_buf_append(&b->pieces[p], header) == DP_OK);
        dp_assert(dp_buf_append(&b->pieces[p], parts[p].runs) == DP_OK);
    }
    dp_buf_init(&b->sum, dp_codec_bytes_max(b->codec, b->n));
}

static void close_nodes(bench *b)
{
    for (uint32_t p = 0; p < b->nodes; p++) {
        dp_buf_close(&b->pieces[p]);
    }
    dp_buf_close(&b->sum);
}

static void report(bench *b, uint32_t nodes, bool json, bool first)
{
    double whole = INFINITY;
    double parts = INFINITY;
    open_nodes(b, nodes);
    for (int i = 0; i < REPEATS; i++) {
        whole = fmin(whole, whole_exchange(b));
        parts = fmin(parts, round_of_parts(b));
    }
    close_nodes(b);
    const double per = 1e9 / (double)b->n;
    const char *const name = dp_codec_name(b->codec->kind);
    if (json) {
        printf("%s{\"codec\": \"%s\", \"nodes\": %u, \"elements\": %zu, \"whole_ns\": %.3f, "
               "\"parts_ns\": %.3f, \"parts_of_whole\": %.3f}",
               first ? "[" : ", ", name, nodes, b->n, whole * per, parts * per, parts / whole);
        return;
    }
    printf("%-5s %2u nodes: whole %6.2f, parts %6.2f ns per element, parts / whole %.2f\n", name,
           nodes, whole * per, parts * per, parts / whole);
}

static void run(bench *b, uint32_t only, bool json)
{
    static const dp_codec_kind kinds[] = {DP_CODEC_INT8, DP_CODEC_INT4, DP_CODEC_FP32};
    dp_rng rng;
    dp_rng_init(&rng, 1);
    for (size_t i = 0; i < b->n; i++) {
        b->theta[i] = ((float)dp_rng_below(&rng, 2000001) - 1e6F) * 1e-8F;
    }
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const dp_codec codec = dp_codec_default(kinds[k]);
        b->codec = &codec;
        dp_buf_init(&b->blob, dp_codec_bytes_max(&codec, b->n));
        dp_assert(dp_codec_encode(&codec, b->theta, b->n, &b->blob) == DP_OK);
        for (uint32_t nodes = 2; nodes <= NODES_MAX; nodes *= 2) {
            if (only == 0 || nodes == only) {
                report(b, nodes, json, k == 0 && (nodes == 2 || nodes == only));
            }
        }
        dp_buf_close(&b->blob);
    }
    if (json) {
        puts("]");
    }
}

int main(int argc, char **argv)
{
    bench b = {.n = (size_t)1 << 22};
    uint32_t only = 0;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--elements") == 0 && i + 1 < argc) {
            b.n = (size_t)strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--nodes") == 0 && i + 1 < argc) {
            only = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else {
            fputs("usage: bench_parts [--json] [--elements N] [--nodes 2|4|8|16|32]\n", stderr);
            return 64;
        }
    }
    if (b.n == 0 || b.n > DP_CODEC_ELEMENTS_MAX || only > NODES_MAX || (only & (only - 1)) != 0 ||
        only == 1) {
        fputs("bench_parts: not so many elements or nodes\n", stderr);
        return 65;
    }
    b.theta = dp_alloc(b.n, sizeof *b.theta);
    if (b.theta == NULL) {
        fputs("bench_parts: there is no memory\n", stderr);
        return 1;
    }
    run(&b, only, json);
    dp_free(b.theta);
    return 0;
}
