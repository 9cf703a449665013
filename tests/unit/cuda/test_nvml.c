/* The values read of a card through NVML, with a library of ours in its place (tests/cuda/nvml). */
#include "tests/lib/check.h"

#include <stdlib.h>

#include "compute/cuda/nvml.h"

static dp_device look(const char *fake, const char *bus)
{
    dp_device seen = {.celsius = 1, .watts = 1, .percent = 1, .memory_usable = 1};
    CHECK(setenv("FAKE_NVML", fake, 1) == 0);
    dp_nvml_look(bus, &seen);
    return seen;
}

static dp_device look_at(const char *fake)
{
    return look(fake, "0000:1b:00.0");
}

static void heat_and_power_of_a_card_are_read(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* Shut down each time, or the second would find it in use. */
        const dp_device seen = look_at("");
        CHECK(seen.celsius == 71 && seen.watts == 250 && seen.percent == 0);
        CHECK(seen.memory_usable == 2000000);
    }
}

static void only_work_of_others_counts_as_busy(void **state)
{
    (void)state;
    CHECK(look_at("others:0").percent == 0);
    CHECK(look_at("others:1").percent == 42);
    CHECK(look_at("others:63").percent == 42);
    CHECK(look_at("others:64").percent == 42); /* more than there is room for */
    CHECK(look_at("others:2000").percent == 42);
}

static void values_unknown_to_the_library_stay_unknown(void **state)
{
    (void)state;
    const dp_device none[] = {look_at("init"), look_at("bus"), look("", "0000:ff:00.0")};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        CHECK(none[i].celsius == INT32_MIN && none[i].watts == 0 && none[i].percent == 0);
        CHECK(none[i].memory_usable == 0);
    }
    const dp_device cold = look_at("temperature");
    CHECK(cold.celsius == INT32_MIN && cold.watts == 250);
    const dp_device weak = look_at("power");
    CHECK(weak.celsius == 71 && weak.watts == 0);
    CHECK(look_at("memory").memory_usable == 0);
    CHECK(look_at("processes").percent == 0);
    CHECK(look_at("rates").percent == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heat_and_power_of_a_card_are_read),
        cmocka_unit_test(only_work_of_others_counts_as_busy),
        cmocka_unit_test(values_unknown_to_the_library_stay_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
