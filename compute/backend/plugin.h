/* Backends from shared libraries: finding libdpnode_<name>.so, looking at its table, trying it out,
 * and falling back to the CPU with one sentence. Computes nothing itself (backend.h) and checks no
 * arithmetic itself (backend_check.h).
 *
 * A plugin exports one function, dp_backend_query. It is called with the version that this program
 * speaks and returns its table, or NULL. A plugin is never unloaded: what it started may still
 * run. */
#ifndef DP_COMPUTE_BACKEND_PLUGIN_H
#define DP_COMPUTE_BACKEND_PLUGIN_H

#include <limits.h>

#include "compute/backend/backend.h"
#include "compute/machine/gate.h"

enum {
    DP_PLUGIN_CHECK_MS =
        20 * 1000, /* each part of the self-test, and loading with the first: else it hangs */
    DP_PLUGIN_CHECK_PARTS = 3, /* the whole takes so many times as long at most: a slow card, or a
                                  busy machine. Below what the daemon waits for HELLO */
    DP_PLUGIN_DEVICES_MAX = DP_GATE_PROCESSES_MAX
};
#define DP_PLUGIN_SYMBOL "dp_backend_query"

typedef const dp_backend *(*dp_backend_query_function)(uint32_t version);

/* Load a library and look at its table, without calling it. DP_NOTFOUND: no such file; DP_BADMSG:
 * no plugin, or a table with holes; DP_VERSION: of another version or build. Each with a sentence
 * that names the path. */
DP_MUST dp_status dp_plugin_load(const char *path, const dp_backend **out, dp_why *why);

/* In a process of its own, so that a crash or an endless loop costs that process: load, count
 * devices, self-test of this one. The caller has no other threads. DP_UNSUPPORTED: no such device,
 * or it computes something else, or it crashed; DP_TIMEOUT when a part of it takes timeout_ms, or
 * the whole DP_PLUGIN_CHECK_PARTS times that; or as dp_plugin_load. */
DP_MUST dp_status dp_plugin_try(const char *path, uint32_t device, uint32_t timeout_ms,
                                dp_why *why);

/* Who computes. */
typedef struct dp_plugin_choice {
    const dp_backend *backend; /* always one */
    uint32_t device;
    uint32_t n_devices; /* that were named and compute; more than one train as one (team_cards.h) */
    uint32_t devices[DP_PLUGIN_DEVICES_MAX]; /* device is the first */
    char path[PATH_MAX];                     /* of the plugin; "" for the CPU */
    bool missed; /* neither "auto" nor "cpu" was wanted, and the CPU is what there is */
    /* a sentence for the log; "" where the CPU was asked for, or nothing else is installed */
    dp_why line;
} dp_plugin_choice;

/* How many devices wanted names, without looking at any: 1 unless there are several. */
uint32_t dp_plugin_count(const char *wanted);
/* wanted: "cpu"; a path (with a slash); a name as "cuda", looked for as libdpnode_cuda.so in
 * folder/../lib/dpnode (installed), folder/plugins (built) and folder; "auto": cuda where it is
 * installed. A name may end in ":N", which means device N and not 0, or in several, as
 * cuda:0,cuda:1 or cuda:0,1; each is tried, all at once, timeout_ms as above. Whatever goes wrong,
 * the CPU is chosen and line says why. */
void dp_plugin_choose(dp_plugin_choice *out, const char *wanted, const char *folder,
                      uint32_t timeout_ms);
/* The CPU was chosen because auto has found no plugin: line says so where the machine has a card.
 * root is "", or a test's. */
void dp_plugin_tell_card(dp_plugin_choice *out, const char *wanted, const char *root);
/* auto has chosen a card that another trainer of dpnode on this machine has: the CPU computes, and
 * line says so. For a trainer that begins, not for one that only looks. */
void dp_plugin_yield(dp_plugin_choice *out, const char *wanted);
/* choose and tell_card with the folder of this program; timeout_ms is DP_PLUGIN_CHECK_MS unless
 * somebody asks for more. Before there is another thread. */
void dp_plugin_choose_own(dp_plugin_choice *out, const char *wanted, uint32_t timeout_ms);

#endif
