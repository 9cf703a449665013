/* Machine information for `dpnode doctor`: processors, memory, and the device that computes. Judges
 * nothing. */
#ifndef DP_COMPUTE_WORKER_MACHINE_INFO_H
#define DP_COMPUTE_WORKER_MACHINE_INFO_H

#include "base/bytes.h"
#include "compute/backend/plugin.h"

/* One line of JSON. "version", "kernels"; "threads": the default of a trainer; "cpus": of the
 * affinity mask; "quota": of the control groups; "memory_available"; "memory_limit": of the control
 * groups; "memory_usable"; "backend", "device", "device_memory_total", "device_memory_usable";
 * "celsius"?, "watts"?, "busy_percent"?: load by other programs; "cards"?: their number, if several
 * can train as one; "link"?: the link between them, or why there is none; "line": why another
 * backend than the wanted one computes. Bytes and CPUs; 0: no limit, or unknown. DP_NOMEM,
 * DP_TOOBIG. */
DP_MUST dp_status dp_machine_info_json(const dp_plugin_choice *choice, dp_buf *out);

#endif
