#include "tests/unit/gossip/kit/pool.h"

#include "gossip/pairs/mix_internal.h"

typedef enum crash_fate { RETURNS = 0, RETURNS_BLANK, NEVER } crash_fate;

/* Kill node crashing at its n-th write, before or after it is durable; then its fate. False when
 * there was no such write. */
static bool crash_once(uint32_t crashing, uint32_t write, bool after, crash_fate fate)
{
    pool *const p = pool_of(2, 77 + write);
    p->crash_node = crashing;
    p->crash_write = write;
    p->crash_after = after;
    while (!p->crashed && p->now < 6 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    const bool crashed = p->crashed;
    const uint32_t survivor = 1 - crashing;

    if (crashed) {
        p->frozen_o = true;
        pool_run_for(p, 300 * DP_MS);
        const bool doubted = dp_mix_view(p->nodes[survivor].mix).in_doubt;
        if (fate == RETURNS_BLANK) {
            pool_wipe(p, crashing);
        }
        if (fate != NEVER) {
            pool_boot(p, crashing);
        }
        pool_settle(p);
        if (fate == RETURNS) {
            CHECK(pool_sum(p) == p->expected); /* both moved, or neither */
        }
        if (fate == NEVER) {
            /* In doubt, F is locked until a record fences the dead partner; nothing else unlocks
             * it. */
            const dp_mix_look look = dp_mix_view(p->nodes[survivor].mix);
            CHECK(pool_idle(p) != look.in_doubt);
            CHECK(look.in_doubt == doubted); /* no clock ends it */
            const dp_peer dead = mesh_peer(crashing);
            dp_out_begin(&p->out, p->actions);
            dp_mix_fence(p->nodes[survivor].mix, pool_now(p), &dead, p->nodes[crashing].life,
                         &p->out);
            pool_perform(p, survivor);
            pool_run_for(p, DP_SECOND);
        }
        CHECK(pool_idle(p));
        dp_out_begin(&p->out, p->actions);
        CHECK(dp_mix_finish(p->nodes[survivor].mix, pool_now(p), &p->out));
        CHECK(p->nodes[survivor].f != 0);
        if (fate == NEVER) { /* Ended is ended: its disk knows of no doubt either. */
            pool_kill(p, survivor);
            pool_boot(p, survivor);
            CHECK(!dp_mix_view(p->nodes[survivor].mix).in_doubt);
            pool_run_for(p, DP_SECOND);
            CHECK(pool_idle(p));
        }
        CHECK(p->invalid == 0);
    }
    pool_close(p);
    return crashed;
}

static void every_crash_point_of_either_side_leaves_both_or_neither(void **state)
{
    (void)state;
    uint32_t points = 0;
    for (uint32_t crashing = 0; crashing < 2; crashing++) {
        for (uint32_t write = 0; write < 14; write++) {
            for (uint32_t after = 0; after < 2; after++) {
                for (crash_fate fate = RETURNS; fate <= NEVER; fate++) {
                    points += crash_once(crashing, write, after == 1, fate);
                }
            }
        }
    }
    print_message("%u crash points\n", points);
    CHECK(points >= 100);
}

/* Crash at the n-th write, fence, return: no work of the earlier life remains to be mixed or
 * brought back. */
static bool fence_once(uint32_t crashing, uint32_t write)
{
    pool *const p = pool_of(2, 177 + write);
    p->crash_node = crashing;
    p->crash_write = write;
    p->crash_after = true;
    while (!p->crashed && p->now < 6 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    const bool crashed = p->crashed;
    if (crashed) {
        const uint64_t life = p->nodes[crashing].life;
        const uint32_t survivor = 1 - crashing;
        const dp_peer dead = mesh_peer(crashing);
        p->frozen_o = true;
        dp_out_begin(&p->out, p->actions);
        dp_mix_fence(p->nodes[survivor].mix, pool_now(p), &dead, life, &p->out);
        pool_perform(p, survivor);
        pool_boot(p, crashing);
        dp_mix *const mix = p->nodes[crashing].mix;
        dp_mix_frozen_view view;
        const bool had_f = dp_mix_frozen_row(mix, &view);
        dp_out_begin(&p->out, p->actions);
        CHECK(dp_mix_fence_self(mix, pool_now(p), life, &p->out) || !had_f);
        pool_perform(p, crashing);
        CHECK(!dp_mix_frozen_row(mix, &view));
        CHECK(dp_mix_view(mix).outcomes == 0);
        pool_gossip(p, false);
        pool_settle(p);
        CHECK(pool_idle(p));
        pool_kill(p, crashing); /* The disk says the same. */
        pool_boot(p, crashing);
        CHECK(!dp_mix_frozen_row(p->nodes[crashing].mix, &view));
        CHECK(p->invalid == 0);
    }
    pool_close(p);
    return crashed;
}

static void a_fenced_node_that_returns_brings_nothing_back(void **state)
{
    uint32_t points = 0;

    (void)state;
    for (uint32_t crashing = 0; crashing < 2; crashing++) {
        for (uint32_t write = 0; write < 8; write++) {
            points += fence_once(crashing, write);
        }
    }
    CHECK(points >= 8);
}

/* Exchanges of so many nodes, with this many of a thousand messages lost; then F is brought
 * back. */
static void fold_after(uint32_t n, uint32_t loss, uint64_t exchanges)
{
    pool *const p = pool_of(n, 6);
    p->loss = loss;
    while (pool_done(p) < exchanges && p->now < 120 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    CHECK(pool_done(p) >= exchanges);
    pool_settle(p);
    for (uint32_t i = 0; i < n; i++) {
        dp_mix_frozen_view view;
        CHECK(dp_mix_frozen_row(p->nodes[i].mix, &view));
        dp_out_begin(&p->out, p->actions);
        dp_mix_folded(p->nodes[i].mix, pool_now(p), &p->out);
        pool_perform(p, i);
        CHECK(!dp_mix_frozen_row(p->nodes[i].mix, &view));
    }
    pool_run_for(p, DP_SECOND);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t rows = 0;
        for (uint32_t k = 0; k < POOL_ROWS_MAX; k++) {
            rows += p->nodes[i].rows[k].used;
        }
        CHECK(rows == dp_mix_view(p->nodes[i].mix).outcomes);
    }
    pool_close(p);
}

static void folding_lets_go_of_rows_but_not_of_open_outcomes(void **state)
{
    (void)state;
    fold_after(2, 0, 2);
    fold_after(4, 300, 60); /* The other side forgets some only when it has begun the next. */
}

static void rows_survive_the_round_trip_and_damage_is_refused(void **state)
{
    (void)state;
    const dp_mix_row row = {.mark = DP_MIX_MARK_COMMITTED,
                            .has_f = true,
                            .id = {{1, 2}},
                            .order = 7,
                            .number = 8,
                            .ticket = 9,
                            .peer = mesh_peer(3),
                            .base = pool_base,
                            .own = {.bytes = 5,
                                    .steps = 6,
                                    .tokens = 7,
                                    .incarnation = 8,
                                    .reach = {.leased = 21, .own = 22}},
                            .other = {.bytes = 15, .steps = 16, .tokens = 17, .incarnation = 18},
                            .f_bytes = 99,
                            .life = {6},
                            .damp = 65535};
    uint8_t bytes[DP_MIX_ROW_BYTES];
    dp_mix_row read;
    dp_mix_row_write(&row, bytes);
    CHECK_OK(dp_mix_row_read(dp_view_of(bytes, sizeof bytes), &read));
    CHECK(read.mark == row.mark && read.order == 7 && read.ticket == 9 && read.other.tokens == 17 &&
          read.f_bytes == 99 && read.life[0] == 6 && read.own.reach.leased == 21 &&
          read.own.reach.own == 22 && read.damp == 65535);
    CHECK(dp_mix_id_equal(&read.id, &row.id) && dp_peer_equal(&read.peer, &row.peer));
    for (size_t cut = 0; cut < sizeof bytes; cut++) {
        CHECK(dp_mix_row_read(dp_view_of(bytes, cut), &read) != DP_OK);
    }
    bytes[0] = 5;
    CHECK_STATUS(dp_mix_row_read(dp_view_of(bytes, sizeof bytes), &read), DP_VERSION);
    bytes[0] = 2; /* Of a run without leases. */
    CHECK_STATUS(dp_mix_row_read(dp_view_of(bytes, sizeof bytes), &read), DP_VERSION);
    bytes[0] = 4;
    bytes[1] = DP_MIX_MARK_ASKED; /* b never asks */
    CHECK_STATUS(dp_mix_row_read(dp_view_of(bytes, sizeof bytes), &read), DP_BADMSG);
}

/* As a daemon of before the terms had a reach has left it: a mean without damping, and the reach of
 * F at the end. */
static void a_row_of_the_version_before_is_read(void **state)
{
    enum { HEAD = 3 + 16 + 3 * 8 + 32 + 32, TERMS = 60, TAIL = 32 + 8 + DP_SIGNATURE_BYTES };
    const dp_mix_row row = {.mark = DP_MIX_MARK_COMMITTED,
                            .has_f = true,
                            .order = 5,
                            .own = {.steps = 7, .tokens = 70, .incarnation = 2, .reach = {9, 8}},
                            .other = {.steps = 6, .tokens = 60, .incarnation = 3},
                            .f_bytes = 11,
                            .damp = 1234};
    uint8_t bytes[DP_MIX_ROW_BYTES];
    uint8_t before[DP_MIX_ROW_BYTES];
    dp_writer w = dp_writer_of(before, sizeof before);
    dp_mix_row read;

    (void)state;
    dp_mix_row_write(&row, bytes);
    CHECK_OK(dp_mix_row_read(dp_view_of(bytes, sizeof bytes), &read));
    CHECK(read.damp == 1234 && read.own.reach.leased == 9 && read.own.reach.own == 8);
    dp_write_bytes(&w, bytes, HEAD);
    dp_write_bytes(&w, bytes + HEAD, TERMS);
    dp_write_bytes(&w, bytes + HEAD + DP_MIX_TERMS_BYTES, TERMS);
    dp_write_bytes(&w, bytes + HEAD + 2 * DP_MIX_TERMS_BYTES, TAIL);
    dp_write_u64(&w, 9);
    dp_write_u64(&w, 8);
    before[0] = 3;
    CHECK_OK(dp_mix_row_read(dp_view_of(before, w.size), &read));
    CHECK(read.damp == 65536 && read.own.reach.leased == 9 && read.own.reach.own == 8);
    CHECK(read.own.tokens == 70 && read.other.tokens == 60 && read.f_bytes == 11);
    bytes[sizeof bytes - 1] = 1; /* Damp above one. */
    CHECK(dp_mix_row_read(dp_view_of(bytes, sizeof bytes), &read) == DP_BADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_of_the_version_before_is_read),
        cmocka_unit_test(every_crash_point_of_either_side_leaves_both_or_neither),
        cmocka_unit_test(a_fenced_node_that_returns_brings_nothing_back),
        cmocka_unit_test(folding_lets_go_of_rows_but_not_of_open_outcomes),
        cmocka_unit_test(rows_survive_the_round_trip_and_damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
