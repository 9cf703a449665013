#include "base/nearest.h"

#include <stdbool.h>
#include <string.h>

enum { BEGINNING_MIN = 3, EDITS_MAX = 3 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Both of at most DP_NEAREST_SIZE_MAX characters. */
static size_t edits_between(const char *a, const char *b)
{
    size_t rows[3][DP_NEAREST_SIZE_MAX + 1];
    const size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) {
        rows[0][j] = j;
    }
    size_t i = 0;
    for (; a[i] != '\0'; i++) {
        const size_t *const before = rows[i % 3];
        const size_t *const earlier = rows[(i + 2) % 3];
        size_t *const row = rows[(i + 1) % 3];
        row[0] = i + 1;
        for (size_t j = 0; j < width; j++) {
            row[j + 1] = least(least(before[j + 1], row[j]) + 1, before[j] + (a[i] != b[j]));
            if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j]) {
                row[j + 1] = least(row[j + 1], earlier[j - 1] + 1);
            }
        }
    }
    return rows[i % 3][width];
}

void dp_nearest_offer(dp_nearest *nearest, const char *known)
{
    const size_t size = strlen(nearest->word);
    if (size > DP_NEAREST_SIZE_MAX || strlen(known) > DP_NEAREST_SIZE_MAX) {
        return;
    }
    const size_t most = size < 6 ? 1 : size < 9 ? 2 : EDITS_MAX;
    const bool begins = size >= BEGINNING_MIN && strncmp(known, nearest->word, size) == 0;
    const size_t edits =
        begins ? least(1, strlen(known) - size) : edits_between(nearest->word, known);
    if (edits <= most && edits < size && (nearest->best == NULL || edits < nearest->edits)) {
        nearest->best = known;
        nearest->edits = edits;
    }
}
