/* A restore in progress. The private header of driver_restore.c and driver_restore_rows.c. */
#ifndef DP_DAEMON_PEER_DRIVER_RESTORE_INSIDE_H
#define DP_DAEMON_PEER_DRIVER_RESTORE_INSIDE_H

#include "daemon/net/port.h"
#include "daemon/peer/driver_inside.h"

enum { DP_RESTORE_HISTORY = 256 /* rounds that are reported again */ };

typedef struct restore_job {
    dp_store_thread_job job;
    dp_driver *driver;
    dp_node *node;
    dp_status status;
    uint32_t step;    /* of driver_restore.c */
    bool more;        /* the step has more to do, in another run of the job */
    const char *what; /* of a failure */
    bool mended;      /* the damaged rows are deleted from the store: the next life can read it */
    uint64_t slot;    /* of the last record read */
    bool new_vote_key;
    dp_ckpt_reading reading; /* of the newest checkpoint that is whole */
    bool has_checkpoint;
    uint64_t checkpoint_round;
    uint64_t counted; /* rounds that list this node */
    uint32_t n_rounds;
    dp_event_log_round rounds[DP_RESTORE_HISTORY]; /* ring of the newest */
    uint32_t n_homes;
    struct { /* addresses of peers that were members when they were stored */
        dp_peer peer;
        dp_addr addr;
    } homes[DP_PORT_REMEMBERED_MAX];
    dp_record record;
    /* Blobs that may still be needed: those that records list, or the results of their parts; the
     * same of the vote; the parts of the node's own publication. */
    dp_map wanted;
    uint32_t pins_max;
    dp_hash *pinned;
} restore_job;

dp_status dp_restore_objects(restore_job *self, dp_store *store);
dp_status dp_restore_blobs(restore_job *self, dp_store *store);
dp_status dp_restore_vote(restore_job *self, dp_store *store);
dp_status dp_restore_pending(restore_job *self, dp_store *store);
dp_status dp_restore_exchanges(restore_job *self, dp_store *store);
dp_status dp_restore_proof(restore_job *self, dp_store *store);

#endif
