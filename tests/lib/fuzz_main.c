/* Stands in for libFuzzer in ordinary builds: runs a fuzz target over the files of its corpus, each
 * also truncated and damaged a few hundred times, from a fixed seed. A missing corpus counts as
 * empty. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "tests/lib/mutate.h"

enum { INPUT_BYTES_MAX = 1 << 20, MUTANTS_PER_FILE = 300, NAME_MAX_BYTES = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Runs on a copy of exact size, so that the address sanitizer notices a read of one byte beyond
 * it. */
static void run_exact(const uint8_t *data, size_t size)
{
    uint8_t *const copy = malloc(size > 0 ? size : 1);

    if (copy == NULL) {
        abort();
    }
    memcpy(copy, data, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static void run_mutants(dp_rng *rng, const uint8_t *data, size_t size)
{
    const size_t capacity = 2 * size + 64;
    uint8_t *const damaged = malloc(capacity);

    if (damaged == NULL) {
        abort();
    }
    run_exact(data, size);
    for (unsigned i = 0; i < MUTANTS_PER_FILE; i++) {
        memcpy(damaged, data, size);
        run_exact(damaged, mutate(rng, damaged, size, capacity));
    }
    free(damaged);
}

static int run_file(dp_rng *rng, const char *path)
{
    static uint8_t input[INPUT_BYTES_MAX];
    FILE *const file = fopen(path, "rb");

    if (file == NULL) {
        fprintf(stderr, "cannot read %s\n", path);
        return 1;
    }
    run_mutants(rng, input, fread(input, 1, sizeof input, file));
    fclose(file);
    return 0;
}

int main(int argc, char **argv)
{
    static uint8_t noise[256];
    dp_rng rng;
    int failures = 0;

    dp_rng_init(&rng, 1);
    run_exact(noise, 0);
    for (size_t i = 0; i < sizeof noise; i++) {
        noise[i] = (uint8_t)dp_rng_next(&rng);
    }
    run_mutants(&rng, noise, sizeof noise);
    for (int i = 1; i < argc; i++) {
        DIR *const folder = opendir(argv[i]);
        const struct dirent *entry = NULL;
        unsigned files = 0;

        while (folder != NULL && (entry = readdir(folder)) != NULL) {
            char path[NAME_MAX_BYTES];

            if (entry->d_name[0] != '.' &&
                snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name) < (int)sizeof path) {
                failures += run_file(&rng, path);
                files++;
            }
        }
        if (folder != NULL) {
            closedir(folder);
        }
        printf("%s: %u files\n", argv[i], files);
    }
    return failures == 0 ? 0 : 1;
}
