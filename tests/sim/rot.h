/* Chunks that a disk loses, which is noticed only when they are read. Then the chunk is dropped, as
 * in store/chunk.c, and the node is told, as by daemon/peer/driver.h. Or whole objects, of any row
 * and use, up to all of a disk (the file of chunks was deleted or truncated): these are noticed at
 * the next start at the latest. */
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
    bool found;       /* found and dropped: the object is not whole until it is fetched again */
    bool told;        /* the node has been told, */
    uint64_t told_us; /* ... then */
} dp_rot;

/* Lets a chunk, an object or all objects rot on some disk, as far as the others can do without this
 * copy. */
void dp_rot_strike(struct dp_sim *sim);
/* This host starts: objects that are lost whole are missing. */
void dp_rot_boot(struct dp_host *host);
/* The driver reads an object for the trainer. False: it is lost, now or since earlier. */
bool dp_rot_give(struct dp_host *host, uint32_t object);
/* Ends all rot that has not been noticed yet. */
void dp_rot_heal(struct dp_sim *sim);
/* Adds to the core (by host) a holder of each piece of data that no host in it holds any more.
 * False: no host has it. */
bool dp_rot_take_holders(struct dp_sim *sim, uint8_t *core);
/* A chunk of an object that is whole on this disk is read: can it be read? */
bool dp_rot_read(struct dp_host *host, uint32_t object, uint32_t chunk);
/* Was it whole here until a part of it rotted? */
bool dp_rot_is_lost(const struct dp_host *host, uint32_t object);
/* Lost, and the node has not been told, or only recently: its earlier actions may still be queued
 * writes or messages. */
bool dp_rot_is_news(const struct dp_host *host, uint32_t object);
/* Tells the node that it is lost, if it still is; call outside of a step. */
void dp_rot_say(struct dp_host *host, uint32_t object);
/* Tells the node that it is lost when the present step has ended. */
void dp_rot_tell(struct dp_host *host, uint32_t object);
/* Passes all of it to the trainer. False: it cannot be read, and the node has been told. Not during
 * a step. */
bool dp_rot_open(struct dp_host *host, const dp_hash *root);
/* The same for the objects that the trainer gets first: tokenizer and data. */
bool dp_rot_open_data(struct dp_host *host);

#endif
