/* The list of the shards of one run, which a manifest names if its data is more than one object.
 * Each shard is an object of its own (base/digest.h), so that a node fetches only the shards that
 * hold its samples. */
#ifndef DP_COMPUTE_DATA_SHARD_TABLE_H
#define DP_COMPUTE_DATA_SHARD_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"

enum {
    DP_SHARDS_MAX = 4096,
    DP_SHARD_TABLE_HEADER_BYTES = 32,
    DP_SHARD_ROW_BYTES = 48,
    DP_SHARD_TABLE_BYTES_MAX = DP_SHARD_TABLE_HEADER_BYTES + DP_SHARDS_MAX * DP_SHARD_ROW_BYTES
};

typedef struct dp_shard_row {
    dp_hash root;
    uint64_t bytes;
    uint64_t tokens;
} dp_shard_row;

typedef struct dp_shard_table {
    uint32_t vocab;
    uint32_t n_shards;
    uint64_t tokens;
    uint64_t text_bytes;
    dp_view rows; /* borrowed */
} dp_shard_table;

bool dp_shard_table_is(dp_view bytes);
/* Opens a table. Accepts any bytes, which are borrowed. DP_BADMSG, DP_VERSION, DP_TOOBIG. */
DP_MUST dp_status dp_shard_table_open(dp_shard_table *table, dp_view bytes, dp_why *why);
/* index < n_shards */
dp_shard_row dp_shard_table_row(const dp_shard_table *table, uint32_t index);
/* Appends a table to out. DP_BADARG (no rows), DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_shard_table_write(const dp_shard_row *rows, uint32_t n_rows, uint32_t vocab,
                                       uint64_t text_bytes, dp_buf *out);

#endif
