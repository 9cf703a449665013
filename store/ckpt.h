/* Checkpoints: the list of states by round. A state itself is an object (object.h); this file finds
 * the newest that verifies and decides which to keep.
 *
 * After meta.db was lost with the list, the newest whole state of each run is a recovered
 * checkpoint: its round and its bytes are known, but not the record that certified it. It stays
 * until a checkpoint of its round or of a later one is complete.
 *
 * Retention per run (SAFETY R7): the last two complete ones; the newest older than an hour, and the
 * oldest within the hour, which will replace it; the same for a day; and those marked kept. */
#ifndef DP_STORE_CKPT_H
#define DP_STORE_CKPT_H

#include "store/pieces.h"

enum {
    DP_CKPTS_MAX = 64, /* Rows per run; begin prunes, then gives DP_TOOBIG. */
    DP_LEASE_S = 60,
    DP_LEASES_MAX = 2 /* states that peers may be fetching at once */
};

typedef enum dp_ckpt_state {
    DP_CKPT_WRITING = 0, /* Dropped at start. */
    DP_CKPT_COMPLETE,
    DP_CKPT_KEPT, /* Complete, and never pruned. */
    DP_CKPT_BAD,  /* Failed verification; holds no bytes. */
} dp_ckpt_state;

typedef struct dp_ckpt {
    uint64_t round;      /* One checkpoint per run and round. */
    uint64_t slot;       /* Slot of the record that made this state; 0: recovered. */
    dp_hash state_root;  /* As certified by the voters; opaque here. Zero: recovered. */
    dp_hash object;      /* Root of the object that holds the tensors. */
    uint64_t created_ms; /* Unix time, given by the caller; 0: recovered. */
    dp_ckpt_state state; /* Written by this module. */
} dp_ckpt;

bool dp_ckpt_is_recovered(const dp_ckpt *ckpt);

/* Announces a checkpoint; from now on its object is kept. Replaces an incomplete row of the same
 * round, or a recovered one; another complete one gives DP_EXISTS. */
DP_MUST dp_status dp_ckpt_begin(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt);
/* Marks it complete. DP_AGAIN: its object is not complete. DP_NOTFOUND: never begun. */
DP_MUST dp_status dp_ckpt_commit(dp_store *store, const dp_hash *run, uint64_t round);
/* begin and commit in one, for an object that is complete and pinned by pin. Then removes the pin
 * and calls dp_ckpt_prune. On failure no row is left. */
DP_MUST dp_status dp_ckpt_adopt(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt,
                                const dp_pin *pin);
/* dp_object_put of a state in memory and dp_ckpt_adopt. ckpt->object is filled in. */
DP_MUST dp_status dp_ckpt_save(dp_store *store, const dp_hash *run, dp_ckpt *ckpt, dp_view tensors);

/* Newest first, all states; at most max rows, *count of them. */
DP_MUST dp_status dp_ckpt_list(dp_store *store, const dp_hash *run, dp_ckpt *list, uint32_t max,
                               uint32_t *count);
/* The newest complete one, not verified. DP_NOTFOUND. */
DP_MUST dp_status dp_ckpt_newest(dp_store *store, const dp_hash *run, dp_ckpt *ckpt);

/* The reading of the complete checkpoints of a run, newest first. Zero but for run, pieces.take and
 * pieces.context at the beginning. */
typedef struct dp_ckpt_reading {
    dp_hash run;
    dp_ckpt ckpt;             /* being read, or read last */
    dp_pieces_reading pieces; /* of its state: take is called with next == 0 where one begins */
    bool begun;               /* ckpt is being read */
    bool pinned;              /* and kept by pin, whatever retention drops meanwhile */
    dp_pin pin;
    uint32_t n_good; /* that were read whole ... */
    uint32_t n_bad;  /* ... and that are damaged */
} dp_ckpt_reading;

/* Reads and checks the next piece (pieces.h). DP_AGAIN: call again. DP_OK: ckpt was read whole; the
 * next call begins the next older one. DP_NOTFOUND: there is no other. A damaged one is marked bad,
 * its chunks so far are void, and the next older one follows. Other failures end the reading; take
 * must not fail with a status that dp_pieces_read has. */
DP_MUST dp_status dp_ckpt_read(dp_store *store, dp_ckpt_reading *reading);
/* Marks a complete one as kept, or removes the mark. DP_NOTFOUND. */
DP_MUST dp_status dp_ckpt_keep(dp_store *store, const dp_hash *run, uint64_t round, bool keep);
/* Leases a state that a peer is fetching: it stays for DP_LEASE_S seconds from now, also if
 * retention drops its checkpoint. now_s: a clock of this process that never goes back, from 1.
 * Called for every chunk; writes rarely. DP_NOTFOUND: no state of this run. DP_TOOBIG:
 * DP_LEASES_MAX other states are leased. */
DP_MUST dp_status dp_ckpt_lease(dp_store *store, const dp_hash *run, const dp_hash *object,
                                uint64_t now_s);
/* Ends leases that have run out. The next dp_object_collect drops their objects. */
DP_MUST dp_status dp_ckpt_end_leases(dp_store *store, const dp_hash *run, uint64_t now_s);
/* At start, where the clock is a new one: removes all leases and all pins of states that an earlier
 * process left. The state whose fetch began last (its pin has round 0), or that an earlier start
 * carried over incomplete, is leased anew, so that its chunks survive DP_LEASE_S until the fetch
 * goes on. */
DP_MUST dp_status dp_ckpt_carry_over(dp_store *store, const dp_hash *run, uint64_t now_s);

/* Applies the retention rule and drops objects that nothing names any more. */
DP_MUST dp_status dp_ckpt_prune(dp_store *store, const dp_hash *run, uint64_t now_ms);

#endif
