/* What NVIDIA's management library says of a card: heat, power and how busy it is. The library
 * comes with the driver and is opened when it is asked; without it, or where it does not know, the
 * numbers are those of dp_device that mean "not known". Looks only, changes nothing. Any thread,
 * one at a time. */
#ifndef DP_COMPUTE_CUDA_NVML_H
#define DP_COMPUTE_CUDA_NVML_H

#include "compute/backend/backend.h"

/* Fills celsius, watts and percent of out. bus: of dp_cuda_properties. */
void dp_nvml_look(const char *bus, dp_device *out);

#endif
