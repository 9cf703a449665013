#include "tests/sim/explore_mind.h"

#include <stddef.h>
#include <string.h>

#include "base/assert.h"

/* ---- what of a machine is kept: all but its large buffers, whose records are found by their hash,
 * and what is never read again: room, the row as it was written, the certificate, and the promises
 * in a PROPOSE that was judged already. */

typedef struct range {
    size_t from;
    size_t to;
} range;

#define AT(member) offsetof(dp_commit, member)
static const range ranges[] = {
    {AT(key_lost), AT(accepted.data)},
    {AT(accepted.size), AT(waiting.just)},
    {AT(waiting_record.size), AT(value.data)},
    {AT(value.size), AT(outcome.data)},
    {AT(outcome.size), AT(cert)},
    {AT(row_size), AT(row)},
};
_Static_assert(AT(room) + DP_VOTE_MESSAGE_MAX + 8 >= sizeof(dp_commit),
               "what stands behind room is not kept");

size_t dp_explore_mind_size(void)
{
    size_t size = 0;

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        size += ranges[i].to - ranges[i].from;
    }
    return size;
}

/* ---- loading ---- */

dp_view dp_explore_row_bytes(const dp_explore_chain *chain, const dp_explore_row *from,
                             uint8_t *out)
{
    size_t size = sizeof from->head;

    memcpy(out, from->head, size);
    if (from->record != 0) {
        const dp_view record = dp_explore_record(chain, from->record);
        dp_assert(size + record.size <= DP_EXPLORE_ROW_MAX);
        memcpy(out + size, record.data, record.size);
        size += record.size;
    }
    return dp_view_of(out, size);
}

static void load_bytes(const dp_explore_chain *chain, dp_commit_bytes *bytes)
{
    if (bytes->size != 0) {
        const dp_view record = dp_explore_record(chain, dp_explore_find(chain, &bytes->hash));
        dp_assert(record.size == bytes->size);
        memcpy(bytes->data, record.data, record.size);
    }
}

void dp_explore_mind_load(const dp_explore_chain *chain, const dp_explore_state *from, dp_commit *c)
{
    uint8_t bytes[DP_EXPLORE_ROW_MAX];
    size_t at = 0;

    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        memcpy((uint8_t *)c + ranges[i].from, from->mind + at, ranges[i].to - ranges[i].from);
        at += ranges[i].to - ranges[i].from;
    }
    load_bytes(chain, &c->accepted);
    load_bytes(chain, &c->waiting_record);
    load_bytes(chain, &c->value);
    load_bytes(chain, &c->outcome);
    if (c->row_size != 0) { /* Of a later slot: the row is kept as it was on the disk. */
        const dp_view row = dp_explore_row_bytes(chain, &from->durable, bytes);
        dp_assert(row.size == c->row_size);
        memcpy(c->row, row.data, row.size);
    }
}

/* ---- saving ---- */

/* Padding bytes between the members of a vote are arbitrary. */
static void tidy_vote(dp_vote *vote, bool used)
{
    const dp_vote old = *vote;

    memset(vote, 0, sizeof *vote);
    if (used) {
        vote->type = old.type;
        vote->voter = old.voter;
        vote->fork = old.fork;
        vote->slot = old.slot;
        vote->prev = old.prev;
        vote->ballot = old.ballot;
        vote->accepted = old.accepted;
        vote->hash = old.hash;
        memcpy(vote->signature, old.signature, sizeof vote->signature);
    }
}

static void tidy_bytes(dp_commit_bytes *bytes, bool used)
{
    if (!used) {
        bytes->size = 0;
        memset(&bytes->hash, 0, sizeof bytes->hash);
    }
}

/* Clears the fields that the machine will not read again, so that equal states are found equal. */
static void tidy(dp_commit *c, bool bids)
{
    const bool owns = c->phase != DP_COMMIT_IDLE && c->phase != DP_COMMIT_PROPOSING;

    c->began = (dp_time){0}; /* Time does not advance. */
    if (c->decided) {        /* It no longer votes. */
        c->has_waiting = false;
        c->has_prepare = false;
        c->has_value = false;
        c->voted = 0;
    }
    if (!bids || c->decided) { /* It is used only when the voter bids. */
        c->seen = c->state.promised;
    }
    tidy_bytes(&c->accepted, c->state.accepted >= 0);
    tidy_bytes(&c->waiting_record, c->has_waiting);
    tidy_bytes(&c->value, c->has_value);
    tidy_bytes(&c->outcome, c->decided);
    tidy_vote(&c->prepare, c->has_prepare);
    tidy_vote(&c->waiting.vote, c->has_waiting);
    c->waiting.n_just = 0;
    if (!c->has_waiting) {
        c->waiting.record = (dp_view){0};
    }
    for (uint32_t i = 0; i < DP_VOTERS_MAX; i++) {
        tidy_vote(&c->promises[i], owns && (c->promised_by >> i & 1) != 0);
        tidy_vote(&c->votes[i], (c->voted >> i & 1) != 0);
    }
    if (!owns) {
        c->promised_by = 0;
        c->best = -1;
        c->ballot = 0;
        c->sent_at = (dp_time){0};
    }
    if (c->op == 0) {
        memset(&c->writing, 0, sizeof c->writing);
    }
}

void dp_explore_mind_save(const dp_explore_chain *chain, dp_commit *c, bool bids,
                          dp_explore_state *to)
{
    size_t at = 0;

    tidy(c, bids);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        memcpy(to->mind + at, (const uint8_t *)c + ranges[i].from, ranges[i].to - ranges[i].from);
        at += ranges[i].to - ranges[i].from;
    }
    if (!to->writes) {
        to->writing = (dp_explore_row){0};
    }
    to->decided = (uint8_t)(c->decided ? dp_explore_find(chain, &c->outcome.hash) : 0);
}
