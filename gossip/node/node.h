/* The whole peer as one pure state machine: events in, actions out. No clock, socket, thread, file
 * or tensor here; the daemon and the simulator carry out the same actions. Rounds, votes,
 * membership, spreading, catch-up and gossip averaging live in their own files; this one routes
 * between them.
 *
 * Conversation with the driver
 *   dp_node_init, dp_node_restore_* (the durable data, in the order below), then DP_EV_START, then
 *     events for ever.
 *   After each dp_node_step the driver carries out the actions in order. dp_node_wake says when it
 *     wants DP_EV_TICK
 *   at the latest. Everything an event points to is borrowed for the call; everything an action
 *     points to is valid until
 *   the next step.
 *
 * Durability: DP_DO_STORE asks for one atomic durable write; DP_EV_STORED reports it. The node
 * sends nothing that depends on the write (a promise, a vote, a READY, applying a decision) before
 * that event.
 *
 * Objects: every bulk thing (update blob, tensor state, tokenizer, token shard) is a
 * content-addressed object of base/digest.h, named by its root. The node decides which object to
 * fetch from which peer; the bytes never pass through it: the driver sends CHUNK_GET, checks the
 * leaf hash of what comes, stores it and reports. The driver also answers peers' requests for
 * object information, chunks, records and the manifest from its store (DP_DO_SERVE_*). */
#ifndef DP_GOSSIP_NODE_NODE_H
#define DP_GOSSIP_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/run/manifest.h"
#include "gossip/context/node_config.h"
#include "gossip/core/address.h"
#include "gossip/core/id.h"
#include "gossip/core/limits.h"
#include "gossip/event/action.h"
#include "gossip/event/event.h"
#include "gossip/identity/admission.h"
#include "gossip/identity/renewal.h"
#include "gossip/identity/rotation.h"

/* All memory is taken here. DP_NOMEM, DP_BADARG. */
DP_MUST dp_status dp_node_open(dp_node **node, const dp_node_config *config);
void dp_node_close(dp_node *node);

/* Give back the durable state, before DP_EV_START, in this order: records 1..head, then the others
 * where they exist. */
DP_MUST dp_status dp_node_restore_record(dp_node *node, uint64_t slot, dp_view record,
                                         dp_view cert);
DP_MUST dp_status dp_node_restore_vote(dp_node *node, dp_view row);
DP_MUST dp_status dp_node_restore_pending(dp_node *node, dp_view row);
/* Of such a row: the parts of the publication, objects that are to be restored with it; n = 0: it
 * is whole. DP_BADMSG. */
DP_MUST dp_status dp_node_pending_parts(dp_view row, dp_part_list *parts);
DP_MUST dp_status dp_node_restore_proof(dp_node *node, dp_view row);
DP_MUST dp_status dp_node_restore_exchange(dp_node *node, const uint8_t exchange[16], dp_view row);
/* A checkpoint that the store holds whole. */
DP_MUST dp_status dp_node_restore_checkpoint(dp_node *node, uint64_t round,
                                             const dp_hash *tensor_root, uint64_t tensor_bytes);
/* An object that the store holds whole (tokenizer, data, blobs of recent rounds). */
DP_MUST dp_status dp_node_restore_object(dp_node *node, const dp_hash *root, uint64_t size);
/* A state that an earlier life was fetching; chunks of it are here. */
void dp_node_restore_part(dp_node *node, const dp_hash *root);
/* A member met before, to dial. */
DP_MUST dp_status dp_node_restore_peer(dp_node *node, const dp_peer *peer, const dp_addr *addrs,
                                       uint32_t n_addrs);

/* The one entry. actions is filled from empty. Bounded time; never fails: bad input becomes a note
 * and a counter. */
void dp_node_step(dp_node *node, const dp_event *event, dp_actions *actions);
/* For the simulator: bad luck of these kinds from now on (mask of dp_bug, buggify.h). */
void dp_node_buggify(dp_node *node, uint32_t mask);
/* When the node wants DP_EV_TICK at the latest. */
dp_time dp_node_wake(const dp_node *node);

/* ---- looking at it (status, peers, tests; constant or linear time, no side effects) ---- */

typedef struct dp_node_view {
    dp_mode mode;
    uint64_t slot; /* chain head */
    dp_hash head;
    uint64_t round;     /* rounds decided */
    uint64_t applied;   /* round whose state the trainer holds */
    dp_hash state_root; /* of applied; zero before */
    uint64_t tokens;    /* committed */
    uint32_t members;   /* in the roster */
    uint32_t alive;     /* alive members, this node included */
    uint32_t idle;      /* of these, this node and those with a link that have no trainer now */
    uint32_t voters;
    bool is_voter;
    dp_peer ballot_owner; /* of the highest ballot met in the slot under way; zero before a run */
    bool quorum;          /* a majority of voters is heard */
    bool training;
    dp_peer culprit;       /* of the double vote that HALTED is about; zero if none */
    uint32_t listed_last;  /* contributors of the last ROUND record */
    uint64_t exchanges;    /* pair exchanges done */
    uint64_t rejected;     /* messages and blobs refused */
    uint32_t near;         /* in rounds of parts: members that results from afar are shared with; */
    uint64_t sums_made;    /* of parts of all near, for owners far away, since the start; */
    uint64_t sums_taken;   /* ... of others, that are in parts which this node has added up */
    uint64_t results_near; /* such results that one of them was asked for, since the start */
    uint64_t diverged;     /* states of the own trainer that were not the certified ones */
    uint64_t bytes_waiting; /* still to come of objects being fetched */
    uint64_t bytes_wanted;  /* their whole sizes */
    uint32_t sources;       /* peers that chunks are under way from */
    uint64_t chunks;        /* that came from peers, ever; */
    uint64_t chunks_hedged; /* and were asked of a second holder because the first was late */
    dp_leaving leaving;     /* whether this node may end for good */
    bool held_known;        /* all updates of the round decided last were here by then: */
    uint64_t held_us;       /* from its opening until the last of them was */
} dp_node_view;

void dp_node_look(const dp_node *node, dp_node_view *view);
/* Why the run does not count this node: DP_OK while nothing speaks against it, DP_DENIED: it never
 * will by its credential, DP_EXISTS: nor by another one, since it left or was revoked, DP_TOOBIG:
 * there is no place now. By the chain as known here; a newcomer that has caught up
 * can trust it. About 100 us. */
DP_MUST dp_status dp_node_refused(const dp_node *node, dp_why *why);

typedef struct dp_member_view {
    dp_peer peer;
    dp_member_state state;
    bool linked;
    bool in_roster;
    bool voter;
    uint32_t caps;
    uint64_t incarnation;
    uint64_t rtt_us;   /* 0: unknown */
    uint64_t round;    /* last heard */
    uint64_t included; /* last round that lists it; 0: never */
    uint32_t step_us;  /* last measured; 0: never */
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX];
} dp_member_view;

/* index < count given back by the first call; false beyond. This node is index 0. */
bool dp_node_member(const dp_node *node, uint32_t index, dp_member_view *view);

/* Is it a member by the chain? Then x_public is the static key that it was admitted with; untouched
 * where that is not known. A node that is joining knows nobody yet and says yes. */
bool dp_node_admitted(const dp_node *node, const dp_peer *peer, uint8_t x_public[32]);

/* A row of the roster: a node, the invite by which it came, and its present state. */
typedef struct dp_roster_view {
    dp_peer peer;
    dp_invite_id invite; /* zero: none, of the founder and of nodes that the root key certified */
    dp_invite_id invite_above; /* by which the node that made its invite came; zero: none */
    uint32_t gone;             /* dp_remove_reason; 0: a member */
} dp_roster_view;

/* False: index is beyond the last. Those gone are there until their row is another's. */
bool dp_node_roster(const dp_node *node, uint32_t index, dp_roster_view *view);

typedef enum dp_invite_state {
    DP_INVITE_STANDS = 0, /* nothing is known against it */
    DP_INVITE_REVOKING,   /* a word about it waits for the next record */
    DP_INVITE_REVOKED     /* by the chain */
} dp_invite_state;

dp_invite_state dp_node_invite(const dp_node *node, const dp_invite_id *id);
/* The ids that the chain has revoked, in no order; false: index is beyond the last. */
bool dp_node_revoked_invite(const dp_node *node, uint32_t index, dp_invite_id *id);

/* Has the certificate of this peer, which has ended, been renewed? By the chain as known here; a
 * newcomer believes any member. */
bool dp_node_renewed(const dp_node *node, const dp_renewal *renewal, const dp_peer *peer,
                     uint64_t now_ms);

/* As a member that no link joins told it through others; empty: not known. Lent until the next
 * step. */
const char *dp_node_peer_name(const dp_node *node, const dp_peer *peer);

/* Walks every structure; for tests and DP_PARANOID builds. DP_CORRUPT with a sentence. */
DP_MUST dp_status dp_node_check(const dp_node *node, dp_why *why);

#endif
