#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compute/machine/sensors.h"

static char folder[64];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/dp-sensors-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static void put(unsigned device, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/hwmon%u", folder, device);
    CHECK(mkdir(path, 0700) == 0 || access(path, W_OK) == 0);
    snprintf(path, sizeof path, "%s/hwmon%u/%s", folder, device, name);
    FILE *const file = fopen(path, "we");
    CHECK(file != NULL && fputs(text, file) >= 0 && fclose(file) == 0);
}

static void drop(unsigned device, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/hwmon%u/%s", folder, device, name);
    CHECK(unlink(path) == 0);
}

static int drop_folder(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        char path[128];
        snprintf(path, sizeof path, "%s/hwmon%u", folder, i);
        CHECK(rmdir(path) == 0);
    }
    return rmdir(folder);
}

static void the_hottest_sensor_of_a_processor_is_told(void **state)
{
    (void)state;
    assert_int_equal(dp_sensors_celsius(folder), INT32_MIN);
    assert_int_equal(dp_sensors_celsius("/nonexistent"), INT32_MIN);
    put(0, "name", "nvme\n");
    put(0, "temp1_input", "90000\n"); /* A disk may be hotter. */
    assert_int_equal(dp_sensors_celsius(folder), INT32_MIN);
    put(1, "name", "coretemp\n");
    assert_int_equal(dp_sensors_celsius(folder), INT32_MIN);
    put(1, "temp1_input", "54000\n");
    put(1, "temp3_input", "61500\n");
    assert_int_equal(dp_sensors_celsius(folder), 61);
    static const char *const bad[] = {
        "", "hot\n", "7000000\n", "126000\n", "99999999999999999999\n", "70000 C\n", "-9000000\n"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        put(1, "temp3_input", bad[i]); /* No reading at all. */
        assert_int_equal(dp_sensors_celsius(folder), 54);
    }
    drop(0, "name");
    drop(0, "temp1_input");
    drop(1, "name");
    drop(1, "temp1_input");
    drop(1, "temp3_input");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_hottest_sensor_of_a_processor_is_told),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
