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
    manifest.precision = DP_PRECISION_FP32;
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
    manifest.codec_gain = DP_OFF; /* An earlier run does not change. */
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.codec_gain = DP_ON;
    manifest.codec = DP_CODEC_INT8;
    manifest.codec_keep_most = 0;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.alpha_milli = DP_MANIFEST_STEP_MILLI_MAX + 1;
    assert_refused(&manifest, "round.alpha");
}

static void a_manifest_keeps_no_more_than_the_whole_compression_error(void **state)
{
    dp_manifest manifest;

    (void)state;
    dp_manifest_default(&manifest);
    assert_int_equal(manifest.feedback_beta_milli, 950);
    manifest.feedback_beta_milli = 1000;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
    manifest.feedback_beta_milli = 1001;
    assert_refused(&manifest, "is kept is 1.001; it may be 0 to 1");
}

static void switches_of_a_mode_are_off_or_on(void **state)
{
    dp_manifest manifest;

    (void)state;
    dp_manifest_default(&manifest);
    assert_int_equal(manifest.pairs, DP_OFF);
    assert_int_equal(manifest.exchange, DP_EXCHANGE_UPDATES);
    assert_int_equal(manifest.stale, DP_OFF);
    manifest.pairs = (dp_switch)2;
    assert_refused(&manifest, "are 2, 0, 0, 0 and 0; each may be 0 or 1");
    manifest.pairs = DP_OFF;
    manifest.exchange = (dp_exchange_kind)2;
    assert_refused(&manifest, "are 0, 2, 0, 0 and 0");
    manifest.exchange = DP_EXCHANGE_UPDATES;
    manifest.stale = (dp_switch)7;
    assert_refused(&manifest, "are 0, 0, 7, 0 and 0");
    manifest.stale = DP_OFF;
    manifest.reduce = (dp_reduce_kind)2;
    assert_refused(&manifest, "are 0, 0, 0, 2 and 0");
    manifest.reduce = DP_REDUCE_WHOLE;
    manifest.site_sums = (dp_switch)2;
    assert_refused(&manifest, "are 0, 0, 0, 0 and 2");
}

/* Such a run was possible before 2026-11-28: its manifest counts as one of another version. */
static void gradients_and_pairs_need_members_that_trust_each_other(void **state)
{
    enum {
        TRUST = 1,
        ABSENT = 4,
        GAIN = 1,
        SUMS = 1,
        GONE = 4,
        MAX = 4,
        MOST = 4,
        STALE = 1,
        REDUCE = 1
    };
    dp_manifest manifest;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    size_t size = 0;
    dp_manifest back;

    (void)state;
    dp_manifest_default(&manifest);
    manifest.precision = DP_PRECISION_FP32;
    manifest.codec_keep_most = 0;
    manifest.codec = DP_CODEC_INT8;
    manifest.trust = DP_TRUST_OPEN;
    CHECK_OK(dp_manifest_encode(&manifest, bytes, &size));
    const size_t reduce_at = size - sizeof manifest.signature - TRUST - ABSENT - GAIN - SUMS -
                             GONE - MAX - MOST - STALE - REDUCE;
    bytes[reduce_at] = DP_REDUCE_PARTS;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(bytes, size)), DP_VERSION);
    manifest.reduce = DP_REDUCE_PARTS;
    assert_refused(&manifest, "rounds of parts exchange sums, which no voter can evaluate");
    manifest.reduce = DP_REDUCE_WHOLE;
    manifest.pairs = DP_ON;
    assert_refused(&manifest, "round.mode gossip exchanges in pairs");
    manifest.pairs = DP_OFF;
    manifest.exchange = DP_EXCHANGE_GRADIENTS;
    manifest.inner_steps_max = 1;
    assert_refused(&manifest, "round.mode ddp exchanges gradients");
    assert_refused(&manifest, "members: {trust: members}");
    manifest.trust = DP_TRUST_MEMBERS;
    CHECK_OK(dp_manifest_check(&manifest, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_manifest_of_version_14_steps_by_its_codec),
        cmocka_unit_test(a_step_longer_than_the_codec_bears_is_refused),
        cmocka_unit_test(switches_of_a_mode_are_off_or_on),
        cmocka_unit_test(gradients_and_pairs_need_members_that_trust_each_other),
        cmocka_unit_test(a_manifest_keeps_no_more_than_the_whole_compression_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
