/* Backends from shared libraries: finds libdpnode_<name>.so, checks its table, runs its self-test
 * in a process, and falls back to the CPU with one sentence. The arithmetic is checked in
 * backend_check.h.
 *
 * A plugin exports one function, dp_backend_query. It is called with the version of this program
 * and returns its table, or NULL. A plugin is never unloaded, because threads that it started may
 * still run. */
#ifndef DP_COMPUTE_BACKEND_PLUGIN_H
#define DP_COMPUTE_BACKEND_PLUGIN_H

#include <limits.h>

#include "compute/backend/backend.h"
#include "compute/machine/process_barrier.h"

enum {
    DP_PLUGIN_CHECK_MS = 20 * 1000, /* of each part of the self-test, the first one with loading */
    /* the limit of the whole test, as a multiple of that, for slow cards and busy machines;
     * shorter than the daemon's wait for HELLO */
    DP_PLUGIN_CHECK_PARTS = 3,
    DP_PLUGIN_DEVICES_MAX = DP_PROCESS_BARRIER_PROCESSES_MAX
};
#define DP_PLUGIN_SYMBOL "dp_backend_query"

typedef const dp_backend *(*dp_backend_query_function)(uint32_t version);

/* Loads a library and checks its table, without calling it. DP_NOTFOUND: no such file; DP_BADMSG:
 * no plugin, or a table with missing calls; DP_VERSION: another version or build. Each with a
 * sentence that names the path. */
DP_MUST dp_status dp_plugin_load(const char *path, const dp_backend **out, dp_why *why);

/* Runs in a process of its own, which a crash or an endless loop may cost: loads the plugin, counts
 * devices, tests this one. The caller has no other threads. DP_UNSUPPORTED: no such device, a wrong
 * result, or a crash; DP_TIMEOUT: a part took timeout_ms, or the whole DP_PLUGIN_CHECK_PARTS times
 * that; else as dp_plugin_load. */
DP_MUST dp_status dp_plugin_try(const char *path, uint32_t device, uint32_t timeout_ms,
                                dp_why *why);

/* The chosen backend and its devices. */
typedef struct dp_plugin_choice {
    const dp_backend *backend; /* never NULL */
    uint32_t device;
    uint32_t
        n_devices; /* that were named and passed; several train as one (process_group_cards.h) */
    uint32_t devices[DP_PLUGIN_DEVICES_MAX]; /* device is the first */
    char path[PATH_MAX];                     /* of the plugin; "" for the CPU */
    bool missed; /* a device was asked for by name, and the CPU was chosen */
    /* A sentence for the log; "" if the CPU was asked for or nothing else is installed. */
    dp_why line;
} dp_plugin_choice;

/* Number of devices that wanted names, without a look at any: 1 unless there are several. */
uint32_t dp_plugin_count(const char *wanted);
/* Chooses a backend. wanted: "cpu"; a path (with a slash); a name such as "cuda", searched for as
 * libdpnode_cuda.so in folder/../lib/dpnode (installed), folder/plugins (built) and folder; "auto":
 * cuda if it is installed. A name may end in ":N", device N in place of 0, or name several, as
 * cuda:0,cuda:1 or cuda:0,1; all are tested at once, timeout_ms as above. On any failure the CPU is
 * chosen, and line says why. */
void dp_plugin_choose(dp_plugin_choice *out, const char *wanted, const char *folder,
                      uint32_t timeout_ms);
/* If auto chose the CPU because it found no plugin: line says so if the machine has a card. root is
 * "", or a folder of a test. */
void dp_plugin_tell_card(dp_plugin_choice *out, const char *wanted, const char *root);
/* If auto chose a card that another trainer of dpnode holds: chooses the CPU, and line says so. For
 * a trainer that starts, not for a query. */
void dp_plugin_yield(dp_plugin_choice *out, const char *wanted);
/* dp_plugin_choose and dp_plugin_tell_card with the folder of this program; timeout_ms is normally
 * DP_PLUGIN_CHECK_MS. Call before there is another thread. */
void dp_plugin_choose_own(dp_plugin_choice *out, const char *wanted, uint32_t timeout_ms);

#endif
