/* invite: the terms of a token, as the daemon gets them. */
#include "cli/print.h"
#include "cli/verbs/cmd_run.h"
#include "tests/unit/cli/verb_kit.h"

static void a_token_is_for_one_node_that_trains_unless_it_is_told_otherwise(void **state)
{
    (void)state;
    verb_answer("{'token': 'DPN1-ABC', 'uses': 1, 'expires_ms': 0}");
    assert_int_equal(VERB_ALONE(dp_verb_invite), 0);
    assert_true(verb_asked(0, "invite", "{'uses': 1, 'roles': ['train']}"));
    assert_string_equal(verb_kit.out, "DPN1-ABC\n"); /* Alone, so that a script may take it. */
    assert_string_equal(verb_kit.err, "");
}

static void roles_build_on_each_other(void **state)
{
    static const char *const rows[][2] = {
        {"train", "{'uses': 1, 'roles': ['train']}"},
        {"vote", "{'uses': 1, 'roles': ['train', 'vote']}"},
        {"invite", "{'uses': 1, 'roles': ['train', 'vote', 'invite']}"},
        {"observe", "{'uses': 1, 'roles': ['observe']}"}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        verb_answer("{'token': 'DPN1-ABC'}");
        assert_int_equal(VERB(dp_verb_invite, "--role", rows[i][0]), 0);
        assert_true(verb_asked(0, "invite", rows[i][1]));
    }
    assert_int_equal(VERB(dp_verb_invite, "--role", "king"), DP_EXIT_USAGE);
    assert_true(verb_warned("unknown role") && verb_kit.n_calls == 0);
}

static void uses_and_time_have_bounds(void **state)
{
    (void)state;
    verb_answer("{'token': 'DPN1-ABC'}");
    assert_int_equal(VERB(dp_verb_invite, "--uses", "0", "--expires", "365d"), 0);
    assert_true(verb_asked(0, "invite", "{'uses': 0, 'roles': ['train'], 'expires_s': 31536000}"));
    assert_int_equal(VERB(dp_verb_invite, "--expires", "366d"), DP_EXIT_USAGE);
    assert_true(verb_warned("dpnode invite --expires 365d   # the longest"));
    assert_int_equal(VERB(dp_verb_invite, "--uses", "65535"), DP_EXIT_USAGE);
    assert_int_equal(VERB(dp_verb_invite, "--expires", "tomorrow"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
}

static void a_node_that_may_not_invite_says_so(void **state)
{
    (void)state;
    verb_refuse(77, "E0120", "this node may not invite");
    assert_int_equal(VERB_ALONE(dp_verb_invite), 77);
    assert_true(verb_warned("E0120"));
    assert_string_equal(verb_kit.out, "");
    verb_answer("{'token': 'DPN1-ABC', 'uses': 1}");
    assert_int_equal(VERB(dp_verb_invite, "--json"), 0);
    assert_true(verb_said("\"token\":\"DPN1-ABC\""));
    verb_kit.is_down = true;
    assert_int_equal(VERB_ALONE(dp_verb_invite), DP_EXIT_UNAVAILABLE);
}

static void the_nodes_of_ones_own_swarm_may_vote_and_be_any_number(void **state)
{
    dp_client client;
    dp_control_error error;
    char *token = NULL;
    (void)state;
    verb_answer("{'token': 'DPN1-ABC'}");
    CHECK_OK(dp_client_open(&client, "", &error));
    assert_int_equal(dp_invite_own(&client, &token, &error), 0);
    assert_true(verb_asked(0, "invite", "{'uses': 0, 'roles': ['train', 'vote']}"));
    assert_string_equal(token, "DPN1-ABC");
    free(token);
    verb_refuse(77, "E0120", "this node may not invite");
    assert_int_equal(dp_invite_own(&client, &token, &error), 77);
    assert_null(token);
    dp_client_close(&client);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_token_is_for_one_node_that_trains_unless_it_is_told_otherwise),
        VERB_TEST(roles_build_on_each_other),
        VERB_TEST(uses_and_time_have_bounds),
        VERB_TEST(a_node_that_may_not_invite_says_so),
        VERB_TEST(the_nodes_of_ones_own_swarm_may_vote_and_be_any_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
