/* Manifests of runs with adapters: their version, their bytes, and what they exclude. */
#include "base/run/manifest.h"
#include "tests/lib/check.h"

/* Founded. */
static dp_manifest sample(void)
{
    dp_manifest manifest;

    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    manifest.adapt_rank = 8;
    memset(manifest.base.bytes, 5, DP_HASH_BYTES);
    manifest.base_bytes = 12345;
    return manifest;
}

static void assert_refused(const dp_manifest *manifest, const char *word)
{
    dp_why why = {""};

    CHECK_STATUS(dp_manifest_check(manifest, &why), DP_BADARG);
    if (strstr(why.text, word) == NULL) {
        fail_msg("\"%s\" does not name %s", why.text, word);
    }
}

static void adapters_make_a_manifest_of_version_17(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    manifest.adapt_alpha_milli = 12500;
    manifest.adapt_targets = DP_ADAPT_OUT | DP_ADAPT_DOWN;
    manifest.base_kind = DP_BASE_INT8;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 17);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_memory_equal(&back, &manifest, sizeof back);
    assert_true(dp_manifest_adapts(&back) && dp_manifest_judgeable(&back));

    /* A manifest without adapters keeps the bytes that it had. */
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    assert_false(dp_manifest_adapts(&manifest));
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 15);
    manifest = sample();
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    const size_t at = size - sizeof manifest.signature - DP_HASH_BYTES - 8 - 1 - 12;
    assert_int_equal(bytes[at], 8); /* the rank */
    memset(bytes + at, 0, DP_HASH_BYTES + 8 + 1 + 12);
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)),
                 DP_BADMSG); /* A second form. */
}

static void sizes_follow_from_the_adapters(void **state)
{
    (void)state;
    const dp_manifest manifest = sample();
    dp_manifest whole;

    dp_manifest_default(&whole);
    whole.precision = DP_PRECISION_FP32;
    /* c_attn 128 + 384, c_proj 256, c_fc 128 + 512, c_proj 512 + 128, in 4 layers. */
    assert_int_equal(dp_manifest_parameters(&manifest), 4 * 8 * (512 + 256 + 640 + 640));
    assert_true(dp_manifest_parameters(&whole) > 10 * dp_manifest_parameters(&manifest));
    assert_true(dp_manifest_state_bytes_max(&manifest) < dp_manifest_state_bytes_max(&whole) / 4);
}

static void contradictions_are_named(void **state)
{
    (void)state;
    dp_manifest manifest = sample();
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.optimizer = DP_OPTIM_MUON;
    assert_refused(&manifest, "write train.optimizer adamw");
    manifest = sample();
    manifest.adapt_rank = 0;
    assert_refused(&manifest, "model.adapt.rank is not");
    manifest.base_bytes = 0;
    assert_refused(&manifest, "model.adapt.rank is not");
    memset(manifest.base.bytes, 0, DP_HASH_BYTES);
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.base_kind = DP_BASE_NF4;
    assert_refused(&manifest, "model.adapt.base is given");
    manifest = sample();
    manifest.base_bytes = DP_OBJECT_BYTES_MAX + 1;
    assert_refused(&manifest, "model.adapt.base, such as nf4");
    manifest = sample();
    manifest.base_bytes = 0;
    assert_refused(&manifest, "the base has 0 bytes");
    manifest = sample();
    manifest.adapt_targets = DP_ADAPT_GATE;
    assert_refused(&manifest, "model.adapt.targets");
    manifest = sample();
    manifest.n_shards = DP_MANIFEST_SHARDS_MAX;
    assert_refused(&manifest, "may have 31");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_make_a_manifest_of_version_17),
        cmocka_unit_test(sizes_follow_from_the_adapters),
        cmocka_unit_test(contradictions_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
