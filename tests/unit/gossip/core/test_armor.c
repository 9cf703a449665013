#include "gossip/core/armor.h"

#include <ctype.h>

#include "base/rng.h"
#include "tests/lib/check.h"

static char armored[DP_ARMOR_TEXT_MAX + 1];

static void write_bytes(size_t size, uint8_t *bytes)
{
    dp_rng rng;

    dp_rng_init(&rng, size + 1);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)dp_rng_next(&rng);
    }
    CHECK_OK(dp_armor_write(dp_view_of(bytes, size), armored));
}

static dp_status read_text(const char *text, size_t *position, dp_buf *out)
{
    dp_buf_clear(out);
    return dp_armor_read(dp_view_text(text), out, position, NULL);
}

static void bytes_of_every_length_come_back(void **state)
{
    uint8_t bytes[300];
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 4096);
    for (size_t size = 1; size <= sizeof bytes; size++) {
        write_bytes(size, bytes);
        CHECK_OK(read_text(armored, NULL, &out));
        CHECK(dp_view_equal(dp_buf_view(&out), dp_view_of(bytes, size)));
    }
    dp_buf_close(&out);
}

/* Base32 of "hello" is NBSWY3DP (RFC 4648 alphabet); the two checks follow. */
static void the_data_characters_are_plain_base32(void **state)
{
    (void)state;
    CHECK_OK(dp_armor_write(dp_view_text("hello"), armored));
    assert_memory_equal(armored, "DPN1-NBSWY3DP", 13);
    assert_int_equal(strlen(armored), 15);
}

static void case_spaces_breaks_and_dashes_do_not_matter(void **state)
{
    uint8_t bytes[64];
    char spaced[4 * 256] = "  ";
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 4096);
    write_bytes(sizeof bytes, bytes);
    size_t size = 2;
    for (size_t i = 0; armored[i] != '\0'; i++) {
        spaced[size++] = (char)(i % 3 == 0 ? tolower(armored[i]) : armored[i]);
        if (i % 5 == 4) {
            spaced[size++] = "- \n\t\r"[i / 5 % 5];
        }
    }
    spaced[size] = '\n';
    CHECK_OK(read_text(spaced, NULL, &out));
    CHECK(dp_view_equal(dp_buf_view(&out), dp_view_of(bytes, sizeof bytes)));
    dp_buf_close(&out);
}

static void each_wrong_character_is_named_exactly(void **state)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    uint8_t bytes[100];
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 4096);
    write_bytes(sizeof bytes, bytes);
    for (size_t i = 5; armored[i] != '\0'; i++) {
        const char right = armored[i];
        for (unsigned k = 0; k < 32; k++) {
            size_t position = 0;
            armored[i] = alphabet[k];
            if (alphabet[k] == right) {
                continue;
            }
            CHECK_STATUS(read_text(armored, &position, &out), DP_BADMSG);
            assert_int_equal(position, i + 1);
        }
        armored[i] = right;
    }
    dp_buf_close(&out);
}

static void two_wrong_or_swapped_characters_in_a_word_are_noticed(void **state)
{
    uint8_t bytes[100];
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 4096);
    write_bytes(sizeof bytes, bytes);
    for (size_t i = 5; armored[i + 1] != '\0'; i++) {
        const char first = armored[i];
        const char second = armored[i + 1];
        if (first == second) {
            continue;
        }
        armored[i] = second;
        armored[i + 1] = first;
        CHECK_STATUS(read_text(armored, NULL, &out), DP_BADMSG);
        armored[i] = first;
        armored[i + 1] = second;
    }
    dp_buf_close(&out);
}

static void characters_that_cannot_be_are_named(void **state)
{
    uint8_t bytes[40];
    dp_buf out;
    dp_why why = {""};
    size_t position = 0;

    (void)state;
    dp_buf_init(&out, 4096);
    write_bytes(sizeof bytes, bytes);
    armored[17] = '0';
    CHECK_STATUS(dp_armor_read(dp_view_text(armored), &out, &position, &why), DP_BADMSG);
    assert_int_equal(position, 18);
    assert_non_null(strstr(why.text, "Character 18 of 75 cannot stand in a token"));
    dp_buf_close(&out);
}

static void the_sentence_says_where_the_damage_is(void **state)
{
    uint8_t bytes[40];
    dp_buf out;
    dp_why why = {""};

    (void)state;
    dp_buf_init(&out, 4096);
    write_bytes(sizeof bytes, bytes);
    armored[56] = armored[56] == 'A' ? 'B' : 'A';
    CHECK_STATUS(dp_armor_read(dp_view_text(armored), &out, NULL, &why), DP_BADMSG);
    assert_non_null(strstr(why.text, "damaged at character 57 of 75"));
    dp_buf_close(&out);
}

static void other_texts_and_versions_are_told_apart(void **state)
{
    static const char *const others[] = {"", "DPN", "DPN-", "hello", "DP", "XDPN1-AAAA"};
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 4096);
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t position = 9;
        CHECK_STATUS(read_text(others[i], &position, &out), DP_BADMSG);
        assert_int_equal(position, 0);
    }
    CHECK_STATUS(read_text("DPN2-AAAAAAAA", NULL, &out), DP_VERSION);
    dp_buf_close(&out);
}

/* "A" is IE: ten bits for eight. IF to IH differ in the two bits left over, and one pair of checks
 * in 1,024 fits each. */
static void bits_left_over_must_be_zero(void **state)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    dp_buf out;

    (void)state;
    dp_buf_init(&out, 16);
    for (char last = 'E'; last <= 'H'; last++) {
        unsigned accepted = 0;
        for (unsigned k = 0; k < 1024; k++) {
            const char text[] = {
                'D', 'P', 'N', '1', '-', 'I', last, alphabet[k / 32], alphabet[k % 32], '\0'};
            accepted += read_text(text, NULL, &out) == DP_OK ? 1 : 0;
        }
        assert_int_equal(accepted, last == 'E' ? 1 : 0);
    }
    dp_buf_close(&out);
}

static void text_and_bytes_have_limits(void **state)
{
    static uint8_t bytes[DP_ARMOR_TEXT_MAX];
    static char text[DP_ARMOR_TEXT_MAX + 3];
    dp_buf out;

    (void)state;
    CHECK_STATUS(dp_armor_write(dp_view_of(bytes, sizeof bytes), armored), DP_TOOBIG);
    CHECK_OK(dp_armor_write(dp_view_of(bytes, 2380), armored));
    memset(text, 'A', sizeof text - 1);
    memcpy(text, "DPN1-", 5);
    dp_buf_init(&out, 4096);
    CHECK_STATUS(read_text(text, NULL, &out), DP_TOOBIG);
    dp_buf_init(&out, 3);
    CHECK_STATUS(read_text(armored, NULL, &out), DP_TOOBIG);
    dp_buf_close(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_every_length_come_back),
        cmocka_unit_test(the_data_characters_are_plain_base32),
        cmocka_unit_test(case_spaces_breaks_and_dashes_do_not_matter),
        cmocka_unit_test(each_wrong_character_is_named_exactly),
        cmocka_unit_test(two_wrong_or_swapped_characters_in_a_word_are_noticed),
        cmocka_unit_test(characters_that_cannot_be_are_named),
        cmocka_unit_test(the_sentence_says_where_the_damage_is),
        cmocka_unit_test(other_texts_and_versions_are_told_apart),
        cmocka_unit_test(bits_left_over_must_be_zero),
        cmocka_unit_test(text_and_bytes_have_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
