/* Checkpoints: which object is the state after which round. The bytes are an object (object.h);
 * this file keeps the list, finds the newest that verifies, and decides which to keep.
 *
 * Retention (SAFETY R7), per run: the last two complete ones; the newest older than an hour and the
 * oldest within it, which will take its place; the same for a day; and those marked kept. */
#ifndef DP_STORE_CKPT_H
#define DP_STORE_CKPT_H

#include "store/object.h"

enum {
    DP_CKPTS_MAX = 64, /* Rows per run; begin prunes, then gives DP_TOOBIG. */
    DP_LEASE_S = 60,
    DP_LEASES_MAX = 2 /* states that peers may keep from going */
};

typedef enum dp_ckpt_state {
    DP_CKPT_WRITING = 0, /* Dropped at start. */
    DP_CKPT_COMPLETE,
    DP_CKPT_KEPT, /* Complete, and never pruned. */
    DP_CKPT_BAD,  /* Failed verification; holds no bytes. */
} dp_ckpt_state;

typedef struct dp_ckpt {
    uint64_t round;      /* One checkpoint per run and round. */
    uint64_t slot;       /* Slot of the record that made this state. */
    dp_hash state_root;  /* As certified by the voters; opaque here. */
    dp_hash object;      /* Root of the object that holds the tensors. */
    uint64_t created_ms; /* Unix time, given by the caller. */
    dp_ckpt_state state; /* Written by this module. */
} dp_ckpt;

/* Write down that a checkpoint is coming; from now on its object is kept. A row of the same round
 * that is not complete is replaced; a complete one gives DP_EXISTS. */
DP_MUST dp_status dp_ckpt_begin(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt);
/* DP_AGAIN: its object is not complete. DP_NOTFOUND: never begun. */
DP_MUST dp_status dp_ckpt_commit(dp_store *store, const dp_hash *run, uint64_t round);
/* begin and commit in one for an object that is here and pinned: on failure there is nothing of it.
 * Then the pin goes and dp_ckpt_prune follows. */
DP_MUST dp_status dp_ckpt_adopt(dp_store *store, const dp_hash *run, const dp_ckpt *ckpt,
                                const dp_pin *pin);
/* dp_object_put of a state in memory and dp_ckpt_adopt. ckpt->object is filled in. */
DP_MUST dp_status dp_ckpt_save(dp_store *store, const dp_hash *run, dp_ckpt *ckpt, dp_view tensors);

/* Newest first, all states; at most max rows, *count of them. */
DP_MUST dp_status dp_ckpt_list(dp_store *store, const dp_hash *run, dp_ckpt *list, uint32_t max,
                               uint32_t *count);
/* The newest complete one, not verified. DP_NOTFOUND. */
DP_MUST dp_status dp_ckpt_newest(dp_store *store, const dp_hash *run, dp_ckpt *ckpt);
/* The newest complete one of which every hash is right; those that fail are marked bad (*n_bad of
 * them) and the next older is tried. tensors: NULL to verify only, else cleared and filled with the
 * state (its max must allow it, else DP_TOOBIG). DP_NOTFOUND: none is left, ask the peers. */
DP_MUST dp_status dp_ckpt_load(dp_store *store, const dp_hash *run, dp_ckpt *ckpt, dp_buf *tensors,
                               uint32_t *n_bad);
/* Verify every complete checkpoint of the run and mark those that fail. */
DP_MUST dp_status dp_ckpt_verify(dp_store *store, const dp_hash *run, uint32_t *n_good,
                                 uint32_t *n_bad);
/* keep or unkeep a complete one. DP_NOTFOUND. */
DP_MUST dp_status dp_ckpt_keep(dp_store *store, const dp_hash *run, uint64_t round, bool keep);
/* A peer is fetching this state: it stays for DP_LEASE_S seconds from now, also when it stops being
 * a checkpoint. now_s: any clock of this process that does not go back, from 1. Called for every
 * chunk; writes once in a while. DP_NOTFOUND: no state of this run. DP_TOOBIG: DP_LEASES_MAX other
 * states are leased. */
DP_MUST dp_status dp_ckpt_lease(dp_store *store, const dp_hash *run, const dp_hash *object,
                                uint64_t now_s);
/* End those that ran out. What they kept goes with the next dp_object_collect. */
DP_MUST dp_status dp_ckpt_end_leases(dp_store *store, const dp_hash *run, uint64_t now_s);
/* At start, when the clock is another and nobody is left to let go what an earlier life pinned: all
 * leases end, and all pins of states. But the state whose fetch was begun last (its pin has round
 * 0), or that an earlier start carried over and is not whole, is leased anew, so that what came of
 * it waits for DP_LEASE_S until the fetch begins again. */
DP_MUST dp_status dp_ckpt_carry_over(dp_store *store, const dp_hash *run, uint64_t now_s);

/* Apply the retention rule and drop the objects that are left without a reason. */
DP_MUST dp_status dp_ckpt_prune(dp_store *store, const dp_hash *run, uint64_t now_ms);

#endif
