/* Every reason has a word of its own and a sentence. */
#include "daemon/owner/rest.h"

#include <string.h>

#include "tests/lib/check.h"

static void every_reason_has_a_word_of_its_own_and_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < DP_REST_COUNT; i++) {
        const char *const word = dp_rest_word((dp_rest)i);
        const char *const text = dp_rest_text((dp_rest)i);
        CHECK(word != NULL && word[0] != '\0' && strchr(word, ' ') == NULL);
        CHECK(text != NULL && strchr(text, ' ') != NULL && text[strlen(text) - 1] != '.');
        for (int k = 0; k < i; k++) {
            CHECK(strcmp(word, dp_rest_word((dp_rest)k)) != 0);
        }
    }
    assert_string_equal(dp_rest_word(DP_REST_HEAT), "heat");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_reason_has_a_word_of_its_own_and_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
