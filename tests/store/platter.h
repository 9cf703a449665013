/* A disk in memory behind a SQLite VFS of its own, which remembers what was synced: the power can
 * be cut at any write, and any call can be made to fail. One thread. Not a file system: a handful
 * of files without folders.
 *
 * Model of a power cut. Of the bytes written since the last sync of their file, each 512-byte
 * sector is on the disk or not, alone and in any order; or all of them, as after SIGKILL; or none;
 * or those before some instant, as on a disk that keeps order. A sector that was under way may be
 * torn at any byte, or hold noise where it was written. Bytes that nobody wrote stay (SQLite calls
 * it powersafe overwrite). A truncate happens as a whole or not at all; a file made and not yet
 * synced, or removed without a sync of the folder, is there or not; bytes beyond the old end that
 * were lost read as zeros. After the cut nothing reaches the disk, and every call fails. */
#ifndef DP_TESTS_STORE_PLATTER_H
#define DP_TESTS_STORE_PLATTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"

enum {
    DP_PLATTER_FILES_MAX = 12,
    DP_PLATTER_SECTOR = 512,
    DP_PLATTER_NAME_MAX = 48,
    DP_PLATTERS_MAX = 64, /* open at once */
};
#define DP_PLATTER_FILE_BYTES_MAX ((int64_t)256 << 20)

typedef enum dp_platter_fault {
    DP_PLATTER_SOUND = 0,
    DP_PLATTER_CUT,        /* the power goes in the middle of this change */
    DP_PLATTER_READ_EIO,   /* a read gives an I/O error ... */
    DP_PLATTER_READ_SHORT, /* ... or fewer bytes than are there */
    DP_PLATTER_WRITE_EIO,
    DP_PLATTER_FULL, /* what would make a file grow is refused */
    DP_PLATTER_SYNC_EIO,
    DP_PLATTER_OPEN_EIO, /* a file does not open, or is not removed, or its size is not told */
    DP_PLATTER_FAULTS
} dp_platter_fault;

/* Mistakes that the tests must notice. */
typedef enum dp_platter_sync {
    DP_PLATTER_HONEST = 0,
    DP_PLATTER_LIES,   /* sync says yes and does nothing */
    DP_PLATTER_NORMAL, /* the store asks for synchronous=FULL and gets NORMAL ... */
    DP_PLATTER_OFF     /* ... or OFF */
} dp_platter_sync;

typedef struct dp_platter dp_platter;

/* NULL without memory, or above DP_PLATTERS_MAX. */
dp_platter *dp_platter_open(dp_platter_sync sync);
/* No database may be open on it. Accepts NULL. */
void dp_platter_close(dp_platter *platter);
/* Name of the VFS, for dp_store_options. */
const char *dp_platter_vfs(const dp_platter *platter);

/* From now on calls of the kind that the fault is about are counted (changes, for a cut: writes,
 * truncates, syncs, files made and removed), and the at-th, from 1, fails; with lasts all later
 * ones too. at 0: none, only counted. */
void dp_platter_arm(dp_platter *platter, dp_platter_fault fault, uint64_t at, bool lasts);
/* Calls counted since. */
uint64_t dp_platter_count(const dp_platter *platter);
/* The power was cut. */
bool dp_platter_dead(const dp_platter *platter);
/* Cut it now. */
void dp_platter_kill(dp_platter *platter);
/* After a cut, with all databases closed: draws what of the unsynced bytes is on the disk, and
 * power is back. */
void dp_platter_settle(dp_platter *platter, dp_rng *rng);
/* All files are gone, as on a new disk. */
void dp_platter_wipe(dp_platter *platter);
/* Bytes in all files. */
uint64_t dp_platter_bytes(const dp_platter *platter);

#endif
