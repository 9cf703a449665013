/* How many elements of updates travel, as the chain has it. */
#include "base/rng.h"
#include "gossip/ledger/density.h"
#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_density of_span(uint32_t least, uint32_t most)
{
    dp_manifest manifest;

    dp_manifest_default(&manifest);
    manifest.codec_keep = least;
    manifest.codec_keep_most = most;
    return dp_density_first(&manifest);
}

static void say(dp_density *density, dp_lines lines, uint32_t times)
{
    for (uint32_t i = 0; i < times; i++) {
        dp_density_next(density, lines);
    }
}

static void three_slow_rounds_in_a_row_halve_the_elements(void **state)
{
    dp_density density = of_span(32, 128);

    (void)state;
    say(&density, DP_LINES_SLOW, 2);
    assert_int_equal(density.keep, 32);
    say(&density, DP_LINES_SLOW, 1);
    assert_int_equal(density.keep, 64);
    assert_int_equal(density.before, 32); /* The density of the round before. */
    say(&density, DP_LINES_SLOW, 2);
    assert_int_equal(density.keep, 64); /* The count has been reset. */
    assert_int_equal(density.before, 64);
    say(&density, DP_LINES_SLOW, 1);
    assert_int_equal(density.keep, 128);
    say(&density, DP_LINES_SLOW, 30);
    assert_int_equal(density.keep, 128);
}

static void eight_free_rounds_in_a_row_double_them_again(void **state)
{
    dp_density density = of_span(16, 64);

    (void)state;
    say(&density, DP_LINES_FREE, 8);
    assert_int_equal(density.keep, 16); /* Not denser than the manifest says. */
    say(&density, DP_LINES_SLOW, 6);
    assert_int_equal(density.keep, 64);
    say(&density, DP_LINES_FREE, 7);
    assert_int_equal(density.keep, 64);
    say(&density, DP_LINES_FREE, 1);
    assert_int_equal(density.keep, 32);
    say(&density, DP_LINES_FREE, 8);
    assert_int_equal(density.keep, 16);
}

static void another_word_between_lets_counting_begin_anew(void **state)
{
    dp_density density = of_span(16, 64);

    (void)state;
    for (int i = 0; i < 20; i++) {
        say(&density, DP_LINES_SLOW, 2);
        say(&density, i % 2 == 0 ? DP_LINES_FIT : DP_LINES_FREE, 1);
    }
    assert_int_equal(density.keep, 16);
}

static void without_a_span_nothing_moves(void **state)
{
    dp_density density = of_span(64, 0);

    (void)state;
    assert_false(dp_density_moves(&density));
    say(&density, DP_LINES_SLOW, 9);
    say(&density, DP_LINES_FREE, 30);
    assert_int_equal(density.keep, 64);
    density = of_span(64, 128);
    assert_true(dp_density_moves(&density));
}

static void lines_are_judged_by_the_upper_quartile_of_the_waits(void **state)
{
    uint64_t none[1];
    uint64_t one[] = {2501};
    uint64_t two[] = {2501, 0};
    uint64_t four[] = {9000, 0, 0, 0};
    uint64_t five[] = {9000, 0, 2501, 0, 0};
    uint64_t half[] = {9000, 9000, 0, 0};
    uint64_t edge[] = {2500};
    uint64_t free_edge[] = {625};
    uint64_t quick[] = {624, 0, 1};

    (void)state;
    assert_int_equal(dp_density_lines(none, 0, 10000), DP_LINES_FIT);
    assert_int_equal(dp_density_lines(one, 1, 10000), DP_LINES_SLOW);
    assert_int_equal(dp_density_lines(two, 2, 10000), DP_LINES_SLOW);
    assert_int_equal(dp_density_lines(four, 4, 10000), DP_LINES_FREE); /* One of four may lie. */
    assert_int_equal(dp_density_lines(five, 5, 10000), DP_LINES_SLOW);
    assert_int_equal(dp_density_lines(half, 4, 10000), DP_LINES_SLOW);
    assert_int_equal(dp_density_lines(edge, 1, 10000), DP_LINES_FIT);
    assert_int_equal(dp_density_lines(free_edge, 1, 10000), DP_LINES_FIT);
    assert_int_equal(dp_density_lines(quick, 3, 10000), DP_LINES_FREE);
}

/* ---- on the chain ---- */

enum { SLOTS = 120 };

static dp_record records[SLOTS];

static void open_ledger(dp_ledger *ledger)
{
    dp_manifest manifest = kit_manifest();
    const dp_run_id run = kit_run();

    manifest.codec_keep = 16;
    manifest.codec_keep_most = 128;
    manifest.stale = DP_ON;
    assert_int_equal(dp_ledger_open(ledger, &manifest, &run, 1), DP_OK);
}

static void take(dp_ledger *ledger, uint32_t slot)
{
    static uint8_t room[DP_RECORD_BYTES_MAX];
    static dp_record read;
    dp_view bytes;

    assert_int_equal(dp_record_encode(&records[slot], room, sizeof room, &bytes), DP_OK);
    assert_int_equal(dp_record_decode(&read, bytes), DP_OK); /* As from a disk or a peer. */
    const dp_hash hash = dp_record_hash(bytes);
    dp_ledger_apply(ledger, &read, &hash, NULL);
}

/* Slow more often than free, so that all densities come; now and then a FORK. */
static void make(const dp_ledger *ledger, uint32_t slot, dp_rng *rng)
{
    dp_record *record = &records[slot];

    kit_round(ledger, record);
    if (slot > 0 && dp_rng_below(rng, 15) == 0) {
        record->kind = DP_RECORD_FORK;
        record->round = ledger->round;
        record->n_state = 0;
        return;
    }
    (void)kit_list(ledger, record, 0, 1000, 10, 400);
    record->lines = dp_rng_below(rng, 24) == 0 ? DP_LINES_FIT
                    : dp_rng_below(rng, 40) < 24
                        ? (slot > 0 ? records[slot - 1].lines : DP_LINES_SLOW)
                    : dp_rng_below(rng, 2) == 0 ? DP_LINES_SLOW
                                                : DP_LINES_FREE;
    dp_valid_fill(ledger, record);
}

static void check_same(const dp_ledger *a, const dp_ledger *b)
{
    const dp_hash one = dp_ledger_digest(a);
    const dp_hash other = dp_ledger_digest(b);

    assert_true(dp_hash_equal(&one, &other));
    assert_int_equal(a->density.keep, b->density.keep);
    assert_int_equal(a->density.before, b->density.before);
}

/* Nodes with the same records compute the same density, however they got them: live, all at once
 * after a restart, or as a newcomer that catches up while others continue; a FORK makes no
 * difference. */
static void all_who_hold_the_same_records_want_the_same(void **state)
{
    uint32_t seen = 0;
    dp_rng rng;

    (void)state;
    dp_rng_init(&rng, 5);
    for (int chain = 0; chain < 8; chain++) {
        dp_ledger live;
        dp_ledger late;
        open_ledger(&live);
        open_ledger(&late);
        uint32_t have = 0;
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            make(&live, slot, &rng);
            take(&live, slot);
            seen |= live.density.keep;
            if (dp_rng_below(&rng, 10) == 0) { /* It gets them in batches. */
                while (have <= slot) {
                    take(&late, have++);
                }
                check_same(&live, &late);
            }
            if (dp_rng_below(&rng, 20) == 0) {
                dp_ledger anew;
                open_ledger(&anew);
                for (uint32_t i = 0; i <= slot; i++) {
                    take(&anew, i);
                }
                check_same(&live, &anew);
                dp_ledger_close(&anew);
            }
        }
        dp_ledger_close(&live);
        dp_ledger_close(&late);
    }
    assert_int_equal(seen, 16 | 32 | 64 | 128);
}

static void the_digest_of_a_ledger_covers_what_is_counted(void **state)
{
    dp_ledger ledger;

    (void)state;
    open_ledger(&ledger);
    const dp_hash before = dp_ledger_digest(&ledger);
    ledger.density.n_slow = 1;
    const dp_hash after = dp_ledger_digest(&ledger);
    assert_false(dp_hash_equal(&before, &after));
    ledger.density.sparsest =
        ledger.density.densest; /* A run without a span has the bytes it had. */
    const dp_hash none = dp_ledger_digest(&ledger);
    ledger.density.n_slow = 0;
    const dp_hash same = dp_ledger_digest(&ledger);
    assert_true(dp_hash_equal(&none, &same));
    dp_ledger_close(&ledger);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_slow_rounds_in_a_row_halve_the_elements),
        cmocka_unit_test(eight_free_rounds_in_a_row_double_them_again),
        cmocka_unit_test(another_word_between_lets_counting_begin_anew),
        cmocka_unit_test(without_a_span_nothing_moves),
        cmocka_unit_test(lines_are_judged_by_the_upper_quartile_of_the_waits),
        cmocka_unit_test(all_who_hold_the_same_records_want_the_same),
        cmocka_unit_test(the_digest_of_a_ledger_covers_what_is_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
