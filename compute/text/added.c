#include "compute/text/added.h"

#include <string.h>

#include "base/alloc.h"

void dp_added_close(dp_added *added)
{
    dp_free(added->items);
    *added = (dp_added){0};
}

static int compare(dp_view a, dp_view b)
{
    const int order = memcmp(a.data, b.data, a.size < b.size ? a.size : b.size);
    return order != 0 ? order : (a.size > b.size) - (a.size < b.size);
}

dp_status dp_added_add(dp_added *added, dp_added_token token)
{
    uint32_t at = added->count;
    if (token.text.size == 0) {
        return DP_BADARG;
    }
    while (at > 0 && compare(added->items[at - 1].text, token.text) > 0) {
        at--;
    }
    if (at > 0 && compare(added->items[at - 1].text, token.text) == 0) {
        return DP_EXISTS;
    }
    if (added->count == DP_ADDED_MAX) {
        return DP_TOOBIG;
    }
    if (added->count == added->capacity) {
        const uint32_t capacity = added->capacity == 0 ? 16 : 2 * added->capacity;
        dp_added_token *const larger = dp_realloc(added->items, capacity * sizeof *larger);
        if (larger == NULL) {
            return DP_NOMEM;
        }
        added->items = larger;
        added->capacity = capacity;
    }
    memmove(added->items + at + 1, added->items + at, (added->count - at) * sizeof *added->items);
    added->items[at] = token;
    added->count++;
    added->starts[token.text.data[0]] = true;
    return DP_OK;
}

/* First item of first..last-1 whose byte number depth is at least value; all of them have depth + 1
 * bytes or more. */
static uint32_t lower_bound(const dp_added *added, uint32_t first, uint32_t last, size_t depth,
                            unsigned value)
{
    while (first < last) {
        const uint32_t middle = first + (last - first) / 2;
        if (added->items[middle].text.data[depth] < value) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return first;
}

/* Narrows the sorted items byte by byte to those that text begins with. */
static const dp_added_token *longest_at(const dp_added *added, dp_view text)
{
    const dp_added_token *longest = NULL;
    uint32_t first = 0;
    uint32_t last = added->count;
    for (size_t depth = 0; depth < text.size && first < last; depth++) {
        const unsigned byte = text.data[depth];
        first = lower_bound(added, first, last, depth, byte);
        last = lower_bound(added, first, last, depth, byte + 1);
        if (first < last && added->items[first].text.size == depth + 1) {
            longest = &added->items[first];
            first++; /* The others go on. */
        }
    }
    return longest;
}

bool dp_added_next(const dp_added *added, dp_view text, size_t at, size_t *begin,
                   const dp_added_token **token)
{
    for (size_t i = at; added->count > 0 && i < text.size; i++) {
        if (!added->starts[text.data[i]]) {
            continue;
        }
        const dp_added_token *const found =
            longest_at(added, dp_view_of(text.data + i, text.size - i));
        if (found != NULL) {
            *begin = i;
            *token = found;
            return true;
        }
    }
    return false;
}
