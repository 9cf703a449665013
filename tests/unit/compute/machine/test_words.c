/* Words with their counts: each once, found again, at every size of the table. */
#include <stdio.h>

#include "base/alloc.h"
#include "compute/machine/words.h"
#include "tests/lib/check.h"

enum { MANY = 5000 };

static char texts[MANY][12];

static dp_view word_of(uint32_t number)
{
    snprintf(texts[number], sizeof texts[number], "word %u", number);
    return dp_view_text(texts[number]);
}

static void each_word_is_kept_once_and_counted(void **state)
{
    dp_words words = {0};
    uint32_t index = 9;
    (void)state;
    assert_false(dp_words_find(&words, dp_view_text("a"), &index));
    assert_int_equal(index, 9); /* Untouched. */
    CHECK_OK(dp_words_add(&words, dp_view_text("a"), &index));
    assert_int_equal(index, 0);
    CHECK_OK(dp_words_add(&words, dp_view_text("b"), &index));
    CHECK_OK(dp_words_add(&words, dp_view_text("a"), &index));
    assert_true(index == 0 && words.count == 2);
    assert_true(words.times[0] == 2 && words.times[1] == 1);
    assert_true(dp_words_find(&words, dp_view_text("b"), &index) && index == 1);
    assert_false(dp_words_find(&words, dp_view_text("ab"), &index));
    dp_words_close(&words);
    dp_words_close(&words); /* Twice is once. */
}

static void an_empty_word_and_words_that_begin_alike_are_others(void **state)
{
    dp_words words = {0};
    uint32_t empty = 0;
    uint32_t one = 0;
    uint32_t two = 0;
    (void)state;
    CHECK_OK(dp_words_add(&words, dp_view_text(""), &empty));
    CHECK_OK(dp_words_add(&words, dp_view_of("a", 1), &one));
    CHECK_OK(dp_words_add(&words, dp_view_of("a", 2), &two)); /* With its zero byte. */
    assert_true(empty != one && one != two && words.count == 3);
    dp_words_close(&words);
}

static void indices_stay_as_the_table_grows(void **state)
{
    dp_words words = {0};
    uint32_t index = 0;
    (void)state;
    for (uint32_t i = 0; i < MANY; i++) {
        CHECK_OK(dp_words_add(&words, word_of(i), &index));
        assert_int_equal(index, i);
    }
    assert_true(words.count == MANY && words.capacity >= MANY);
    for (uint32_t i = 0; i < MANY; i++) {
        assert_true(dp_words_find(&words, word_of(i), &index) && index == i);
        assert_int_equal(words.times[i], 1);
    }
    dp_words_close(&words);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

static void missing_memory_leaves_what_was_there(void **state)
{
    dp_words words = {0};
    uint32_t index = 0;
    (void)state;
    for (uint32_t i = 0; i < 1024; i++) { /* As many as fit before it grows. */
        CHECK_OK(dp_words_add(&words, word_of(i), &index));
    }
    for (size_t at = 1; at <= 3; at++) {
        dp_alloc_fail_after(at);
        CHECK_STATUS(dp_words_add(&words, word_of(1024), &index), DP_NOMEM);
        dp_alloc_fail_after(0);
        assert_int_equal(words.count, 1024);
        assert_true(dp_words_find(&words, word_of(1023), &index) && index == 1023);
        assert_false(dp_words_find(&words, word_of(1024), &index));
    }
    CHECK_OK(dp_words_add(&words, word_of(1024), &index));
    assert_int_equal(index, 1024);
    dp_words_close(&words);
    assert_int_equal(dp_alloc_live_bytes(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_word_is_kept_once_and_counted),
        cmocka_unit_test(an_empty_word_and_words_that_begin_alike_are_others),
        cmocka_unit_test(indices_stay_as_the_table_grows),
        cmocka_unit_test(missing_memory_leaves_what_was_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
