/* Phases of a round: the first time counts, and what the time went to follows from them. */
#include "daemon/host/phases.h"

#include <string.h>

#include "tests/lib/check.h"

static dp_phases phases_at(uint64_t opened, uint64_t published, uint64_t held, uint64_t decided,
                           uint64_t applied)
{
    dp_phases phases = {.opened_ms = 5};
    dp_phases_set(&phases, DP_PHASE_OPENED, opened);
    dp_phases_set(&phases, DP_PHASE_PUBLISHED, published);
    dp_phases_set(&phases, DP_PHASE_HELD, held);
    dp_phases_set(&phases, DP_PHASE_DECIDED, decided);
    dp_phases_set(&phases, DP_PHASE_APPLIED, applied);
    return phases;
}

static void a_phase_is_told_from_the_opening_and_stays(void **state)
{
    dp_phases phases = phases_at(1000000, 3500000, 0, 500, 0);
    uint64_t ms = 7;
    (void)state;
    CHECK(dp_phases_ms(&phases, DP_PHASE_PUBLISHED, &ms) && ms == 2500);
    dp_phases_set(&phases, DP_PHASE_PUBLISHED, 9000000);
    CHECK(dp_phases_ms(&phases, DP_PHASE_PUBLISHED, &ms) && ms == 2500);
    CHECK(!dp_phases_ms(&phases, DP_PHASE_HELD, &ms) && ms == 2500);
    CHECK(dp_phases_ms(&phases, DP_PHASE_DECIDED, &ms) && ms == 0); /* Before it. */
    phases.at_us[DP_PHASE_OPENED] = 0;
    CHECK(!dp_phases_ms(&phases, DP_PHASE_PUBLISHED, &ms));
    for (int i = 0; i < DP_PHASES; i++) {
        CHECK(strstr(dp_phase_key((dp_phase)i), "_ms") != NULL);
    }
}

static void the_time_of_a_round_is_computing_transferring_and_waiting(void **state)
{
    dp_phase_times times = {.compute_ms = 7};
    dp_phases phases = phases_at(1000000, 4000000, 4500000, 5000000, 5200000);
    (void)state;
    CHECK(dp_phases_times(&phases, &times));
    CHECK(times.compute_ms == 3000 && times.transfer_ms == 500 && times.wait_ms == 700);
    phases = phases_at(1000000, 4000000, 3000000, 5000000, 0); /* The last one; not applied. */
    CHECK(dp_phases_times(&phases, &times));
    CHECK(times.compute_ms == 3000 && times.transfer_ms == 0 && times.wait_ms == 1000);
    phases = phases_at(1000000, 4000000, 6000000, 5000000, 6000000); /* Decided by others. */
    CHECK(dp_phases_times(&phases, &times));
    CHECK(times.transfer_ms == 2000 && times.wait_ms == 0);
    phases = phases_at(1000000, 6000000, 4000000, 5000000, 6100000); /* It came too late. */
    CHECK(!dp_phases_times(&phases, &times) && times.transfer_ms == 2000);
    phases = phases_at(1000000, 4000000, 0, 5000000, 0);
    CHECK(!dp_phases_times(&phases, &times));
    phases = phases_at(0, 4000000, 4000000, 5000000, 0);
    CHECK(!dp_phases_times(&phases, &times));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_phase_is_told_from_the_opening_and_stays),
        cmocka_unit_test(the_time_of_a_round_is_computing_transferring_and_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
