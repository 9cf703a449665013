/* The inside of a node: its parts, and small things for all of them. Each part has its struct in its own header; only the files that make
 * up the node include this one. */
#ifndef DP_GOSSIP_NODE_NODE_INTERNAL_H
#define DP_GOSSIP_NODE_NODE_INTERNAL_H

#include "base/mutation.h"
#include "base/rng.h"
#include "base/trainer/trainer_msg.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fetch.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/load.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/rival.h"
#include "gossip/core/buggify.h"
#include "gossip/core/msg.h"
#include "gossip/ledger/valid.h"
#include "gossip/ledger/wire.h"
#include "gossip/member/links.h"
#include "gossip/member/members.h"
#include "gossip/node/node.h"
#include "gossip/orders/leave.h"
#include "gossip/orders/wish.h"
#include "gossip/pairs/mix.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/claim.h"
#include "gossip/round/config_part.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge.h"
#include "gossip/round/lists.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"
#include "gossip/round/turn.h"
#include "gossip/round/witness.h"
#include "gossip/training/training.h"
#include "gossip/transfer/doubt.h"
#include "gossip/transfer/relay.h"
#include "gossip/transfer/spread.h"
#include "gossip/vote/commit.h"

enum {
    DP_HELD_STANDARD = 4096, /* objects known to be here; in a run with lists more: */
    DP_HELD_PER_LISTED = 16, /* ... so many for each contribution of a record */
    DP_DATA_AT_ONCE = 4,     /* shards of data that are fetched at a time */
};

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

/* lines.c */
/* What this node would have a record say of the lines. */
dp_lines dp_round_lines(dp_node *node);
/* mix_judge.c; of dp_mix_config. */
const char *dp_node_judge_terms(void *context, const dp_peer *peer,
                                const struct dp_mix_terms *terms);

#endif
