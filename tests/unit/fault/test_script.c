#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/rng.h"
#include "tests/fault/script.h"

static dp_fault_command good(const char *line)
{
    dp_fault_command command;
    dp_why why = {.text = ""};
    if (dp_fault_parse(line, 1, &command, &why) != DP_OK) {
        fail_msg("%s: %s", line, why.text);
    }
    return command;
}

static void a_forward_names_both_addresses(void **state)
{
    (void)state;
    const dp_fault_command command = good("forward a 127.0.0.1:7001 10.0.0.2:80 # comment");
    assert_int_equal(command.verb, DP_FAULT_FORWARD);
    assert_string_equal(command.name, "a");
    assert_string_equal(command.listen, "127.0.0.1:7001");
    assert_string_equal(command.target, "10.0.0.2:80");
    assert_false(command.has_time);
}

static void a_rule_takes_times_rates_and_shares(void **state)
{
    (void)state;
    dp_fault_rule rule = dp_fault_rule_standard;
    const dp_fault_command command =
        good("at 1.5s set * delay=20ms,jitter=5ms rate=1.5M loss=2%,corrupt=0.01%");
    assert_int_equal(command.at_ms, 1500);
    assert_true(command.has_time && command.direction[0] && command.direction[1]);
    dp_fault_rule_apply(&command, &rule);
    assert_int_equal(rule.delay_ms, 20);
    assert_int_equal(rule.jitter_ms, 5);
    assert_int_equal(rule.rate, 1500000);
    assert_int_equal(rule.loss_ppm, 20000);
    assert_int_equal(rule.corrupt_ppm, 100);
    assert_int_equal(rule.stall_ms, 200); /* as it was */
}

static void a_direction_makes_it_one_way(void **state)
{
    (void)state;
    const dp_fault_command up = good("cut a up");
    const dp_fault_command down = good("set a down delay=1s");
    const dp_fault_command both = good("cut a");
    assert_true(up.direction[DP_FAULT_UP] && !up.direction[DP_FAULT_DOWN]);
    assert_true(!down.direction[DP_FAULT_UP] && down.direction[DP_FAULT_DOWN]);
    assert_true(both.direction[DP_FAULT_UP] && both.direction[DP_FAULT_DOWN]);
}

static void from_names_who_dials(void **state)
{
    (void)state;
    const dp_fault_command one = good("cut a from b down");
    dp_fault_command command;
    dp_why why = {.text = ""};
    assert_string_equal(one.from, "b");
    assert_true(!one.direction[DP_FAULT_UP] && one.direction[DP_FAULT_DOWN]);
    assert_string_equal(good("heal *").from, "");
    assert_string_equal(good("reset * from b").from, "b");
    assert_int_equal(dp_fault_parse("cut a from", 3, &command, &why), DP_BADMSG);
    assert_string_equal(why.text, "line 3, column 11: after \"from\" a forward's name is needed");
    assert_string_equal(good("set a from b up delay=1s").from, "b");
    assert_int_equal(dp_fault_parse("check a from b", 1, &command, NULL), DP_BADMSG);
}

static void an_empty_line_and_a_comment_are_nothing(void **state)
{
    (void)state;
    assert_int_equal(good("").verb, DP_FAULT_NOTHING);
    assert_int_equal(good("   # cut it all").verb, DP_FAULT_NOTHING);
}

static void a_parse_error_is_reported_with_its_column(void **state)
{
    static const struct {
        const char *line;
        const char *where;
    } bad[] = {{"explode a", "line 7, column 1:"},
               {"at soon cut a", "line 7, column 4:"},
               {"at 3s", "line 7, column 6:"},
               {"at 99999m cut a", "line 7, column 4:"},
               {"forward a 127.0.0.1 127.0.0.1:1", "line 7, column 11:"},
               {"forward a 127.0.0.1:1 127.0.0.256:1", "line 7, column 23:"},
               {"forward a 127.0.0.1:1 127.0.0.1:66000", "line 7, column 23:"},
               {"forward * 127.0.0.1:1 127.0.0.1:2", "line 7, column 9:"},
               {"set a delay=20", "line 7, column 13:"},
               {"set a loss=101%", "line 7, column 12:"},
               {"set a  lag=3s", "line 7, column 8:"},
               {"set a up", "line 7, column 9:"},
               {"cut", "line 7, column 4:"},
               {"cut a sideways", "line 7, column 7:"},
               {"quit now", "line 7, column 6:"}};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        dp_fault_command command;
        dp_why why = {.text = ""};
        assert_int_equal(dp_fault_parse(bad[i].line, 7, &command, &why), DP_BADMSG);
        if (strncmp(why.text, bad[i].where, strlen(bad[i].where)) != 0) {
            fail_msg("%s: %s", bad[i].line, why.text);
        }
    }
}

static void mutated_lines_give_a_command_or_a_sentence(void **state)
{
    static const char line[] =
        "at 1.5s set * up delay=20ms,jitter=5ms rate=1.5M loss=2% corrupt=0.01%";
    dp_rng rng;
    (void)state;
    dp_rng_init(&rng, 5);
    for (unsigned i = 0; i < 20000; i++) {
        char text[sizeof line];
        dp_fault_command command;
        dp_why why = {.text = ""};
        memcpy(text, line, sizeof line);
        for (unsigned k = 0; k < 1 + i % 4; k++) {
            text[dp_rng_below(&rng, sizeof line - 1)] = (char)(1 + dp_rng_below(&rng, 255));
        }
        text[dp_rng_below(&rng, sizeof line)] = '\0';
        const dp_status status = dp_fault_parse(text, 1, &command, &why);
        assert_true(status == DP_OK || (status == DP_BADMSG && why.text[0] != '\0'));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_forward_names_both_addresses),
        cmocka_unit_test(a_rule_takes_times_rates_and_shares),
        cmocka_unit_test(a_direction_makes_it_one_way),
        cmocka_unit_test(from_names_who_dials),
        cmocka_unit_test(an_empty_line_and_a_comment_are_nothing),
        cmocka_unit_test(a_parse_error_is_reported_with_its_column),
        cmocka_unit_test(mutated_lines_give_a_command_or_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
