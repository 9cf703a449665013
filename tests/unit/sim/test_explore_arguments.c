#include "tests/lib/check.h"

#include "tests/sim/explore_arguments.h"

enum { WORDS_MAX = 20 };

/* The arguments of this line, after --explore. */
static dp_status read_line(dp_explore_arguments *args, const char *line, dp_why *why)
{
    static char copy[200];
    char *words[WORDS_MAX] = {(char *)(uintptr_t) "dpsim", (char *)(uintptr_t) "--explore"};
    int count = 2;
    char *rest = NULL;

    snprintf(copy, sizeof copy, "%s", line);
    *args = (dp_explore_arguments){
        .bounds = {.slots = 1, .bids = 1}, .bids_all = 2, .crashes = 1, .states = UINT64_MAX};
    for (char *word = strtok_r(copy, " ", &rest); word != NULL; word = strtok_r(NULL, " ", &rest)) {
        assert_true(count < WORDS_MAX);
        words[count++] = word;
    }
    return dp_explore_arguments_read(args, count, words, why);
}

static void every_option_reaches_its_place(void **state)
{
    dp_explore_arguments args;
    dp_why why = {0};

    (void)state;
    CHECK_OK(read_line(&args, "", &why));
    CHECK(args.bounds.slots == 1 && args.bids_all == 2 && args.states == UINT64_MAX && !args.help);
    CHECK_OK(read_line(&args,
                       "--slots 3 --voters change --bids 0 --bids-all 31 --crashes 7 --states 9 "
                       "--claim s1 --votes each",
                       &why));
    CHECK(args.bounds.slots == 3 && args.bounds.hand_over && args.bounds.bids == 0);
    CHECK(args.bids_all == 31 && args.crashes == 7 && args.states == 9);
    CHECK(args.only_s1 && args.votes_each);
    CHECK_OK(read_line(&args, "--voters change --voters stay --claim all --votes together", &why));
    CHECK(!args.bounds.hand_over && !args.only_s1 && !args.votes_each);
    CHECK_OK(read_line(&args, "--help", &why));
    CHECK(args.help);
}

static void a_wrong_word_is_named_with_what_would_do(void **state)
{
    static const struct {
        const char *line;
        const char *says;
    } wrong[] = {
        {"--slots 4", "--slots \"4\": needs a number from 1 to 3"},
        {"--slots 0", "--slots \"0\": needs a number from 1 to 3"},
        {"--slots", "--slots needs a number from 1 to 3"},
        {"--voters some", "--voters \"some\": needs stay or change"},
        {"--bids 8", "from 0 to 7"},
        {"--bids -1", "--bids \"-1\""},
        {"--bids-all 32", "from 0 to 31"},
        {"--crashes 1x", "--crashes \"1x\""},
        {"--crashes 18446744073709551616", "--crashes \"18446744073709551616\""},
        {"--states 0", "at least 1"},
        {"--claim s2", "all or s1"},
        {"--votes --claim", "together or each"},
        {"--seed 1", "\"--seed\" is no option of --explore"},
        {"more", "\"more\" is no option of --explore"},
    };
    dp_explore_arguments args;

    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        dp_why why = {0};
        CHECK(read_line(&args, wrong[i].line, &why) == DP_BADARG);
        CHECK(strstr(why.text, wrong[i].says) != NULL);
        CHECK(args.bounds.slots == 1 && args.states == UINT64_MAX);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_option_reaches_its_place),
        cmocka_unit_test(a_wrong_word_is_named_with_what_would_do),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
