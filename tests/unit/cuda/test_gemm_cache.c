#include "compute/cuda/gemm_cache.h"

#include "tests/lib/check.h"
#include "tests/lib/tempdir.h"

#include <string.h>

static dp_gemm_cache cache;
static dp_gemm_cache other;
static dp_buf file;

static int open_caches(void **state)
{
    (void)state;
    dp_buf_init(&file, DP_GEMM_CACHE_BYTES_MAX);
    return dp_gemm_cache_open(&cache, "", "", "") != DP_OK ||
           dp_gemm_cache_open(&other, "", "", "") != DP_OK;
}

static int close_caches(void **state)
{
    (void)state;
    dp_gemm_cache_close(&cache);
    dp_gemm_cache_close(&other);
    dp_buf_close(&file);
    return 0;
}

static dp_gemm_found found_for(uint64_t m)
{
    dp_gemm_found found = {.key = {.m = m, .n = 768, .flags = 0x1003}, .workspace = 1 << 20};
    for (size_t i = 0; i < DP_GEMM_ALGORITHM_WORDS; i++) {
        found.algorithm[i] = UINT64_MAX - m * 131 - i;
    }
    return found;
}

static void found_algorithms_come_back_from_the_file(void **state)
{
    (void)state;
    for (uint64_t m = 1; m <= 5; m++) {
        const dp_gemm_found found = found_for(m);
        dp_gemm_cache_put(&cache, &found);
    }
    CHECK_OK(dp_gemm_cache_write(&cache, "a card", &file));
    dp_gemm_cache_read(&other, dp_buf_view(&file), "a card");
    CHECK(other.count == 5);
    for (uint64_t m = 1; m <= 5; m++) {
        const dp_gemm_found wanted = found_for(m);
        const dp_gemm_found *const got = dp_gemm_cache_get(&other, &wanted.key);
        CHECK(got != NULL && memcmp(got, &wanted, sizeof wanted) == 0);
    }
}

static void the_file_of_another_card_is_of_no_use(void **state)
{
    (void)state;
    const dp_gemm_found found = found_for(1);
    dp_gemm_cache_put(&cache, &found);
    CHECK_OK(dp_gemm_cache_write(&cache, "a card", &file));
    dp_gemm_cache_read(&other, dp_buf_view(&file), "a card of another kind");
    dp_gemm_cache_read(&other, dp_buf_view(&file),
                       "b card"); /* Its lines begin at the same byte. */
    dp_gemm_cache_read(&other, dp_view_of(NULL, 0), "a card");
    CHECK(other.count == 0);
}

static void a_spoiled_line_ends_the_reading(void **state)
{
    (void)state;
    for (uint64_t m = 1; m <= 3; m++) {
        const dp_gemm_found found = found_for(m);
        dp_gemm_cache_put(&cache, &found);
    }
    CHECK_OK(dp_gemm_cache_write(&cache, "a card", &file));
    for (size_t size = 0; size < file.size; size++) { /* Cut anywhere. */
        other.count = 0;
        dp_gemm_cache_read(&other, dp_view_of(file.data, size), "a card");
        CHECK(other.count < 3);
    }
    *(uint8_t *)memchr(file.data + 30, '\n', file.size - 30) = 'x'; /* The first line runs on. */
    other.count = 0;
    dp_gemm_cache_read(&other, dp_buf_view(&file), "a card");
    CHECK(other.count == 0);
}

static void the_table_has_an_end(void **state)
{
    (void)state;
    for (uint64_t m = 0; m < DP_GEMM_CACHE_MAX + 10; m++) {
        const dp_gemm_found found = found_for(m);
        dp_gemm_cache_put(&cache, &found);
        dp_gemm_cache_put(&cache, &found); /* The same again takes no more room. */
    }
    CHECK(cache.count == 10);
}

static void products_that_differ_have_other_keys(void **state)
{
    (void)state;
    static _Alignas(16) float memory[64];
    const dp_cuda_product base = {.m = 8, .n = 8, .k = 8, .lda = 8, .a = memory, .c = memory + 16};
    dp_cuda_product products[] = {base, base, base, base, base, base, base, base};
    products[1].k = 16;
    products[2].a_transposed = true;
    products[3].b_transposed = true;
    products[4].add = products[4].c;
    products[5].in = DP_BF16;
    products[6].a = memory + 1; /* Not at 16 bytes. */
    products[7].tf32 = true;
    for (size_t i = 0; i < 8; i++) {
        for (size_t j = 0; j < 8; j++) {
            const dp_gemm_key a = dp_gemm_key_of(&products[i]);
            const dp_gemm_key b = dp_gemm_key_of(&products[j]);
            CHECK((memcmp(&a, &b, sizeof a) == 0) == (i == j));
        }
    }
}

static void check_has(dp_gemm_cache *of, const dp_gemm_found *wanted)
{
    const dp_gemm_found *const got = dp_gemm_cache_get(of, &wanted->key);
    CHECK(got != NULL && memcmp(got, wanted, sizeof *wanted) == 0);
}

/* Killed in its first run, a process would search again, and a search by time may end with another
 * algorithm. */
static void found_algorithms_are_in_the_file_at_once(void **state)
{
    (void)state;
    tempdir dir;
    char folder[TEMPDIR_FILE_MAX];
    tempdir_open(&dir);
    tempdir_file(&dir, "not made yet", folder);
    CHECK_OK(dp_gemm_cache_open(&cache, folder, "gemm.txt", "a card"));
    for (uint64_t m = 1; m <= 3; m++) {
        dp_gemm_found found = found_for(m);
        CHECK_OK(dp_gemm_cache_keep(&cache, &found, false));
        CHECK_OK(dp_gemm_cache_open(&other, folder, "gemm.txt", "a card"));
        CHECK(other.count == m);
        check_has(&other, &found);
        dp_gemm_cache_close(&other);
    }
    dp_gemm_cache_close(&cache);
    tempdir_close(&dir);
}

static void two_processes_of_one_card_agree_and_lose_nothing(void **state)
{
    (void)state;
    tempdir dir;
    tempdir_open(&dir);
    CHECK_OK(dp_gemm_cache_open(&cache, dir.path, "gemm.txt", "a card"));
    CHECK_OK(dp_gemm_cache_open(&other, dir.path, "gemm.txt", "a card"));
    dp_gemm_found one = found_for(1);
    dp_gemm_found two = found_for(2);
    CHECK_OK(dp_gemm_cache_keep(&cache, &one, false));
    CHECK_OK(dp_gemm_cache_keep(&other, &two, false));
    dp_gemm_found again = found_for(1); /* The same product, and another algorithm was faster. */
    again.algorithm[0] = 7;
    CHECK_OK(dp_gemm_cache_keep(&other, &again, false));
    CHECK(memcmp(&again, &one, sizeof one) == 0);
    again.algorithm[0] = 7; /* The library does not take what the file has. */
    CHECK_OK(dp_gemm_cache_keep(&other, &again, true));
    CHECK(again.algorithm[0] == 7);
    dp_gemm_cache_close(&cache);
    CHECK_OK(dp_gemm_cache_open(&cache, dir.path, "gemm.txt", "a card"));
    CHECK(cache.count == 2);
    check_has(&cache, &again);
    check_has(&cache, &two);
    dp_gemm_cache_close(&cache);
    dp_gemm_cache_close(&other);
    tempdir_close(&dir);
}

static void without_a_file_the_table_has_it_still(void **state)
{
    (void)state;
    dp_gemm_found found = found_for(1);
    CHECK_OK(dp_gemm_cache_open(&cache, "/proc/none", "gemm.txt", "a card"));
    CHECK(dp_gemm_cache_keep(&cache, &found, false) != DP_OK);
    check_has(&cache, &found);
    dp_gemm_cache_close(&cache);
    CHECK_OK(dp_gemm_cache_open(&cache, "", "gemm.txt", "a card"));
    CHECK_OK(dp_gemm_cache_keep(&cache, &found, false));
    dp_gemm_cache_close(&cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(found_algorithms_come_back_from_the_file, open_caches,
                                        close_caches),
        cmocka_unit_test_setup_teardown(the_file_of_another_card_is_of_no_use, open_caches,
                                        close_caches),
        cmocka_unit_test_setup_teardown(a_spoiled_line_ends_the_reading, open_caches, close_caches),
        cmocka_unit_test_setup_teardown(the_table_has_an_end, open_caches, close_caches),
        cmocka_unit_test(products_that_differ_have_other_keys),
        cmocka_unit_test(found_algorithms_are_in_the_file_at_once),
        cmocka_unit_test(two_processes_of_one_card_agree_and_lose_nothing),
        cmocka_unit_test(without_a_file_the_table_has_it_still),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
