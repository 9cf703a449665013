/* The one thread that owns the store: jobs go in, results come back on the loop thread. Hashing of
 * bulk data happens here too. Votes and records overtake bulk writes; within a class jobs run in
 * order. */
#ifndef DP_DAEMON_HOST_SAVER_H
#define DP_DAEMON_HOST_SAVER_H

#include <uv.h>

#include "base/list.h"
#include "base/status.h"
#include "store/db.h"

enum { DP_SAVER_JOBS_MAX = 8192 };

typedef struct dp_saver dp_saver;
typedef struct dp_saver_job dp_saver_job;

typedef enum dp_saver_class {
    DP_SAVER_URGENT = 0, /* votes, records, pending rows: what a message waits for */
    DP_SAVER_BULK,       /* chunks, checkpoints, reads for peers, journal */
    DP_SAVER_CLASSES
} dp_saver_class;

/* Embed it first in a struct of your own; run is called on the saver thread, done on the loop
 * thread, then the memory is the poster's again (done may free it). A long job does a piece of its
 * work per run and sets again, so that what waits gets its turn in between; done is called after
 * the run that leaves again unset. */
struct dp_saver_job {
    dp_list link;
    void (*run)(dp_saver_job *job, dp_store *store);
    void (*done)(dp_saver_job *job);
    bool again;           /* set by run; cleared before each */
    dp_saver_class class; /* written by dp_saver_post */
};

/* The store is lent: only the saver thread touches it until close. */
DP_MUST dp_status dp_saver_open(dp_saver **saver, uv_loop_t *loop, dp_store *store);
/* DP_AGAIN when DP_SAVER_JOBS_MAX jobs wait, or for NULL (closed); then neither function is called.
 * Loop thread only. */
DP_MUST dp_status dp_saver_post(dp_saver *saver, dp_saver_job *job, dp_saver_class class);
/* Finish all waiting jobs (their done functions are called), join the thread, free. Loop thread
 * only. */
void dp_saver_close(dp_saver *saver);
/* Jobs posted and not yet done. */
uint32_t dp_saver_waiting(const dp_saver *saver);

#endif
