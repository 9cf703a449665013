/* The cost of the ledger's digest, which every node computes once per record. All members hold a
 * lease of which a given number of ranges is left. Beside it stands the hash of as many bytes in
 * one piece.
 *   given */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "bench/clock.h"
#include "gossip/ledger/ledger.h"

enum { TURNS = 25, ROW_BYTES = 128 + 8, RANGE_BYTES = 16 };

/* CPU time, so that other processes have little influence. */
static void fill(dp_ledger *ledger, uint32_t members, uint32_t ranges)
{
    for (uint32_t i = 0; i < members; i++) {
        dp_roster_entry *entry = &ledger->roster[i];
        *entry = (dp_roster_entry){.caps = DP_CAP_TRAIN, .admitted_slot = i + 1, .w = 1000 + i};
        memcpy(entry->peer.bytes, &i, sizeof i);
        entry->lease.n = ranges;
        for (uint32_t r = 0; r < ranges; r++) {
            entry->lease.ranges[r] = (dp_sample_range){.first = 1000 * i + 10 * r, .count = 5};
        }
        entry->lease.granted = 5 * (uint64_t)ranges;
    }
    ledger->n_roster = members;
}

static void measure(dp_ledger *ledger, uint32_t members, uint32_t ranges, bool json)
{
    const size_t size = (size_t)members * (ROW_BYTES + (size_t)ranges * RANGE_BYTES);
    uint8_t *bytes = dp_alloc(size, 1);
    double took[2][TURNS];
    dp_assert(bytes != NULL);
    memset(bytes, 7, size);
    fill(ledger, members, ranges);
    for (int turn = 0; turn < TURNS; turn++) {
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        const dp_hash digest = dp_ledger_digest(ledger);
        const double middle = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        const dp_hash flat = dp_hash_of("bench/flat", dp_view_of(bytes, size));
        took[0][turn] = middle - start;
        took[1][turn] = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - middle;
        dp_assert(!dp_hash_equal(&digest, &flat));
    }
    dp_free(bytes);
    const double own = bench_median(took[0], TURNS);
    const double flat = bench_median(took[1], TURNS);
    printf(json ? "{\"members\":%u,\"ranges\":%u,\"bytes\":%zu,\"digest_ms\":%.4f,\"flat_ms\":%.4f,"
                  "\"ratio\":%.3f}\n"
                : "%u members, %u ranges each, %zu bytes: %.3f ms, in one piece %.3f ms, ratio "
                  "%.2f\n",
           members, ranges, size, 1e3 * own, 1e3 * flat, own / flat);
}

int main(int argc, char **argv)
{
    uint32_t members = 2048;
    uint32_t ranges = 0;
    bool json = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--members") == 0 && i + 1 < argc) {
            members = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--ranges") == 0 && i + 1 < argc) {
            ranges = (uint32_t)strtoul(argv[++i], NULL, 10);
        } else {
            members = 0;
        }
    }
    if (members == 0 || members > DP_MEMBERS_MAX || ranges > DP_LEASE_RANGES_MAX) {
        printf("usage: bench_ledger [--json] [--members 1..%d] [--ranges 1..%d]\n", DP_MEMBERS_MAX,
               DP_LEASE_RANGES_MAX);
        return 64;
    }
    dp_manifest manifest;
    dp_ledger ledger;
    const dp_run_id run = dp_hash_of("bench/run", dp_view_text("ledger"));
    dp_manifest_default(&manifest);
    manifest.members_max = members;
    if (dp_ledger_open(&ledger, &manifest, &run, 1) != DP_OK) {
        puts("bench_ledger: out of memory");
        return 1;
    }
    for (uint32_t n = ranges > 0 ? ranges : 1;
         n <= (ranges > 0 ? ranges : (uint32_t)DP_LEASE_RANGES_MAX); n += ranges > 0 ? 1 : n) {
        measure(&ledger, ledger.capacity, n, json);
    }
    dp_ledger_close(&ledger);
    return 0;
}
