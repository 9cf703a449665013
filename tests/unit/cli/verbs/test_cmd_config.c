/* config show: the table of settings, with and without their sources. */
#include <stdlib.h>
#include <time.h>

#include "tests/unit/cli/verb_kit.h"

static const char settings[] =
    "{'file': '/etc/d.conf', 'settings': ["
    "{'name': 'nice', 'value': '10', 'from': 'default', 'live': true},"
    "{'name': 'threads', 'value': '4', 'from': 'file', 'line': 3, 'live': true},"
    "{'name': 'listen', 'value': '[::]:1', 'from': 'environment', 'live': false, "
    "'until_restart': true},"
    "{'name': 'upload-max', 'value': '5', 'from': 'order', 'by': 'ann', 'set_ms': 1795431302000, "
    "'live': true, 'until_restart': true}]}";

static void values_are_shown_without_their_sources(void **state)
{
    (void)state;
    verb_answer(settings);
    assert_int_equal(VERB_ALONE(dp_verb_config_show), 0);
    assert_true(verb_asked(0, "config", "{}"));
    assert_true(verb_said("SETTING") && verb_said("threads") && !verb_said("FROM"));
}

static void each_source_is_named_where_that_is_asked(void **state)
{
    (void)state;
    verb_answer(settings);
    assert_int_equal(VERB(dp_verb_config_show, "--origin"), 0);
    assert_true(verb_said("default") && verb_said("/etc/d.conf:3"));
    assert_true(verb_said("environment; the file has another value for the next start"));
    assert_true(verb_said("dpnode limits, by ann, 2026-11-23 10:55, until the daemon ends"));
    verb_answer(settings);
    assert_int_equal(VERB(dp_verb_config_show, "--json"), 0);
    assert_true(verb_said("\"settings\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        VERB_TEST(values_are_shown_without_their_sources),
        VERB_TEST(each_source_is_named_where_that_is_asked),
    };
    setenv("TZ", "UTC", 1);
    tzset();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
