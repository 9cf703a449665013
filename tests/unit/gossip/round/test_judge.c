/* Updates that are found harmful, and accused members: only with numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "gossip/round/judge.h"

enum { MEMBERS = 4, USUAL = 16000 };

static dp_judge judge;
static dp_judge_member members[MEMBERS];
static uint64_t now_us;

static int setup(void **state)
{
    (void)state;
    memset(&judge, 0, sizeof judge);
    memset(members, 0, sizeof members);
    judge.members = members;
    judge.members_max = MEMBERS;
    now_us = 1000;
    return 0;
}

static dp_peer peer_of(uint32_t index)
{
    dp_peer peer = {{0}};

    peer.bytes[0] = (uint8_t)(1 + index);
    return peer;
}

/* An update with this alignment that looks like no other. */
static dp_judged aligned(int32_t align)
{
    static uint8_t last;
    dp_judged found = {.compared = true, .align = align};

    last++;
    for (uint32_t i = 0; i < DP_LIKENESS_BYTES; i++) {
        found.likeness[i] = (uint8_t)(last * 37 + i * last * 101 + 1);
    }
    return found;
}

static dp_judgement find(uint32_t member, uint64_t round, const dp_judged *found)
{
    const dp_peer peer = peer_of(member);
    dp_peer exposed;

    return dp_judge_update(&judge, &peer, round, (dp_time){now_us++}, found, &exposed);
}

static dp_judgement find_aligned(uint32_t member, uint64_t round, int32_t align)
{
    const dp_judged found = aligned(align);

    return find(member, round, &found);
}

/* Rounds in which three members are aligned as usual. */
static void become_usual(void)
{
    for (uint64_t round = 1; round <= 4; round++) {
        for (uint32_t i = 0; i < 3; i++) {
            assert_int_equal(find_aligned(i, round, USUAL), DP_FOUND_GOOD);
        }
        dp_judge_open_round(&judge);
    }
    assert_int_equal(judge.align.value, USUAL);
}

static void an_update_in_an_unusual_direction_is_found(void **state)
{
    (void)state;
    become_usual();
    assert_int_equal(find_aligned(0, 5, -USUAL), DP_FOUND_AGAINST);
    assert_int_equal(find_aligned(1, 5, 0), DP_FOUND_AGAINST); /* Noise, or nothing. */
    assert_int_equal(find_aligned(2, 5, USUAL / DP_JUDGE_SHARE), DP_FOUND_AGAINST);
}

static void a_member_with_unlike_data_is_not_found_harmful(void **state)
{
    (void)state;
    become_usual();
    assert_int_equal(find_aligned(3, 5, USUAL / DP_JUDGE_SHARE + 1), DP_FOUND_GOOD);
}

static void before_anything_is_usual_only_the_opposite_is_found(void **state)
{
    (void)state;
    assert_int_equal(find_aligned(0, 1, 1), DP_FOUND_GOOD);
    assert_int_equal(find_aligned(1, 1, -1), DP_FOUND_AGAINST);
}

/* Half of the updates are the attacker's, and they cannot move the usual value below that of the
 * honest half. */
static void the_usual_value_is_the_median(void **state)
{
    (void)state;
    become_usual();
    for (uint64_t round = 5; round < 30; round++) {
        (void)find_aligned(0, round, 1);
        (void)find_aligned(1, round, USUAL);
        (void)find_aligned(2, round, USUAL + 100);
        dp_judge_open_round(&judge);
    }
    assert_int_equal(judge.align.value, USUAL);
    (void)find_aligned(0, 30, -USUAL);
    dp_judge_open_round(&judge); /* Half of them lead elsewhere. */
    assert_int_equal(judge.align.value, USUAL);
    dp_judge_open_round(&judge); /* A round without a judged update does not change it. */
    assert_int_equal(judge.align.value, USUAL);
}

static dp_judgement find_gains(int32_t align, dp_gain held, dp_gain claimed)
{
    static uint64_t round = 5;
    dp_judged found = aligned(align);

    found.held = held;
    found.claimed = claimed;
    return find(0, round++, &found);
}

/* Every update of a minority with other data has another direction; it helps nevertheless, mostly
 * on its own data. */
static void a_suspect_that_helps_is_acquitted(void **state)
{
    const dp_gain none = {0};
    const dp_gain loss = {.micro = -80, .error_micro = 30, .tokens = 64};
    const dp_gain gain = {.micro = 300, .error_micro = 40, .tokens = 64};
    const dp_gain small = {.micro = 40, .error_micro = 40, .tokens = 64};
    const dp_gain extreme = {.micro = INT64_MAX, .error_micro = 1000, .tokens = 1};
    const dp_gain unsure = {.micro = INT64_MAX, .error_micro = UINT64_MAX, .tokens = 1};

    (void)state;
    become_usual();
    assert_int_equal(find_gains(-1, loss, gain), DP_FOUND_GOOD);
    assert_int_equal(find_gains(-1, gain, none), DP_FOUND_GOOD);
    assert_int_equal(find_gains(-1, extreme, extreme), DP_FOUND_GOOD);
    assert_int_equal(find_gains(-1, none, none), DP_FOUND_AGAINST); /* Not measured. */
    assert_int_equal(find_gains(-1, small, none), DP_FOUND_AGAINST);
    assert_int_equal(find_gains(-1, loss, small), DP_FOUND_AGAINST);
    assert_int_equal(find_gains(-1, unsure, none), DP_FOUND_AGAINST);
    assert_int_equal(find_gains(USUAL, loss, none), DP_FOUND_GOOD); /* No test is needed. */
}

/* A few samples can be memorized, at the cost of all others. */
static void a_gain_on_its_own_samples_does_not_pay_for_others_loss(void **state)
{
    const dp_gain heart = {.micro = 10000, .error_micro = 100, .tokens = 64};
    const dp_gain loss = {.micro = -6000, .error_micro = 100, .tokens = 64};
    const dp_gain little = {.micro = -4000, .error_micro = 100, .tokens = 64};
    const dp_gain unsure = {.micro = -6000, .error_micro = 7000, .tokens = 64};

    (void)state;
    become_usual();
    assert_int_equal(find_gains(-1, loss, heart), DP_FOUND_AGAINST);
    assert_int_equal(find_gains(-1, little, heart), DP_FOUND_GOOD);
    assert_int_equal(find_gains(-1, unsure, heart),
                     DP_FOUND_AGAINST); /* As much as the sum's error. */
}

static void only_a_suspect_is_judged_again(void **state)
{
    dp_judged found = aligned(USUAL / DP_JUDGE_SHARE + 1);

    (void)state;
    become_usual();
    assert_false(dp_judge_suspects(&judge, &found));
    found.align--;
    assert_true(dp_judge_suspects(&judge, &found));
    found.compared = false;
    assert_false(dp_judge_suspects(&judge, &found));
    found.compared = true;
    found.failed = true;
    assert_false(dp_judge_suspects(&judge, &found));
}

static void flip_bits(dp_judged *found, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        found->likeness[i / 8] ^= (uint8_t)(1U << i % 8);
    }
}

static void a_copy_that_was_changed_a_little_is_found(void **state)
{
    const dp_judged original = aligned(USUAL);
    dp_judged copy = original;

    (void)state;
    assert_int_equal(find(0, 1, &original), DP_FOUND_GOOD);
    flip_bits(&copy, DP_JUDGE_COPY_BITS - 1);
    assert_int_equal(find(1, 1, &copy), DP_FOUND_COPY);
    copy = original;
    flip_bits(&copy, DP_JUDGE_COPY_BITS);
    assert_int_equal(find(2, 1, &copy), DP_FOUND_GOOD);
}

static void an_old_update_of_one_s_own_is_a_copy_for_some_rounds(void **state)
{
    const dp_judged found = aligned(USUAL);

    (void)state;
    assert_int_equal(find(0, 1, &found), DP_FOUND_GOOD);
    assert_int_equal(find(0, 1 + DP_JUDGE_PRINT_ROUNDS, &found), DP_FOUND_COPY);
    assert_int_equal(find(0, 2 + DP_JUDGE_PRINT_ROUNDS, &found), DP_FOUND_GOOD);
}

/* Work that was left out comes again with the next round's work, and may look the same. */
static void work_that_no_record_listed_is_no_copy_of_itself(void **state)
{
    const dp_judged found = aligned(USUAL);
    const dp_peer peer = peer_of(0);

    (void)state;
    assert_int_equal(find(0, 1, &found), DP_FOUND_GOOD);
    dp_judge_unlisted(&judge, &peer, 1);
    assert_int_equal(find(0, 2, &found), DP_FOUND_GOOD);
    assert_int_equal(find(1, 3, &found), DP_FOUND_COPY); /* Of that one. */
}

/* The liar's blob may be here before the one that it is of; its claim cannot be. */
static void the_copy_is_the_one_that_was_told_later_whichever_is_judged_first(void **state)
{
    const dp_judged found = aligned(USUAL);
    const dp_peer author = peer_of(0);
    const dp_peer thief = peer_of(1);
    const dp_peer voter = peer_of(2);
    dp_peer exposed;

    (void)state;
    assert_int_equal(dp_judge_update(&judge, &thief, 1, (dp_time){20}, &found, &exposed),
                     DP_FOUND_GOOD);
    assert_int_equal(exposed.bytes[0], 0);
    assert_int_equal(dp_judge_update(&judge, &author, 1, (dp_time){10}, &found, &exposed),
                     DP_FOUND_GOOD);
    assert_true(dp_peer_equal(&exposed, &thief));
    dp_judge_trusted(&judge, &voter, 1, (dp_time){5}, false, &found, &exposed); /* Of both. */
    assert_true(exposed.bytes[0] != 0);
}

/* At another voter the author's READY may have arrived later: a copy in this round is left out, but
 * is not a reason for a removal. */
static void a_copy_of_its_own_round_accuses_nobody_and_an_older_one_does(void **state)
{
    const dp_peer thief = peer_of(1);
    const dp_judged old = aligned(USUAL);
    uint64_t round = 2;

    (void)state;
    assert_int_equal(find(0, 1, &old), DP_FOUND_GOOD);
    for (; round < 2 + DP_JUDGE_WINDOW; round++) {
        const dp_judged found = aligned(USUAL);
        assert_int_equal(find(0, round, &found), DP_FOUND_GOOD);
        assert_int_equal(find(1, round, &found), DP_FOUND_COPY);
        assert_false(dp_judge_accuses(&judge, &thief));
    }
    const dp_judged again = aligned(USUAL);
    assert_int_equal(find(0, round, &again), DP_FOUND_GOOD);
    for (uint32_t i = 0; i < DP_JUDGE_HARMFUL; i++) {
        assert_int_equal(find(1, ++round, &again), DP_FOUND_COPY);
    }
    assert_true(dp_judge_accuses(&judge, &thief));
}

/* If voters train, a liar can neither move the usual value by its own updates, nor copy a voter. */
static void voters_say_what_is_usual_and_are_copied_by_nobody(void **state)
{
    const dp_peer voter = peer_of(0);
    dp_peer exposed;

    (void)state;
    for (uint64_t round = 1; round < 20; round++) {
        const dp_judged found = aligned(USUAL);
        dp_judge_trusted(&judge, &voter, round, (dp_time){now_us++}, false, &found, &exposed);
        dp_judge_trusted(&judge, &voter, round, (dp_time){now_us++}, false, &found, &exposed);
        assert_int_equal(find(1, round, &found), DP_FOUND_COPY);
        assert_int_equal(find_aligned(2, round, USUAL / 2 + 1), DP_FOUND_GOOD);
        dp_judge_open_round(&judge);
    }
    assert_int_equal(judge.align.value, USUAL);
    const dp_judged own = aligned(4 * USUAL);
    dp_judge_trusted(&judge, &voter, 20, (dp_time){now_us++}, true, &own, &exposed);
    dp_judge_open_round(&judge);
    assert_int_equal(judge.align.value, USUAL);
}

static void updates_that_look_like_nothing_are_no_copies(void **state)
{
    const dp_judged found = {.compared = true, .align = USUAL};

    (void)state;
    assert_int_equal(find(0, 1, &found), DP_FOUND_GOOD);
    assert_int_equal(find(1, 1, &found), DP_FOUND_GOOD);
}

static void only_a_member_harmful_most_of_the_time_is_accused(void **state)
{
    const dp_peer peer = peer_of(0);
    uint64_t round = 1;

    (void)state;
    become_usual();
    for (round = 5; round < 5 + DP_JUDGE_HARMFUL; round++) {
        assert_false(dp_judge_accuses(&judge, &peer));
        (void)find_aligned(0, round, -1);
    }
    assert_true(dp_judge_accuses(&judge, &peer));
    assert_int_equal(find_aligned(0, round++, USUAL), DP_FOUND_GOOD);
    assert_false(dp_judge_accuses(&judge, &peer)); /* Its last one was good. */
    (void)find_aligned(0, round++, -1);
    assert_true(dp_judge_accuses(&judge, &peer));
    for (uint32_t i = 0; i < 3; i++) {
        (void)find_aligned(0, round++, USUAL);
    }
    (void)find_aligned(0, round++, -1);
    assert_false(dp_judge_accuses(&judge, &peer)); /* Of the last eight, five. */
    const dp_peer other = peer_of(1);
    const dp_peer stranger = peer_of(9);
    assert_false(dp_judge_accuses(&judge, &other) || dp_judge_accuses(&judge, &stranger));
}

/* Another READY for one round, as a restarted trainer sends, is not another harm. */
static void a_round_counts_once(void **state)
{
    const dp_peer peer = peer_of(0);

    (void)state;
    become_usual();
    for (uint32_t i = 0; i < 2 * DP_JUDGE_WINDOW; i++) {
        assert_int_equal(find_aligned(0, 5, -1), DP_FOUND_AGAINST);
    }
    assert_false(dp_judge_accuses(&judge, &peer));
}

static void a_failed_measurement_accuses_no_member(void **state)
{
    const dp_judged found = {.failed = true, .compared = true, .align = -1};

    (void)state;
    become_usual();
    for (uint64_t round = 5; round < 20; round++) {
        assert_int_equal(find(0, round, &found), DP_FOUND_GOOD);
    }
    const dp_peer peer = peer_of(0);
    assert_false(dp_judge_accuses(&judge, &peer));
    assert_int_equal(judge.align.n, 0);
}

static void where_there_is_no_room_the_member_judged_longest_ago_is_forgotten(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < MEMBERS; i++) {
        (void)find_aligned(i, 10 - i, USUAL);
    }
    (void)find_aligned(MEMBERS, 11, USUAL);
    assert_int_equal(judge.n_members, MEMBERS);
    assert_int_equal(members[MEMBERS - 1].peer.bytes[0], peer_of(MEMBERS).bytes[0]);
    for (uint32_t i = 0; i < DP_JUDGE_PRINTS_MAX + DP_JUDGE_SAMPLES_MAX; i++) {
        (void)find_aligned(0, 12 + i, USUAL); /* Rings and lists have their bounds. */
    }
    assert_int_equal(judge.n_prints, DP_JUDGE_PRINTS_MAX);
    assert_int_equal(judge.align.n, DP_JUDGE_SAMPLES_MAX);
}

static void
suspects_share_three_percent_of_a_voters_training_and_get_four_windows_at_least(void **state)
{
    uint64_t left = dp_judge_budget(400000);

    (void)state;
    assert_int_equal(left, 9000); /* Four passes for each token, of three in training: 3 %. */
    assert_int_equal(dp_judge_take(&left, 64), 2250);
    assert_int_equal(left, 6750);
    for (int i = 0; i < 64; i++) {
        assert_true(dp_judge_take(&left, 64) >= 4 * 64);
    }
    left = UINT64_MAX;
    assert_int_equal(dp_judge_take(&left, 64), UINT32_MAX);
}

static void every_judgement_has_words(void **state)
{
    (void)state;
    assert_string_equal(dp_judgement_text(DP_FOUND_GOOD), "");
    for (int i = DP_FOUND_AGAINST; i <= DP_FOUND_COPY; i++) {
        assert_true(strlen(dp_judgement_text((dp_judgement)i)) > 10);
    }
}

/* Judged before the update that it may copy, but announced after it. */
static void a_difference_of_as_many_bits_as_the_limit_is_no_copy(void **state)
{
    const dp_peer author = peer_of(0);
    const dp_peer thief = peer_of(1);
    dp_peer exposed;

    for (uint32_t more = 0; more < 2; more++) {
        const dp_judged found = aligned(USUAL);
        dp_judged copy = found;
        assert_int_equal(setup(state), 0);
        flip_bits(&copy, DP_JUDGE_COPY_BITS - 1 + more);
        assert_int_equal(dp_judge_update(&judge, &thief, 1, (dp_time){20}, &copy, &exposed),
                         DP_FOUND_GOOD);
        assert_int_equal(dp_judge_update(&judge, &author, 1, (dp_time){10}, &found, &exposed),
                         DP_FOUND_GOOD);
        assert_int_equal(dp_peer_equal(&exposed, &thief), more == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_update_in_an_unusual_direction_is_found, setup),
        cmocka_unit_test_setup(a_member_with_unlike_data_is_not_found_harmful, setup),
        cmocka_unit_test_setup(before_anything_is_usual_only_the_opposite_is_found, setup),
        cmocka_unit_test_setup(the_usual_value_is_the_median, setup),
        cmocka_unit_test_setup(a_suspect_that_helps_is_acquitted, setup),
        cmocka_unit_test_setup(a_gain_on_its_own_samples_does_not_pay_for_others_loss, setup),
        cmocka_unit_test_setup(only_a_suspect_is_judged_again, setup),
        cmocka_unit_test_setup(a_copy_that_was_changed_a_little_is_found, setup),
        cmocka_unit_test_setup(an_old_update_of_one_s_own_is_a_copy_for_some_rounds, setup),
        cmocka_unit_test_setup(work_that_no_record_listed_is_no_copy_of_itself, setup),
        cmocka_unit_test_setup(the_copy_is_the_one_that_was_told_later_whichever_is_judged_first,
                               setup),
        cmocka_unit_test_setup(a_copy_of_its_own_round_accuses_nobody_and_an_older_one_does, setup),
        cmocka_unit_test_setup(voters_say_what_is_usual_and_are_copied_by_nobody, setup),
        cmocka_unit_test_setup(updates_that_look_like_nothing_are_no_copies, setup),
        cmocka_unit_test_setup(only_a_member_harmful_most_of_the_time_is_accused, setup),
        cmocka_unit_test_setup(a_round_counts_once, setup),
        cmocka_unit_test_setup(a_failed_measurement_accuses_no_member, setup),
        cmocka_unit_test_setup(where_there_is_no_room_the_member_judged_longest_ago_is_forgotten,
                               setup),
        cmocka_unit_test(
            suspects_share_three_percent_of_a_voters_training_and_get_four_windows_at_least),
        cmocka_unit_test(every_judgement_has_words),
        cmocka_unit_test(a_difference_of_as_many_bits_as_the_limit_is_no_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
