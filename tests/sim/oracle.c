#include "tests/sim/oracle.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/record/wire.h"
#include "gossip/round/round_msg.h"
#include "tests/sim/epochs.h"
#include "tests/sim/evil.h"
#include "tests/sim/forks.h"
#include "tests/sim/oracle_internal.h"

void *dp_oracle_room(void *items, uint64_t count, uint64_t *capacity, size_t size)
{
    if (count < *capacity) {
        return items;
    }
    const uint64_t more = *capacity == 0 ? 64 : *capacity * 2;
    uint8_t *grown = realloc(items, more * size);
    dp_assert(grown != NULL);
    memset(grown + *capacity * size, 0, (more - *capacity) * size);
    *capacity = more;
    return grown;
}

static dp_round_book *add_round(dp_oracle *o)
{
    o->rounds = dp_oracle_room(o->rounds, o->n_rounds, &o->rounds_capacity, sizeof *o->rounds);
    return &o->rounds[o->n_rounds++];
}

static dp_hash tensor_root_of(const dp_sim *sim, uint64_t round, const dp_toy_model *model)
{
    uint8_t state[DP_TOY_STATE_BYTES];

    dp_toy_state(round, model, state);
    return dp_shelf_root(&sim->shelf, dp_view_of(state, sizeof state));
}

dp_slot_book *dp_oracle_slot(dp_sim *sim, uint64_t slot)
{
    dp_oracle *o = sim->oracle;

    while (slot >= o->slots_capacity) {
        o->slots =
            dp_oracle_room(o->slots, o->slots_capacity, &o->slots_capacity, sizeof *o->slots);
    }
    return &o->slots[slot];
}

dp_status dp_oracle_open(dp_sim *sim)
{
    dp_oracle *o = calloc(1, sizeof *o);

    if (o == NULL) {
        return DP_NOMEM;
    }
    sim->oracle = o;
    o->members = calloc(sim->plan.nodes, sizeof *o->members);
    o->buffers = calloc(sim->plan.nodes, sizeof *o->buffers);
    o->live = calloc(sim->plan.nodes, sizeof *o->live);
    o->far_since = calloc((size_t)sim->plan.nodes * sim->plan.nodes, sizeof *o->far_since);
    if (o->members == NULL || o->buffers == NULL || o->live == NULL || o->far_since == NULL) {
        return DP_NOMEM;
    }
    o->due = calloc(sim->plan.nodes, sizeof *o->due);
    o->accused = calloc((size_t)sim->plan.nodes * sim->plan.nodes, sizeof *o->accused);
    if (o->due == NULL || o->accused == NULL) {
        return DP_NOMEM;
    }
    if (!sim->plan.measured) {
        DP_TRY(dp_lives_open(&o->lives, sim->plan.nodes));
    }
    o->members[0].member = true;
    o->cuts.n = sim->plan.parts ? 1 : 0;
    dp_round_book *start = add_round(o);
    dp_toy_first(sim->manifest.model_seed, &start->model);
    start->tensor_root = tensor_root_of(sim, 0, &start->model);
    dp_slot_book *first = dp_oracle_slot(sim, 1);
    first->n_voters = 1;
    first->voters[0] = sim->hosts[0].peer;
    dp_sim_vote_key(&sim->hosts[0], first->keys[0]);
    o->slots[0].hash = sim->run;
    return DP_OK;
}

void dp_oracle_close(dp_sim *sim)
{
    dp_oracle *o = sim->oracle;

    if (o == NULL) {
        return;
    }
    for (uint64_t s = 0; s < o->slots_capacity; s++) {
        for (uint32_t i = 0; i < o->slots[s].n_ballots; i++) {
            free(o->slots[s].ballots[i].record);
        }
        free(o->slots[s].ballots);
    }
    free(o->slots);
    free(o->rounds);
    free(o->roots);
    free(o->claims);
    free(o->mixes);
    free(o->members);
    free(o->live);
    free(o->far_since);
    free(o->due);
    free(o->accused);
    dp_lives_close(o->lives);
    free(o->buffers);
    for (uint32_t i = 0; i < o->n_parcels; i++) {
        free(o->parcels[i].parts);
    }
    free(o->parcels);
    free(o->counted);
    free(o->lines);
    free(o);
    sim->oracle = NULL;
}

void dp_oracle_sent(dp_host *host, dp_view message)
{
    uint8_t type = dp_msg_type_of(message);

    if (type == DP_MSG_RELAY) {
        dp_wire_relay relay;
        if (dp_wire_read_relay(message, &relay) != DP_OK) {
            dp_sim_fail(host->sim, "W1", host->index, "sent a RELAY that does not decode");
            return;
        }
        message = relay.message;
        type = dp_msg_type_of(message);
    }
    if (type == DP_MSG_MIX_SIGNED) {
        dp_mix_signed word;
        if (dp_mix_signed_read(message, &word) != DP_OK) {
            dp_sim_fail(host->sim, "W1", host->index, "sent a MIX_SIGNED that does not decode");
            return;
        }
        message = word.message;
        type = dp_msg_type_of(message);
    }
    if (type >= DP_MSG_PREPARE && type <= DP_MSG_ACCEPTED) {
        dp_oracle_vote(host, message);
    } else if (type >= DP_MSG_MIX_OFFER && type <= DP_MSG_MIX_STATUS) {
        dp_oracle_exchange_sent(host, message);
    } else if (type == DP_MSG_READY) {
        dp_ready ready;
        if (dp_ready_msg_read(message, &ready) != DP_OK) {
            dp_sim_fail(host->sim, "W1", host->index, "sent a READY that does not decode");
        } else if (dp_peer_equal(&ready.peer, &host->peer)) {
            dp_oracle_ready(host, &ready);
        }
    } else if (type == DP_MSG_STATEMENT || type == DP_MSG_SYNC) {
        dp_oracle_accusations(host, message);
    }
}

/* ---- the chain ---- */

static void take_config(dp_sim *sim, dp_slot_book *book, const dp_record *record)
{
    dp_oracle *o = sim->oracle;
    const uint64_t slot = record->slot;
    dp_slot_book *next = dp_oracle_slot(sim, slot + 1);

    (void)book;
    memcpy(next->voters, o->slots[slot].voters, sizeof next->voters);
    memcpy(next->keys, o->slots[slot].keys, sizeof next->keys);
    next->n_voters = o->slots[slot].n_voters;
    if (!record->has_config) {
        return;
    }
    for (uint32_t i = 0; i < record->config.n_admits; i++) {
        const uint32_t index = dp_sim_index(sim, &record->config.admits[i].peer);
        if (index >= sim->plan.nodes) {
            dp_sim_fail(sim, "S10", 0, "a stranger was admitted in slot %llu",
                        (unsigned long long)slot);
            return;
        }
        dp_member_book *m = &o->members[index];
        m->member = true;
        if (++o->redeemed > sim->plan.invite_uses && sim->plan.invite_uses != 0) {
            dp_sim_fail(sim, "S10", index,
                        "slot %llu admits one more than the %u uses of the invite",
                        (unsigned long long)slot, sim->plan.invite_uses);
        }
        m->admitted_round = record->kind == DP_RECORD_ROUND ? record->round : o->n_rounds - 1;
    }
    for (uint32_t i = 0; i < record->config.n_removes; i++) {
        const uint32_t index = dp_sim_index(sim, &record->config.removes[i].peer);
        if (index < sim->plan.nodes) {
            const bool absent = record->config.removes[i].reason == DP_REMOVE_ABSENT;
            o->members[index].member = false;
            if (record->config.removes[i].reason == DP_REMOVE_HARMFUL) {
                sim->totals.harmful++;
                if (!dp_evil_does(sim, index, DP_EVIL_TRAINER)) {
                    dp_sim_fail(sim, "S20", index, "put out for harm that it has not done");
                }
            } else if (!sim->hosts[index].leaving && !(absent && sim->hosts[index].left)) {
                dp_sim_fail(sim, "S11", index, "removed from the roster without having left");
            }
        }
    }
    dp_epochs_judge(sim, record);
    for (uint32_t i = 0; i < record->config.n_revoked; i++) {
        bool ordered = false;
        for (uint32_t k = 0; k < DP_SIM_INVITES; k++) {
            const dp_invite_id id = dp_sim_invite(k);
            ordered = ordered || ((sim->invites_ordered >> k & 1U) != 0 &&
                                  dp_invite_id_compare(&id, &record->config.revoked[i].id) == 0);
        }
        if (!ordered) {
            dp_sim_fail(sim, "S10", 0, "slot %llu revokes an invite that nobody ordered it for",
                        (unsigned long long)slot);
        }
    }
    for (uint32_t i = 0; i < record->config.n_fences; i++) {
        const uint32_t index = dp_sim_index(sim, &record->config.fences[i].peer);
        if (index < sim->plan.nodes) {
            o->members[index].fenced = true;
        }
    }
    if (record->config.n_voters != 0) {
        next->n_voters = record->config.n_voters;
        for (uint32_t i = 0; i < next->n_voters; i++) {
            next->voters[i] = record->config.voters[i].voter.peer;
            memcpy(next->keys[i], record->config.voters[i].voter.key, DP_PUBLIC_KEY_BYTES);
        }
        if (next->n_voters % 2 == 0 || next->n_voters > DP_VOTERS_MAX) {
            dp_sim_fail(sim, "A8", 0, "slot %llu makes %u voters", (unsigned long long)slot,
                        next->n_voters);
        }
    }
}

/* Every blob of a decided record is on the disks of a majority of its voters (except those whose
 * disk was lost). */
static void check_held(dp_sim *sim, const dp_slot_book *book, const dp_record *record)
{
    for (uint32_t i = 0; i < (record->parted ? record->n_parts : record->n_listed); i++) {
        if (record->parted && !record->parts[i].has) {
            continue;
        }
        const uint32_t object = dp_shelf_find(
            &sim->shelf, record->parted ? &record->parts[i].root : &record->listed[i].root);
        uint32_t holders = 0;
        for (uint32_t v = 0; v < book->n_voters; v++) {
            const uint32_t index = dp_sim_index(sim, &book->voters[v]);
            if (index < sim->plan.nodes &&
                (dp_disk_holds(&sim->hosts[index].disk, object) ||
                 dp_rot_is_lost(&sim->hosts[index], object) || sim->oracle->members[index].forgot ||
                 dp_evil_is(sim, index))) {
                holders++;
            }
        }
        if (holders * 2 <= book->n_voters) {
            dp_sim_fail(sim, "M14", record->parted ? 0 : dp_sim_index(sim, &record->listed[i].peer),
                        "round %llu is decided and a blob of it lies on %u of %u voters' disks",
                        (unsigned long long)record->round, holders, book->n_voters);
            return;
        }
    }
}

static void take_round(dp_sim *sim, const dp_record *record)
{
    dp_oracle *o = sim->oracle;
    dp_toy_term terms[DP_LISTED_MAX];
    uint32_t n_terms = record->n_listed;

    if (record->round != o->n_rounds || record->n_listed == 0) {
        dp_sim_fail(sim, "S3", 0, "slot %llu decides round %llu after round %llu with %u listed",
                    (unsigned long long)record->slot, (unsigned long long)record->round,
                    (unsigned long long)(o->n_rounds - 1), record->n_listed);
        return;
    }
    sim->totals.listed += record->n_listed;
    for (uint32_t i = 0; i < record->n_listed; i++) {
        sim->totals.tokens += record->listed[i].tokens + record->listed[i].carried;
    }
    if (record->n_listed > sim->totals.listed_most) {
        sim->totals.listed_most = record->n_listed;
    }
    if (o->n_rounds == 1) {
        sim->totals.first_round_us = sim->now_us;
    }
    sim->totals.last_round_us = sim->now_us;
    dp_round_book *last = &o->rounds[o->n_rounds - 1];
    last->state_root = record->state_root;
    dp_oracle_state(sim, record);
    dp_oracle_weights(sim, record);
    dp_oracle_lines(sim, record);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint32_t object = dp_shelf_find(&sim->shelf, &record->listed[i].root);
        dp_oracle_listed(sim, record, i);
        if (record->parted) {
            continue;
        }
        if (object == DP_SHELF_NONE) {
            dp_sim_fail(sim, "S4", 0, "round %llu lists a blob that nobody made",
                        (unsigned long long)record->round);
            return;
        }
        terms[i] =
            (dp_toy_term){.blob = dp_shelf_bytes(&sim->shelf, object), .q = record->listed[i].q};
    }
    if (record->parted) {
        n_terms = dp_oracle_parts(sim, record, terms);
    }
    dp_round_book *round = add_round(o);
    o->round_us = sim->now_us;
    round->slot = record->slot;
    round->model = o->rounds[o->n_rounds - 2].model;
    if (dp_toy_outer(&round->model, record->alpha, terms, n_terms) != DP_OK) {
        dp_sim_fail(sim, "S4", 0, "round %llu lists a blob that does not decode",
                    (unsigned long long)record->round);
    }
    round->tensor_root = tensor_root_of(sim, record->round, &round->model);
}

static void decide(dp_host *host, const dp_record *record, const dp_hash *hash, dp_view cert)
{
    dp_sim *sim = host->sim;
    dp_oracle *o = sim->oracle;
    dp_slot_book *book = dp_oracle_slot(sim, record->slot);

    if (!dp_oracle_certified(host, record, hash, cert)) {
        return;
    }
    if (!dp_hash_equal(&record->prev, &o->slots[record->slot - 1].hash)) {
        dp_sim_fail(sim, "S1", host->index, "slot %llu does not follow the chain",
                    (unsigned long long)record->slot);
        return;
    }
    book->decided = true;
    book->hash = *hash;
    o->n_slots = record->slot;
    dp_evil_decided(sim, record);
    if (record->kind == DP_RECORD_ROUND) {
        check_held(sim, book, record);
        take_round(sim, record);
    }
    take_config(sim, dp_oracle_slot(sim, record->slot), record);
    dp_oracle_slot(sim, record->slot)->round = o->n_rounds - 1;
}

void dp_oracle_store(dp_host *host, const dp_action *action)
{
    if (host->sim->forks != NULL) {
        dp_forks_store(host, action);
        return;
    }
    static dp_record record;
    dp_sim *sim = host->sim;
    dp_oracle *o = sim->oracle;
    dp_member_book *m = &o->members[host->index];

    if (action->u.store.kind == DP_STORE_EXCHANGE) {
        dp_oracle_exchange(host, action);
    } else if (action->u.store.kind == DP_STORE_VOTE) {
        dp_oracle_accepts(host, action->u.store.bytes);
        dp_oracle_voting(host, action->u.store.op, action->u.store.bytes);
    }
    if (action->u.store.kind != DP_STORE_DECIDED || dp_evil_is(sim, host->index)) {
        return; /* The chain is that of the honest nodes. */
    }
    const uint64_t slot = action->u.store.slot;
    const dp_hash hash = dp_record_hash(action->u.store.bytes);
    if (slot != m->stored_slot + 1) {
        dp_sim_fail(sim, "S6", host->index, "stores slot %llu after slot %llu",
                    (unsigned long long)slot, (unsigned long long)m->stored_slot);
        return;
    }
    m->stored_slot = slot;
    o->due[host->index].decided = slot;
    if (slot <= o->n_slots) {
        if (!dp_hash_equal(&o->slots[slot].hash, &hash)) {
            dp_sim_fail(sim, "S1", host->index, "slot %llu is decided twice, differently",
                        (unsigned long long)slot);
        }
        return;
    }
    if (slot != o->n_slots + 1 || dp_record_decode(&record, action->u.store.bytes) != DP_OK ||
        record.slot != slot) {
        dp_sim_fail(sim, "S6", host->index,
                    "slot %llu is stored before the one before it was ever decided",
                    (unsigned long long)slot);
        return;
    }
    decide(host, &record, &hash, action->u.store.cert);
}

void dp_oracle_stored(dp_host *host, const dp_disk_write *write)
{
    if (host->sim->forks != NULL) {
        return;
    }
    const uint64_t head = host->disk.n_records;

    if (write->row_kind == DP_STORE_VOTE) {
        dp_oracle_voting(host, 0, (dp_view){0});
    }
    if (write->row_kind == DP_STORE_DECIDED && head < write->row.slot) {
        dp_sim_fail(host->sim, "S6", host->index, "slot %llu is durable and the head is %llu",
                    (unsigned long long)write->row.slot, (unsigned long long)head);
    }
}

void dp_oracle_store_failed(dp_host *host, const dp_disk_write *write)
{
    if (host->sim->forks != NULL) {
        return;
    }
    if (write->kind == DP_WRITE_ROW && write->row_kind == DP_STORE_DECIDED) {
        host->sim->oracle->members[host->index].stored_slot = write->row.slot - 1;
    } else if (write->kind == DP_WRITE_ROW && write->row_kind == DP_STORE_VOTE) {
        dp_oracle_voting(host, 0, (dp_view){0});
        host->sim->oracle->due[host->index].slot = 0; /* Due again at the next request. */
    }
}

void dp_oracle_booted(dp_host *host)
{
    if (host->sim->forks != NULL) {
        dp_forks_booted(host);
        return;
    }
    host->sim->oracle->members[host->index].stored_slot = host->disk.n_records;
    host->sim->oracle->due[host->index] = (dp_due_book){0};
}

void dp_oracle_forgot(dp_host *host)
{
    dp_oracle *o = host->sim->oracle;

    o->members[host->index].forgot = true;
    o->buffers[host->index].announced = 0;
    /* Without its row it does not know its announcement, and may make another one; the chain counts
     * at most one. */
    for (uint32_t i = 0; i < o->n_claims; i++) {
        o->claims[i].forgotten = o->claims[i].forgotten || o->claims[i].owner == host->index;
    }
}

/* ---- the model ---- */

void dp_oracle_theta(dp_host *host, uint64_t round, const dp_hash *tensor_root)
{
    if (host->sim->forks != NULL) {
        dp_forks_theta(host, round, tensor_root);
        return;
    }
    dp_oracle *o = host->sim->oracle;

    if (round >= o->n_rounds) {
        dp_sim_fail(host->sim, "S9", host->index,
                    "holds a state of round %llu, which is not decided", (unsigned long long)round);
    } else if (!dp_hash_equal(tensor_root, &o->rounds[round].tensor_root)) {
        dp_sim_fail(host->sim, "S2", host->index,
                    "holds another state of round %llu than the records make",
                    (unsigned long long)round);
    } else if (round > 0 && host->disk.n_records < o->rounds[round].slot) {
        dp_sim_fail(host->sim, "S6", host->index,
                    "holds the state of round %llu before its record is durable",
                    (unsigned long long)round);
    }
}

void dp_oracle_train(dp_host *host, uint64_t round)
{
    if (!host->toy.has_theta || round != host->toy.round + 1) {
        dp_sim_fail(host->sim, "S9", host->index,
                    "trains towards round %llu from the state of round %llu",
                    (unsigned long long)round, (unsigned long long)host->toy.round);
    }
}

bool dp_oracle_is_member(const dp_sim *sim, uint32_t index)
{
    return sim->oracle->members[index].member;
}

uint64_t dp_oracle_rounds(const dp_sim *sim)
{
    return sim->oracle == NULL ? 0 : sim->oracle->n_rounds - 1;
}

uint64_t dp_oracle_slots(const dp_sim *sim)
{
    return sim->oracle == NULL ? 0 : sim->oracle->n_slots;
}

bool dp_oracle_votes(const dp_sim *sim, uint64_t slot, uint32_t index)
{
    const dp_slot_book *book = &sim->oracle->slots[slot];

    for (uint32_t i = 0; i < book->n_voters; i++) {
        if (dp_peer_equal(&book->voters[i], &sim->hosts[index].peer)) {
            return true;
        }
    }
    return false;
}

uint32_t dp_oracle_voters(const dp_sim *sim)
{
    return sim->oracle->slots[sim->oracle->n_slots + 1].n_voters;
}

void dp_oracle_note(dp_host *host, const dp_note *note)
{
    if (host->sim->forks != NULL) {
        dp_forks_note(host, note);
        return;
    }
    if (note->cause == NULL || note->code == 0 || note->code >= DP_NOTE_CODE_COUNT) {
        dp_sim_fail(host->sim, "N1", host->index, "a note without a cause or a code");
    } else if (note->code == DP_NOTE_DIVERGED && strcmp(note->cause, "apply failed") != 0) {
        dp_sim_fail(host->sim, "S2", host->index,
                    "believes that its state of round %llu is not the certified one",
                    (unsigned long long)note->round);
    } else if (note->code == DP_NOTE_MEMBER && note->b == DP_MEMBER_DEAD) {
        dp_oracle_death(host, note);
    } else if (note->code == DP_NOTE_DISCARDED) {
        dp_oracle_discarded(host, note);
    } else if (note->code == DP_NOTE_CLOSED) {
        dp_oracle_far(host);
    }
}
