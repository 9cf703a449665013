/* Blobs against those of tests/golden/make_codec.py, which was written from the formats. */
#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/codec.h"
#include "compute/half.h"

enum { BLOB_MAX = 1 << 20, LINE_MAX_BYTES = 1 << 16, LINES = 69 };

/* value() of make_codec.py. */
static float golden_value(uint64_t seed, uint64_t i)
{
    const uint64_t bits = dp_mix64(seed * 1000003 + i);
    if (seed % 2 == 0) {
        return (bits & 7) == 0 ? 0 : (float)((int64_t)(bits >> 43) - (1 << 20)) * 0x1p-30F;
    }
    const uint32_t field = (uint32_t)((bits >> 32) % 50) - 40 + 127;
    return dp_float_of_bits((uint32_t)(bits >> 63) << 31 | field << 23 | (bits & 0x7fffff));
}

static uint64_t number(char **rest, int base)
{
    return strtoull(strtok_r(NULL, " ", rest), NULL, base);
}

static unsigned __int128 wide_hex(const char *text)
{
    unsigned __int128 value = 0;
    for (const char *digit = text; *digit != '\0'; digit++) {
        value = value << 4 | (unsigned)(*digit <= '9' ? *digit - '0' : *digit - 'a' + 10);
    }
    return value;
}

/* CRC-32 as zlib has it. */
static uint32_t crc_of(const uint8_t *bytes, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1) != 0 ? 0xedb88320U : 0);
        }
    }
    return ~crc;
}

/* What this program decodes, and with each table encodes, is what the line says. */
static void check_blob(const dp_codec *codec, const float *a, size_t n, const char *hex,
                       uint32_t crc)
{
    static float d[1 << 13];
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    for (size_t i = 0; dp_codec_ops_at(i) != NULL; i++) {
        dp_buf_clear(&blob);
        CHECK_OK(dp_codec_encode_with(dp_codec_ops_at(i), codec, a, n, &blob));
        char *const text = test_malloc(2 * blob.size + 1);
        dp_hex(dp_buf_view(&blob), text);
        CHECK(strcmp(text, hex) == 0);
        test_free(text);
    }
    CHECK(n <= sizeof d / sizeof d[0]);
    CHECK_OK(dp_codec_decode(dp_buf_view(&blob), d, n));
    CHECK(crc_of((const uint8_t *)d, n * sizeof *d) == crc);
    dp_buf_close(&blob);
}

static void check_line(char *line)
{
    char *rest = NULL;
    dp_codec codec = {0};
    CHECK(dp_codec_named(strtok_r(line, " ", &rest), &codec.kind));
    codec.block = (uint32_t)number(&rest, 10);
    codec.keep = (uint32_t)number(&rest, 10);
    codec.bits = (uint32_t)number(&rest, 10);
    codec.seed = number(&rest, 10);
    const size_t n = (size_t)number(&rest, 10);
    const uint64_t seed = number(&rest, 10);
    const unsigned __int128 energy = wide_hex(strtok_r(NULL, " ", &rest));
    const uint32_t crc = (uint32_t)number(&rest, 16);
    const char *const hex = strtok_r(NULL, " \n", &rest);
    float *const a = test_calloc(n + 1, sizeof *a);
    for (size_t i = 0; i < n; i++) {
        a[i] = golden_value(seed, i);
    }
    check_blob(&codec, a, n, hex, crc);
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(&codec, a, n, &blob));
    unsigned __int128 got;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), n, &got));
    CHECK(got == energy);
    dp_buf_close(&blob);
    test_free(a);
}

static void blobs_equal_those_of_a_second_implementation(void **state)
{
    (void)state;
    FILE *const file = fopen("tests/golden/codec.txt", "r");
    CHECK(file != NULL);
    static char line[LINE_MAX_BYTES];
    unsigned count = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] != '#') {
            check_line(line);
            count++;
        }
    }
    fclose(file);
    CHECK(count == LINES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_equal_those_of_a_second_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
