#include "compute/data/loader.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/alloc.h"
#include "base/assert.h"

enum {
    LOTS = 2,
    LOT_TOKENS = 1 << 15, /* a few steps of a small model on a processor */
    LOT_TAKES = 4         /* at least so many of the largest micro-batches */
};

typedef enum next_state { NEXT_NONE, NEXT_WANTED, NEXT_READY } next_state;

/* Samples of one line, one behind the other. */
typedef struct lot {
    dp_loader_place place; /* rows: those that are there */
    dp_status status;      /* why there are no more */
    uint32_t *x;           /* [lot_rows][length] */
    uint32_t *y;
} lot;

struct dp_loader {
    const dp_data *data;
    uint64_t seed;
    uint64_t own_seed;
    size_t length;
    uint32_t rows_max;
    uint32_t lot_rows;
    pthread_t thread;
    bool running;
    atomic_bool closing;
    pthread_mutex_t lock; /* guards state */
    pthread_cond_t changed;
    next_state state;
    lot lots[LOTS];
    /* The lot that is lent from; the other is the thread's while it is WANTED, else the
     * caller's. */
    uint32_t current;
    bool asked; /* the caller's: the other was asked for and not looked at since */
    uint64_t ahead;
    uint64_t asked_for;
};

static lot *next_lot(dp_loader *loader)
{
    return &loader->lots[(loader->current + 1) % LOTS];
}

/* All rows of place, as a lot; its status says why there are fewer. */
static void fill(dp_loader *loader, lot *l, const dp_loader_place *place)
{
    const uint64_t seed = place->own ? loader->own_seed : loader->seed;
    l->place = (dp_loader_place){.sample = place->sample, .own = place->own};
    l->status = DP_OK;
    while (l->place.rows < place->rows && l->status == DP_OK && !atomic_load(&loader->closing)) {
        const size_t at = l->place.rows * loader->length;
        l->status = dp_data_sample(loader->data, seed, place->sample + l->place.rows,
                                   loader->length, l->x + at, l->y + at);
        l->place.rows += l->status == DP_OK;
    }
}

static void *prepare(void *context)
{
    dp_loader *const loader = context;
    pthread_mutex_lock(&loader->lock);
    while (!atomic_load(&loader->closing)) {
        if (loader->state != NEXT_WANTED) {
            pthread_cond_wait(&loader->changed, &loader->lock);
            continue;
        }
        lot *const l = next_lot(loader);
        const dp_loader_place place = l->place;
        pthread_mutex_unlock(&loader->lock);
        fill(loader, l, &place);
        pthread_mutex_lock(&loader->lock);
        loader->state = NEXT_READY;
        pthread_cond_broadcast(&loader->changed);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

static uint32_t lot_rows_of(size_t length, uint32_t rows_max)
{
    const size_t least = (size_t)LOT_TAKES * rows_max;
    const size_t usual = LOT_TOKENS / length;
    return (uint32_t)(usual > least ? usual : least);
}

uint64_t dp_loader_bytes(size_t length, uint32_t rows_max)
{
    return (uint64_t)LOTS * 2 * sizeof(uint32_t) * lot_rows_of(length, rows_max) * length;
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
    loader->lot_rows = lot_rows_of(setup->length, setup->rows_max);
    atomic_init(&loader->closing, false);
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->changed, NULL);
    dp_status status = DP_OK;
    for (uint32_t i = 0; i < LOTS && status == DP_OK; i++) {
        lot *const l = &loader->lots[i];
        l->x = dp_alloc(loader->lot_rows * setup->length, sizeof *l->x);
        l->y = dp_alloc(loader->lot_rows * setup->length, sizeof *l->y);
        status = l->x != NULL && l->y != NULL ? DP_OK : DP_NOMEM;
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
    atomic_store(&loader->closing, true);
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
    if (loader->running) {
        pthread_join(loader->thread, NULL);
    }
    pthread_cond_destroy(&loader->changed);
    pthread_mutex_destroy(&loader->lock);
    for (uint32_t i = 0; i < LOTS; i++) {
        dp_free(loader->lots[i].x);
        dp_free(loader->lots[i].y);
    }
    dp_free(loader);
}

/* Rows of the lot up to the end of place; 0: not all of place is there. */
static uint32_t end_in(const lot *l, const dp_loader_place *place)
{
    const uint64_t from = place->sample - l->place.sample;
    const bool holds = place->own == l->place.own && place->sample >= l->place.sample &&
                       from < l->place.rows && place->rows <= l->place.rows - from;
    return holds ? (uint32_t)from + place->rows : 0;
}

/* Waits for the prefetched lot. */
static void await_next(dp_loader *loader)
{
    pthread_mutex_lock(&loader->lock);
    while (loader->state == NEXT_WANTED) {
        pthread_cond_wait(&loader->changed, &loader->lock);
    }
    loader->state = NEXT_NONE;
    pthread_mutex_unlock(&loader->lock);
}

/* Rows of the range behind place. */
static uint64_t rows_behind(const dp_loader_place *place)
{
    return place->left == 0 ? UINT64_MAX : place->left - place->rows;
}

/* The rows behind place; the lot lent from may end in the middle of a micro-batch to come, so the
 * next begins before its end. */
static void ask_next(dp_loader *loader, const dp_loader_place *place)
{
    const uint64_t behind = rows_behind(place);
    next_lot(loader)->place =
        (dp_loader_place){.sample = place->sample + place->rows,
                          .rows = behind < loader->lot_rows ? (uint32_t)behind : loader->lot_rows,
                          .own = place->own};
    pthread_mutex_lock(&loader->lock);
    loader->state = NEXT_WANTED;
    loader->asked_for++;
    pthread_cond_broadcast(&loader->changed);
    pthread_mutex_unlock(&loader->lock);
}

dp_status dp_loader_take(dp_loader *loader, const dp_loader_place *place, dp_loader_rows *rows)
{
    dp_assert(place->rows > 0 && place->rows <= loader->rows_max);
    dp_assert(place->left == 0 || place->left >= place->rows);
    uint32_t end = end_in(&loader->lots[loader->current], place);
    if (end == 0 && loader->asked) {
        await_next(loader);
        loader->asked = false;
        if (end_in(next_lot(loader), place) > 0) {
            loader->current = (loader->current + 1) % LOTS;
            end = end_in(&loader->lots[loader->current], place);
        }
    }
    lot *const l = &loader->lots[loader->current];
    if (end > 0) {
        loader->ahead++;
    } else { /* A range of the lease has ended, or a new one has come. */
        fill(loader, l, place);
        DP_TRY(l->status);
        end = place->rows;
    }
    const size_t at = (end - place->rows) * loader->length;
    rows->x = l->x + at;
    rows->y = l->y + at;
    const uint32_t ready = l->place.rows - end;
    if (!loader->asked && ready <= loader->lot_rows / 2 && ready < rows_behind(place)) {
        ask_next(loader, place);
        loader->asked = true;
    }
    return DP_OK;
}

uint64_t dp_loader_ahead(const dp_loader *loader)
{
    return loader->ahead;
}

uint64_t dp_loader_lots(const dp_loader *loader)
{
    return loader->asked_for;
}
