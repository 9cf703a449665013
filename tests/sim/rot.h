/* Chunks that a disk loses: nobody knows until somebody reads them. Then the chunk is gone, as
 * store/chunk.c has it, and the node is told as daemon/driver tells it. Or whole objects, of any
 * row and use, up to all that a disk has (the file of chunks was deleted or cut): those are missing
 * at the next start at the latest. */
#ifndef DP_SIM_ROT_H
#define DP_SIM_ROT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"

enum {
    DP_ROT_MAX = 256,          /* objects of one disk */
    DP_ROT_WHOLE = UINT32_MAX, /* for a chunk: all of them */
};

struct dp_sim;
struct dp_host;

typedef struct dp_rot {
    uint32_t object;
    uint32_t chunk;
    bool found;       /* and dropped: the object is not whole until it was fetched again */
    bool told;        /* the node has heard of it, */
    uint64_t told_us; /* ... then */
} dp_rot;

/* A chunk, an object or all of them rot on some disk, as far as the others can do without. */
void dp_rot_strike(struct dp_sim *sim);
/* This host starts: what is missing whole is not there. */
void dp_rot_boot(struct dp_host *host);
/* The driver reads an object to hand it to the trainer. False: it is lost, or has been since
 * earlier. */
bool dp_rot_give(struct dp_host *host, uint32_t object);
/* Nothing that nobody has found yet is rotten any more. */
void dp_rot_heal(struct dp_sim *sim);
/* Adds to the core, by host, a holder of each piece of data that no host in it holds any more.
 * False: no host has it. */
bool dp_rot_take_holders(struct dp_sim *sim, uint8_t *core);
/* Somebody reads this chunk, of an object that is whole on this disk: can it be had? */
bool dp_rot_read(struct dp_host *host, uint32_t object, uint32_t chunk);
/* Was it whole here, and is it not since something of it rotted? */
bool dp_rot_is_lost(const struct dp_host *host, uint32_t object);
/* Lost, and the node has not heard of it, or not long ago: what it said before is still being
 * written, or on its way. */
bool dp_rot_is_news(const struct dp_host *host, uint32_t object);
/* The node hears that it is lost, if it still is: outside of a step. */
void dp_rot_say(struct dp_host *host, uint32_t object);
/* The node will hear that it is lost, once the step under way has ended. */
void dp_rot_tell(struct dp_host *host, uint32_t object);
/* The trainer is given all of it. False: it cannot be read, and the node has been told. Not in the
 * middle of a step. */
bool dp_rot_open(struct dp_host *host, const dp_hash *root);
/* The same for the objects that the trainer is given first: tokenizer and data. */
bool dp_rot_open_data(struct dp_host *host);

#endif
