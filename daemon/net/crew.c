#include "daemon/net/crew.h"

#include <pthread.h>

#include "base/alloc.h"
#include "base/assert.h"

struct dp_crew {
    uv_async_t wake;
    pthread_t threads[DP_CREW_THREADS_MAX];
    pthread_mutex_t lock;
    pthread_cond_t work;
    dp_list waiting;  /* guarded by lock */
    dp_list finished; /* guarded by lock */
    bool stop;        /* guarded by lock */
    uint32_t wanted;
    uint32_t n_threads; /* loop thread only, as what follows */
    bool closing;
};

static dp_crew_job *take_first(dp_list *list)
{
    if (dp_list_empty(list)) {
        return NULL;
    }
    dp_crew_job *job = DP_LIST_ITEM(list->next, dp_crew_job, link);
    dp_list_remove(&job->link);
    return job;
}

static void *crew_main(void *argument)
{
    dp_crew *crew = argument;
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        dp_crew_job *job = take_first(&crew->waiting);
        if (job == NULL) {
            if (crew->stop) {
                break;
            }
            pthread_cond_wait(&crew->work, &crew->lock);
            continue;
        }
        pthread_mutex_unlock(&crew->lock);
        job->run(job);
        pthread_mutex_lock(&crew->lock);
        const bool first = dp_list_empty(&crew->finished);
        dp_list_push_back(&crew->finished, &job->link);
        if (first) { /* Else somebody has called already, and the loop has not looked yet. */
            uv_async_send(&crew->wake);
        }
    }
    pthread_mutex_unlock(&crew->lock);
    return NULL;
}

static void deliver(dp_crew *crew)
{
    dp_list finished;
    dp_crew_job *job = NULL;

    dp_list_init(&finished);
    pthread_mutex_lock(&crew->lock);
    while ((job = take_first(&crew->finished)) != NULL) {
        dp_list_push_back(&finished, &job->link);
    }
    pthread_mutex_unlock(&crew->lock);
    /* A done function may close the crew, which delivers what ended meanwhile; ours stay ours. */
    while ((job = take_first(&finished)) != NULL) {
        job->done(job);
    }
}

static void on_wake(uv_async_t *handle)
{
    dp_crew *crew = handle->data;
    if (!crew->closing) {
        deliver(crew);
    }
}

uint32_t dp_crew_fit(uint32_t processors)
{
    if (processors <= 2) {
        return 0;
    }
    return processors < DP_CREW_THREADS_MAX ? processors : DP_CREW_THREADS_MAX;
}

dp_status dp_crew_open(dp_crew **out, uv_loop_t *loop, uint32_t n_threads)
{
    dp_assert(n_threads <= DP_CREW_THREADS_MAX);
    dp_crew *crew = dp_alloc(1, sizeof *crew);
    if (crew == NULL || uv_async_init(loop, &crew->wake, on_wake) != 0) {
        dp_free(crew);
        return DP_NOMEM;
    }
    crew->wake.data = crew;
    crew->wanted = n_threads;
    dp_list_init(&crew->waiting);
    dp_list_init(&crew->finished);
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    *out = crew;
    return DP_OK;
}

static void start_threads(dp_crew *crew)
{
    while (crew->n_threads < crew->wanted &&
           pthread_create(&crew->threads[crew->n_threads], NULL, crew_main, crew) == 0) {
        crew->n_threads++;
    }
}

bool dp_crew_post(dp_crew *crew, dp_crew_job *job)
{
    if (crew->n_threads == 0 && !crew->closing) {
        start_threads(crew);
    }
    if (crew->n_threads == 0) {
        return false;
    }
    pthread_mutex_lock(&crew->lock);
    dp_list_push_back(&crew->waiting, &job->link);
    pthread_cond_signal(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    return true;
}

static void on_closed(uv_handle_t *handle)
{
    dp_crew *crew = handle->data;
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
    dp_free(crew);
}

void dp_crew_close(dp_crew *crew)
{
    if (crew == NULL || crew->closing) {
        return;
    }
    crew->closing = true;
    pthread_mutex_lock(&crew->lock);
    crew->stop = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (uint32_t i = 0; i < crew->n_threads; i++) {
        pthread_join(crew->threads[i], NULL);
    }
    crew->n_threads = 0;
    deliver(crew);
    uv_close((uv_handle_t *)&crew->wake, on_closed);
}
