/* Exchange of contribution lists (listing.h) between voters: a voter asks the others for the lists
 * that it lacks of a proposal, and gives them those that they lack. A node that is not a voter
 * needs a record only when it is decided, and receives it whole (RECORDS). */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/context/context.h"
#include "gossip/record/lists.h"
#include "gossip/vote/commit_row.h"

#define ASK_US (300 * DP_MS) /* then the next voter is asked */

/* A voter that has the lists of this record, as far as is known: the one that proposed it, or one
 * that promised or voted for it. */
static uint32_t first_source(const dp_node *node, const dp_hash *hash)
{
    const dp_commit *commit = node->commit;

    if (commit->has_waiting && dp_hash_equal(&commit->waiting.vote.hash, hash)) {
        return commit->waiting.vote.voter;
    }
    for (uint32_t i = 0; i < commit->n; i++) {
        const bool bound = (commit->promised_by & (1U << i)) != 0 &&
                           dp_hash_equal(&commit->promises[i].hash, hash);
        const bool votes =
            (commit->voted & (1U << i)) != 0 && dp_hash_equal(&commit->votes[i].hash, hash);
        if (i != commit->self && (bound || votes)) {
            return i;
        }
    }
    return 0;
}

/* One voter after the other, since no message names the nodes that have them. */
static void ask(dp_node *node, const dp_hash *hash)
{
    dp_list_exchange *talk = node->list_exchange;
    const uint32_t n = node->ledger.n_voters;
    dp_list_get_msg get = {.asker = node->self, .n = talk->lists.n_wanted};

    dp_assert(node->ledger.n_voters > 0);
    if (!dp_hash_equal(&talk->asked_for, hash)) {
        talk->asked_for = *hash;
        talk->asked = 0;
    } else if (dp_time_between(talk->asked_at, node->now) < ASK_US) {
        return;
    }
    uint32_t voter = (first_source(node, hash) + talk->asked++) % n;
    if (dp_peer_equal(&node->ledger.voters[voter].peer, &node->self)) {
        voter = (voter + 1) % n;
        talk->asked++;
    }
    talk->asked_at = node->now;
    memcpy(get.hashes, talk->lists.wanted, get.n * sizeof get.hashes[0]);
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);
    dp_list_get_msg_write(&writer, &get);
    dp_node_send(node, &node->ledger.voters[voter].peer, dp_view_of(writer.data, writer.size));
}

dp_status dp_list_open(dp_node *node, uint32_t listed_max)
{
    dp_list_exchange *talk = dp_reserve(1, sizeof *talk);

    node->list_exchange = talk;
    if (talk == NULL) {
        return DP_NOMEM;
    }
    if (listed_max > DP_LISTED_DEFAULT) {
        talk->whole = dp_reserve(DP_RECORD_WHOLE_MAX, 1);
        talk->vote_row = dp_reserve(DP_COMMIT_ROW_HEAD + DP_RECORD_WHOLE_MAX, 1);
        if (talk->whole == NULL || talk->vote_row == NULL) {
            return DP_NOMEM;
        }
    }
    return dp_lists_open(&talk->lists, listed_max);
}

void dp_list_close(dp_node *node)
{
    dp_list_exchange *talk = node->list_exchange;

    if (talk != NULL) {
        dp_lists_close(&talk->lists);
        dp_free(talk->whole);
        dp_free(talk->vote_row);
        dp_free(talk);
    }
}

void dp_list_open_slot(dp_node *node)
{
    node->list_exchange->asked_for = (dp_hash){{0}};
}

dp_status dp_list_join(dp_node *node, dp_view record, bool wanted, dp_view *whole)
{
    dp_list_exchange *talk = node->list_exchange;
    const dp_status status = dp_lists_join(&talk->lists, record, wanted, talk->whole, whole);

    if (status == DP_AGAIN && wanted) {
        const dp_hash hash = dp_record_hash(record);
        ask(node, &hash);
    }
    return status;
}

/* ---- messages ---- */

/* The request is not signed. A voter that is heard on its own link asks on it; only of one that is
 * not it may come through others, or each of them could have a voter sent two hundred times what it
 * sends itself. */
static bool may_ask(const dp_node *node, const dp_peer *asker, const dp_peer *from)
{
    const uint32_t voter = dp_ledger_voter(&node->ledger, asker);

    if (voter == DP_NOBODY || dp_peer_equal(asker, from)) {
        return voter != DP_NOBODY;
    }
    const dp_time direct = node->beat.voters[voter].direct;
    return direct.us == 0 ||
           dp_time_between(direct, node->now) > 3 * (uint64_t)node->beat.pace * DP_HEARTBEAT_US;
}

static dp_status on_get(dp_node *node, dp_view bytes, const dp_peer *from)
{
    dp_list_get_msg get;

    DP_TRY(dp_list_get_msg_read(bytes, &get));
    const uint32_t member = dp_node_member_index(node, from);
    if (member == DP_MEMBER_NONE || !may_ask(node, &get.asker, from)) {
        return DP_OK; /* Only voters need them. */
    }
    for (uint32_t i = 0; i < get.n; i++) {
        const dp_view list = dp_lists_get(&node->list_exchange->lists, &get.hashes[i]);
        if (list.size > 0 && dp_picker_serve_allows(node->picker, node->now, member)) {
            dp_writer writer = dp_writer_of(node->room, sizeof node->room);
            dp_list_msg_write(&writer, list);
            dp_node_send(node, &get.asker, dp_view_of(writer.data, writer.size));
        }
    }
    return DP_OK;
}

dp_status dp_list_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from)
{
    dp_view list;

    if (!dp_ledger_lists(&node->ledger)) {
        return DP_DENIED;
    }
    if (type == DP_MSG_LIST_GET) {
        return on_get(node, bytes, from);
    }
    DP_TRY(dp_list_msg_read(bytes, &list));
    if (dp_lists_take(&node->list_exchange->lists, list) &&
        node->list_exchange->lists.n_wanted == 0) {
        dp_node_changed(node); /* The proposal that waits for them is judged again. */
    }
    return DP_OK;
}

/* ---- the row of the vote ---- */

/* A voter that accepts a record vouches for its rows as for its blobs: they are durable before the
 * vote is told. */
dp_view dp_list_row_whole(dp_node *node, dp_view bytes)
{
    dp_commit_row row;
    dp_view whole;

    if (!dp_ledger_lists(&node->ledger) || dp_broken(69)) {
        return bytes;
    }
    const dp_status read = dp_commit_row_read(bytes, &row);
    dp_assert(read == DP_OK);
    if (row.record.size == 0) {
        return bytes;
    }
    const dp_status joined = dp_list_join(node, row.record, false, &whole);
    dp_assert(joined == DP_OK); /* It has just been judged, or was in the row before. */
    dp_lists_pin(&node->list_exchange->lists, row.record);
    dp_writer writer =
        dp_writer_of(node->list_exchange->vote_row, DP_COMMIT_ROW_HEAD + DP_RECORD_WHOLE_MAX);
    row.record = whole;
    dp_commit_row_write(&writer, &row);
    dp_assert(!writer.full);
    return dp_view_of(writer.data, writer.size);
}

dp_view dp_list_row_voted(dp_node *node, dp_view bytes)
{
    dp_commit_row row;

    if (!dp_ledger_lists(&node->ledger) || dp_commit_row_read(bytes, &row) != DP_OK ||
        row.record.size == 0) {
        return bytes;
    }
    dp_view whole;
    dp_lists_put_all(&node->list_exchange->lists, row.record);
    row.record = dp_record_voted(row.record);
    if (dp_list_join(node, row.record, false, &whole) != DP_OK) {
        return (dp_view){0}; /* A list that the row names is missing: as if it could not be read. */
    }
    dp_lists_pin(&node->list_exchange->lists, row.record);
    dp_writer writer =
        dp_writer_of(node->list_exchange->vote_row, DP_COMMIT_ROW_HEAD + DP_RECORD_WHOLE_MAX);
    dp_commit_row_write(&writer, &row);
    return dp_view_of(writer.data, writer.size);
}
