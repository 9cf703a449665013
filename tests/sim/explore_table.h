/* A growing table from 64-bit keys, which are already hashes, to small numbers; open addressing.
 * Aborts if memory is exhausted. */
#ifndef DP_SIM_EXPLORE_TABLE_H
#define DP_SIM_EXPLORE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dp_explore_table {
    uint64_t *keys; /* 0: free */
    uint32_t *values;
    uint64_t slots; /* a power of two */
    uint64_t count;
    bool only_keys; /* a set: set before the first use */
} dp_explore_table;

void dp_explore_table_close(dp_explore_table *table);
/* True if the table has the key. */
bool dp_explore_table_get(const dp_explore_table *table, uint64_t key, uint32_t *value);
/* False if the table has the key; then nothing changes. Key 0 counts as 1. */
bool dp_explore_table_add(dp_explore_table *table, uint64_t key, uint32_t value);

#endif
