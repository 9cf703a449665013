/* Opens a node, restores the durable data, closes it; and holds the host callbacks of the vote. */
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/catchup/catchup.h"
#include "gossip/catchup/chain.h"
#include "gossip/catchup/equivocation.h"
#include "gossip/catchup/fork.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/catchup/proof.h"
#include "gossip/catchup/saved.h"
#include "gossip/context/context.h"
#include "gossip/node/node.h"
#include "gossip/node/node_steps.h"
#include "gossip/parts/part_round.h"
#include "gossip/requests/leave.h"
#include "gossip/requests/requests.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/requests/rotate.h"
#include "gossip/round/admit.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/training/training.h"
#include "gossip/vote/commit_row.h"
#include "gossip/vote/witness.h"

/* ---- the vote's host ---- */

static void vote_send(void *context, uint32_t voter, dp_view message)
{
    dp_node *node = context;

    dp_assert(voter < node->ledger.n_voters);
    dp_node_send(node, &node->ledger.voters[voter].peer, message);
}

static uint32_t vote_store(void *context, uint64_t slot, dp_view row)
{
    dp_node *node = context;
    uint32_t op = 0;
    dp_action *action = dp_out_store(&node->out, DP_STORE_VOTE, &op);

    action->u.store.slot = slot;
    action->u.store.bytes = dp_list_row_whole(node, row);
    return op;
}

/* ---- opening ---- */

static bool admit_member(void *context, const dp_peer *peer, dp_view credential, uint64_t wall_ms,
                         dp_admitted *grants)
{
    const dp_node *node = context;

    return node->config.admission.check(node->config.admission.context, credential, &node->run,
                                        node->manifest.root_key, peer, wall_ms, grants) == DP_OK;
}

/* The row with this index now belongs to another member: forgets all data under the index. */
static void forget_member(void *context, uint32_t index)
{
    dp_node *node = context;

    dp_assert(index > 0 && index < DP_MEMBERS_MAX);
    dp_picker_forget(node->picker, index);
    dp_mix_forget(node->mix, index);
    dp_round_forget_member(node, index);
    dp_proof_forget_member(node, index);
    dp_part_round_forget_member(node, index);
}

static dp_status open_parts(dp_node *node)
{
    const dp_node_config *config = &node->config;
    const uint32_t rows = config->members_max < DP_MEMBERS_MAX - DP_GUESTS_MAX
                              ? config->members_max + DP_GUESTS_MAX
                              : (uint32_t)DP_MEMBERS_MAX;
    dp_admitted own = {0};
    const dp_heartbeat_config beat = {.run = node->run,
                                      .self = node->self,
                                      .incarnation = config->incarnation,
                                      .crypto = config->crypto,
                                      .pace = dp_heartbeat_pace(node->manifest.round_ms),
                                      .hold_us = (uint64_t)node->manifest.round_ms * 1000 / 4};

    dp_heartbeat_init(&node->beat, &beat);
    DP_IGNORE(config->admission.check(
        config->admission.context, config->credential, &node->run, node->manifest.root_key,
        &node->self, 0,
        &own)); /* Without capabilities others will refuse this node, and say why. */
    dp_members_config members = {.run = node->run,
                                 .self = node->self,
                                 .incarnation = config->incarnation,
                                 .credential = config->credential,
                                 .caps = own.caps,
                                 .n_addrs = config->n_addrs,
                                 .members_max = rows,
                                 .seed = dp_rng_next(&node->rng),
                                 .crypto = config->crypto,
                                 .admit = admit_member,
                                 .admit_context = node,
                                 .forget = forget_member,
                                 .beat = &node->beat};
    memcpy(members.addrs, config->addrs, sizeof members.addrs);
    memcpy(members.name, config->name, sizeof members.name);
    DP_TRY(dp_members_open(&node->members, &members));
    const dp_picker_config picker = {
        .members = node->members,
        .members_max = rows,
        .seed = dp_rng_next(&node->rng),
        .update_bytes_max = dp_manifest_update_bytes_max(&node->manifest),
        .state_bytes_max = dp_manifest_state_bytes_max(&node->manifest)};
    DP_TRY(dp_picker_open(&node->picker, &picker));
    const dp_mix_config mix = {.run = node->run,
                               .self = node->self,
                               .incarnation = config->incarnation,
                               .pause_us = (uint64_t)node->manifest.gossip_round_ms * 1000,
                               .pairs = node->manifest.pairs == DP_ON,
                               .seed = dp_rng_next(&node->rng),
                               .members = node->members,
                               .picker = node->picker,
                               .crypto = config->crypto,
                               .judge = dp_node_judge_terms,
                               .judge_context = node,
                               .members_max = rows};
    DP_TRY(dp_mix_open(&node->mix, &mix));
    DP_TRY(dp_ledger_open(&node->ledger, &node->manifest, &node->run, dp_rng_next(&node->rng)));
    DP_TRY(dp_map_init(&node->held_map, node->held_max, dp_rng_next(&node->rng)));
    return dp_out_open(&node->out);
}

static dp_status open_memory(dp_node *node)
{
    const bool lists = node->manifest.contributors_max > DP_LISTED_DEFAULT;
    const uint32_t listed = lists ? node->manifest.contributors_max : (uint32_t)DP_LISTED_DEFAULT;

    node->held_max =
        DP_STORED_OBJECTS_DEFAULT + (lists ? DP_STORED_OBJECTS_PER_LISTED * listed : 0);
    node->held = dp_reserve(node->held_max, sizeof *node->held);
    node->commit = dp_reserve(1, sizeof *node->commit);
    node->witness = dp_reserve(1, sizeof *node->witness);
    if (node->held == NULL || node->commit == NULL || node->witness == NULL) {
        return DP_NOMEM;
    }
    DP_TRY(dp_requests_open(node));
    DP_TRY(dp_catchup_open(node, listed));
    DP_TRY(dp_round_reserve(node, listed));
    DP_TRY(dp_train_open(node, listed));
    node->kind = &dp_round_whole;
    if (node->manifest.reduce == DP_REDUCE_PARTS) {
        node->kind = &dp_round_parted;
        DP_TRY(dp_part_round_reserve(node));
    }
    DP_TRY(open_parts(node));
    return node->ledger.judges ? dp_judging_open(node) : DP_OK;
}

dp_status dp_node_open(dp_node **out, const dp_node_config *config)
{
    if (config->credential.size > DP_CREDENTIAL_MAX || config->members_max < 2 ||
        config->members_max > DP_MEMBERS_MAX || config->n_addrs > DP_ADDRS_MAX) {
        return DP_BADARG;
    }
    dp_node *node = dp_alloc(1, sizeof *node);
    if (node == NULL) {
        return DP_NOMEM;
    }
    node->config = *config;
    if (node->config.admission.check == NULL) {
        node->config.admission = dp_admission_certs();
    }
    node->manifest = *config->manifest;
    node->config.manifest = &node->manifest;
    if (config->credential.size > 0) {
        memcpy(node->credential, config->credential.data, config->credential.size);
    }
    node->config.credential = dp_view_of(node->credential, config->credential.size);
    node->run = config->run;
    node->self = config->self;
    dp_rng_init(&node->rng, config->seed);
    const dp_status status = open_memory(node);
    if (status != DP_OK) {
        dp_node_close(node);
        return status;
    }
    const dp_commit_host host = {.context = node,
                                 .judge = dp_round_judge,
                                 .value = dp_round_value,
                                 .send = vote_send,
                                 .store = vote_store,
                                 .proof = dp_proof_found,
                                 .saw = dp_equivocation_saw};
    dp_commit_init(node->commit, &host, &config->crypto, &node->run,
                   config->has_vote_key ? config->vote_public_key : NULL);
    dp_witness_begin(node->witness, &node->ledger);
    dp_catchup_begin(node);
    *out = node;
    return DP_OK;
}

void dp_node_close(dp_node *node)
{
    if (node == NULL) {
        return;
    }
    dp_mix_close(node->mix);
    dp_picker_close(node->picker);
    dp_members_close(node->members);
    dp_ledger_close(&node->ledger);
    dp_map_close(&node->held_map);
    dp_out_close(&node->out);
    dp_part_round_release(node);
    dp_train_close(node);
    dp_round_release(node);
    dp_catchup_close(node);
    dp_requests_close(node);
    dp_free(node->commit);
    dp_free(node->held);
    dp_free(node->witness);
    dp_free(node);
}

/* ---- restoring ---- */

dp_status dp_node_restore_record(dp_node *node, uint64_t slot, dp_view record, dp_view cert)
{
    dp_assert(!node->started);
    return dp_chain_restore(node, slot, record, cert);
}

dp_status dp_node_restore_vote(dp_node *node, dp_view row)
{
    return dp_commit_restore(node->commit, dp_list_row_voted(node, row));
}

dp_status dp_node_restore_proof(dp_node *node, dp_view row)
{
    dp_assert(!node->started);
    return dp_proof_restore(node, row);
}

dp_status dp_node_pending_parts(dp_view row, dp_part_list *parts)
{
    return dp_train_pending_parts(row, parts);
}

dp_status dp_node_restore_pending(dp_node *node, dp_view row)
{
    dp_assert(!node->started);
    return dp_train_restore(node, row);
}

dp_status dp_node_restore_exchange(dp_node *node, const uint8_t exchange[16], dp_view row)
{
    dp_assert(!node->started);
    return dp_mix_restore(node->mix, exchange, row);
}

dp_status dp_node_restore_checkpoint(dp_node *node, uint64_t round, const dp_hash *tensor_root,
                                     uint64_t tensor_bytes)
{
    dp_assert(!node->started);
    dp_saved_add(node, round, tensor_root, tensor_bytes, false);
    return DP_OK;
}

dp_status dp_node_restore_object(dp_node *node, const dp_hash *root, uint64_t size)
{
    dp_assert(!node->started);
    dp_node_hold(node, root, size);
    return DP_OK;
}

void dp_node_restore_part(dp_node *node, const dp_hash *root)
{
    dp_catchup_has_part(node, root);
}

dp_status dp_node_restore_peer(dp_node *node, const dp_peer *peer, const dp_addr *addrs,
                               uint32_t n_addrs)
{
    return dp_members_add(node->members, peer, (dp_view){0}, 0, addrs, n_addrs) != DP_MEMBER_NONE
               ? DP_OK
               : DP_TOOBIG;
}
