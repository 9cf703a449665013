#include "tests/lib/check.h"

#include "base/rng.h"
#include "compute/text/unigram.h"

enum { WORDS = 12, TEXT_BYTES = 14 };

static const char *const words[WORDS] = {"?", "a",   "b",   "ab",  "ba",   "aab",
                                         "c", "abc", "bca", "cab", "aaaa", "\xc3\xa9"};
static double scores[WORDS] = {0, -3, -4, -5, -6, -7, -2.5, -8, -7.5, -9, -6.5, -4};

static dp_unigram opened(void)
{
    dp_trie_entry entries[WORDS];
    dp_unigram u = {.scores = scores, .count = WORDS, .unknown = 0, .unknown_score = -19};
    for (uint32_t i = 0; i < WORDS; i++) {
        entries[i] = (dp_trie_entry){.text = dp_view_text(words[i]), .value = i};
    }
    CHECK_OK(dp_trie_fill(&u.trie, entries, WORDS));
    return u;
}

/* The best sum of all ways to write the rest of text, by trying all. */
static double best_of_all(const char *text)
{
    double best = -1e9;
    if (text[0] == '\0') {
        return 0;
    }
    for (size_t i = 0; i < WORDS; i++) {
        const size_t size = strlen(words[i]);
        if (strncmp(text, words[i], size) == 0) {
            const double sum = scores[i] + best_of_all(text + size); /* NOLINT(misc-no-recursion) */
            best = sum > best ? sum : best;
        }
    }
    return best;
}

static void no_other_way_has_a_larger_sum(void **state)
{
    (void)state;
    dp_unigram u = opened();
    dp_unigram_room room = {0};
    dp_rng rng;
    dp_rng_init(&rng, 6);
    for (int i = 0; i < 300; i++) {
        char text[TEXT_BYTES + 1] = {0};
        const size_t size = 1 + (size_t)dp_rng_below(&rng, TEXT_BYTES);
        double sum = 0;
        size_t at = 0;
        for (size_t j = 0; j < size; j++) {
            text[j] = "abc"[dp_rng_below(&rng, 3)];
        }
        CHECK_OK(dp_unigram_apply(&u, &room, dp_view_of(text, size)));
        for (size_t j = 0; j < room.n_parts; j++) {
            const dp_unigram_part *const p = &room.parts[j];
            CHECK(p->begin == at && p->end - p->begin == strlen(words[p->id]) &&
                  memcmp(text + p->begin, words[p->id], p->end - p->begin) == 0);
            sum += scores[p->id];
            at = p->end;
        }
        CHECK(at == size && sum == best_of_all(text));
    }
    dp_unigram_room_close(&room);
    dp_trie_close(&u.trie);
}

static void unknown_characters_in_a_row_are_one_part(void **state)
{
    (void)state;
    dp_unigram u = opened();
    dp_unigram_room room = {0};
    CHECK_OK(dp_unigram_apply(&u, &room, dp_view_text("ax\xe7\x8c\xab\xc3\xa9y")));
    CHECK(room.n_parts == 4);
    CHECK(room.parts[0].id == 1 && room.parts[1].id == 0 && room.parts[2].id == 11);
    CHECK(room.parts[1].begin == 1 && room.parts[1].end == 5);
    CHECK(room.parts[3].id == 0 && room.parts[3].end == 8);
    CHECK_OK(dp_unigram_apply(&u, &room, dp_view_text("")));
    CHECK(room.n_parts == 0);
    dp_unigram_room_close(&room);
    dp_trie_close(&u.trie);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_other_way_has_a_larger_sum),
        cmocka_unit_test(unknown_characters_in_a_row_are_one_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
