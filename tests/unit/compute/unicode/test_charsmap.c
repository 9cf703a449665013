#include "tests/lib/check.h"

#include <stdio.h>

#include "base/rng.h"
#include "compute/unicode/charsmap.h"
#include "compute/unicode/utf8.h"
#include "tests/lib/allocfail.h"

/* Two rules, "a" to "xy" and the bytes of U+0301 to nothing, as units at 0, 'a' and so on: drawn by
 * hand from the format in charsmap.h. */
enum { UNITS = 1024 };

typedef struct map_bytes {
    uint32_t units[UNITS];
    uint8_t bytes[4 + 4 * UNITS + 4];
    size_t size;
    char base64[8 * UNITS];
} map_bytes;

static void put_u32(uint8_t *at, uint32_t value)
{
    for (unsigned i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> 8 * i);
    }
}

static void encode(map_bytes *m)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t out = 0;
    for (size_t i = 0; i < m->size; i += 3) {
        const size_t n = m->size - i < 3 ? m->size - i : 3;
        uint32_t bits = 0;
        for (size_t j = 0; j < 3; j++) {
            bits = bits << 8 | (j < n ? m->bytes[i + j] : 0U);
        }
        for (size_t j = 0; j < 4; j++) {
            m->base64[out] = j <= n ? digits[bits >> (18 - 6 * j) & 63U] : '=';
            out++;
        }
    }
    m->base64[out] = '\0';
}

static void lay_out(map_bytes *m)
{
    put_u32(m->bytes, 4 * UNITS);
    for (size_t i = 0; i < UNITS; i++) {
        put_u32(m->bytes + 4 + 4 * i, m->units[i]);
    }
    memcpy(m->bytes + 4 + 4 * (size_t)UNITS, "xy\0", 4); /* texts: xy at 0, nothing at 3 */
    m->size = sizeof m->bytes;
    encode(m);
}

/* The children of a unit at place p with offset o are at p ^ o ^ byte, its value at p ^ o. */
static void example(map_bytes *m)
{
    *m = (map_bytes){.size = 0};
    m->units[0] = 256U << 10;                         /* root: children at 256 ^ byte */
    m->units[256 ^ 'a'] = 'a' | 1U << 8 | 512U << 10; /* value at 256 ^ 'a' ^ 512 */
    m->units[256 ^ 'a' ^ 512] = 1U << 31 | 0U;        /* text at 0 */
    m->units[256 ^ 0xcc] = 0xccU | 768U << 10;        /* children at 256 ^ 0xcc ^ 768 */
    m->units[256 ^ 0xcc ^ 768 ^ 0x81] = 0x81U | 1U << 8 | 1U << 10;
    m->units[256 ^ 0xcc ^ 768 ^ 0x81 ^ 1] = 1U << 31 | 3U; /* text at 3: empty */
    lay_out(m);
}

static void check_mapped(const dp_charsmap *map, const char *text, const char *wanted)
{
    dp_buf out;
    dp_buf_init(&out, 1000);
    CHECK_OK(dp_charsmap_append(map, dp_view_text(text), &out));
    if (!dp_view_equal(dp_buf_view(&out), dp_view_text(wanted))) {
        print_error("'%s' became '%.*s'\n", text, (int)out.size, (const char *)out.data);
        CHECK(false);
    }
    dp_buf_close(&out);
}

static void rules_are_applied_to_clusters_or_to_characters(void **state)
{
    (void)state;
    static map_bytes m;
    dp_charsmap *map;
    example(&m);
    CHECK_OK(dp_charsmap_open(&map, dp_view_text(m.base64), NULL));
    check_mapped(map, "", "");
    check_mapped(map, "bab", "bxyb");
    check_mapped(map, "\xcc\x81", "");
    check_mapped(map, "e\xcc\x81z", "ez");
    /* A cluster of five bytes goes by the first rule that it begins with, as a whole; one of seven
     * bytes goes character by character. */
    check_mapped(map, "a\xcc\x82\xcc\x83", "xy");
    check_mapped(map, "a\xcc\x82\xcc\x83\xcc\x84", "xy\xcc\x82\xcc\x83\xcc\x84");
    dp_charsmap_close(map);
}

static void maps_that_cannot_be_are_refused(void **state)
{
    (void)state;
    static map_bytes m;
    static const char *const texts[] = {"",     "AAA",  "AAAA====", "A=AA",    "AA=A",
                                        "!!!!", "AAAA", "BAAAAA==", "AAAAAA=="};
    dp_charsmap *map;
    dp_why why = {{0}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK_STATUS(dp_charsmap_open(&map, dp_view_text(texts[i]), &why), DP_BADMSG);
    }
    example(&m);
    m.bytes[m.size - 1] = 0xff; /* texts that are not UTF-8 */
    encode(&m);
    CHECK_STATUS(dp_charsmap_open(&map, dp_view_text(m.base64), &why), DP_BADMSG);
    CHECK(strstr(why.text, "damaged") != NULL);
}

static void units_of_any_value_end_in_some_text(void **state)
{
    (void)state;
    static map_bytes m;
    dp_rng rng;
    dp_rng_init(&rng, 3);
    for (int i = 0; i < 300; i++) {
        dp_charsmap *map;
        dp_buf out;
        example(&m);
        for (int j = 0; j < 600; j++) {
            m.units[dp_rng_below(&rng, UNITS)] = (uint32_t)dp_rng_below(&rng, UINT32_MAX);
        }
        lay_out(&m);
        CHECK_OK(dp_charsmap_open(&map, dp_view_text(m.base64), NULL));
        dp_buf_init(&out, 10000);
        CHECK_OK(dp_charsmap_append(map,
                                    dp_view_text("a\xcc\x81 Ab\xe7\x8c\xab"
                                                 "cd\r\n"),
                                    &out));
        CHECK(dp_utf8_bad_at(dp_buf_view(&out)) == out.size);
        dp_buf_close(&out);
        dp_charsmap_close(map);
    }
}

static dp_status open_once(void *context)
{
    dp_charsmap *map;
    DP_TRY(dp_charsmap_open(&map, dp_view_text(context), NULL));
    dp_charsmap_close(map);
    return DP_OK;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    static map_bytes m;
    example(&m);
    CHECK(fail_each_allocation(open_once, m.base64) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_are_applied_to_clusters_or_to_characters),
        cmocka_unit_test(maps_that_cannot_be_are_refused),
        cmocka_unit_test(units_of_any_value_end_in_some_text),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
