/* Steps that run directly, steps that are captured, and steps that are replayed, on the fake
 * card. */
#include "compute/cuda/graph.h"

#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"

static const fake_cuda healthy;
static dp_cuda_device device;
static dp_cuda_graphs graphs;

static int open_device(void **state)
{
    (void)state;
    dp_why why = {{0}};
    fake_cuda_set(&healthy);
    graphs = (dp_cuda_graphs){.device = &device};
    return dp_cuda_device_open(&device, dp_cuda_api_of(), 0, &why) == DP_OK ? 0 : 1;
}

static int close_device(void **state)
{
    (void)state;
    dp_cuda_graphs_close(&graphs);
    dp_cuda_device_close(&device);
    return 0;
}

/* Work that records how it was run, and returns the given status. */
typedef struct work {
    unsigned plain;
    unsigned captured;
    dp_status while_captured;
} work;

static dp_status run(void *context)
{
    work *const w = context;
    if (device.capturing) {
        w->captured++;
        return w->while_captured;
    }
    w->plain++;
    return DP_OK;
}

static void a_key_runs_then_is_captured_then_replayed(void **state)
{
    (void)state;
    work w = {.while_captured = DP_OK};
    for (unsigned i = 0; i < 4; i++) {
        CHECK_OK(dp_cuda_graphs_run(&graphs, 7, run, &w));
        CHECK(fake_cuda_graphs() == i);
    }
    CHECK(w.plain == 1 && w.captured == 1 && !device.capturing);
}

static void work_that_must_look_again_runs_as_it_is_and_is_captured_later(void **state)
{
    (void)state;
    work w = {.while_captured = DP_BUSY};
    CHECK_OK(dp_cuda_graphs_run(&graphs, 7, run, &w));
    CHECK_OK(dp_cuda_graphs_run(&graphs, 7, run, &w));
    CHECK(w.plain == 2 && w.captured == 1 && fake_cuda_graphs() == 0);
    w.while_captured = DP_OK;
    CHECK_OK(dp_cuda_graphs_run(&graphs, 7, run, &w));
    CHECK(w.plain == 2 && w.captured == 2 && fake_cuda_graphs() == 1);
}

static void work_that_fails_while_captured_leaves_the_stream_to_itself(void **state)
{
    (void)state;
    work w = {.while_captured = DP_NOMEM};
    CHECK_OK(dp_cuda_graphs_run(&graphs, 7, run, &w));
    CHECK_STATUS(dp_cuda_graphs_run(&graphs, 7, run, &w), DP_NOMEM);
    CHECK(!device.capturing && !device.lost);
    w.while_captured = DP_OK;
    CHECK_OK(dp_cuda_graphs_run(&graphs, 7, run, &w));
    CHECK(fake_cuda_graphs() == 1);
}

static void the_key_used_least_recently_goes(void **state)
{
    (void)state;
    work w = {.while_captured = DP_OK};
    for (uint64_t key = 1; key <= DP_CUDA_GRAPHS_MAX + 1; key++) {
        CHECK_OK(dp_cuda_graphs_run(&graphs, key, run, &w));
    }
    CHECK(w.plain == DP_CUDA_GRAPHS_MAX + 1);
    CHECK_OK(dp_cuda_graphs_run(&graphs, 2, run, &w)); /* is there */
    CHECK(w.captured == 1);
    CHECK_OK(dp_cuda_graphs_run(&graphs, 1, run, &w)); /* has gone */
    CHECK(w.plain == DP_CUDA_GRAPHS_MAX + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_key_runs_then_is_captured_then_replayed, open_device,
                                        close_device),
        cmocka_unit_test_setup_teardown(
            work_that_must_look_again_runs_as_it_is_and_is_captured_later, open_device,
            close_device),
        cmocka_unit_test_setup_teardown(work_that_fails_while_captured_leaves_the_stream_to_itself,
                                        open_device, close_device),
        cmocka_unit_test_setup_teardown(the_key_used_least_recently_goes, open_device,
                                        close_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
