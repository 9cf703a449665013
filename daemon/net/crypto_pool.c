#include "daemon/net/crypto_pool.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/assert.h"

struct dp_crypto_pool {
    uv_async_t wake;
    pthread_t threads[DP_CRYPTO_POOL_THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t work;
    dp_list waiting;  /* guarded by lock */
    dp_list finished; /* guarded by lock */
    bool stop;        /* guarded by lock */
    uint32_t wanted;
    uint32_t n_threads; /* loop thread only, as the next fields */
    bool closing;
};

static dp_crypto_pool_job *take_first(dp_list *list)
{
    if (dp_list_empty(list)) {
        return NULL;
    }
    dp_crypto_pool_job *job = DP_LIST_ITEM(list->next, dp_crypto_pool_job, link);
    dp_list_remove(&job->link);
    return job;
}

static void *crypto_pool_main(void *argument)
{
    dp_crypto_pool *crypto_pool = argument;
    pthread_mutex_lock(&crypto_pool->lock);
    for (;;) {
        dp_crypto_pool_job *job = take_first(&crypto_pool->waiting);
        if (job == NULL) {
            if (crypto_pool->stop) {
                break;
            }
            pthread_cond_wait(&crypto_pool->work, &crypto_pool->lock);
            continue;
        }
        pthread_mutex_unlock(&crypto_pool->lock);
        job->run(job);
        pthread_mutex_lock(&crypto_pool->lock);
        const bool first = dp_list_empty(&crypto_pool->finished);
        dp_list_push_back(&crypto_pool->finished, &job->link);
        if (first) { /* Otherwise the loop has already been woken, and has not run yet. */
            uv_async_send(&crypto_pool->wake);
        }
    }
    pthread_mutex_unlock(&crypto_pool->lock);
    return NULL;
}

static void deliver(dp_crypto_pool *crypto_pool)
{
    dp_list finished;
    dp_crypto_pool_job *job = NULL;

    dp_list_init(&finished);
    pthread_mutex_lock(&crypto_pool->lock);
    while ((job = take_first(&crypto_pool->finished)) != NULL) {
        dp_list_push_back(&finished, &job->link);
    }
    pthread_mutex_unlock(&crypto_pool->lock);
    /* A done function may close the crypto pool, which delivers the jobs that ended meanwhile; the
     * jobs of this call stay here. */
    while ((job = take_first(&finished)) != NULL) {
        job->done(job);
    }
}

static void on_wake(uv_async_t *handle)
{
    dp_crypto_pool *crypto_pool = handle->data;
    if (!crypto_pool->closing) {
        deliver(crypto_pool);
    }
}

uint32_t dp_crypto_pool_fit(uint32_t processors)
{
    if (processors <= 2) {
        return 0;
    }
    return processors < DP_CRYPTO_POOL_THREADS_MAX ? processors : DP_CRYPTO_POOL_THREADS_MAX;
}

dp_status dp_crypto_pool_open(dp_crypto_pool **out, uv_loop_t *loop, uint32_t n_threads)
{
    dp_assert(n_threads <= DP_CRYPTO_POOL_THREADS_MAX);
    dp_crypto_pool *crypto_pool = dp_alloc(1, sizeof *crypto_pool);
    if (crypto_pool == NULL || uv_async_init(loop, &crypto_pool->wake, on_wake) != 0) {
        dp_free(crypto_pool);
        return DP_NOMEM;
    }
    crypto_pool->wake.data = crypto_pool;
    crypto_pool->wanted = n_threads;
    dp_list_init(&crypto_pool->waiting);
    dp_list_init(&crypto_pool->finished);
    pthread_mutex_init(&crypto_pool->lock, NULL);
    pthread_cond_init(&crypto_pool->work, NULL);
    *out = crypto_pool;
    return DP_OK;
}

static void start_threads(dp_crypto_pool *crypto_pool)
{
    while (crypto_pool->n_threads < crypto_pool->wanted &&
           pthread_create(&crypto_pool->threads[crypto_pool->n_threads], NULL, crypto_pool_main,
                          crypto_pool) == 0) {
        crypto_pool->n_threads++;
    }
}

bool dp_crypto_pool_post(dp_crypto_pool *crypto_pool, dp_crypto_pool_job *job)
{
    if (crypto_pool->n_threads == 0 && !crypto_pool->closing) {
        start_threads(crypto_pool);
    }
    if (crypto_pool->n_threads == 0) {
        return false;
    }
    pthread_mutex_lock(&crypto_pool->lock);
    dp_list_push_back(&crypto_pool->waiting, &job->link);
    pthread_cond_signal(&crypto_pool->work);
    pthread_mutex_unlock(&crypto_pool->lock);
    return true;
}

static void on_closed(uv_handle_t *handle)
{
    dp_crypto_pool *crypto_pool = handle->data;
    pthread_cond_destroy(&crypto_pool->work);
    pthread_mutex_destroy(&crypto_pool->lock);
    dp_free(crypto_pool);
}

void dp_crypto_pool_close(dp_crypto_pool *crypto_pool)
{
    if (crypto_pool == NULL || crypto_pool->closing) {
        return;
    }
    crypto_pool->closing = true;
    pthread_mutex_lock(&crypto_pool->lock);
    crypto_pool->stop = true;
    pthread_cond_broadcast(&crypto_pool->work);
    pthread_mutex_unlock(&crypto_pool->lock);
    for (uint32_t i = 0; i < crypto_pool->n_threads; i++) {
        pthread_join(crypto_pool->threads[i], NULL);
    }
    crypto_pool->n_threads = 0;
    deliver(crypto_pool);
    uv_close((uv_handle_t *)&crypto_pool->wake, on_closed);
}
