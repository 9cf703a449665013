#include "compute/worker/script_door.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/machine/stopwatch.h"
#include "compute/worker/script_inside.h"

enum {
    LOOK_MS = 100,          /* between looks at the script's numbers */
    HELLO_US = 2000 * 1000, /* for the first packet of a connection */
    PATIENCE_US = 5000000,
    ELEMENTS_PER_US = 100, /* more patience for large models */
    /* Between copies that no publication asks for: so many times as long as a copy takes. */
    COPY_SHARE = 500,
    COPY_US = 1000 * 1000,           /* and at least so long */
    LOOKS_MOST_US = 8 * 1000 * 1000, /* that a publication waits for a look */
    SOON_US = 200 * 1000,
    /* Scripts that come and go: so many at once, and then one a second. */
    WELCOMES = 16,
    WELCOME_US = 1000 * 1000
};

static void wake(dp_script *s)
{
    const uint64_t one = 1;
    DP_IGNORE(write(s->wake, &one, sizeof one) < 0); /* Full: it is awake. */
}

static bool has_script(const dp_script *s)
{
    return s->session.fd >= 0 && s->session.welcome && !s->cut;
}

/* Counts the time since the last call as training with a script, or as nothing. */
static void count_time(dp_script *s)
{
    const uint64_t now = dp_now_us();
    const uint64_t passed = now - s->clock_us;
    s->clock_us = now;
    if (has_script(s) && s->round != 0) {
        s->trained_us += passed;
        s->looked_us += s->session.holds != DP_SCRIPT_GO || s->session.waits ? passed : 0;
    }
}

bool dp_script_wants_copy(const dp_script *s)
{
    const dp_script_session *const on = &s->session;
    const uint64_t long_us = COPY_SHARE * on->copy_us;
    const uint64_t every_us = s->setup.copy_every_us != 0 ? s->setup.copy_every_us
                              : long_us > COPY_US         ? long_us
                                                          : COPY_US;
    return s->round != 0 && !on->assign &&
           (dp_trainer_progress_of(s->setup.trainer).tokens == 0 ||
            dp_now_us() - on->copied_us >= every_us);
}

void dp_script_set_word(dp_script *s)
{
    const dp_script_session *const on = &s->session;
    if (on->header == NULL) {
        return;
    }
    const uint32_t word = (s->asked || dp_script_wants_copy(s) ? DP_SCRIPT_WORD_COPY : 0) |
                          (on->moved ? DP_SCRIPT_WORD_ADD : 0) |
                          (on->assign ? DP_SCRIPT_WORD_ASSIGN : 0) |
                          (s->round == 0 ? DP_SCRIPT_WORD_PAUSED : 0);
    atomic_store(&on->header->round, s->round);
    atomic_store(&on->header->tokens, s->tokens);
    atomic_store(&on->header->theta, dp_trainer_round(s->setup.trainer));
    atomic_store(&on->header->rate, dp_trainer_rate(s->setup.trainer));
    atomic_store(&on->header->word, word);
}

/* ---- The compute thread. */

static uint64_t patience_us(const dp_script *s)
{
    return s->setup.patience_us != 0
               ? s->setup.patience_us
               : PATIENCE_US + dp_trainer_elements(s->setup.trainer) / ELEMENTS_PER_US;
}

/* True: the script has given the buffer back in time. */
static bool wait_for_buffer(dp_script *s)
{
    /* Its answer may lie in the socket since a long command that had the lock. */
    const uint64_t soon_us = dp_now_us() + SOON_US;
    const uint64_t late_us = s->session.held_us + patience_us(s);
    const uint64_t until_us = late_us > soon_us ? late_us : soon_us;
    const struct timespec until = {.tv_sec = (time_t)(until_us / 1000000U),
                                   .tv_nsec = (long)(until_us % 1000000U) * 1000};
    return pthread_cond_timedwait(&s->freed, &s->lock, &until) != ETIMEDOUT;
}

void dp_script_enter(dp_script *s, bool moves)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    while (moves && has_script(s) && s->session.holds != DP_SCRIPT_GO) {
        s->cut = !wait_for_buffer(s) && s->session.holds != DP_SCRIPT_GO;
    }
}

void dp_script_enter_step(dp_script *s)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    while (atomic_load(&s->in_line)) {
        pthread_cond_wait(&s->let_in, &s->lock);
    }
}

/* In a run of any model no step may come to work that a record has left out, or that a RESTORE has
 * brought back. */
static void tell_what_is_left(dp_script *s)
{
    if (dp_manifest_external(dp_trainer_manifest(s->setup.trainer))) {
        (void)dp_script_tell_steps(s, false);
    }
}

void dp_script_leave(dp_script *s, dp_script_change change)
{
    if (s == NULL) {
        return;
    }
    if (has_script(s)) {
        s->session.moved = s->session.moved || change == DP_SCRIPT_MOVED;
        s->session.assign = s->session.assign || change == DP_SCRIPT_SET;
        dp_script_set_word(s);
    } else if (change != DP_SCRIPT_SAME) {
        tell_what_is_left(s);
    }
    if (s->session.waits || s->session.draws > 0 || s->cut) {
        wake(s);
    }
    pthread_mutex_unlock(&s->lock);
}

uint64_t dp_script_ask_copy(dp_script *s)
{
    if (s == NULL || !has_script(s) || s->session.assign || s->round == 0) {
        return 0;
    }
    const uint64_t steps = atomic_load(&s->session.header->steps);
    const uint64_t step_us = (dp_now_us() - s->session.since_us) / (steps > 0 ? steps : 1);
    s->asked = true;
    return step_us < LOOKS_MOST_US / 2 ? 2 * step_us + (uint64_t)LOOK_MS * 1000 : LOOKS_MOST_US;
}

void dp_script_ask_no_more(dp_script *s)
{
    if (s != NULL) {
        s->asked = false;
    }
}

void dp_script_train(dp_script *s, uint64_t round, uint64_t tokens)
{
    if (s != NULL) {
        count_time(s);
        s->round = round;
        s->tokens = round != 0 ? tokens : s->tokens;
    }
}

/* ---- The thread of scripts. */

static void add_news(const dp_script *s, dp_trainer_progress *done)
{
    const dp_script_session *const on = &s->session;
    const uint64_t unit = dp_manifest_sample_tokens(dp_trainer_manifest(s->setup.trainer));
    const uint64_t steps = atomic_load(&on->header->steps);
    const uint64_t samples = atomic_load(&on->header->samples);
    const double sum = done->loss * done->steps + atomic_load(&on->header->loss) - on->loss;
    if (steps <= on->steps || samples < on->samples || steps - on->steps > UINT32_MAX / 2 ||
        samples - on->samples > DP_SCRIPT_DRAWN_MAX) {
        return; /* The numbers are the script's word. */
    }
    done->steps += (uint32_t)(steps - on->steps);
    done->tokens += (samples - on->samples) * unit;
    done->loss = isfinite(sum) ? sum / done->steps : done->loss;
}

bool dp_script_tell_steps(dp_script *s, bool news)
{
    const dp_trainer *const t = s->setup.trainer;
    dp_script_progress progress = {.done = has_script(s) ? dp_trainer_progress_of(t)
                                                         : dp_trainer_offer(t),
                                   .trained_us = s->trained_us,
                                   .computed_us = s->trained_us - s->looked_us};
    if (progress.done.steps == 0 || progress.done.tokens == 0) {
        return false;
    }
    progress.done.round = s->round;
    if (news) {
        add_news(s, &progress.done);
    }
    s->setup.stepped(s->setup.context, &progress);
    return true;
}

/* Ten times a second at most, if there is something new. */
static void report(dp_script *s)
{
    dp_script_session *const on = &s->session;
    const uint64_t now = dp_now_us();
    if (!has_script(s) || s->round == 0 || on->assign ||
        now - on->told_us < (uint64_t)LOOK_MS * 1000) {
        return;
    }
    const uint64_t steps = atomic_load(&on->header->steps);
    if (steps != on->told_steps && dp_script_tell_steps(s, true)) {
        on->told_steps = steps;
        on->told_us = now;
    }
}

/* Members are told of every script that comes or goes, so one that does so in a loop waits. */
static bool takes_another(const dp_script *s)
{
    return s->welcomed_us <= dp_now_us() + (uint64_t)WELCOMES * WELCOME_US;
}

static void welcome_next(dp_script *s)
{
    dp_script_peer peer;
    while (takes_another(s) && dp_script_accept(s->listener, &peer) == DP_OK) {
        const uint64_t now = dp_now_us();
        s->welcomed_us = (s->welcomed_us > now ? s->welcomed_us : now) + WELCOME_US;
        dp_script_session_begin(s, &peer);
    }
}

/* With the lock, after each wake-up. */
static void turn(dp_script *s)
{
    uint64_t count;
    DP_IGNORE(read(s->wake, &count, sizeof count) < 0);
    count_time(s);
    if (s->cut) {
        dp_script_session_refuse(s, DP_SCRIPT_SLOW,
                                 "a copy or an addition of the weights took too long, and the "
                                 "round could not wait: connect again");
    }
    if (s->session.fd >= 0) {
        dp_script_session_serve(s);
    }
    dp_script_session_look_at_process(s);
    if (s->session.fd >= 0 && !s->session.welcome && dp_now_us() - s->session.since_us > HELLO_US) {
        dp_script_session_end(s);
    }
    welcome_next(s);
    dp_script_session_look(s);
    dp_script_set_word(s); /* Time alone may have made a copy due. */
    report(s);
}

/* Micro-batches follow one another closely, and a mutex has no order: they let this thread in. */
static void lock_in_line(dp_script *s)
{
    atomic_store(&s->in_line, true);
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->in_line, false);
    pthread_cond_broadcast(&s->let_in);
}

static void *serve(void *context)
{
    dp_script *const s = context;
    lock_in_line(s);
    while (!s->ends) {
        turn(s);
        const bool takes = takes_another(s);
        struct pollfd at[] = {{.fd = s->wake, .events = POLLIN},
                              {.fd = takes ? s->listener : -1, .events = POLLIN},
                              {.fd = s->session.fd, .events = POLLIN},
                              {.fd = s->session.process, .events = POLLIN}}; /* -1: not looked at */
        const bool idle = s->session.fd < 0 && takes;
        pthread_mutex_unlock(&s->lock);
        DP_IGNORE(poll(at, sizeof at / sizeof at[0], idle ? -1 : LOOK_MS) < 0); /* EINTR */
        lock_in_line(s);
    }
    if (s->session.fd >= 0) {
        dp_script_session_refuse(s, DP_SCRIPT_ENDS,
                                 "the node ends, restarts its trainer or leaves the run: connect "
                                 "again if it should go on");
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- Life. */

static void init_lock(dp_script *s)
{
    pthread_condattr_t clock;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC); /* as dp_now_us */
    pthread_cond_init(&s->freed, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&s->let_in, NULL);
}

static void destroy(dp_script *s)
{
    if (s->listener >= 0) {
        close(s->listener);
        DP_IGNORE(unlink(s->path) != 0);
    }
    if (s->wake >= 0) {
        close(s->wake);
    }
    pthread_cond_destroy(&s->let_in);
    pthread_cond_destroy(&s->freed);
    pthread_mutex_destroy(&s->lock);
    dp_hf_layout_close(s->layout);
    dp_free(s);
}

static dp_status start(dp_script *s, dp_why *why)
{
    s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (s->wake < 0) {
        return DP_NOMEM;
    }
    DP_TRY(dp_script_listen(s->path, &s->listener, why));
    if (pthread_create(&s->thread, NULL, serve, s) != 0) {
        return dp_why_set(why, DP_AGAIN, "the system gives no thread for scripts");
    }
    return DP_OK;
}

dp_status dp_script_open(dp_script **out, const dp_script_setup *setup, dp_why *why)
{
    dp_script *const s = dp_alloc(1, sizeof *s);
    if (s == NULL) {
        return DP_NOMEM;
    }
    if (strlen(setup->path) >= sizeof s->path) {
        dp_free(s);
        return dp_why_set(why, DP_TOOBIG,
                          "%.300s is longer than a socket's path may be: choose a shorter --dir",
                          setup->path);
    }
    s->setup = *setup;
    memcpy(s->path, setup->path, strlen(setup->path) + 1);
    s->listener = -1;
    s->wake = -1;
    s->session = (dp_script_session){.fd = -1, .process = -1};
    s->clock_us = dp_now_us();
    init_lock(s);
    dp_status status = DP_OK;
    if (!dp_manifest_external(dp_trainer_manifest(setup->trainer))) {
        status = dp_hf_layout_open(&s->layout, dp_trainer_model(setup->trainer), why);
    }
    if (status == DP_OK) {
        status = start(s, why);
    }
    if (status != DP_OK) {
        destroy(s);
        return status;
    }
    *out = s;
    return DP_OK;
}

void dp_script_close(dp_script *s)
{
    if (s == NULL) {
        return;
    }
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    wake(s);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    destroy(s);
}
