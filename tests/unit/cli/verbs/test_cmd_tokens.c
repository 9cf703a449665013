/* token ls, token revoke, token rotate: which invites there are, and how one is taken back. */
#include "cli/print.h"
#include "tests/unit/cli/verb_kit.h"

/* A notice about one token, valid for an hour. */
static const char *token_of(const char *more)
{
    static char text[4096];
    snprintf(text, sizeof text,
             "[{'token': {'token': '9f31', 'issued': true, 'uses': 2, 'state': 'valid', "
             "'expires_ms': %llu, 'roles': ['train', 'vote'], 'admitted': [%s]}}]",
             (unsigned long long)dp_print_now_ms() + 3630 * 1000, more);
    return text;
}

static void each_token_is_a_row_with_who_came_by_it(void **state)
{
    (void)state;
    verb_answer_after(token_of("{'short': 'aaaa', 'name': 'ann'}, {'short': 'bbbb', 'name': null, "
                               "'gone': 'left'}"),
                      "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_true(verb_asked(0, "token.list", "{}"));
    assert_true(verb_said("9f31") && verb_said("valid") && verb_said("train vote"));
    assert_true(verb_said("in 60 min"));
    assert_true(verb_said("ann, bbbb (left)"));
}

static void roles_that_no_daemon_of_ours_has_are_cut(void **state)
{
    (void)state;
    json_t *const list = verb_json(token_of(""));
    json_t *const roles =
        json_object_get(json_object_get(json_array_get(list, 0), "token"), "roles");
    for (int i = 0; i < 3; i++) {
        static char role[9001];
        memset(role, 'r', i < 2 ? 400 : 9000);
        json_array_append_new(roles, json_string(role));
    }
    json_array_append_new(roles, json_integer(7));
    verb_answer("{'count': 1}");
    verb_kit.answers[0].notices = list;
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_true(verb_said("train vote rrr"));
}

static void a_token_made_elsewhere_shows_no_terms(void **state)
{
    (void)state;
    verb_answer_after("[{'token': {'token': '7777', 'issued': false, 'state': 'made elsewhere', "
                      "'admitted': []}}, {'other': 1}]",
                      "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_true(verb_said("7777") && verb_said("made elsewhere"));
    assert_null(strstr(verb_kit.out, " ago"));
}

static void a_token_for_any_number_and_one_that_is_over_say_so(void **state)
{
    (void)state;
    verb_answer_after("[{'token': {'token': '7777', 'issued': true, 'uses': 0, 'state': 'expired', "
                      "'expires_ms': 1000}}]",
                      "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_true(verb_said("any") && verb_said(" ago"));
}

static void a_cell_that_is_too_long_ends_with_dots(void **state)
{
    char people[3072] = "";
    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        const size_t at = strlen(people);
        snprintf(people + at, sizeof people - at, "%s{'short': 'a', 'name': 'member-%02u'}",
                 i > 0 ? ", " : "", i);
    }
    verb_answer_after(token_of(people), "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_true(verb_said("member-00, member-01") && verb_said("..."));
    assert_false(verb_said("member-59"));
}

static void without_tokens_a_sentence_is_said(void **state)
{
    (void)state;
    verb_answer("{'count': 0}");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_true(verb_said("no tokens: this node has made none"));
    verb_answer("{'count': 0}");
    assert_int_equal(VERB(dp_verb_token_ls, "--json"), 0);
    assert_true(verb_said("\"tokens\":"));
    verb_refuse(DP_EXIT_TEMPORARY, "E0105", "this node is in no run");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), DP_EXIT_TEMPORARY);
}

static void more_names_than_a_line_holds_end_with_dots(void **state)
{
    static char people[2048];
    static char result[4096];
    size_t at = 0;
    (void)state;
    for (int i = 0; i < 40; i++) {
        at += (size_t)snprintf(people + at, sizeof people - at, "%s{'name': 'a-name-of-%02d'}",
                               i > 0 ? ", " : "", i);
    }
    snprintf(result, sizeof result,
             "{'token': {'token': '9f31', 'members_count': 40, 'admitted': [%s]}}", people);
    verb_answer(result);
    assert_int_equal(VERB(dp_verb_token_revoke, "9f31"), 0);
    assert_true(verb_said("a-name-of-00, a-name-of-01") && verb_said(", ...\n"));
    assert_null(strstr(verb_kit.out, "a-name-of-39"));
}

static void names_cannot_steer_the_terminal(void **state)
{
    (void)state;
    verb_answer_after(token_of("{'short': 'aaaa', 'name': '\\u001b[2J'}"), "{'count': 1}");
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), 0);
    assert_null(strchr(verb_kit.out, '\x1b'));
    assert_true(verb_said("?[2J"));
}

#define MEMBERS                                                                                    \
    "'token': {'token': '9f31aa', 'members_count': 1, 'admitted': [{'name': 'ann'}, "              \
    "{'name': 'bob', 'gone': 'left'}]}"

static void a_revoked_token_leaves_its_members_and_says_how_to_put_them_out(void **state)
{
    (void)state;
    verb_answer("{" MEMBERS "}");
    assert_int_equal(VERB(dp_verb_token_revoke, "9f31"), 0);
    assert_true(verb_asked(0, "token.revoke", "{'id': '9f31', 'members': false}"));
    assert_true(verb_said("9f31aa is revoked; the next record tells all members"));
    assert_true(
        verb_said("joined by it, and stay members: ann\n")); /* Nodes that left are not named. */
    assert_true(verb_said("dpnode token revoke 9f31aa --members"));
}

static void a_token_is_revoked_with_its_members(void **state)
{
    (void)state;
    verb_answer("{" MEMBERS ", 'text': 'two more wait'}");
    assert_int_equal(VERB(dp_verb_token_revoke, "9f31", "--members"), 0);
    assert_true(verb_asked(0, "token.revoke", "{'id': '9f31', 'members': true}"));
    assert_true(verb_said("; two more wait") && verb_said("removed with the next records: ann"));
    verb_refuse(DP_EXIT_NOINPUT, "E0215", "no such token");
    assert_int_equal(VERB(dp_verb_token_revoke, "9f31"), DP_EXIT_NOINPUT);
    assert_int_equal(VERB_ALONE(dp_verb_token_revoke), DP_EXIT_USAGE);
}

static void a_rotation_says_what_becomes_of_older_tokens(void **state)
{
    (void)state;
    verb_answer("{'epoch': 3}");
    assert_int_equal(VERB_ALONE(dp_verb_token_rotate), 0);
    assert_true(verb_asked(0, "token.rotate", "{}"));
    assert_true(verb_said("valid until the next rotation"));
    verb_answer("{'epoch': 3}");
    assert_int_equal(VERB(dp_verb_token_rotate, "--json"), 0);
    assert_true(verb_said("\"epoch\""));
    verb_refuse(77, "E0121", "this node has no root key");
    assert_int_equal(VERB_ALONE(dp_verb_token_rotate), 77);
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_token_rotate), DP_EXIT_UNAVAILABLE);
    assert_int_equal(VERB_ALONE(dp_verb_token_ls), DP_EXIT_UNAVAILABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(each_token_is_a_row_with_who_came_by_it),
        VERB_TEST(roles_that_no_daemon_of_ours_has_are_cut),
        VERB_TEST(a_token_made_elsewhere_shows_no_terms),
        VERB_TEST(a_token_for_any_number_and_one_that_is_over_say_so),
        VERB_TEST(a_cell_that_is_too_long_ends_with_dots),
        VERB_TEST(without_tokens_a_sentence_is_said),
        VERB_TEST(more_names_than_a_line_holds_end_with_dots),
        VERB_TEST(names_cannot_steer_the_terminal),
        VERB_TEST(a_revoked_token_leaves_its_members_and_says_how_to_put_them_out),
        VERB_TEST(a_token_is_revoked_with_its_members),
        VERB_TEST(a_rotation_says_what_becomes_of_older_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
