/* The judge of votes: every PREPARE, PROMISE, PROPOSE and ACCEPTED that leaves a node, against
 * SAFETY V1 to V3 of the commit protocol and against earlier messages of the same voter, in this
 * life or an earlier one. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "gossip/vote/commit_msg.h"
#include "gossip/vote/commit_row.h"
#include "tests/sim/evil.h"
#include "tests/sim/oracle_internal.h"

static unsigned long long wide(uint64_t value)
{
    return (unsigned long long)value;
}

/* The book of one (ballot, hash); makes it if it is new. */
static dp_ballot_book *book_of(dp_slot_book *slot, uint32_t ballot, const dp_hash *hash)
{
    for (uint32_t i = 0; i < slot->n_ballots; i++) {
        if (slot->ballots[i].ballot == ballot && dp_hash_equal(&slot->ballots[i].hash, hash)) {
            return &slot->ballots[i];
        }
    }
    uint64_t capacity = slot->capacity;
    slot->ballots =
        dp_oracle_room(slot->ballots, slot->n_ballots, &capacity, sizeof *slot->ballots);
    slot->capacity = (uint32_t)capacity;
    dp_ballot_book *book = &slot->ballots[slot->n_ballots++];
    *book = (dp_ballot_book){.ballot = ballot, .hash = *hash};
    return book;
}

/* At most one record per ballot, in all messages ever sent. */
static void check_single(dp_host *host, const dp_slot_book *slot, const dp_vote *vote)
{
    for (uint32_t i = 0; i < slot->n_ballots; i++) {
        if (slot->ballots[i].ballot == vote->ballot &&
            !dp_hash_equal(&slot->ballots[i].hash, &vote->hash)) {
            dp_sim_fail(host->sim, "V3", host->index, "two records in ballot %u of slot %llu",
                        vote->ballot, wide(vote->slot));
        }
    }
}

static void on_propose(dp_host *host, dp_slot_book *slot, const dp_vote_msg *msg)
{
    const dp_vote *best = NULL;

    check_single(host, slot, &msg->vote);
    dp_ballot_book *book = book_of(slot, msg->vote.ballot, &msg->vote.hash);
    if (book->record == NULL && msg->record.size != 0) {
        book->record = malloc(msg->record.size);
        dp_assert(book->record != NULL);
        memcpy(book->record, msg->record.data, msg->record.size);
        book->record_size = (uint32_t)msg->record.size;
    }
    for (uint32_t i = 0; i < msg->n_just; i++) {
        if (msg->just[i].accepted != 0 &&
            (best == NULL || msg->just[i].accepted > best->accepted)) {
            best = &msg->just[i];
        }
    }
    if (best != NULL && !dp_hash_equal(&best->hash, &msg->vote.hash)) {
        dp_sim_fail(host->sim, "V2", host->index,
                    "proposes another record in ballot %u of slot %llu than it must",
                    msg->vote.ballot, wide(msg->vote.slot));
    }
}

/* Checks that an accepted record is on the disk with its lists: one voter alone may hold them by
 * then (SAFETY A6). */
void dp_oracle_accepts(dp_host *host, dp_view bytes)
{
    static dp_record record;
    dp_sim *sim = host->sim;
    dp_commit_row row;

    if (dp_commit_row_read(bytes, &row) != DP_OK || row.record.size == 0 ||
        sim->plan.contributors <= DP_LISTED_DEFAULT || dp_evil_is(sim, host->index)) {
        return;
    }
    if (dp_record_decode(&record, row.record) != DP_OK) {
        dp_sim_fail(sim, "A6", host->index, "accepts slot %llu without its lists in the row",
                    wide(row.slot));
        return;
    }
    const dp_hash hash = dp_record_hash(row.record);
    dp_slot_book *slot = dp_oracle_slot(sim, row.slot);
    for (uint32_t i = 0; i < slot->n_ballots; i++) {
        dp_ballot_book *book = &slot->ballots[i];
        if (dp_hash_equal(&book->hash, &hash) && book->record_size < row.record.size) {
            free(book->record);
            book->record = malloc(row.record.size);
            dp_assert(book->record != NULL);
            memcpy(book->record, row.record.data, row.record.size);
            book->record_size = (uint32_t)row.record.size;
        }
    }
}

static void check_blobs(dp_host *host, const dp_ballot_book *book)
{
    static dp_record record;

    if (book->record == NULL ||
        dp_record_decode(&record, dp_view_of(book->record, book->record_size)) != DP_OK) {
        return;
    }
    for (uint32_t i = 0; i < (record.parted ? record.n_parts : record.n_listed); i++) {
        const dp_hash *root = record.parted ? &record.parts[i].root : &record.listed[i].root;
        const uint32_t object = dp_shelf_find(&host->sim->shelf, root);
        if ((!record.parted || record.parts[i].has) && !dp_disk_holds(&host->disk, object) &&
            !dp_rot_is_news(host, object)) {
            dp_sim_fail(host->sim, "M14", host->index,
                        "accepts slot %llu without a blob of it on its disk", wide(record.slot));
            return;
        }
    }
}

static uint32_t bits(uint8_t mask)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < 8; i++) {
        count += (mask >> i) & 1;
    }
    return count;
}

static void check_formable(dp_host *host, const dp_slot_book *slot, const dp_vote *vote)
{
    const dp_hash *certified = NULL;

    for (uint32_t i = 0; i < slot->n_ballots && slot->n_voters != 0; i++) {
        const dp_ballot_book *book = &slot->ballots[i];
        if (bits(book->accepted) * 2 <= slot->n_voters) {
            continue;
        }
        if (certified != NULL && !dp_hash_equal(certified, &book->hash)) {
            dp_sim_fail(host->sim, "S1", host->index,
                        "two certificates can be made from the votes of slot %llu",
                        wide(vote->slot));
        }
        certified = &book->hash;
    }
}

static void on_accepted(dp_host *host, dp_slot_book *slot, const dp_vote *vote)
{
    const uint8_t bit = (uint8_t)(1U << vote->voter);

    check_single(host, slot, vote);
    dp_ballot_book *book = book_of(slot, vote->ballot, &vote->hash);
    if ((book->accepted & bit) != 0) {
        return; /* repeated */
    }
    if (slot->promised[vote->voter] > vote->ballot + 1) {
        dp_sim_fail(host->sim, "V2", host->index,
                    "accepts ballot %u of slot %llu after promising %u", vote->ballot,
                    wide(vote->slot), slot->promised[vote->voter] - 1);
        return;
    }
    check_blobs(host, book);
    book->accepted = (uint8_t)(book->accepted | bit);
    check_formable(host, slot, vote);
}

static void on_promise(dp_host *host, dp_slot_book *slot, const dp_vote *vote)
{
    const uint8_t bit = (uint8_t)(1U << vote->voter);

    for (uint32_t i = 0; i < slot->n_ballots; i++) {
        const dp_ballot_book *book = &slot->ballots[i];
        if ((book->accepted & bit) != 0 && book->ballot < vote->ballot &&
            book->ballot + 1 > vote->accepted) {
            dp_sim_fail(host->sim, "V1", host->index,
                        "promises ballot %u of slot %llu and does not tell that it accepted %u",
                        vote->ballot, wide(vote->slot), book->ballot);
            return;
        }
    }
    if (slot->promised[vote->voter] < vote->ballot + 1) {
        slot->promised[vote->voter] = vote->ballot + 1;
    }
}

void dp_oracle_vote(dp_host *host, dp_view message)
{
    if (host->sim->forks != NULL) {
        return;
    }
    static dp_vote_msg msg;
    dp_sim *sim = host->sim;

    if (dp_vote_msg_read(message, &msg) != DP_OK) {
        dp_sim_fail(sim, "W1", host->index, "sent a vote that does not decode");
        return;
    }
    if (msg.vote.slot == 0 || msg.vote.slot > sim->oracle->n_slots + 1 ||
        msg.vote.voter >= DP_VOTERS_MAX) {
        dp_sim_fail(sim, "V0", host->index, "votes in slot %llu, head is %llu", wide(msg.vote.slot),
                    wide(sim->oracle->n_slots));
        return;
    }
    dp_slot_book *slot = dp_oracle_slot(sim, msg.vote.slot);
    if (msg.vote.voter >= slot->n_voters ||
        !dp_peer_equal(&slot->voters[msg.vote.voter], &host->peer)) {
        return; /* forwarded for another voter, which was judged when it sent the message */
    }
    if (host->disk.n_records + 1 < msg.vote.slot) {
        dp_sim_fail(sim, "V0", host->index, "votes in slot %llu, the durable head is %u",
                    wide(msg.vote.slot), host->disk.n_records);
        return;
    }
    if (msg.vote.type == DP_MSG_PROPOSE) {
        on_propose(host, slot, &msg);
    } else if (msg.vote.type == DP_MSG_ACCEPTED) {
        on_accepted(host, slot, &msg.vote);
    } else if (msg.vote.type == DP_MSG_PROMISE) {
        on_promise(host, slot, &msg.vote);
    }
}
