#include "compute/worker/machine_info.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "compute/cpu/ops.h"
#include "compute/machine/cpus.h"
#include "compute/machine/memory.h"
#include "compute/machine/pool.h"

/* A key without a value where it is not known. */
static void set_known(json_t *line, const char *key, bool known, json_int_t value)
{
    if (known) {
        json_object_set_new(line, key, json_integer(value)); /* Without memory it stays away. */
    }
}

/* Adds the number of cards and their link. */
static void set_cards(json_t *line, const dp_plugin_choice *choice)
{
    const dp_backend_parts *const parts = choice->backend->parts;
    char name[DP_DEVICE_NAME_MAX] = "";
    dp_why why = {{0}};
    if (parts == NULL) {
        return;
    }
    set_known(line, "cards", true, choice->backend->devices(&why));
    const dp_status status = parts->library(name, &why);
    json_object_set_new(line, "link", json_string(status == DP_OK ? name : why.text));
}

dp_status dp_machine_info_json(const dp_plugin_choice *choice, dp_buf *out)
{
    dp_device device = {.celsius = INT32_MIN};
    dp_why why = {{0}};
    const bool told = choice->backend->device(choice->device, &device, &why) == DP_OK;
    json_t *const line = json_pack(
        "{s:s,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:s,s:o*,s:I,s:I,s:o*}", "version", DP_VERSION_TEXT,
        "kernels", dp_ops_best()->name, "threads", (json_int_t)dp_pool_threads_default(), "cpus",
        (json_int_t)dp_cpus_allowed(), "quota", (json_int_t)dp_cpus_quota(&dp_cgroup_own),
        "memory_available", (json_int_t)dp_memory_available("/proc/meminfo"), "memory_limit",
        (json_int_t)dp_memory_limit(&dp_cgroup_own), "memory_usable",
        (json_int_t)dp_memory_usable(), "backend", choice->backend->name, "device",
        json_string(told ? device.name : why.text), "device_memory_total",
        (json_int_t)device.memory_total, "device_memory_usable", (json_int_t)device.memory_usable,
        "line", json_string(choice->line.text)); /* Text that is not UTF-8 is left out. */
    if (line == NULL) {
        return DP_NOMEM;
    }
    set_known(line, "celsius", device.celsius != INT32_MIN, device.celsius);
    set_known(line, "watts", device.watts != 0, device.watts);
    set_known(line, "busy_percent", device.percent != 0, device.percent);
    set_cards(line, choice);
    char *const text = json_dumps(line, JSON_COMPACT);
    json_decref(line);
    if (text == NULL) {
        return DP_NOMEM;
    }
    const dp_status status = dp_buf_append(out, dp_view_text(text));
    free(text);
    return status == DP_OK ? dp_buf_append(out, dp_view_text("\n")) : status;
}
