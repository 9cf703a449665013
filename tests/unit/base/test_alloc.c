#include "base/alloc.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/lib/check.h"

/* THREADS_TEST: the counters are shared by all threads. */

static void memory_is_zeroed_aligned_and_counted(void **state)
{
    const size_t before = dp_alloc_live_bytes();

    (void)state;
    uint8_t *const memory = dp_alloc(3, 100);
    assert_non_null(memory);
    assert_int_equal((uintptr_t)memory % 64, 0);
    for (size_t i = 0; i < 300; i++) {
        assert_int_equal(memory[i], 0);
    }
    assert_int_equal(dp_alloc_live_bytes(), before + 300);
    dp_free(memory);
    assert_int_equal(dp_alloc_live_bytes(), before);
    dp_free(NULL);
}

static void zero_items_are_a_block_all_the_same(void **state)
{
    (void)state;
    void *const a = dp_alloc(0, 8);
    void *const b = dp_alloc(8, 0);
    assert_non_null(a);
    assert_non_null(b);
    dp_free(a);
    dp_free(b);
}

static void a_product_that_overflows_gives_null(void **state)
{
    (void)state;
    assert_null(dp_alloc(SIZE_MAX, 2));
    assert_null(dp_alloc(SIZE_MAX / 2, 3));
    assert_null(dp_alloc(1, SIZE_MAX));
    assert_null(dp_alloc(1, PTRDIFF_MAX));
}

static void realloc_keeps_the_content(void **state)
{
    const size_t before = dp_alloc_live_bytes();

    (void)state;
    char *memory = dp_realloc(NULL, 4);
    assert_non_null(memory);
    memcpy(memory, "abc", 4);
    memory = dp_realloc(memory, 4000);
    assert_non_null(memory);
    assert_string_equal(memory, "abc");
    assert_int_equal(dp_alloc_live_bytes(), before + 4000);
    memory = dp_realloc(memory, 2);
    assert_non_null(memory);
    assert_memory_equal(memory, "ab", 2);
    dp_free(memory);
    assert_int_equal(dp_alloc_live_bytes(), before);
}

static void a_failed_realloc_leaves_the_old_block(void **state)
{
    (void)state;
    char *const memory = dp_alloc(1, 4);
    assert_non_null(memory);
    memcpy(memory, "abc", 4);
    dp_alloc_fail_after(1);
    assert_null(dp_realloc(memory, 100));
    dp_alloc_fail_after(0);
    assert_null(dp_realloc(memory, SIZE_MAX));
    assert_string_equal(memory, "abc");
    dp_free(memory);
}

static void the_budget_bounds_what_lives_at_once(void **state)
{
    (void)state;
    dp_alloc_set_budget(dp_alloc_live_bytes() + 1000);
    void *const first = dp_alloc(1, 600);
    assert_non_null(first);
    assert_null(dp_alloc(1, 401));
    void *const second = dp_alloc(1, 400);
    assert_non_null(second);
    dp_free(first);
    void *const third = dp_alloc(1, 600);
    assert_non_null(third);
    dp_free(second);
    dp_free(third);
    dp_alloc_set_budget(0);
}

static void the_hook_fails_the_nth_and_all_after_it(void **state)
{
    (void)state;
    dp_alloc_fail_after(3);
    void *const first = dp_alloc(1, 1);
    void *const second = dp_alloc(1, 1);
    assert_non_null(first);
    assert_non_null(second);
    assert_null(dp_alloc(1, 1));
    assert_null(dp_alloc(1, 1));
    dp_alloc_fail_after(0);
    void *const third = dp_alloc(1, 1);
    assert_non_null(third);
    dp_free(first);
    dp_free(second);
    dp_free(third);
}

static void *allocate_and_free(void *unused)
{
    for (unsigned i = 1; i <= 2000; i++) {
        void *const memory = dp_alloc(i % 50, 16);
        if (memory == NULL) {
            return unused;
        }
        dp_free(memory);
    }
    return NULL;
}

static void threads_leave_no_bytes_behind(void **state)
{
    const size_t before = dp_alloc_live_bytes();
    pthread_t threads[4];
    int mark = 0;

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, &mark), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        void *result = &mark;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_null(result);
    }
    assert_int_equal(dp_alloc_live_bytes(), before);
}

enum { TABLE_BYTES = 8 << 20 };

#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

static void a_reserved_table_is_zeroed_aligned_and_counted_whole(void **state)
{
    const size_t before = dp_alloc_live_bytes();

    (void)state;
    uint8_t *const table = dp_reserve(TABLE_BYTES / 8, 8);
    assert_non_null(table);
    assert_int_equal((uintptr_t)table % 64, 0);
    assert_int_equal(dp_alloc_live_bytes(), before + TABLE_BYTES);
    assert_int_equal(table[0] | table[TABLE_BYTES / 2] | table[TABLE_BYTES - 1], 0);
    table[TABLE_BYTES - 1] = 1;
    dp_free(table);
    assert_int_equal(dp_alloc_live_bytes(), before);
}

/* Under the address sanitizer it is, since it comes from there. */
static void a_reserved_table_takes_no_memory_where_nothing_was_written(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *const table = dp_reserve(TABLE_BYTES, 1);
    unsigned char *const here = calloc(TABLE_BYTES / page + 2, 1);
    size_t resident = 0;

    (void)state;
    assert_non_null(table);
    assert_non_null(here);
    table[TABLE_BYTES / 2] = 1;
    uint8_t *const first = table - (uintptr_t)table % page;
    assert_int_equal(mincore(first, TABLE_BYTES, here), 0);
    for (size_t i = 0; i < TABLE_BYTES / page; i++) {
        resident += here[i] & 1U;
    }
#ifndef SANITIZED
    assert_true(resident <= 2 * (TABLE_BYTES / page) / 4); /* Huge pages are of 2 MiB. */
#endif
    assert_true(resident >= 1);
    free(here);
    dp_free(table);
}

static void a_table_is_refused_as_memory_is(void **state)
{
    const size_t before = dp_alloc_live_bytes();

    (void)state;
    assert_null(dp_reserve(SIZE_MAX, 2));
    assert_null(dp_reserve(1, PTRDIFF_MAX));
#ifndef SANITIZED
    assert_null(dp_reserve((size_t)1 << 50, 1)); /* More than an address space has. */
#endif
    dp_alloc_set_budget(before + TABLE_BYTES);
    assert_null(dp_reserve(TABLE_BYTES + 1, 1));
    dp_alloc_set_budget(0);
    dp_alloc_fail_after(1);
    assert_null(dp_reserve(TABLE_BYTES, 1));
    dp_alloc_fail_after(0);
    void *const small = dp_reserve(1, 8);
    assert_non_null(small);
    dp_free(small);
    assert_int_equal(dp_alloc_live_bytes(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_aligned_and_counted),
        cmocka_unit_test(zero_items_are_a_block_all_the_same),
        cmocka_unit_test(a_product_that_overflows_gives_null),
        cmocka_unit_test(realloc_keeps_the_content),
        cmocka_unit_test(a_failed_realloc_leaves_the_old_block),
        cmocka_unit_test(the_budget_bounds_what_lives_at_once),
        cmocka_unit_test(the_hook_fails_the_nth_and_all_after_it),
        cmocka_unit_test(a_reserved_table_is_zeroed_aligned_and_counted_whole),
        cmocka_unit_test(a_reserved_table_takes_no_memory_where_nothing_was_written),
        cmocka_unit_test(a_table_is_refused_as_memory_is),
        cmocka_unit_test(threads_leave_no_bytes_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
