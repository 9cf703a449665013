/* Encoding on a card: every byte as the CPU's, and as the golden blobs'. */
#include <math.h>

#include "base/run/codec_kind.h"
#include "tests/unit/compute/golden_codec.h"
#include "tests/unit/cuda/blob_kit.h"

/* Payload by the card; returns its bytes, or SIZE_MAX where it says that a is bad. */
static size_t encode(const dp_codec *codec, const float *a, size_t n, uint8_t *out)
{
    const cudaStream_t stream = card_open();
    const dp_cuda_blob options = dp_cuda_blob_of(codec);
    const size_t room = dp_codec_bytes_max(codec, n) - DP_CODEC_HEADER_BYTES;
    const uint32_t none = 0;
    uint8_t *const place = card_put(NULL, room + 8);
    const dp_cuda_encoding to = {
        /* No better aligned than it must be. */
        .out = place + 8,
        .bytes = card_put(NULL, sizeof(uint64_t)),
        .bad = card_put(&none, sizeof none),
        .slots = card_put(NULL, dp_cuda_slot_bytes(&options, n)),
        .offsets = card_put(NULL, (dp_cuda_runs(n) + 1) * sizeof(uint64_t)),
    };
    float *const there = card_put(a, n * sizeof *a);
    CHECK_OK(dp_cuda_encode(there, n, &options, &to, stream));
    uint64_t bytes;
    uint32_t bad;
    card_get(to.bytes, &bytes, sizeof bytes);
    card_get(to.bad, &bad, sizeof bad);
    CHECK(bad != 0 || bytes <= room);
    if (bad == 0) {
        card_get(to.out, out, bytes);
    }
    void *const all[] = {place, to.bytes, to.bad, to.slots, to.offsets, there};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        card_free(all[i]);
    }
    return bad != 0 ? SIZE_MAX : bytes;
}

static void same_as_the_cpu(const dp_codec *codec, const float *a, size_t n)
{
    static uint8_t payload[4 * KIT_MOST + 4096];
    dp_buf blob;
    dp_buf_init(&blob, dp_codec_bytes_max(codec, n));
    CHECK_OK(dp_codec_encode(codec, a, n, &blob));
    const size_t bytes = encode(codec, a, n, payload);
    const uint8_t *const wanted = blob.data + DP_CODEC_HEADER_BYTES;
    size_t at = 0;
    while (at < bytes && at < blob.size - DP_CODEC_HEADER_BYTES && payload[at] == wanted[at]) {
        at++;
    }
    if (bytes != blob.size - DP_CODEC_HEADER_BYTES || at != bytes) {
        print_error("%s (block %u, keep %u, bits %u) of %zu: %zu bytes, wanted %zu; byte %zu\n",
                    dp_codec_name(codec->kind), codec->block, codec->keep, codec->bits, n, bytes,
                    blob.size - DP_CODEC_HEADER_BYTES, at);
        fail();
    }
    dp_buf_close(&blob);
}

static void every_codec_writes_the_bytes_of_the_cpu(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 1, 2, 33, 255, 4095, 4097, KIT_MOST};
    static float a[KIT_MOST];
    for (size_t c = 0; c < KIT_CODECS; c++) {
        const dp_codec codec = kit_codec(c);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            kit_fill(a, sizes[s], (c + s) % KIT_SHAPES, 31 * c + s);
            same_as_the_cpu(&codec, a, sizes[s]);
        }
    }
}

static void every_kind_of_update_does(void **state)
{
    (void)state;
    static float a[KIT_MOST];
    const size_t n = DP_CODEC_RUN + 1001;
    for (size_t c = 2; c < KIT_CODECS; c++) {
        const dp_codec codec = kit_codec(c);
        for (size_t shape = 0; shape < KIT_SHAPES; shape++) {
            kit_fill(a, n, shape, 1000 + shape);
            card_order(shape);
            same_as_the_cpu(&codec, a, n);
        }
    }
    card_order(0);
}

static void every_size_of_block_does(void **state)
{
    (void)state;
    static float a[KIT_MOST];
    static const dp_codec_kind kinds[] = {DP_CODEC_INT8, DP_CODEC_INT4};
    static const float units[] = {1, 0x1p-24F, 0x1p12F, 0x1p21F, 0x1p58F};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        const dp_codec_row *const row = dp_codec_row_of(kinds[k]);
        for (uint32_t block = row->block_min; block <= row->block_max; block *= 2) {
            const dp_codec codec = {.kind = kinds[k], .block = block};
            for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
                /* Up to one element of another tile of 8192, and short of the first. */
                const size_t n =
                    u == 0 ? 2 * DP_CODEC_RUN + 1 : 2 * DP_CODEC_RUN - 3 * block / 2 - u;
                kit_fill(a, n, u % 2 == 0 ? 0 : 1, block + u);
                for (size_t i = 0; i < n; i++) {
                    a[i] *= units[u];
                }
                card_order(block + u);
                same_as_the_cpu(&codec, a, n);
            }
        }
    }
    const dp_codec none = {.kind = DP_CODEC_INT8, .block = 64};
    const dp_cuda_blob options = dp_cuda_blob_of(&none);
    CHECK_STATUS(dp_cuda_encode(NULL, 1, &options, &(dp_cuda_encoding){0}, card_open()), DP_BADARG);
    card_order(0);
}

/* Values at the middle between two steps, one float above and one below it; and other values in
 * between. */
static void steps_are_those_of_the_quotient(void **state)
{
    (void)state;
    static float a[KIT_MOST];
    static const uint16_t scales[] = {0x0001, 0x0003, 0x03ff, 0x0400, 0x07ff, 0x2a2b,
                                      0x3555, 0x3c00, 0x3fff, 0x57fe, 0x7bff};
    const dp_codec codecs[] = {{.kind = DP_CODEC_INT8, .block = 256},
                               {.kind = DP_CODEC_INT4, .block = 64}};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        const float scale = dp_half_value(scales[s]);
        for (size_t c = 0; c < 2; c++) {
            const float most = c == 0 ? 127 : 7;
            for (size_t i = 0; i < KIT_MOST; i++) {
                const size_t place = i % codecs[c].block;
                const float middle = ((float)(i / 3 % (size_t)most) + 0.5F) * scale;
                const uint32_t bits = dp_float_bits(middle) + (uint32_t)(i % 3) - 1;
                a[i] = (i & 1) != 0 ? -dp_float_of_bits(bits) : dp_float_of_bits(bits);
                a[i] = place == 0 ? most * scale : a[i];
            }
            same_as_the_cpu(&codecs[c], a, KIT_MOST);
        }
    }
}

/* Runs of which the largest are few and everywhere, together, alike, of one warp, or all that is
 * not zero. */
static float of_shape(unsigned shape, size_t i, float bell)
{
    const size_t at = i % DP_CODEC_RUN;
    switch (shape) {
    case 1: /* A stretch of large ones. */
        return at >= 900 && at < 1700 ? bell * 64 : bell;
    case 2: /* Steps: ties at the limit of the kept elements. */
        return (float)(int)(bell * 24) * 0x1p-7F;
    case 3: /* 128 neighbours above all others. */
        return at >= 2048 && at < 2176 ? bell * 0x1p40F : bell;
    case 4: /* Mostly zeros. */
        return i % 41 == 3 ? bell : 0;
    case 5: /* From subnormal to large. */
        return ldexpf(bell, (int)(i * 7919 % 180) - 120);
    case 6: /* More than any list has room for, all alike. */
        return i % 12 == 0 ? 1.0F : bell * 1e-3F;
    case 7: /* Rising. */
        return (float)at;
    case 8: /* All within a factor of two. */
        return dp_float_of_bits(0x3f000000U | (uint32_t)(i * 2654435761U) >> 9);
    default:
        return bell;
    }
}

static void the_largest_of_every_kind_of_run_are_the_cpu_s(void **state)
{
    (void)state;
    static const uint32_t keeps[] = {16, 32, 64, 128};
    static float a[KIT_MOST];
    static float bells[KIT_MOST];
    kit_fill(bells, KIT_MOST, 0, 7);
    for (size_t keep = 0; keep < sizeof keeps / sizeof keeps[0]; keep++) {
        const dp_codec codec = {.kind = DP_CODEC_SPARSE, .keep = keeps[keep], .bits = 2};
        for (unsigned shape = 0; shape < 9; shape++) {
            for (size_t i = 0; i < KIT_MOST; i++) {
                a[i] = of_shape(shape, i, bells[i]);
            }
            card_order(shape);
            same_as_the_cpu(&codec, a, KIT_MOST);
        }
    }
    card_order(0);
}

static void check_golden(const golden_line *line)
{
    static uint8_t payload[1 << 17];
    CHECK(dp_codec_bytes_max(&line->codec, line->n) <= sizeof payload);
    const size_t bytes = encode(&line->codec, line->a, line->n, payload);
    CHECK(bytes != SIZE_MAX);
    char *const text = test_malloc(2 * bytes + 1);
    dp_hex(dp_view_of(payload, bytes), text);
    CHECK(strcmp(text, line->hex + (size_t)2 * DP_CODEC_HEADER_BYTES) == 0);
    test_free(text);
}

static void the_golden_blobs_come_out(void **state)
{
    (void)state;
    golden_each(check_golden);
}

static void a_refusal_of_the_cpu_is_reported(void **state)
{
    (void)state;
    static const float values[] = {NAN, INFINITY, -INFINITY, 0x1.000002p60F};
    static float a[KIT_MOST];
    static uint8_t payload[4 * KIT_MOST + 4096];
    const size_t n = DP_CODEC_RUN + 70;
    for (size_t c = 0; c < KIT_CODECS; c++) {
        const dp_codec codec = kit_codec(c);
        for (size_t v = 0; v < 4; v++) {
            kit_fill(a, n, 0, c);
            a[v % 2 == 0 ? n - 1 : 17] = values[v];
            dp_buf blob;
            dp_buf_init(&blob, dp_codec_bytes_max(&codec, n));
            const dp_status status = dp_codec_encode(&codec, a, n, &blob);
            CHECK((status == DP_DIVERGED) == (encode(&codec, a, n, payload) == SIZE_MAX));
            dp_buf_close(&blob);
        }
    }
    const dp_cuda_blob none = {.kind = DP_CODEC_KINDS};
    CHECK_STATUS(dp_cuda_encode(NULL, 1, &none, &(dp_cuda_encoding){0}, card_open()), DP_BADARG);
    const dp_cuda_blob gone = {.kind = (dp_codec_kind)5};
    CHECK_STATUS(dp_cuda_encode(NULL, 1, &gone, &(dp_cuda_encoding){0}, card_open()), DP_BADARG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_writes_the_bytes_of_the_cpu),
        cmocka_unit_test(every_kind_of_update_does),
        cmocka_unit_test(every_size_of_block_does),
        cmocka_unit_test(steps_are_those_of_the_quotient),
        cmocka_unit_test(the_largest_of_every_kind_of_run_are_the_cpu_s),
        cmocka_unit_test(the_golden_blobs_come_out),
        cmocka_unit_test(a_refusal_of_the_cpu_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
