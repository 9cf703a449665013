/* Memory of the parts of this room: reserved when a node is opened, in runs with lists for as many
 * contributions as a record lists. */
#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"

static dp_status open_chain(dp_node *node, uint32_t listed_max, bool lists)
{
    dp_chain *chain = dp_reserve(1, sizeof *chain);

    node->chain = chain;
    if (chain == NULL) {
        return DP_NOMEM;
    }
    chain->history_items =
        dp_reserve((size_t)DP_HISTORY_ROUNDS * listed_max, sizeof *chain->history_items);
    chain->record = dp_reserve(lists ? DP_RECORD_WHOLE_MAX : DP_RECORD_BYTES_MAX, 1);
    if (chain->history_items == NULL || chain->record == NULL) {
        return DP_NOMEM;
    }
    for (uint32_t i = 0; i < DP_HISTORY_ROUNDS; i++) {
        chain->history[i].items = &chain->history_items[(size_t)i * listed_max];
    }
    return DP_OK;
}

dp_status dp_catchup_open(dp_node *node, uint32_t listed_max)
{
    const bool lists = listed_max > DP_LISTED_DEFAULT;

    dp_assert(listed_max >= DP_LISTED_DEFAULT && listed_max <= DP_LISTED_MAX);
    DP_TRY(open_chain(node, listed_max, lists));
    node->saved = dp_reserve(1, sizeof *node->saved);
    node->proof = dp_reserve(1, sizeof *node->proof);
    node->forks = dp_reserve(1, sizeof *node->forks);
    node->catchup = dp_reserve(1, sizeof *node->catchup);
    if (node->saved == NULL || node->proof == NULL || node->forks == NULL ||
        node->catchup == NULL) {
        return DP_NOMEM;
    }
    node->catchup->records = dp_reserve(lists ? DP_RECORDS_BYTES_MAX : DP_MESSAGE_MAX, 1);
    if (node->catchup->records == NULL) {
        return DP_NOMEM;
    }
    return dp_list_open(node, listed_max);
}

void dp_catchup_begin(dp_node *node)
{
    node->forks->heads[0].hash = node->run;
    node->chain->genesis_digest = dp_ledger_digest(&node->ledger);
}

void dp_catchup_close(dp_node *node)
{
    dp_list_close(node);
    if (node->chain != NULL) {
        dp_free(node->chain->record);
        dp_free(node->chain->history_items);
    }
    if (node->catchup != NULL) {
        dp_free(node->catchup->records);
    }
    dp_free(node->chain);
    dp_free(node->catchup);
    dp_free(node->saved);
    dp_free(node->proof);
    dp_free(node->forks);
}
