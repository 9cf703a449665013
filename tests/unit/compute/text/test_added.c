#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/text/added.h"

static void add(dp_added *added, const char *text, uint32_t id)
{
    CHECK_OK(dp_added_add(added, (dp_added_token){.text = dp_view_text(text), .id = id}));
}

static void check_next(const dp_added *added, const char *text, size_t at, size_t begin,
                       uint32_t id)
{
    size_t found = 0;
    const dp_added_token *token;
    CHECK(dp_added_next(added, dp_view_text(text), at, &found, &token));
    CHECK(found == begin && token->id == id);
}

static void the_leftmost_and_there_the_longest_is_found(void **state)
{
    (void)state;
    dp_added added = {0};
    size_t begin;
    const dp_added_token *token;
    CHECK(!dp_added_next(&added, dp_view_text("abc"), 0, &begin, &token));
    add(&added, "<a>", 1);
    add(&added, "<a>b", 2);
    add(&added, "<a>bcd", 3);
    add(&added, "x", 4);
    add(&added, "<", 5);
    add(&added, "\xff", 6);
    check_next(&added, "..<a>", 0, 2, 1);
    check_next(&added, "<a>bc", 0, 0, 2);
    check_next(&added, "<a>bcd", 0, 0, 3);
    check_next(&added, "<a>bcd x", 1, 7, 4);
    check_next(&added, "a<b", 0, 1, 5);
    check_next(&added, "ab\xff", 0, 2, 6);
    CHECK(!dp_added_next(&added, dp_view_text("abc"), 0, &begin, &token));
    CHECK_STATUS(dp_added_add(&added, (dp_added_token){.text = dp_view_text("x")}), DP_EXISTS);
    CHECK_STATUS(dp_added_add(&added, (dp_added_token){.text = dp_view_of(NULL, 0)}), DP_BADARG);
    dp_added_close(&added);
}

static void random_tables_find_what_a_plain_search_finds(void **state)
{
    (void)state;
    static char words[40][8];
    dp_rng rng;
    dp_rng_init(&rng, 2);
    for (int i = 0; i < 300; i++) {
        dp_added added = {0};
        char text[64];
        for (uint32_t j = 0; j < 40; j++) {
            const size_t size = 1 + (size_t)dp_rng_below(&rng, 6);
            for (size_t k = 0; k < size; k++) {
                words[j][k] = "abc"[dp_rng_below(&rng, 3)];
            }
            const dp_added_token token = {.text = dp_view_of(words[j], size), .id = j};
            const dp_status status = dp_added_add(&added, token);
            CHECK(status == DP_OK || status == DP_EXISTS);
        }
        for (size_t j = 0; j < sizeof text; j++) {
            text[j] = "abcd"[dp_rng_below(&rng, 4)];
        }
        size_t wanted = 0;
        size_t size = 0;
        for (size_t at = 0; at < sizeof text && size == 0; at++) {
            for (uint32_t j = 0; j < added.count; j++) {
                const dp_view t = added.items[j].text;
                if (t.size > size && t.size <= sizeof text - at &&
                    memcmp(text + at, t.data, t.size) == 0) {
                    size = t.size;
                    wanted = at;
                }
            }
        }
        size_t begin = 0;
        const dp_added_token *token = NULL;
        CHECK(dp_added_next(&added, dp_view_of(text, sizeof text), 0, &begin, &token) ==
              (size > 0));
        CHECK(size == 0 || (begin == wanted && token->text.size == size));
        dp_added_close(&added);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_leftmost_and_there_the_longest_is_found),
        cmocka_unit_test(random_tables_find_what_a_plain_search_finds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
