/* Proof that a voter signed two contradicting votes (witness.h; SAFETY A12): checked by anybody,
 * kept on disk, given to any peer that asks; a node that holds one decides nothing more on this
 * fork.
 *
 * Row: u8 form 1 | 32 culprit | PROOF message; or, of two FORKs of one slot, u8 form 2 | u16 size |
 * FORK record | FORK record, the own one first; or, once a STOP has ended that, u8 form 3 | STOP
 * without its head. A vote does not name its voter, so the key decides: the culprit is any voter of
 * the chain as known here under whose key both signatures hold. A former voter's key accuses
 * nobody; otherwise a member that was put out could stop the run. */
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/proof.h"
#include "gossip/context/context.h"
#include "gossip/vote/witness.h"

enum { FORM_VOTES = 1, FORM_FORKS = 2, FORM_STOP = 3 };

/* Which voter signed both; DP_NOBODY: none that is known here. No two voters have one key, so at
 * most one more signature is checked than there are voters. */
static uint32_t find_culprit(const dp_node *node, const dp_vote *a, const dp_vote *b)
{
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        const uint32_t index = (a->voter + i) % node->ledger.n_voters; /* As named: most likely. */
        const uint8_t *key = node->ledger.voters[index].key;
        if (dp_vote_verify(a, &node->config.crypto, &node->run, key)) {
            return dp_vote_verify(b, &node->config.crypto, &node->run, key) ? index
                                                                            : (uint32_t)DP_NOBODY;
        }
    }
    return DP_NOBODY;
}

static dp_status check(const dp_node *node, dp_view message, uint32_t *culprit)
{
    dp_vote a;
    dp_vote b;

    DP_TRY(dp_proof_msg_read(message, &a, &b));
    if (!dp_votes_contradict(&a, &b) || !dp_hash_equal(&a.fork, &node->ledger.fork)) {
        return DP_DENIED;
    }
    *culprit = find_culprit(node, &a, &b);
    return *culprit == DP_NOBODY ? DP_BADSIG : DP_OK;
}

static bool is_votes(const dp_proof *proof)
{
    return proof->row_size > 0 && proof->row[0] == FORM_VOTES;
}

static void halt(dp_node *node)
{
    dp_assert(!dp_peer_is_zero(&node->proof->culprit) || node->proof->row_size > 0);
    node->halted = true;
    dp_node_changed(node);
    dp_action *action = dp_out_add(&node->out, DP_DO_HALT);
    action->u.note = (dp_note){.code = DP_NOTE_REJECTED,
                               .round = node->ledger.round + 1,
                               .peer = node->proof->culprit,
                               .cause = is_votes(node->proof) ? "voted twice" : "two forks"};
}

static void write_row(dp_node *node)
{
    dp_proof *proof = node->proof;
    dp_action *action = dp_out_store(&node->out, DP_STORE_PROOF, &proof->op);

    dp_assert(node->proof->row_size > 0 && node->proof->row_size <= DP_PROOF_ROW_MAX);
    proof->failed = false;
    proof->stored_at = node->now;
    action->u.store.bytes = dp_view_of(proof->row, proof->row_size);
}

static dp_view message_of(const dp_proof *proof)
{
    return dp_view_of(proof->row + DP_PROOF_ROW_HEAD, proof->row_size - DP_PROOF_ROW_HEAD);
}

static void take(dp_node *node, uint32_t culprit, dp_view message)
{
    dp_proof *proof = node->proof;
    dp_writer writer = dp_writer_of(proof->row, sizeof proof->row);

    dp_assert(culprit < node->ledger.n_voters);
    proof->culprit = node->ledger.voters[culprit].peer;
    dp_write_u8(&writer, FORM_VOTES);
    dp_write_bytes(&writer, proof->culprit.bytes, sizeof proof->culprit.bytes);
    dp_write_view(&writer, message);
    dp_assert(!writer.full);
    proof->row_size = writer.size;
    halt(node);
    write_row(node);
    dp_node_send_all(node, message_of(proof));
}

void dp_proof_found(void *context, const dp_vote *a, const dp_vote *b)
{
    dp_node *node = context;
    uint8_t room[DP_PROOF_ROW_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_assert(dp_votes_contradict(a, b));
    dp_proof_msg_write(&writer, a, b);
    dp_assert(!writer.full);
    const uint32_t culprit = find_culprit(node, a, b);
    if (!node->halted && culprit != DP_NOBODY) {
        take(node, culprit, dp_view_of(room, writer.size));
    }
}

dp_status dp_proof_message(dp_node *node, uint32_t from, dp_view message)
{
    dp_time *again = &node->proof->again[from];
    uint32_t culprit = 0;

    if (node->halted) {
        return DP_OK;
    }
    if (!dp_time_reached(node->now, *again)) {
        return DP_DENIED;
    }
    const dp_status status = check(node, message, &culprit);
    if (status == DP_BADSIG && !dp_broken(127)) {
        *again = dp_time_after(node->now, DP_PROOF_PATIENCE_US);
    }
    DP_TRY(status);
    take(node, culprit, message);
    return DP_OK;
}

void dp_proof_forks(dp_node *node, const dp_fork_record *own, const dp_fork_record *other)
{
    dp_proof *proof = node->proof;
    dp_writer writer = dp_writer_of(proof->row, sizeof proof->row);

    if (node->halted) {
        return;
    }
    dp_write_u8(&writer, FORM_FORKS);
    dp_write_u16(&writer, (uint16_t)own->size);
    dp_write_bytes(&writer, own->bytes, own->size);
    dp_write_bytes(&writer, other->bytes, other->size);
    dp_assert(!writer.full);
    proof->row_size = writer.size;
    halt(node);
    write_row(node);
}

void dp_proof_stop(dp_node *node, const dp_stop *stop)
{
    dp_proof *proof = node->proof;
    dp_writer writer = dp_writer_of(proof->row, sizeof proof->row);

    dp_write_u8(&writer, FORM_STOP);
    dp_write_bytes(&writer, stop->loser.bytes, DP_HASH_BYTES);
    dp_write_bytes(&writer, stop->survivor.bytes, DP_HASH_BYTES);
    dp_write_bytes(&writer, stop->signature, DP_SIGNATURE_BYTES);
    dp_assert(!writer.full);
    proof->row_size = writer.size;
    node->halted = false;
    dp_node_changed(node);
    write_row(node);
}

static dp_status restore_stop(dp_node *node, dp_view row)
{
    dp_reader reader = dp_reader_of(row);
    dp_stop stop = {.has = true};

    dp_read_u8(&reader);
    dp_read_bytes(&reader, stop.loser.bytes, DP_HASH_BYTES);
    dp_read_bytes(&reader, stop.survivor.bytes, DP_HASH_BYTES);
    dp_read_bytes(&reader, stop.signature, DP_SIGNATURE_BYTES);
    DP_TRY(dp_reader_finish(&reader));
    node->forks->stop = stop;
    return DP_OK;
}

bool dp_proof_of_votes(const dp_node *node)
{
    return node->halted && is_votes(node->proof);
}

/* The other FORK is met again as it was met first, if the own one is still ours. */
static dp_status restore_forks(dp_node *node, dp_view row)
{
    dp_reader reader = dp_reader_of(row);

    dp_read_u8(&reader);
    const dp_view own = dp_read_view(&reader, dp_read_u16(&reader));
    const dp_view other = dp_read_view(&reader, dp_reader_left(&reader));
    DP_TRY(dp_reader_finish(&reader));
    const dp_hash hash = dp_record_hash(own);
    const dp_hash id = dp_fork_id(&node->ledger, &hash);
    if (!dp_hash_equal(&id, &node->ledger.fork) || row.size > sizeof node->proof->row) {
        return DP_OK;
    }
    memcpy(node->proof->row, row.data, row.size);
    node->proof->row_size = row.size;
    return dp_fork_restore_other(node, other);
}

dp_status dp_proof_restore(dp_node *node, dp_view row)
{
    dp_proof *proof = node->proof;
    uint32_t culprit = 0;

    if (row.size < DP_PROOF_ROW_HEAD) {
        return DP_BADMSG;
    }
    if (row.data[0] == FORM_STOP) {
        return restore_stop(node, row);
    }
    if (row.data[0] == FORM_FORKS) {
        return restore_forks(node, row);
    }
    if (row.data[0] != FORM_VOTES) {
        return DP_VERSION;
    }
    if (row.size > sizeof proof->row) {
        return DP_BADMSG;
    }
    const dp_status status = check(
        node, dp_view_of(row.data + DP_PROOF_ROW_HEAD, row.size - DP_PROOF_ROW_HEAD), &culprit);
    if (status == DP_DENIED || status == DP_BADSIG) {
        /* Of an earlier fork, or its culprit is no voter any more: it has done its work. */
        return DP_OK;
    }
    DP_TRY(status);
    memcpy(proof->row, row.data, row.size);
    proof->row_size = row.size;
    proof->culprit = node->ledger.voters[culprit].peer;
    return DP_OK;
}

void dp_proof_start(dp_node *node)
{
    if (node->proof->row_size > 0) {
        halt(node);
    }
}

bool dp_proof_stored(dp_node *node, uint32_t op, dp_status status)
{
    dp_proof *proof = node->proof;

    if (proof->op == 0 || op != proof->op) {
        return false;
    }
    proof->op = 0;
    proof->failed = status != DP_OK;
    return true;
}

void dp_proof_tick(dp_node *node)
{
    if (node->proof->failed && dp_time_between(node->proof->stored_at, node->now) >= DP_REPEAT_US) {
        write_row(node);
    }
}

void dp_proof_tell(dp_node *node, const dp_peer *to)
{
    if (node->halted && is_votes(node->proof)) {
        dp_node_send(node, to, message_of(node->proof));
    } else if (node->halted) {
        dp_fork_tell(node, to);
    }
}

/* Peers whose summary does not show a halt may not have the proof. */
void dp_proof_repeat(dp_node *node)
{
    for (uint32_t i = 1; node->halted && i < dp_members_count(node->members); i++) {
        const dp_member *member = dp_members_at(node->members, i);
        if (member->linked && !(member->has_summary && member->summary.mode == DP_MODE_HALTED)) {
            dp_proof_tell(node, &member->peer);
        }
    }
}

void dp_proof_forget_member(dp_node *node, uint32_t index)
{
    dp_assert(index < DP_MEMBERS_MAX);
    node->proof->again[index] = (dp_time){0};
}
