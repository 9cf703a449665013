#include "compute/loader.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

enum { SLOTS = 2 };

typedef enum slot_state { SLOT_EMPTY, SLOT_WANTED, SLOT_READY } slot_state;

/* While a slot is WANTED it is the thread's, else the caller's. */
typedef struct slot {
    slot_state state;
    dp_loader_place place;
    dp_status status; /* of filling it */
    uint32_t *x;      /* [rows_max][length] */
    uint32_t *y;
} slot;

struct dp_loader {
    const dp_data *data;
    uint64_t seed;
    uint64_t own_seed;
    size_t length;
    uint32_t rows_max;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock; /* guards the states and closing */
    pthread_cond_t changed;
    bool closing;
    slot slots[SLOTS];
    uint32_t next; /* The slot that is prepared; the other one is lent. */
    uint64_t ahead;
};

static dp_status fill(const dp_loader *loader, slot *s)
{
    const uint64_t seed = s->place.own ? loader->own_seed : loader->seed;
    for (uint32_t i = 0; i < s->place.rows; i++) {
        const size_t at = i * loader->length;
        DP_TRY(dp_data_sample(loader->data, seed, s->place.sample + i, loader->length, s->x + at,
                              s->y + at));
    }
    return DP_OK;
}

static slot *wanted_slot(dp_loader *loader)
{
    slot *const s = &loader->slots[loader->next];
    return s->state == SLOT_WANTED ? s : NULL;
}

static void *prepare(void *context)
{
    dp_loader *const loader = context;
    pthread_mutex_lock(&loader->lock);
    while (!loader->closing) {
        slot *const s = wanted_slot(loader);
        if (s == NULL) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        pthread_mutex_unlock(&loader->lock);
        s->status = fill(loader, s);
        pthread_mutex_lock(&loader->lock);
        s->state = SLOT_READY;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

dp_status dp_loader_open(dp_loader **out, const dp_loader_setup *setup)
{
    dp_assert(setup->rows_max > 0 && setup->length > 0);
    dp_loader *const loader = dp_alloc(1, sizeof *loader);
    if (loader == NULL) {
        return DP_NOMEM;
    }
    loader->data = setup->data;
    loader->seed = setup->seed;
    loader->own_seed = setup->own_seed;
    loader->length = setup->length;
    loader->rows_max = setup->rows_max;
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    dp_status status = DP_OK;
    for (uint32_t i = 0; i < SLOTS && status == DP_OK; i++) {
        slot *const s = &loader->slots[i];
        s->x = dp_alloc(setup->rows_max * setup->length, sizeof *s->x);
        s->y = dp_alloc(setup->rows_max * setup->length, sizeof *s->y);
        status = s->x != NULL && s->y != NULL ? DP_OK : DP_NOMEM;
    }
    if (status == DP_OK) {
        loader->running = pthread_create(&loader->thread, NULL, prepare, loader) == 0;
        status = loader->running ? DP_OK : DP_AGAIN;
    }
    if (status != DP_OK) {
        dp_loader_close(loader);
        return status;
    }
    *out = loader;
    return DP_OK;
}

void dp_loader_close(dp_loader *loader)
{
    if (loader == NULL) {
        return;
    }
    pthread_mutex_lock(&loader->lock);
    loader->closing = true;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    if (loader->running) {
        pthread_join(loader->thread, NULL);
    }
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    for (uint32_t i = 0; i < SLOTS; i++) {
        dp_free(loader->slots[i].x);
        dp_free(loader->slots[i].y);
    }
    dp_free(loader);
}

/* Where training goes on after place, and as many rows as a micro-batch may have there: it grows to at most twice the
 * one before (trainer_steps.c). */
static dp_loader_place after(const dp_loader *loader, const dp_loader_place *place)
{
    const uint64_t rows = 2 * (uint64_t)place->rows;
    return (dp_loader_place){.sample = place->sample + place->rows,
                             .rows = rows < loader->rows_max ? (uint32_t)rows : loader->rows_max,
                             .own = place->own};
}

static bool holds(const slot *s, const dp_loader_place *place)
{
    return s->state == SLOT_READY && s->status == DP_OK && s->place.own == place->own &&
           s->place.sample == place->sample && s->place.rows >= place->rows;
}

dp_status dp_loader_take(dp_loader *loader, const dp_loader_place *place, dp_loader_rows *rows)
{
    dp_assert(place->rows > 0 && place->rows <= loader->rows_max);
    slot *const s = &loader->slots[loader->next];
    pthread_mutex_lock(&loader->lock);
    while (s->state == SLOT_WANTED) {
        pthread_cond_wait(&loader->changed, &loader->lock);
    }
    const bool prepared = holds(s, place);
    s->state = SLOT_EMPTY;
    pthread_mutex_unlock(&loader->lock);
    if (prepared) {
        loader->ahead++;
    } else { /* A range of the lease has ended, or a new one has come. */
        s->place = *place;
        DP_TRY(fill(loader, s));
    }
    rows->x = s->x;
    rows->y = s->y;
    pthread_mutex_lock(&loader->lock);
    loader->next = (loader->next + 1) % SLOTS;
    loader->slots[loader->next].place = after(loader, place);
    loader->slots[loader->next].state = SLOT_WANTED;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    return DP_OK;
}

uint64_t dp_loader_ahead(const dp_loader *loader)
{
    return loader->ahead;
}
