/* The list of actions and the arena of one step: actions that do not fit are dropped and counted;
 * those that must not be dropped have reserved room. */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "gossip/core/msg.h"
#include "gossip/event/out.h"
#include "tests/lib/allocfail.h"

typedef struct step {
    dp_out out;
    dp_actions *actions;
} step;

static int begin_step(void **state)
{
    step *s = calloc(1, sizeof *s);

    assert_non_null(s);
    s->actions = calloc(1, sizeof *s->actions);
    assert_non_null(s->actions);
    CHECK_OK(dp_out_open(&s->out));
    dp_out_begin(&s->out, s->actions);
    *state = s;
    return 0;
}

static int end_step(void **state)
{
    step *s = *state;

    dp_out_close(&s->out);
    free(s->actions);
    free(s);
    return 0;
}

static const dp_peer someone = {.bytes = {7}};

static void fill_list(step *s)
{
    const dp_view message = dp_out_keep(&s->out, dp_view_text("m"));

    while (dp_out_room(&s->out, 1)) {
        dp_out_send(&s->out, &someone, message);
    }
    assert_int_equal(s->actions->count, DP_OUT_SENDS_MAX);
    assert_int_equal(s->out.dropped, 0);
}

static void a_full_list_drops_messages_and_notes_and_counts_them(void **state)
{
    step *s = *state;
    const dp_view message = dp_out_keep(&s->out, dp_view_text("m"));

    fill_list(s);
    dp_out_send(&s->out, &someone, message);
    assert_int_equal(s->out.dropped, 1);
    dp_out_send_all(&s->out, message);
    assert_int_equal(s->out.dropped, 2);
    dp_out_note(&s->out, (dp_note){.code = DP_NOTE_MODE});
    assert_int_equal(s->out.dropped, 3);
    assert_int_equal(s->actions->count, DP_OUT_SENDS_MAX);
}

static void a_full_list_still_takes_what_may_not_be_dropped(void **state)
{
    step *s = *state;
    uint32_t op = 0;

    fill_list(s);
    for (uint32_t i = 0; i < DP_OUT_ACTIONS_MIN; i++) {
        assert_int_equal(dp_out_store(&s->out, DP_STORE_VOTE, &op)->u.store.op, i + 1);
    }
    assert_int_equal(op, DP_OUT_ACTIONS_MIN);
    assert_int_equal(s->actions->count, DP_ACTIONS_MAX);
    dp_out_begin(&s->out, s->actions); /* The next step has room, and numbers that go on. */
    assert_true(dp_out_room(&s->out, DP_OUT_SENDS_MAX));
    (void)dp_out_store(&s->out, DP_STORE_VOTE, &op);
    assert_int_equal(op, DP_OUT_ACTIONS_MIN + 1);
}

static void a_full_list_still_tells_of_lost_work(void **state)
{
    static const dp_note_code told[] = {DP_NOTE_DISCARDED, DP_NOTE_DIVERGED, DP_NOTE_ADOPTED,
                                        DP_NOTE_VOTE_KEY_LOST};
    step *s = *state;

    fill_list(s);
    for (uint32_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        dp_out_note(&s->out, (dp_note){.code = told[i]});
        assert_int_equal(s->actions->items[DP_OUT_SENDS_MAX + i].u.note.code, told[i]);
    }
    assert_int_equal(s->out.dropped, 0);
}

static void a_full_arena_drops_what_is_kept_and_nothing_empty_is_sent(void **state)
{
    static uint8_t big[DP_OUT_BYTES];
    step *s = *state;

    const dp_view most = dp_out_keep(&s->out, dp_view_of(big, sizeof big - 1));
    assert_int_equal(most.size, sizeof big - 1);
    const dp_view none = dp_out_keep(&s->out, dp_view_of(big, 2));
    assert_int_equal(none.size, 0);
    assert_int_equal(s->out.dropped, 1);
    dp_out_send(&s->out, &someone, none);
    dp_out_send_all(&s->out, none);
    assert_int_equal(s->out.dropped, 3);
    assert_int_equal(s->actions->count, 0);
    assert_int_equal(dp_out_keep(&s->out, dp_view_of(big, 1)).size, 1); /* The last byte. */
}

static void a_message_that_does_not_fit_is_not_there(void **state)
{
    static uint8_t big[DP_OUT_BYTES];
    step *s = *state;
    dp_view message;

    (void)dp_out_keep(&s->out, dp_view_of(big, sizeof big - 10));
    dp_writer writer = dp_out_writer(&s->out, DP_MSG_PING, 100);
    dp_write_bytes(&writer, big, 50);
    assert_false(dp_out_message(&s->out, &writer, &message));
    assert_int_equal(s->out.dropped, 1);
    writer = dp_out_writer(&s->out, DP_MSG_PING, 100); /* A shorter message fits. */
    dp_write_u8(&writer, 1);
    assert_true(dp_out_message(&s->out, &writer, &message));
    assert_int_equal(message.size, DP_MSG_HEAD_BYTES + 1);
}

static void a_message_over_the_limit_of_messages_is_not_there(void **state)
{
    static uint8_t big[DP_MESSAGE_MAX];
    step *s = *state;
    dp_view message;

    dp_writer writer = dp_out_writer(&s->out, DP_MSG_SYNC, DP_MESSAGE_MAX + 10);
    dp_write_bytes(&writer, big, sizeof big);
    assert_false(writer.full);
    assert_false(dp_out_message(&s->out, &writer, &message));
    assert_int_equal(s->out.dropped, 1);
    assert_int_equal(s->out.size, 0);
}

static void a_note_without_a_cause_says_nothing_instead_of_null(void **state)
{
    step *s = *state;

    dp_out_note(&s->out, (dp_note){.code = DP_NOTE_MODE});
    assert_string_equal(s->actions->items[0].u.note.cause, "");
}

static dp_status open_and_close(void *context)
{
    dp_out out = {0};

    (void)context;
    DP_TRY(dp_out_open(&out));
    dp_out_close(&out);
    return DP_OK;
}

static void without_memory_there_is_no_arena(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(open_and_close, NULL), 1);
}

#define STEP_TEST(test) cmocka_unit_test_setup_teardown(test, begin_step, end_step)

int main(void)
{
    const struct CMUnitTest tests[] = {
        STEP_TEST(a_full_list_drops_messages_and_notes_and_counts_them),
        STEP_TEST(a_full_list_still_takes_what_may_not_be_dropped),
        STEP_TEST(a_full_list_still_tells_of_lost_work),
        STEP_TEST(a_full_arena_drops_what_is_kept_and_nothing_empty_is_sent),
        STEP_TEST(a_message_that_does_not_fit_is_not_there),
        STEP_TEST(a_message_over_the_limit_of_messages_is_not_there),
        STEP_TEST(a_note_without_a_cause_says_nothing_instead_of_null),
        cmocka_unit_test(without_memory_there_is_no_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
