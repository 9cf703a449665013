/* A set of small numbers in rising order, for the few rows of a large table that need work. Holds
 * no rows itself. A lookup is constant time, a change moves the numbers behind it. */
#ifndef DP_GOSSIP_MEMBER_ROWSET_H
#define DP_GOSSIP_MEMBER_ROWSET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

typedef struct dp_rowset {
    uint32_t *at; /* rising */
    uint32_t count;
    uint32_t capacity;
} dp_rowset;

/* DP_NOMEM. Numbers must be below capacity. */
DP_MUST dp_status dp_rowset_open(dp_rowset *rows, uint32_t capacity);
void dp_rowset_close(dp_rowset *rows);
/* No change if it is as wanted already. */
void dp_rowset_set(dp_rowset *rows, uint32_t row, bool in);
/* How many are below row: where it stands, or would. */
uint32_t dp_rowset_place(const dp_rowset *rows, uint32_t row);
bool dp_rowset_has(const dp_rowset *rows, uint32_t row);

#endif
