/* When a chunk is asked for again, and of whom: by the answer about it. */
#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/fetcher.h"

/* A chunk that is damaged is blamed on its sender, one that the sender lacks is asked of others,
 * and after an error of the own disk the object waits for a second. */
static void the_answer_about_a_chunk_decides_when_and_of_whom_it_is_asked_again(void **state)
{
    static const dp_status answers[] = {DP_OK,     DP_BADHASH, DP_BADMSG, DP_NOTFOUND,
                                        DP_DENIED, DP_IO,      DP_NOSPACE};
    const dp_peer first = mesh_peer(1);

    (void)state;
    for (uint32_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        fetcher *const f = fetcher_of(2);
        dp_picker *const picker = f->picker;
        dp_want *const wanted = &picker->wants[0];
        const bool damaged = answers[i] == DP_BADHASH || answers[i] == DP_BADMSG;
        const bool lacks = answers[i] == DP_NOTFOUND || answers[i] == DP_DENIED;
        const bool own = answers[i] == DP_IO || answers[i] == DP_NOSPACE;
        want(f, DP_PRIORITY_ROUND);
        dp_picker_holder(picker, now_of(f), &f->root, 1, &f->out);
        info(f, 1, &f->root, SIZE);
        wanted->failures = 3;
        dp_want_set_bit(wanted->holders, 1, false);
        const uint64_t came = dp_picker_came(picker);
        chunk(f, &first, 0, answers[i]);
        const bool ok = answers[i] == DP_OK;
        CHECK(wanted->have[0] == (ok ? 1 : 0) && wanted->n_have == (ok ? 1 : 0));
        CHECK(dp_picker_came(picker) == came + (ok ? 1 : 0));
        CHECK(wanted->failures == (ok ? 0 : 3));
        CHECK(dp_want_bit(wanted->holders, 1) == ok);
        CHECK(dp_want_bit(wanted->banned, 1) == lacks && wanted->lacking == (lacks ? 1 : 0));
        CHECK(wanted->n_faults == (damaged ? 1 : 0));
        CHECK(!damaged || (wanted->faults[0].member == 1 && wanted->faults[0].bad == 1));
        CHECK(wanted->pause_until.us == (own ? f->now + DP_SECOND : 0));
        if (own) {
            CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
            tick_after(f, DP_SECOND - 1);
            CHECK(count_of(f, DP_DO_GET_CHUNK) == 0);
            dp_picker_holder(picker, now_of(f), &f->root, 2, &f->out);
            tick_after(f, 1);
            CHECK(count_of(f, DP_DO_GET_CHUNK) > 0);
        }
        chunk(f, &first, 0, answers[i]); /* It came twice. */
        CHECK(wanted->n_have == (ok ? 1 : 0) && dp_picker_came(picker) == came + (ok ? 1 : 0));
        chunk(f, &first, CHUNKS, DP_OK); /* There is no such chunk. */
        CHECK(wanted->n_have == (ok ? 1 : 0));
        dp_picker_cancel(picker, now_of(f), &f->root, &f->out);
        fetcher_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_about_a_chunk_decides_when_and_of_whom_it_is_asked_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
