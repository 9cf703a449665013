/* The blobs of tests/golden/codec.txt, line by line. They come from tests/golden/make_codec.py,
 * which was written from the formats. */
#ifndef DP_TESTS_UNIT_COMPUTE_GOLDEN_CODEC_H
#define DP_TESTS_UNIT_COMPUTE_GOLDEN_CODEC_H

#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/codec/codec.h"
#include "compute/cpu/half.h"

enum { GOLDEN_LINES = 44 };

/* One line; a and hex are valid until the next. */
typedef struct golden_line {
    dp_codec codec;
    size_t n;
    float *a;
    unsigned __int128 energy;
    uint32_t crc; /* of the decoded floats */
    const char *hex;
} golden_line;

/* value() of make_codec.py. */
static inline float golden_value(uint64_t seed, uint64_t i)
{
    const uint64_t bits = dp_mix64(seed * 1000003 + i);
    if (seed % 2 == 0) {
        return (bits & 7) == 0 ? 0 : (float)((int64_t)(bits >> 43) - (1 << 20)) * 0x1p-30F;
    }
    const uint32_t field = (uint32_t)((bits >> 32) % 50) - 40 + 127;
    return dp_float_of_bits((uint32_t)(bits >> 63) << 31 | field << 23 | (bits & 0x7fffff));
}

static inline uint64_t golden_number(char **rest, int base)
{
    return strtoull(strtok_r(NULL, " ", rest), NULL, base);
}

static inline unsigned __int128 golden_wide(const char *text)
{
    unsigned __int128 value = 0;
    for (const char *digit = text; *digit != '\0'; digit++) {
        value = value << 4 | (unsigned)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
    }
    return value;
}

/* All lines of the file to use(). */
static inline void golden_each(void (*use)(const golden_line *line))
{
    static char text[1 << 16];
    FILE *const file = fopen("tests/golden/codec.txt", "r");
    CHECK(file != NULL);
    unsigned count = 0;
    while (fgets(text, sizeof text, file) != NULL) {
        if (text[0] == '#') {
            continue;
        }
        char *rest = NULL;
        golden_line line = {0};
        CHECK(dp_codec_named(strtok_r(text, " ", &rest), &line.codec.kind));
        line.codec.block = (uint32_t)golden_number(&rest, 10);
        line.codec.keep = (uint32_t)golden_number(&rest, 10);
        line.codec.bits = (uint32_t)golden_number(&rest, 10);
        line.n = (size_t)golden_number(&rest, 10);
        const uint64_t seed = golden_number(&rest, 10);
        line.energy = golden_wide(strtok_r(NULL, " ", &rest));
        line.crc = (uint32_t)golden_number(&rest, 16);
        line.hex = strtok_r(NULL, " \n", &rest);
        line.a = test_calloc(line.n + 1, sizeof *line.a);
        for (size_t i = 0; i < line.n; i++) {
            line.a[i] = golden_value(seed, i);
        }
        use(&line);
        test_free(line.a);
        count++;
    }
    fclose(file);
    CHECK(count == GOLDEN_LINES);
}

#endif
