/* A rival chain: the node searches messages that do not follow from its own chain for a voter that
 * signed both sides, and asks for more of them until it finds one. A rival chain exists only if a
 * voter lies. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/equivocation.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/vote/witness.h"

#define ASK_AGAIN_US DP_SECOND

static bool holds(const dp_node *node, const dp_witness_slot *entry, const dp_vote *vote)
{
    return vote->voter < entry->n_voters && dp_hash_equal(&vote->fork, &entry->fork) &&
           dp_vote_verify(vote, &node->config.crypto, &node->run, entry->voters[vote->voter].key);
}

static void take(dp_node *node, const dp_vote *vote)
{
    const dp_vote *other = dp_witness_take(node->witness, vote);

    if (other != NULL && node->started) {
        dp_proof_found(node, other, vote);
    }
}

void dp_equivocation_saw(void *context, const dp_vote *vote)
{
    take(context, vote);
}

void dp_equivocation_seals(dp_node *node, const dp_cert_of_record *cert, const dp_record *record,
                           const dp_hash *hash)
{
    const dp_witness_slot *entry = dp_witness_find(node->witness, record->slot);

    dp_assert(cert->n <= DP_VOTERS_MAX);
    for (uint32_t i = 0; entry != NULL && i < cert->n; i++) {
        dp_vote vote = {.type = DP_MSG_ACCEPTED,
                        .voter = cert->seals[i].voter,
                        .fork = record->fork,
                        .slot = record->slot,
                        .prev = record->prev,
                        .ballot = cert->ballot,
                        .hash = *hash};
        memcpy(vote.signature, cert->seals[i].signature, sizeof vote.signature);
        if (holds(node, entry, &vote)) {
            take(node, &vote);
        }
    }
}

void dp_equivocation_fetch(dp_node *node, const dp_peer *from, uint64_t slot)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (node->halted || slot == 0 || dp_witness_find(node->witness, slot) == NULL ||
        (node->proof->record_asked_at.us != 0 &&
         dp_time_between(node->proof->record_asked_at, node->now) < ASK_AGAIN_US)) {
        return;
    }
    node->proof->record_asked_at = node->now;
    dp_wire_write_records_get(&writer, slot, DP_WITNESS_SLOTS);
    dp_node_send(node, from, dp_view_of(writer.data, writer.size));
}

void dp_equivocation_vote(dp_node *node, const dp_vote *vote, const dp_peer *from)
{
    const dp_witness_slot *entry = dp_witness_find(node->witness, vote->slot);

    if (node->halted || entry == NULL || vote->type == DP_MSG_NACK || !holds(node, entry, vote)) {
        return;
    }
    take(node, vote);
    if (!dp_hash_equal(&vote->prev, &entry->prev)) {
        dp_equivocation_fetch(node, from, vote->slot - 1);
    }
}

/* Of one that is told as it was voted on, all but the rows of its lists. */
static bool reads(dp_record *record, dp_view bytes)
{
    const dp_status status = dp_record_decode(record, bytes);

    return status == DP_OK || status == DP_AGAIN;
}

void dp_equivocation_record(dp_node *node, uint64_t slot, dp_view bytes, dp_view cert)
{
    const dp_witness_slot *entry = dp_witness_find(node->witness, slot);
    const dp_hash hash = dp_record_hash(bytes);
    dp_record *record = &node->draft; /* Nothing of it is needed between two calls. */
    dp_cert_of_record seals;

    if (node->halted || entry == NULL || dp_hash_is_zero(&entry->hash) ||
        dp_hash_equal(&entry->hash, &hash) || !reads(record, bytes) || record->slot != slot ||
        dp_cert_of_record_decode(&seals, cert) != DP_OK) {
        return;
    }
    dp_equivocation_seals(node, &seals, record, &hash);
}
