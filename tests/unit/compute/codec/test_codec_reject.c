/* Payloads that no encoder makes, byte by byte: each is refused, and its neighbour that is right is
 * not. */
#include "tests/lib/check.h"

#include <math.h>
#include <stdio.h>

#include "compute/codec/codec.h"

enum { PAYLOAD_MAX = 24 };

typedef struct payload {
    const char *what;
    dp_codec codec;
    size_t n;
    size_t size;
    dp_status wanted;
    uint8_t bytes[PAYLOAD_MAX];
} payload;

#define INT8                                                                                       \
    {                                                                                              \
        .kind = DP_CODEC_INT8, .block = 256                                                        \
    }
#define INT4                                                                                       \
    {                                                                                              \
        .kind = DP_CODEC_INT4, .block = 64                                                         \
    }
#define SPARSE                                                                                     \
    {                                                                                              \
        .kind = DP_CODEC_SPARSE, .keep = 16, .bits = 2                                             \
    }
#define SPARSE_1                                                                                   \
    {                                                                                              \
        .kind = DP_CODEC_SPARSE, .keep = 16, .bits = 1                                             \
    }

static const payload payloads[] = {
    {"fp32: a number", {.kind = DP_CODEC_FP32}, 1, 4, DP_OK, {0, 0, 0x80, 0x3f}},
    {"fp32: infinite", {.kind = DP_CODEC_FP32}, 1, 4, DP_BADMSG, {0, 0, 0x80, 0x7f}},
    {"fp32: no number", {.kind = DP_CODEC_FP32}, 1, 4, DP_BADMSG, {1, 0, 0x80, 0xff}},
    {"fp32: above 2^60", {.kind = DP_CODEC_FP32}, 1, 4, DP_BADMSG, {1, 0, 0x80, 0x5d}},
    {"bf16: 2^60", {.kind = DP_CODEC_BF16}, 1, 2, DP_OK, {0x80, 0x5d}},
    {"bf16: above 2^60", {.kind = DP_CODEC_BF16}, 1, 2, DP_BADMSG, {0x81, 0x5d}},
    {"bf16: infinite", {.kind = DP_CODEC_BF16}, 1, 2, DP_BADMSG, {0x80, 0xff}},

    {"int8: right", INT8, 2, 4, DP_OK, {0, 0x3c, 127, 0x81}},
    {"int8: -128", INT8, 2, 4, DP_BADMSG, {0, 0x3c, 127, 0x80}},
    {"int8: infinite scale", INT8, 2, 4, DP_BADMSG, {0, 0x7c, 1, 1}},
    {"int8: negative scale", INT8, 2, 4, DP_BADMSG, {0, 0xbc, 1, 1}},
    {"int8: minus 0 as scale", INT8, 2, 4, DP_BADMSG, {0, 0x80, 0, 0}},
    {"int8: steps of nothing", INT8, 2, 4, DP_BADMSG, {0, 0, 0, 1}},
    {"int8: a step too few", INT8, 2, 3, DP_BADMSG, {0, 0x3c, 127}},
    {"int8: a step too many", INT8, 2, 5, DP_BADMSG, {0, 0x3c, 127, 1, 0}},

    {"int4: right", INT4, 3, 4, DP_OK, {0, 0x3c, 0x97, 0x01}},
    {"int4: -8", INT4, 3, 4, DP_BADMSG, {0, 0x3c, 0x87, 0x01}},
    {"int4: -8 at the end", INT4, 3, 4, DP_BADMSG, {0, 0x3c, 0x97, 0x08}},
    {"int4: filled with ones", INT4, 3, 4, DP_BADMSG, {0, 0x3c, 0x97, 0x11}},
    {"int4: steps of nothing", INT4, 3, 4, DP_BADMSG, {0, 0, 0x10, 0x00}},
    {"int4: no number as scale", INT4, 3, 4, DP_BADMSG, {1, 0x7c, 0x11, 0x01}},

    /* Two entries of 32: c_lo 1, c_hi 2, signs 2, high 1, gaps of 0 and 8 q + r: 0 000, 0 000. */
    {"sparse: right", SPARSE, 32, 7, DP_OK, {0, 0x3c, 0, 0x40, 2, 1, 0}},
    {"sparse: zero", SPARSE, 32, 4, DP_OK, {0, 0, 0, 0}},
    {"sparse: something after zero", SPARSE, 32, 5, DP_BADMSG, {0, 0, 0, 0, 0}},
    {"sparse: c_lo without c_hi", SPARSE, 32, 7, DP_BADMSG, {0, 0x3c, 0, 0, 2, 1, 0}},
    {"sparse: c_lo above c_hi", SPARSE, 32, 7, DP_BADMSG, {1, 0x40, 0, 0x40, 2, 1, 0}},
    {"sparse: negative c_lo", SPARSE, 32, 7, DP_BADMSG, {0, 0xbc, 0, 0x40, 2, 1, 0}},
    {"sparse: infinite c_hi", SPARSE, 32, 7, DP_BADMSG, {0, 0x3c, 0, 0x7c, 2, 1, 0}},
    {"sparse: three signs", SPARSE, 32, 7, DP_BADMSG, {0, 0x3c, 0, 0x40, 6, 1, 0}},
    {"sparse: three magnitudes", SPARSE, 32, 7, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 5, 0}},
    /* Gaps 24 + 7 = 31: 111 0 111; the second entry would be element 32. */
    {"sparse: an index out of range", SPARSE, 32, 8, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 1, 0x77, 0}},
    /* Gaps 0 and 24 + 6 = 30: 0 000 111 0 011: elements 0 and 31. */
    {"sparse: the last index", SPARSE, 32, 8, DP_OK, {0, 0x3c, 0, 0x40, 2, 1, 0x70, 0x06}},
    {"sparse: ones without end", SPARSE, 32, 8, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 1, 0xff, 0xff}},
    {"sparse: filled with ones", SPARSE, 32, 8, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 1, 0x70, 0x16}},
    {"sparse: a byte too few", SPARSE, 32, 7, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 1, 0x70}},
    {"sparse: a byte too many", SPARSE, 32, 8, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 1, 0, 0}},
    {"sparse: no gaps", SPARSE, 32, 6, DP_BADMSG, {0, 0x3c, 0, 0x40, 2, 1}},
    {"sparse of signs: right", SPARSE_1, 32, 4, DP_OK, {0, 0x3c, 2, 0}},
    {"sparse of signs: infinite", SPARSE_1, 32, 4, DP_BADMSG, {0, 0x7c, 2, 0}},
};

/* The header that an encoder writes for the codec, and the payload. In memory of its own size, so
 * that a sanitizer sees a read past the end. */
static dp_status status_of(const payload *p, float *d)
{
    static const float zeros[64];
    dp_buf blob;
    dp_buf_init(&blob, 1 << 16);
    CHECK_OK(dp_codec_encode(&p->codec, zeros, p->n, &blob));
    const size_t size = DP_CODEC_HEADER_BYTES + p->size;
    uint8_t *const bytes = test_malloc(size);
    memcpy(bytes, blob.data, DP_CODEC_HEADER_BYTES);
    memcpy(bytes + DP_CODEC_HEADER_BYTES, p->bytes, p->size);
    const dp_status status = dp_codec_decode(dp_view_of(bytes, size), d, p->n);
    CHECK(dp_codec_check(dp_view_of(bytes, size), p->n) == status);
    unsigned __int128 energy;
    CHECK(dp_codec_energy(dp_view_of(bytes, size), p->n, &energy) == status);
    test_free(bytes);
    dp_buf_close(&blob);
    return status;
}

static void payloads_that_lie_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof payloads[0]; i++) {
        float d[64];
        for (size_t j = 0; j < 64; j++) {
            d[j] = 77;
        }
        const dp_status status = status_of(&payloads[i], d);
        if (status != payloads[i].wanted) {
            fprintf(stderr, "%s: %s\n", payloads[i].what, dp_status_name(status));
        }
        CHECK_STATUS(status, payloads[i].wanted);
        for (size_t j = 0; j < payloads[i].n; j++) {
            CHECK(status == DP_OK ? isfinite(d[j]) && d[j] != 77 : d[j] == 77);
        }
    }
}

static void blocks_of_nothing_but_bad_codes_are_refused(void **state)
{
    (void)state;
    static const dp_codec codecs[] = {{.kind = DP_CODEC_INT4, .block = 256},
                                      {.kind = DP_CODEC_INT8, .block = 1024}};
    for (size_t c = 0; c < 2; c++) {
        const float ones[1024] = {1};
        dp_buf blob;
        dp_buf_init(&blob, 1 << 16);
        CHECK_OK(dp_codec_encode(&codecs[c], ones, codecs[c].block, &blob));
        const size_t first = DP_CODEC_HEADER_BYTES + 2;
        const uint8_t bad = codecs[c].kind == DP_CODEC_INT8 ? 0x80 : 0x88;
        memset(blob.data + first, bad, blob.size - first);
        CHECK_STATUS(dp_codec_check(dp_buf_view(&blob), codecs[c].block), DP_BADMSG);
        dp_buf_close(&blob);
    }
}

static void known_payloads_decode_to_known_values(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        float values[4];
    } known[] = {
        {"int8: right", {127, -127}},
        {"int4: right", {7, -7, 1}},
        {"sparse: right", {2, -1, 0, 0}},
        {"sparse of signs: right", {1, -1, 0, 0}},
    };
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        size_t i = 0;
        while (strcmp(payloads[i].what, known[k].what) != 0) {
            i++;
        }
        float d[64];
        CHECK_OK(status_of(&payloads[i], d));
        for (size_t j = 0; j < 4 && j < payloads[i].n; j++) {
            CHECK(d[j] == known[k].values[j]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_that_lie_are_refused),
        cmocka_unit_test(blocks_of_nothing_but_bad_codes_are_refused),
        cmocka_unit_test(known_payloads_decode_to_known_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
