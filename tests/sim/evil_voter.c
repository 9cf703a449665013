/* A voter that lies: changes the votes of its node, and adds others. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit_msg.h"
#include "tests/sim/evil.h"
#include "tests/sim/oracle_internal.h"

/* Both hold a record each: too large for a stack. */
static dp_vote_msg vote_room;
static dp_record record_room;
static uint8_t bytes_room[DP_RECORD_BYTES_MAX];

static size_t write_vote(const dp_host *host, dp_vote_msg *msg, uint8_t *out, size_t room)
{
    static uint8_t scratch[DP_VOTE_MESSAGE_MAX];
    const dp_crypto crypto = dp_sim_crypto(&host->sim->hosts[host->index]);
    dp_writer w = dp_writer_of(scratch, sizeof scratch);

    dp_assert(dp_vote_sign(&msg->vote, &crypto, &host->sim->run));
    dp_vote_msg_write(&w, msg);
    dp_assert(!w.full && w.size <= room);
    memcpy(out, scratch, w.size);
    return w.size;
}

/* Another valid record: the time is one millisecond later. */
static bool other_record(dp_view record, dp_view *other, dp_hash *hash)
{
    if (dp_record_decode(&record_room, record) != DP_OK) {
        return false;
    }
    record_room.time_ms++;
    if (dp_record_encode(&record_room, bytes_room, sizeof bytes_room, other) != DP_OK) {
        return false;
    }
    *hash = dp_record_hash(*other);
    return true;
}

/* Breaks one field of a record; no voter may accept the result. */
static void break_record(dp_sim *sim, dp_record *record)
{
    switch (dp_evil_below(sim, 7)) {
    case 0:
        record->listed[0].q++;
        break;
    case 1:
        record->alpha *= 2;
        break;
    case 2:
        record->time_ms += 86400000;
        break;
    case 3:
        record->n_state = 1;
        break;
    case 4:
        record->tokens_total += 1000000;
        break;
    case 5:
        record->listed[0].energy /= 2;
        break;
    default:
        record->listed[0].tokens *= 2;
        break;
    }
}

static bool is_own(const dp_host *host, const dp_vote *vote)
{
    const dp_slot_book *slot = dp_oracle_slot(host->sim, vote->slot);

    return vote->voter < slot->n_voters && dp_peer_equal(&slot->voters[vote->voter], &host->peer);
}

static size_t two_records(dp_host *host, uint32_t to, uint8_t *message, size_t size, size_t room)
{
    dp_evil *e = host->sim->evil;
    dp_vote_msg *msg = &vote_room;
    const bool same = e->alt_slot == msg->vote.slot && e->alt_ballot == msg->vote.ballot;

    if (msg->vote.type == DP_MSG_PROPOSE) {
        dp_view other = {0};
        dp_hash hash;
        if (!other_record(msg->record, &other, &hash)) {
            return size;
        }
        e->alt_slot = msg->vote.slot;
        e->alt_ballot = msg->vote.ballot;
        e->alt_first = msg->vote.hash;
        e->alt_hash = hash;
        if (dp_evil_side(host->sim, to)) {
            msg->record = other;
            msg->vote.hash = hash;
            return write_vote(host, msg, message, room);
        }
    } else if (msg->vote.type == DP_MSG_ACCEPTED && same && dp_evil_side(host->sim, to) &&
               dp_hash_equal(&msg->vote.hash, &e->alt_first)) {
        msg->vote.hash = e->alt_hash;
        return write_vote(host, msg, message, room);
    }
    return size;
}

static size_t junk(dp_host *host, uint8_t *message, size_t size, size_t room)
{
    dp_vote_msg *msg = &vote_room;
    dp_view broken = {0};

    if (msg->vote.type != DP_MSG_PROPOSE || dp_record_decode(&record_room, msg->record) != DP_OK) {
        return size;
    }
    break_record(host->sim, &record_room);
    if (dp_record_encode(&record_room, bytes_room, sizeof bytes_room, &broken) != DP_OK) {
        return size;
    }
    msg->record = broken;
    msg->vote.hash = dp_record_hash(broken);
    return write_vote(host, msg, message, room);
}

static size_t wrong_state(dp_host *host, uint8_t *message, size_t size, size_t room)
{
    const dp_crypto crypto = dp_sim_crypto(host);
    const dp_hash fork = {{0}};
    dp_state_msg state;
    dp_writer w = dp_writer_of(message, room);

    if (dp_state_msg_read(dp_view_of(message, size), &state) != DP_OK ||
        !dp_peer_equal(&state.voter, &host->peer)) {
        return size;
    }
    state.root.bytes[0] ^= (uint8_t)(1 + dp_evil_below(host->sim, 255));
    dp_assert(
        dp_state_sign(&crypto, &host->sim->run, &fork, state.round, &state.root, state.signature));
    dp_state_msg_write(&w, &state);
    return w.size;
}

size_t dp_evil_rewrite_vote(dp_host *host, uint32_t to, uint8_t *message, size_t size, size_t room)
{
    const uint8_t type = dp_msg_type_of(dp_view_of(message, size));
    const uint32_t trick = host->sim->evil->tricks[DP_EVIL_VOTER];
    dp_vote_msg *msg = &vote_room;

    if (dp_oracle_voters(host->sim) < 3) {
        return size; /* A single voter decides alone, so its lies contradict no other voter. */
    }
    if (type == DP_MSG_STATE && trick == DP_VOTES_STATE) {
        return wrong_state(host, message, size, room);
    }
    if (type < DP_MSG_PREPARE || type > DP_MSG_NACK ||
        dp_vote_msg_read(dp_view_of(message, size), msg) != DP_OK || !is_own(host, &msg->vote)) {
        return size;
    }
    if (trick == DP_VOTES_TWO) {
        return two_records(host, to, message, size, room);
    }
    if (trick == DP_VOTES_JUNK) {
        return junk(host, message, size, room);
    }
    if (trick == DP_VOTES_FORGET && type == DP_MSG_PROMISE) {
        msg->vote.accepted = 0;
        msg->vote.hash = (dp_hash){{0}};
        msg->record = (dp_view){0};
        return write_vote(host, msg, message, room);
    }
    if (trick == DP_VOTES_YES && type != DP_MSG_PREPARE && type != DP_MSG_PROPOSE) {
        return 0; /* It has already answered. */
    }
    return size;
}

/* Index of this host among the voters of the slot; DP_VOTERS_MAX: none. */
static uint32_t own_index(const dp_host *host, uint64_t slot)
{
    const dp_slot_book *book = NULL;
    uint32_t i = 0;

    if (slot == 0 || slot > dp_oracle_slots(host->sim) + 1 || dp_oracle_voters(host->sim) < 3) {
        return DP_VOTERS_MAX;
    }
    book = dp_oracle_slot(host->sim, slot);
    while (i < book->n_voters && !dp_peer_equal(&book->voters[i], &host->peer)) {
        i++;
    }
    return i < book->n_voters ? i : DP_VOTERS_MAX;
}

static void say_to_all(dp_host *host, dp_view message)
{
    for (uint32_t to = 0; to < host->sim->plan.nodes; to++) {
        dp_evil_say(host, to, message);
    }
}

void dp_evil_hears_vote(dp_host *host, uint32_t from, dp_view message)
{
    static uint8_t answer[DP_VOTE_MESSAGE_MAX];
    const uint8_t type = dp_msg_type_of(message);
    dp_vote_msg *msg = &vote_room;

    if (host->sim->evil->tricks[DP_EVIL_VOTER] != DP_VOTES_YES ||
        (type != DP_MSG_PREPARE && type != DP_MSG_PROPOSE) ||
        dp_vote_msg_read(message, msg) != DP_OK) {
        return;
    }
    const uint32_t self = own_index(host, msg->vote.slot);
    if (self == DP_VOTERS_MAX) {
        return;
    }
    msg->vote.voter = (uint8_t)self;
    msg->vote.accepted = 0;
    msg->n_just = 0;
    msg->record = (dp_view){0};
    if (type == DP_MSG_PREPARE) {
        msg->vote.type = DP_MSG_PROMISE;
        msg->vote.hash = (dp_hash){{0}};
        dp_evil_say(host, from, dp_view_of(answer, write_vote(host, msg, answer, sizeof answer)));
    } else {
        msg->vote.type = DP_MSG_ACCEPTED;
        say_to_all(host, dp_view_of(answer, write_vote(host, msg, answer, sizeof answer)));
    }
}

/* Votes in ballots of others, and for slots and chains that do not exist; a NACK far above all
 * ballots. */
void dp_evil_acts_voter(dp_host *host)
{
    static uint8_t out[DP_VOTE_MESSAGE_MAX];
    dp_sim *sim = host->sim;
    const uint64_t slot = dp_oracle_slots(sim) + dp_evil_below(sim, 2);
    const uint32_t self = own_index(host, slot);
    dp_vote_msg *msg = &vote_room;

    if (sim->evil->tricks[DP_EVIL_VOTER] != DP_VOTES_JUNK || self == DP_VOTERS_MAX ||
        sim->evil->forked) {
        return;
    }
    memset(msg, 0, sizeof *msg);
    msg->vote.voter = (uint8_t)self;
    msg->vote.slot = slot;
    msg->vote.prev = dp_oracle_slot(sim, slot - 1)->hash;
    /* A wrong promise soon convicts it: in half of the runs it avoids that. */
    const uint64_t what = dp_evil_below(sim, 4);
    switch (what == 2 && (sim->evil->side_salt & 1) != 0 ? 0 : what) {
    case 0:
        msg->vote.type = DP_MSG_NACK;
        msg->vote.ballot = INT32_MAX - (uint32_t)dp_evil_below(sim, 2);
        break;
    case 1:
        /* Some of these ballots are its own; above the highest one no voter could bid any more. */
        msg->vote.type = DP_MSG_PREPARE;
        msg->vote.ballot = dp_evil_below(sim, 2) == 0
                               ? (uint32_t)dp_evil_below(sim, 60)
                               : INT32_MAX - (uint32_t)dp_evil_below(sim, DP_VOTERS_MAX);
        break;
    case 2:
        msg->vote.type = DP_MSG_PROMISE;
        msg->vote.ballot = (uint32_t)dp_evil_below(sim, 20);
        break;
    default:
        msg->vote.type = DP_MSG_PREPARE;
        msg->vote.voter = (uint8_t)dp_evil_below(sim, DP_VOTERS_MAX);
        msg->vote.ballot = (uint32_t)dp_evil_below(sim, INT32_MAX);
        break;
    }
    const dp_view message = dp_view_of(out, write_vote(host, msg, out, sizeof out));
    if (dp_evil_below(sim, 2) == 0) {
        say_to_all(host, message);
    } else {
        dp_evil_say(host, (uint32_t)dp_evil_below(sim, sim->plan.nodes), message);
    }
}
