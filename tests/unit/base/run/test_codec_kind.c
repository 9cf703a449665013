#include "tests/lib/check.h"

#include "base/run/codec_kind.h"

static void names_and_numbers_lead_to_each_other(void **state)
{
    (void)state;
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    CHECK(count == DP_CODEC_COUNT);
    for (size_t i = 0; i < count; i++) {
        const dp_codec_row *const row = &rows[i];
        CHECK(dp_codec_row_of(row->kind) == row && (i == 0 || rows[i - 1].kind < row->kind));
        dp_codec_kind back;
        CHECK(dp_codec_named(row->name, &back) && back == row->kind);
        CHECK(strcmp(dp_codec_name(row->kind), row->name) == 0);
        CHECK(row->block_min <= row->block_default && row->block_default <= row->block_max);
    }
    dp_codec_kind none;
    CHECK(!dp_codec_named("zip", &none) && !dp_codec_named("", &none));
    CHECK(dp_codec_row_of(0) == NULL && dp_codec_row_of(DP_CODEC_KINDS) == NULL);
    CHECK(dp_codec_row_of(UINT32_MAX) == NULL && dp_codec_name(DP_CODEC_KINDS) == NULL);
}

static void the_numbers_on_the_wire_stay(void **state)
{
    (void)state;
    CHECK(DP_CODEC_FP32 == 1 && DP_CODEC_BF16 == 2 && DP_CODEC_INT8 == 3);
    CHECK(DP_CODEC_SPARSE == 4 && DP_CODEC_INT4 == 6 && DP_CODEC_KINDS == 7);
    CHECK(dp_codec_row_of(5) == NULL);
}

static void the_successor_of_a_deleted_codec_is_named(void **state)
{
    (void)state;
    static const char *const gone[][2] = {
        {"fp16", "bf16"}, {"e3m0", "int4"}, {"sign", "int4"}, {"random", "sparse"}};
    for (size_t i = 0; i < sizeof gone / sizeof gone[0]; i++) {
        dp_codec_kind kind;
        const char *const instead = dp_codec_instead(gone[i][0]);
        CHECK(!dp_codec_named(gone[i][0], &kind));
        CHECK(strcmp(instead, gone[i][1]) == 0 && dp_codec_named(instead, &kind));
    }
    CHECK(dp_codec_instead("int8") == NULL && dp_codec_instead("zip") == NULL);
}

static void refused(dp_codec_kind kind, uint32_t block, uint32_t keep, uint32_t bits,
                    const char *start)
{
    dp_why why = {{0}};
    CHECK_STATUS(dp_codec_options_check(kind, block, keep, bits, &why), DP_BADARG);
    CHECK(strncmp(why.text, start, strlen(start)) == 0);
}

static void options_are_what_the_codec_takes(void **state)
{
    (void)state;
    size_t count = 0;
    const dp_codec_row *const rows = dp_codec_rows(&count);
    for (const dp_codec_row *row = rows; row < rows + count; row++) {
        CHECK_OK(dp_codec_options_check(row->kind, 0, 64, 2, NULL));
        CHECK_OK(dp_codec_options_check(row->kind, row->block_min, 16, 1, NULL));
        CHECK_OK(dp_codec_options_check(row->kind, row->block_max, 128, 1, NULL));
    }
    CHECK_OK(dp_codec_options_check(DP_CODEC_INT8, 512, 0, 0, NULL)); /* It keeps all. */
    refused(DP_CODEC_INT8, 128, 64, 2, "a block of 128; for the codec int8");
    refused(DP_CODEC_INT8, 2048, 64, 2, "a block of 2048");
    refused(DP_CODEC_INT8, 300, 64, 2, "a block of 300");
    refused(DP_CODEC_SPARSE, 64, 64, 2, "a block of 64; the codec sparse has none");
    refused(DP_CODEC_FP32, 256, 64, 2, "a block of 256; the codec fp32 has none");
    refused(DP_CODEC_SPARSE, 0, 8, 2, "round.codec_keep is 8");
    refused(DP_CODEC_SPARSE, 0, 96, 2, "round.codec_keep is 96");
    refused(DP_CODEC_SPARSE, 0, 256, 2, "round.codec_keep is 256");
    refused(DP_CODEC_SPARSE, 0, 64, 0, "0 bits");
    refused(DP_CODEC_SPARSE, 0, 64, 3, "3 bits");
    refused(DP_CODEC_KINDS, 0, 64, 2, "round.codec is");
    refused((dp_codec_kind)0, 0, 64, 2, "round.codec is 0");
    refused((dp_codec_kind)5, 0, 64, 2, "round.codec is 5, which is none");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_lead_to_each_other),
        cmocka_unit_test(the_numbers_on_the_wire_stay),
        cmocka_unit_test(the_successor_of_a_deleted_codec_is_named),
        cmocka_unit_test(options_are_what_the_codec_takes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
