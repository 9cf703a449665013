#include "daemon/pile.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"

typedef struct heap {
    uint64_t weights; /* of all that came, the own one included */
    int64_t *sum;     /* NULL: not begun */
    uint32_t n_held;
    uint8_t *parts[DP_PILE_HELD];
    uint32_t held_weights[DP_PILE_HELD];
} heap;

struct dp_pile {
    uint32_t n_chunks;
    uint32_t weight;
    size_t part_bytes;
    size_t chunk_elements;
    heap *heaps; /* [n_chunks] */
    /* Memory of chunks that are done, for the next ones: its pages are warm. */
    int64_t **sums; /* [n_chunks] */
    uint32_t n_sums;
    uint8_t **parts; /* [n_chunks DP_PILE_HELD] */
    uint32_t n_parts;
};

dp_status dp_pile_open(dp_pile **out, uint32_t n_chunks, size_t part_bytes, size_t chunk_elements)
{
    dp_pile *pile = dp_alloc(1, sizeof *pile);
    if (pile == NULL) {
        return DP_NOMEM;
    }
    const size_t n = n_chunks + 1U; /* Also for none. */
    pile->n_chunks = n_chunks;
    pile->part_bytes = part_bytes;
    pile->chunk_elements = chunk_elements;
    pile->heaps = dp_alloc(n, sizeof *pile->heaps);
    pile->sums = dp_alloc(n, sizeof(int64_t *));
    pile->parts = dp_alloc(n * DP_PILE_HELD, sizeof(uint8_t *));
    if (pile->heaps == NULL || pile->sums == NULL || pile->parts == NULL) {
        dp_pile_close(pile);
        return DP_NOMEM;
    }
    *out = pile;
    return DP_OK;
}

void dp_pile_close(dp_pile *pile)
{
    if (pile == NULL) {
        return;
    }
    if (pile->heaps != NULL && pile->sums != NULL && pile->parts != NULL) {
        dp_pile_restart(pile, 0);
        for (uint32_t i = 0; i < pile->n_sums; i++) {
            dp_free(pile->sums[i]);
        }
        for (uint32_t i = 0; i < pile->n_parts; i++) {
            dp_free(pile->parts[i]);
        }
    }
    dp_free(pile->heaps);
    dp_free(pile->sums);
    dp_free(pile->parts);
    dp_free(pile);
}

static void drop_parts(dp_pile *pile, heap *one)
{
    while (one->n_held > 0) {
        pile->parts[pile->n_parts++] = one->parts[--one->n_held];
    }
}

void dp_pile_forget(dp_pile *pile, uint32_t chunk)
{
    dp_assert(chunk < pile->n_chunks);
    heap *one = &pile->heaps[chunk];
    drop_parts(pile, one);
    if (one->sum != NULL) {
        pile->sums[pile->n_sums++] = one->sum;
        one->sum = NULL;
    }
    one->weights = pile->weight;
}

void dp_pile_restart(dp_pile *pile, uint32_t weight)
{
    pile->weight = weight;
    for (uint32_t chunk = 0; chunk < pile->n_chunks; chunk++) {
        dp_pile_forget(pile, chunk);
    }
}

uint64_t dp_pile_take(const dp_pile *pile, uint32_t chunk, dp_terms *terms, dp_view last,
                      uint32_t weight)
{
    dp_assert(chunk < pile->n_chunks && terms->n <= pile->chunk_elements);
    const heap *one = &pile->heaps[chunk];
    terms->weight = pile->weight;
    terms->begun = one->sum != NULL;
    terms->sum = one->sum;
    terms->n_parts = one->n_held;
    for (uint32_t i = 0; i < one->n_held; i++) {
        terms->parts[i] = one->parts[i];
        terms->weights[i] = one->held_weights[i];
    }
    if (last.size == 0) {
        return one->weights;
    }
    terms->parts[terms->n_parts] = last.data;
    terms->weights[terms->n_parts++] = weight;
    return one->weights + weight;
}

static dp_status hold(dp_pile *pile, heap *one, dp_view part, uint32_t weight)
{
    dp_assert(part.size <= pile->part_bytes);
    uint8_t *copy =
        pile->n_parts > 0 ? pile->parts[--pile->n_parts] : dp_alloc(1, pile->part_bytes);
    if (copy == NULL) {
        return DP_NOMEM;
    }
    memcpy(copy, part.data, part.size);
    one->held_weights[one->n_held] = weight;
    one->parts[one->n_held++] = copy;
    return DP_OK;
}

dp_status dp_pile_add(dp_pile *pile, uint32_t chunk, dp_terms *terms, dp_view part, uint32_t weight,
                      dp_status (*add)(const dp_terms *terms))
{
    dp_assert(chunk < pile->n_chunks && part.size > 0);
    heap *one = &pile->heaps[chunk];
    if (one->n_held < DP_PILE_HELD) {
        DP_TRY(hold(pile, one, part, weight));
        one->weights += weight;
        return DP_OK;
    }
    one->weights = dp_pile_take(pile, chunk, terms, part, weight);
    if (one->sum == NULL) {
        one->sum = pile->n_sums > 0 ? pile->sums[--pile->n_sums]
                                    : dp_alloc(pile->chunk_elements, sizeof *one->sum);
        terms->sum = one->sum;
    }
    if (one->sum == NULL) {
        return DP_NOMEM;
    }
    DP_TRY(add(terms));
    drop_parts(pile, one);
    return DP_OK;
}
