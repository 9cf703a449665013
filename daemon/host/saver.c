#include "daemon/host/saver.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/assert.h"

struct dp_saver {
    dp_store *store;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;
    dp_list waiting[DP_SAVER_CLASSES]; /* guarded by lock */
    dp_list finished;                  /* guarded by lock */
    bool stop;                         /* guarded by lock */
    uint32_t n_jobs;                   /* loop thread only */
    uv_async_t *wake; /* of its own memory: it outlives the saver until uv has closed it */
};

static dp_saver_job *next_job(dp_saver *saver)
{
    for (int class = 0; class < DP_SAVER_CLASSES; class ++) {
        dp_list *head = &saver->waiting[class];
        if (!dp_list_empty(head)) {
            dp_saver_job *job = DP_LIST_ITEM(head->next, dp_saver_job, link);
            dp_list_remove(&job->link);
            return job;
        }
    }
    return NULL;
}

static void *saver_main(void *argument)
{
    dp_saver *saver = argument;
    pthread_mutex_lock(&saver->lock);
    for (;;) {
        dp_saver_job *job = next_job(saver);
        if (job == NULL) {
            if (saver->stop) {
                break;
            }
            pthread_cond_wait(&saver->work, &saver->lock);
            continue;
        }
        pthread_mutex_unlock(&saver->lock);
        job->again = false;
        job->run(job, saver->store);
        pthread_mutex_lock(&saver->lock);
        if (job->again) {
            dp_list_push_back(&saver->waiting[job->class], &job->link);
            continue;
        }
        dp_list_push_back(&saver->finished, &job->link);
        uv_async_send(saver->wake);
    }
    pthread_mutex_unlock(&saver->lock);
    return NULL;
}

static void deliver(dp_saver *saver)
{
    /* No more than there are now: what done functions post is for the next turn of the loop. */
    for (uint32_t left = saver->n_jobs; left > 0; left--) {
        pthread_mutex_lock(&saver->lock);
        dp_saver_job *job = NULL;
        if (!dp_list_empty(&saver->finished)) {
            job = DP_LIST_ITEM(saver->finished.next, dp_saver_job, link);
            dp_list_remove(&job->link);
        }
        pthread_mutex_unlock(&saver->lock);
        if (job == NULL) {
            return;
        }
        saver->n_jobs--;
        job->done(job);
    }
}

static void on_wake(uv_async_t *handle)
{
    deliver(handle->data);
}

dp_status dp_saver_open(dp_saver **out, uv_loop_t *loop, dp_store *store)
{
    dp_saver *saver = dp_alloc(1, sizeof *saver);
    uv_async_t *wake = dp_alloc(1, sizeof *wake);
    if (saver == NULL || wake == NULL || uv_async_init(loop, wake, on_wake) != 0) {
        dp_free(wake);
        dp_free(saver);
        return DP_NOMEM;
    }
    saver->store = store;
    saver->wake = wake;
    wake->data = saver;
    for (int class = 0; class < DP_SAVER_CLASSES; class ++) {
        dp_list_init(&saver->waiting[class]);
    }
    dp_list_init(&saver->finished);
    pthread_mutex_init(&saver->lock, NULL);
    pthread_cond_init(&saver->work, NULL);
    if (pthread_create(&saver->thread, NULL, saver_main, saver) != 0) {
        uv_close((uv_handle_t *)wake, (uv_close_cb)dp_free);
        dp_free(saver);
        return DP_NOMEM;
    }
    *out = saver;
    return DP_OK;
}

dp_status dp_saver_post(dp_saver *saver, dp_saver_job *job, dp_saver_class class)
{
    dp_assert(class < DP_SAVER_CLASSES);
    if (saver == NULL || saver->n_jobs >= DP_SAVER_JOBS_MAX) {
        return DP_AGAIN;
    }
    saver->n_jobs++;
    job->class = class;
    pthread_mutex_lock(&saver->lock);
    dp_list_push_back(&saver->waiting[class], &job->link);
    pthread_cond_signal(&saver->work);
    pthread_mutex_unlock(&saver->lock);
    return DP_OK;
}

void dp_saver_close(dp_saver *saver)
{
    if (saver == NULL) {
        return;
    }
    do { /* A done function may post another job. */
        pthread_mutex_lock(&saver->lock);
        saver->stop = true;
        pthread_cond_signal(&saver->work);
        pthread_mutex_unlock(&saver->lock);
        pthread_join(saver->thread, NULL);
        deliver(saver);
        saver->stop = false;
    } while (saver->n_jobs > 0 && pthread_create(&saver->thread, NULL, saver_main, saver) == 0);
    uv_close((uv_handle_t *)saver->wake, (uv_close_cb)dp_free);
    pthread_cond_destroy(&saver->work);
    pthread_mutex_destroy(&saver->lock);
    dp_free(saver);
}

uint32_t dp_saver_waiting(const dp_saver *saver)
{
    return saver->n_jobs;
}
