#include "compute/cuda/device.h"

#include "compute/backend/process_group_inside.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"

#include <stdlib.h>
#include <string.h>

static dp_cuda_device device;

static bool says(const dp_why *why, const char *words)
{
    if (strstr(why->text, words) == NULL) {
        print_error("\"%s\" does not say \"%s\"\n", why->text, words);
        return false;
    }
    return true;
}

static dp_status open_with(const fake_cuda *fake, dp_why *why)
{
    *why = (dp_why){{0}};
    fake_cuda_set(fake);
    return dp_cuda_device_open(&device, dp_cuda_api_of(), 0, why);
}

static int close_device(void **state)
{
    (void)state;
    if (device.api != NULL) {
        dp_cuda_device_close(&device);
    }
    return 0;
}

static void each_way_to_have_no_card_has_its_sentence(void **state)
{
    (void)state;
    static const struct {
        fake_cuda fake;
        const char *words;
    } ways[] = {
        {{.no_driver = true}, "no driver"},
        {{.driver = 11040, .count_error = DP_CUDA_DRIVER_TOO_OLD}, "it offers CUDA 11.4 and"},
        {{.driver = 12000, .count_error = 3}, "driver is too old"},
        {{.no_card = true}, "no card"},
        {{.count_error = DP_CUDA_NO_DEVICE}, "no card"},
        {{.count_error = 3}, "shows no card: the fake card was told to fail"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        dp_why why = {{0}};
        fake_cuda_set(&ways[i].fake);
        CHECK(dp_cuda_devices(dp_cuda_api_of(), &why) == 0);
        CHECK(says(&why, ways[i].words));
    }
}

static void a_card_that_cannot_be_used_is_refused_with_a_sentence(void **state)
{
    (void)state;
    dp_why why;
    CHECK(open_with(&(fake_cuda){.arch = 61}, &why) == DP_UNSUPPORTED);
    CHECK(says(&why, "architecture 6.1"));
    dp_cuda_device_close(&device);
    CHECK(open_with(&(fake_cuda){.set_error = DP_CUDA_CARD_TAKEN}, &why) == DP_BUSY);
    CHECK(says(&why, "another process has the card"));
    dp_cuda_device_close(&device);
    fake_cuda_set(&(fake_cuda){.cards = 2});
    CHECK(dp_cuda_device_open(&device, dp_cuda_api_of(), 2, &why) == DP_BADARG);
    CHECK(says(&why, "only 0 to 1"));
}

static dp_device looked_at(const char *nvml)
{
    dp_device seen = {.memory_total = 0};
    dp_why why = {{0}};
    CHECK(setenv("FAKE_NVML", nvml, 1) == 0);
    CHECK_OK(dp_cuda_device_look(dp_cuda_api_of(), 0, &seen, &why));
    return seen;
}

/* A context takes hundreds of MiB, of a card that another process may compute on. */
static void a_look_at_a_card_opens_no_context(void **state)
{
    (void)state;
    dp_device seen;
    dp_why why = {{0}};
    fake_cuda_set(&(fake_cuda){.memory = 3000000, .cards = 2});
    seen = looked_at("");
    CHECK(strcmp(seen.name, "Emulated Card") == 0 && seen.celsius == 71);
    CHECK(seen.memory_total == 3000000 && seen.memory_usable == 2000000);
    CHECK(dp_cuda_device_look(dp_cuda_api_of(), 2, &seen, &why) == DP_BADARG);
    CHECK(fake_cuda_entered() == 0);
    fake_cuda_set(&(fake_cuda){.memory = 1000000}); /* A part of the card. */
    CHECK(looked_at("").memory_usable == 1000000);
}

static void a_card_without_nvml_tells_its_memory_itself(void **state)
{
    (void)state;
    fake_cuda_set(&(fake_cuda){.memory = 1000000});
    const dp_device seen = looked_at("init");
    CHECK(seen.memory_total == 1000000 && seen.memory_usable == 1000000);
    CHECK(seen.celsius == INT32_MIN && fake_cuda_entered() > 0);
    CHECK(looked_at("memory").memory_usable == 1000000);
}

static void an_error_of_the_card_stays_with_its_first_sentence(void **state)
{
    (void)state;
    dp_why why;
    void *memory = NULL;
    CHECK_OK(open_with(&(fake_cuda){.fail_at = 7, .fail_with = DP_CUDA_ECC}, &why));
    CHECK_OK(DP_CUDA(&device, device_alloc, &memory, 64));
    CHECK(DP_CUDA(&device, fill, memory, 0, 64, device.compute) == DP_IO);
    CHECK(says(&device.problem, "lost data that could not be mended"));
    CHECK(says(&device.problem, "fill, test_device.c:"));
    const unsigned calls = fake_cuda_calls();
    const dp_why first = device.problem;
    CHECK(DP_CUDA(&device, fill, memory, 0, 64, device.compute) == DP_IO);
    CHECK(dp_cuda_wait(&device, device.compute) == DP_IO);
    CHECK(fake_cuda_calls() == calls); /* A lost card is not queried. */
    CHECK(strcmp(device.problem.text, first.text) == 0);
    CHECK(dp_cuda_api_of()->device_free(memory) == 0);
}

static void a_lack_of_memory_does_not_stay(void **state)
{
    (void)state;
    dp_why why;
    void *memory = NULL;
    CHECK_OK(open_with(&(fake_cuda){.alloc_at = 1}, &why));
    CHECK(DP_CUDA(&device, device_alloc, &memory, 64) == DP_NOMEM);
    CHECK_OK(DP_CUDA(&device, device_alloc, &memory, 64));
    CHECK(dp_cuda_api_of()->device_free(memory) == 0);
}

static void a_card_that_hangs_costs_a_status_and_not_the_process(void **state)
{
    (void)state;
    dp_why why;
    CHECK_OK(open_with(&(fake_cuda){.hangs = true}, &why));
    device.wait_ms = 5;
    CHECK(dp_cuda_wait(&device, device.compute) == DP_IO);
    CHECK(says(&device.problem, "it hangs"));
    CHECK(DP_CUDA(&device, last_error) == DP_IO);
    dp_cuda_device_close(&device); /* The fake card ends the test where this frees something. */
    fake_cuda_end();
}

static void a_long_micro_batch_is_no_card_that_hangs(void **state)
{
    (void)state;
    dp_why why;
    CHECK_OK(open_with(&(fake_cuda){0}, &why));
    CHECK(device.wait_ms >= 600 * 1000);
    CHECK(DP_PROCESS_GROUP_WAIT_US / 1000 > device.wait_ms); /* Else the group is blamed first. */
}

static void a_launch_that_fails_names_the_kernel(void **state)
{
    (void)state;
    dp_why why;
    CHECK_OK(open_with(&(fake_cuda){0}, &why));
    CHECK(dp_cuda_launch_status(&device, DP_BADARG, "dp_cuda_add(x, y)") == DP_BADARG);
    CHECK(!device.lost);
    CHECK(dp_cuda_launch_status(&device, DP_IO, "dp_cuda_add(x, y)") == DP_IO);
    CHECK(says(&device.problem, "at dp_cuda_add"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_way_to_have_no_card_has_its_sentence),
        cmocka_unit_test_teardown(a_card_that_cannot_be_used_is_refused_with_a_sentence,
                                  close_device),
        cmocka_unit_test(a_look_at_a_card_opens_no_context),
        cmocka_unit_test(a_card_without_nvml_tells_its_memory_itself),
        cmocka_unit_test_teardown(an_error_of_the_card_stays_with_its_first_sentence, close_device),
        cmocka_unit_test_teardown(a_lack_of_memory_does_not_stay, close_device),
        cmocka_unit_test_teardown(a_card_that_hangs_costs_a_status_and_not_the_process,
                                  close_device),
        cmocka_unit_test_teardown(a_long_micro_batch_is_no_card_that_hangs, close_device),
        cmocka_unit_test_teardown(a_launch_that_fails_names_the_kernel, close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
