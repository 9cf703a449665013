#include "daemon/owner/machine_watch.h"

#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "base/alloc.h"

enum { CLOSE_MS = 1000 };

struct dp_machine_watch {
    char root[DP_MACHINE_ROOT_MAX];
    uint32_t self;
    uint64_t every_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the rest */
    pthread_cond_t changed;
    uint32_t script; /* 0: none */
    bool stop;
    bool ended;
    bool orphaned; /* nobody joins the thread: it frees all */
    bool seen;
    bool looking;
    uint64_t began_ms; /* of the look under way */
    dp_machine_use use;
    bool wants_cards;
    bool seen_cards;
    dp_card_use cards;
};

static uint64_t now_ms(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static struct timespec after_ms(uint64_t ms)
{
    const uint64_t at = now_ms() + ms;
    return (struct timespec){.tv_sec = (time_t)(at / 1000), .tv_nsec = (long)(at % 1000) * 1000000};
}

static void free_all(dp_machine_watch *watch)
{
    pthread_cond_destroy(&watch->changed);
    pthread_mutex_destroy(&watch->lock);
    dp_free(watch);
}

static void *run(void *context)
{
    dp_machine_watch *const watch = context;
    dp_machine_use use = {.has_load = false};
    dp_card_use cards = {.told = false};
    uint64_t next_ms = 0;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stop) {
        watch->looking = true;
        watch->began_ms = now_ms();
        const uint64_t began_ms = watch->began_ms;
        const uint32_t script = watch->script;
        const bool at_cards = watch->wants_cards;
        pthread_mutex_unlock(&watch->lock);
        if (began_ms >= next_ms) {
            dp_machine_use_look(&use, watch->root, watch->self, script, (uint64_t)time(NULL));
            next_ms = began_ms + watch->every_ms;
        }
        if (at_cards) {
            dp_card_use_look(&cards, watch->root, watch->self, script);
        }
        pthread_mutex_lock(&watch->lock);
        watch->looking = false;
        watch->seen = true;
        watch->use = use;
        watch->seen_cards = at_cards;
        watch->cards = cards;
        const struct timespec until = after_ms(
            at_cards && watch->every_ms > DP_MACHINE_WATCH_CARDS_MS ? DP_MACHINE_WATCH_CARDS_MS
                                                                    : watch->every_ms);
        while (!watch->stop && watch->wants_cards == at_cards &&
               pthread_cond_timedwait(&watch->changed, &watch->lock, &until) == 0) {
        }
    }
    dp_card_use_end(&cards);
    watch->ended = true;
    pthread_cond_broadcast(&watch->changed);
    const bool orphaned = watch->orphaned;
    pthread_mutex_unlock(&watch->lock);
    if (orphaned) {
        free_all(watch);
    }
    return NULL;
}

dp_status dp_machine_watch_open(dp_machine_watch **out, const char *root, uint32_t self,
                                uint64_t every_ms)
{
    dp_machine_watch *const watch = dp_alloc(1, sizeof *watch);
    pthread_condattr_t clock;
    if (watch == NULL) {
        return DP_NOMEM;
    }
    snprintf(watch->root, sizeof watch->root, "%s", root);
    watch->self = self;
    watch->every_ms = every_ms;
    pthread_mutex_init(&watch->lock, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&watch->changed, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&watch->thread, NULL, run, watch) != 0) {
        free_all(watch);
        return DP_AGAIN;
    }
    *out = watch;
    return DP_OK;
}

void dp_machine_watch_close(dp_machine_watch *watch)
{
    if (watch == NULL) {
        return;
    }
    const struct timespec until = after_ms(CLOSE_MS);
    const pthread_t thread = watch->thread;
    int waited = 0;
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_cond_broadcast(&watch->changed);
    while (!watch->ended && waited == 0) {
        waited = pthread_cond_timedwait(&watch->changed, &watch->lock, &until);
    }
    const bool ended = watch->ended;
    watch->orphaned = !ended;
    pthread_mutex_unlock(&watch->lock);
    if (ended) {
        pthread_join(thread, NULL);
        free_all(watch);
    } else {
        pthread_detach(thread);
    }
}

void dp_machine_watch_script(dp_machine_watch *watch, uint32_t pid)
{
    if (watch != NULL) {
        pthread_mutex_lock(&watch->lock);
        watch->script = pid;
        pthread_mutex_unlock(&watch->lock);
    }
}

bool dp_machine_watch_see(dp_machine_watch *watch, uint64_t late_ms, dp_machine_use *use,
                          bool *hangs)
{
    *hangs = false;
    if (watch == NULL) {
        return false;
    }
    pthread_mutex_lock(&watch->lock);
    *hangs = watch->looking && now_ms() - watch->began_ms > late_ms;
    const bool good = watch->seen && !*hangs;
    if (good) {
        *use = watch->use;
    }
    pthread_mutex_unlock(&watch->lock);
    return good;
}

void dp_machine_watch_cards(dp_machine_watch *watch, bool wanted)
{
    if (watch != NULL) {
        pthread_mutex_lock(&watch->lock);
        watch->wants_cards = wanted;
        pthread_cond_broadcast(&watch->changed);
        pthread_mutex_unlock(&watch->lock);
    }
}

bool dp_machine_watch_see_cards(dp_machine_watch *watch, uint64_t late_ms, dp_card_use *cards)
{
    dp_machine_use use;
    bool hangs;
    if (!dp_machine_watch_see(watch, late_ms, &use, &hangs)) {
        return false;
    }
    pthread_mutex_lock(&watch->lock);
    const bool seen = watch->seen_cards;
    if (seen) {
        *cards = watch->cards;
    }
    pthread_mutex_unlock(&watch->lock);
    return seen;
}
