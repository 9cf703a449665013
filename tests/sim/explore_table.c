#include "tests/sim/explore_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

enum { SLOTS_FIRST = 1 << 16 };

void dp_explore_table_close(dp_explore_table *table)
{
    free(table->keys);
    free(table->values);
    memset(table, 0, sizeof *table);
}

static uint64_t slot_of(const dp_explore_table *table, uint64_t key)
{
    uint64_t slot = key & (table->slots - 1);

    while (table->keys[slot] != 0 && table->keys[slot] != key) {
        slot = (slot + 1) & (table->slots - 1);
    }
    return slot;
}

static void grow(dp_explore_table *table)
{
    const dp_explore_table old = *table;

    table->slots = old.slots == 0 ? SLOTS_FIRST : old.slots * 2;
    table->keys = calloc(table->slots, sizeof *table->keys);
    table->values = table->only_keys ? NULL : calloc(table->slots, sizeof *table->values);
    dp_assert(table->keys != NULL && (table->values != NULL || table->only_keys));
    for (uint64_t i = 0; i < old.slots; i++) {
        if (old.keys[i] != 0) {
            const uint64_t slot = slot_of(table, old.keys[i]);
            table->keys[slot] = old.keys[i];
            if (table->values != NULL) {
                table->values[slot] = old.values[i];
            }
        }
    }
    free(old.keys);
    free(old.values);
}

bool dp_explore_table_get(const dp_explore_table *table, uint64_t key, uint32_t *value)
{
    if (table->slots == 0) {
        return false;
    }
    const uint64_t slot = slot_of(table, key == 0 ? 1 : key);
    if (table->keys[slot] == 0) {
        return false;
    }
    *value = table->values[slot];
    return true;
}

bool dp_explore_table_add(dp_explore_table *table, uint64_t key, uint32_t value)
{
    if (table->count >= table->slots / 4 * 3) {
        grow(table);
    }
    const uint64_t wanted = key == 0 ? 1 : key;
    const uint64_t slot = slot_of(table, wanted);
    if (table->keys[slot] != 0) {
        return false;
    }
    table->keys[slot] = wanted;
    if (table->values != NULL) {
        table->values[slot] = value;
    }
    table->count++;
    return true;
}
