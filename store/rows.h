/* Rows of the protocol under names: bytes that mean nothing here, and the objects that those bytes
 * need. One row per pending publication, one per pair exchange; the format of the bytes belongs to
 * whoever writes them. */
#ifndef DP_STORE_ROWS_H
#define DP_STORE_ROWS_H

#include "store/db.h"

enum {
    DP_ROW_NAME_MAX = 64, /* With NUL. */
    DP_ROW_BYTES_MAX = 64 * 1024,
    DP_ROW_KEEPS = 3,
    DP_ROWS_MAX = 1024, /* Of one run. */
};

typedef struct dp_store_row {
    char name[DP_ROW_NAME_MAX]; /* Not empty. */
    /* Roots of objects that live as long as the row names them; zero: none. */
    dp_hash keep[DP_ROW_KEEPS];
    dp_view bytes;
} dp_store_row;

/* Insert or replace by name in one transaction: at no moment is an object free that the old row or
 * the new one keeps on both sides of it. Pins are not touched. A root that the row did not keep
 * before must name a complete object: DP_NOTFOUND, DP_AGAIN. DP_TOOBIG: bytes, or one row too many.
 * DP_BADARG: the name. */
DP_MUST dp_status dp_store_row_put(dp_store *store, const dp_hash *run, const dp_store_row *row);
/* Its objects are let go in the same transaction. Absent rows are fine. */
DP_MUST dp_status dp_store_row_delete(dp_store *store, const dp_hash *run, const char *name);

/* All whose names begin with prefix, damaged or not. */
DP_MUST dp_status dp_store_row_drop(dp_store *store, const dp_hash *run, const char *prefix);

/* row and what it views live until visit returns; visit may read the store, and ends the walk with
 * anything but DP_OK. */
typedef dp_status dp_store_row_visit(const dp_store_row *row, void *context);
/* The rows of a run whose names begin with prefix ("": all), in order of name. DP_CORRUPT: a row
 * fails its checksum; those before it were visited. What visit returned. */
DP_MUST dp_status dp_store_row_each(dp_store *store, const dp_hash *run, const char *prefix,
                                    dp_store_row_visit *visit, void *context);

#endif
