/* Objects that the trainer needs, wanted from peers: tokenizer, data, updates of a round. */
#ifndef DP_GOSSIP_CATCHUP_FETCH_H
#define DP_GOSSIP_CATCHUP_FETCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/digest.h"
#include "gossip/catchup/chain.h"
#include "gossip/core/limits.h"

enum { DP_DATA_AT_ONCE = 4 /* shards of data that are fetched at a time */ };

/* True if this part of the manifest is here, or there is none; else it is fetched. */
bool dp_train_fetch(dp_node *node, const dp_hash *root, uint64_t bytes);
/* True when the tokenizer, the base below adapters and every shard is here. Few are wanted at once,
 * so that the objects of rounds find room (picker.h). */
bool dp_train_fetch_data(dp_node *node);
/* True when all updates of this round are here; else they are wanted from now on, if they are of
 * use. */
bool dp_train_fetch_row(dp_node *node, dp_history_row *row);

#endif
