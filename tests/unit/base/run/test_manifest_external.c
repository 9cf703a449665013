/* Manifests of runs of any model: their version, their bytes, and what they exclude. */
#include "base/run/manifest.h"
#include "base/run/run_mode.h"
#include "base/run/samples.h"
#include "tests/lib/check.h"

/* A run of any model, founded. */
static dp_manifest sample(void)
{
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    dp_manifest manifest;

    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    dp_manifest_set_model(&manifest, &shape);
    manifest.trust = DP_TRUST_MEMBERS;
    memset(manifest.tokenizer.bytes, 4, DP_HASH_BYTES);
    memset(manifest.init.bytes, 17, DP_HASH_BYTES);
    memset(manifest.signature, 6, sizeof manifest.signature);
    manifest.val_per_mille = 0;
    manifest.samples = 5000;
    manifest.elements = 100;
    manifest.tokenizer_bytes = 90;
    manifest.init_bytes = 32 + 4 * 128;
    return manifest;
}

/* Checks that manifest is refused with a sentence that holds word. */
static void assert_refused(const dp_manifest *manifest, const char *word)
{
    dp_why why = {""};

    CHECK_STATUS(dp_manifest_check(manifest, &why), DP_BADARG);
    if (strstr(why.text, word) == NULL) {
        fail_msg("\"%s\" does not name %s", why.text, word);
    }
}

static void a_run_of_any_model_makes_a_manifest_of_version_16(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    manifest.unit = 7;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 16);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_memory_equal(&back, &manifest, sizeof back);
    assert_true(dp_manifest_external(&back) && !dp_manifest_judgeable(&back));
    assert_int_equal(dp_manifest_parameters(&back), 100);
    assert_int_equal(dp_manifest_sample_tokens(&back), 7);
    assert_int_equal(dp_manifest_samples(&back), 5000);
    assert_true(dp_manifest_state_bytes_max(&back) >= manifest.init_bytes);
    assert_true(dp_manifest_update_bytes_max(&back) >= 4 * 128);

    /* More than four bytes of samples count too, and nothing of it in a run of text. */
    manifest.unit = 0;
    manifest.samples = (uint64_t)1 << 32;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_true(back.samples == manifest.samples && dp_manifest_sample_tokens(&back) == 1);
    /* At the end stand samples, unit and elements. */
    memset(bytes + size - sizeof manifest.signature - 20, 0, 8);
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
}

/* The form of version 16 with nothing of version 16 in it, and voters that cannot evaluate. */
static void bytes_of_any_model_that_no_node_writes_are_bad(void **state)
{
    dp_manifest manifest = sample();
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    const size_t end = size - sizeof manifest.signature;
    bytes[end - 21] = DP_TRUST_OPEN;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
    bytes[end - 21] = DP_TRUST_MEMBERS;
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    bytes[end - 1] = 0xff; /* elements */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
    dp_manifest_default(&manifest); /* A run of text. */
    manifest.precision = DP_PRECISION_FP32;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 15);
    bytes[4] = 16;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
    bytes[4] = 24;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_VERSION);
}

static void any_model_excludes_what_dpnode_would_have_to_know(void **state)
{
    (void)state;
    dp_manifest manifest = sample();
    manifest.trust = DP_TRUST_OPEN;
    assert_refused(&manifest, "write members: {trust: members}");
    manifest = sample();
    manifest.samples = 0;
    assert_refused(&manifest, "data: {samples: N}");
    manifest = sample();
    manifest.layers = 2;
    assert_refused(&manifest, "delete model.layers");
    manifest = sample();
    manifest.head = DP_HEAD_TIED;
    assert_refused(&manifest, "delete model.head");
    manifest = sample();
    manifest.val_per_mille = 50;
    assert_refused(&manifest, "delete data.val");
    manifest = sample();
    manifest.n_shards = 1;
    assert_refused(&manifest, "data");
    manifest = sample();
    dp_run_mode_set(&manifest, dp_run_mode_find("ddp"));
    assert_refused(&manifest, "round.mode");
    dp_manifest_default(&manifest); /* A run of text. */
    manifest.precision = DP_PRECISION_FP32;
    manifest.samples = 1;
    assert_refused(&manifest, "data.samples");
    manifest.samples = 0;
    manifest.unit = 1;
    assert_refused(&manifest, "data.unit");
    manifest.unit = 0;
    manifest.elements = 1;
    assert_refused(&manifest, "external");
}

static void the_objects_of_any_model_belong_together(void **state)
{
    (void)state;
    dp_manifest manifest = sample();
    manifest.elements = 0;
    assert_refused(&manifest, "belong together");
    manifest = sample();
    manifest.tokenizer_bytes = 0;
    assert_refused(&manifest, "belong together");
    manifest = sample();
    manifest.tokenizer_bytes = DP_MANIFEST_TABLE_MAX + 1;
    assert_refused(&manifest, "belong together");
    manifest = sample();
    manifest.init_bytes = 0;
    assert_refused(&manifest, "belong together");
    manifest = sample();
    manifest.init_bytes = 1 << 20;
    assert_refused(&manifest, "belong together");
    manifest = sample();
    memset(&manifest.init, 0, sizeof manifest.init);
    assert_refused(&manifest, "belong together");
    manifest = sample();
    manifest.elements = (uint64_t)1 << 40;
    assert_refused(&manifest, "one state object holds");
    manifest = sample(); /* Before run create, with and without the file. */
    manifest.tokenizer_bytes = 0;
    manifest.init_bytes = 0;
    memset(&manifest.init, 0, sizeof manifest.init);
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.elements = 0;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_run_of_any_model_makes_a_manifest_of_version_16),
        cmocka_unit_test(bytes_of_any_model_that_no_node_writes_are_bad),
        cmocka_unit_test(any_model_excludes_what_dpnode_would_have_to_know),
        cmocka_unit_test(the_objects_of_any_model_belong_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
