#include "tests/lib/check.h"

#include "base/manifest.h"
#include "tests/lib/mutate.h"

static dp_manifest filled(void)
{
    dp_manifest m;
    dp_manifest_default(&m);
    memcpy(m.name, "kjv-1", sizeof "kjv-1");
    m.created_ms = 1;
    m.nonce = 0x0123456789abcdef;
    memset(m.root_key, 1, sizeof m.root_key);
    memset(m.founder, 2, sizeof m.founder);
    memset(m.founder_vote_key, 3, sizeof m.founder_vote_key);
    memset(m.tokenizer.bytes, 4, sizeof m.tokenizer.bytes);
    memset(m.data.bytes, 5, sizeof m.data.bytes);
    memset(m.signature, 6, sizeof m.signature);
    m.tokenizer_bytes = 7;
    m.data_bytes = 8;
    m.schedule = DP_SCHEDULE_WSD;
    m.codec = DP_CODEC_BF16;
    return m;
}

static void defaults_are_possible(void **state)
{
    (void)state;
    dp_manifest m;
    dp_manifest_default(&m);
    dp_why why;
    CHECK_OK(dp_manifest_check(&m, &why));
}

static void every_field_survives_the_canonical_form(void **state)
{
    (void)state;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    const dp_manifest m = filled();
    dp_manifest back;
    size_t size;
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));
    CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
    CHECK(memcmp(&m, &back, sizeof m) == 0);
    size_t n_rows;
    const dp_manifest_row *const rows = dp_manifest_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        dp_manifest changed = filled();
        changed.voters_max = 5;
        ((uint8_t *)&changed)[rows[i].offset] ^= 1;
        if (dp_manifest_check(&changed, NULL) != DP_OK) {
            continue; /* the row's limits forbid this one */
        }
        CHECK_OK(dp_manifest_encode(&changed, bytes, &size));
        CHECK_OK(dp_manifest_decode(&back, dp_view_of(bytes, size)));
        CHECK(memcmp(&changed, &back, sizeof back) == 0);
    }
}

static void canonical_bytes_are_those_of_the_document(void **state)
{
    (void)state;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    const dp_manifest m = filled();
    size_t size;
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));
    static const uint8_t start[] = {'D', 'P', 'M', '1', 1, 0, 5, 'k', 'j', 'v', '-', '1', 1, 0, 0, 0, 0, 0, 0, 0, 0xef, 0xcd};
    CHECK(memcmp(bytes, start, sizeof start) == 0);
    CHECK(bytes[size - 1] == 6 && bytes[size - 64] == 6 && bytes[size - 65] == 0);
}

static void the_run_id_does_not_depend_on_the_signature(void **state)
{
    (void)state;
    uint8_t bytes[DP_MANIFEST_BYTES_MAX];
    dp_manifest m = filled();
    size_t size;
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));
    const dp_hash id = dp_manifest_run_id(dp_view_of(bytes, size));
    memset(m.signature, 0, sizeof m.signature);
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));
    const dp_hash same = dp_manifest_run_id(dp_view_of(bytes, size));
    CHECK(dp_hash_equal(&id, &same));
    m.nonce++;
    CHECK_OK(dp_manifest_encode(&m, bytes, &size));
    const dp_hash other = dp_manifest_run_id(dp_view_of(bytes, size));
    CHECK(!dp_hash_equal(&id, &other));
}

static void impossible_values_are_named(void **state)
{
    (void)state;
    size_t n_rows;
    const dp_manifest_row *const rows = dp_manifest_rows(&n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        dp_manifest m = filled();
        const uint64_t beyond = rows[i].most + 1;
        if (beyond == 0) {
            continue; /* every value is possible */
        }
        memcpy((char *)&m + rows[i].offset, &beyond, rows[i].size);
        dp_why why = {{0}};
        CHECK_STATUS(dp_manifest_check(&m, &why), DP_BADARG);
        CHECK(strstr(why.text, rows[i].key) != NULL);
    }
    const struct {
        size_t offset;
        uint32_t value;
        const char *word;
    } cases[] = {
        {offsetof(dp_manifest, heads), 3, "model.width"},
        {offsetof(dp_manifest, voters_max), 4, "vote.voters_max"},
        {offsetof(dp_manifest, schedule), 9, "train.schedule"},
        {offsetof(dp_manifest, codec), 0, "round.codec"},
        {offsetof(dp_manifest, name), 0x20, "name"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_manifest m = filled();
        memcpy((char *)&m + cases[i].offset, &cases[i].value, 4);
        dp_why why = {{0}};
        CHECK_STATUS(dp_manifest_check(&m, &why), DP_BADARG);
        CHECK(strstr(why.text, cases[i].word) != NULL);
    }
    dp_manifest m = filled();
    m.layers = 128;
    m.width = 16384;
    CHECK_STATUS(dp_manifest_check(&m, NULL), DP_BADARG);
}

static void damaged_bytes_never_pass_for_another_form(void **state)
{
    (void)state;
    uint8_t good[DP_MANIFEST_BYTES_MAX];
    const dp_manifest m = filled();
    size_t size;
    CHECK_OK(dp_manifest_encode(&m, good, &size));
    dp_manifest back;
    for (size_t cut = 0; cut < size; cut++) {
        CHECK(dp_manifest_decode(&back, dp_view_of(good, cut)) != DP_OK);
    }
    good[4] = 2;
    CHECK_STATUS(dp_manifest_decode(&back, dp_view_of(good, size)), DP_VERSION);
    good[4] = 1;
    dp_rng rng;
    dp_rng_init(&rng, 11);
    for (int i = 0; i < 20000; i++) {
        uint8_t bytes[DP_MANIFEST_BYTES_MAX];
        memcpy(bytes, good, size);
        const size_t damaged = mutate(&rng, bytes, size, sizeof bytes);
        if (dp_manifest_decode(&back, dp_view_of(bytes, damaged)) == DP_OK) {
            uint8_t again[DP_MANIFEST_BYTES_MAX];
            size_t again_size;
            CHECK_OK(dp_manifest_encode(&back, again, &again_size));
            CHECK(again_size == damaged && memcmp(again, bytes, damaged) == 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_possible),
        cmocka_unit_test(every_field_survives_the_canonical_form),
        cmocka_unit_test(canonical_bytes_are_those_of_the_document),
        cmocka_unit_test(the_run_id_does_not_depend_on_the_signature),
        cmocka_unit_test(impossible_values_are_named),
        cmocka_unit_test(damaged_bytes_never_pass_for_another_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
