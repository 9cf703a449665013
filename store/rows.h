/* Rows of the protocol under names: opaque bytes, and the objects that these bytes need. One row
 * per pending publication, one per pair exchange; the caller defines the format of the bytes. */
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

/* Inserts or replaces by name in one transaction, so that an object that both the old and the new
 * row name is never free. Pins stay as they are. A root that is new in the row must name a complete
 * object: DP_NOTFOUND, DP_AGAIN. DP_TOOBIG: bytes, or more than DP_ROWS_MAX rows. DP_BADARG: the
 * name. */
DP_MUST dp_status dp_store_row_put(dp_store *store, const dp_hash *run, const dp_store_row *row);
/* Deletes a row and releases its objects in one transaction. DP_OK also if the row is absent. */
DP_MUST dp_status dp_store_row_delete(dp_store *store, const dp_hash *run, const char *name);

/* Deletes all rows whose names begin with prefix, damaged ones too. */
DP_MUST dp_status dp_store_row_drop(dp_store *store, const dp_hash *run, const char *prefix);

/* Called for one row; row and its views live until it returns. It may read the store; any status
 * but DP_OK ends the walk. */
typedef dp_status dp_store_row_visit(const dp_store_row *row, void *context);
/* Visits the rows of a run whose names begin with prefix ("": all), in order of name. DP_CORRUPT: a
 * row fails its checksum; those before it were visited. Else the last status of visit. */
DP_MUST dp_status dp_store_row_each(dp_store *store, const dp_hash *run, const char *prefix,
                                    dp_store_row_visit *visit, void *context);

#endif
