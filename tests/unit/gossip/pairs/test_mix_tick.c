#include "tests/unit/gossip/kit/pool.h"

#include "gossip/pairs/mix_internal.h"

static void different_bases_and_modes_never_exchange(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 3);
    pool_gossip(p, false);
    pool_run_for(p, 5 * DP_SECOND);
    CHECK(p->nodes[0].freezes == 0 && p->nodes[1].freezes == 0);
    pool_gossip(p, true);
    /* Node 1 is on another base, and says so. */
    const dp_hash other = {.bytes = {1}};
    dp_out_begin(&p->out, p->actions);
    dp_mix_set(p->nodes[1].mix, pool_now(p), &(dp_mix_now){.gossip = true, .base = other}, &p->out);
    dp_members_tell(p->nodes[1].members,
                    &(dp_summary){.base = other, .has_trainer = true, .mode = DP_MODE_GOSSIP});
    pool_perform(p, 1);
    pool_run_for(p, 5 * DP_SECOND);
    CHECK(pool_done(p) == 0);
    pool_close(p);
}

static void a_node_that_hears_a_majority_is_a_partner_only_in_mode_gossip(void **state)
{
    (void)state;
    for (uint32_t pairs = 0; pairs < 2; pairs++) {
        pool *const p = pool_of(2, 9);
        pool_gossip(p, false); /* Both say that they hear one, */
        for (uint32_t i = 0; i < 2; i++) {
            p->nodes[i].mix->config.pairs = pairs == 1;
            dp_out_begin(&p->out, p->actions);
            dp_mix_set(p->nodes[i].mix, pool_now(p),
                       &(dp_mix_now){.gossip = true, .base = pool_base}, &p->out);
            pool_perform(p, i); /* and would exchange. */
        }
        pool_run_for(p, 5 * DP_SECOND);
        CHECK((pool_done(p) > 0) == (pairs == 1));
        pool_close(p);
    }
}

static void members_outside_the_roster_are_no_partners(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 4);
    pool_run_for(p, 50 * DP_MS);
    for (uint64_t us = 0; us < 3 * DP_SECOND; us += DP_MS) {
        pool_run_for(p, DP_MS);
        for (uint32_t i = 0; i < 2; i++) {
            dp_members_mark(p->nodes[i].members, 1, false, false);
        }
    }
    CHECK(pool_done(p) == 0);
    pool_close(p);
}

static void two_without_weight_do_not_exchange(void **state)
{
    (void)state;
    CHECK(dp_mix_weight(5, 0) == 0);
    CHECK(dp_mix_weight(10, 4) == 25);
    CHECK(dp_mix_weight(UINT64_MAX, 1) == 1ULL << 62);
    pool *const p = pool_of(2, 5);
    p->nodes[0].weight = p->nodes[1].weight = 0;
    pool_run_for(p, 5 * DP_SECOND);
    CHECK(pool_done(p) == 0);
    CHECK(p->nodes[0].freezes + p->nodes[1].freezes > 2); /* they tried */
    pool_close(p);
}

static void it_wakes_for_what_is_due_first(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = p->nodes[0].mix;
    const uint64_t t = 100 * DP_SECOND;
    mix->next_at = (dp_time){t};
    mix->now.gossip = mix->trainer = true;
    CHECK(mix->state == DP_MIX_IDLE && dp_mix_wake(mix).us == t);
    mix->trainer = false;
    CHECK(dp_mix_wake(mix).us == DP_NEVER.us);
    mix->n_outcomes = 1; /* The message is repeated until the other side answers. */
    mix->nudge_at = (dp_time){t - 1};
    CHECK(dp_mix_wake(mix).us == t - 1);
    mix->trainer = true;
    CHECK(dp_mix_wake(mix).us == t - 1);
    mix->write_at = (dp_time){t - 2}; /* A row that failed is written again. */
    CHECK(dp_mix_wake(mix).us == t - 2);
    mix->state = DP_MIX_ASKED;
    mix->retry_at = (dp_time){t - 3};
    mix->progress = (dp_time){t - 9 - DP_MIX_WAIT_US};
    CHECK(dp_mix_wake(mix).us == t - 3); /* No time ends a doubt. */
    mix->state = DP_MIX_PREPARED;
    CHECK(dp_mix_wake(mix).us == t - 9);
    mix->started = false;
    CHECK(dp_mix_wake(mix).us == DP_NEVER.us);
    mix->started = true;
    mix->state = DP_MIX_IDLE;
    mix->n_outcomes = 0;
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(different_bases_and_modes_never_exchange),
        cmocka_unit_test(a_node_that_hears_a_majority_is_a_partner_only_in_mode_gossip),
        cmocka_unit_test(members_outside_the_roster_are_no_partners),
        cmocka_unit_test(two_without_weight_do_not_exchange),
        cmocka_unit_test(it_wakes_for_what_is_due_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
