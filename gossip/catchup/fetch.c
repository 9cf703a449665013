/* Fetches the objects that a trainer needs before it can go on: updates of decided rounds,
 * tokenizer, the base below adapters, shards of data. */
#include "gossip/catchup/fetch.h"
#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"

/* Every node that follows the chain needs the object, and may have it by now. So an object that was
 * wanted of its author alone before its round was decided, is wanted of all now: the author may be
 * gone. False: no room. */
static bool fetch_item(dp_node *node, const dp_history_item *item, dp_priority priority)
{
    const bool is_new = !dp_picker_wants(node->picker, &item->root);
    const uint32_t author = dp_node_member_index(node, &item->peer);

    if (dp_picker_want(node->picker, node->now, &item->root, item->bytes, DP_USE_BLOB, priority,
                       &node->out) != DP_OK) {
        return false;
    }
    if (is_new && author != DP_MEMBER_NONE && author != 0) {
        dp_picker_holder(node->picker, node->now, &item->root, author, &node->out);
    }
    dp_picker_holders_all(node->picker, node->now, &item->root, &node->out);
    return true;
}

/* The first item that is not here. Looked for from where it was found last: objects come in order,
 * mostly, and a round of a thousand would be gone through once for each of them. */
static uint32_t first_missing(const dp_node *node, dp_history_row *row)
{
    if (row->here_as_of != node->unheld) {
        row->here_as_of = node->unheld;
        row->here = 0;
    }
    while (row->here < row->n && dp_node_holds(node, &row->items[row->here].root)) {
        row->here++;
    }
    return row->here;
}

/* Called when no more objects can be wanted. Among the items from this one on, asks every peer for
 * those that are wanted already. */
static void fetch_wanted(dp_node *node, const dp_history_row *row, uint32_t from,
                         dp_priority priority)
{
    dp_hash roots[DP_WANTED_MAX];
    const uint32_t n = dp_picker_hesitant(node->picker, priority, roots);

    dp_assert(from <= row->n);
    for (uint32_t i = from; i < row->n && n > 0; i++) {
        uint32_t k = 0;
        while (k < n && !dp_hash_equal(&roots[k], &row->items[i].root)) {
            k++;
        }
        if (k < n && !dp_node_holds(node, &row->items[i].root)) {
            (void)fetch_item(node, &row->items[i], priority);
        }
    }
}

bool dp_train_fetch_row(dp_node *node, dp_history_row *row)
{
    const dp_catchup *catchup = node->catchup;
    const dp_priority priority =
        row->round == node->ledger.round ? DP_PRIORITY_ROUND : DP_PRIORITY_REPLAY;
    const uint32_t first = first_missing(node, row);

    dp_assert(row->n <= DP_LISTED_MAX);
    /* Dropped here: gone everywhere. An object that a state on its way will contain is not fetched
     * as well. */
    if (row->dropped || (catchup->wants_state && row->round <= catchup->state_round)) {
        return first == row->n;
    }
    for (uint32_t i = first; i < row->n; i++) {
        const dp_history_item *item = &row->items[i];
        if (dp_node_holds(node, &item->root) ||
            dp_picker_asks_all(node->picker, &item->root, priority)) {
            continue;
        }
        if (!fetch_item(node, item, priority)) { /* Asked again with the next event. */
            fetch_wanted(node, row, i + 1, priority);
            break;
        }
    }
    return first == row->n;
}

bool dp_train_fetch(dp_node *node, const dp_hash *root, uint64_t bytes)
{
    if (dp_hash_is_zero(root) || dp_node_holds(node, root)) {
        return true;
    }
    if (!dp_picker_wants(node->picker, root) &&
        dp_picker_want(node->picker, node->now, root, bytes, DP_USE_DATA, DP_PRIORITY_DATA,
                       &node->out) == DP_OK) {
        dp_picker_holders_all(node->picker, node->now, root, &node->out);
    }
    return false;
}

bool dp_train_fetch_data(dp_node *node)
{
    const dp_manifest *manifest = &node->manifest;
    const bool words = dp_train_fetch(node, &manifest->tokenizer, manifest->tokenizer_bytes);
    const bool base = dp_train_fetch(node, &manifest->base, manifest->base_bytes);
    uint32_t missing = 0;

    for (uint32_t i = 0; i < manifest->n_shards && missing < DP_DATA_AT_ONCE; i++) {
        missing += !dp_train_fetch(node, &manifest->shards[i].root, manifest->shards[i].bytes);
    }
    return words && base && missing == 0;
}
