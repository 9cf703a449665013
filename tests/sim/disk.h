/* The disk of a simulated node: durable rows, and writes under way that a crash cuts after a random
 * prefix. */
#ifndef DP_SIM_DISK_H
#define DP_SIM_DISK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/rng.h"
#include "gossip/node/node.h"
#include "tests/sim/parts.h"
#include "tests/sim/shadow.h"

enum {
    DP_DISK_EXCHANGES_MAX = 80,
    DP_DISK_CHECKPOINTS_MAX = 2,
    /* a use: made by the trainer, and no row names it yet. Two makings may be the same bytes, so an
     * older row that goes must not take it along */
    DP_DISK_FRESH = 7
};

typedef struct dp_disk_record {
    uint8_t *data; /* record, then certificate */
    uint32_t record_size;
    uint32_t cert_size;
} dp_disk_record;

typedef struct dp_disk_row {
    uint8_t *data;
    uint32_t size;
    uint32_t keep[3]; /* shelf numbers that the row needs, or DP_SHELF_NONE */
    uint64_t slot;    /* VOTE */
    uint8_t exchange[16];
} dp_disk_row;

typedef struct dp_disk_checkpoint {
    uint64_t round;
    uint32_t object;
} dp_disk_checkpoint;

typedef enum dp_write_kind {
    DP_WRITE_ROW = 1, /* a DP_DO_STORE */
    DP_WRITE_OBJECT,  /* object */
    /* object, index; row.data: its bytes. Of objects of several chunks, see parts.h */
    DP_WRITE_CHUNK,
    DP_WRITE_CHECKPOINT
} dp_write_kind;

/* The event that the host gives to the node when a write has ended. */
typedef enum dp_write_then {
    DP_THEN_NOTHING = 0,
    DP_THEN_STORED,
    DP_THEN_CHUNK,     /* CHUNK and OBJECT; peer */
    DP_THEN_PUBLISHED, /* round: number of the parcel */
    DP_THEN_FROZEN,
    DP_THEN_REDUCED, /* round; index: the part */
    DP_THEN_SAVED
} dp_write_then;

typedef struct dp_disk_write {
    dp_write_kind kind;
    dp_write_then then;
    uint64_t done_us;
    uint32_t op;
    uint32_t peer;
    uint32_t object;
    uint32_t index; /* of the chunk */
    uint64_t round; /* of a checkpoint; number of a parcel */
    uint64_t life;  /* of the trainer that made it */
    dp_store_kind row_kind;
    dp_disk_row row;       /* bytes owned */
    dp_disk_record record; /* bytes owned */
    struct dp_disk_write *next;
} dp_disk_write;

typedef struct dp_disk {
    dp_disk_record *records; /* slot s is records[s - 1] */
    uint32_t n_records;
    uint32_t records_capacity;
    dp_disk_row vote;
    dp_disk_row pending;
    dp_disk_row copied; /* an older pending row, in a backup */
    dp_disk_row proof;
    dp_disk_row exchanges[DP_DISK_EXCHANGES_MAX];
    uint32_t n_exchanges;
    dp_disk_checkpoint checkpoints[DP_DISK_CHECKPOINTS_MAX];
    uint32_t n_checkpoints;
    uint8_t *uses; /* per shelf number: bit 0 durable, bit k held for dp_object_use k */
    uint32_t uses_capacity;
    dp_parts parts; /* not whole yet */
    uint64_t incarnation;
    uint32_t vote_key;    /* which vote key its vote table holds; a new table makes a new one */
    dp_disk_write *first; /* under way, in order */
    dp_disk_write *last;
    uint32_t n_writes;
    uint64_t free_us;
    dp_shadow *shadow; /* NULL: the model alone */
} dp_disk;

void dp_disk_close(dp_disk *disk);
/* Everything is lost. The next vote key is another one, unless the old one was kept elsewhere (a
 * mistake to be caught). */
void dp_disk_wipe(dp_disk *disk, bool keep_vote_key);
/* A backup of records, checkpoints and objects, with an older pending row; never of the vote table.
 * incarnation goes on. */
void dp_disk_lose_votes(dp_disk *disk, bool keep_vote_key, uint32_t records_kept);

/* The record of the next slot has long been durable. Both are copied; before the disk is used by a
 * shadow. */
void dp_disk_add_record(dp_disk *disk, dp_view record, dp_view cert);

/* Objects that are there, whole or in part. */
uint32_t dp_disk_objects(const dp_disk *disk);
bool dp_disk_holds(const dp_disk *disk, uint32_t object);
void dp_disk_use(dp_disk *disk, uint32_t object, uint32_t use, bool on);
bool dp_disk_uses(const dp_disk *disk, uint32_t object, uint32_t use);
/* Part of the object cannot be read: it is not whole any more. Its uses stay. */
void dp_disk_spoil(dp_disk *disk, uint32_t object);
/* The last chunk has come: from now on the object is held. Of what is not there in part nothing
 * happens. */
void dp_disk_complete(dp_disk *disk, uint32_t object);

/* Queue a write that takes took_us after those before it; the bytes in it become the disk's.
 * Returns when it ends. */
uint64_t dp_disk_begin(dp_disk *disk, const dp_disk_write *write, uint64_t now_us,
                       uint64_t took_us);
/* Is this chunk that came from a peer under way? index 0 for an object of one. */
bool dp_disk_is_writing(const dp_disk *disk, uint32_t object, uint32_t index);
/* From now on the writes under way end so many times sooner. */
void dp_disk_hasten(dp_disk *disk, uint64_t now_us, uint32_t times);
/* The oldest write has ended: it is durable. The caller frees it with dp_disk_write_free. NULL if
 * there is none. */
dp_disk_write *dp_disk_end(dp_disk *disk);
/* The oldest write has failed: nothing of it is on the disk. The same answer. */
dp_disk_write *dp_disk_fail(dp_disk *disk);
void dp_disk_write_free(dp_disk_write *write);
/* A crash: a random prefix of what was under way had reached the platter. */
void dp_disk_crash(dp_disk *disk, dp_rng *rng);

#endif
