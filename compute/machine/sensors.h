/* What the machine's own sensors tell of its processors: the kernel's hwmon files. No card. */
#ifndef DP_COMPUTE_MACHINE_SENSORS_H
#define DP_COMPUTE_MACHINE_SENSORS_H

#include <stdint.h>

#define DP_SENSORS_FOLDER "/sys/class/hwmon"

/* The hottest sensor of a processor below folder, degrees Celsius; INT32_MIN: there is none that
 * can be read. */
int32_t dp_sensors_celsius(const char *folder);

#endif
