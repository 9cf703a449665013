#include "compute/worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/codec/codec.h"
#include "compute/outer/part.h"
#include "compute/worker/worker_inside.h"

enum {
    /* Commands read ahead, more than updates are judged at a time; a full queue holds the service
     * thread. */
    QUEUE_MAX = 48
};

void dp_worker_close_fds(const int *fds, uint32_t n_fds)
{
    for (uint32_t i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
}

dp_status dp_worker_answer(const dp_worker *w, const dp_trainer_msg *msg, const dp_view *views,
                           uint32_t n_views)
{
    dp_assert(n_views <= DP_WORKER_VIEWS_MAX);
    int fds[DP_WORKER_VIEWS_MAX];
    uint32_t made = 0;
    dp_status status = DP_OK;
    while (made < n_views && status == DP_OK) {
        status = dp_memfd_make("dpnode-update", views[made], &fds[made]);
        made += status == DP_OK;
    }
    if (status == DP_OK) {
        status = dp_trainer_send(w->socket, msg, fds, n_views);
    }
    dp_worker_close_fds(fds, made);
    return status;
}

dp_status dp_worker_answer_failed(const dp_worker *w, dp_trainer_kind of, dp_status status,
                                  const dp_why *why)
{
    const bool question = of == DP_TRAINER_EVAL || of == DP_TRAINER_SAMPLE;
    const char *const text =
        why != NULL && why->text[0] != '\0' ? why->text : dp_status_text(status);
    dp_trainer_msg reply = {.kind = DP_TRAINER_FAILED,
                            .of = of,
                            .lacks = status == DP_NOMEM || status == DP_NOSPACE ||
                                     (status == DP_TOOBIG && of == DP_TRAINER_OPEN)};
    dp_why whole = {{0}};
    DP_IGNORE(dp_why_set(&whole, status, "%s: %s (%s)",
                         of != 0 ? dp_trainer_kind_name(of) : "a message", text,
                         dp_status_name(status))); /* Known already. */
    memcpy(reply.text, whole.text, sizeof whole.text);
    const dp_status sent = dp_worker_answer(w, &reply, NULL, 0);
    return reply.lacks && !question ? status : sent;
}

/* ---- The service thread. */

/* Sets energy, or foreign. */
static dp_status check_blob(const dp_worker *w, const dp_worker_command *c, dp_trainer_msg *reply)
{
    const size_t n = atomic_load(&w->elements);
    dp_part_place place;
    dp_view blob;
    if (n == 0 || c->n_fds != 1) {
        return DP_BADMSG;
    }
    DP_TRY(dp_part_place_of(c->msg.range, n, &place));
    DP_TRY(dp_memfd_map(c->fds[0], dp_codec_bytes_max_any(n), &blob));
    dp_codec codec;
    uint64_t elements;
    dp_status status = dp_codec_peek(blob, &codec, &elements);
    if (status == DP_OK) {
        /* The manifest stands since before elements was stored. */
        reply->foreign = !dp_codec_allowed(&codec, dp_trainer_manifest(w->trainer), c->msg.keep);
        status = reply->foreign ? DP_BADMSG : dp_part_energy(blob, place, &reply->energy);
    }
    dp_memfd_unmap(blob);
    return status;
}

static dp_status answer_check(const dp_worker *w, const dp_worker_command *c)
{
    dp_trainer_msg reply = {.kind = DP_TRAINER_CHECKED, .id = c->msg.id};
    const dp_status status = check_blob(w, c, &reply);
    dp_worker_close_fds(c->fds, c->n_fds);
    if (status == DP_NOMEM) { /* It says nothing about the blob. */
        return dp_worker_answer_failed(w, DP_TRAINER_CHECK, status, NULL);
    }
    reply.ok = status == DP_OK;
    return dp_worker_answer(w, &reply, NULL, 0);
}

static void set_closed(dp_worker *w)
{
    if (w->options.exit_when_closed) {
        _exit(0);
    }
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

/* False when the compute thread has ended. */
static bool enqueue(dp_worker *w, const dp_worker_command *c)
{
    pthread_mutex_lock(&w->lock);
    while (w->count == QUEUE_MAX && !w->closed) {
        pthread_cond_wait(&w->changed, &w->lock);
    }
    const bool open = !w->closed;
    if (open) {
        w->queue[(w->head + w->count) % QUEUE_MAX] = *c;
        w->count++;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    if (!open) {
        dp_worker_close_fds(c->fds, c->n_fds);
    }
    return open;
}

static void *serve_socket(void *context)
{
    dp_worker *const w = context;
    dp_worker_command *const c = dp_alloc(1, sizeof *c);
    dp_status status = c == NULL ? DP_NOMEM : DP_OK;
    while (status == DP_OK) {
        status = dp_trainer_receive(w->socket, &c->msg, c->fds, &c->n_fds);
        if (status == DP_BADMSG || status == DP_TOOBIG || status == DP_NOMEM) {
            status = dp_worker_answer_failed(w, (dp_trainer_kind)0, status, NULL);
        } else if (status == DP_OK && c->msg.kind == DP_TRAINER_CHECK) {
            status = answer_check(w, c);
        } else if (status == DP_OK) {
            const bool last = c->msg.kind == DP_TRAINER_STOP;
            if (!enqueue(w, c) || last) {
                break;
            }
        }
    }
    dp_free(c);
    if (status != DP_OK) {
        set_closed(w);
    }
    return NULL;
}

/* ---- The compute thread. */

/* Until something changes, or that moment of dp_now_us comes: false. */
static bool wait_until(dp_worker *w, uint64_t until_us)
{
    const struct timespec until = {.tv_sec = (time_t)(until_us / 1000000U),
                                   .tv_nsec = (long)(until_us % 1000000U) * 1000};
    return pthread_cond_timedwait(&w->changed, &w->lock, &until) == 0;
}

/* The next command; waits for one unless there is training to do, or rest is over, or a script
 * comes or goes. False when there is none. */
static bool next_command(dp_worker *w, dp_worker_command *c)
{
    const bool scripted = atomic_load(&w->scripted);
    const bool trains = dp_worker_trains(w);
    const bool looks = trains || dp_worker_cools(w);
    const uint64_t until = looks      ? dp_worker_rests_until(w)
                           : scripted ? dp_worker_feels_until(w)
                                      : 0;
    bool waits = (!trains && !w->publishing) || dp_worker_rests(w);
    pthread_mutex_lock(&w->lock);
    while (w->count == 0 && !w->closed && waits && !(w->deferred && w->copied) &&
           atomic_load(&w->scripted) == scripted) {
        if (w->deferred) {
            w->copied = !wait_until(w, w->waits_until_us) || w->copied; /* or is over */
        } else if (looks || scripted) {
            waits = wait_until(w, until);
        } else {
            pthread_cond_wait(&w->changed, &w->lock);
        }
    }
    const bool got = w->count > 0 && !w->closed;
    if (got) {
        *c = w->queue[w->head];
        w->head = (w->head + 1) % QUEUE_MAX;
        w->count--;
        pthread_cond_broadcast(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return got;
}

static bool is_closed(dp_worker *w)
{
    pthread_mutex_lock(&w->lock);
    const bool closed = w->closed;
    pthread_mutex_unlock(&w->lock);
    return closed;
}

/* Between enter and leave of the script. */
static dp_status train(dp_worker *w)
{
    const uint64_t began = dp_now_us();
    DP_TRY(dp_worker_train_on(w));
    dp_worker_worked(w, dp_now_us() - began);
    return DP_OK;
}

/* A micro-batch, unless it rests, or only cools; or the end of a publication that was begun beside
 * some when a script has come since. */
static dp_status train_or_rest(dp_worker *w)
{
    dp_script_change change = DP_SCRIPT_SAME;
    dp_status status = DP_OK;
    if (dp_worker_rests(w) || !(dp_worker_trains(w) || w->publishing)) {
        return DP_OK;
    }
    dp_script_enter_step(w->script); /* It may come or go here. */
    if (dp_worker_trains(w)) {
        status = train(w);
    } else if (w->publishing) {
        status = dp_worker_end_publication(w, &change);
    }
    dp_script_leave(w->script, change);
    return status;
}

static dp_status compute(dp_worker *w)
{
    dp_worker_command *const c = dp_alloc(1, sizeof *c);
    if (c == NULL) {
        return DP_NOMEM;
    }
    dp_status status = DP_OK;
    while (status == DP_OK && !w->stopped) {
        if (next_command(w, c)) {
            status = dp_worker_obey(w, c);
        } else if (dp_worker_has_copy(w)) {
            status = dp_worker_obey_deferred(w);
        } else if (is_closed(w)) {
            status = DP_CLOSED;
        } else {
            status = train_or_rest(w);
        }
    }
    dp_free(c);
    return status;
}

static dp_status say_hello(const dp_worker *w)
{
    dp_trainer_msg hello = {
        .kind = DP_TRAINER_HELLO, .abi = DP_TRAINER_ABI, .pid = (uint32_t)getpid()};
    memcpy(hello.text, "dpnode-worker", sizeof "dpnode-worker");
    return dp_worker_answer(w, &hello, NULL, 0);
}

static dp_status serve(dp_worker *w)
{
    DP_TRY(say_hello(w));
    pthread_t service;
    if (pthread_create(&service, NULL, serve_socket, w) != 0) {
        return DP_AGAIN;
    }
    const dp_status status = compute(w);
    if (w->stopped) {
        /* The service thread has read STOP as well and ends by itself. */
        pthread_join(service, NULL);
        return DP_OK;
    }
    pthread_mutex_lock(&w->lock);
    w->closed = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    /* It may sit in a read that nothing will answer: cut the socket under it. */
    DP_IGNORE(shutdown(w->socket, SHUT_RDWR)); /* It may be cut already. */
    pthread_join(service, NULL);
    return status;
}

/* Both threads have ended. */
static void drop_queue(dp_worker *w)
{
    for (; w->count > 0; w->count--) {
        dp_worker_close_fds(w->queue[w->head].fds, w->queue[w->head].n_fds);
        w->head = (w->head + 1) % QUEUE_MAX;
    }
}

dp_status dp_worker_serve(int socket, const dp_worker_options *options)
{
    dp_worker *const w = dp_alloc(1, sizeof *w);
    if (w == NULL) {
        return DP_NOMEM;
    }
    w->socket = socket;
    w->options = *options;
    w->governor = dp_governor_of(options->celsius_max, options->watts_max);
    w->felt.celsius = INT32_MIN;
    atomic_init(&w->elements, 0);
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC); /* as dp_now_us */
    pthread_cond_init(&w->changed, &clock);
    pthread_condattr_destroy(&clock);
    w->queue = dp_alloc(QUEUE_MAX, sizeof *w->queue);
    dp_status status = DP_NOMEM;
    if (w->queue != NULL) {
        status = serve(w);
        drop_queue(w);
    }
    dp_worker_drop_trainer(w);
    dp_free(w->queue);
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    dp_free(w);
    return status;
}
