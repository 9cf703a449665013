#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/text/trie.h"
#include "tests/lib/allocfail.h"

enum { WORDS = 60, WORD_BYTES = 5 };

/* The value of text, or DP_TRIE_NONE. */
static uint32_t value_of(const dp_trie *trie, dp_view text)
{
    uint32_t node = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (!dp_trie_step(trie, &node, text.data[i])) {
            return DP_TRIE_NONE;
        }
    }
    return trie->nodes[node].value;
}

static void random_words_are_found_and_no_others(void **state)
{
    (void)state;
    dp_rng rng;
    dp_rng_init(&rng, 4);
    for (int round = 0; round < 100; round++) {
        static uint8_t words[WORDS][WORD_BYTES];
        dp_trie_entry entries[WORDS];
        uint32_t count = 0;
        dp_trie trie = {0};
        for (uint32_t i = 0; i < WORDS; i++) {
            const size_t size = 1 + (size_t)dp_rng_below(&rng, WORD_BYTES);
            bool there = false;
            for (size_t j = 0; j < size; j++) {
                words[i][j] = (uint8_t) "ab\xff"[dp_rng_below(&rng, 3)];
            }
            const dp_view word = dp_view_of(words[i], size);
            for (uint32_t j = 0; j < count; j++) {
                there = there || dp_view_equal(entries[j].text, word);
            }
            if (!there) {
                entries[count] = (dp_trie_entry){.text = word, .value = i};
                count++;
            }
        }
        CHECK_OK(dp_trie_fill(&trie, entries, count));
        for (int i = 0; i < 200; i++) {
            uint8_t text[WORD_BYTES];
            const size_t size = 1 + (size_t)dp_rng_below(&rng, WORD_BYTES);
            uint32_t wanted = DP_TRIE_NONE;
            for (size_t j = 0; j < size; j++) {
                text[j] = (uint8_t) "ab\xff"[dp_rng_below(&rng, 3)];
            }
            for (uint32_t j = 0; j < count; j++) {
                wanted = dp_view_equal(entries[j].text, dp_view_of(text, size)) ? entries[j].value
                                                                                : wanted;
            }
            CHECK(value_of(&trie, dp_view_of(text, size)) == wanted);
        }
        dp_trie_close(&trie);
    }
}

static void an_empty_tree_has_nothing(void **state)
{
    (void)state;
    dp_trie trie = {0};
    uint32_t node = 0;
    CHECK_OK(dp_trie_fill(&trie, NULL, 0));
    CHECK(!dp_trie_step(&trie, &node, 'a'));
    dp_trie_close(&trie);
}

static dp_status fill_once(void *context)
{
    dp_trie trie = {0};
    dp_trie_entry entry = {.text = dp_view_text("abc"), .value = 1};
    (void)context;
    const dp_status status = dp_trie_fill(&trie, &entry, 1);
    dp_trie_close(&trie);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    CHECK(fail_each_allocation(fill_once, NULL) >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_words_are_found_and_no_others),
        cmocka_unit_test(an_empty_tree_has_nothing),
        cmocka_unit_test(each_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
