/* Every setting of a manifest is part of its bytes. A setting that fields[] lacks would have its
 * default at every other node. */
#include <stdio.h>
#include <string.h>

#include "base/run/manifest.h"
#include "base/run/run_mode.h"
#include "tests/lib/check.h"

/* True if a manifest that differs from base in this setting is valid. The test fails if encode and
 * decode lose the setting. */
static bool travels(const dp_manifest *base, size_t offset, const void *value, size_t size,
                    const char *key)
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    dp_manifest changed = *base;
    dp_manifest back;
    size_t written = 0;

    memcpy((char *)&changed + offset, value, size);
    if (memcmp(&changed, base, sizeof changed) == 0 || dp_manifest_check(&changed, NULL) != DP_OK) {
        return false;
    }
    CHECK_OK(dp_manifest_encode(&changed, bytes, &written));
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, written)));
    if (memcmp((char *)&back + offset, value, size) != 0) {
        fail_msg("%s is lost on its way to other nodes", key);
    }
    return true;
}

/* Some settings need others: a manifest of each mode with the numbers that the mode brings. */
static bool travels_in_any_mode(size_t offset, const void *value, size_t size, const char *key)
{
    size_t n_modes = 0;
    const dp_run_mode *modes = dp_run_modes(&n_modes);

    for (size_t i = 0; i < n_modes; i++) {
        dp_manifest base;
        dp_manifest_default(&base);
        base.precision = DP_PRECISION_FP32;
        dp_run_mode_set(&base, &modes[i]);
        base.trust = dp_manifest_judgeable(&base) ? base.trust : DP_TRUST_MEMBERS;
        if (travels(&base, offset, value, size, key)) {
            return true;
        }
    }
    return false;
}

/* Others belong to some families: models that have each of them. */
static bool travels_in_any_family(size_t offset, const void *value, size_t size, const char *key)
{
    static const dp_model_config models[] = {
        {.arch = DP_ARCH_SMOLLM3},
        {.arch = DP_ARCH_NEOX, .rope_width = 8},
        {.arch = DP_ARCH_GEMMA3, .window = 64, .full_every = 2},
        {.arch = DP_ARCH_LLAMA,
         .rope_scaling = DP_ROPE_LLAMA3,
         .rope_factor_milli = 8000,
         .rope_low_milli = 1000,
         .rope_high_milli = 4000,
         .rope_context = 64}};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        dp_model_config model = models[i];
        dp_manifest base;
        dp_manifest_default(&base);
        base.precision = DP_PRECISION_FP32;
        model.layers = base.layers;
        model.width = base.width;
        model.heads = base.heads;
        model.context = base.context;
        model.vocab = base.vocab;
        dp_manifest_set_model(&base, &model);
        if (travels(&base, offset, value, size, key)) {
            return true;
        }
    }
    return false;
}

static bool number_travels(const dp_manifest_row *row)
{
    const uint64_t tried[] = {row->min,
                              row->max,
                              row->default_value + 1,
                              row->default_value - 1,
                              row->default_value * 2,
                              row->default_value / 2};

    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        const uint32_t narrow = (uint32_t)tried[i];
        const void *value = row->size == 4 ? (const void *)&narrow : (const void *)&tried[i];
        if (tried[i] >= row->min && tried[i] <= row->max &&
            (travels_in_any_mode(row->offset, value, row->size, row->key) ||
             travels_in_any_family(row->offset, value, row->size, row->key))) {
            return true;
        }
    }
    return false;
}

static void every_number_of_a_manifest_comes_back(void **state)
{
    size_t count = 0;
    const dp_manifest_row *rows = dp_manifest_rows(&count);
    size_t untried = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        if (!number_travels(&rows[i])) {
            print_message("%s is valid beside other settings only\n", rows[i].key);
            untried++;
        }
    }
    assert_true(untried <= count / 5);
}

static void every_word_of_a_manifest_comes_back(void **state)
{
    size_t count = 0;
    const dp_manifest_choice *choices = dp_manifest_choices(&count);
    size_t untried = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        bool any = false;
        for (size_t k = 0; k < choices[i].n_words; k++) {
            const int value = choices[i].words[k].value;
            any = travels_in_any_mode(choices[i].offset, &value, sizeof value, choices[i].key) ||
                  travels_in_any_family(choices[i].offset, &value, sizeof value, choices[i].key) ||
                  any;
        }
        if (!any) {
            print_message("%s is valid beside other settings only\n", choices[i].key);
            untried++;
        }
    }
    assert_true(untried <= count / 5);
}

/* The first byte in which both manifests differ. */
static size_t difference(const dp_manifest *a, const dp_manifest *b)
{
    uint8_t bytes[2][DP_MANIFEST_BYTES_MAX];
    size_t sizes[2] = {0};
    size_t at = 0;

    CHECK_OK(dp_manifest_encode(a, bytes[0], &sizes[0]));
    CHECK_OK(dp_manifest_encode(b, bytes[1], &sizes[1]));
    while (at < sizes[0] && bytes[0][at] == bytes[1][at]) {
        at++;
    }
    return at;
}

static void bytes_with_a_deleted_codec_are_refused(void **state)
{
    static const uint8_t gone[] = {5, 7, 8, 9};
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest manifest;
    dp_manifest other;

    (void)state;
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    manifest.codec_keep_most = 0;
    other = manifest;
    other.codec = DP_CODEC_INT4;
    const size_t at = difference(&manifest, &other);
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[at], DP_CODEC_SPARSE);
    for (size_t i = 0; i < sizeof gone; i++) {
        dp_manifest back;
        dp_why why = {""};
        char words[64];

        bytes[at] = gone[i];
        CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
        manifest.codec = (dp_codec_kind)gone[i];
        CHECK_STATUS(dp_manifest_check(&manifest, &why), DP_BADARG);
        snprintf(words, sizeof words, "round.codec is %d, which is none; it must be ", gone[i]);
        assert_int_equal(strncmp(why.text, words, strlen(words)), 0);
    }
    bytes[at] = DP_CODEC_INT4;
    CHECK_OK(dp_manifest_decode(&other, dp_view_of(bytes, size)));
}

/* The place of the deleted round.close_at in a manifest of version 15. */
static size_t place_of_the_share(size_t size)
{
    enum { TRUST = 1, ABSENT = 4, GAIN = 1, SUMS = 1, SHARE = 4 };
    return size - DP_MANIFEST_SIGNATURE_BYTES - TRUST - ABSENT - GAIN - SUMS - SHARE;
}

static void a_run_with_a_share_that_closes_rounds_is_of_an_earlier_version(void **state)
{
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest manifest;
    dp_manifest back;

    (void)state;
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 15);
    const size_t at = place_of_the_share(size);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(bytes[at + i], 0);
        bytes[at + i] = 1;
        CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_VERSION);
        bytes[at + i] = 0;
    }
    CHECK(strstr(dp_manifest_refusal(DP_VERSION), "goes on with that version") != NULL);
    assert_string_equal(dp_manifest_refusal(DP_BADMSG), dp_status_text(DP_BADMSG));
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_memory_equal(&back, &manifest, sizeof back);
    bytes[4] = 12; /* Of no field of its own: never the version of a manifest. */
    CHECK(dp_manifest_decode(&back, dp_view_of(bytes, size)) != DP_OK);
}

/* Parts of families: each number has a version, and older manifests keep theirs. */
static void numbers_of_families_make_manifests_of_version_18_to_21(void **state)
{
    (void)state;
    const dp_model_config tiny = {
        .arch = DP_ARCH_GEMMA3, .layers = 4, .width = 24, .heads = 2, .context = 16, .vocab = 300};
    dp_model_config configs[5] = {tiny, tiny, tiny, tiny, tiny};
    const uint8_t versions[5] = {6, 18, 19, 20, 21};
    configs[1].arch = DP_ARCH_SMOLLM3;
    configs[1].rope_off_every = 2;
    configs[2].window = 5;
    configs[3].window = 5;
    configs[3].full_every = 3;
    configs[3].rope_local_theta = 77;
    configs[3].scores_softcap_milli = 50000;
    configs[3].query_scalar = 12;
    configs[3].rope_scaling = DP_ROPE_LINEAR;
    configs[3].rope_factor_milli = 8000;
    configs[4].arch = DP_ARCH_NEOX;
    configs[4].rope_width = 4;
    for (size_t i = 0; i < 5; i++) {
        dp_manifest manifest;
        uint8_t bytes[DP_MANIFEST_BYTES_MAX];
        size_t size = 0;
        dp_manifest back;
        dp_manifest_default(&manifest);
        manifest.precision = DP_PRECISION_FP32;
        manifest.codec_gain = DP_OFF; /* as before version 14 */
        manifest.members_absent_s = 0;
        manifest.codec_keep_most = 0;
        manifest.trust = DP_TRUST_MEMBERS;
        dp_manifest_set_model(&manifest, &configs[i]);
        CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
        assert_int_equal(bytes[4], versions[i]);
        CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
        const dp_model_config read = dp_manifest_model(&back);
        assert_memory_equal(&read, &configs[i], sizeof read);
        bytes[4]++; /* A second form: a version that the manifest does not need. */
        CHECK(dp_manifest_decode(&back, dp_view_of(bytes, size)) != DP_OK);
    }
}

/* A run with momentum of an earlier version keeps its bytes, and with them its steps. */
static void a_run_whose_momentum_takes_long_updates_whole_is_of_an_earlier_version(void **state)
{
    (void)state;
    dp_manifest manifest;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    dp_run_mode_set(&manifest, dp_run_mode_find("diloco"));
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 22);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.long_once, DP_ON);
    manifest.long_once = DP_OFF;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 15);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.long_once, DP_OFF);
}

/* An older node would take the number for a mistake; so it reads that it must be updated. */
static void a_run_that_leaves_the_precision_to_its_nodes_is_of_version_23(void **state)
{
    (void)state;
    dp_manifest manifest;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;
    dp_manifest_default(&manifest);
    assert_int_equal(manifest.precision, DP_PRECISION_AUTO);
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 23);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.precision, DP_PRECISION_AUTO);
    bytes[4] = 22; /* which has no such precision */
    CHECK(dp_manifest_decode(&back, dp_view_of(bytes, size)) != DP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_of_a_manifest_comes_back),
        cmocka_unit_test(every_word_of_a_manifest_comes_back),
        cmocka_unit_test(numbers_of_families_make_manifests_of_version_18_to_21),
        cmocka_unit_test(a_run_whose_momentum_takes_long_updates_whole_is_of_an_earlier_version),
        cmocka_unit_test(a_run_that_leaves_the_precision_to_its_nodes_is_of_version_23),
        cmocka_unit_test(bytes_with_a_deleted_codec_are_refused),
        cmocka_unit_test(a_run_with_a_share_that_closes_rounds_is_of_an_earlier_version),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
