/* Prefetching of training batches: while micro-batches are computed, a thread copies the tokens of
 * the next ones, which also loads their pages. Batches do not change: data.h alone maps samples to
 * tokens. There is no state to save.
 *
 * Samples come in lots of several micro-batches, the one that is lent from and the next. The thread
 * is woken once per lot, because each wake-up may take the caller's processor for a moment. One
 * thread calls; the loader has one of its own. */
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
    uint64_t left; /* samples up to the end of the range, with these; 0: no end */
} dp_loader_place;

typedef struct dp_loader_rows {
    const uint32_t *x; /* [rows][length] */
    const uint32_t *y; /* [rows][length], x shifted by one token */
} dp_loader_rows;

/* DP_NOMEM, and DP_AGAIN when the system gives no more threads. */
DP_MUST dp_status dp_loader_open(dp_loader **out, const dp_loader_setup *setup);
void dp_loader_close(dp_loader *loader); /* Accepts NULL. Joins the thread. */
/* The rows of place, lent until the next take. The rows after them are prefetched, but none beyond
 * the end of the range; any place but the next one is read by the caller's thread. DP_BADARG: the
 * data is too short; DP_AGAIN: its shard is not attached; in both cases the last loan is over. */
DP_MUST dp_status dp_loader_take(dp_loader *loader, const dp_loader_place *place,
                                 dp_loader_rows *rows);
/* Bytes of the lots of a loader. */
uint64_t dp_loader_bytes(size_t length, uint32_t rows_max);
/* Number of takes whose rows were prefetched. */
uint64_t dp_loader_ahead(const dp_loader *loader);
/* Number of wake-ups of the thread. */
uint64_t dp_loader_lots(const dp_loader *loader);

#endif
