/* Prefetching of training batches: while micro-batches are computed, a thread copies the tokens of
 * those that come next and so touches their pages. Changes no batch: which tokens a sample names is
 * decided by data.h alone. Nothing in here needs to be saved: who goes on from the same sample gets
 * the same rows.
 *
 * Samples come in lots of several micro-batches, the one that is lent from and the next. A thread
 * that is woken may take the caller's processor for a turn, so it is woken once a lot and not each
 * time. One thread calls; the loader has one of its own. */
#ifndef DP_COMPUTE_DATA_LOADER_H
#define DP_COMPUTE_DATA_LOADER_H

#include <stdbool.h>

#include "compute/data/data.h"

typedef struct dp_loader dp_loader;

typedef struct dp_loader_setup {
    const dp_data *data; /* borrowed until close */
    uint64_t seed;       /* orders the line of the run */
    uint64_t own_seed;   /* orders the line of the member */
    size_t length;       /* tokens in a row */
    uint32_t rows_max;   /* of a micro-batch */
} dp_loader_setup;

/* rows samples of a line from sample on; 1 <= rows <= rows_max. */
typedef struct dp_loader_place {
    uint64_t sample;
    uint32_t rows;
    bool own;      /* of the member's line, not the run's (base/run/reach.h) */
    uint64_t left; /* with these, up to the end of a range; 0: there is no end */
} dp_loader_place;

typedef struct dp_loader_rows {
    const uint32_t *x; /* [rows][length] */
    const uint32_t *y; /* one token on */
} dp_loader_rows;

/* DP_NOMEM, and DP_AGAIN when the system gives no more threads. */
DP_MUST dp_status dp_loader_open(dp_loader **out, const dp_loader_setup *setup);
void dp_loader_close(dp_loader *loader); /* Accepts NULL. Joins the thread. */
/* The rows of place, lent until the next take. Rows after them are prepared, none behind the end of
 * the range, since nobody knows yet whose those are; another place than the next is fetched by the
 * caller itself. DP_BADARG: the data is too short; DP_AGAIN: its shard is not here; the last loan
 * is over. */
DP_MUST dp_status dp_loader_take(dp_loader *loader, const dp_loader_place *place,
                                 dp_loader_rows *rows);
/* What its lots take. */
uint64_t dp_loader_bytes(size_t length, uint32_t rows_max);
/* How many takes found their rows prepared. */
uint64_t dp_loader_ahead(const dp_loader *loader);
/* How often its thread was woken for a lot. */
uint64_t dp_loader_lots(const dp_loader *loader);

#endif
