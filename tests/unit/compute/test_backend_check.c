/* What the self-test of a backend must not let through, beside what test_plugin.c has. */
#include "compute/backend_check.h"

#include <string.h>

#include "compute/backend_cpu.h"
#include "tests/lib/check.h"

/* The CPU, but for its losses at heads of one width. */
static uint32_t wrong_at;
static uint32_t head;

static dp_status create_and_note(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    head = setup->model->config.head_width;
    return dp_backend_cpu()->create(out, setup, why);
}

static dp_status step_wrong_there(dp_engine *e, const dp_gpt_batch *batch, float scale,
                                  double *loss_sum)
{
    DP_TRY(dp_backend_cpu()->step(e, batch, scale, loss_sum));
    *loss_sum *= head == wrong_at ? 1.5 : 1.0;
    return DP_OK;
}

static void a_backend_that_errs_at_the_heads_of_published_models_is_found(void **state)
{
    (void)state;
    static const uint32_t widths[] = {16, 64, 128};
    dp_backend table = *dp_backend_cpu();
    table.capabilities = DP_CAN_BF16;
    table.create = create_and_note;
    table.step = step_wrong_there;
    wrong_at = 0;
    CHECK_OK(dp_backend_check(&table, 0, NULL, NULL));
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        dp_why why = {{0}};
        wrong_at = widths[i];
        CHECK_STATUS(dp_backend_check(&table, 0, NULL, &why), DP_UNSUPPORTED);
        CHECK(strstr(why.text, "its loss in bf16 is") != NULL);
    }
}

static dp_status create_without_bf16(dp_engine **out, const dp_engine_setup *setup, dp_why *why)
{
    return setup->precision == DP_PRECISION_BF16
               ? dp_why_set(why, DP_UNSUPPORTED, "it computes no bf16")
               : dp_backend_cpu()->create(out, setup, why);
}

static void count(void *context)
{
    ++*(int *)context;
}

/* As cards before Ampere. */
static void a_precision_that_the_device_has_not_is_left_out(void **state)
{
    (void)state;
    int parts = 0;
    const dp_backend_told told = {.passed = count, .context = &parts};
    dp_why why = {{0}};
    dp_backend table = *dp_backend_cpu();
    table.capabilities = DP_CAN_BF16 | DP_CAN_FP16;
    table.create = create_without_bf16;
    CHECK_OK(dp_backend_check(&table, 0, &told, &why));
    CHECK(parts == 1 + 4);
    table.capabilities = DP_CAN_BF16;
    CHECK_STATUS(dp_backend_check(&table, 0, NULL, &why), DP_UNSUPPORTED);
    CHECK(strcmp(why.text, "it computes no bf16") == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_backend_that_errs_at_the_heads_of_published_models_is_found),
        cmocka_unit_test(a_precision_that_the_device_has_not_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
