/* The known word nearest to an unknown one, for "did you mean". Only compares; who offers the words
 * decides what to say. */
#ifndef DP_BASE_NEAREST_H
#define DP_BASE_NEAREST_H

#include <stddef.h>

enum { DP_NEAREST_SIZE_MAX = 64 }; /* of a word; longer ones are near to nothing */

/* Begins as {.word = the unknown one}. */
typedef struct dp_nearest {
    const char *word;
    const char *best; /* the nearest word offered so far, the first of equals; NULL: none is near */
    size_t edits;     /* between the two */
} dp_nearest;

/* Offer a known word, which is borrowed. It is near if the other is a beginning of it (3 characters
 * at least), or differs by a character added, dropped or replaced, or by two neighbours swapped:
 * once in words of up to 5 characters, twice up to 8, else three times (optimal string alignment;
 * Wagner and Fischer 1974, with the transpositions of Damerau 1964). */
void dp_nearest_offer(dp_nearest *nearest, const char *known);

#endif
