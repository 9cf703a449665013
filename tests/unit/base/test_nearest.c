#include "base/nearest.h"

#include "tests/lib/check.h"

static const char *nearest_of(const char *word)
{
    static const char *const known[] = {"status", "stop",        "join",
                                        "leave",  "run create",  "ls",
                                        "limits", "ckpt export", "ckpt verify"};
    dp_nearest nearest = {.word = word};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        dp_nearest_offer(&nearest, known[i]);
    }
    return nearest.best != NULL ? nearest.best : "";
}

static void a_slip_of_the_fingers_finds_the_word(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("statsu"), "status");
    assert_string_equal(nearest_of("stauts"), "status");
    assert_string_equal(nearest_of("sttaus"), "status");
    assert_string_equal(nearest_of("jion"), "join");
    assert_string_equal(nearest_of("joinn"), "join");
    assert_string_equal(nearest_of("limts"), "limits");
    assert_string_equal(nearest_of("run craete"), "run create");
    assert_string_equal(nearest_of("ckpt verfy"), "ckpt verify");
    assert_string_equal(nearest_of("sl"), "ls");
    assert_string_equal(nearest_of("status"), "status");
}

static void a_beginning_is_near(void **state)
{
    (void)state;
    assert_string_equal(nearest_of("stat"), "status");
    assert_string_equal(nearest_of("ckpt e"), "ckpt export");
    assert_string_equal(nearest_of("st"), ""); /* Two characters begin too much. */
}

static void the_nearest_of_several_is_taken(void **state)
{
    (void)state;
    dp_nearest nearest = {.word = "upload-mont"};
    dp_nearest_offer(&nearest, "download-month");
    assert_null(nearest.best);
    dp_nearest_offer(&nearest, "uplaod-mon");
    dp_nearest_offer(&nearest, "upload-month");
    dp_nearest_offer(&nearest, "upload-cont");
    assert_string_equal(nearest.best, "upload-month");
}

static void a_strange_word_is_near_to_none(void **state)
{
    (void)state;
    char endless[500] = "";
    memset(endless, 's', sizeof endless - 1);
    assert_string_equal(nearest_of(""), "");
    assert_string_equal(nearest_of("x"), "");
    assert_string_equal(nearest_of("l"), "");
    assert_string_equal(nearest_of("xy"), "");
    assert_string_equal(nearest_of("zebra"), "");
    assert_string_equal(nearest_of("quit"), "");
    assert_string_equal(nearest_of(endless), "");
    dp_nearest nearest = {.word = "status"};
    dp_nearest_offer(&nearest, endless);
    assert_null(nearest.best);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_of_the_fingers_finds_the_word),
        cmocka_unit_test(a_beginning_is_near),
        cmocka_unit_test(the_nearest_of_several_is_taken),
        cmocka_unit_test(a_strange_word_is_near_to_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
