#include "tests/lib/check.h"

#include <stdlib.h>
#include <utf8proc.h>

#include "base/rng.h"
#include "compute/unicode/utf8.h"

enum { BUF_MAX = 1 << 20 };

static void the_first_bad_byte_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size;
        size_t bad;
    } cases[] = {
        {"ab\xff", 3, 2},   {"\xc0\x80", 2, 0},         {"x\xed\xa0\x80", 4, 1},
        {"\xe2\x82", 2, 0}, {"\xf4\x90\x80\x80", 4, 0}, {"ok\xe0\x80\x80", 5, 2},
        {"\x80", 1, 0},     {"0123456789\xc3", 11, 10}, {"0123456\xe2\x82z", 10, 7},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        CHECK(dp_utf8_bad_at(dp_view_of(cases[i].text, cases[i].size)) == cases[i].bad);
    }
    static const char good[] =
        "\xc2\x80 \xe0\xa0\x80 \xed\x9f\xbf \xf0\x90\x80\x80 \xf4\x8f\xbf\xbf";
    CHECK(dp_utf8_bad_at(dp_view_text(good)) == sizeof good - 1);
    CHECK(dp_utf8_bad_at(dp_view_of(NULL, 0)) == 0);
}

static void check_nfc(const char *text, const char *wanted)
{
    dp_buf out;
    dp_buf_init(&out, BUF_MAX);
    CHECK_OK(dp_normal_form_append(DP_NFC, dp_view_text(text), &out, NULL));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_text(wanted)));
    dp_buf_close(&out);
}

static void marks_join_the_letter_before_them(void **state)
{
    (void)state;
    check_nfc("", "");
    check_nfc("plain text, and a bit more", "plain text, and a bit more");
    check_nfc("cafe\xcc\x81 au", "caf\xc3\xa9 au");
    check_nfc("\xcc\x81"
              "e",
              "\xcc\x81"
              "e");
    check_nfc("e\xcc\x81", "\xc3\xa9");
    check_nfc("12345678e\xcc\x81"
              "12345678e\xcc\xa7\xcc\x81",
              "12345678\xc3\xa9"
              "12345678\xc8\xa9\xcc\x81");
    check_nfc("\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8", "\xea\xb0\x81"); /* Hangul */
    check_nfc("\xe2\x84\xab", "\xc3\x85"); /* the sign of the angstrom */
}

static size_t write_character(dp_rng *rng, char *out)
{
    static const uint16_t ranges[][2] = {{'a', 26},     {0x300, 60},   {0xc0, 60},   {0x1e00, 90},
                                         {0x1100, 200}, {0xac00, 200}, {0x3040, 90}, {0x900, 120}};
    const uint16_t *const range = ranges[dp_rng_below(rng, sizeof ranges / sizeof ranges[0])];
    const utf8proc_int32_t code =
        (utf8proc_int32_t)(range[0] + (uint32_t)dp_rng_below(rng, range[1]));
    return (size_t)utf8proc_encode_char(code, (utf8proc_uint8_t *)out);
}

/* Only stretches with marks are given to utf8proc; the whole text must give the same. */
static void the_stretches_are_those_of_the_whole(void **state)
{
    (void)state;
    dp_rng rng;
    dp_rng_init(&rng, 6);
    for (int i = 0; i < 2000; i++) {
        char text[256];
        size_t size = 0;
        const size_t characters = 1 + (size_t)dp_rng_below(&rng, 50);
        for (size_t j = 0; j < characters; j++) {
            size += write_character(&rng, text + size);
        }
        text[size] = '\0';
        utf8proc_uint8_t *const wanted = utf8proc_NFC((utf8proc_uint8_t *)text);
        CHECK(wanted != NULL);
        check_nfc(text, (const char *)wanted);
        free(wanted);
    }
}

static void endless_marks_are_refused_and_nothing_is_written(void **state)
{
    (void)state;
    static char text[2 * DP_MARKS_MAX + 8] = "ok a";
    dp_buf out;
    dp_why why = {{0}};
    size_t size = 4;
    for (size_t i = 0; i <= DP_MARKS_MAX; i++) {
        memcpy(text + size, i % 2 == 0 ? "\xcc\x81" : "\xcc\xa7", 2);
        size += 2;
    }
    dp_buf_init(&out, BUF_MAX);
    CHECK_STATUS(dp_normal_form_append(DP_NFC, dp_view_of(text, size), &out, &why), DP_BADMSG);
    CHECK(out.size == 0 && strstr(why.text, "4096 combining marks") != NULL);
    CHECK_OK(dp_normal_form_append(DP_NFC, dp_view_of(text, size - 2), &out, &why));
    dp_buf_close(&out);
}

static void a_cut_falls_between_two_characters(void **state)
{
    (void)state;
    const dp_view text = dp_view_text("a\xc3\xa4\xe2\x82\xac"); /* 1, 2 and 3 bytes */
    static const size_t kept[] = {0, 1, 1, 3, 3, 3, 6, 6};
    for (size_t most = 0; most < sizeof kept / sizeof kept[0]; most++) {
        CHECK(dp_utf8_fit(text, most) == kept[most]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_falls_between_two_characters),
        cmocka_unit_test(the_first_bad_byte_is_found),
        cmocka_unit_test(marks_join_the_letter_before_them),
        cmocka_unit_test(the_stretches_are_those_of_the_whole),
        cmocka_unit_test(endless_marks_are_refused_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
