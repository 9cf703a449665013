/* The inside of a node: the parts and what they share. Only the files that make up the node include it. */
#ifndef DP_GOSSIP_NODE_NODE_INTERNAL_H
#define DP_GOSSIP_NODE_NODE_INTERNAL_H

#include "base/mutation.h"
#include "base/rng.h"
#include "base/trainer/trainer_msg.h"
#include "gossip/catchup/fork.h"
#include "gossip/core/buggify.h"
#include "gossip/core/msg.h"
#include "gossip/ledger/valid.h"
#include "gossip/ledger/wire.h"
#include "gossip/member/links.h"
#include "gossip/member/members.h"
#include "gossip/node/node.h"
#include "gossip/pairs/mix.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/claim.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge.h"
#include "gossip/round/lists.h"
#include "gossip/round/round_msg.h"
#include "gossip/round/turn.h"
#include "gossip/round/witness.h"
#include "gossip/transfer/doubt.h"
#include "gossip/transfer/relay.h"
#include "gossip/transfer/spread.h"
#include "gossip/vote/commit.h"

enum {
    DP_WINDOW_ROUNDS = 8,  /* J: blobs of so many rounds before the newest checkpoint are kept */
    DP_RING_ROUNDS = 64,   /* decided rounds remembered; older blobs go in any case */
    DP_CLAIMS_BEYOND = 96, /* updates of a round that a node follows, beyond what a record lists */
    DP_CLAIMS_MAX = 2 * DP_LISTED_MAX + DP_CLAIMS_BEYOND,
    DP_HELD_STANDARD = 4096, /* objects known to be here; in a run with lists more: */
    DP_HELD_PER_LISTED = 16, /* ... so many for each contribution of a record */
    DP_CKPTS_MAX = 4,        /* own checkpoints remembered */
    DP_PENDING_ROW_MAX = 2048,
    DP_PROOF_ROW_HEAD = 1 + 32,
    DP_PROOF_ROW_MAX = 1 + 2 + 2 * DP_FORK_BYTES_MAX,
    DP_OFFERS_MAX = 32, /* candidates for the vote */
    DP_REMOVES_MAX = 8,
    DP_FENCES_MAX = 32,     /* that are asked for: one of each asker */
    DP_DATA_AT_ONCE = 4,    /* shards of data that are fetched at a time */
    DP_CHECKS_MAX = 24,     /* blobs at the trainer to be decoded */
    DP_DROPS_PER_TICK = 128 /* blobs of large old rounds that are let go at a time */
};
#define DP_STATE_PATIENCE_US (5 * DP_SECOND) /* without progress another state is tried */
#define DP_REPEAT_US_MAX (4 * DP_SECOND)
#define DP_REPEAT_US (500 * DP_MS) /* READY, HAVE, STATE, VOTER_OK are told again */
#define DP_CLAIM_PATIENCE_US                                                                       \
    (2 * DP_SECOND) /* a claim of which nothing has come gives way then, when there are too many */
#define DP_PROOF_PATIENCE_US (2 * DP_SECOND) /* after a PROOF whose signatures do not hold */
#define DP_FENCE_US (30 * DP_SECOND)      /* so long a request for a fence stands without another */
#define DP_VOTER_DEAD_US (60 * DP_SECOND) /* then a candidate takes its place */
#define DP_RECORD_SKEW_MS                                                                          \
    (120ULL * 1000) /* a voter waits until a record's time is at most so far ahead */
#define DP_RECORD_PATIENCE_US (20 * DP_SECOND) /* but not longer than this in one slot */

/* A decided round, as far as replaying and settling need it. */
typedef struct dp_ring_item {
    dp_peer peer;
    dp_hash root;
    uint64_t bytes;
    uint32_t q;
    uint32_t clip;
    uint32_t first; /* shares of the vector (part.h) */
    uint32_t end;
} dp_ring_item;

typedef struct dp_ring_row {
    uint64_t round; /* 0: empty */
    uint64_t slot;
    dp_hash digest; /* of the ledger after it */
    uint64_t tokens;
    uint32_t alpha;
    bool touched; /* this node is listed or late in it */
    bool waits;   /* it is not listed, and what it told for this round may count in the next */
    uint64_t gap; /* rounds up to this one since it last was */
    bool certified;
    bool proven;  /* by the chain: by the record after it, or a FORK that goes on from it */
    dp_hash root; /* the certified state root */
    bool dropped; /* its blobs have been let go */
    bool rest;    /* ... but for some, for which one step had no room */
    uint32_t n;
    uint32_t here; /* so many first items were held when `unheld` of the node was: */
    uint64_t here_as_of;
    dp_ring_item *items;   /* contributions; of parts: results, each with its owner */
    uint32_t contributors; /* that the record lists */
    dp_part_cuts cuts;     /* of parts; else n = 0 */
    bool own; /* lists this node: the publication, its clip, and of parts those that count it */
    dp_hash own_root;
    uint32_t own_clip;
    uint32_t own_taken;
    uint32_t own_age; /* 1: it was made for the round before */
} dp_ring_row;

typedef struct dp_unlisted {
    dp_hash root;
    uint64_t round;
} dp_unlisted;

/* Records decided, and the one being written. */
typedef struct dp_chain {
    uint32_t op; /* of the DP_STORE_DECIDED under way, 0: none */
    dp_time stored_at;
    uint8_t *record; /* whole: DP_RECORD_WHOLE_MAX in a run with lists, else DP_RECORD_BYTES_MAX */
    size_t record_size;
    dp_hash record_hash;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    size_t cert_size;
    dp_record decoded;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    bool failed; /* the write failed: try again */
    bool
        tells; /* with lists: this node tells all of the record when it is durable, and can be had */
    dp_ring_row ring[DP_RING_ROUNDS];
    dp_ring_item *ring_items; /* as many for each row as a record lists */
    /* With lists: updates that no record counts and that one step had no room to let go; as many as a node follows claims. */
    uint32_t n_unlisted;
    uint32_t unlisted_max;
    dp_unlisted *unlisted;
    dp_hash genesis_digest;
    bool genesis_certified;
    dp_hash genesis_root;
    uint64_t gap;       /* rounds since this node was last listed or late */
    uint64_t own_round; /* last round of which a publication of this node counts; 0: none */
    dp_hash own_root;
    uint32_t own_clip;
    uint32_t own_taken;
    dp_part_cuts cuts; /* of the record being applied */
    uint32_t listed_last;
    dp_time decided_at;
} dp_chain;

/* A contribution to the round under way. */
typedef struct dp_claim {
    dp_ready ready;
    uint32_t have; /* bit per voter that told it holds the blob */
    bool held;     /* the blob is here */
    uint64_t size; /* of the blob that is here; a claim may lie */
    bool checking;
    bool checked;
    bool bad;
    bool judging; /* in a run that judges (judge.h), as what follows */
    bool suspect; /* its gain is measured too */
    dp_judgement found;
    bool evidence;   /* met in a record: not to be listed by this node unless its READY came too */
    dp_time told_at; /* when it was heard of */
    dp_time held_at; /* when its blob was first here */
    unsigned __int128 energy;
    struct { /* of parts, a bit for each: their objects, as above */
        uint32_t held;
        uint32_t checking;
        uint32_t checked;
        uint32_t bad;
        uint32_t nothing; /* checked, and no element of them moves: such may well be equal */
    } parts;
} dp_claim;

typedef struct dp_state_vote {
    bool known;
    uint64_t round;
    dp_hash root;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_state_vote;

typedef struct dp_fence_wish {
    dp_fence fence;
    dp_peer asker;
    dp_time asked_at;
} dp_fence_wish;

typedef struct dp_round {
    uint32_t n_claims;
    uint32_t claims_max;
    uint32_t ready_max; /* of these told by READY; with lists a record is judged with the rest */
    dp_claim *claims;
    dp_map claim_of;               /* index of what a peer claims itself */
    bool gave_way[DP_MEMBERS_MAX]; /* by index of a member: its claim made room in this round */
    bool unwanted;                 /* blobs of some could not be wanted: too many were */
    uint32_t n_voters;             /* of whom states are */
    dp_voter voters[DP_VOTERS_MAX];
    dp_state_vote states[DP_VOTERS_MAX];
    dp_time slot_opened;
    dp_time opened;    /* zero: this node has not applied the round before */
    dp_time enough_at; /* K contributions were ready and held; zero: not yet */
    uint64_t grace_us; /* after that, as it was last found */
    dp_time close_at;  /* the close condition was first seen; zero: not yet */
    dp_time bid_at;
    dp_time ahead_since; /* in this slot a record from the future was met; zero: none */
    uint32_t bids;
    dp_time repeat_at; /* what is missing is looked for; set to now, all is told at once */
    dp_time repeat_planned;
    dp_time told_at;  /* when peers were last told of the round */
    uint64_t tell_us; /* until they are told again */
    dp_deadline deadline;
    uint8_t missed
        [DP_MEMBERS_MAX]; /* by index of a member: rounds in a row in which it worked and was not listed */
    /* judged last, so that signatures are checked once */
    dp_hash judged;
    dp_status verdict;
    dp_record judged_record;
    dp_admitted judged_admitted[DP_CONFIG_ADMIT_MAX];
    dp_record draft;
    dp_lists lists;    /* of records of the slot under way */
    uint8_t *whole;    /* DP_RECORD_WHOLE_MAX; NULL in a run without lists, as the next one */
    uint8_t *vote_row; /* the row of the vote with the whole record in it */
    struct dp_told_guests *guests;
    struct dp_invite_wishes *invites; /* invite_wish.h */
    struct dp_rotate *rotate;         /* rotate.h */
    dp_hash lists_for;                /* the record whose lists were last asked for: */
    dp_time lists_asked_at;
    uint32_t lists_asked; /* times */
    dp_span fsync;
    uint32_t n_offers;
    dp_voter_ok_msg offers[DP_OFFERS_MAX];
    uint32_t n_removes;
    dp_remove removes[DP_REMOVES_MAX];
    uint32_t n_fences;
    dp_fence_wish fences[DP_FENCES_MAX];
    dp_time voter_seen[DP_VOTERS_MAX]; /* when this voter was last not dead */
} dp_round;

typedef enum dp_trainer_state {
    DP_TRAINER_OFF = 0, /* no process, or not open */
    DP_TRAINER_EMPTY,   /* open, holds no theta */
    DP_TRAINER_MOVING,  /* INIT or LOAD under way */
    DP_TRAINER_SET      /* holds theta of round applied */
} dp_trainer_state;

/* The publication under way, or the last one: its row is replaced by the next. Row: u8 version 3 | READY message | 32 root of
 * a | u64 bytes of a | u64 slot | 32 root of the F that went into it, or zero | u64 order of its row. In a run of parts version 4:
 * u8 version | u16 size | READY message | the same | 32 root of its blob | u8 n parts | u16 first share of each. */
typedef struct dp_pending {
    bool has;
    bool durable;
    bool settled;   /* the trainer has been told what became of it */
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

typedef struct dp_ckpt {
    bool has;
    bool bad;
    bool fetched; /* held by DP_USE_STATE; else the driver's own checkpoints hold it */
    uint64_t round;
    dp_hash root;
    uint64_t bytes;
    dp_time since; /* zero: of an earlier life */
} dp_ckpt;

typedef struct dp_train {
    dp_trainer_state state;
    uint32_t checks;      /* DP_DO_CHECK without answer, */
    uint64_t check_bytes; /* and what they hold */
    bool opening;         /* DP_DO_TRAINER_OPEN was asked */
    bool fresh;           /* loaded, residual and pending not yet brought back */
    bool
        revived; /* what the trainer holds may come from a row that an earlier process wrote, maybe long ago */
    bool has_theta;
    uint64_t applied;
    uint64_t emptied; /* round at which all work was discarded: what there is now is not older */
    dp_hash tensor_root;
    uint64_t tensor_bytes;
    dp_hash state_root; /* own, of applied */
    bool applying;
    bool training;
    bool publishing;
    uint64_t
        train_round; /* of the last DP_DO_TRAIN, and what was granted in all when it was told */
    uint64_t train_granted;
    dp_hash publish_base;
    dp_part_cuts publish_cuts;
    uint64_t publish_order; /* of the newest row of F then */
    bool row_failed;
    bool row_waits; /* a row is to be written when the one under way has ended */
    bool saved;     /* DP_DO_SAVE was asked for applied */
    bool
        spoiled; /* what was published or frozen is of samples that are not this node's: with the next load it goes */
    uint64_t moving_round;
    dp_hash moving_root; /* zero: from the seed */
    uint32_t steps;
    uint64_t step_us;
    uint64_t tokens;
    uint64_t turn_round; /* for which turn_before (turn.h) was found */
    uint32_t turn_before;
    dp_time began; /* the own round */
    dp_pending pending;
    uint32_t op; /* of the DP_STORE_PENDING under way */
    uint8_t row[DP_PENDING_ROW_MAX];
    dp_ckpt ckpts[DP_CKPTS_MAX];
    uint32_t uplink;    /* kB/s, as last told; 0: unknown */
    uint64_t exchanges; /* since the last publication */
    uint64_t mixed;     /* ever */
    /* A trainer whose states are not the certified ones: from the third time in a row it rests, each time for longer. */
    uint32_t strikes;
    uint32_t
        matches; /* certified states in a row that were its own; DP_MATCHES_MIN forgive all strikes */
    uint64_t diverged; /* strikes ever */
    dp_time barred;    /* until then it loads nothing */
} dp_train;

enum { DP_STRIKES_MAX = 3, DP_MATCHES_MIN = 8, DP_BAR_DOUBLINGS_MAX = 6 };
#define DP_BAR_US (60 * DP_SECOND)

typedef struct dp_catchup {
    uint8_t *records; /* a RECORDS message being worked off */
    size_t size;
    dp_wire_records parsed;
    uint32_t next;
    uint64_t hint_slot; /* somebody speaks of this slot */
    dp_peer hint_peer;
    dp_time asked_at; /* zero: nothing asked */
    dp_peer asked;
    dp_peer sender; /* of the message at hand */
    bool gained;    /* it had a record that follows */
    dp_doubt doubt;
    dp_hash part;     /* a state of which an earlier life has fetched chunks; zero: none */
    bool wants_state; /* a state object is being fetched */
    dp_hash state_root;
    uint64_t state_round;
    uint64_t state_bytes;
    dp_time state_moved; /* when a piece of it last came */
    dp_time chosen_at;
    uint32_t hasty; /* states in a row that gave way to newer ones before anything of them came */
    dp_time gave_up_at; /* when a state that did not come was last let go; zero: never */
    dp_time stuck_at;   /* a blob for the next APPLY has been missing since; zero: not */
    dp_time dials_at;
} dp_catchup;

_Static_assert((int)DP_PROOF_ROW_MAX >=
                   (int)(DP_PROOF_ROW_HEAD + DP_MSG_HEAD_BYTES + 2 * (1 + DP_VOTE_BYTES)),
               "both forms fit");
/* Of a double vote, or of two FORKs of one slot; empty while row_size is 0. */
typedef struct dp_proof {
    dp_peer culprit; /* zero for FORKs */
    size_t row_size;
    uint8_t row[DP_PROOF_ROW_MAX];
    uint32_t op; /* of the DP_STORE_PROOF under way, 0: none */
    bool failed;
    dp_time stored_at;
    dp_time again
        [DP_MEMBERS_MAX]; /* by member that sent one signed by no voter: its next one is looked at then; 0: of all relayed */
} dp_proof;

/* Of this node, when it leaves for good. */
typedef struct dp_leave {
    dp_time asked_at; /* by its owner, the last time */
    dp_time left_at;  /* the chain has taken it out: known since */
    bool voted;       /* it was a voter of the record that says so */
} dp_leave;

/* A node that the chain has let go stays so long at most for those who vote after it; they for their part keep its link as long. */
#define DP_LINGER_US (60 * DP_SECOND)
#define DP_LEAVE_US                                                                                \
    (6 * DP_SECOND) /* so long it waits to be taken out, who votes three rounds more */

typedef struct dp_held {
    dp_hash root;
    uint64_t size;
    bool used;
} dp_held;

struct dp_node {
    dp_node_config config;
    dp_manifest manifest;
    uint8_t credential[DP_CREDENTIAL_MAX];
    dp_run_id run;
    dp_peer self;
    bool started;
    dp_time now;
    uint64_t wall_ms;
    dp_time started_at;
    dp_mode mode;
    bool paused;
    bool leaving;
    bool halted;
    bool dirty; /* something changed that the end of the step must look at */
    uint64_t rejected;
    dp_rng rng;
    uint32_t buggify; /* mask of dp_bug; 0 but in the simulator */
    dp_out out;
    dp_relay relay;
    dp_beat beat;
    dp_members *members;
    dp_spread *spread;
    dp_mix *mix;
    dp_ledger ledger;
    dp_commit *commit;
    dp_chain *chain;
    dp_round *round;
    dp_part_round *parts;       /* part_round.h; NULL in a run of whole updates */
    struct dp_judging *judging; /* judge_round.h; NULL in a run that does not judge */
    dp_train train;
    dp_catchup catchup;
    dp_proof proof;
    dp_forks *forks;
    bool reopening; /* DP_DO_REOPEN was asked for */
    dp_witness *witness;
    dp_time rival_asked_at;
    dp_map held_map;
    uint32_t held_max;
    uint32_t held_free; /* no free place of held is before it */
    uint64_t unheld;    /* objects that were let go of, ever */
    dp_held *held;
    dp_apply_item *apply_items; /* of the DP_DO_APPLY under way */
    dp_remove own_remove;
    dp_leave leave;
    dp_time renew_asked_at; /* renew.c */
    uint8_t room[DP_ROUND_MESSAGE_MAX + DP_RECORD_BYTES_MAX + DP_CERT_OF_RECORD_BYTES_MAX];
};

/* node.c: small things for all */
void dp_node_note(dp_node *node, dp_note_code code, uint64_t round, const dp_peer *peer, uint64_t a,
                  uint64_t b, const char *cause);
/* A message to one peer, over a voter that hears it when there is no link. message is copied. */
void dp_node_send(dp_node *node, const dp_peer *to, dp_view message);
void dp_node_send_voters(dp_node *node, dp_view message);
void dp_node_send_all(dp_node *node, dp_view message);
uint64_t dp_node_size(const dp_node *node, const dp_hash *root);
void dp_node_hold(dp_node *node, const dp_hash *root, uint64_t size);
void dp_node_unhold(dp_node *node, const dp_hash *root);
bool dp_node_is_voter(const dp_node *node);
/* Exchanges of this peer up to this incarnation are void, by a decided record. */
void dp_node_fence(dp_node *node, const dp_peer *peer, uint64_t incarnation);
/* Everything anew from the store: the base has changed under all parts. */
void dp_node_reopen(dp_node *node);
/* Index of a linked or known member in the table, or DP_MEMBER_NONE. */
uint32_t dp_node_member_index(const dp_node *node, const dp_peer *peer);

/* node_route.c */
void dp_node_message(dp_node *node, const dp_event *event);

/* rival.c: what does not follow from the own chain. Votes and records are looked at for a voter that signed both sides. */
/* A vote of the slot under way, signature checked. */
void dp_rival_saw(void *context, const dp_vote *vote);
/* A vote of a slot that is decided here, or after another record than ours; nothing has been checked. */
void dp_rival_vote(dp_node *node, const dp_vote *vote, const dp_peer *from);
/* Record and certificate, from anywhere, of a slot that is decided here. */
void dp_rival_record(dp_node *node, uint64_t slot, dp_view record, dp_view cert);
/* The signatures under a record, each looked at by itself. */
void dp_rival_seals(dp_node *node, const dp_cert_of_record *cert, const dp_record *record,
                    const dp_hash *hash);
/* This peer has another record in this slot: ask for it, once a second at most. */
void dp_rival_fetch(dp_node *node, const dp_peer *from, uint64_t slot);

/* proof.c */
/* Two votes of one voter that contradict each other, signatures checked. */
void dp_proof_found(void *context, const dp_vote *a, const dp_vote *b);
/* from: the member whose link it came on; 0: it was relayed. DP_DENIED without a look: the last one from there held nothing. */
dp_status dp_proof_message(dp_node *node, uint32_t from, dp_view message);
dp_status dp_proof_restore(dp_node *node, dp_view row);
void dp_proof_start(dp_node *node);
bool dp_proof_stored(dp_node *node, uint32_t op, dp_status status);
void dp_proof_tick(dp_node *node);
void dp_proof_tell(dp_node *node, const dp_peer *to);
void dp_proof_repeat(dp_node *node);

/* Two FORKs of one slot. */
void dp_proof_forks(dp_node *node, const dp_fork_record *own, const dp_fork_record *other);

/* A STOP is what the row says now; a halt by two FORKs is over. */
void dp_proof_stop(dp_node *node, const dp_stop *stop);
/* Halted, and by a double vote. */
bool dp_proof_of_votes(const dp_node *node);

/* fork.c */
dp_status dp_fork_stop(dp_node *node, const dp_stop *stop);
dp_status dp_fork_stop_message(dp_node *node, dp_view message);
/* The record of this slot of the own chain; NULL: later than the chain, or too long ago. */
const dp_head *dp_fork_head(const dp_node *node, uint64_t slot);
/* This record has become the head. */
void dp_fork_applied(dp_node *node, const dp_record *record, const dp_hash *hash, dp_view bytes);
/* A FORK record from anywhere; from: who gave it, NULL for the own order. */
dp_status dp_fork_take(dp_node *node, dp_view bytes, const dp_peer *from);
void dp_fork_save_first(dp_node *node);
dp_status dp_fork_message(dp_node *node, dp_view message, const dp_peer *from);
dp_status dp_fork_restore_other(dp_node *node, dp_view bytes);
/* A chain that is known not to be ours, or not to go on. */
bool dp_fork_elsewhere(const dp_node *node, uint64_t tag);
bool dp_fork_stored(dp_node *node, uint32_t op, dp_status status);
void dp_fork_tick(dp_node *node);
void dp_fork_tell(dp_node *node, const dp_peer *to);
void dp_fork_repeat(dp_node *node);

/* chain.c */
dp_ring_row *dp_chain_row(const dp_node *node, uint64_t round);
/* Digest of the ledger after this round, certified root: false if not known. */
bool dp_chain_digest(const dp_node *node, uint64_t round, dp_hash *digest);
bool dp_chain_certified(const dp_node *node, uint64_t round, dp_hash *root);
/* A record with its certificate, from anywhere. DP_OK: being written, or known; DP_AGAIN: of a later slot, or busy. */
dp_status dp_chain_offer(dp_node *node, dp_view record, dp_view cert);
/* Somebody is known to have records that this node lacks. */
bool dp_catchup_behind(const dp_node *node);
bool dp_chain_stored(dp_node *node, uint32_t op, dp_status status);
dp_status dp_chain_restore(dp_node *node, uint64_t slot, dp_view record, dp_view cert);
void dp_chain_tick(dp_node *node);
/* The decided record of the commit machine: tell everybody, write it. */
void dp_chain_decided(dp_node *node);
/* What the ledger says to membership and heartbeats. */
void dp_chain_tell_members(dp_node *node);

/* chain_drop.c */
/* No longer needed by the round under way: let go, unless a round that may be replayed needs it. */
void dp_chain_drop(dp_node *node, const dp_hash *root, uint64_t round);
/* The trainer stands at this round: blobs up to it that are not here are not needed any more. */
void dp_chain_cancel(dp_node *node, uint64_t round);
void dp_chain_drop_row(dp_node *node, dp_ring_row *row);
/* Claims of the round that was just decided which no record counts. */
void dp_chain_drop_unlisted(dp_node *node);
/* Rows before all that a replay may begin with; two at most, since the actions of a step are bounded. */
void dp_chain_drop_old(dp_node *node);
/* Of a row with more blobs than one step has room for, some; then of what no record counts. */
void dp_chain_drop_rest(dp_node *node);

/* round.c */
void dp_round_open_slot(dp_node *node, bool new_round);
void dp_round_count_missed(dp_node *node, const dp_record *record);
void dp_round_ready(dp_node *node, const dp_ready *ready, bool evidence, bool own);
dp_status dp_round_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from);
void dp_round_object(dp_node *node, const dp_hash *root, uint64_t size);
/* It cannot be read here any more: a claim of it is fetched anew. */
void dp_round_lost(dp_node *node, const dp_hash *root);
/* A DP_EV_CHECKED; whether the blob is of a claim. */
bool dp_round_checked(dp_node *node, const dp_event *event);
void dp_round_state_own(dp_node *node);
/* What peers may have missed. */
void dp_round_repeat(dp_node *node);
/* The claim that this peer made itself, or NULL. */
dp_claim *dp_round_claim_of(const dp_node *node, const dp_peer *peer);
/* 1: made for the round that the newest record has closed; else 0. */
uint32_t dp_round_claim_age(const dp_node *node, const dp_claim *claim);
/* lines.c: what this node would have a record say of the lines. */
dp_lines dp_round_lines(dp_node *node);
/* Is this READY of the round under way, or may it count in it all the same (round.stale)? */
bool dp_round_is_open(const dp_node *node, const dp_ready *ready);
bool dp_round_may_contribute(const dp_node *node, const dp_peer *peer);
/* These claims and no others are followed from now on: the index of them is made anew. */
void dp_round_index_claims(dp_node *node);
void dp_round_check_blob(dp_node *node, dp_claim *claim);
bool dp_round_may_check(dp_node *node); /* Another one, beside those that are at the trainer? */
void dp_round_begin_check(dp_node *node, const dp_hash *root);
void dp_round_fetch_blob(dp_node *node, dp_claim *claim);
/* list_talk.c: lists that a record names, from and for other voters. */
/* The whole form of a record of the slot under way, lent until the next call; DP_AGAIN: lists are missing, and with wanted they are
 * asked for. */
dp_status dp_list_join(dp_node *node, dp_view record, bool wanted, dp_view *whole);
dp_status dp_list_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from);
/* A row of the vote with its record as a vote has it becomes one with the whole record; and back: empty, if the lists in it are not those
 * of its record. The lists of the record in the row stay known. */
dp_view dp_list_row_whole(dp_node *node, dp_view row);
dp_view dp_list_row_voted(dp_node *node, dp_view row);
/* leave.c */
void dp_leave_ask(dp_node *node);
/* The chain has taken this node out. */
void dp_leave_taken_out(dp_node *node);
/* Says goodbye once it is free. */
void dp_leave_tick(dp_node *node);
dp_leaving dp_leave_state(const dp_node *node);
/* wish.c */
/* Put out by a signed word that the chain has not yet. */
bool dp_node_revoked(const dp_node *node, const dp_peer *peer);
/* A removal from anywhere: DP_OK, also when nothing is left to do; DP_DENIED, DP_BADSIG; DP_AGAIN: too many at once. */
dp_status dp_wish_remove(dp_node *node, const dp_remove *remove);
/* asker is in doubt with that life, and says so again and again; its last word counts. One voter's memory alone. */
void dp_wish_fence(dp_node *node, const dp_fence *fence, const dp_peer *asker);
/* It was asked for lately. */
bool dp_wish_lasts(const dp_node *node, const dp_fence_wish *wish);
dp_status dp_wish_message(dp_node *node, uint8_t type, dp_view bytes);
void dp_wish_forget_done(dp_node *node);
void dp_wish_repeat(dp_node *node);
/* tell.c */
void dp_round_tell_have(dp_node *node);
/* Of this one alone, in a run with lists, where all of them are many. */
void dp_round_tell_have_one(dp_node *node, const dp_hash *root);
void dp_round_tell_state(dp_node *node);
/* close.c */
/* Why the round may be closed, or in a run of parts be added up; NULL: not yet. */
const char *dp_round_ripe(dp_node *node);
void dp_round_tick(dp_node *node);
dp_time dp_round_wake(const dp_node *node);
uint32_t dp_round_active(const dp_node *node);
/* Is this row one of them? */
bool dp_round_is_active(const dp_node *node, uint32_t index);
uint32_t dp_round_others_ready(const dp_node *node);
/* propose.c */
dp_verdict dp_round_judge(void *context, dp_view bytes);
size_t dp_round_value(void *context, uint8_t *out);
/* Claims that a common majority of voters holds, this node among them: how many, and their indexes if chosen is not NULL. */
uint32_t dp_round_held(const dp_node *node, uint32_t *chosen);
/* Whatever is held: may a record list this, which starts from this state? */
bool dp_round_may_list(const dp_node *node, const dp_ready *ready, const dp_hash *root);
/* Of these claims (changed) those that a record lists when they are too many, in order of peer. */
uint32_t dp_round_choose(const dp_node *node, uint32_t *held, uint32_t n_held, uint32_t *chosen);
/* Puts a claim at the end of the list; false: its author is no member. */
bool dp_round_list(dp_node *node, dp_record *draft, const dp_claim *claim);
/* The time that a record drafted now has. */
uint64_t dp_round_time(const dp_node *node);
/* config_part.c */
/* Removals, admissions, fences and voters that are due, into a draft whose time and list stand; admitted as in dp_valid. */
void dp_config_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted);
bool dp_config_removes(const dp_config_part *config, const dp_peer *peer);
/* In order of peer. */
void dp_config_add_voter(dp_config_part *config, const dp_voter_entry *entry);
void dp_config_add_removal(dp_config_part *config, const dp_remove *remove);
bool dp_config_may_stand_alone(const dp_node *node);
/* A CONFIG record is worth it now. */
bool dp_config_due(dp_node *node);
bool dp_round_state_cert(const dp_node *node, dp_hash *root, dp_seal seals[DP_VOTERS_MAX],
                         uint32_t *n);
/* pending.c */
/* The publication waits for its slot. */
bool dp_train_undecided(const dp_node *node);
void dp_train_write_row(dp_node *node);
void dp_train_published(dp_node *node, const dp_event *event);
/* load.c */
void dp_train_load(dp_node *node);
void dp_train_reload(dp_node *node, const char *cause);
/* The trainer is to be loaded anew: it holds nothing until what was durable is brought back. */
void dp_train_unload(dp_node *node);
void dp_train_diverged(dp_node *node);
/* theta of round stands with this tensor root. */
void dp_train_arrive(dp_node *node, uint64_t round, const dp_hash *tensor_root);
void dp_train_at(dp_node *node, const dp_event *event);
void dp_train_bring_back(dp_node *node);
/* Where in its lease and on its own line the trainer goes on, behind all that is counted, published or frozen. */
dp_reach dp_train_reach(const dp_node *node);
/* fetch.c */
/* True if this part of the manifest is here, or there is none; else it is fetched. */
bool dp_train_fetch(dp_node *node, const dp_hash *root, uint64_t bytes);
/* True when the tokenizer and every shard is here. Few are wanted at once: what rounds need must find room (spread.h). */
bool dp_train_fetch_data(dp_node *node);
/* True when all updates of this round are here; else they are wanted from now on, if they are of use. */
bool dp_train_fetch_row(dp_node *node, dp_ring_row *row);
/* train.c */
void dp_train_start(dp_node *node);
/* The own part of the round under way has had its time or its steps, or enough others have published theirs. */
bool dp_train_is_due(const dp_node *node);
void dp_train_event(dp_node *node, const dp_event *event);
bool dp_train_stored(dp_node *node, uint32_t op, dp_status status);
dp_status dp_train_restore(dp_node *node, dp_view row);
void dp_train_tick(dp_node *node);
void dp_train_ckpt(dp_node *node, uint64_t round, const dp_hash *root, uint64_t bytes,
                   bool fetched);
/* An own checkpoint stands: fetched states before it are let go. */
void dp_train_saved(dp_node *node, uint64_t round);
/* Is it the state after this round? False also when that is not known. */
bool dp_train_is_certified(const dp_node *node, uint64_t round, const dp_hash *tensor_root,
                           bool *known);
/* It cannot be read here any more: a checkpoint of it is neither loaded nor told of. */
void dp_train_lost(dp_node *node, const dp_hash *root);
void dp_train_came(dp_node *node, const dp_hash *root); /* It is whole on this disk. */
/* Whatever the trainer can do next: load, apply, train, publish. */
void dp_train_advance(dp_node *node);
/* Round of the newest checkpoint of its own that it would find again; 0: none. */
uint64_t dp_train_own_ckpt(const dp_node *node);
uint64_t dp_train_newest_ckpt(const dp_node *node);
/* The newest checkpoint whose certificate stands in the chain, in the record after its round (or in a FORK): of the newest state the
 * certificate is only in the memory of those who signed it, and may go with them. Without one, the newest. NULL: none. */
const dp_ckpt *dp_train_proven_ckpt(const dp_node *node);
/* The checkpoint that others are told of: the newest, since it is here longest, and its proof mostly comes before they ask for
 * it; the one above when no record has come for a while. NULL: none. */
const dp_ckpt *dp_train_told_ckpt(const dp_node *node);
void dp_train_certified(dp_node *node, uint64_t round);
dp_time dp_train_wake(const dp_node *node);
void dp_train_announce(dp_node *node);
uint32_t dp_train_lambda(uint64_t gap);
uint32_t dp_train_fade(dp_train *train, const dp_ring_row *row);
/* catchup.c */
dp_status dp_catchup_records(dp_node *node, dp_view message, const dp_peer *from);
void dp_catchup_hint(dp_node *node, const dp_peer *peer, uint64_t slot);
void dp_catchup_next(dp_node *node);
void dp_catchup_tick(dp_node *node);
dp_time dp_catchup_wake(const dp_node *node);
/* The trainer needs a state that is not here. */
void dp_catchup_state(dp_node *node);
/* Nobody linked gives a certified state, and every update of every round is here. */
bool dp_catchup_needs_no_state(const dp_node *node);
/* From the state of this round it is fewer bytes to fetch a newer certified state, with the updates after it, than the
 * updates alone, and enough rounds are missing. */
bool dp_catchup_prefers_state(const dp_node *node, uint64_t round);
/* A piece of this object has come. */
void dp_catchup_chunk(dp_node *node, const dp_hash *root);
void dp_catchup_object(dp_node *node, const dp_hash *root);

/* mix_judge.c; of dp_mix_config. */
const char *dp_node_judge_terms(void *context, const dp_peer *peer,
                                const struct dp_mix_terms *terms);

#endif
