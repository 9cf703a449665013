/* Objects that a simulated disk has in part: the chunks that have arrived, with their bytes. They
 * survive a crash, so that a fetch continues where an earlier life of the node ended. */
#ifndef DP_SIM_PARTS_H
#define DP_SIM_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "tests/sim/object.h"

typedef struct dp_part {
    uint32_t object; /* number on the shelf */
    uint32_t n_chunks;
    uint32_t n_have;
    dp_hash leaves[DP_SHELF_CHUNKS_MAX];
    uint8_t *chunks[DP_SHELF_CHUNKS_MAX]; /* NULL: not here */
    uint32_t sizes[DP_SHELF_CHUNKS_MAX];
} dp_part;

typedef struct dp_parts {
    dp_part *items;
    uint32_t count;
    uint32_t capacity;
} dp_parts;

void dp_parts_close(dp_parts *parts);
/* Prepares for chunks with these leaves. Chunks that are here already remain. */
void dp_parts_begin(dp_parts *parts, uint32_t object, uint32_t n_chunks, const dp_hash *leaves);
/* NULL if it was never begun, or dropped. Valid until the next begin or drop. */
dp_part *dp_parts_find(const dp_parts *parts, uint32_t object);
bool dp_part_has(const dp_part *part, uint32_t index);
bool dp_part_whole(const dp_part *part);
/* Takes bytes, from malloc. A second copy of a chunk, or a chunk of a dropped object, is freed. */
void dp_parts_put(dp_parts *parts, uint32_t object, uint32_t index, uint8_t *bytes, uint32_t size);
/* Are the concatenated chunks equal to these bytes? */
bool dp_part_is(const dp_part *part, dp_view bytes);
void dp_parts_drop(dp_parts *parts, uint32_t object);

#endif
