/* status, peers, data: the present state, for users and for scripts. */
#include "tests/unit/cli/verb_kit.h"

#define TRAINING                                                                                   \
    "'state': 'training', 'name': 'ann', 'run': {'name': 'kjv', 'round': 12, 'tokens': 2500000, "  \
    "'loss': 2.5, 'alive': 3, 'members': 4, 'is_voter': true, 'counted': 1, 'trainer': 'up', "     \
    "'trains': true, 'tokens_per_s': 1500.0, 'quorum': true, 'data_objects': 2, 'data_here': 2"

static void a_node_that_trains_is_two_lines(void **state)
{
    (void)state;
    verb_answer("{" TRAINING ", 'bytes_sent': 1048576, 'device': 'cpu: 4 threads', "
                "'checkpoint_round': 11, 'compute_utilisation': 0.5, 'keep': 16, "
                "'update_error': 0.25}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_asked(0, "status", "{}"));
    assert_true(
        verb_said("kjv  training  round 12  2.50M tokens  loss 2.500  3/4 members alive\n"));
    assert_true(verb_said("you: ann (voter), counted in 1 round, trainer up at 1.50k tokens/s"));
    assert_true(verb_said(", sent 1.0 MiB") && verb_said(", on cpu: 4 threads"));
    assert_true(verb_said(", computing 50.0 % of the time"));
    assert_true(
        verb_said(", sends 1 element of 16, 25 % of the last update deferred by compression"));
    assert_true(verb_said(", checkpoint of round 11\n"));
    assert_null(strstr(verb_kit.out, "no majority"));
}

static void a_held_out_loss_stands_beside_that_of_the_rounds(void **state)
{
    (void)state;
    verb_answer("{" TRAINING ", 'held_out': {'loss': 2.75, 'round': 11}}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("loss 2.500  held out 2.750  3/4 members alive\n"));
}

static void what_is_wrong_is_a_line_with_what_to_ask(void **state)
{
    (void)state;
    verb_answer("{'state': 'gossip', 'name': 'ann', 'run': {'name': 'kjv', 'round': 12, 'alive': "
                "5, 'members': 1, 'counted': 2, 'trainer': 'failing', 'trainer_next_ms': 4001, "
                "'quorum': false, 'data_objects': 4, 'data_here': 1, 'refused': true}, 'paused': "
                "{'text': ' since Monday'}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("5 nodes alive, 1 member\n")); /* Some are in no record yet. */
    assert_true(verb_said("counted in 2 rounds, trainer failing, restarts in 5 s"));
    assert_true(verb_said("1 of 4 parts of the data are on this node"));
    assert_true(verb_said("no majority of the voters is reachable (dpnode why)"));
    assert_true(verb_said("paused by its owner since Monday; to train again: dpnode resume"));
    assert_true(verb_said("no member answers this node"));
    verb_answer("{" TRAINING ", 'voted_twice': 'q3x7', 'voted_twice_name': 'bob'}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("halted: voter bob q3x7 signed two records in one ballot"));
}

static void limits_and_memory_are_told_where_they_matter(void **state)
{
    (void)state;
    verb_answer("{" TRAINING ", 'upload_max': 125000, 'upload_month': 200000000000, "
                "'upload_month_used': 1000000000, 'month_used_up': true, 'held': 134217728, "
                "'held_max': 268435456}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said(", upload 1 Mbit/s, 1.0 GB of 200 GB of"));
    assert_true(
        verb_said("of this month's upload used, training stopped by the quota (dpnode limits)"));
    assert_true(verb_said("128 MiB of memory for peers' messages (limit about 256 MiB)"));
    verb_answer("{" TRAINING ", 'held': 1048576}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_null(strstr(verb_kit.out, "of memory"));
}

static void a_node_that_starts_or_joins_says_what_it_waits_for(void **state)
{
    (void)state;
    verb_answer("{'state': 'starting', 'run': {'name': 'kjv', 'round': null}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("the daemon reads its chain"));
    assert_null(strstr(verb_kit.out, "no majority"));
    verb_answer("{'state': 'joining', 'run': {'name': 'kjv'}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("no peer has sent the run's manifest yet"));
}

static void a_run_of_any_model_counts_samples_and_waits_for_a_script(void **state)
{
    (void)state;
    verb_answer("{'state': 'waiting', 'run': {'name': 'any', 'round': 3, 'tokens': 40, 'external': "
                "true, 'sample_tokens': 1, 'counted': 0, 'trainer': 'up'}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("any  waiting  round 3  40 samples"));
    assert_true(verb_said("trainer up, waiting for a script (dpnode why)"));
    verb_answer("{'state': 'waiting', 'run': {'name': 'any', 'round': 3, 'tokens': 40, 'external': "
                "true, 'sample_tokens': 8, 'trainer': 'up', 'quorum': true}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("40 tokens"));
    verb_answer(
        "{'state': 'training', 'run': {'name': 'any', 'round': 3, 'tokens': 40, 'external': "
        "true, 'script_pid': 812, 'sample_tokens': 1, 'counted': 0, 'trainer': 'up', 'trains': "
        "true}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("trainer up, script 812, speed not measured yet"));
    verb_answer("{'state': 'paused', 'run': {'name': 'any', 'external': true, 'script_pid': 812, "
                "'counted': 0, 'trainer': 'up', 'trains': false}}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("trainer up, script 812, not training"));
}

static void an_idle_node_says_how_to_begin_and_one_that_lost_its_run_how_to_return(void **state)
{
    (void)state;
    verb_answer("{'state': 'idle', 'version': '1.0', 'pid': 7, 'uptime_s': 7200}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("idle: dpnoded 1.0, pid 7, up 2 h. No run yet.\nto join one: dpnode join "
                          "TOKEN"));
    assert_true(verb_said("\nto create one: dpnode run create --demo kjv\n"));
    verb_answer("{'state': 'idle', 'trying': true}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("No run yet; it makes its first try to join or to create one\n"));
    verb_answer("{'state': 'idle', 'lost': 'the store was damaged'}");
    assert_int_equal(VERB_ALONE(dp_verb_status), 0);
    assert_true(verb_said("No run: the store was damaged. To join again: dpnode join TOKEN"));
}

static void a_first_start_that_fails_is_told_with_its_fix(void **state)
{
    static const char problem[] =
        "'problem': {'code': 'E0203', 'what': 'no token', 'why': 'cause', 'fix': 'a command'}";
    static const char *const words[] = {"'state': 'idle', 'uptime_s': 60",
                                        "'state': 'idle', 'lost': 'the store was damaged'",
                                        "'state': 'joining', 'run': {'name': 'kjv'}"};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char answer[512];
        snprintf(answer, sizeof answer, "{%s, %s}", words[i], problem);
        verb_answer(answer);
        assert_int_equal(VERB_ALONE(dp_verb_status), 0);
        assert_true(verb_said("E0203 no token: cause\nto correct it: a command\n"));
        assert_false(verb_said("dpnode run create"));
    }
}

static void checks_end_with_0_or_1(void **state)
{
    static const struct {
        const char *status;
        int ready;
        int live;
    } rows[] = {{"{" TRAINING "}}", 0, 0},
                {"{'state': 'gossip', 'run': {'trainer': 'up'}}", 0, 0},
                {"{'state': 'waiting', 'run': {'trainer': 'up'}}", 0, 0},
                {"{'state': 'paused', 'run': {'trainer': 'up'}}", 1, 0},
                {"{'state': 'training', 'run': {'trainer': 'down'}}", 1, 0},
                {"{'state': 'idle', 'lost': 'the store was damaged'}", 1, 1}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        verb_answer(rows[i].status);
        assert_int_equal(VERB(dp_verb_status, "--check", "ready"), rows[i].ready);
        verb_answer(rows[i].status);
        assert_int_equal(VERB(dp_verb_status, "--check", "live", "--json"), rows[i].live);
    }
    assert_int_equal(VERB(dp_verb_status, "--check", "well"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
    verb_kit.is_down = true;
    assert_int_equal(VERB(dp_verb_status, "--check", "live"), DP_EXIT_NEGATIVE);
    assert_int_equal(VERB_ALONE(dp_verb_status), DP_EXIT_UNAVAILABLE);
}

static void peers_are_rows_with_role_and_link(void **state)
{
    (void)state;
    verb_answer(
        "{'peers': [{'name': 'ann', 'short': 'aaaa', 'state': 'alive', 'self': true, 'voter': true,"
        " 'round': 12, 'included': 11}, {'name': 'bob', 'short': 'bbbb', 'state': 'suspect', "
        "'roster': true, 'linked': true, 'rtt_ms': 12.5, 'addresses': ['10.0.0.2:7717']}, "
        "{'name': null, 'short': 'cccc', 'state': 'alive', 'round': null}, {'state': 'left'}]}");
    assert_int_equal(VERB_ALONE(dp_verb_peers), 0);
    assert_true(verb_asked(0, "peers", "{}"));
    assert_true(verb_said("ann *") && verb_said("voter") && verb_said("12") && verb_said("11"));
    assert_true(verb_said("trainer") && verb_said("12.5 ms") && verb_said("10.0.0.2:7717"));
    assert_true(verb_said("(not linked yet)") && verb_said("newcomer"));
    verb_answer("{'peers': [{'name': 'ann', 'short': 'aaaa', 'bytes_sent': 3145728, "
                "'bytes_received': 2048}, {'name': 'bob', 'short': 'bbbb'}]}");
    assert_int_equal(VERB(dp_verb_peers, "-w"), 0);
    assert_true(verb_said("SENT") && verb_said("RECEIVED"));
    assert_true(verb_said("3.0 MiB") && verb_said("2.0 KiB"));
    verb_answer("{'peers': []}");
    assert_int_equal(VERB(dp_verb_peers, "--json"), 0);
    assert_string_equal(verb_kit.out, "{\"peers\":[]}\n");
    verb_refuse(DP_EXIT_TEMPORARY, "E0105", "this node is in no run");
    assert_int_equal(VERB_ALONE(dp_verb_peers), DP_EXIT_TEMPORARY);
}

static void a_step_of_seconds_is_said_in_seconds(void **state)
{
    (void)state;
    verb_answer("{'peers': [{'name': 'a', 'step_ms': 999.4}, {'name': 'b', 'step_ms': 1630.2}, "
                "{'name': 'c', 'step_ms': 12345678.0}, {'name': 'd', 'step_ms': 999.7}]}");
    assert_int_equal(VERB_ALONE(dp_verb_peers), 0);
    assert_true(verb_said("999 ms") && verb_said("1.63 s") && verb_said("12346 s"));
    assert_true(verb_said(" 1 s") && !verb_said("e+"));
}

static void peers_are_sorted_by_the_key_that_is_asked_for(void **state)
{
    static const char *const peers =
        "{'peers': [{'name': 'carl', 'self': true, 'step_ms': 80.5}, {'name': null, 'rtt_ms': 9}, "
        "{'name': 'bob', 'rtt_ms': 12.5, 'step_ms': 200}, {'name': 'ann', 'rtt_ms': 12.5}, "
        "{'name': 'dora', 'rtt_ms': 0.5, 'step_ms': 9.5}]}";
    static const struct {
        const char *key;
        const char *names;
    } rows[] = {{"rate", "dora carl bob - ann "}, /* Unknown values come last, in the old order. */
                {"rtt", "dora - bob ann carl "},
                {"name", "ann bob carl dora - "}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char names[64] = "";
        size_t index = 0;
        const json_t *peer = NULL;
        verb_answer(peers);
        assert_int_equal(VERB(dp_verb_peers, "--sort", rows[i].key, "--json"), 0);
        assert_true(verb_asked(0, "peers", "{}"));
        json_t *const told = json_loads(verb_kit.out, 0, NULL);
        json_array_foreach(json_object_get(told, "peers"), index, peer)
        {
            const size_t size = strlen(names);
            snprintf(names + size, sizeof names - size, "%s ", dp_json_text(peer, "name", "-"));
        }
        json_decref(told);
        assert_string_equal(names, rows[i].names);
    }
    verb_answer(peers);
    assert_int_equal(VERB(dp_verb_peers, "--sort", "rate"), 0);
    assert_true(verb_said("dora") && verb_said("carl *"));
    assert_true(strstr(verb_kit.out, "dora") < strstr(verb_kit.out, "carl *"));
    assert_true(verb_said("9.5 ms") && !verb_said("more members"));
    verb_answer(peers);
    assert_int_equal(VERB_ALONE(dp_verb_peers), 0);
    assert_true(strstr(verb_kit.out, "carl *") < strstr(verb_kit.out, "dora"));
    verb_answer("{'peers': [{'name': 'carl', 'self': true}], 'more': 70}");
    assert_int_equal(VERB_ALONE(dp_verb_peers), 0);
    assert_true(verb_said("and 70 more members: this node lists the first 1"));
    assert_int_equal(VERB(dp_verb_peers, "--sort", "speed"), DP_EXIT_USAGE);
    assert_int_equal(verb_kit.n_calls, 0);
    assert_true(verb_warned("E0001") && verb_warned("speed") && verb_warned("rate, rtt or name"));
}

static void data_is_listed_with_what_is_here(void **state)
{
    (void)state;
    verb_answer("{'data': [{'kind': 'tokenizer', 'root': 'abcd', 'bytes': 1024, 'local': true}, "
                "{'kind': 'tokens', 'root': 'ef01', 'bytes': 2048, 'tokens': 1500, 'local': "
                "false}], 'samples': 40}");
    assert_int_equal(VERB_ALONE(dp_verb_data), 0);
    assert_true(verb_asked(0, "data", "{}"));
    assert_true(verb_said("tokenizer") && verb_said("1.50k") && verb_said("not yet"));
    assert_true(verb_said("1 of 2 are on this node; one pass has 40 samples\n"));
    verb_refuse(DP_EXIT_TEMPORARY, "E0105", "this node is in no run");
    assert_int_equal(VERB(dp_verb_data, "--json"), DP_EXIT_TEMPORARY);
    assert_true(verb_said("\"error\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(a_node_that_trains_is_two_lines),
        VERB_TEST(a_held_out_loss_stands_beside_that_of_the_rounds),
        VERB_TEST(what_is_wrong_is_a_line_with_what_to_ask),
        VERB_TEST(limits_and_memory_are_told_where_they_matter),
        VERB_TEST(a_first_start_that_fails_is_told_with_its_fix),
        VERB_TEST(a_node_that_starts_or_joins_says_what_it_waits_for),
        VERB_TEST(a_run_of_any_model_counts_samples_and_waits_for_a_script),
        VERB_TEST(an_idle_node_says_how_to_begin_and_one_that_lost_its_run_how_to_return),
        VERB_TEST(checks_end_with_0_or_1),
        VERB_TEST(peers_are_rows_with_role_and_link),
        VERB_TEST(a_step_of_seconds_is_said_in_seconds),
        VERB_TEST(peers_are_sorted_by_the_key_that_is_asked_for),
        VERB_TEST(data_is_listed_with_what_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
