/* One store on one platter, worked upon by random acts until the power is cut, again and again;
 * after every cut the book is compared. A world is a pure function of its seed. */
#ifndef DP_TESTS_STORE_WORLD_H
#define DP_TESTS_STORE_WORLD_H

#include "base/rng.h"
#include "tests/store/book.h"
#include "tests/store/platter.h"

enum { DP_WORLD_CUTS_MAX = 64, DP_WORLD_PATH_MAX = 512 };

typedef struct dp_world {
    uint64_t seed;
    dp_rng rng;
    char path[DP_WORLD_PATH_MAX]; /* of the store; only its lock is a real file */
    dp_platter *platter;
    dp_store *store;
    dp_store_options options;
    dp_book now;
    dp_book next; /* what the act under way makes of it */
    bool atomic;
    bool failing;      /* calls of the disk fail, and the store goes on */
    int32_t loose;     /* see dp_book_check */
    uint32_t unsaved;  /* chunks put and not flushed, of object filling */
    uint32_t filling;  /* object that comes chunk by chunk */
    uint64_t clock_ms; /* of checkpoints */
    uint64_t versions; /* contents made so far */
    const char *act;   /* name of the last one */
    uint64_t n_acts;
    uint64_t n_cuts;
    uint64_t n_opening;                  /* cuts while the store was opened */
    uint64_t n_dropping;                 /* cuts while old objects were dropped */
    uint64_t n_failures;                 /* acts and starts that dp_world_fail made fail */
    char sentence[DP_BOOK_SENTENCE_MAX]; /* what was wrong */
} dp_world;

/* folder: an empty place for the lock. False: no memory. */
bool dp_world_open(dp_world *world, uint64_t seed, const char *folder, dp_platter_sync sync);
void dp_world_close(dp_world *world);
/* Acts until the next cut, and checks what is left. False: something was lost, world->sentence says
 * what. */
bool dp_world_cut(dp_world *world);

/* Acts until one fails, of a call of the disk or of an allocation that is made to fail; also while
 * the store is opened. Then all is well again, and what is there is checked: after DP_NOSPACE and
 * DP_NOMEM a call that does all or nothing must have done nothing. False as above. */
bool dp_world_fail(dp_world *world);

/* acts.c: one random act on the open store. DP_NOSPACE is an answer where there is a quota. */
DP_MUST dp_status dp_world_act(dp_world *world);

#endif
