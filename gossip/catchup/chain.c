/* Records as they are decided: checked against the ledger, written, applied; and the last rounds in
 * memory for replay. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/equivocation.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/context/context.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"
#include "gossip/vote/witness.h"

static bool contains(const dp_record *record, const dp_peer *peer)
{
    for (uint32_t i = 0; i < record->n_late; i++) {
        if (dp_peer_equal(&record->late[i], peer)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < record->n_listed; i++) {
        if (dp_peer_equal(&record->listed[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

/* The root that the record names for the round before is the certified one: a majority of voters
 * checked its signatures. */
static void certify_before(dp_node *node, const dp_record *record)
{
    dp_history_row *before = dp_chain_row(node, record->round - 1);

    dp_assert(record->round > 0);
    if (record->round == 1) {
        node->chain->genesis_certified = true;
        node->chain->genesis_root = record->state_root;
    } else if (before != NULL) {
        before->certified = true;
        before->proven = true;
        before->root = record->state_root;
    }
}

/* Parts of this record that have the contribution with this index in them. */
static uint32_t taken_of(const dp_record *record, uint32_t index)
{
    uint32_t taken = 0;

    dp_assert(index < record->n_listed);
    dp_assert(record->n_parts <= DP_PARTS_MAX);
    for (uint32_t p = 0; p < record->n_parts; p++) {
        taken |= (record->parts[p].from >> index & 1U) << p;
    }
    return dp_broken(43) ? dp_part_all(record->n_parts) : taken;
}

static void remember_parts(dp_history_row *row, const dp_record *record)
{
    dp_assert(record->parted);
    dp_assert(record->n_parts <= DP_PARTS_MAX);
    row->n = 0;
    for (uint32_t p = 0; p < record->n_parts; p++) {
        const dp_part_row *part = &record->parts[p];
        if (part->has) {
            row->items[row->n++] = (dp_history_item){.peer = part->owner,
                                                     .root = part->root,
                                                     .bytes = part->bytes,
                                                     .q = part->q,
                                                     .first = row->cuts.first[p],
                                                     .end = dp_part_end(&row->cuts, p)};
        }
    }
}

/* Does it list this node? */
static bool remember_round(dp_node *node, const dp_record *record)
{
    dp_chain *chain = node->chain;
    dp_history_row *row = &chain->history[record->round % DP_HISTORY_ROUNDS];

    dp_assert(record->kind == DP_RECORD_ROUND);
    dp_assert(record->round == node->ledger.round);
    if (node->started) {
        dp_chain_drop_row(node, row); /* The objects that it names are never requested again. */
    }
    *row = (dp_history_row){.items = row->items,
                            .round = record->round,
                            .slot = record->slot,
                            .tokens = record->tokens_total,
                            .alpha = record->alpha,
                            .n = record->n_listed,
                            .contributors = record->n_listed,
                            .cuts = node->ledger.parted ? chain->cuts : (dp_part_cuts){.n = 0}};
    row->digest = dp_ledger_digest(&node->ledger);
    row->touched = contains(record, &node->self);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        row->items[i] = (dp_history_item){.peer = listed->peer,
                                          .root = listed->root,
                                          .bytes = listed->bytes,
                                          .tokens = listed->tokens + listed->carried,
                                          .q = listed->q,
                                          .clip = listed->clip,
                                          .end = DP_PART_WHOLE};
        if (dp_peer_equal(&listed->peer, &node->self)) {
            chain->own_round = record->round - dp_listed_age(record, i);
            chain->own_root = listed->root;
            chain->own_clip = listed->clip;
            chain->own_taken = taken_of(record, i);
            row->own = true;
            row->own_age = dp_listed_age(record, i);
            row->own_root = listed->root;
            row->own_clip = listed->clip;
            row->own_taken = chain->own_taken;
        }
    }
    if (record->parted) {
        remember_parts(row, record);
    }
    row->waits = !row->own && dp_ledger_may_be_stale(&node->ledger, &node->self);
    chain->gap = row->touched ? 0 : chain->gap + 1;
    row->gap = chain->gap;
    chain->listed_last = record->n_listed;
    return row->own;
}

/* The root key vouches for the state that it has all go on from. */
static void certify_fork(dp_node *node, const dp_record *record)
{
    dp_history_row *row = dp_chain_row(node, record->round);

    dp_assert(record->kind == DP_RECORD_FORK);
    if (record->round == 0) {
        node->chain->genesis_certified = true;
        node->chain->genesis_root = record->state_root;
    } else if (row != NULL) {
        row->certified = true;
        row->proven = true;
        row->root = record->state_root;
    }
}

/* From here on the ledger and the round history contain the record. Does it list this node? */
static bool apply_record(dp_node *node, const dp_record *record, const dp_hash *hash, dp_view bytes)
{
    dp_chain *chain = node->chain;
    const bool votes = dp_node_is_voter(node);
    bool own = false;

    dp_assert(record->slot == node->ledger.slot + 1);
    dp_witness_decided(node->witness, record->slot, hash);
    chain->cuts = node->ledger.layout.cuts; /* Of this record; the next has others. */
    dp_ledger_apply(&node->ledger, record, hash, chain->admitted);
    dp_leave_decided(node, votes);
    dp_fork_applied(node, record, hash, bytes);
    dp_witness_begin(node->witness, &node->ledger);
    if (record->kind == DP_RECORD_ROUND) {
        certify_before(node, record);
        own = remember_round(node, record);
        chain->decided_at = node->started ? node->now : chain->decided_at;
    } else if (record->kind == DP_RECORD_FORK) {
        certify_fork(node, record);
    }
    return own;
}

bool dp_chain_apply(dp_node *node)
{
    dp_chain *chain = node->chain;

    dp_assert(node->started && chain->op == 0 && !chain->failed);
    return apply_record(node, &chain->decoded, &chain->record_hash,
                        dp_view_of(chain->record, chain->record_size));
}

/* ---- offering, writing ---- */

static dp_status check_offer(dp_node *node, dp_view record, dp_view cert, const dp_hash *hash,
                             dp_record *decoded)
{
    dp_cert_of_record seals;

    const dp_status read = dp_record_decode(decoded, record);
    if (read != DP_OK) {
        return read == DP_AGAIN ? DP_BADMSG : read;
    }
    if (decoded->slot != node->ledger.slot + 1) {
        return decoded->slot > node->ledger.slot ? DP_AGAIN : DP_EXISTS;
    }
    if (!dp_hash_equal(&decoded->prev, &node->ledger.head) ||
        !dp_hash_equal(&decoded->run, &node->run) ||
        !dp_hash_equal(&decoded->fork, &node->ledger.fork)) {
        return DP_DENIED;
    }
    DP_TRY(dp_cert_of_record_decode(&seals, cert));
    if (decoded->kind == DP_RECORD_FORK) { /* The root key in it is its certificate. */
        return seals.n == 0 && seals.ballot == 0 ? DP_OK : DP_BADMSG;
    }
    if (!dp_broken(106) &&
        !dp_cert_verify(&seals, &node->config.crypto, &node->run, &node->ledger.fork, decoded->slot,
                        &decoded->prev, hash, node->ledger.voters, node->ledger.n_voters)) {
        return DP_BADSIG;
    }
    dp_equivocation_seals(node, &seals, decoded, hash);
    return DP_OK;
}

static void write_record(dp_node *node)
{
    dp_chain *chain = node->chain;
    dp_action *action = dp_out_store(&node->out, DP_STORE_DECIDED, &chain->op);

    dp_assert(node->chain->op != 0);
    dp_assert(node->chain->record_size > 0);
    chain->failed = false;
    chain->stored_at = node->now;
    action->u.store.slot = chain->decoded.slot;
    action->u.store.bytes = dp_view_of(chain->record, chain->record_size);
    action->u.store.cert = dp_view_of(chain->cert, chain->cert_size);
}

dp_status dp_chain_offer(dp_node *node, dp_view record, dp_view cert)
{
    dp_chain *chain = node->chain;
    const dp_hash hash = dp_record_hash(record);
    const dp_valid valid = {.ledger = &node->ledger,
                            .bytes = record,
                            .crypto = &node->config.crypto,
                            .admission = &node->config.admission,
                            .admitted = chain->admitted};
    const char *cause = "";

    if (chain->op != 0 || chain->failed || node->forks->op != 0) {
        return DP_AGAIN;
    }
    if (node->halted && node->ledger.slot >= node->forks->wanted) {
        return DP_DENIED; /* Unless it leads to the FORK that ends this. */
    }
    if (dp_ledger_lists(&node->ledger)) { /* As voted: completed, or to be fetched whole. */
        DP_TRY(dp_list_join(node, record, false, &record));
    }
    const dp_status status = check_offer(node, record, cert, &hash, &chain->decoded);
    if (status != DP_OK) {
        return status == DP_EXISTS ? DP_OK : status;
    }
    const dp_status verdict = dp_valid_record(&valid, &chain->decoded, &cause);
    if (verdict != DP_OK) {
        dp_node_note(node, DP_NOTE_REJECTED, chain->decoded.round, NULL, chain->decoded.slot, 0,
                     cause);
        return verdict;
    }
    memcpy(chain->record, record.data, record.size);
    chain->record_size = record.size;
    chain->record_hash = hash;
    memcpy(chain->cert, cert.data, cert.size);
    chain->cert_size = cert.size;
    /* Credentials of the decoded record must point into the bytes that stay. */
    const dp_status again =
        dp_record_decode(&chain->decoded, dp_view_of(chain->record, chain->record_size));
    dp_assert(again == DP_OK);
    write_record(node);
    return DP_OK;
}

bool dp_chain_stored(dp_node *node, uint32_t op, dp_status status, bool *written)
{
    dp_chain *chain = node->chain;

    *written = false;
    if (chain->op == 0 || op != chain->op) {
        return false;
    }
    chain->op = 0;
    chain->failed = status != DP_OK;
    if (!chain->failed) {
        dp_span_add(&chain->fsync, dp_time_between(chain->stored_at, node->now));
        *written = true;
    }
    return true;
}

void dp_chain_tick(dp_node *node)
{
    if (node->chain->failed && dp_time_between(node->chain->stored_at, node->now) >= DP_REPEAT_US) {
        write_record(node);
    }
}

dp_status dp_chain_restore(dp_node *node, uint64_t slot, dp_view record, dp_view cert)
{
    dp_chain *chain = node->chain;
    const dp_hash hash = dp_record_hash(record);

    dp_assert(!node->started);
    DP_TRY(check_offer(node, record, cert, &hash, &chain->decoded));
    if (slot != chain->decoded.slot) {
        return DP_CORRUPT;
    }
    for (uint32_t i = 0; chain->decoded.has_config && i < chain->decoded.config.n_admits; i++) {
        const dp_admit *admit = &chain->decoded.config.admits[i];
        DP_TRY(node->config.admission.check(node->config.admission.context, admit->credential,
                                            &node->run, node->ledger.root_key, &admit->peer,
                                            chain->decoded.time_ms, &chain->admitted[i]));
    }
    if (chain->decoded.kind == DP_RECORD_FORK) {
        const dp_valid valid = {.ledger = &node->ledger,
                                .bytes = record,
                                .crypto = &node->config.crypto,
                                .admission = &node->config.admission,
                                .admitted = chain->admitted};
        const char *cause = "";
        DP_TRY(dp_valid_record(&valid, &chain->decoded, &cause));
    }
    (void)apply_record(node, &chain->decoded, &hash, record);
    return DP_OK;
}
