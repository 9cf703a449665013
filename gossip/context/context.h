/* State that all parts of a node share: its identity, the time, the chain, the tables of members
 * and objects, and the actions of the step. Each room above keeps a pointer to its own struct here;
 * its own header defines that struct, and no room below can look into it. */
#ifndef DP_GOSSIP_CONTEXT_CONTEXT_H
#define DP_GOSSIP_CONTEXT_CONTEXT_H

#include "base/clock.h"
#include "base/map.h"
#include "base/mutation.h"
#include "base/rng.h"
#include "gossip/context/node_config.h"
#include "gossip/core/buggify.h"
#include "gossip/core/msg.h"
#include "gossip/event/out.h"
#include "gossip/ledger/ledger.h"
#include "gossip/ledger/valid.h"
#include "gossip/member/heartbeat.h"
#include "gossip/member/links.h"
#include "gossip/member/members.h"
#include "gossip/pairs/mix.h"
#include "gossip/record/wire.h"
#include "gossip/transfer/picker.h"
#include "gossip/transfer/relay.h"
#include "gossip/vote/commit.h"

enum {
    DP_STORED_OBJECTS_DEFAULT = 4096, /* objects known to be here; in a run with lists more: */
    DP_ROOM_BYTES = 8192 + DP_RECORD_BYTES_MAX + DP_CERT_OF_RECORD_BYTES_MAX,
    DP_STORED_OBJECTS_PER_LISTED = 16, /* ... so many for each contribution of a record */
};
#define DP_REPEAT_US (500 * DP_MS) /* READY, HAVE, STATE, VOTER_OK are told again */

typedef struct dp_stored_object {
    dp_hash root;
    uint64_t size;
    bool used;
} dp_stored_object;

typedef enum dp_trainer_state {
    DP_TRAINER_OFF = 0, /* no process, or not open */
    DP_TRAINER_EMPTY,   /* open, holds no theta */
    DP_TRAINER_MOVING,  /* INIT or LOAD under way */
    DP_TRAINER_SET      /* holds theta of round applied */
} dp_trainer_state;

/* State of the trainer. Only training/ writes it. */
typedef struct dp_standing {
    dp_trainer_state state;
    bool has_theta;
    bool applying; /* DP_DO_APPLY is under way */
    uint64_t applied;
    dp_hash tensor_root;
    uint64_t tensor_bytes;
    dp_hash state_root; /* own, of applied */
    uint64_t step_us;
    uint32_t uplink;           /* kB/s, as last told; 0: unknown */
    uint64_t published_tokens; /* of the newest publication; 0: none */
} dp_standing;

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
    bool scripted;     /* in a run of any model: a script trains, as the trainer says, ... */
    bool leftover;     /* ... or is gone, and its last steps are to be published */
    dp_time repeat_at; /* when announcements to peers are repeated */
    bool changed;      /* set by dp_node_changed alone */
    uint64_t rejected;
    dp_rng rng;
    uint32_t buggify; /* mask of dp_bug; 0 but in the simulator */
    dp_out out;
    dp_relay relay;
    dp_heartbeat beat;
    dp_members *members;
    dp_picker *picker;
    dp_mix *mix;
    dp_ledger ledger;
    dp_commit *commit;
    dp_standing standing;
    dp_map held_map;
    uint32_t held_max;
    uint32_t held_free; /* no free place of held is before it */
    uint64_t unheld;    /* objects that were let go of, ever */
    dp_stored_object *held;
    bool reopening;  /* DP_DO_REOPEN was asked for */
    dp_record draft; /* being read or written: nothing of it is needed between two calls */
    uint8_t room[DP_ROOM_BYTES]; /* a message that is being written */
    /* From the lowest room up. */
    struct dp_requests *requests;           /* requests/requests.h */
    struct dp_leave *leave;                 /* requests/leave.h */
    struct dp_chain *chain;                 /* catchup/chain.h */
    struct dp_list_exchange *list_exchange; /* catchup/list_exchange.h */
    struct dp_saved_all *saved;             /* catchup/saved.h */
    struct dp_catchup *catchup;             /* catchup/catchup.h */
    struct dp_proof *proof;                 /* catchup/proof.h */
    struct dp_forks *forks;                 /* catchup/fork.h */
    struct dp_witness *witness;             /* vote/witness.h */
    struct dp_round *round;                 /* round/round.h */
    const struct dp_round_kind *kind;       /* round/kind.h */
    struct dp_judging *judging;  /* round/judge_round.h; NULL in a run that does not judge */
    struct dp_train *train;      /* training/training.h */
    struct dp_part_round *parts; /* parts/part_round.h; NULL in a run of whole updates */
};

/* ---- context.c ---- */

void dp_node_note(dp_node *node, dp_note_code code, uint64_t round, const dp_peer *peer, uint64_t a,
                  uint64_t b, const char *cause);
bool dp_node_is_voter(const dp_node *node);
/* Index of a linked or known member in the table, or DP_MEMBER_NONE. */
uint32_t dp_node_member_index(const dp_node *node, const dp_peer *peer);
/* The time that a record drafted now has, unix ms. */
uint64_t dp_node_record_ms(const dp_node *node);
/* Is this READY of the round under way, or may it count in it all the same (mode stale)? */
bool dp_node_is_open(const dp_node *node, const dp_ready *ready);
/* Something has changed that other parts may wait for: the end of the step looks at all of them
 * (docs/decisions/047-one-flag-for-changes.md). */
void dp_node_changed(dp_node *node);
/* At the end of this step the announcements to peers are repeated. */
void dp_node_repeat_now(dp_node *node);
/* Everything anew from the store: the base has changed under all parts. */
void dp_node_reopen(dp_node *node);

/* ---- send.c ---- */

/* A message to one peer, over a voter that hears it when there is no link. message is copied. */
void dp_node_send(dp_node *node, const dp_peer *to, dp_view message);
void dp_node_send_voters(dp_node *node, dp_view message);
/* To the voters that this node has a link to; false: there is none. */
DP_MUST bool dp_node_send_linked_voters(dp_node *node, dp_view message);
void dp_node_send_all(dp_node *node, dp_view message);

/* ---- holds.c ---- */

uint64_t dp_node_size(const dp_node *node, const dp_hash *root);
void dp_node_hold(dp_node *node, const dp_hash *root, uint64_t size);
void dp_node_unhold(dp_node *node, const dp_hash *root);

/* False in a run of any model, which only a script trains, while this node has none: it holds the
 * state, applies records, votes and serves like one that is paused, and nobody waits for its
 * updates. */
static inline bool dp_node_can_train(const dp_node *node)
{
    return !dp_manifest_external(&node->manifest) || node->scripted || node->leftover;
}

#endif
