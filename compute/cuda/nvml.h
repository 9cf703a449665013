/* Readings of NVIDIA's management library for a card: heat, power, load and free memory. The
 * library comes with the driver and is opened on demand; without it, or where it has no value, the
 * numbers are those of dp_device that mean "unknown". Changes nothing. Any thread, one at a
 * time. */
#ifndef DP_COMPUTE_CUDA_NVML_H
#define DP_COMPUTE_CUDA_NVML_H

#include "compute/backend/backend.h"

/* Fills celsius, watts, percent and memory_usable (0: unknown) of out. bus: of
 * dp_cuda_properties. */
void dp_nvml_look(const char *bus, dp_device *out);

#endif
