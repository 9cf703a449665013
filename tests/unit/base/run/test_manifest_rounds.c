#include <string.h>

#include "base/run/manifest.h"
#include "tests/lib/check.h"

static void assert_refused(const dp_manifest *manifest, const char *word)
{
    dp_why why = {""};

    CHECK_STATUS(dp_manifest_check(manifest, &why), DP_BADARG);
    assert_non_null(strstr(why.text, word));
}

static void a_manifest_of_version_14_steps_by_its_codec(void **state)
{
    dp_manifest manifest;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    dp_manifest_default(&manifest);
    manifest.trust = DP_TRUST_MEMBERS; /* Of version 15. */
    assert_int_equal(manifest.codec_gain, DP_ON);
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    assert_int_equal(bytes[4], 14);
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    assert_int_equal(back.codec_gain, DP_ON);
    assert_int_equal(back.members_absent_s, 7 * 86400);
    const size_t gain_at = size - sizeof manifest.signature - 4 - 1;
    memset(&bytes[gain_at], 0, 4 + 1); /* A second form of version 6. */
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
    bytes[gain_at] = 2;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_BADMSG);
}

/* A step of three times an update diverged; how long one is already, its codec says. */
static void a_step_longer_than_the_codec_bears_is_refused(void **state)
{
    dp_manifest manifest;

    (void)state;
    dp_manifest_default(&manifest);
    const double gain = dp_codec_gain(manifest.codec, manifest.codec_keep) / 65536.0;
    assert_true(gain >= 2);
    manifest.alpha_milli = (uint32_t)(DP_MANIFEST_STEP_MILLI_MAX / gain);
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.alpha_milli++;
    assert_refused(&manifest, "round.alpha");
    manifest.codec_gain = DP_OFF; /* A run from before goes on as it was. */
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.codec_gain = DP_ON;
    manifest.codec = DP_CODEC_INT8;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.alpha_milli = DP_MANIFEST_STEP_MILLI_MAX + 1;
    assert_refused(&manifest, "round.alpha");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_of_version_14_steps_by_its_codec),
        cmocka_unit_test(a_step_longer_than_the_codec_bears_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
