#include "gossip/member/rowset.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

dp_status dp_rowset_open(dp_rowset *rows, uint32_t capacity)
{
    *rows = (dp_rowset){.at = dp_alloc(capacity, sizeof *rows->at), .capacity = capacity};
    return rows->at != NULL ? DP_OK : DP_NOMEM;
}

void dp_rowset_close(dp_rowset *rows)
{
    dp_free(rows->at);
    *rows = (dp_rowset){0};
}

uint32_t dp_rowset_place(const dp_rowset *rows, uint32_t row)
{
    uint32_t low = 0;
    uint32_t high = rows->count;

    while (low < high) {
        const uint32_t middle = low + (high - low) / 2;
        if (rows->at[middle] < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool dp_rowset_has(const dp_rowset *rows, uint32_t row)
{
    const uint32_t place = dp_rowset_place(rows, row);

    dp_assert(row < rows->capacity);
    return place < rows->count && rows->at[place] == row;
}

void dp_rowset_set(dp_rowset *rows, uint32_t row, bool in)
{
    dp_assert(row < rows->capacity);
    const uint32_t place = dp_rowset_place(rows, row);
    const bool there = place < rows->count && rows->at[place] == row;

    if (in && !there) {
        memmove(&rows->at[place + 1], &rows->at[place], (rows->count - place) * sizeof rows->at[0]);
        rows->at[place] = row;
        rows->count++;
    } else if (!in && there) {
        rows->count--;
        memmove(&rows->at[place], &rows->at[place + 1], (rows->count - place) * sizeof rows->at[0]);
    }
}
