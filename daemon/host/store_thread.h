/* The one thread that owns the store: it takes jobs and returns their results on the loop thread.
 * It also hashes bulk data. Votes and records overtake bulk writes; within a class jobs run in
 * order. */
#ifndef DP_DAEMON_HOST_STORE_THREAD_H
#define DP_DAEMON_HOST_STORE_THREAD_H

#include <uv.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "store/db.h"

enum { DP_STORE_THREAD_JOBS_MAX = 8192, DP_STORE_THREAD_ROW_MAX = 8192 };

typedef struct dp_store_thread dp_store_thread;
typedef struct dp_store_thread_job dp_store_thread_job;

typedef enum dp_store_thread_class {
    DP_STORE_THREAD_URGENT = 0, /* votes, records, pending rows: a message waits for them */
    DP_STORE_THREAD_BULK,       /* chunks, checkpoints, reads for peers, journal */
    DP_STORE_THREAD_CLASSES
} dp_store_thread_class;

/* Embed it as the first field of a struct; run is called on the store thread, done on the loop
 * thread, then the poster owns the memory again (done may free it). A long job does a part of its
 * work per run and sets again, so that waiting jobs run in between; done is called after the run
 * that leaves again unset. */
struct dp_store_thread_job {
    dp_list link;
    void (*run)(dp_store_thread_job *job, dp_store *store);
    void (*done)(dp_store_thread_job *job);
    bool again;                  /* set by run; cleared before each */
    dp_store_thread_class class; /* written by dp_store_thread_post */
};

/* The store is lent: only the store thread touches it until close. */
DP_MUST dp_status dp_store_thread_open(dp_store_thread **store_thread, uv_loop_t *loop,
                                       dp_store *store);
/* Calls failed once, on the loop, when a job has left the store failed (dp_store_failed): the store
 * writes nothing more, and the daemon should end (SAFETY R5). */
typedef void dp_store_thread_failed(void *context);
void dp_store_thread_watch(dp_store_thread *store_thread, dp_store_thread_failed *failed,
                           void *context);
/* DP_AGAIN when DP_STORE_THREAD_JOBS_MAX jobs wait, or for NULL (closed); then neither function is
 * called. Loop thread only. */
DP_MUST dp_status dp_store_thread_post(dp_store_thread *store_thread, dp_store_thread_job *job,
                                       dp_store_thread_class class);
/* Writes a row of the store and its copy (dp_store_put_both), or without bytes deletes them, in
 * order with other jobs of BULK; copies the bytes, at most DP_STORE_THREAD_ROW_MAX. done, which may
 * be NULL, is called once on the loop, unless the result is not DP_OK: DP_NOMEM, DP_AGAIN as post.
 * key must outlive the job. */
typedef void dp_store_thread_kept(void *context, dp_status status);
DP_MUST dp_status dp_store_thread_put(dp_store_thread *store_thread, const char *key, dp_view bytes,
                                      dp_store_thread_kept *done, void *context);
/* Finish all waiting jobs (their done functions are called), join the thread, free. Loop thread
 * only. */
void dp_store_thread_close(dp_store_thread *store_thread);
/* Jobs posted and not yet done. */
uint32_t dp_store_thread_waiting(const dp_store_thread *store_thread);

#endif
