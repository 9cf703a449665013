#include "compute/machine/sensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum {
    DEVICES_MAX = 64,
    INPUTS_MAX = 32, /* of a device: the package, and some cores */
    PATH_BYTES_MAX = 512,
    MILLI = 1000,
    CELSIUS_MAX = 126 /* processors stop before that: more is no reading */
};

/* Drivers whose temperatures are those of processors. */
static const char *const drivers[] = {"coretemp", "k10temp", "zenpower", "cpu_thermal"};

static FILE *open_file(const char *folder, unsigned device, const char *name)
{
    char path[PATH_BYTES_MAX];
    const int size = snprintf(path, sizeof path, "%s/hwmon%u/%s", folder, device, name);
    return size > 0 && (size_t)size < sizeof path ? fopen(path, "re") : NULL;
}

static int is_processor(const char *folder, unsigned device)
{
    char name[32] = "";
    FILE *const file = open_file(folder, device, "name");
    if (file == NULL) {
        return 0;
    }
    const int read = fscanf(file, "%31s", name);
    DP_IGNORE(fclose(file) != 0); /* only read */
    int found = 0;
    for (size_t i = 0; read == 1 && i < sizeof drivers / sizeof drivers[0]; i++) {
        found = found || strcmp(name, drivers[i]) == 0;
    }
    return found;
}

static int32_t hottest_of(const char *folder, unsigned device)
{
    int32_t hottest = INT32_MIN;
    for (unsigned i = 1; i <= INPUTS_MAX; i++) {
        char name[32];
        char text[32] = "";
        snprintf(name, sizeof name, "temp%u_input", i);
        FILE *const file = open_file(folder, device, name);
        if (file == NULL) {
            continue;
        }
        long milli = 0;
        char rest;
        const int read = fgets(text, sizeof text, file) != NULL
                             ? sscanf(text, "%9ld %c", &milli, &rest) /* NOLINT(cert-err34-c) */
                             : 0;
        DP_IGNORE(fclose(file) != 0); /* only read */
        const long celsius = milli / MILLI;
        if (read == 1 && celsius > -CELSIUS_MAX && celsius < CELSIUS_MAX && celsius > hottest) {
            hottest = (int32_t)celsius;
        }
    }
    return hottest;
}

void dp_sensors_folder(char path[DP_SENSORS_PATH_MAX])
{
    const char *const root =
        getenv("DPNODE_MACHINE_ROOT"); /* NOLINT(concurrency-mt-unsafe): nobody sets it */
    snprintf(path, DP_SENSORS_PATH_MAX, "%.480s/sys/class/hwmon", root != NULL ? root : "");
}

int32_t dp_sensors_celsius(const char *folder)
{
    int32_t hottest = INT32_MIN;
    for (unsigned device = 0; device < DEVICES_MAX; device++) {
        const int32_t celsius =
            is_processor(folder, device) ? hottest_of(folder, device) : INT32_MIN;
        hottest = celsius > hottest ? celsius : hottest;
    }
    return hottest;
}
