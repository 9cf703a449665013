/* The crypto pool: a few threads that seal and open records for the loop. Jobs return on the loop
 * thread in the order in which they end. The threads start with the first job, so a node without
 * bulk traffic has none. */
#ifndef DP_DAEMON_NET_CRYPTO_POOL_H
#define DP_DAEMON_NET_CRYPTO_POOL_H

#include <uv.h>

#include "base/list.h"
#include "base/status.h"

/* More than four gain nothing below 10 Gbit/s. */
enum { DP_CRYPTO_POOL_THREADS_MAX = 4 };

typedef struct dp_crypto_pool dp_crypto_pool;
typedef struct dp_crypto_pool_job dp_crypto_pool_job;

/* Embed it in a struct. run is called on a thread of the crypto pool, done on the loop thread;
 * between dp_crypto_pool_post and done the crypto pool owns the struct. The poster bounds the
 * number of jobs: a connection has a fixed number of record batches. */
struct dp_crypto_pool_job {
    dp_list link;
    void (*run)(dp_crypto_pool_job *job);
    void (*done)(dp_crypto_pool_job *job);
};

/* Threads that suit a machine with so many processors. On one or two there are none: passing a
 * record to another thread and back costs as much as opening it (a quarter of all CPU time,
 * docs/records/dense-exchange-2026-11-22.md), and the processors have other work. */
uint32_t dp_crypto_pool_fit(uint32_t processors);

/* n_threads: at most DP_CRYPTO_POOL_THREADS_MAX; 0: the posting thread does the work. */
DP_MUST dp_status dp_crypto_pool_open(dp_crypto_pool **crypto_pool, uv_loop_t *loop,
                                      uint32_t n_threads);
/* Loop thread only. False: there is no thread, or none could be started, and job was not taken: run
 * it here. */
DP_MUST bool dp_crypto_pool_post(dp_crypto_pool *crypto_pool, dp_crypto_pool_job *job);
/* Finishes the posted jobs (done is called for all), joins the threads; memory is freed when libuv
 * has closed the handle. May be called from a done function. */
void dp_crypto_pool_close(dp_crypto_pool *crypto_pool);

#endif
