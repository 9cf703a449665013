/* When held-out loss is measured, which is the best, when training ends, and best.json. */
#include "compute/standalone/standalone_val.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compute/machine/files.h"
#include "tests/lib/check.h"

static dp_trainer_score scored(double loss)
{
    return (dp_trainer_score){.loss = loss, .bits_per_byte = loss / 2, .tokens = 640};
}

static void validations_are_twenty_or_fewer_if_they_would_cost_too_much(void **state)
{
    (void)state;
    dp_standalone_options standard = dp_standalone_options_none();
    dp_standalone_options_complete(&standard);
    dp_standalone_options told = standard;
    dp_standalone_options few = standard;
    told.val_steps = 7;
    few.val_tokens = 1000;
    CHECK(dp_standalone_val_steps(&told, 2000, 1024, 15000) == 7);
    CHECK(dp_standalone_val_steps(&standard, 20000, 1024, 15000) == 1000);
    /* 15,000 tokens cost as much as 4.9 steps of 1,024; 98 steps are twenty times that. */
    CHECK(dp_standalone_val_steps(&standard, 200, 1024, 15000) == 98);
    CHECK(dp_standalone_val_steps(&standard, 200, 1024, UINT64_MAX) == 427); /* of 65,536 */
    CHECK(dp_standalone_val_steps(&few, 200, 1024, 15000) == 10);
    CHECK(dp_standalone_val_steps(&standard, 1, 1024, 0) == 1); /* never 0 */
}

static void the_first_of_the_lowest_losses_is_the_best(void **state)
{
    (void)state;
    static const double losses[] = {NAN, 4, 3, 3, 5, NAN, 2.5, INFINITY};
    static const bool best_yet[] = {false, true, true, false, false, false, true, false};
    dp_standalone_best best = {.known = false};
    for (uint64_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        const dp_trainer_score score = scored(losses[i]);
        CHECK(dp_standalone_best_take(&best, 10 * i, &score) == best_yet[i]);
    }
    CHECK(best.step == 60 && best.score.loss == 2.5);
}

static void it_ends_after_so_many_validations_without_a_better_one(void **state)
{
    (void)state;
    const dp_standalone_options val = {.patience = 3};
    const dp_standalone_options patient = {.patience = 0};
    const dp_standalone_best best = {.known = true, .step = 100};
    const dp_standalone_best none = {.known = false};
    CHECK(!dp_standalone_val_ends(&val, &best, 120, 10));
    CHECK(dp_standalone_val_ends(&val, &best, 130, 10));
    CHECK(!dp_standalone_val_ends(&val, &best, 90, 10)); /* resumed before it */
    CHECK(!dp_standalone_val_ends(&val, &none, 130, 10));
    CHECK(!dp_standalone_val_ends(&patient, &best, 1000, 10));
}

static void the_best_is_read_back_to_the_bit_and_other_bytes_are_none(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",
                                        "{",
                                        "[]",
                                        "{\"step\":0,\"loss\":1}",
                                        "{\"step\":-3,\"loss\":1}",
                                        "{\"step\":5}",
                                        "{\"step\":5,\"loss\":\"low\"}",
                                        "{\"step\":1.5,\"loss\":1}"};
    char folder[] = "/tmp/dpnode-best-XXXXXX";
    char command[64];
    dp_why why;
    dp_standalone_best read = {.known = true};
    CHECK(mkdtemp(folder) != NULL);
    dp_standalone_best_read(folder, &read);
    CHECK(!read.known);
    const dp_standalone_best best = {.known = true, .step = 1200, .score = scored(10.0 / 3)};
    CHECK_OK(dp_standalone_best_write(folder, &best, &why));
    dp_standalone_best_read(folder, &read);
    CHECK(read.known && read.step == 1200 && read.score.loss == best.score.loss);
    CHECK(read.score.bits_per_byte == best.score.bits_per_byte && read.score.tokens == 640);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        CHECK_OK(dp_file_write(folder, DP_STANDALONE_BEST_FILE, dp_view_text(wrong[i]), &why));
        dp_standalone_best_read(folder, &read);
        CHECK(!read.known);
    }
    CHECK(dp_standalone_best_write("/nonexistent", &best, &why) != DP_OK && why.text[0] != 0);
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0); /* NOLINT(cert-env33-c): the path is mkdtemp's */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validations_are_twenty_or_fewer_if_they_would_cost_too_much),
        cmocka_unit_test(the_first_of_the_lowest_losses_is_the_best),
        cmocka_unit_test(it_ends_after_so_many_validations_without_a_better_one),
        cmocka_unit_test(the_best_is_read_back_to_the_bit_and_other_bytes_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
