/* A voter judges the updates of the round under way: when it asks its trainer, which results it
 * announces, and which members it asks to remove (judge.h decides, harm.h is the evidence). In a
 * run that does not judge, and at a node that does not vote, none of this does anything. */
#ifndef DP_GOSSIP_ROUND_JUDGE_ROUND_H
#define DP_GOSSIP_ROUND_JUDGE_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/core/limits.h"
#include "gossip/event/event.h"
#include "gossip/record/record.h"

enum { DP_JUDGES_MAX = 8 /* updates at the trainer to be judged */ };

struct dp_claim;

/* Once, after the ledger is open; DP_NOMEM. close accepts a node without. */
DP_MUST dp_status dp_judging_open(dp_node *node);
void dp_judging_close(dp_node *node);

/* Hands updates that were checked to the trainer, as long as it holds the state that they begin
 * from. */
void dp_judging_look(dp_node *node);
/* A DP_EV_JUDGED. */
void dp_judging_judged(dp_node *node, const dp_event *event);
void dp_judging_trainer_down(dp_node *node);
/* A slot begins: prunes the accusations; in a new round, also updates the usual values. */
void dp_judging_open_slot(dp_node *node, bool new_round);

/* May this node list it? Always, in a run that does not judge. */
bool dp_claim_is_good(const dp_node *node, const struct dp_claim *claim);
/* May this node tell HAVE of it? Also for an update in a record that it has met or accepted: the
 * others may have no other source. */
bool dp_claim_is_told(const dp_node *node, const struct dp_claim *claim);
/* Is its update of this round one that this node found harmful? */
bool dp_judging_rejects(const dp_node *node, const dp_peer *peer);
/* Members that are expected to contribute and whose update this node found harmful: the round does
 * not wait for another update of theirs. */
uint32_t dp_judging_rejected(const dp_node *node);

/* A record is applied that lists the own update, or does not. Do the voters leave out the updates
 * of this node without naming it late? So it is when they reject them, or take this node for
 * dead. */
bool dp_judging_ignores(dp_node *node, const dp_record *record, bool listed);

/* A HARM. DP_BADMSG, DP_BADSIG. */
DP_MUST dp_status dp_judging_message(dp_node *node, dp_view bytes);
/* Into a draft: the removals of members that a majority of the voters accuses. */
void dp_judging_list(const dp_node *node, dp_record *draft);

#endif
