#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/chaos/chaos.h"

/* Three nodes "aa", "bb", "cc", all up, measured from second 1. */
static int open_book(void **state)
{
    static dp_chaos_book book;
    static const char *const ids[] = {"aa", "bb", "cc"};
    assert_int_equal(dp_chaos_book_open(&book, 3), DP_OK);
    for (unsigned i = 0; i < 3; i++) {
        strcpy(book.lives[i].id, ids[i]);
        dp_chaos_book_back(&book, i, 0);
    }
    dp_chaos_book_begin(&book, 1000);
    *state = &book;
    return 0;
}

static int close_book(void **state)
{
    dp_chaos_book_close(*state);
    return 0;
}

/* node reports round number at now_ms, which lists a and b, with that state after it ("" if
 * unknown). */
static void tell(dp_chaos_book *book, unsigned node, int number, int now_ms, const char *a,
                 const char *b, const char *root)
{
    json_t *round = json_pack("{s:i,s:s,s:i,s:i,s:i,s:f,s:s,s:[{s:s},{s:s}]}", "round", number,
                              "kind", "sync", "slot", number, "tokens", 100, "bytes", 10, "loss",
                              2.0, "state_root", root, "peers", "short", a, "short", b);
    assert_non_null(round);
    dp_chaos_book_round(book, node, (uint64_t)now_ms, round);
    json_decref(round);
}

static void note(dp_chaos_book *book, unsigned node, int time_ms, const char *text)
{
    json_t *event =
        json_pack("{s:i,s:s,s:s}", "time_ms", time_ms, "name", "member.state", "text", text);
    dp_chaos_book_event(book, node, event);
    json_decref(event);
}

static void gaps_are_between_the_first_words_of_new_rounds(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "");
    tell(book, 1, 1, 1900, "aa", "bb", "");
    tell(book, 1, 2, 3500, "aa", "bb", "");
    assert_int_equal(book->committed, 2);
    assert_int_equal(book->tokens, 200);
    assert_true(dp_chaos_quantile(&book->gaps, 1) == 2.0);
    assert_true(dp_chaos_quantile(&book->gaps, 0.5) == 0.5);
}

static void states_that_differ_break_parity(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "11");
    tell(book, 1, 1, 1500, "aa", "bb", "11");
    assert_int_equal(book->parity_breaks, 0);
    tell(book, 2, 1, 1500, "aa", "bb", "12");
    tell(book, 2, 1, 1600, "aa", "bb", "12"); /* the same word again */
    assert_int_equal(book->parity_breaks, 1);
    assert_int_equal(book->roots, 3);
}

static void another_record_for_a_round_is_a_duplicate(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "");
    tell(book, 1, 1, 1500, "aa", "cc", "");
    assert_int_equal(book->duplicate, 1);
}

static void a_round_that_nobody_tells_or_holds_is_lost(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "");
    tell(book, 0, 3, 1600, "aa", "bb", ""); /* 2 was never reported */
    tell(book, 0, 4, 1700, "aa", "bb", ""); /* and 4 is beyond the head of all */
    dp_chaos_book_end(book, 3);
    assert_int_equal(book->lost, 2);
}

static void a_node_is_back_with_a_round_begun_after_the_kill(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "");
    dp_chaos_book_fault(book, 1, DP_CHAOS_KILL, 1600);
    dp_chaos_book_back(book, 1, 1700);
    tell(book, 0, 2, 1800, "aa", "bb", ""); /* may be an earlier publication */
    assert_int_equal(book->rejoined, 0);
    assert_int_equal(dp_chaos_book_waiting(book), 1);
    tell(book, 0, 3, 2200, "aa", "bb", "");
    assert_int_equal(book->rejoined, 1);
    assert_true(dp_chaos_quantile(&book->rejoins, 1) == 0.5);
    assert_int_equal(dp_chaos_book_waiting(book), 0);
}

static void each_survivor_detects_once(void **state)
{
    dp_chaos_book *book = *state;
    dp_chaos_book_fault(book, 1, DP_CHAOS_KILL, 2000);
    note(book, 0, 2250, "node2 (bb): alive -> suspect: reset");
    note(book, 0, 2500, "node2 (bb): suspect -> dead: quorum");
    note(book, 2, 3000, "bb: alive -> dead: quorum");
    note(book, 2, 3100, "bb: dead -> alive: heard");
    assert_int_equal(book->detects.count, 2);
    assert_true(dp_chaos_quantile(&book->detects, 0.5) == 0.25);
    assert_true(dp_chaos_quantile(&book->detects, 1) == 1.0);
    assert_int_equal(book->false_detections, 0);
}

static void a_living_node_held_for_dead_is_a_false_detection(void **state)
{
    dp_chaos_book *book = *state;
    note(book, 0, 2000, "node2 (bb): alive -> suspect: silent");
    assert_int_equal(book->false_suspicions, 1);
    assert_int_equal(book->false_detections, 0);
    note(book, 0, 2500, "node2 (bb): suspect -> dead: quorum");
    assert_int_equal(book->false_detections, 1);
    dp_chaos_book_fault(book, 2, DP_CHAOS_KILL, 3000);
    dp_chaos_book_back(book, 2, 3500);
    note(book, 0, 4000, "node3 (cc): suspect -> dead: quorum"); /* it has just come back */
    assert_int_equal(book->false_detections, 1);
    note(book, 0, 3500 + DP_CHAOS_GRACE_MS, "node3 (cc): alive -> dead: quorum");
    assert_int_equal(book->false_detections, 2);
}

static void a_frozen_node_is_counted_apart(void **state)
{
    dp_chaos_book *book = *state;
    dp_chaos_book_fault(book, 1, DP_CHAOS_STOP, 2000);
    note(book, 0, 2600, "node2 (bb): alive -> suspect: silent");
    dp_chaos_book_back(book, 1, 2000 + DP_CHAOS_NOTICE_MS);
    assert_int_equal(book->detects.count, 0);
    assert_int_equal(book->detects_stop.count, 1);
    assert_true(dp_chaos_quantile(&book->detects_stop, 1) == 0.6);
    assert_int_equal(book->unnoticed, 1); /* by the third node, for three seconds */
    tell(book, 0, 1, 6000, "aa", "cc", "");
    tell(book, 0, 2, 6500, "aa", "bb", "");
    assert_int_equal(book->rejoins.count, 0);
    assert_int_equal(book->rejoins_other.count, 1);
}

static void who_is_cut_off_may_be_held_for_dead_and_nobody_else(void **state)
{
    dp_chaos_book *book = *state;
    dp_chaos_book_cut(book, 1U << 1, 6000);
    note(book, 0, 7000, "bb: suspect -> dead: quorum");
    note(book, 1, 7000, "aa: suspect -> dead: alone"); /* as it seems from there */
    assert_int_equal(book->false_detections, 0);
    note(book, 0, 7000,
         "cc: suspect -> dead: quorum"); /* both on one side, and one cannot accuse */
    assert_int_equal(book->false_detections, 1);
    dp_chaos_book_healed(book, 8000);
    note(book, 2, 8000 + DP_CHAOS_GRACE_MS - 1, "bb: alive -> dead: quorum");
    assert_int_equal(book->false_detections, 1);
    note(book, 2, 8000 + DP_CHAOS_GRACE_MS, "bb: alive -> dead: quorum");
    assert_int_equal(book->false_detections, 2);
    assert_int_equal(book->faults[DP_CHAOS_CUT], 1);
    assert_int_equal(dp_chaos_book_waiting(book), 1);
}

static void a_dead_trainer_excuses_no_false_detection(void **state)
{
    dp_chaos_book *book = *state;
    dp_chaos_book_fault(book, 1, DP_CHAOS_WORKER, 6000);
    dp_chaos_book_back(book, 1, 6000);
    note(book, 0, 6500, "bb: suspect -> dead: quorum");
    assert_int_equal(book->false_detections, 1);
}

static void a_gap_counts_as_what_began_in_it(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "");
    dp_chaos_book_fault(book, 2, DP_CHAOS_KILL, 1600);
    tell(book, 0, 2, 2100, "aa", "bb", ""); /* 0.6 s with a kill */
    tell(book, 0, 3, 2600, "aa", "bb", ""); /* it is still down: neither */
    dp_chaos_book_back(book, 2, 2700);
    tell(book, 0, 4, 3200, "aa", "cc", ""); /* clean again */
    dp_chaos_book_fault(book, 2, DP_CHAOS_STOP, 3300);
    dp_chaos_book_fault(book, 1, DP_CHAOS_KILL, 3400);
    tell(book, 0, 5, 4000, "aa", "cc", ""); /* of two kinds: neither */
    assert_int_equal(book->gaps.count, 5);
    assert_int_equal(book->gaps_by[DP_CHAOS_GAP_CLEAN].count, 2);
    assert_int_equal(book->gaps_by[DP_CHAOS_GAP_KILL].count, 1);
    assert_int_equal(book->gaps_by[DP_CHAOS_GAP_STOP].count, 0);
    assert_true(dp_chaos_quantile(&book->gaps_by[DP_CHAOS_GAP_KILL], 1) == 0.6);
}

/* Two lives at different levels, each growing by 6 MiB per hour; the second has fewer descriptors
 * from the start. */
static void slopes_are_within_lives(void **state)
{
    (void)state;
    dp_chaos_slope all = {0};
    double rss = 0;
    double fds = 0;
    for (unsigned life = 0; life < 2; life++) {
        dp_chaos_slope one = {0};
        for (unsigned i = 0; i < 200; i++) {
            one.begin_ms = life * 1000000;
            dp_chaos_slope_add(&one, one.begin_ms + i * 1000U, 20.0 - 8.0 * life + 6.0 * i / 3600.0,
                               40.0 - life);
        }
        dp_chaos_slope_fold(&all, &one);
    }
    assert_true(dp_chaos_slope_tell(&all, &rss, &fds));
    assert_true(rss > 5.99 && rss < 6.01);
    assert_true(fds > -0.01 && fds < 0.01);
    dp_chaos_slope little = {0};
    assert_false(dp_chaos_slope_tell(&little, &rss, &fds));
}

static void kinds_are_read_from_a_list(void **state)
{
    (void)state;
    assert_int_equal(dp_chaos_kinds_parse("kill"), 1U << DP_CHAOS_KILL);
    assert_int_equal(dp_chaos_kinds_parse("worker,cut"),
                     1U << DP_CHAOS_WORKER | 1U << DP_CHAOS_CUT);
    assert_int_equal(dp_chaos_kinds_parse("rot,owner"), 1U << DP_CHAOS_ROT | 1U << DP_CHAOS_OWNER);
    assert_int_equal(dp_chaos_kinds_parse("kill,"), 0);
    assert_int_equal(dp_chaos_kinds_parse(""), 0);
    assert_int_equal(dp_chaos_kinds_parse("kill,fire"), 0);
}

static void odd_words_change_nothing(void **state)
{
    dp_chaos_book *book = *state;
    json_t *odd = json_pack("{s:s,s:i}", "round", "one", "peers", 3);
    json_t *far = json_pack("{s:I}", "round", (json_int_t)DP_CHAOS_ROUNDS_MAX);
    dp_chaos_book_round(book, 0, 1500, odd);
    dp_chaos_book_round(book, 0, 1500, far);
    dp_chaos_book_event(book, 0, odd);
    json_decref(odd);
    json_decref(far);
    assert_int_equal(book->committed, 0);
    assert_true(dp_chaos_quantile(&book->gaps, 0.5) == 0);
    assert_true(dp_chaos_book_loss(book, 100) == 0);
}

#define BOOK_TEST(f) cmocka_unit_test_setup_teardown(f, open_book, close_book)

/* An outage is not a gap: without a majority of the nodes there can be no round. */
static void a_gap_begins_where_a_majority_is_back(void **state)
{
    dp_chaos_book *book = *state;
    tell(book, 0, 1, 1500, "aa", "bb", "");
    dp_chaos_book_fault(book, 0, DP_CHAOS_MAJORITY, 2000);
    dp_chaos_book_fault(book, 1, DP_CHAOS_MAJORITY, 2000);
    dp_chaos_book_back(book, 0, 6000);
    dp_chaos_book_back(book, 1, 6000);
    assert_int_equal(book->outage_ms, 4000);
    assert_int_equal(book->faults[DP_CHAOS_MAJORITY],
                     0); /* One loss of several nodes: counted once, elsewhere. */
    tell(book, 2, 2, 6400, "aa", "bb", "");
    assert_true(dp_chaos_quantile(&book->gaps, 1) == 0.5);
    assert_int_equal(book->detects.count, 0);
}

static void trainer_is_down(dp_chaos_book *book, unsigned node, int time_ms)
{
    json_t *event = json_pack("{s:i,s:s,s:s}", "time_ms", time_ms, "name", "trainer.down", "text",
                              "the trainer was killed by signal 9");
    dp_chaos_book_event(book, node, event);
    json_decref(event);
}

static void a_trainer_that_nobody_killed_is_told(void **state)
{
    dp_chaos_book *book = *state;
    dp_chaos_book_fault(book, 1, DP_CHAOS_WORKER, 2000);
    dp_chaos_book_back(book, 1, 2000);
    trainer_is_down(book, 1, 2010);
    trainer_is_down(book, 1, 2010); /* Reported again to a new connection. */
    assert_int_equal(book->trainers_died, 0);
    dp_chaos_book_fault(book, 2, DP_CHAOS_DISK, 3000);
    trainer_is_down(book, 2, 3500); /* The disk explains it, ... */
    dp_chaos_book_back(book, 2, 4000);
    trainer_is_down(book, 2, 4000 + DP_CHAOS_EXPLAINED_MS - 1);
    assert_int_equal(book->trainers_died, 0);
    trainer_is_down(book, 2, 4000 + DP_CHAOS_EXPLAINED_MS); /* ... and not for ever. */
    trainer_is_down(book, 1, 5000);
    assert_int_equal(book->trainers_died, 2);
    assert_string_not_equal(book->first_wrong, "");
}

static void times_of_a_clock_that_is_wrong_say_nothing(void **state)
{
    dp_chaos_book *book = *state;
    dp_chaos_book_fault(book, 1, DP_CHAOS_CLOCK, 2000);
    dp_chaos_book_back(book, 1, 2500);
    dp_chaos_book_fault(book, 2, DP_CHAOS_STOP, 2500);
    assert_int_equal(book->lives[2].watchers, 1U << 0);
    dp_chaos_book_back(book, 2, 2550);
    dp_chaos_book_fault(book, 1, DP_CHAOS_STOP, 2600);
    dp_chaos_book_back(book, 1, 2700);
    /* Reported again, from the time when it was wrong. */
    note(book, 1, 900000, "cc alive -> dead");
    trainer_is_down(book, 1, 900000);
    assert_int_equal(book->false_detections, 0);
    assert_int_equal(book->trainers_died, 0);
    note(book, 0, 9000, "cc alive -> dead"); /* The others are heard, ... */
    assert_int_equal(book->false_detections, 1);
    dp_chaos_book_fault(book, 1, DP_CHAOS_KILL, 9500);
    dp_chaos_book_back(book, 1, 9600);
    note(book, 1, 20000, "cc alive -> dead"); /* ... and its next process. */
    assert_int_equal(book->false_detections, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOOK_TEST(gaps_are_between_the_first_words_of_new_rounds),
        BOOK_TEST(states_that_differ_break_parity),
        BOOK_TEST(another_record_for_a_round_is_a_duplicate),
        BOOK_TEST(a_round_that_nobody_tells_or_holds_is_lost),
        BOOK_TEST(a_node_is_back_with_a_round_begun_after_the_kill),
        BOOK_TEST(each_survivor_detects_once),
        BOOK_TEST(a_living_node_held_for_dead_is_a_false_detection),
        BOOK_TEST(a_frozen_node_is_counted_apart),
        BOOK_TEST(who_is_cut_off_may_be_held_for_dead_and_nobody_else),
        BOOK_TEST(a_dead_trainer_excuses_no_false_detection),
        BOOK_TEST(a_gap_counts_as_what_began_in_it),
        BOOK_TEST(a_gap_begins_where_a_majority_is_back),
        BOOK_TEST(a_trainer_that_nobody_killed_is_told),
        BOOK_TEST(times_of_a_clock_that_is_wrong_say_nothing),
        cmocka_unit_test(slopes_are_within_lives),
        cmocka_unit_test(kinds_are_read_from_a_list),
        BOOK_TEST(odd_words_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
