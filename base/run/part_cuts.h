/* The cuts of a vector into the parts of a round (gossip/record/part.h). Cuts are shares in 1/65536
 * of the vector, so that gossip/ needs no tensor; the trainer maps a share to an element. Part p is
 * [first[p], dp_part_end(p)). */
#ifndef DP_BASE_RUN_PART_CUTS_H
#define DP_BASE_RUN_PART_CUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DP_PARTS_MAX = 32,
    DP_PART_WHOLE = 65536 /* shares of a vector */
};

/* Elements first .. first + n - 1 of a vector. */
typedef struct dp_part_place {
    size_t first;
    size_t n;
} dp_part_place;

/* n = 0: no parts, one object for the whole. first[0] is 0, and first rises. */
typedef struct dp_part_cuts {
    uint32_t n;
    uint16_t first[DP_PARTS_MAX];
} dp_part_cuts;

/* One past the last share of part p < n. */
static inline uint32_t dp_part_end(const dp_part_cuts *cuts, uint32_t p)
{
    return p + 1 < cuts->n ? cuts->first[p + 1] : (uint32_t)DP_PART_WHOLE;
}

/* True if cuts from outside are valid; n = 0 is. */
static inline bool dp_part_cuts_good(const dp_part_cuts *cuts)
{
    if (cuts->n > DP_PARTS_MAX || (cuts->n > 0 && cuts->first[0] != 0)) {
        return false;
    }
    for (uint32_t p = 1; p < cuts->n; p++) {
        if (cuts->first[p] <= cuts->first[p - 1]) {
            return false;
        }
    }
    return true;
}

/* A mask with the bits of n <= DP_PARTS_MAX parts. */
static inline uint32_t dp_part_all(uint32_t n)
{
    return n == 0 ? 0 : UINT32_MAX >> (32 - n);
}

#endif
