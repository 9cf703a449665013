/* The trainer as the node knows it, the publication under way, and the checkpoints. */
#ifndef DP_GOSSIP_TRAINING_TRAINING_H
#define DP_GOSSIP_TRAINING_TRAINING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/run/part_cuts.h"
#include "gossip/catchup/chain.h"
#include "gossip/core/limits.h"
#include "gossip/event/event.h"
#include "gossip/round/round_msg.h"

enum {
    DP_PENDING_ROW_MAX = 2048,
};

/* The publication under way, or the last one: its row is replaced by the next. Row: u8 version 3
 * | READY message | 32 root of a | u64 bytes of a | u64 slot | 32 root of the F that went into it,
 * or zero | u64 order of its row. In a run of parts version 4: u8 version | u16 size
 * | READY message | the same | 32 root of its blob | u8 n parts | u16 first share of each. */
typedef struct dp_pending {
    bool has;
    bool durable;
    bool settled;   /* the trainer has been told its outcome */
    bool made_here; /* by a trainer of this process, not found on the disk */
    bool lost;      /* the vector cannot be read any more, */
    bool blob_lost; /* ... or the blob: no trainer is given it again */
    dp_ready ready;
    dp_hash a_root;
    uint64_t a_bytes;
    uint64_t slot;
    dp_hash f_root;
    uint64_t f_order;  /* all rows of F up to this one went into it, or into an earlier one */
    dp_hash blob_root; /* the blob as a whole; of parts nobody else has it */
    dp_part_cuts cuts; /* of parts */
} dp_pending;

typedef struct dp_train {
    bool opening; /* DP_DO_TRAINER_OPEN was asked */
    bool fresh;   /* loaded, residual and pending not yet brought back */
    /* the trainer's work may come from a row that an earlier process wrote, maybe long ago */
    bool revived;
    uint64_t emptied; /* round at which there was no work: present work is not older */
    bool empty;       /* there is none: nothing ages, and nothing is said of it */
    bool training;
    bool publishing;
    dp_time scripted_at; /* the last script came; zero: none has */
    /* of the last DP_DO_TRAIN, and the samples granted in all at that time */
    uint64_t train_round;
    uint64_t train_granted;
    dp_hash publish_base;
    dp_part_cuts publish_cuts;
    uint64_t publish_order; /* of the newest row of F then */
    bool row_failed;
    bool row_waits;  /* a row is to be written when the one under way has ended */
    dp_time save_at; /* DP_DO_SAVE for applied is asked then, unless it is a checkpoint by then */
    uint32_t saves;  /* how often it was */
    /* the published or frozen work is of samples outside of this node's lease: the next load drops
     * it */
    bool spoiled;
    uint64_t moving_round;
    dp_hash moving_root; /* zero: from the seed */
    uint32_t steps;
    uint64_t tokens;
    uint64_t turn_round; /* for which turn_before (turn.h) was found */
    uint32_t turn_before;
    dp_time began; /* the own round */
    dp_pending pending;
    uint32_t op; /* of the DP_STORE_PENDING under way */
    uint8_t row[DP_PENDING_ROW_MAX];
    uint64_t exchanges; /* since the last publication */
    uint64_t mixed;     /* ever */
    /* A trainer whose states are not the certified ones: from the third time in a row it rests,
     * each time for longer. */
    uint32_t strikes;
    /* certified states in a row that were its own; DP_MATCHES_MIN forgive all strikes */
    uint32_t matches;
    uint64_t diverged;          /* strikes ever */
    dp_time barred;             /* until then it loads nothing */
    dp_apply_item *apply_items; /* of the DP_DO_APPLY under way */
} dp_train;

enum { DP_STRIKES_MAX = 3, DP_MATCHES_MIN = 8, DP_BAR_DOUBLINGS_MAX = 6 };
#define DP_BAR_US (60 * DP_SECOND)

/* ---- the publication: pending.c ---- */

/* The publication waits for its slot. */
bool dp_train_undecided(const dp_node *node);
void dp_train_write_row(dp_node *node);
void dp_train_published(dp_node *node, const dp_event *event);
/* ---- replay.c ---- */

/* Applies the round after the one that the trainer stands at, once its updates are here. */
void dp_train_replay(dp_node *node);
/* The trainer makes no steps until it is told from where to go on. */
void dp_train_stop(dp_node *node);
/* A DP_EV_APPLIED. */
void dp_train_applied(dp_node *node, const dp_event *event);

/* ---- the trainer: train.c ---- */

/* Reserves memory for training in a run whose records list at most so many contributions. DP_NOMEM;
 * close frees it. */
DP_MUST dp_status dp_train_open(dp_node *node, uint32_t listed_max);
void dp_train_close(dp_node *node);
/* The trainer has frozen its work for an exchange; an exchange has changed its weights. */
void dp_train_frozen(dp_node *node);
void dp_train_mixed(dp_node *node);

void dp_train_start(dp_node *node);
/* The own part of the round under way has had its time or its steps, or enough others have
 * published theirs. */
bool dp_train_is_due(const dp_node *node);
void dp_train_event(dp_node *node, const dp_event *event);
bool dp_train_stored(dp_node *node, uint32_t op, dp_status status);
dp_status dp_train_restore(dp_node *node, dp_view row);
/* Of such a row: the parts of the publication; n = 0: it is whole. DP_BADMSG. */
DP_MUST dp_status dp_train_pending_parts(dp_view row, dp_part_list *parts);
void dp_train_tick(dp_node *node);
/* It cannot be read here any more: a checkpoint of it is neither loaded nor told of. */
void dp_train_lost(dp_node *node, const dp_hash *root);
void dp_train_came(dp_node *node, const dp_hash *root); /* It is whole on this disk. */
/* Orders the next steps that the trainer can do: load, apply, train, publish. */
void dp_train_advance(dp_node *node);
void dp_train_certified(dp_node *node, uint64_t round);
dp_time dp_train_wake(const dp_node *node);
void dp_train_announce(dp_node *node);
uint32_t dp_train_lambda(uint64_t gap);
uint32_t dp_train_fade(dp_train *train, const dp_history_row *row);

#endif
