#include "tests/lib/check.h"

#include <stdlib.h>

#include "compute/corpus/document_counts.h"

static void check(const dp_document_counts *counts, const char *wanted)
{
    char *text = NULL;
    size_t size = 0;
    FILE *const out = open_memstream(&text, &size);
    CHECK(out != NULL && dp_document_counts_print(counts, out));
    CHECK(fclose(out) == 0);
    if (strcmp(text, wanted) != 0) {
        fail_msg("'%s', not '%s'", text, wanted);
    }
    free(text);
}

static void only_what_is_known_is_told(void **state)
{
    (void)state;
    check(&(dp_document_counts){.apart = false}, "");
    check(&(dp_document_counts){.apart = true, .losses = 5, .padding = 1, .cut = 2, .left_out = 3},
          ", \"losses\": 5, \"padding\": 1, \"cut\": 2, \"left_out\": 3");
}

/* The name of a file stands in it, which may be any bytes. */
static void a_sentence_with_any_bytes_is_valid_json(void **state)
{
    (void)state;
    check(&(dp_document_counts){.bad_lines = 1, .first_bad = {"a \"b\"\n\xc3\xa4"}},
          ", \"bad_lines\": 1, \"first_bad\": \"a \\\"b\\\"\\n\\u00E4\"");
    check(&(dp_document_counts){.bad_lines = 2, .first_bad = {"\xff"}},
          ", \"bad_lines\": 2, \"first_bad\": \"\"");
    /* A sentence is cut where it is too long. */
    check(&(dp_document_counts){.bad_lines = 2, .first_bad = {"a\xe2\x82"}},
          ", \"bad_lines\": 2, \"first_bad\": \"a\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_is_known_is_told),
        cmocka_unit_test(a_sentence_with_any_bytes_is_valid_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
