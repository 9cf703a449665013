#include "base/size.h"

#include "tests/lib/check.h"

static uint64_t read(const char *text)
{
    uint64_t bytes = 77;
    return dp_size_read(text, &bytes) ? bytes : bytes + 1;
}

static void sizes_are_read_as_people_write_them(void **state)
{
    (void)state;
    assert_int_equal(read("0"), 0);
    assert_int_equal(read("1234"), 1234);
    assert_int_equal(read("3K"), 3072);
    assert_int_equal(read("3k"), 3072);
    assert_int_equal(read("3KiB"), 3072);
    assert_int_equal(read("3KB"), 3000);
    assert_int_equal(read("2MB"), 2000000);
    assert_int_equal(read("200GB"), 200000000000);
    assert_int_equal(read("200G"), UINT64_C(200) << 30);
    assert_int_equal(read("1TiB"), UINT64_C(1) << 40);
    assert_int_equal(read("1T"), UINT64_C(1) << 40);
    assert_true(read("18446744073709551615") == UINT64_MAX);
    assert_int_equal(read("1.5TB"), UINT64_C(1500000000000));
    assert_int_equal(read("0.25K"), 256);
    assert_int_equal(read("2.001KiB"), 2049);
    assert_int_equal(read("1.999GB"), 1999000000);
    assert_true(read("16777215.999T") ==
                UINT64_MAX - (UINT64_C(1) << 40) + 1 + UINT64_C(1098412116148));
}

static void a_text_that_is_no_size_is_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "G",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 G",
                                      "1.5",
                                      "1.G",
                                      ".5G",
                                      "1.2345G",
                                      "1.5.5G",
                                      "1,5G",
                                      "1X",
                                      "1B",
                                      "1Gb",
                                      "1GiBs",
                                      "1GBs",
                                      "1Gi",
                                      "1GG",
                                      "0x10",
                                      "1e3",
                                      "18446744073709551616",
                                      "16777216.000T",
                                      "16777216T"};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(read(bad[i]), 78);
    }
}

static void sizes_are_written_by_thousands(void **state)
{
    static const struct {
        uint64_t bytes;
        const char *text;
    } rows[] = {
        {0, "0 B"},
        {999, "999 B"},
        {1000, "1.0 kB"},
        {20000000, "20.0 MB"},
        {UINT64_C(34120000000), "34.1 GB"},
        {UINT64_C(200000000000), "200 GB"},
        {UINT64_MAX, "18446744 TB"},
    };
    char text[DP_SIZE_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dp_size_text(rows[i].bytes, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_are_read_as_people_write_them),
        cmocka_unit_test(a_text_that_is_no_size_is_refused),
        cmocka_unit_test(sizes_are_written_by_thousands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
