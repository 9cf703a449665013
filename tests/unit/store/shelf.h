/* Shared by the store's tests: a store in a folder of its own, and bytes that differ by seed. */
#ifndef DP_TESTS_UNIT_STORE_SHELF_H
#define DP_TESTS_UNIT_STORE_SHELF_H

#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "store/object.h"

typedef struct shelf {
    tempdir dir;
    char path[TEMPDIR_FILE_MAX]; /* Of the store. */
    dp_store *store;
    dp_store_options options;
    dp_store_report report;
} shelf;

static inline void shelf_reopen(shelf *s)
{
    dp_why why;
    dp_store_close(s->store);
    s->store = NULL;
    const dp_status status = dp_store_open(&s->store, s->path, &s->options, &s->report, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
}

/* A small ballast keeps the tests fast. */
static inline void shelf_open(shelf *s)
{
    memset(s, 0, sizeof *s);
    tempdir_open(&s->dir);
    tempdir_file(&s->dir, "store", s->path);
    s->options = (dp_store_options){.reserve_bytes = 64 * 1024};
    shelf_reopen(s);
}

static inline void shelf_close(shelf *s)
{
    dp_store_close(s->store);
    s->store = NULL;
    tempdir_close(&s->dir);
}

/* Path of a file in the store's directory. */
static inline const char *shelf_file(const shelf *s, const char *name)
{
    static char path[TEMPDIR_FILE_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", s->path, name);
    return path;
}

static inline uint8_t *noise(uint64_t seed, size_t size)
{
    dp_rng rng;
    uint8_t *bytes = malloc(size + 8);
    assert_non_null(bytes);
    dp_rng_init(&rng, seed);
    for (size_t i = 0; i < size; i += 8) {
        const uint64_t word = dp_rng_next(&rng);
        memcpy(bytes + i, &word, 8);
    }
    return bytes;
}

static inline dp_hash name_of(uint64_t number)
{
    return dp_hash_of("test", dp_view_of(&number, sizeof number));
}

static inline dp_pin pin_of(dp_pin_kind kind, uint64_t round)
{
    return (dp_pin){.run = name_of(1000), .kind = kind, .round = round};
}

/* Puts an object of noise and gives its root. */
static inline dp_hash put_noise(dp_store *store, uint64_t seed, size_t size, dp_pin_kind kind,
                                uint64_t round)
{
    const dp_pin pin = pin_of(kind, round);
    dp_hash root;
    uint8_t *bytes = noise(seed, size);
    CHECK_OK(dp_object_put(store, dp_view_of(bytes, size), &pin, &root));
    free(bytes);
    return root;
}

/* Is the object there, whole, and the noise of that seed? */
static inline bool holds_noise(dp_store *store, const dp_hash *root, uint64_t seed, size_t size)
{
    uint8_t *bytes = noise(seed, size);
    uint8_t *got = malloc(size + 8);
    assert_non_null(got);
    const bool same =
        dp_object_read(store, root, got, size) == DP_OK && memcmp(got, bytes, size) == 0;
    free(got);
    free(bytes);
    return same;
}

/* Flip one bit of a file for each place where pattern (size bytes) occurs; the number of places. */
static inline unsigned flip_after(const char *path, const uint8_t *pattern, size_t size)
{
    unsigned places = 0;
    FILE *file = fopen(path, "r+b");
    assert_non_null(file);
    fseek(file, 0, SEEK_END);
    const long end = ftell(file);
    uint8_t *bytes = malloc((size_t)end);
    assert_non_null(bytes);
    rewind(file);
    assert_int_equal(fread(bytes, 1, (size_t)end, file), end);
    for (long at = 0; at + (long)size <= end; at++) {
        if (memcmp(bytes + at, pattern, size) == 0) {
            bytes[at] ^= 1;
            places++;
        }
    }
    rewind(file);
    assert_int_equal(fwrite(bytes, 1, (size_t)end, file), end);
    assert_int_equal(fclose(file), 0);
    free(bytes);
    return places;
}

#endif
