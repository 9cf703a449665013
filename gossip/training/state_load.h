/* State load: where the trainer starts when it comes up (a checkpoint, a fetched state or the
 * seed), and the work that is brought back to it. */
#ifndef DP_GOSSIP_TRAINING_STATE_LOAD_H
#define DP_GOSSIP_TRAINING_STATE_LOAD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/run/reach.h"
#include "gossip/core/limits.h"
#include "gossip/event/event.h"

void dp_train_load(dp_node *node);
void dp_train_reload(dp_node *node, const char *cause);
/* The trainer is to be loaded anew: it holds nothing until the durable work is brought back. */
void dp_train_unload(dp_node *node);
/* The same, also while it publishes, if it is stuck and a state has come from which it restarts. */
void dp_train_unstick(dp_node *node);
void dp_train_diverged(dp_node *node);
/* theta of round stands with this tensor root. */
void dp_train_arrive(dp_node *node, uint64_t round, const dp_hash *tensor_root);
void dp_train_at(dp_node *node, const dp_event *event);
void dp_train_bring_back(dp_node *node);
/* Where in its lease and on its own line the trainer goes on, behind all that is counted, published
 * or frozen. */
dp_reach dp_train_reach(const dp_node *node);

#endif
