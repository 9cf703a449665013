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

/* Chunks under way at each of the first three peers, as bits of four in one number. */
static uint32_t flights(const fetcher *f)
{
    return dp_picker_flights_of(f->picker, 1) | dp_picker_flights_of(f->picker, 2) << 8 |
           dp_picker_flights_of(f->picker, 3) << 16;
}

/* By the time that a chunk took, times those under way; four times dearer where it is not known
 * that the peer has it, and twice more after each that lacked it. */
static void each_chunk_is_asked_of_the_peer_of_which_it_will_come_soonest(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        fetcher *const f = fetcher_of(3);
        dp_picker *const picker = f->picker;
        dp_want *const wanted = &picker->wants[0];
        picker->chunk_us[1] = what == 0 ? 2000 : 99000; /* One costs three, and one a hundred. */
        picker->chunk_us[2] = 5000;
        picker->chunk_us[3] = 1;
        want(f, DP_PRIORITY_ROUND);
        wanted->lacking = what == 2 ? 3 : what == 3 ? 5 : 0;
        wanted->all = what > 0;
        dp_want_set_bit(wanted->holders, 1, true);
        dp_want_set_bit(wanted->holders, 2, what == 0 || what == 4);
        dp_want_set_bit(wanted->banned, 2, what > 0 && what < 4);
        dp_want_set_bit(wanted->banned, 3, what == 0);
        wanted->info_from = 1;
        info(f, 1, &f->root, SIZE);
        const uint32_t n1 = flights(f) & 255;
        const uint32_t n2 = flights(f) >> 8 & 255;
        const uint32_t n3 = flights(f) >> 16;
        if (what == 0) { /* Two at the quick one for each at the slow one, as far as they go. */
            CHECK(n2 > 0 && n1 > n2 && n3 == 0);
        } else if (what == 1) { /* It may have it, and is so much nearer; one guess at a time. */
            CHECK(n3 == 1 && n2 == 0 && n1 > 0);
        } else if (what == 2) { /* Thirty-two against a hundred. */
            CHECK(n3 == 1);
        } else if (what == 3) { /* A hundred and twenty-eight. */
            CHECK(n2 == 0 && n1 > 0);
        } else {
            CHECK(n1 + n2 + n3 > 2 && n3 <= 1 && n2 >= n1);
        }
        dp_picker_cancel(picker, now_of(f), &f->root, &f->out);
        CHECK(picker->n_flights == 0 && flights(f) == 0);
        fetcher_close(f);
    }
}

static void flights_end_by_object_chunk_or_peer(void **state)
{
    (void)state;
    for (uint32_t what = 0; what < 5; what++) {
        fetcher *const f = fetcher_of(3);
        dp_picker *const picker = f->picker;
        static const struct {
            uint32_t want;
            uint32_t chunk;
            uint32_t member;
            uint32_t left; /* bits of those that stay */
        } cases[] = {
            {DP_MEMBER_NONE, DP_MEMBER_NONE, DP_MEMBER_NONE, 0},
            {1, DP_MEMBER_NONE, DP_MEMBER_NONE, 3},
            {0, 5, DP_MEMBER_NONE, 4 | 8},
            {0, 5, 2, 1 | 4 | 8},
            {DP_MEMBER_NONE, DP_MEMBER_NONE, 1, 2 | 8},
        };
        for (uint32_t i = 0; i < 4; i++) { /* Objects 0 0 1 1, chunks 5, members 1 2 1 2. */
            picker->flights[2 * i] =
                (dp_flight){.used = true, .wanted = i / 2, .chunk = 5, .member = 1 + i % 2};
        }
        picker->n_flights = 4;
        dp_picker_end_flights(picker, cases[what].want, cases[what].chunk, cases[what].member);
        uint32_t left = 0;
        for (uint32_t i = 0; i < 4; i++) {
            left |= picker->flights[2 * i].used ? 1U << i : 0;
            picker->flights[2 * i].used = false;
        }
        CHECK(left == cases[what].left);
        CHECK(picker->n_flights == (uint32_t)__builtin_popcount(left));
        picker->n_flights = 0;
        fetcher_close(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_about_a_chunk_decides_when_and_of_whom_it_is_asked_again),
        cmocka_unit_test(each_chunk_is_asked_of_the_peer_of_which_it_will_come_soonest),
        cmocka_unit_test(flights_end_by_object_chunk_or_peer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
