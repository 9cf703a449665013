#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "daemon/host/event_text.h"

static const char *said(dp_note_code code, uint64_t a, uint64_t b, const char *cause)
{
    static char text[256];
    const dp_note note = {.code = code, .round = 9, .a = a, .b = b, .cause = cause};
    dp_event_text_write(&note, "bob", text, sizeof text);
    return text;
}

static void every_code_has_a_sentence_without_holes_left(void **state)
{
    (void)state;
    for (int code = 1; code < DP_NOTE_CODE_COUNT; code++) {
        const char *text = said((dp_note_code)code, 1, 2, "a cause");
        assert_true(strlen(text) > 4);
        assert_null(strpbrk(text, "{}"));
    }
}

static void holes_are_filled_by_their_names(void **state)
{
    (void)state;
    assert_string_equal(said(DP_NOTE_PUBLISHED, 5, UINT64_MAX, ""),
                        "published an update for round 9: 5 bytes, 18446744073709551615 tokens");
    assert_string_equal(said(DP_NOTE_READY, 0, 0, ""), "bob is ready for round 9");
    assert_string_equal(said(DP_NOTE_MODE, DP_MODE_SYNC, DP_MODE_GOSSIP, "no quorum"),
                        "this node: sync -> gossip: no majority of the voters is reachable");
    assert_string_equal(said(DP_NOTE_MEMBER, DP_MEMBER_ALIVE, DP_MEMBER_DEAD, "silent"),
                        "bob: alive -> dead: it does not answer");
    assert_string_equal(said(DP_NOTE_DECIDED, 3, 12, ""),
                        "round 9 decided in slot 12 with 3 contributors");
    assert_string_equal(said(DP_NOTE_DISCARDED, 32768, 0, "fenced"),
                        "discarded 50.0 % of the unaveraged work: the voters declared "
                        "unfinished pair exchanges void");
    assert_string_equal(said(DP_NOTE_EXCHANGE, 1, 2, "{a}"),
                        "gossip exchange with bob, weights 1 and 2: {a}"); /* Filled once. */
}

static void a_text_that_does_not_fit_is_cut(void **state)
{
    (void)state;
    const dp_note note = {.code = DP_NOTE_REMOVED, .cause = "revoked"};
    char text[64];
    for (size_t size = 1; size < sizeof text; size++) {
        memset(text, 'x', sizeof text);
        dp_event_text_write(&note, "somebody of a long name", text, size);
        assert_true(strlen(text) < size);
        assert_memory_equal(
            text, "somebody of a long name is no longer a member: it was removed from the run",
            strlen(text));
        assert_int_equal(text[size], 'x');
    }
}

static void routine_notes_of_a_round_are_not_logged(void **state)
{
    (void)state;
    assert_int_equal(dp_event_text_level(DP_NOTE_READY), DP_LOG_DEBUG);
    assert_int_equal(dp_event_text_level(DP_NOTE_DECIDED), DP_LOG_INFO);
    assert_int_equal(dp_event_text_level(DP_NOTE_DIVERGED), DP_LOG_WARN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_sentence_without_holes_left),
        cmocka_unit_test(holes_are_filled_by_their_names),
        cmocka_unit_test(a_text_that_does_not_fit_is_cut),
        cmocka_unit_test(routine_notes_of_a_round_are_not_logged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
