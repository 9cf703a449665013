/* The known word that is nearest to an unknown one, for "did you mean". Compares only; the caller
 * decides what to print. */
#ifndef DP_BASE_NEAREST_H
#define DP_BASE_NEAREST_H

#include <stddef.h>

enum { DP_NEAREST_SIZE_MAX = 64 }; /* longer words have no near word */

/* Initialize as {.word = the unknown one}. */
typedef struct dp_nearest {
    const char *word;
    const char *best; /* the nearest word offered so far, the first of equals; NULL: none is near */
    size_t edits;     /* between the two */
} dp_nearest;

/* Offers a known word, which is borrowed. It is near if the unknown word is a beginning of it (3
 * characters at least), or if some edits lead from one to the other: a character added, dropped or
 * replaced, or two neighbours swapped; 1 edit in words of up to 5 characters, 2 up to 8, else 3.
 * (Optimal string alignment: Wagner and Fischer 1974, with the transpositions of Damerau 1964.) */
void dp_nearest_offer(dp_nearest *nearest, const char *known);

#endif
