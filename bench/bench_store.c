/* Speed at which an object of 256 MiB becomes durable, beside write + fsync of the same bytes in
 * the same run, alternating. Both sides have equal conditions: in the first round both files are
 * new and grow; later the raw file is overwritten and the store reuses its free pages. The figures
 * are medians of the later rounds; "fresh" is the first.
 * bench_store [--json] [--mib N] [--rounds R] [--dir DIR]   256 MiB, 6 rounds, a new folder under
 *   TMPDIR or /tmp */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/rng.h"
#include "bench/clock.h"
#include "store/object.h"

enum { ROUNDS_MAX = 31, STEP_BYTES = 4 * 1024 * 1024 };

struct figures {
    double raw[ROUNDS_MAX];    /* MiB/s */
    double hashed[ROUNDS_MAX]; /* dp_object_put_hashed: leaves computed elsewhere. */
    double whole[ROUNDS_MAX];  /* dp_object_put: includes hashing on this core. */
    double read[ROUNDS_MAX];   /* Verified read from the page cache. */
    double drop[ROUNDS_MAX];   /* Seconds to drop the object. */
    double written;            /* Bytes written per byte stored, worst round. */
};

/* Bytes that this process has written to disks. */
static uint64_t written_bytes(void)
{
    char line[128];
    unsigned long long bytes = 0;
    FILE *file = fopen("/proc/self/io", "r");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "write_bytes: ", 13) == 0) {
            bytes = strtoull(line + 13, NULL, 10);
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return bytes;
}

static double raw_write(const char *dir, const uint8_t *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/raw", dir);
    const double start = bench_seconds(CLOCK_MONOTONIC);
    const int fd = open(path, O_WRONLY | O_CREAT, 0600);
    dp_assert(fd >= 0);
    for (size_t at = 0; at < size; at += STEP_BYTES) {
        const size_t step = size - at < STEP_BYTES ? size - at : STEP_BYTES;
        dp_assert(write(fd, bytes + at, step) == (ssize_t)step);
    }
    dp_assert(fsync(fd) == 0);
    const double took = bench_seconds(CLOCK_MONOTONIC) - start;
    close(fd);
    return took;
}

static void drop(dp_store *store, const dp_hash *root, const dp_pin *pin)
{
    dp_assert(dp_object_unpin(store, root, pin) == DP_OK);
    dp_assert(dp_object_collect(store, NULL) == DP_OK);
}

/* New bytes in each round, so that the store does not have the object already. */
static void one_round(struct figures *out, int i, dp_store *store, const char *dir, uint8_t *bytes,
                      size_t size)
{
    static dp_hash leaves[DP_CHUNKS_MAX];
    const dp_pin pin = {.kind = DP_PIN_STATE, .round = (uint64_t)i};
    const double mib = (double)size / (1024.0 * 1024.0);
    dp_hash root;
    dp_rng rng;
    dp_rng_init(&rng, (uint64_t)i + 1);
    for (size_t at = 0; at + 8 <= size; at += 8) {
        const uint64_t word = dp_rng_next(&rng);
        memcpy(bytes + at, &word, sizeof word);
    }
    out->raw[i] = mib / raw_write(dir, bytes, size);
    dp_object_hash(dp_view_of(bytes, size), leaves);
    const uint64_t before = written_bytes();
    double start = bench_seconds(CLOCK_MONOTONIC);
    dp_assert(dp_object_put_hashed(store, dp_view_of(bytes, size), leaves, &pin, &root) == DP_OK);
    out->hashed[i] = mib / (bench_seconds(CLOCK_MONOTONIC) - start);
    const double ratio = (double)(written_bytes() - before) / (double)size;
    out->written = ratio > out->written ? ratio : out->written;
    start = bench_seconds(CLOCK_MONOTONIC);
    dp_assert(dp_object_verify(store, &root) == DP_OK);
    out->read[i] = mib / (bench_seconds(CLOCK_MONOTONIC) - start);
    start = bench_seconds(CLOCK_MONOTONIC);
    drop(store, &root, &pin);
    out->drop[i] = bench_seconds(CLOCK_MONOTONIC) - start;
    start = bench_seconds(CLOCK_MONOTONIC);
    dp_assert(dp_object_put(store, dp_view_of(bytes, size), &pin, &root) == DP_OK);
    out->whole[i] = mib / (bench_seconds(CLOCK_MONOTONIC) - start);
    drop(store, &root, &pin);
}

static void print_figures(struct figures *f, int rounds, size_t mib, bool json)
{
    const double fresh = f->hashed[0] / f->raw[0];
    const double raw = bench_median(f->raw + 1, (size_t)rounds - 1);
    const double hashed = bench_median(f->hashed + 1, (size_t)rounds - 1);
    const double whole = bench_median(f->whole + 1, (size_t)rounds - 1);
    const char *format =
        json ? "{\"object_mib\":%zu,\"rounds\":%d,\"raw_mib_s\":%.1f,\"put_hashed_mib_s\":%.1f,"
               "\"put_mib_s\":%.1f,\"ratio_fresh\":%.3f,\"ratio_hashed\":%.3f,\"ratio\":%.3f,"
               "\"verify_mib_s\":%.1f,"
               "\"drop_s\":%.3f,\"written_ratio\":%.3f}\n"
             : "object             %zu MiB, median of %d rounds\n"
               "raw write+fsync    %.1f MiB/s\nput, leaves given  %.1f MiB/s\n"
               "put, hash included %.1f MiB/s\nratio, both fresh  %.3f\n"
               "ratio, leaves given %.3f\nratio              %.3f\n"
               "verified read      %.1f MiB/s\ndrop               %.3f s\nbytes written      "
               "%.3fx\n";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* Both point to the literals above. */
    printf(format, mib, rounds, raw, hashed, whole, fresh, hashed / raw, whole / raw,
           bench_median(f->read + 1, (size_t)rounds - 1),
           bench_median(f->drop + 1, (size_t)rounds - 1), f->written);
#pragma GCC diagnostic pop
}

int main(int argc, char **argv)
{
    static struct figures figures;
    bool json = false;
    size_t mib = 256;
    int rounds = 6;
    char dir[256];
    char command[300];
    const char *tmp = getenv("TMPDIR");
    const char *under = tmp != NULL ? tmp : "/tmp";
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--mib") == 0 && more) {
            mib = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--rounds") == 0 && more) {
            rounds = (int)strtol(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--dir") == 0 && more) {
            under = argv[++i];
        } else {
            fprintf(stderr, "bench_store [--json] [--mib N] [--rounds R] [--dir DIR]\n");
            return 64;
        }
    }
    if (mib < 1 || mib > 4096 || rounds < 2 || rounds > ROUNDS_MAX || strlen(under) > 200) {
        fprintf(stderr, "bench_store: 1 to 4096 MiB, 2 to %d rounds\n", ROUNDS_MAX);
        return 64;
    }
    snprintf(dir, sizeof dir, "%s/bench_store.XXXXXX", under);
    if (mkdtemp(dir) == NULL) {
        perror(dir);
        return 74;
    }
    dp_store *store = NULL;
    dp_why why;
    if (dp_store_open(&store, dir, NULL, NULL, &why) != DP_OK) {
        fprintf(stderr, "bench_store: %s\n", why.text);
        return 74;
    }
    uint8_t *bytes = malloc(mib << 20);
    dp_assert(bytes != NULL);
    for (int i = 0; i < rounds; i++) {
        one_round(&figures, i, store, dir, bytes, mib << 20);
    }
    print_figures(&figures, rounds, mib, json);
    dp_store_close(store);
    free(bytes);
    static const char *const files[] = {"meta.db", "meta.db-wal", "chunks.db", "chunks.db-journal",
                                        "lock",    "reserve.bin", "raw"};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        snprintf(command, sizeof command, "%s/%s", dir, files[i]);
        unlink(command);
    }
    rmdir(dir);
    return 0;
}
