/* The sensors of the machine's processors: the kernel's hwmon files. Cards have their own
 * (backend.h). */
#ifndef DP_COMPUTE_MACHINE_SENSORS_H
#define DP_COMPUTE_MACHINE_SENSORS_H

#include <stdint.h>

enum { DP_SENSORS_PATH_MAX = 512 };
/* The folder of this machine; for tests, that below the folder of DPNODE_MACHINE_ROOT. */
void dp_sensors_folder(char path[DP_SENSORS_PATH_MAX]);

/* The hottest sensor of a processor below folder, degrees Celsius; INT32_MIN: no readable one. */
int32_t dp_sensors_celsius(const char *folder);

#endif
