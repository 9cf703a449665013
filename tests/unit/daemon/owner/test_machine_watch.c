/* A look that hangs holds neither the daemon nor its end. The looks are played. THREADS_TEST */
#include "daemon/owner/machine_watch.h"

#include <pthread.h>
#include <time.h>

#include "tests/lib/check.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: looks hang */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned n_looks;

void dp_machine_use_look(dp_machine_use *use, const char *root, uint32_t self, uint32_t script,
                         uint64_t unix_s)
{
    assert_string_equal(root, "/fake");
    use->own = script;
    assert_true(self == 7 && unix_s > 0);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    pthread_mutex_lock(&lock);
    n_looks++;
    use->power = DP_MACHINE_POWER_BATTERY;
    use->input_s = n_looks;
    pthread_mutex_unlock(&lock);
}

static unsigned n_cards; /* looks at cards; guarded by lock */

void dp_card_use_look(dp_card_use *use, const char *root, uint32_t self, uint32_t script)
{
    assert_string_equal(root, "/fake");
    assert_true(self == 7 && script == 0);
    pthread_mutex_lock(&lock);
    use->told = true;
    use->used = ++n_cards;
    pthread_mutex_unlock(&lock);
}

void dp_card_use_end(dp_card_use *use)
{
    use->told = false;
}

static unsigned looks(void)
{
    pthread_mutex_lock(&lock);
    const unsigned n = n_looks;
    pthread_mutex_unlock(&lock);
    return n;
}

static void pass_ms(long ms)
{
    const struct timespec span = {.tv_nsec = ms * 1000000};
    nanosleep(&span, NULL);
}

/* Waits for that many looks, a minute at most. */
static void await_looks(unsigned n)
{
    for (int i = 0; i < 60000 && looks() < n; i++) {
        pass_ms(1);
    }
    assert_true(looks() >= n);
}

static void it_looks_again_and_again(void **state)
{
    dp_machine_watch *watch = NULL;
    dp_machine_use use = {.has_load = false};
    bool hangs = true;
    (void)state;
    n_looks = 0;
    CHECK_OK(dp_machine_watch_open(&watch, "/fake", 7, 1));
    await_looks(3);
    assert_true(dp_machine_watch_see(watch, 60000, &use, &hangs) && !hangs);
    assert_true(use.power == DP_MACHINE_POWER_BATTERY && use.input_s >= 2 && use.own == 0);
    dp_machine_watch_script(watch, 9);
    await_looks(looks() + 2); /* The look under way may have begun before. */
    assert_true(dp_machine_watch_see(watch, 60000, &use, &hangs) && use.own == 9);
    dp_machine_watch_close(watch);
    assert_false(dp_machine_watch_see(NULL, 0, &use, &hangs));
    dp_machine_watch_close(NULL);
}

static void cards_are_looked_at_where_that_is_wanted_and_more_often(void **state)
{
    dp_machine_watch *watch = NULL;
    dp_card_use cards = {.told = false};
    (void)state;
    n_looks = 0;
    CHECK_OK(dp_machine_watch_open(&watch, "/fake", 7, 3600000)); /* The rest: once. */
    await_looks(1);
    assert_false(dp_machine_watch_see_cards(watch, 60000, &cards));
    dp_machine_watch_cards(watch, true);
    for (int i = 0; i < 60000 && cards.used < 2; i++) {
        pass_ms(1);
        DP_IGNORE(!dp_machine_watch_see_cards(watch, 60000, &cards)); /* Not yet. */
    }
    assert_true(cards.told && cards.used >= 2);
    assert_int_equal(looks(), 1);
    dp_machine_watch_cards(watch, false);
    for (int i = 0; i < 60000 && dp_machine_watch_see_cards(watch, 60000, &cards); i++) {
        pass_ms(1);
    }
    assert_false(dp_machine_watch_see_cards(watch, 60000, &cards));
    dp_machine_watch_close(watch);
    dp_machine_watch_cards(NULL, true);
    assert_false(dp_machine_watch_see_cards(NULL, 0, &cards));
}

static void a_look_that_hangs_is_told_and_left_alone(void **state)
{
    dp_machine_watch *watch = NULL;
    dp_machine_use use = {.has_load = false};
    bool hangs = false;
    (void)state;
    n_looks = 0;
    pthread_mutex_lock(&gate);
    CHECK_OK(dp_machine_watch_open(&watch, "/fake", 7, 1));
    assert_false(dp_machine_watch_see(watch, 60000, &use, &hangs)); /* It may only be slow. */
    assert_false(hangs);
    for (int i = 0; i < 60000 && !hangs; i++) {
        pass_ms(1);
        assert_false(dp_machine_watch_see(watch, 5, &use, &hangs));
    }
    assert_true(hangs);
    dp_machine_watch_close(watch); /* It returns although the look does not. */
    assert_int_equal(looks(), 0);
    pthread_mutex_unlock(&gate);
    await_looks(1); /* The thread ends by itself, and frees what it has. */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_looks_again_and_again),
        cmocka_unit_test(cards_are_looked_at_where_that_is_wanted_and_more_often),
        cmocka_unit_test(a_look_that_hangs_is_told_and_left_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
