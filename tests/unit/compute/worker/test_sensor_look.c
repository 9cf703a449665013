/* A reading is waited for, and left where it hangs. The sensors are played. THREADS_TEST */
#include "compute/worker/sensor_look.h"

#include <pthread.h>

#include "compute/backend/process_group_cards.h"
#include "tests/lib/check.h"

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; /* held: no reading ends */
static int32_t heat = 40;

dp_group_devices dp_process_group_devices(const dp_process_group *team, const dp_backend *backend,
                                          uint32_t device)
{
    assert_true(team == NULL);
    return (dp_group_devices){.backend = backend, .n = 1, .devices = {device}};
}

void dp_group_devices_feel(const dp_group_devices *of, int32_t *celsius, uint32_t *watts)
{
    pthread_mutex_lock(&gate);
    *celsius = of->backend == NULL && of->n == 1 && of->devices[0] == 3 ? heat++ : INT32_MIN;
    *watts = 100;
    pthread_mutex_unlock(&gate);
}

static void each_look_has_a_reading_of_its_own(void **state)
{
    dp_sensor_look *look = NULL;
    dp_sensor_reading reading;
    (void)state;
    heat = 40;
    CHECK_OK(dp_sensor_look_open(&look, NULL, NULL, 3));
    for (int i = 0; i < 3; i++) {
        assert_true(dp_sensor_look_at(look, 60000, &reading));
        assert_true(reading.celsius == 40 + i && reading.watts == 100);
    }
    dp_sensor_look_close(look);
    dp_sensor_look_close(NULL);
}

static void a_look_that_hangs_is_left_and_its_reading_comes_later(void **state)
{
    dp_sensor_look *look = NULL;
    dp_sensor_reading reading;
    (void)state;
    heat = 50;
    CHECK_OK(dp_sensor_look_open(&look, NULL, NULL, 3));
    pthread_mutex_lock(&gate);
    assert_false(dp_sensor_look_at(look, 5, &reading));
    assert_false(dp_sensor_look_at(look, 0, &reading));
    pthread_mutex_unlock(&gate);
    assert_true(dp_sensor_look_at(look, 60000, &reading));
    assert_int_equal(reading.celsius, 50); /* No second one was asked for. */
    pthread_mutex_lock(&gate);
    assert_false(dp_sensor_look_at(look, 5, &reading));
    dp_sensor_look_close(look); /* It returns although the look does not. */
    pthread_mutex_unlock(&gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_look_has_a_reading_of_its_own),
        cmocka_unit_test(a_look_that_hangs_is_left_and_its_reading_comes_later),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
