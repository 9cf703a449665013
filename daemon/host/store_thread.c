#include "daemon/host/store_thread.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

struct dp_store_thread {
    dp_store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    dp_list waiting[DP_STORE_THREAD_CLASSES]; /* guarded by lock */
    dp_list finished;                         /* guarded by lock */
    bool stop;                                /* guarded by lock */
    bool broken;                              /* guarded by lock: the store has failed */
    dp_store_thread_failed *failed;           /* NULL: nobody is told, or was told already */
    void *context;                            /* of failed */
    uint32_t n_jobs;                          /* loop thread only */
    uv_async_t *wake; /* of its own memory: it outlives the store thread until uv has closed it */
};

static dp_store_thread_job *next_job(dp_store_thread *store_thread)
{
    for (int class = 0; class < DP_STORE_THREAD_CLASSES; class ++) {
        dp_list *head = &store_thread->waiting[class];
        if (!dp_list_empty(head)) {
            dp_store_thread_job *job = DP_LIST_ITEM(head->next, dp_store_thread_job, link);
            dp_list_remove(&job->link);
            return job;
        }
    }
    return NULL;
}

static void *saver_main(void *argument)
{
    dp_store_thread *store_thread = argument;
    pthread_mutex_lock(&store_thread->lock);
    for (;;) {
        dp_store_thread_job *job = next_job(store_thread);
        if (job == NULL) {
            if (store_thread->stop) {
                break;
            }
            pthread_cond_wait(&store_thread->work, &store_thread->lock);
            continue;
        }
        pthread_mutex_unlock(&store_thread->lock);
        job->again = false;
        job->run(job, store_thread->store);
        const bool broken = dp_store_failed(store_thread->store) != DP_OK;
        pthread_mutex_lock(&store_thread->lock);
        if (broken && !store_thread->broken) {
            store_thread->broken = true;
            uv_async_send(store_thread->wake);
        }
        if (job->again) {
            dp_list_push_back(&store_thread->waiting[job->class], &job->link);
            continue;
        }
        dp_list_push_back(&store_thread->finished, &job->link);
        uv_async_send(store_thread->wake);
    }
    pthread_mutex_unlock(&store_thread->lock);
    return NULL;
}

static void deliver(dp_store_thread *store_thread)
{
    /* Only as many as there are now: jobs posted by done functions wait for the next turn of the
     * loop. */
    for (uint32_t left = store_thread->n_jobs; left > 0; left--) {
        pthread_mutex_lock(&store_thread->lock);
        dp_store_thread_job *job = NULL;
        if (!dp_list_empty(&store_thread->finished)) {
            job = DP_LIST_ITEM(store_thread->finished.next, dp_store_thread_job, link);
            dp_list_remove(&job->link);
        }
        pthread_mutex_unlock(&store_thread->lock);
        if (job == NULL) {
            return;
        }
        store_thread->n_jobs--;
        job->done(job);
    }
}

static void tell_failure(dp_store_thread *store_thread)
{
    dp_store_thread_failed *const failed = store_thread->failed;
    pthread_mutex_lock(&store_thread->lock);
    const bool broken = store_thread->broken;
    pthread_mutex_unlock(&store_thread->lock);
    if (broken && failed != NULL) {
        store_thread->failed = NULL;
        failed(store_thread->context);
    }
}

static void on_wake(uv_async_t *handle)
{
    deliver(handle->data);
    tell_failure(handle->data);
}

void dp_store_thread_watch(dp_store_thread *store_thread, dp_store_thread_failed *failed,
                           void *context)
{
    store_thread->failed = failed;
    store_thread->context = context;
}

dp_status dp_store_thread_open(dp_store_thread **out, uv_loop_t *loop, dp_store *store)
{
    dp_store_thread *store_thread = dp_alloc(1, sizeof *store_thread);
    uv_async_t *wake = dp_alloc(1, sizeof *wake);
    if (store_thread == NULL || wake == NULL || uv_async_init(loop, wake, on_wake) != 0) {
        dp_free(wake);
        dp_free(store_thread);
        return DP_NOMEM;
    }
    store_thread->store = store;
    store_thread->wake = wake;
    wake->data = store_thread;
    for (int class = 0; class < DP_STORE_THREAD_CLASSES; class ++) {
        dp_list_init(&store_thread->waiting[class]);
    }
    dp_list_init(&store_thread->finished);
    pthread_mutex_init(&store_thread->lock, NULL);
    pthread_cond_init(&store_thread->work, NULL);
    if (pthread_create(&store_thread->thread, NULL, saver_main, store_thread) != 0) {
        uv_close((uv_handle_t *)wake, (uv_close_cb)dp_free);
        dp_free(store_thread);
        return DP_NOMEM;
    }
    *out = store_thread;
    return DP_OK;
}

dp_status dp_store_thread_post(dp_store_thread *store_thread, dp_store_thread_job *job,
                               dp_store_thread_class class)
{
    dp_assert(class < DP_STORE_THREAD_CLASSES);
    if (store_thread == NULL || store_thread->n_jobs >= DP_STORE_THREAD_JOBS_MAX) {
        return DP_AGAIN;
    }
    store_thread->n_jobs++;
    job->class = class;
    pthread_mutex_lock(&store_thread->lock);
    dp_list_push_back(&store_thread->waiting[class], &job->link);
    pthread_cond_signal(&store_thread->work);
    pthread_mutex_unlock(&store_thread->lock);
    return DP_OK;
}

typedef struct put_job {
    dp_store_thread_job job;
    const char *key;
    dp_store_thread_kept *kept; /* NULL: no caller waits */
    void *context;
    dp_status status;
    size_t size;
    uint8_t bytes[DP_STORE_THREAD_ROW_MAX];
} put_job;

static void run_put(dp_store_thread_job *job, dp_store *store)
{
    put_job *self = (put_job *)job;
    self->status = self->size > 0
                       ? dp_store_put_both(store, self->key, dp_view_of(self->bytes, self->size))
                       : dp_store_delete_both(store, self->key);
    self->status = self->status == DP_NOTFOUND ? DP_OK : self->status;
}

static void done_put(dp_store_thread_job *job)
{
    put_job *self = (put_job *)job;
    if (self->kept != NULL) {
        self->kept(self->context, self->status);
    }
    dp_free(self);
}

dp_status dp_store_thread_put(dp_store_thread *store_thread, const char *key, dp_view bytes,
                              dp_store_thread_kept *done, void *context)
{
    dp_assert(bytes.size <= DP_STORE_THREAD_ROW_MAX);
    put_job *job = dp_alloc(1, sizeof *job);
    if (job == NULL) {
        return DP_NOMEM;
    }
    job->job.run = run_put;
    job->job.done = done_put;
    job->key = key;
    job->kept = done;
    job->context = context;
    job->size = bytes.size;
    if (bytes.size > 0) {
        memcpy(job->bytes, bytes.data, bytes.size);
    }
    const dp_status status = dp_store_thread_post(store_thread, &job->job, DP_STORE_THREAD_BULK);
    if (status != DP_OK) {
        dp_free(job);
    }
    return status;
}

void dp_store_thread_close(dp_store_thread *store_thread)
{
    if (store_thread == NULL) {
        return;
    }
    do { /* A done function may post another job. */
        pthread_mutex_lock(&store_thread->lock);
        store_thread->stop = true;
        pthread_cond_signal(&store_thread->work);
        pthread_mutex_unlock(&store_thread->lock);
        pthread_join(store_thread->thread, NULL);
        deliver(store_thread);
        store_thread->stop = false;
    } while (store_thread->n_jobs > 0 &&
             pthread_create(&store_thread->thread, NULL, saver_main, store_thread) == 0);
    uv_close((uv_handle_t *)store_thread->wake, (uv_close_cb)dp_free);
    pthread_cond_destroy(&store_thread->work);
    pthread_mutex_destroy(&store_thread->lock);
    dp_free(store_thread);
}

uint32_t dp_store_thread_waiting(const dp_store_thread *store_thread)
{
    return store_thread->n_jobs;
}
