/* Prefetching of training batches: while one micro-batch is computed, a thread copies the tokens of the one that comes
 * next and so touches their pages. Changes no batch: which tokens a place names is decided by data.h alone, at random or in
 * passes. Nothing in here needs to be saved: who goes on from the same place gets the same rows.
 *
 * Two micro-batches are in memory, the lent one and the next. One thread calls; the loader has one of its own. */
#ifndef DP_COMPUTE_LOADER_H
#define DP_COMPUTE_LOADER_H

#include <stdbool.h>

#include "compute/data.h"

typedef struct dp_loader dp_loader;

/* Samples that this node may train on, in passes, and how many of them are done: the cursor of a run of one node is a
 * lease of everything; a run of many may give out ranges (data.h). Three numbers, saved and restored as they are. */
typedef struct dp_lease {
    uint64_t first;
    uint64_t count;
    uint64_t done;
} dp_lease;

/* The next rows of the lease, at most rows_max, and the sample of the first one; 0: it is used up. done moves on. */
uint32_t dp_lease_next(dp_lease *lease, uint32_t rows_max, uint64_t *sample);

typedef struct dp_loader_setup {
    const dp_data *data;   /* borrowed until close */
    uint64_t seed;         /* of the run */
    const uint8_t *member; /* 32 bytes, copied */
    uint64_t life;         /* as in data.h */
    size_t length;         /* tokens in a row */
    uint32_t batch_rows;   /* of an optimizer step */
    uint32_t rows_max;     /* of a micro-batch */
    bool passes;           /* rows are samples of passes; else drawn at random */
} dp_loader_setup;

/* rows of step from row first on; first + rows <= batch_rows, 1 <= rows <= rows_max. In passes: samples from sample on,
 * and only these count. */
typedef struct dp_loader_place {
    uint64_t round;
    uint64_t step;
    uint32_t first;
    uint32_t rows;
    uint64_t sample;
} dp_loader_place;

typedef struct dp_loader_rows {
    const uint32_t *x; /* [rows][length] */
    const uint32_t *y; /* one token on */
} dp_loader_rows;

/* DP_NOMEM, and DP_AGAIN when the system gives no more threads. */
DP_MUST dp_status dp_loader_open(dp_loader **out, const dp_loader_setup *setup);
void dp_loader_close(dp_loader *loader); /* Accepts NULL. Joins the thread. */
/* The rows of place, lent until the next take. Then the rows after them are prepared, on into the next step; another
 * place than those is fetched by the caller itself. DP_BADARG: the data is too short; DP_AGAIN: its shard is not here; the
 * last loan is over. */
DP_MUST dp_status dp_loader_take(dp_loader *loader, const dp_loader_place *place,
                                 dp_loader_rows *rows);
/* How many takes found their rows prepared. */
uint64_t dp_loader_ahead(const dp_loader *loader);

#endif
