/* Blobs against those of a second implementation. */
#include "tests/unit/compute/golden_codec.h"

enum { BLOB_MAX = 1 << 20 };

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

/* Checks that this program decodes the blob of the line to its values, and encodes them to the same
 * blob with each table. */
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

static void check_line(const golden_line *line)
{
    check_blob(&line->codec, line->a, line->n, line->hex, line->crc);
    dp_buf blob;
    dp_buf_init(&blob, BLOB_MAX);
    CHECK_OK(dp_codec_encode(&line->codec, line->a, line->n, &blob));
    unsigned __int128 got;
    CHECK_OK(dp_codec_energy(dp_buf_view(&blob), line->n, &got));
    CHECK(got == line->energy);
    dp_buf_close(&blob);
}

static void blobs_equal_those_of_a_second_implementation(void **state)
{
    (void)state;
    golden_each(check_line);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_equal_those_of_a_second_implementation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
