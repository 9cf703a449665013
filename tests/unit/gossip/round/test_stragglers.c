/* The members that a round does not wait for are named, each with the cause. */
#include "gossip/context/context.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { NODES = 4, LATE = 3 };

/* Rounds go on until one is closed without this member. */
static const dp_note *named_by_next_round(kit_world *world)
{
    dp_note *note = &world->nodes[0].straggler;

    memset(note, 0, sizeof *note);
    for (uint32_t i = 0; i < 6000 && note->code == 0; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(note->code, DP_NOTE_STRAGGLER);
    const dp_peer late = kit_peer(LATE);
    assert_true(dp_peer_equal(&note->peer, &late));
    assert_true(note->round == kit_look(world, 0).round ||
                note->round == kit_look(world, 0).round + 1);
    return note;
}

static void one_that_died_does_not_answer(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_kill(world, LATE);
    assert_string_equal(named_by_next_round(world)->cause, "it does not answer");
    kit_close(world);
}

static void one_that_does_not_train_has_announced_nothing(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    kit_command(world, LATE, DP_COMMAND_PAUSE);
    assert_string_equal(named_by_next_round(world)->cause, "it has not announced an update");
    kit_close(world);
}

static void one_whose_update_is_harmful_is_named_for_that(void **state)
{
    kit_world *world = kit_together(NODES);

    (void)state;
    for (uint32_t i = 0; i < LATE; i++) {
        world->nodes[i].rejects = 1U << LATE;
    }
    assert_string_equal(named_by_next_round(world)->cause, "its update was judged harmful");
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_that_died_does_not_answer),
        cmocka_unit_test(one_that_does_not_train_has_announced_nothing),
        cmocka_unit_test(one_whose_update_is_harmful_is_named_for_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
