/* The parts of one running daemon. The loop thread owns all of them except the store, which the
 * store thread owns while it runs. */
#ifndef DP_DAEMON_HOST_DAEMON_H
#define DP_DAEMON_HOST_DAEMON_H

#include <uv.h>

#include "base/version.h"
#include "daemon/host/config.h"
#include "daemon/host/config_live.h"
#include "daemon/host/event_log.h"
#include "daemon/host/log_sink.h"
#include "daemon/host/run_identity.h"
#include "daemon/host/store_thread.h"
#include "gossip/core/id.h"

typedef struct dp_driver dp_driver;
typedef struct dp_control dp_control;
typedef struct dp_supervisor dp_supervisor;
typedef struct dp_disk_reserve dp_disk_reserve;
typedef struct dp_bandwidth_limiter dp_bandwidth_limiter;
typedef struct dp_suspension dp_suspension;
typedef struct dp_first_start dp_first_start;
typedef struct dp_stream dp_stream;
typedef struct dp_held_out dp_held_out;

/* The newest loss on held-out text that this node has measured (daemon/model/held_out.h). */
typedef struct dp_measured {
    uint64_t round;
    uint64_t tokens;  /* 0: none yet */
    uint64_t time_ms; /* unix */
    double loss;      /* nats per token */
    double bits_per_byte;
} dp_measured;

typedef struct dp_daemon {
    uv_loop_t *loop;
    const dp_config *config;
    dp_config_live *live; /* config points into it; NULL: in tests, config does not change */
    int argc;             /* of the command line, to read the configuration again */
    char **argv;
    dp_store *store;
    dp_store_thread *store_thread;
    dp_event_log *event_log;
    dp_log_sink *log;
    dp_control *control;
    dp_stream *streams; /* lists that clients read (daemon/control/list_stream.h) */
    uint32_t n_streams;
    uint32_t streams_depth;
    dp_supervisor *supervisor;
    dp_disk_reserve *disk_reserve;
    dp_first_start *first_start;
    dp_held_out *held_out;
    dp_measured measured;
    uint64_t store_bytes; /* in use, when last read; 0: not known */
    dp_identity identity;
    uint64_t incarnation;
    uint64_t started_ms;                     /* dp_boot_ms */
    dp_bandwidth_limiter *bandwidth_limiter; /* NULL: no limits */
    dp_suspension *suspension;               /* NULL: nothing suspends training */
    bool has_root; /* of the run that it created last: dp_daemon_root_of */
    dp_sign_key root;
    dp_sign_key vote;     /* of the run, while its driver has one */
    dp_driver *driver;    /* NULL: idle, no port is open */
    bool lost;            /* idle because a damaged store has lost its run (run_identity.h) */
    uint32_t n_samplings; /* texts that are being generated */
    bool ending;
    bool again; /* the program is executed again after its end */
    int exit_status;
} dp_daemon;

/* Begins the end: says goodbye to peers, finishes open writes, leaves the loop. May be called
 * twice; the second call exits at once. */
void dp_daemon_end(dp_daemon *daemon, int exit_status, const char *cause);

/* Ends cleanly and soon, and begins a new life in the same process, which reads everything from the
 * store again. */
void dp_daemon_again(dp_daemon *daemon, const char *cause);

enum { DP_ROOT_SEED_BYTES = 32, DP_ROOT_NAME_MAX = 24 };
/* daemon_keys.c: loads the identity from the folder, created at the first start, and the root key,
 * if it exists. DP_DENIED: others may read it; DP_CORRUPT. why is set. */
DP_MUST dp_status dp_daemon_load_identity(dp_daemon *daemon, dp_why *why);
DP_MUST dp_status dp_daemon_load_root(dp_daemon *daemon, dp_why *why);
/* Stores the root key of a new run in the directory; sets has_root and root. A key of another run
 * that is there is renamed to what moved then holds ("": there was none): root.key. and the first 8
 * hex digits of its public key. On failure the key that was there is in its place. */
DP_MUST dp_status dp_daemon_keep_root(dp_daemon *daemon, const uint8_t seed[DP_ROOT_SEED_BYTES],
                                      char moved[DP_ROOT_NAME_MAX], dp_why *why);
/* The run of the key that dp_daemon_keep_root has stored was not created after all: deletes that
 * key, and puts the one back that was moved. */
DP_MUST dp_status dp_daemon_drop_root(dp_daemon *daemon, const char *moved);

/* The root key if it is the one of this run. NULL: this node does not hold it. */
static inline const dp_sign_key *dp_daemon_root_of(const dp_daemon *daemon,
                                                   const uint8_t root[DP_PUBLIC_KEY_BYTES])
{
    return daemon->has_root && memcmp(daemon->root.public_key, root, DP_PUBLIC_KEY_BYTES) == 0
               ? &daemon->root
               : NULL;
}

#endif
