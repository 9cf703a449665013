/* The record that the votes of a slot have decided: told to everybody, and given to the chain to be
 * written. */
#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/context/context.h"
#include "gossip/round/round.h"

static void tell(dp_node *node, uint64_t slot, dp_view record, dp_view cert)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_assert(record.size > 0 && cert.size > 0);
    dp_decide_msg_write(&writer, slot, cert, dp_record_voted(record));
    dp_assert(!writer.full);
    dp_node_send_all(node, dp_view_of(writer.data, writer.size));
}

void dp_round_tell_written(dp_node *node)
{
    dp_chain *chain = node->chain;

    dp_assert(node->chain->op == 0);
    if (node->round->tells_written) {
        node->round->tells_written = false;
        tell(node, node->ledger.slot, dp_view_of(chain->record, chain->record_size),
             dp_view_of(chain->cert, chain->cert_size));
    }
}

void dp_round_decided(dp_node *node)
{
    dp_commit *commit = node->commit;
    uint8_t cert[DP_CERT_OF_RECORD_BYTES_MAX];
    dp_view bytes;
    const dp_view record = dp_view_of(commit->outcome.data, commit->outcome.size);

    if (!commit->decided || node->chain->op != 0 || node->chain->failed ||
        commit->slot != node->ledger.slot + 1) {
        return;
    }
    dp_view whole;
    if (dp_ledger_lists(&node->ledger) && dp_list_join(node, record, true, &whole) != DP_OK) {
        return; /* The votes of others have decided it before its lists came. */
    }
    dp_status status = dp_cert_of_record_encode(&commit->cert, cert, sizeof cert, &bytes);
    dp_assert(status == DP_OK);
    status = dp_chain_offer(node, record, bytes);
    if (status != DP_OK) {
        return;
    }
    /* The owner of the ballot tells; the next in order too, in case the owner dies now. */
    const uint32_t second = dp_commit_owner(commit, commit->cert.ballot + 1);
    if (commit->self == dp_commit_owner(commit, commit->cert.ballot) || commit->self == second) {
        node->round->tells_written = dp_ledger_lists(&node->ledger);
        if (!node->round->tells_written) {
            tell(node, commit->slot, record, bytes);
        }
    }
}
