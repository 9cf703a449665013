#include "tests/lib/check.h"

#include "tests/sim/arguments.h"

enum { WORDS_MAX = 10 };

/* The arguments of this line. */
static dp_status read_line(dp_arguments *args, const char *line, dp_why *why)
{
    static char copy[200];
    char *words[WORDS_MAX] = {(char *)(uintptr_t) "dpsim"};
    int count = 1;
    char *rest = NULL;

    snprintf(copy, sizeof copy, "%s", line);
    *args = (dp_arguments){.jobs = 2, .options = {.trace = -1}};
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MAX);
        words[count++] = word;
    }
    return dp_arguments_read(args, count, words, why);
}

static void seeds_are_one_number_or_two(void **state)
{
    dp_arguments args;
    dp_why why = {0};

    (void)state;
    CHECK_OK(read_line(&args, "--seed 7", &why));
    CHECK(args.first == 7 && args.last == 7);
    CHECK_OK(read_line(&args, "--seeds 3..18446744073709551615", &why));
    CHECK(args.first == 3 && args.last == UINT64_MAX);
    CHECK_OK(read_line(&args, "--seed 0x10", &why));
    CHECK(args.first == 16);
}

static void a_text_that_is_no_seed_is_refused_with_its_text(void **state)
{
    static const char *const wrong[] = {
        "--seed x",    "--seed -1",   "--seed 1x",    "--seed 0",    "--seed 18446744073709551616",
        "--seeds 5..", "--seeds ..5", "--seeds 5..1", "--seeds 1.5", "--seeds 1...5",
        "--seed +1"};
    dp_arguments args;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dp_why why = {0};
        CHECK(read_line(&args, wrong[i], &why) == DP_BADARG);
        CHECK(strstr(why.text, strchr(wrong[i], ' ') + 1) != NULL);
        CHECK(args.first == 0 && args.jobs == 2); /* As it was. */
    }
}

static void every_option_refuses_what_it_cannot_use(void **state)
{
    static const char *const wrong[] = {
        "--seed 1 --nodes x",      "--seed 1 --nodes 0",       "--seed 1 --nodes 1000000",
        "--seed 1 --until -5",     "--seed 1 --until nan",     "--seed 1 --until inf",
        "--seed 1 --until 0",      "--seed 1 --loss x",        "--seed 1 --loss 100",
        "--seed 1 --loss -1",      "--seed 1 --churn x",       "--seed 1 --churn 1001",
        "--seed 1 --round 0.01",   "--seed 1 --trace x",       "--seed 1 --trace -1",
        "--seed 1 --jobs 0",       "--seed 1 --jobs 65",       "--seed 1 --max-failures 0",
        "--seed 1 --profile none", "--seed 1 --store disk",    "--seed 1 --evil nobody",
        "--seed 1 --faults bar",   "--seed 1 --faults loss,,", "--seed 1 --nodes",
        "--seeds 1..2 --shrink",   "--seed 1 --output x",      "--script a --output x"};
    dp_arguments args;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dp_why why = {0};
        if (read_line(&args, wrong[i], &why) == DP_OK || why.text[0] == '\0') {
            fail_msg("%s: taken", wrong[i]);
        }
    }
}

static void a_value_that_is_empty_is_none(void **state)
{
    static const char *const names[] = {"--seed",  "--seeds", "--script", "--output",
                                        "--nodes", "--until", "--faults", "--profile",
                                        "--jobs",  "--loss",  "--churn",  "--max-failures",
                                        "--trace", "--round", "--store",  "--evil"};
    char *words[4] = {"dpsim", "--seed=", "", NULL};

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        dp_arguments args = {.first = 1, .last = 1, .jobs = 2};
        dp_why why = {0};
        words[1] = (char *)(uintptr_t)names[i];
        CHECK(dp_arguments_read(&args, 3, words, &why) == DP_BADARG);
        CHECK(why.text[0] != '\0');
    }
}

static void an_unknown_word_and_a_missing_seed_are_told(void **state)
{
    dp_arguments args;
    dp_why why = {0};

    (void)state;
    CHECK(read_line(&args, "--sede 1", &why) == DP_BADARG);
    CHECK(strstr(why.text, "--sede") != NULL);
    CHECK(read_line(&args, "--json --quiet", &why) == DP_BADARG);
    CHECK(strstr(why.text, "--seed N") != NULL);
    CHECK(read_line(&args, "--seed 1 --faults loss,bar", &why) == DP_BADARG);
    CHECK(strstr(why.text, "\"bar\"") != NULL);
    CHECK(read_line(&args, "--seed 1 --span --parts", &why) == DP_BADARG);
    CHECK(strstr(why.text, "--parts") != NULL);
    CHECK(read_line(&args, "--seed 1 --profile steps --span", &why) == DP_BADARG);
    CHECK_OK(read_line(&args, "--seed 1 --parts --profile steps", &why));
    CHECK(args.options.parts);
    args.options.parts = false;
    CHECK(read_line(&args, "--seed 1 --enrolled", &why) == DP_BADARG);
    CHECK(strstr(why.text, "--profile scale") != NULL);
    CHECK(read_line(&args, "--seed 1 --enrolled --profile scale --store real", &why) == DP_BADARG);
    CHECK_OK(read_line(&args, "--seed 1 --enrolled --profile scale --contributors 64", &why));
    CHECK(args.options.enrolled && args.options.contributors == 64);
    args.options.enrolled = false;
    CHECK_OK(read_line(&args, "--seed 1 --profile merge --span", &why));
    CHECK(args.options.span);
    CHECK_OK(read_line(&args, "--help", &why));
    CHECK(args.help);
}

static void options_are_taken_as_they_are_given(void **state)
{
    dp_arguments args;
    dp_why why = {0};

    (void)state;
    CHECK_OK(read_line(&args, "--seed 1 --until 2.5 --loss 0.5 --every", &why));
    CHECK(args.options.until_us == 2500000 && args.options.loss_milli == 5 && args.options.all_on);
    CHECK_OK(read_line(&args, "--seed 1 --trace 3 --profile rot --lucky --rotate", &why));
    CHECK(args.options.trace == 3 && args.options.profile == DP_PROFILE_ROT && args.options.lucky &&
          args.options.rotate);
    CHECK_OK(read_line(&args, "--script a.dps --churn 5 --round 0.5", &why));
    CHECK(strcmp(args.script, "a.dps") == 0 && args.options.churn_milli == 50 &&
          args.options.round_ms == 500);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(seeds_are_one_number_or_two),
        cmocka_unit_test(a_text_that_is_no_seed_is_refused_with_its_text),
        cmocka_unit_test(every_option_refuses_what_it_cannot_use),
        cmocka_unit_test(a_value_that_is_empty_is_none),
        cmocka_unit_test(an_unknown_word_and_a_missing_seed_are_told),
        cmocka_unit_test(options_are_taken_as_they_are_given),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
