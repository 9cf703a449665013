#include "cli/top/headline.h"

#include "tests/unit/cli/top/picture_kit.h"

static void the_lines_have_what_fits_and_nothing_unknown(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.loss = 0;
    picture_facts.n_rounds = 0;
    picture_open(60, 5, true);
    assert_int_equal(dp_headline_draw(&picture, &picture_facts, PICTURE_NOW), 4);
    assert_true(picture_is(" kjv                                alice (voter)  21:11:07\n"
                           " training   round 40   3 of 3 nodes alive\n"
                           " 2.05k tokens/s here   steps 92 %, rounds 6 %, waiting 2 %\n"
                           " upload 5 Mbit/s, download unlimited\n"
                           "\n"));
}

static void a_node_that_does_not_train_says_so(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.tokens_per_s = 0;
    picture_facts.healthy = false;
    PICTURE_SET(picture_facts.state, "paused");
    PICTURE_SET(picture_facts.reason, "paused by its owner. To train again: dpnode resume");
    assert_int_equal(dp_headline_draw(&picture, &picture_facts, PICTURE_NOW), 5);
    assert_true(picture_has(" no training here now\n") && picture_has("\n paused by its owner."));
}

static void a_chain_that_is_not_read_has_no_round(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.has_round = false;
    picture_facts.loss = 0;
    PICTURE_SET(picture_facts.state, "starting");
    dp_headline_draw(&picture, &picture_facts, PICTURE_NOW);
    assert_true(picture_has("\n starting\n"));
}

static void a_held_out_loss_stands_beside_that_of_the_round(void **state)
{
    (void)state;
    picture_of_three();
    picture_facts.held_out = 3.52;
    dp_headline_draw(&picture, &picture_facts, PICTURE_NOW);
    assert_true(picture_has("loss 3.412, held out 3.520"));
}

static void long_names_leave_the_lines_whole(void **state)
{
    (void)state;
    picture_of_three();
    memset(picture_facts.run, 'r', sizeof picture_facts.run - 1);
    memset(picture_facts.node, 'n', sizeof picture_facts.node - 1);
    dp_headline_draw(&picture, &picture_facts, PICTURE_NOW);
    assert_int_equal(strcspn(picture_text(), "\n"), 64); /* the name of the run alone */
    assert_true(picture_has(" training   round 40"));
}

static void a_small_one_has_the_reason_at_last(void **state)
{
    (void)state;
    picture_of_three();
    PICTURE_SET(picture_facts.reason, "it waits for two others");
    picture_open(20, 7, false);
    dp_headline_small(&picture, &picture_facts, PICTURE_NOW);
    assert_true(picture_is("training, round 40\n"
                           "loss 3.412\n"
                           "2.05k tokens/s here~\n"
                           "3 of 3 nodes alive\n"
                           "it waits for two\n"
                           "others\n"
                           "\n"));
}

#define HEADLINE_TEST(test) cmocka_unit_test_setup_teardown(test, picture_setup, picture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        HEADLINE_TEST(the_lines_have_what_fits_and_nothing_unknown),
        HEADLINE_TEST(a_node_that_does_not_train_says_so),
        HEADLINE_TEST(a_chain_that_is_not_read_has_no_round),
        HEADLINE_TEST(a_held_out_loss_stands_beside_that_of_the_round),
        HEADLINE_TEST(long_names_leave_the_lines_whole),
        HEADLINE_TEST(a_small_one_has_the_reason_at_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
