#include "tests/sim/duel_lies.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"

static uint8_t bytes[DP_VOTE_MESSAGE_MAX];
static dp_vote_msg msg;
static uint8_t record[DP_DUEL_RECORD_BYTES];

/* A new record, in a message of this type. */
static void begin(dp_duel_lies *lies, uint8_t type, uint32_t voter, uint32_t ballot)
{
    const uint64_t words[2] = {DP_VOTERS_MAX, ++lies->values}; /* Not of an honest voter. */

    memcpy(record, words, sizeof record);
    memset(&msg, 0, sizeof msg);
    msg.vote = (dp_vote){
        .type = type, .voter = (uint8_t)voter, .slot = 1, .prev = lies->run, .ballot = ballot};
    if (type == DP_MSG_PROPOSE) {
        msg.record = dp_view_of(record, sizeof record);
    }
    msg.vote.hash = dp_record_hash(dp_view_of(record, sizeof record));
}

static void sign(const dp_duel_lies *lies, dp_vote *vote, uint32_t by)
{
    dp_assert(dp_vote_sign(vote, &lies->crypto[by], &lies->run));
}

static void post(dp_duel_lies *lies, uint32_t from, uint32_t to)
{
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_vote_msg_write(&writer, &msg);
    lies->post(lies->context, from, to, dp_view_of(bytes, writer.size));
}

void dp_duel_lie_twice(dp_duel_lies *lies, bool twice)
{
    const uint32_t owner = dp_commit_owner(lies->slot, 0);

    begin(lies, DP_MSG_PROPOSE, owner, 0);
    sign(lies, &msg.vote, owner);
    post(lies, owner, (uint32_t)dp_rng_below(lies->rng, lies->n));
    msg.vote.type = DP_MSG_ACCEPTED;
    msg.record = (dp_view){0};
    sign(lies, &msg.vote, owner);
    for (uint32_t i = 0; i < lies->n && twice; i++) {
        if (i != owner) {
            post(lies, owner, i);
        }
    }
}

/* Promises of `count` voters from `first` on for the ballot, which only `by` signs. */
static void justify(const dp_duel_lies *lies, uint32_t by, uint32_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        dp_vote *promise = &msg.just[msg.n_just++];
        *promise = (dp_vote){.type = DP_MSG_PROMISE,
                             .voter = (uint8_t)((first + i) % lies->n),
                             .slot = 1,
                             .prev = lies->run,
                             .ballot = msg.vote.ballot};
        sign(lies, promise, by);
    }
}

void dp_duel_lie_proposal(dp_duel_lies *lies)
{
    const uint32_t liar = (uint32_t)dp_rng_below(lies->rng, lies->n);
    const bool in_anothers = dp_rng_below(lies->rng, 3) == 0;
    uint32_t ballot = in_anothers ? 0 : 1 + (uint32_t)dp_rng_below(lies->rng, 12);

    if (lies->n == 1 || lies->n_refused == DP_DUEL_LIES_MAX) {
        return;
    }
    while ((dp_commit_owner(lies->slot, ballot) == liar) == in_anothers) {
        ballot++; /* At most n - 1 times. */
    }
    begin(lies, DP_MSG_PROPOSE, liar, ballot);
    if (ballot > 0 && dp_rng_below(lies->rng, 2) == 0) {
        justify(lies, liar, liar, 1); /* Correctly signed, but only half of two or three. */
    } else if (ballot > 0) {
        /* Enough of them, but the others have not signed theirs. */
        justify(lies, liar, liar, lies->n / 2 + 1);
    }
    sign(lies, &msg.vote, liar);
    lies->refused[lies->n_refused++] = msg.vote.hash;
    post(lies, liar, (uint32_t)dp_rng_below(lies->rng, lies->n));
}

void dp_duel_lie_vote(dp_duel_lies *lies)
{
    static const uint8_t types[] = {DP_MSG_PREPARE, DP_MSG_PROMISE, DP_MSG_ACCEPTED};
    const uint32_t liar = (uint32_t)dp_rng_below(lies->rng, lies->n);
    const uint32_t victim = (liar + 1) % lies->n;

    begin(lies, types[dp_rng_below(lies->rng, 3)], victim, (uint32_t)dp_rng_below(lies->rng, 12));
    if (msg.vote.type != DP_MSG_ACCEPTED) {
        msg.vote.hash = (dp_hash){{0}};
    }
    sign(lies, &msg.vote, liar);
    for (uint32_t i = 0; i < lies->n; i++) {
        if (i != victim) {
            post(lies, liar, i);
        }
    }
}

bool dp_duel_is_refused(const dp_duel_lies *lies, const dp_hash *hash)
{
    for (uint32_t i = 0; i < lies->n_refused; i++) {
        if (dp_hash_equal(&lies->refused[i], hash)) {
            return true;
        }
    }
    return false;
}
