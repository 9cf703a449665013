/* token inspect: the content of a token, without a daemon and without its secrets. */
#include "tests/unit/cli/token_kit.h"
#include "tests/unit/cli/verb_kit.h"

static void a_token_shows_run_terms_and_addresses_and_no_secret(void **state)
{
    (void)state;
    token_make(7200 + 30, 2);
    assert_int_equal(VERB(dp_verb_token_inspect, token_text), 0);
    assert_true(verb_said("run       kjv  (abcd0000") && verb_said("expires   in 2 h\n"));
    assert_true(verb_said("uses      2\n") && verb_said("roles     train vote\n"));
    assert_true(verb_said("addresses 192.0.2.1:7717\n") &&
                verb_said("valid: a node can join by it now"));
    assert_null(strstr(verb_kit.out, token_secret));
    assert_int_equal(VERB(dp_verb_token_inspect, token_text, "--json"), 0);
    assert_true(verb_said("\"epoch\":3") && verb_said("\"valid\":true"));
    assert_null(strstr(verb_kit.out, token_secret));
}

static void a_token_that_is_over_is_shown_all_the_same_and_ends_with_1(void **state)
{
    (void)state;
    token_make(-600, 0);
    assert_int_equal(VERB(dp_verb_token_inspect, token_text), DP_EXIT_NEGATIVE);
    assert_true(verb_said("expires   10 min ago\n") && verb_said("uses      any number\n"));
    assert_null(strstr(verb_kit.out, "valid: a node can join by it now"));
    assert_int_equal(VERB(dp_verb_token_inspect, token_text, "--json"), DP_EXIT_NEGATIVE);
    assert_true(verb_said("\"valid\":false") && verb_said("\"why\":"));
}

static void a_token_is_read_from_a_pipe(void **state)
{
    (void)state;
    token_make(3600, 1);
    verb_kit.in = token_text;
    assert_int_equal(VERB(dp_verb_token_inspect, "-"), 0);
    assert_true(verb_said("kjv"));
}

static void what_is_cut_or_changed_is_no_token(void **state)
{
    (void)state;
    token_make(3600, 1);
    token_text[strlen(token_text) - 8] = '\0';
    assert_int_equal(VERB(dp_verb_token_inspect, token_text), DP_EXIT_DATA);
    assert_true(verb_warned("E0203") && verb_warned("copy the whole token again"));
    assert_int_equal(VERB(dp_verb_token_inspect, "hello"), DP_EXIT_DATA);
    assert_string_equal(verb_kit.out, "");
    assert_int_equal(VERB(dp_verb_token_inspect, "hello", "--json"), DP_EXIT_DATA);
    assert_true(verb_said("\"error\"") && verb_said("E0203"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_token_shows_run_terms_and_addresses_and_no_secret),
        VERB_TEST(a_token_that_is_over_is_shown_all_the_same_and_ends_with_1),
        VERB_TEST(a_token_is_read_from_a_pipe),
        VERB_TEST(what_is_cut_or_changed_is_no_token),
    };
    CHECK_OK(dp_crypto_start());
    return cmocka_run_group_tests(tests, NULL, NULL);
}
