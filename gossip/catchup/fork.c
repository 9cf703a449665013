#include "gossip/catchup/fork.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"

/* The certificate of a FORK: ballot 0, no seals. */
static const uint8_t no_seals[5];

uint64_t dp_fork_tag(const dp_hash *fork)
{
    dp_reader reader = dp_reader_of(dp_view_of(fork->bytes, sizeof fork->bytes));

    return dp_read_u64(&reader);
}

/* ---- the own chain ---- */

const dp_head *dp_fork_head(const dp_node *node, uint64_t slot)
{
    const dp_head *head = &node->forks->heads[slot % DP_HEADS_MAX];

    return head->slot == slot && slot <= node->ledger.slot ? head : NULL;
}

static void fill(dp_fork_record *fork, const dp_record *record, const dp_hash *id, dp_view bytes)
{
    dp_assert(bytes.size <= sizeof fork->bytes);
    *fork = (dp_fork_record){.has = true,
                             .id = *id,
                             .parent = record->fork,
                             .slot = record->slot,
                             .prev = record->prev,
                             .size = bytes.size};
    memcpy(fork->bytes, bytes.data, bytes.size);
}

void dp_fork_applied(dp_node *node, const dp_record *record, const dp_hash *hash, dp_view bytes)
{
    dp_forks *forks = node->forks;

    dp_assert(node->ledger.slot == record->slot);
    dp_assert(node->forks->n <= DP_FORKS_KEPT);
    forks->heads[record->slot % DP_HEADS_MAX] =
        (dp_head){.slot = record->slot, .round = node->ledger.round, .hash = *hash};
    if (record->kind != DP_RECORD_FORK) {
        return;
    }
    if (forks->n == DP_FORKS_KEPT) {
        memmove(forks->own, forks->own + 1, sizeof forks->own - sizeof forks->own[0]);
        forks->n--;
    }
    fill(&forks->own[forks->n++], record, &node->ledger.fork, bytes);
}

dp_status dp_fork_restore_other(dp_node *node, dp_view bytes)
{
    dp_record *record = &node->draft;
    const dp_hash hash = dp_record_hash(bytes);
    const dp_hash id = dp_fork_id(&node->ledger, &hash);

    DP_TRY(dp_record_decode(record, bytes));
    if (record->kind != DP_RECORD_FORK || bytes.size > DP_FORK_BYTES_MAX) {
        return DP_BADMSG;
    }
    fill(&node->forks->other, record, &id, bytes);
    return DP_OK;
}

bool dp_fork_elsewhere(const dp_node *node, uint64_t tag)
{
    if (tag == dp_fork_tag(&node->ledger.fork)) {
        return false;
    }
    for (uint32_t i = 0; i < node->ledger.n_forks; i++) {
        if (tag == dp_fork_tag(&node->ledger.forks[i])) {
            return true;
        }
    }
    return node->forks->other.has && tag == dp_fork_tag(&node->forks->other.id);
}

/* ---- taking one ---- */

static void write_next(dp_node *node)
{
    dp_forks *forks = node->forks;
    const dp_head *before = dp_fork_head(node, forks->next.slot - 1);

    dp_assert(node->forks->op == 0);
    dp_assert(node->forks->next.has);
    if (node->chain->op != 0) {
        return;
    }
    if (forks->saving && dp_saved_own(node) < node->ledger.round) {
        if (dp_time_between(forks->asked_at, node->now) > DP_FORK_SAVE_US) {
            forks->next.has = false;
            dp_node_note(
                node, DP_NOTE_REJECTED, node->ledger.round, NULL, forks->next.slot, 0,
                "the chain is not restarted: the checkpoint to continue from could not be saved");
        }
        return; /* All are opened anew, and this state may be nowhere else. */
    }
    forks->saving = false;
    if (before == NULL || !dp_hash_equal(&before->hash, &forks->next.prev)) {
        forks->next.has = false; /* The chain has gone another way meanwhile. */
        return;
    }
    dp_action *action = dp_out_store(&node->out, DP_STORE_FORK, &forks->op);
    forks->failed = false;
    forks->stored_at = node->now;
    action->u.store.slot = forks->next.slot;
    action->u.store.round = before->round;
    action->u.store.bytes = dp_view_of(forks->next.bytes, forks->next.size);
    action->u.store.cert = dp_view_of(no_seals, sizeof no_seals);
}

bool dp_fork_stored(dp_node *node, uint32_t op, dp_status status)
{
    dp_forks *forks = node->forks;

    if (forks->op == 0 || op != forks->op) {
        return false;
    }
    forks->op = 0;
    forks->failed = status != DP_OK;
    if (status == DP_OK) {
        const dp_head *before = dp_fork_head(node, forks->next.slot - 1);
        dp_node_note(node, DP_NOTE_ADOPTED, before->round, NULL,
                     node->ledger.slot + 1 - forks->next.slot, node->ledger.round - before->round,
                     "fork");
        dp_node_reopen(node);
    }
    return true;
}

void dp_fork_tick(dp_node *node)
{
    dp_forks *forks = node->forks;

    if (forks->next.has && forks->op == 0 &&
        (!forks->failed || dp_time_between(forks->stored_at, node->now) >= DP_REPEAT_US)) {
        write_next(node);
    }
}

/* Two FORKs of one slot: which of them the root key meant nobody can know (SAFETY section 9). */
static const dp_fork_record *contradicting(const dp_node *node, const dp_record *record)
{
    for (uint32_t i = 0; i < node->forks->n; i++) {
        const dp_fork_record *own = &node->forks->own[i];
        if (own->slot == record->slot && dp_hash_equal(&own->parent, &record->fork) &&
            dp_hash_equal(&own->prev, &record->prev)) {
            return own;
        }
    }
    return NULL;
}

static void meet_other(dp_node *node, const dp_record *record, const dp_hash *id, dp_view bytes)
{
    const dp_fork_record *own = contradicting(node, record);

    fill(&node->forks->other, record, id, bytes);
    if (own != NULL) {
        dp_proof_forks(node, own, &node->forks->other);
    } else {
        dp_node_note(node, DP_NOTE_REJECTED, node->ledger.round, NULL, record->slot, 0,
                     "the root key restarted the chain twice; to end one of the two chains: dpnode "
                     "run merge");
    }
}

/* The own chain ends in favour of this one. */
static bool is_ordered(const dp_node *node, const dp_hash *id)
{
    const dp_stop *stop = &node->forks->stop;

    return stop->has && dp_hash_equal(&stop->survivor, id) &&
           (dp_hash_equal(&stop->loser, &node->ledger.fork) ||
            dp_ledger_was_fork(&node->ledger, &stop->loser));
}

/* A FORK that holds, of a slot at or before the next one. */
static void place(dp_node *node, const dp_record *record, const dp_hash *id, dp_view bytes)
{
    const dp_head *before = dp_fork_head(node, record->slot - 1);

    dp_assert(bytes.size <= DP_FORK_BYTES_MAX);
    const bool joins = dp_hash_equal(&record->fork, &node->ledger.fork) || is_ordered(node, id);

    if (before != NULL && dp_hash_equal(&before->hash, &record->prev) &&
        before->round == record->round && joins) {
        fill(&node->forks->next, record, id, bytes);
        write_next(node);
    } else {
        meet_other(node, record, id, bytes);
    }
}

/* This node's own FORK: all members continue from the state here, so it is saved first. */
void dp_fork_save_first(dp_node *node)
{
    dp_forks *forks = node->forks;

    if (node->ledger.round == 0 || dp_saved_own(node) == node->ledger.round) {
        return;
    }
    forks->saving = true;
    forks->asked_at = node->now;
    dp_action *action = dp_out_add(&node->out, DP_DO_SAVE);
    action->u.save.round = node->standing.applied;
    action->u.save.slot = dp_chain_row(node, node->standing.applied)->slot;
    action->u.save.state_root = node->standing.state_root;
    action->u.save.tensor_root = node->standing.tensor_root;
    action->u.save.must = true;
}

dp_status dp_fork_take(dp_node *node, dp_view bytes, const dp_peer *from)
{
    dp_forks *forks = node->forks;
    dp_record *record = &node->draft;
    const dp_hash hash = dp_record_hash(bytes);
    const dp_hash id = dp_fork_id(&node->ledger, &hash);
    const dp_valid valid = {.ledger = &node->ledger,
                            .bytes = bytes,
                            .crypto = &node->config.crypto,
                            .admission = &node->config.admission};
    const char *cause = "";

    if (dp_hash_equal(&id, &node->ledger.fork) || dp_ledger_was_fork(&node->ledger, &id) ||
        (forks->stop.has && dp_hash_equal(&id, &forks->stop.loser)) ||
        (forks->other.has && dp_hash_equal(&id, &forks->other.id) && !is_ordered(node, &id)) ||
        forks->next.has) {
        return DP_OK;
    }
    if (bytes.size > DP_FORK_BYTES_MAX) {
        return DP_TOOBIG;
    }
    DP_TRY(dp_record_decode(record, bytes));
    if (record->slot == 0 || record->kind != DP_RECORD_FORK) {
        return DP_DENIED;
    }
    if (record->slot > node->ledger.slot + 1 && !node->halted) {
        if (from != NULL) { /* Its voters may be unknown here; it comes in its turn. */
            dp_catchup_hint(node, from, record->slot);
        }
        return DP_OK;
    }
    const dp_status status = dp_valid_fork(&valid, record, &cause);
    if (status != DP_OK) {
        dp_node_note(node, DP_NOTE_REJECTED, node->ledger.round, NULL, record->slot, 0, cause);
        return status;
    }
    if (record->slot > node->ledger.slot + 1) {
        forks->wanted = record->slot;
        dp_catchup_hint(node, from, record->slot);
        return DP_OK;
    }
    place(node, record, &id, bytes);
    return DP_OK;
}

/* ---- telling ---- */

static void send_fork(dp_node *node, const dp_peer *to, const dp_fork_record *fork)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_assert(fork->has && fork->size > 0);
    dp_write_u8(&writer, DP_MSG_FORK);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, fork->bytes, fork->size);
    dp_node_send(node, to, dp_view_of(writer.data, writer.size));
}

static void send_stop(dp_node *node, const dp_peer *to)
{
    const dp_stop *stop = &node->forks->stop;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_write_u8(&writer, DP_MSG_STOP);
    dp_write_u8(&writer, DP_MSG_VERSION);
    dp_write_bytes(&writer, stop->loser.bytes, DP_HASH_BYTES);
    dp_write_bytes(&writer, stop->survivor.bytes, DP_HASH_BYTES);
    dp_write_bytes(&writer, stop->signature, DP_SIGNATURE_BYTES);
    dp_node_send(node, to, dp_view_of(writer.data, writer.size));
}

void dp_fork_tell(dp_node *node, const dp_peer *to)
{
    for (uint32_t i = 0; i < node->forks->n; i++) {
        send_fork(node, to, &node->forks->own[i]);
    }
    if (node->halted && node->forks->other.has) {
        send_fork(node, to, &node->forks->other); /* Both are the proof. */
    }
    if (node->forks->stop.has) {
        send_stop(node, to);
    }
}

dp_status dp_fork_message(dp_node *node, dp_view message, const dp_peer *from)
{
    return dp_fork_take(
        node, dp_view_of(message.data + DP_MSG_HEAD_BYTES, message.size - DP_MSG_HEAD_BYTES), from);
}

/* To the peers whose summary names another chain. */
void dp_fork_repeat(dp_node *node)
{
    const uint64_t own = dp_fork_tag(&node->ledger.fork);

    if ((node->forks->n == 0 && !node->forks->stop.has) ||
        !dp_time_reached(node->now, node->forks->repeat_at)) {
        return;
    }
    node->forks->repeat_at = dp_time_after(node->now, DP_FORK_REPEAT_US);
    for (uint32_t i = 1; i < dp_members_count(node->members); i++) {
        const dp_member *member = dp_members_at(node->members, i);
        if (member->linked && member->has_summary && member->summary.fork != own) {
            dp_fork_tell(node, &member->peer);
        }
    }
}

/* ---- the end of a chain ---- */

dp_status dp_fork_stop(dp_node *node, const dp_stop *stop)
{
    dp_forks *forks = node->forks;

    if (forks->stop.has && dp_hash_equal(&forks->stop.loser, &stop->loser) &&
        dp_hash_equal(&forks->stop.survivor, &stop->survivor)) {
        return DP_OK;
    }
    if (!dp_stop_verify(&node->config.crypto, &node->run, node->ledger.root_key, &stop->loser,
                        &stop->survivor, stop->signature)) {
        return DP_BADSIG;
    }
    if (dp_proof_of_votes(node) || dp_hash_equal(&stop->loser, &stop->survivor)) {
        return DP_OK; /* That halt ends by a FORK; this comes again. */
    }
    forks->stop = *stop;
    forks->stop.has = true;
    dp_proof_stop(node, &forks->stop);
    if (!forks->other.has) {
        return DP_OK;
    }
    if (dp_hash_equal(&forks->other.id, &stop->loser)) {
        forks->other.has = false;
    } else if (is_ordered(node, &forks->other.id) && !forks->next.has) {
        forks->next = forks->other; /* Its place is looked at when it is written. */
        forks->other.has = false;
        write_next(node);
    }
    return DP_OK;
}

dp_status dp_fork_stop_message(dp_node *node, dp_view message)
{
    dp_stop stop = {.has = true};
    dp_reader reader = dp_reader_of(message);

    dp_read_view(&reader, DP_MSG_HEAD_BYTES);
    dp_read_bytes(&reader, stop.loser.bytes, DP_HASH_BYTES);
    dp_read_bytes(&reader, stop.survivor.bytes, DP_HASH_BYTES);
    dp_read_bytes(&reader, stop.signature, DP_SIGNATURE_BYTES);
    DP_TRY(dp_reader_finish(&reader));
    return dp_fork_stop(node, &stop);
}
