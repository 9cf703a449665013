/* Which terms of a pair exchange a node refuses when they come, by the chain that it has. */
#include <stdlib.h>

#include "gossip/context/context.h"
#include "gossip/node/node_steps.h"
#include "gossip/pairs/mix_msg.h"
#include "tests/unit/gossip/kit/chain_kit.h"

enum { SPEED = 1000 /* tokens per second of the member in the middle */ };

static dp_node *node;
static dp_mix_terms terms;

/* Member 1 was counted last an hour before, has half of its lease left, and comes with the work of
 * that hour. */
static int setup(void **state)
{
    (void)state;
    node = calloc(1, sizeof *node);
    assert_non_null(node);
    node->manifest = kit_manifest();
    kit_ledger(&node->ledger);
    kit_voters(&node->ledger, 3);
    node->ledger.pace.speed = (uint64_t)SPEED << 16;
    node->ledger.time_ms = 5000000;
    node->wall_ms = 5000000 + 3600000;
    dp_roster_entry *const entry = &node->ledger.roster[1];
    entry->counted_ms = 5000000;
    entry->lease = (dp_lease){.reach = {.leased = 50, .own = 7}, .granted = 100};
    const uint64_t tokens = 3600 * SPEED;
    terms = (dp_mix_terms){.tokens = tokens,
                           .steps = (uint32_t)(tokens / node->ledger.context),
                           .reach = {.leased = 100, .own = 7 + tokens / node->ledger.context}};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&node->ledger);
    free(node);
    return 0;
}

static const char *judge(uint32_t member)
{
    const dp_peer peer = kit_peer(member);
    const char *const cause = dp_node_judge_terms(node, &peer, &terms);

    return cause != NULL ? cause : "";
}

static void the_work_of_an_hour_passes_after_an_hour(void **state)
{
    (void)state;
    assert_string_equal(judge(1), "");
    assert_string_equal(judge(9), "the partner of a pair exchange is not a member");
    /* Also for a card ten times as fast, and for a node without work, which has no weight. */
    terms.tokens *= 10;
    terms.reach.own *= 10;
    assert_string_equal(judge(1), "");
    terms = (dp_mix_terms){0};
    assert_string_equal(judge(1), "");
}

static void more_tokens_than_its_samples_have_are_refused(void **state)
{
    const char *const cause = "a pair exchange has samples outside of its member's lease";
    const dp_mix_terms good = terms;

    (void)state;
    terms.tokens = (uint64_t)1 << 60;
    assert_string_equal(judge(1), cause);
    terms = good;
    terms.reach.leased = 101;
    assert_string_equal(judge(1), cause);
    terms.reach.leased = 49;
    assert_string_equal(judge(1), cause);
    terms = good;
    terms.reach.own = UINT64_MAX;
    assert_string_equal(judge(1), cause);
}

static void more_tokens_than_its_time_allows_are_refused(void **state)
{
    const char *const cause = "a pair exchange has more tokens than its time allows";
    const uint64_t most = 4ULL * 16 * 3600 * SPEED;

    (void)state;
    terms.steps = UINT32_MAX;
    terms.reach.own = (uint64_t)1 << 61;
    terms.tokens = most;
    assert_string_equal(judge(1), "");
    terms.tokens = most + 4;
    assert_string_equal(judge(1), cause);
    node->wall_ms = 1000; /* With a clock behind all records no node would have worked for years. */
    assert_string_equal(judge(1), cause);
    /* A run that has no speed yet has no schedule to go by; its lease and the damping still
     * hold. */
    node->ledger.pace.speed = 0;
    assert_string_equal(judge(1), "");
}

static void more_tokens_than_its_steps_hold_are_refused(void **state)
{
    (void)state;
    terms.steps = 1; /* w = tokens^2 / steps: few steps weigh as much as many tokens */
    assert_string_equal(judge(1), "a pair exchange has more tokens than its steps can train on");
    terms.steps = (uint32_t)(terms.tokens / 64 / 8 / node->ledger.context) + 1;
    assert_string_equal(judge(1), "");
}

static void as_many_tokens_as_its_steps_hold_pass_and_one_batch_more_does_not(void **state)
{
    (void)state;
    const uint64_t batch = (uint64_t)node->manifest.batch_rows * node->ledger.context;
    terms.steps = 2;
    terms.tokens = 64 * batch * 2 + 64 * batch - 1; /* 64 batches in a step, and almost one more. */
    assert_string_equal(judge(1), "");
    terms.tokens++;
    assert_string_equal(judge(1), "a pair exchange has more tokens than its steps can train on");
}

static void an_object_as_large_as_any_update_passes_and_a_larger_one_does_not(void **state)
{
    (void)state;
    terms.bytes = dp_manifest_update_bytes_max(&node->manifest);
    assert_string_equal(judge(1), "");
    terms.bytes++;
    assert_string_equal(judge(1), "an object of a pair exchange is larger than any update");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_work_of_an_hour_passes_after_an_hour, setup, teardown),
        cmocka_unit_test_setup_teardown(more_tokens_than_its_samples_have_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(more_tokens_than_its_time_allows_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(more_tokens_than_its_steps_hold_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(
            as_many_tokens_as_its_steps_hold_pass_and_one_batch_more_does_not, setup, teardown),
        cmocka_unit_test_setup_teardown(
            an_object_as_large_as_any_update_passes_and_a_larger_one_does_not, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
