/* The disk of a simulated node: durable rows, and a queue of writes, of which a crash leaves a
 * random prefix. */
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
    /* a use: made by the trainer, and no row names it yet. The trainer may make the same bytes
     * twice, so dropping an older row must not drop this object */
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

/* The event that the host passes to the node when a write has ended. */
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
    /* number of the vote key in its vote table; a new table makes a new key */
    uint32_t vote_key;
    dp_disk_write *first; /* under way, in order */
    dp_disk_write *last;
    uint32_t n_writes;
    uint64_t free_us;
    dp_shadow *shadow; /* NULL: only the model */
} dp_disk;

void dp_disk_close(dp_disk *disk);
/* Loses everything. The next vote key is a new one, unless the old one was kept elsewhere (a
 * mistake that the oracle must find). */
void dp_disk_wipe(dp_disk *disk, bool keep_vote_key);
/* Restores a backup of records, checkpoints and objects, with an older pending row; never of the
 * vote table. incarnation does not go back. */
void dp_disk_lose_votes(dp_disk *disk, bool keep_vote_key, uint32_t records_kept);

/* Adds the record of the next slot as if it had been durable for long. Both are copied; call this
 * before a shadow uses the disk. */
void dp_disk_add_record(dp_disk *disk, dp_view record, dp_view cert);

/* Objects that are present, whole or in part. */
uint32_t dp_disk_objects(const dp_disk *disk);
bool dp_disk_holds(const dp_disk *disk, uint32_t object);
void dp_disk_use(dp_disk *disk, uint32_t object, uint32_t use, bool on);
bool dp_disk_uses(const dp_disk *disk, uint32_t object, uint32_t use);
/* A part of the object cannot be read: it is no longer whole. Its uses remain. */
void dp_disk_spoil(dp_disk *disk, uint32_t object);
/* The last chunk is written: from now on the object is held. Does nothing if no part of it is
 * here. */
void dp_disk_complete(dp_disk *disk, uint32_t object);

/* Queues a write that takes took_us after those before it, and takes its bytes. Returns the time at
 * which it ends. */
uint64_t dp_disk_begin(dp_disk *disk, const dp_disk_write *write, uint64_t now_us,
                       uint64_t took_us);
/* Is the write of this chunk, which came from a peer, under way? index 0 for an object of one
 * chunk. */
bool dp_disk_is_writing(const dp_disk *disk, uint32_t object, uint32_t index);
/* From now on the queued writes end so many times sooner. */
void dp_disk_hasten(dp_disk *disk, uint64_t now_us, uint32_t times);
/* The oldest write has ended: it is durable. The caller frees it with dp_disk_write_free. NULL if
 * there is none. */
dp_disk_write *dp_disk_end(dp_disk *disk);
/* The oldest write has failed: nothing of it is on the disk. Returns like dp_disk_done. */
dp_disk_write *dp_disk_fail(dp_disk *disk);
void dp_disk_write_free(dp_disk_write *write);
/* A crash: a random prefix of the queued writes has reached the disk. */
void dp_disk_crash(dp_disk *disk, dp_rng *rng);

#endif
