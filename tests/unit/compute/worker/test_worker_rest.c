/* How long a worker rests between micro-batches. Sensors and the clock are played; the arithmetic
 * is test_governor.c's business. */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <time.h>

#include "compute/backend/process_group_cards.h"
#include "compute/worker/worker_inside.h"
#include "tests/lib/check.h"

enum { LOOK_US = 2000 * 1000, WORK_US = 100 * 1000 };

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: sensors do not answer */

static struct {
    uint64_t now_us;
    int32_t celsius;
    uint32_t watts;
    uint32_t n_looks;
    uint32_t n_told;
    char told[256];
    uint32_t n_answers; /* RESTING */
    dp_trainer_msg answer;
} machine;

int clock_gettime(clockid_t clock, struct timespec *time)
{
    (void)clock;
    time->tv_sec = (time_t)(machine.now_us / 1000000);
    time->tv_nsec = (long)(machine.now_us % 1000000) * 1000;
    return 0;
}

dp_group_devices dp_process_group_devices(const dp_process_group *team, const dp_backend *backend,
                                          uint32_t device)
{
    (void)team;
    return (dp_group_devices){.backend = backend, .n = 1, .devices = {device}};
}

void dp_group_devices_feel(const dp_group_devices *of, int32_t *celsius, uint32_t *watts)
{
    (void)of;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    machine.n_looks++;
    *celsius = machine.celsius;
    *watts = machine.watts;
}

dp_status dp_worker_answer(const dp_worker *w, const dp_trainer_msg *msg, const dp_view *views,
                           uint32_t n_views)
{
    (void)w;
    assert_true(views == NULL && n_views == 0 && msg->kind == DP_TRAINER_RESTING);
    machine.n_answers++;
    machine.answer = *msg;
    return DP_CLOSED; /* It makes no difference. */
}

static void on_tell(const char *text)
{
    machine.n_told++;
    snprintf(machine.told, sizeof machine.told, "%s", text);
}

static dp_worker worker_of(uint32_t celsius_max, uint32_t watts_max)
{
    memset(&machine, 0, sizeof machine);
    machine.now_us = 1000000000;
    machine.celsius = 50;
    machine.watts = 100;
    dp_worker w = {.governor = dp_governor_of(celsius_max, watts_max)};
    w.options.tell = on_tell;
    return w;
}

/* Until the thread of the sensors has answered. */
static dp_sensor_reading felt(dp_worker *w, uint32_t n_looks)
{
    dp_sensor_reading reading = dp_worker_feel(w);
    while (machine.n_looks < n_looks || w->feel_us <= machine.now_us) {
        sched_yield();
        reading = dp_worker_feel(w);
    }
    return reading;
}

static void without_limits_sensors_are_read_now_and_then_and_never_waited_for(void **state)
{
    dp_worker w = worker_of(0, 0);
    (void)state;
    w.felt.celsius = INT32_MIN;
    pthread_mutex_lock(&gate); /* The driver hangs. */
    assert_int_equal(dp_worker_feel(&w).celsius, INT32_MIN);
    assert_int_equal(dp_worker_feel(&w).celsius, INT32_MIN);
    pthread_mutex_unlock(&gate);
    dp_sensor_reading reading = felt(&w, 1);
    assert_true(reading.celsius == 50 && reading.watts == 100);
    machine.celsius = 60;
    machine.now_us += 9000000; /* Too soon. */
    assert_int_equal(dp_worker_feel(&w).celsius, 50);
    machine.now_us += 2000000;
    reading = felt(&w, 2);
    assert_int_equal(reading.celsius, 60);
    assert_true(machine.n_looks == 2 && machine.n_told == 0 && machine.n_answers == 0);
    dp_sensor_look_close(w.sensors);
}

static void with_limits_the_reading_is_that_of_the_governor(void **state)
{
    dp_worker w = worker_of(80, 0);
    (void)state;
    w.felt.celsius = INT32_MIN;
    assert_int_equal(dp_worker_feel(&w).celsius, INT32_MIN);
    (void)dp_worker_rests_until(&w);
    assert_true(dp_worker_feel(&w).celsius == 50 && machine.n_looks == 1);
    dp_sensor_look_close(w.sensors);
}

static void without_limits_no_sensor_is_read_and_nothing_rests(void **state)
{
    dp_worker w = worker_of(0, 0);
    (void)state;
    machine.celsius = 200;
    assert_int_equal(dp_worker_rests_until(&w), 0);
    dp_worker_worked(&w, WORK_US);
    assert_false(dp_worker_rests(&w));
    assert_int_equal(machine.n_looks, 0);
    dp_sensor_look_close(w.sensors);
}

static void sensors_are_read_every_two_seconds(void **state)
{
    dp_worker w = worker_of(70, 0);
    (void)state;
    assert_true(dp_worker_rests_until(&w) <= machine.now_us);
    assert_int_equal(machine.n_looks, 1);
    machine.now_us += LOOK_US - 1;
    (void)dp_worker_rests_until(&w);
    assert_int_equal(machine.n_looks, 1);
    machine.now_us++;
    (void)dp_worker_rests_until(&w);
    assert_int_equal(machine.n_looks, 2);
    assert_int_equal(machine.n_told, 0); /* Within its limit. */
    dp_sensor_look_close(w.sensors);
}

static void above_the_limit_each_micro_batch_is_followed_by_a_rest(void **state)
{
    dp_worker w = worker_of(70, 0);
    (void)state;
    machine.celsius = 74;
    (void)dp_worker_rests_until(&w);
    assert_int_equal(machine.n_told, 1);
    assert_non_null(strstr(machine.told, "training rests now and then"));
    assert_non_null(strstr(machine.told, ", 74 C, 100 W"));
    dp_worker_worked(&w, WORK_US);
    assert_true(dp_worker_rests(&w));
    const uint64_t until = dp_worker_rests_until(&w);
    assert_int_equal(until - machine.now_us, dp_governor_rest_us(&w.governor, WORK_US));
    w.publishing = true; /* The publication goes on between micro-batches. */
    assert_false(dp_worker_rests(&w));
    w.publishing = false;
    machine.now_us = until;
    assert_false(dp_worker_rests(&w));
    dp_sensor_look_close(w.sensors);
}

static void far_above_it_everything_waits_until_it_is_cooler(void **state)
{
    dp_worker w = worker_of(70, 0);
    (void)state;
    machine.celsius = 70 + DP_GOVERNOR_CELSIUS_STOP;
    const uint64_t until = dp_worker_rests_until(&w);
    assert_int_equal(until, w.look_us); /* Sensors are read meanwhile. */
    machine.now_us += 3600ULL * 1000000;
    assert_true(dp_worker_rests(&w));
    (void)dp_worker_rests_until(&w);
    assert_true(dp_worker_rests(&w));
    machine.celsius = 70 - DP_GOVERNOR_CELSIUS_EASE;
    machine.now_us += LOOK_US;
    (void)dp_worker_rests_until(&w);
    assert_true(w.governor.share > 0);
    machine.now_us += DP_GOVERNOR_REST_US_MAX;
    assert_false(dp_worker_rests(&w));
    dp_sensor_look_close(w.sensors);
}

static void the_daemon_hears_when_it_must_cool_and_when_it_has(void **state)
{
    dp_worker w = worker_of(70, 0);
    (void)state;
    machine.celsius = 74;
    (void)dp_worker_rests_until(&w);
    assert_true(machine.n_answers == 0 &&
                !dp_worker_cools(&w)); /* It computes less, not nothing. */
    machine.celsius = 70 + DP_GOVERNOR_CELSIUS_STOP;
    for (int i = 0; i < 3; i++) {
        machine.now_us += LOOK_US;
        (void)dp_worker_rests_until(&w);
    }
    assert_true(machine.n_answers == 1 && machine.answer.ok && dp_worker_cools(&w));
    assert_int_equal(machine.answer.celsius, 78);
    machine.celsius = 60;
    machine.now_us += LOOK_US;
    (void)dp_worker_rests_until(&w);
    assert_true(machine.n_answers == 2 && !machine.answer.ok && !dp_worker_cools(&w));
    dp_sensor_look_close(w.sensors);
}

static void other_limits_hold_at_once(void **state)
{
    dp_worker w = worker_of(0, 0);
    (void)state;
    machine.celsius = 90;
    (void)dp_worker_rests_until(&w);
    dp_worker_limit(&w, 70, 0);
    (void)dp_worker_rests_until(&w);
    assert_true(dp_worker_rests(&w) && dp_worker_cools(&w) && machine.answer.ok);
    dp_worker_limit(&w, 0, 300);
    (void)dp_worker_rests_until(&w);
    assert_true(!dp_worker_cools(&w) && !machine.answer.ok);
    dp_worker_limit(&w, 70, 0);
    (void)dp_worker_rests_until(&w);
    assert_true(dp_worker_cools(&w) && machine.answer.ok);
    dp_worker_limit(&w, 0, 0);
    assert_false(machine.answer.ok);
    assert_int_equal(dp_worker_rests_until(&w), 0);
    assert_false(dp_worker_rests(&w));
    machine.celsius = INT32_MIN;
    machine.n_told = 0;
    for (int i = 0; i < 2; i++) { /* A limit without a sensor is told for each order. */
        dp_worker_limit(&w, 70, 0);
        (void)dp_worker_rests_until(&w);
    }
    assert_int_equal(machine.n_told, 2);
    dp_sensor_look_close(w.sensors);
}

static void the_end_of_resting_is_told_once(void **state)
{
    dp_worker w = worker_of(70, 0);
    (void)state;
    machine.celsius = 74;
    (void)dp_worker_rests_until(&w);
    machine.celsius = 50;
    for (int i = 0; i < 100; i++) {
        machine.now_us += LOOK_US;
        (void)dp_worker_rests_until(&w);
    }
    assert_int_equal(machine.n_told, 2);
    assert_non_null(strstr(machine.told, "training does not rest any more"));
    dp_sensor_look_close(w.sensors);
}

static void a_limit_without_a_sensor_is_told_once(void **state)
{
    (void)state;
    for (int heat = 0; heat <= 1; heat++) {
        dp_worker w = worker_of(heat ? 70 : 0, heat ? 0 : 200);
        machine.celsius = INT32_MIN;
        machine.watts = 0;
        for (int i = 0; i < 3; i++) {
            (void)dp_worker_rests_until(&w);
            machine.now_us += LOOK_US;
        }
        assert_int_equal(machine.n_told, 1);
        assert_non_null(strstr(machine.told, heat ? "--celsius-max does nothing here"
                                                  : "--watts-max does nothing here"));
        dp_worker_worked(&w, WORK_US);
        assert_false(dp_worker_rests(&w));
        dp_sensor_look_close(w.sensors);
    }
}

static void sensors_that_hang_are_told_once_and_stop_nothing(void **state)
{
    dp_worker w = worker_of(70, 0);
    (void)state;
    machine.celsius = 78;
    (void)dp_worker_rests_until(&w);
    assert_true(dp_worker_cools(&w));
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 3; i++) {
        machine.now_us += LOOK_US;
        (void)dp_worker_rests_until(&w);
        dp_worker_worked(&w, WORK_US);
    }
    assert_true(!dp_worker_cools(&w) && !machine.answer.ok); /* Peers wait for it again. */
    assert_non_null(strstr(machine.told, "E0134 the sensors of heat and power do not answer"));
    const uint32_t told = machine.n_told;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < 60000 && machine.n_told == told; i++) {
        machine.now_us += LOOK_US;
        (void)dp_worker_rests_until(&w);
        DP_IGNORE(poll(NULL, 0, 1) != 0); /* The thread needs a moment. */
    }
    assert_true(dp_worker_cools(&w) && !w.told_mute); /* They answer again. */
    dp_sensor_look_close(w.sensors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_limits_sensors_are_read_now_and_then_and_never_waited_for),
        cmocka_unit_test(with_limits_the_reading_is_that_of_the_governor),
        cmocka_unit_test(without_limits_no_sensor_is_read_and_nothing_rests),
        cmocka_unit_test(sensors_are_read_every_two_seconds),
        cmocka_unit_test(above_the_limit_each_micro_batch_is_followed_by_a_rest),
        cmocka_unit_test(far_above_it_everything_waits_until_it_is_cooler),
        cmocka_unit_test(the_daemon_hears_when_it_must_cool_and_when_it_has),
        cmocka_unit_test(other_limits_hold_at_once),
        cmocka_unit_test(the_end_of_resting_is_told_once),
        cmocka_unit_test(sensors_that_hang_are_told_once_and_stop_nothing),
        cmocka_unit_test(a_limit_without_a_sensor_is_told_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
