/* What this machine gives a trainer, for `dpnode doctor`: processors, memory, and who computes.
 * Judges nothing. */
#ifndef DP_COMPUTE_WORKER_LOOK_H
#define DP_COMPUTE_WORKER_LOOK_H

#include "base/bytes.h"
#include "compute/backend/plugin.h"

/* One line of JSON: {"version", "kernels", "threads": of a trainer that is not told, "cpus": of the
 * affinity mask, "quota": of the control groups, "memory_available", "memory_limit": of the control
 * groups, "memory_usable", "backend", "device", "device_memory_total", "device_memory_usable",
 * "celsius"?, "watts"?, "busy_percent"?: with the work of others, "cards"?: how many there are,
 * where several can train as one, "link"?: what joins them, or why nothing does, "line": why
 * another backend than the one that was asked for computes}. Bytes and CPUs; 0: no limit, or not
 * known. DP_NOMEM, DP_TOOBIG. */
DP_MUST dp_status dp_look_json(const dp_plugin_choice *choice, dp_buf *out);

#endif
