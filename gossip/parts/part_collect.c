/* Sums of a site: the member that fetches the results of an owner far away for all members near to
 * it also adds up their publications of that owner's part. It tells the owner, which fetches one
 * object instead of theirs. No node asks for this: the collector tells the owner beforehand which
 * members it is about to add up (COLLECT), so that the owner waits for a sum where one comes, and
 * fetches objects where none does. */
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/record/part_sum.h"
#include "gossip/round/round.h"

static const dp_peer *owner_of(const dp_node *node, uint32_t part)
{
    dp_assert(part < node->ledger.layout.cuts.n);
    return &node->ledger.layout.owners[part];
}

static bool names(const dp_collect *told, const dp_peer *peer)
{
    for (uint32_t i = 0; i < told->n; i++) {
        if (dp_peer_equal(&told->peers[i], peer)) {
            return true;
        }
    }
    return false;
}

static void tell_hint(dp_node *node, const dp_collect *collect)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_collect_write(&writer, collect);
    dp_assert(!writer.full);
    dp_node_send(node, owner_of(node, collect->part), dp_view_of(writer.data, writer.size));
}

static void tell_sum(dp_node *node, const dp_part_word *word)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_site_sum_msg_write(&writer, word);
    dp_assert(!writer.full);
    dp_node_send(node, owner_of(node, word->part), dp_view_of(writer.data, writer.size));
}

static void add_peer(const dp_node *node, dp_collect *told, const dp_peer *peer)
{
    uint32_t at = told->n;

    dp_assert(told->n <= DP_PART_SOURCES_MAX);
    if (told->n == DP_PART_SOURCES_MAX || !dp_round_may_contribute(node, peer)) {
        return;
    }
    while (at > 0 && dp_peer_compare(peer, &told->peers[at - 1]) < 0) {
        told->peers[at] = told->peers[at - 1];
        at--;
    }
    told->peers[at] = *peer;
    told->n++;
}

/* Fills in this node and the members near to it that take part. */
static void fill_in(const dp_node *node, uint32_t part, dp_collect *told)
{
    const dp_rowset *linked = dp_members_linked(node->members);

    *told = (dp_collect){.round = node->ledger.round + 1, .base = node->ledger.base, .part = part};
    add_peer(node, told, &node->self);
    for (uint32_t k = 0; k < linked->count; k++) {
        if (dp_part_site_near(node->parts, linked->at[k]) &&
            dp_part_site_takes_part(node, linked->at[k])) {
            add_peer(node, told, &dp_members_at(node->members, linked->at[k])->peer);
        }
    }
}

/* The owner need not wait. */
static void give_up(dp_node *node, dp_collecting *collecting)
{
    dp_assert(!collecting->duty.done);
    collecting->duty.works = false;
    collecting->duty.done = true;
    collecting->told.n = 0;
    tell_hint(node, &collecting->told);
}

/* True: it has begun. */
static bool take_up(dp_node *node, dp_collecting *collecting, uint32_t part)
{
    dp_collect told;

    dp_assert(part < node->ledger.layout.cuts.n);
    dp_assert(!collecting->duty.works);
    fill_in(node, part, &told);
    if (told.n < 2 || !names(&told, &node->self)) {
        return false; /* Looked at again: somebody may come. */
    }
    collecting->told = told;
    collecting->duty.works = true;
    collecting->duty.since = node->now;
    tell_hint(node, &told);
    return true;
}

bool dp_part_collect_wants(const dp_node *node, uint32_t part, const dp_claim *claim)
{
    const dp_collecting *collecting = &node->parts->collects[part];

    dp_assert(part < DP_PARTS_MAX);
    return collecting->duty.works && !collecting->duty.done &&
           names(&collecting->told, &claim->ready.peer);
}

/* Is one of the announced members still at work, without a publication yet? */
static bool lacks_any(const dp_node *node, const dp_collect *told)
{
    for (uint32_t i = 0; i < told->n; i++) {
        const uint32_t index = dp_node_member_index(node, &told->peers[i]);
        if (index != DP_MEMBER_NONE && dp_part_site_takes_part(node, index) &&
            dp_round_claim_of(node, &told->peers[i]) == NULL) {
            return true;
        }
    }
    return false;
}

/* Gathers the contributions that may go into the sum, in order of peer; *missing: one that is ready
 * is not here yet. */
static uint32_t gather(const dp_node *node, const dp_collecting *collecting, const uint32_t *ready,
                       uint32_t n, uint32_t *chosen, bool *missing)
{
    const uint32_t part = collecting->told.part;
    const dp_claim *claims = node->round->claims;
    uint32_t count = 0;

    *missing = false;
    for (uint32_t i = 0; i < n; i++) {
        const dp_claim *claim = &claims[ready[i]];
        const dp_hash *root = &claim->ready.parts.refs[part].root;
        bool copied = false;
        for (uint32_t k = 0; k < i;
             k++) { /* Of the member that was heard of first, even if it is far away. */
            copied = copied || dp_hash_equal(&claims[ready[k]].ready.parts.refs[part].root, root);
        }
        if (copied || !names(&collecting->told, &claim->ready.peer)) {
            continue;
        }
        if ((claim->parts.checked >> part & 1U) == 0) {
            *missing = true;
        } else if ((claim->parts.bad >> part & 1U) == 0) {
            uint32_t at = count++;
            while (at > 0 &&
                   dp_peer_compare(&claim->ready.peer, &claims[chosen[at - 1]].ready.peer) < 0) {
                chosen[at] = chosen[at - 1];
                at--;
            }
            chosen[at] = ready[i];
        }
    }
    return count;
}

static void reduce(dp_node *node, dp_collecting *collecting, const uint32_t *chosen, uint32_t n)
{
    const uint32_t part = collecting->told.part;
    dp_duty *duty = &collecting->duty;
    dp_part_term terms[DP_PART_SOURCES_MAX];

    dp_assert(n > 0 && n <= DP_PART_SOURCES_MAX);
    dp_assert(!collecting->duty.reducing);
    for (uint32_t i = 0; i < n; i++) {
        const dp_claim *claim = &node->round->claims[chosen[i]];
        terms[i] = dp_part_round_term(node, claim, part);
        duty->sources[i] = (dp_part_source){.peer = claim->ready.peer, .root = claim->ready.root};
    }
    if (dp_broken(74)) {
        terms[0].w *= 2;
    }
    duty->n = n;
    duty->reducing = true;
    dp_part_round_reduce(node, part, DP_REDUCE_SUM, terms, n);
}

/* Adds up once all near members have published and their objects are here, or once the round is
 * ripe and the missing objects come no more. */
static void add_up(dp_node *node, dp_collecting *collecting, const uint32_t *ready, uint32_t n)
{
    const dp_part_round *parts = node->parts;
    const uint32_t part = collecting->told.part;
    dp_duty *duty = &collecting->duty;
    uint32_t chosen[DP_CLAIMS_MAX];
    bool missing = false;

    if (duty->reducing || n == 0 || !dp_out_room(&node->out, 2)) {
        return;
    }
    const uint32_t count = gather(node, collecting, ready, n, chosen, &missing);
    if (parts->ripe_at.us == 0 && (missing || lacks_any(node, &collecting->told))) {
        return;
    }
    if (missing) {
        const dp_part_wait wait = dp_part_round_wait(node, part);
        const dp_time since = duty->since.us > parts->ripe_at.us ? duty->since : parts->ripe_at;
        if (!dp_part_round_is_time(node, dp_part_wait_owner(&wait, since, since, 1))) {
            return;
        }
    }
    bool own = false;
    for (uint32_t i = 0; i < count; i++) {
        own = own || dp_peer_equal(&node->round->claims[chosen[i]].ready.peer, &node->self);
    }
    if (count < 2 || !own || n > DP_LISTED_DEFAULT || parts->n_sums == DP_SUMS_MAX) {
        give_up(node, collecting); /* Of more than a record lists some would be left out. */
        return;
    }
    reduce(node, collecting, chosen, count);
}

bool dp_part_collect_begin(dp_node *node, uint32_t part)
{
    dp_collecting *collecting = &node->parts->collects[part];
    const dp_duty *duty = &collecting->duty;

    dp_assert(part < node->ledger.layout.cuts.n);
    if (!node->ledger.summed || duty->done) {
        return false;
    }
    const bool turn =
        dp_part_site_serves(node, part) && dp_part_round_is_alive(node, owner_of(node, part));
    if (duty->works && !duty->reducing && !turn) {
        give_up(node, collecting);
        return false;
    }
    return !duty->works && turn && take_up(node, collecting, part);
}

void dp_part_collect_tick(dp_node *node, uint32_t part, const uint32_t *ready, uint32_t n)
{
    dp_collecting *collecting = &node->parts->collects[part];

    dp_assert(n <= node->round->n_claims);
    if (node->ledger.summed && !collecting->duty.done && collecting->duty.works) {
        add_up(node, collecting, ready, n);
    }
}

void dp_part_collect_reduced(dp_node *node, const dp_event *event)
{
    const uint32_t part = event->u.reduced.part - DP_REDUCE_SUM;
    dp_part_round *parts = node->parts;
    dp_collecting *collecting = part < node->ledger.layout.cuts.n ? &parts->collects[part] : NULL;

    if (collecting == NULL || !collecting->duty.reducing ||
        event->u.reduced.round != node->ledger.round + 1) {
        dp_part_round_let_go(node, event); /* Of a round that has ended meanwhile. */
        return;
    }
    dp_duty *duty = &collecting->duty;
    duty->reducing = false;
    dp_part_word word = {.owner = node->self,
                         .round = event->u.reduced.round,
                         .base = node->ledger.base,
                         .part = part,
                         .root = event->u.reduced.root,
                         .bytes = event->u.reduced.bytes,
                         .n = duty->n};
    memcpy(word.sources, duty->sources, sizeof word.sources);
    if (event->u.reduced.status != DP_OK || parts->n_sums == DP_SUMS_MAX ||
        !dp_site_sum_sign(&word, &node->config.crypto, &node->run, &node->ledger.fork)) {
        dp_part_round_let_go(node, event);
        give_up(node, collecting);
        return;
    }
    duty->works = false;
    duty->done = true;
    dp_action *keep = dp_out_add(&node->out, DP_DO_OBJECT_KEEP);
    keep->u.keep.root = word.root;
    keep->u.keep.use = DP_USE_BLOB;
    keep->u.keep.round = word.round;
    dp_node_hold(node, &word.root, word.bytes);
    parts->sums[parts->n_sums++] = (dp_sum){.word = word, .mine = true};
    parts->sums_made++;
    tell_sum(node, &word);
}

void dp_part_collect_repeat(dp_node *node)
{
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        if (node->parts->sums[i].mine) {
            tell_sum(node, &node->parts->sums[i].word);
        }
    }
    for (uint32_t p = 0; node->ledger.summed && p < node->ledger.layout.cuts.n; p++) {
        const dp_collecting *collecting = &node->parts->collects[p];
        if (collecting->duty.works && collecting->told.n > 0) {
            tell_hint(node, &collecting->told);
        }
    }
}
