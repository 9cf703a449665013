/* Records as they are decided: checked against the ledger, written, applied; and the last rounds in
 * memory for replay. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/node/node_internal.h"
#include "gossip/requests/invite_wish.h"
#include "gossip/requests/rotate.h"

dp_ring_row *dp_chain_row(const dp_node *node, uint64_t round)
{
    dp_ring_row *row = &node->chain->ring[round % DP_RING_ROUNDS];

    return round > 0 && row->round == round ? row : NULL;
}

bool dp_chain_digest(const dp_node *node, uint64_t round, dp_hash *digest)
{
    const dp_ring_row *row = dp_chain_row(node, round);

    if (round == 0) {
        *digest = node->chain->genesis_digest;
        return true;
    }
    if (row == NULL) {
        return false;
    }
    *digest = row->digest;
    return true;
}

bool dp_chain_certified(const dp_node *node, uint64_t round, dp_hash *root)
{
    const dp_ring_row *row = dp_chain_row(node, round);

    if (round == 0 && node->chain->genesis_certified) {
        *root = node->chain->genesis_root;
        return true;
    }
    if (row == NULL || !row->certified) {
        return false;
    }
    *root = row->root;
    return true;
}

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
    dp_ring_row *before = dp_chain_row(node, record->round - 1);

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
static uint32_t taken_of(const dp_node *node, const dp_record *record, uint32_t index)
{
    uint32_t taken = 0;

    for (uint32_t p = 0; p < record->n_parts; p++) {
        taken |= (record->parts[p].from >> index & 1U) << p;
    }
    /* M42: what the owners told this node, instead of what is decided. */
    for (uint32_t i = 0; dp_broken(42) && node->parts != NULL && i < node->parts->n_results; i++) {
        const dp_part_word *word = &node->parts->results[i].word;
        for (uint32_t k = 0; k < word->n; k++) {
            taken |= dp_peer_equal(&word->sources[k].peer, &node->self) ? 1U << word->part : 0;
        }
    }
    return dp_broken(43) ? dp_part_all(record->n_parts) : taken;
}

static void remember_parts(dp_ring_row *row, const dp_record *record)
{
    row->n = 0;
    for (uint32_t p = 0; p < record->n_parts; p++) {
        const dp_part_row *part = &record->parts[p];
        if (part->has) {
            row->items[row->n++] = (dp_ring_item){.peer = part->owner,
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
    dp_ring_row *row = &chain->ring[record->round % DP_RING_ROUNDS];

    if (node->started) {
        dp_chain_drop_row(node, row); /* What it names is never asked for again. */
    }
    *row = (dp_ring_row){.items = row->items,
                         .round = record->round,
                         .slot = record->slot,
                         .tokens = record->tokens_total,
                         .alpha = record->alpha,
                         .n = record->n_listed,
                         .contributors = record->n_listed,
                         .cuts = node->parts != NULL ? chain->cuts : (dp_part_cuts){.n = 0}};
    row->digest = dp_ledger_digest(&node->ledger);
    row->touched = contains(record, &node->self);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        row->items[i] = (dp_ring_item){.peer = listed->peer,
                                       .root = listed->root,
                                       .bytes = listed->bytes,
                                       .q = listed->q,
                                       .clip = listed->clip,
                                       .end = DP_PART_WHOLE};
        if (dp_peer_equal(&listed->peer, &node->self)) {
            chain->own_round = record->round - dp_listed_age(record, i);
            chain->own_root = listed->root;
            chain->own_clip = listed->clip;
            chain->own_taken = taken_of(node, record, i);
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

/* What has become of the publication of this node. */
static void note_outcome(dp_node *node, const dp_record *record, bool own)
{
    const dp_pending *pending = &node->train->pending;

    if (own) {
        dp_node_note(node, DP_NOTE_COUNTED, record->round, NULL, node->chain->own_clip, 0, "");
    } else if (pending->has && pending->ready.round == record->round) {
        dp_node_note(node, DP_NOTE_LEFT_OUT, record->round, NULL, 0, 0,
                     dp_node_is_open(node, &pending->ready) ? "the next round may count it"
                                                            : "its work is carried over");
    } else if (pending->has && pending->ready.round + 1 == record->round && !pending->settled &&
               node->ledger.stale) {
        dp_node_note(node, DP_NOTE_LEFT_OUT, record->round, NULL, 0, 0, "its work is carried over");
    }
}

static void note_config(dp_node *node, const dp_record *record, uint32_t voters_before)
{
    for (uint32_t i = 0; record->has_config && i < record->config.n_admits; i++) {
        dp_node_note(node, DP_NOTE_ADMITTED, record->round, &record->config.admits[i].peer, 0, 0,
                     "");
    }
    for (uint32_t i = 0; record->has_config && i < record->config.n_removes; i++) {
        const dp_peer *peer = &record->config.removes[i].peer;
        const uint32_t index = dp_node_member_index(node, peer);
        const dp_remove_reason reason = record->config.removes[i].reason;
        dp_node_note(node, DP_NOTE_REMOVED, record->round, peer, 0, 0,
                     reason == DP_REMOVE_LEFT      ? "left"
                     : reason == DP_REMOVE_REVOKED ? "revoked"
                     : reason == DP_REMOVE_HARMFUL ? "harmful"
                                                   : "absent");
        if (reason == DP_REMOVE_ABSENT) { /* It may come back, as a newcomer. */
            if (index != DP_MEMBER_NONE) {
                dp_members_mark(node->members, index, false, false);
            }
        } else if (dp_peer_equal(peer, &node->self)) {
            node->leaving = true;
        } else if (index != DP_MEMBER_NONE) {
            /* Who goes by its own wish may be the only one from whom others can have this
             * record. */
            const bool guest = reason == DP_REMOVE_LEFT;
            dp_members_remove(node->members, index, node->now, guest ? DP_LINGER_US : 0,
                              &node->out);
        }
    }
    for (uint32_t i = 0; record->has_config && i < record->config.n_fences; i++) {
        dp_node_fence(node, &record->config.fences[i].peer, record->config.fences[i].incarnation);
    }
    if (record->has_config && record->config.n_voters > 0) {
        dp_node_note(node, DP_NOTE_VOTERS, record->round, NULL, voters_before,
                     node->ledger.n_voters, "");
    }
}

void dp_chain_tell_members(dp_node *node)
{
    dp_peer voters[DP_VOTERS_MAX];

    for (uint32_t i = 0; i < node->ledger.n_roster; i++) {
        const dp_roster_entry *entry = &node->ledger.roster[i];
        if (entry->gone == 0) {
            const uint32_t index = dp_members_enter(node->members, &entry->peer, entry->caps);
            if (index != DP_MEMBER_NONE) {
                dp_members_mark(node->members, index, true,
                                dp_ledger_voter(&node->ledger, &entry->peer) != DP_NOBODY);
            }
        }
    }
    for (uint32_t i = 0; i < node->ledger.n_voters; i++) {
        voters[i] = node->ledger.voters[i].peer;
    }
    dp_beat_set_voters(&node->beat, voters, node->ledger.n_voters, node->now);
}

/* The root key vouches for the state that it has all go on from. */
static void certify_fork(dp_node *node, const dp_record *record)
{
    dp_ring_row *row = dp_chain_row(node, record->round);

    if (record->round == 0) {
        node->chain->genesis_certified = true;
        node->chain->genesis_root = record->state_root;
    } else if (row != NULL) {
        row->certified = true;
        row->proven = true;
        row->root = record->state_root;
    }
}

static void apply_record(dp_node *node, const dp_record *record, const dp_hash *hash, dp_view bytes)
{
    const uint32_t voters_before = node->ledger.n_voters;
    const bool votes = dp_node_is_voter(node);
    const bool is_round = record->kind == DP_RECORD_ROUND;
    bool own = false;

    dp_witness_decided(node->witness, record->slot, hash);
    if (is_round && node->started) {
        dp_round_count_missed(node, record);
    }
    node->chain->cuts = node->ledger.layout.cuts; /* Of this record; the next has others. */
    dp_ledger_apply(&node->ledger, record, hash, node->chain->admitted);
    node->leave->voted =
        votes || (node->leave->voted && dp_ledger_member(&node->ledger, &node->self) == NULL);
    dp_fork_applied(node, record, hash, bytes);
    dp_witness_begin(node->witness, &node->ledger);
    if (is_round) {
        certify_before(node, record);
        own = remember_round(node, record);
    } else if (record->kind == DP_RECORD_FORK) {
        certify_fork(node, record);
    }
    if (!node->started) {
        return;
    }
    if (record->kind == DP_RECORD_FORK) {
        dp_node_note(node, DP_NOTE_ADOPTED, node->ledger.round, NULL, 0, 0, "fork");
        dp_node_reopen(node);
        return;
    }
    note_config(node, record, voters_before);
    dp_invite_wish_applied(node, record);
    dp_rotate_applied(node);
    if (is_round) {
        if (node->round->opened.us != 0) {
            dp_deadline_measure(&node->round->deadline,
                                dp_time_between(node->round->opened, node->now));
            dp_beat_hold(&node->beat, dp_deadline_length(&node->round->deadline) / 4);
        }
        node->chain->decided_at = node->now;
        dp_node_note(node, DP_NOTE_DECIDED, record->round, NULL, record->n_listed, record->slot,
                     "");
        note_outcome(node, record, own);
        dp_chain_drop_unlisted(node);
        dp_chain_drop_old(node);
    }
    if (record->has_config || node->ledger.slot == 1) {
        dp_chain_tell_members(node);
    }
    dp_commit_begin(node->commit, &node->ledger, &node->self);
    dp_round_open_slot(node, is_round);
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
    dp_rival_seals(node, &seals, decoded, hash);
    return DP_OK;
}

static void write_record(dp_node *node)
{
    dp_chain *chain = node->chain;
    dp_action *action = dp_out_store(&node->out, DP_STORE_DECIDED, &chain->op);

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
    if (dp_broken(13)) {
        chain->op = 0;
        apply_record(node, &chain->decoded, &hash, dp_view_of(chain->record, chain->record_size));
    }
    return DP_OK;
}

static void tell_decided(dp_node *node, uint64_t slot, dp_view record, dp_view cert)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_decide_msg_write(&writer, slot, cert, dp_record_voted(record));
    dp_assert(!writer.full);
    dp_node_send_all(node, dp_view_of(writer.data, writer.size));
}

bool dp_chain_stored(dp_node *node, uint32_t op, dp_status status)
{
    dp_chain *chain = node->chain;

    if (chain->op == 0 || op != chain->op) {
        return false;
    }
    chain->op = 0;
    if (status != DP_OK) {
        chain->failed = true;
        return true;
    }
    dp_span_add(&node->round->fsync, dp_time_between(chain->stored_at, node->now));
    apply_record(node, &chain->decoded, &chain->record_hash,
                 dp_view_of(chain->record, chain->record_size));
    if (node->reopening) {
        return true;
    }
    if (chain->tells) {
        chain->tells = false;
        tell_decided(node, node->ledger.slot, dp_view_of(chain->record, chain->record_size),
                     dp_view_of(chain->cert, chain->cert_size));
    }
    dp_catchup_next(node);
    node->dirty = true;
    return true;
}

void dp_chain_tick(dp_node *node)
{
    if (dp_ledger_lists(&node->ledger)) {
        dp_chain_drop_rest(node);
    }
    if (node->chain->failed && dp_time_between(node->chain->stored_at, node->now) >= DP_REPEAT_US) {
        write_record(node);
    }
}

dp_status dp_chain_restore(dp_node *node, uint64_t slot, dp_view record, dp_view cert)
{
    dp_chain *chain = node->chain;
    const dp_hash hash = dp_record_hash(record);

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
    apply_record(node, &chain->decoded, &hash, record);
    return DP_OK;
}

void dp_chain_decided(dp_node *node)
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
        node->chain->tells = dp_ledger_lists(&node->ledger);
        if (!node->chain->tells) {
            tell_decided(node, commit->slot, record, bytes);
        }
    }
}
