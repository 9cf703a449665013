#include "base/run/samples.h"

#include "tests/lib/check.h"

static dp_manifest run_of(uint32_t n, const uint64_t *tokens, uint32_t val_per_mille)
{
    dp_manifest m;
    dp_manifest_default(&m);
    m.context = 16;
    m.val_per_mille = val_per_mille;
    m.n_shards = n;
    for (uint32_t i = 0; i < n; i++) {
        m.shards[i] = (dp_manifest_shard){.bytes = 2 * tokens[i] + 32, .tokens = tokens[i]};
    }
    return m;
}

static void windows_lie_inside_of_shards(void **state)
{
    static const uint64_t tokens[] = {100, 40, 60};
    const dp_manifest m = run_of(3, tokens, 0);

    (void)state;
    CHECK(dp_manifest_tokens(&m) == 200);
    CHECK(dp_manifest_samples(&m) == 99 / 16 + 39 / 16 + 59 / 16);
}

static void held_out_tokens_are_no_samples(void **state)
{
    static const uint64_t tokens[] = {100, 40, 60};
    const dp_manifest third = run_of(3, tokens, 350); /* 130 to train: 100 and 30 */
    const dp_manifest all = run_of(3, tokens, 1000);

    (void)state;
    CHECK(dp_manifest_samples(&third) == 99 / 16 + 29 / 16);
    CHECK(dp_manifest_samples(&all) == 0);
}

static void a_window_has_one_token_more_than_targets(void **state)
{
    (void)state;
    CHECK(dp_samples_windows(16, 16) == 0);
    CHECK(dp_samples_windows(17, 16) == 1);
    CHECK(dp_samples_windows(0, 16) == 0);
    CHECK(dp_samples_windows(17, 0) == 0);
}

static void the_largest_run_counts_without_wrapping(void **state)
{
    uint64_t tokens[DP_MANIFEST_SHARDS_MAX];
    const uint64_t most = DP_OBJECT_BYTES_MAX / 2;

    (void)state;
    for (uint32_t i = 0; i < DP_MANIFEST_SHARDS_MAX; i++) {
        tokens[i] = most;
    }
    dp_manifest m = run_of(DP_MANIFEST_SHARDS_MAX, tokens, 0);
    CHECK(dp_manifest_tokens(&m) == DP_MANIFEST_SHARDS_MAX * most);
    CHECK(dp_manifest_samples(&m) == DP_MANIFEST_SHARDS_MAX * ((most - 1) / 16));
    CHECK(dp_samples_training((uint64_t)1 << 63, 1) == ((uint64_t)1 << 63) - 9223372036854775);
}

static void a_run_without_data_has_no_samples(void **state)
{
    const dp_manifest m = run_of(0, NULL, 50);

    (void)state;
    CHECK(dp_manifest_tokens(&m) == 0 && dp_manifest_samples(&m) == 0);
}

static void a_run_of_any_model_says_its_samples_and_what_one_counts_as(void **state)
{
    dp_manifest m;

    (void)state;
    dp_manifest_default(&m);
    m.context = 16;
    CHECK(dp_manifest_sample_tokens(&m) == 16);
    m.arch = DP_ARCH_EXTERNAL;
    m.context = 0;
    m.samples = 77;
    CHECK(dp_manifest_samples(&m) == 77 && dp_manifest_sample_tokens(&m) == 1);
    m.unit = 5;
    CHECK(dp_manifest_samples(&m) == 77 && dp_manifest_sample_tokens(&m) == 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_lie_inside_of_shards),
        cmocka_unit_test(held_out_tokens_are_no_samples),
        cmocka_unit_test(a_window_has_one_token_more_than_targets),
        cmocka_unit_test(the_largest_run_counts_without_wrapping),
        cmocka_unit_test(a_run_without_data_has_no_samples),
        cmocka_unit_test(a_run_of_any_model_says_its_samples_and_what_one_counts_as),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
