#include "tests/sim/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static void part_clear(dp_part *part)
{
    for (uint32_t i = 0; i < part->n_chunks; i++) {
        free(part->chunks[i]);
    }
    memset(part, 0, sizeof *part);
}

void dp_parts_close(dp_parts *parts)
{
    while (parts->count > 0) {
        part_clear(&parts->items[--parts->count]);
    }
    free(parts->items);
    memset(parts, 0, sizeof *parts);
}

dp_part *dp_parts_find(const dp_parts *parts, uint32_t object)
{
    for (uint32_t i = 0; i < parts->count; i++) {
        if (parts->items[i].object == object) {
            return &parts->items[i];
        }
    }
    return NULL;
}

void dp_parts_begin(dp_parts *parts, uint32_t object, uint32_t n_chunks, const dp_hash *leaves)
{
    dp_assert(n_chunks > 0 && n_chunks <= DP_SHELF_CHUNKS_MAX);
    if (dp_parts_find(parts, object) != NULL) {
        return;
    }
    if (parts->count == parts->capacity) {
        parts->capacity = parts->capacity == 0 ? 8 : parts->capacity * 2;
        parts->items = realloc(parts->items, parts->capacity * sizeof *parts->items);
        dp_assert(parts->items != NULL);
    }
    dp_part *part = &parts->items[parts->count++];
    *part = (dp_part){.object = object, .n_chunks = n_chunks};
    memcpy(part->leaves, leaves, n_chunks * sizeof leaves[0]);
}

bool dp_part_has(const dp_part *part, uint32_t index)
{
    return index < part->n_chunks && part->chunks[index] != NULL;
}

bool dp_part_whole(const dp_part *part)
{
    return part->n_have == part->n_chunks;
}

void dp_parts_put(dp_parts *parts, uint32_t object, uint32_t index, uint8_t *bytes, uint32_t size)
{
    dp_part *part = dp_parts_find(parts, object);

    if (part == NULL || index >= part->n_chunks || part->chunks[index] != NULL) {
        free(bytes);
        return;
    }
    part->chunks[index] = bytes;
    part->sizes[index] = size;
    part->n_have++;
}

bool dp_part_is(const dp_part *part, dp_view bytes)
{
    size_t at = 0;

    for (uint32_t i = 0; i < part->n_chunks; i++) {
        if (part->chunks[i] == NULL || part->sizes[i] > bytes.size - at ||
            memcmp(part->chunks[i], bytes.data + at, part->sizes[i]) != 0) {
            return false;
        }
        at += part->sizes[i];
    }
    return at == bytes.size;
}

void dp_parts_drop(dp_parts *parts, uint32_t object)
{
    dp_part *part = dp_parts_find(parts, object);

    if (part != NULL) {
        part_clear(part);
        *part = parts->items[--parts->count];
    }
}
