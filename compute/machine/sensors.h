/* The sensors of the machine's processors: the kernel's hwmon files. Cards have their own
 * (backend.h). */
#ifndef DP_COMPUTE_MACHINE_SENSORS_H
#define DP_COMPUTE_MACHINE_SENSORS_H

#include <stdint.h>

#define DP_SENSORS_FOLDER "/sys/class/hwmon"

/* The hottest sensor of a processor below folder, degrees Celsius; INT32_MIN: no readable one. */
int32_t dp_sensors_celsius(const char *folder);

#endif
