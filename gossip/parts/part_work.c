/* When this node works for a part, and when it adds it up. */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/round/deadline.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

enum {
    WAITS_OWED = 12
}; /* for a member that was in none of the last rounds, once in a while (deadline.h) */

static bool owns_any(const dp_part_layout *layout, const dp_peer *peer)
{
    for (uint32_t p = 0; p < layout->cuts.n; p++) {
        if (dp_peer_equal(&layout->owners[p], peer)) {
            return true;
        }
    }
    return false;
}

/* It has spoken for as many parts of others as one node works for: nobody waits for it to take up
 * one more. */
static bool is_full(const dp_node *node, const dp_peer *peer)
{
    uint32_t others = 0;

    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        const dp_part_word *word = &node->parts->results[i].word;
        others += dp_peer_equal(&word->owner, peer) &&
                          !dp_peer_equal(&node->ledger.layout.owners[word->part], peer)
                      ? 1
                      : 0;
    }
    return others >= DP_PARTS_OF_OTHERS_MAX;
}

static bool may_come(const dp_node *node, const dp_peer *peer)
{
    return dp_part_round_is_alive(node, peer) && !is_full(node, peer);
}

/* Those alive, and not full, before this node in line for a part; DP_PARTS_MAX and more: it is not
 * in line, as it has nothing to contribute and was not counted in the round before. */
static uint32_t alive_before(const dp_node *node, uint32_t part)
{
    const dp_part_layout *layout = &node->ledger.layout;
    uint32_t before = 0;
    bool ready = false;

    dp_assert(part < node->ledger.layout.cuts.n);
    for (uint32_t k = 0; k < layout->cuts.n; k++) {
        const dp_peer *owner = &layout->owners[(part + k) % layout->cuts.n];
        if (dp_peer_equal(owner, &node->self)) {
            return before;
        }
        before += may_come(node, owner) ? 1 : 0;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        const int order = dp_peer_compare(&claim->ready.peer, &node->self);
        ready = ready || (!claim->evidence && order == 0);
        before += !claim->evidence && order < 0 && !owns_any(layout, &claim->ready.peer) &&
                          may_come(node, &claim->ready.peer)
                      ? 1
                      : 0;
    }
    return ready ? before : UINT32_MAX;
}

/* Claims that a record may list, as this node sees it now. */
typedef struct listable {
    uint32_t n;
    uint32_t claims[DP_CLAIMS_MAX];
} listable;

/* Is there a result of this part that is here, checked, and such that a record may name it? A
 * result that this node has just made counts as checked until its trainer has looked at it. */
static bool has_result(const dp_node *node, const listable *ready, uint32_t part)
{
    dp_assert(ready->n <= DP_CLAIMS_MAX);
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        const dp_result *result = &node->parts->results[i];
        const bool good = result->checked || dp_peer_equal(&result->word.owner, &node->self);
        if (result->word.part == part && result->held && good && !result->bad &&
            dp_part_round_may_name(node, result, ready->claims, ready->n)) {
            return true;
        }
    }
    return false;
}

/* Its announced sum of this part contains a member that no record can list any more, since it was
 * revoked: the node sums again, once. */
static void take_back(dp_node *node, const listable *ready, uint32_t part)
{
    dp_duty *duty = &node->parts->duties[part];
    uint32_t said = 0;

    for (uint32_t i = 0; duty->done && i < node->parts->n_results; i++) {
        const dp_part_word *word = &node->parts->results[i].word;
        said += word->part == part && dp_peer_equal(&word->owner, &node->self) ? 1 : 0;
    }
    if (said > 0 && said < DP_RESULTS_OF_OWNER_MAX && !has_result(node, ready, part)) {
        duty->done = false;
    }
}

static bool may_work(const dp_node *node)
{
    return node->standing.state == DP_TRAINER_SET && node->mode == DP_MODE_SYNC && !node->paused &&
           !node->halted && !node->leaving && !node->config.observer &&
           dp_round_may_contribute(node, &node->self);
}

/* Parts of others that this node works for: they bound the objects that it fetches and later
 * drops. */
static uint32_t for_others(const dp_node *node)
{
    uint32_t n = 0;

    for (uint32_t p = 0; p < node->ledger.layout.cuts.n; p++) {
        n += node->parts->duties[p].works &&
                     !dp_peer_equal(&node->ledger.layout.owners[p], &node->self)
                 ? 1
                 : 0;
    }
    return n;
}

/* Has the time of all nodes before this one in line passed? */
static bool is_next(dp_node *node, uint32_t part)
{
    const uint32_t before = alive_before(node, part);

    if (before == 0 || before == UINT32_MAX) {
        return before == 0;
    }
    const dp_part_wait wait = dp_part_round_wait(node, part);
    return dp_part_round_is_time(
        node, dp_time_after(node->parts->ripe_at, 2ULL * before * dp_part_wait_line(&wait)));
}

static void take_up(dp_node *node, const listable *ready, uint32_t part)
{
    const dp_part_round *parts = node->parts;
    dp_duty *duty = &node->parts->duties[part];

    dp_assert(part < node->ledger.layout.cuts.n);
    if (duty->works || duty->done) {
        return;
    }
    if (!dp_peer_equal(&node->ledger.layout.owners[part], &node->self)) {
        if (parts->ripe_at.us == 0 || ready->n == 0 || for_others(node) >= DP_PARTS_OF_OTHERS_MAX ||
            !is_next(node, part) || has_result(node, ready, part)) {
            return;
        }
    }
    duty->works = true;
    duty->since = node->now;
    dp_part_round_look(node);
}

/* A record that lists only some of the contributors of a sum cannot name the sum: their updates
 * come as objects. */
static bool breaks_sums(dp_node *node, uint32_t part, const listable *chosen)
{
    bool broken = false;

    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        dp_sum *sum = &node->parts->sums[i];
        uint32_t in = 0;
        for (uint32_t k = 0; k < chosen->n; k++) {
            in += dp_part_take_sum_of(node, part, &node->round->claims[chosen->claims[k]]) == sum
                      ? 1
                      : 0;
        }
        if (sum->in_use && sum->word.part == part && in != sum->word.n) {
            sum->in_use = false;
            sum->bad = true;
            broken = true;
        }
    }
    return broken;
}

/* Gathers the contributions that may go into this part now; *waits: how many waits those still to
 * come are worth. False: the owner waits for sums of sites. */
static bool gather(dp_node *node, uint32_t part, listable *chosen, uint32_t *waits)
{
    uint32_t ready[DP_CLAIMS_MAX];
    const uint32_t n = dp_part_round_ready(node, ready);
    uint32_t count = 0;
    bool whole = true;

    dp_assert(part < node->ledger.layout.cuts.n);
    *waits = 0;
    for (uint32_t i = 0; i < n; i++) {
        const dp_claim *claim = &node->round->claims[ready[i]];
        dp_time until = DP_NEVER;
        const bool summed = dp_part_take_sum_of(node, part, claim) != NULL;
        if (!summed && dp_part_take_awaits(node, part, claim, &until)) {
            node->parts->wake_at = dp_time_min(node->parts->wake_at, until);
            whole = false;
        } else if (!summed && (claim->parts.checked >> part & 1U) == 0) {
            const uint32_t member = dp_node_member_index(node, &claim->ready.peer);
            const bool owed =
                member != DP_MEMBER_NONE &&
                dp_deadline_is_owed(node->round->missed[member], node->ledger.round + 1);
            const uint32_t most = owed ? WAITS_OWED : 1;
            *waits = *waits > most ? *waits : most;
        } else if (summed || (claim->parts.bad >> part & 1U) == 0) {
            ready[count++] = ready[i];
        }
    }
    count = dp_part_round_drop_copies(node, part, ready, count);
    chosen->n = dp_round_choose(node, ready, count, chosen->claims);
    return whole && !breaks_sums(node, part, chosen);
}

/* Bytes of this part's objects that are here. */
static void look_whether_it_moves(dp_node *node, uint32_t part)
{
    dp_duty *duty = &node->parts->duties[part];
    uint64_t came = 0;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        if (!claim->evidence && part < claim->ready.parts.n) {
            const dp_part_ref *ref = &claim->ready.parts.refs[part];
            came += (claim->parts.held >> part & 1U) != 0
                        ? ref->bytes
                        : dp_picker_bytes_of(node->picker, &ref->root);
        }
    }
    if (came > duty->came) {
        duty->moved = node->now;
    }
    duty->came = came;
}

/* All that is ready has come, or its time is over. */
static void add_up(dp_node *node, uint32_t part)
{
    dp_part_round *parts = node->parts;
    dp_duty *duty = &parts->duties[part];
    listable chosen;
    uint32_t waits = 0;

    dp_assert(node->parts->duties[part].n <= DP_PART_SOURCES_MAX);
    if (!duty->works || duty->reducing || duty->done || parts->ripe_at.us == 0 ||
        !dp_out_room(&node->out, 1)) {
        return;
    }
    const bool whole = gather(node, part, &chosen, &waits);
    look_whether_it_moves(node, part);
    if (whole && duty->awaiting) { /* Contributions in no sum are fetched from now on. */
        duty->since = node->now;
        dp_part_round_look(node);
    }
    duty->awaiting = !whole;
    if (!whole || chosen.n == 0) {
        return;
    }
    const dp_time since = duty->since.us > parts->ripe_at.us ? duty->since : parts->ripe_at;
    const dp_part_wait wait = dp_part_round_wait(node, part);
    if (dp_part_round_is_time(node, dp_part_wait_owner(&wait, since, duty->moved, waits))) {
        dp_part_round_reduce_chosen(node, part, chosen.claims, chosen.n);
    }
}

void dp_part_round_tick(dp_node *node)
{
    listable ready;

    dp_part_round_sweep(node);
    node->parts->wake_at = DP_NEVER;
    dp_part_round_look_again(node);
    if (!may_work(node) || node->standing.applied != node->ledger.round) {
        return;
    }
    if (dp_round_ripe(node) != NULL && node->parts->ripe_at.us == 0) {
        node->parts->ripe_at = node->now;
    }
    ready.n = dp_part_round_ready(node, ready.claims);
    for (uint32_t p = 0; p < node->ledger.layout.cuts.n; p++) {
        if (ready.n > 0) { /* Else nobody can say: the state has no certificate. */
            dp_part_take_choose(node, p, ready.claims, ready.n);
            take_back(node, &ready, p);
        }
        take_up(node, &ready, p);
        add_up(node, p);
        if (dp_part_collect_begin(node, p)) {
            dp_part_round_look(node);
        }
        dp_part_collect_tick(node, p, ready.claims, ready.n);
    }
}

dp_time dp_part_round_wake(const dp_node *node)
{
    const dp_part_round *parts = node->parts;

    if (parts->ripe_at.us == 0) {
        return parts->wake_at;
    }
    const dp_part_wait wait = dp_part_round_wait(node, DP_PARTS_MAX);
    const dp_time close = dp_time_after(parts->ripe_at, dp_part_wait_close(&wait));
    return dp_time_reached(node->now, close) ? parts->wake_at : dp_time_min(parts->wake_at, close);
}

static void tell(dp_node *node, const dp_part_word *word)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_part_msg_write(&writer, word);
    dp_assert(!writer.full);
    dp_node_send_all(node, dp_view_of(writer.data, writer.size));
}

/* READYs in it whose authors are not alive, and may have told this node but no voter: a voter lists
 * only contributions that it has heard of. */
static void tell_sources(dp_node *node, const dp_part_word *word)
{
    dp_assert(word->n <= DP_PART_SOURCES_MAX);
    for (uint32_t i = 0; i < word->n; i++) {
        const dp_claim *claim = dp_round_claim_of(node, &word->sources[i].peer);
        if (claim != NULL && dp_hash_equal(&claim->ready.root, &word->sources[i].root) &&
            !dp_part_round_is_alive(node, &claim->ready.peer)) {
            dp_writer writer = dp_writer_of(node->room, sizeof node->room);
            dp_ready_msg_write(&writer, &claim->ready);
            dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
        }
    }
}

void dp_part_round_reduced(dp_node *node, const dp_event *event)
{
    const uint32_t part = event->u.reduced.part;

    if (part >= DP_REDUCE_SUM) {
        dp_part_collect_reduced(node, event);
        return;
    }
    dp_duty *duty = part < node->ledger.layout.cuts.n ? &node->parts->duties[part] : NULL;
    if (duty == NULL || !duty->reducing || event->u.reduced.round != node->ledger.round + 1) {
        dp_part_round_let_go(node, event); /* Of a round that has ended meanwhile. */
        return;
    }
    duty->reducing = false;
    duty->done = true;
    if (event->u.reduced.status != DP_OK) {
        dp_node_note(node, DP_NOTE_REJECTED, event->u.reduced.round, &node->self, part, 0,
                     "the trainer could not sum a part of the round");
        return;
    }
    dp_part_word word = {.owner = node->self,
                         .round = event->u.reduced.round,
                         .base = node->ledger.base,
                         .part = part,
                         .root = event->u.reduced.root,
                         .bytes = event->u.reduced.bytes,
                         .n = duty->n};
    memcpy(word.sources, duty->sources, sizeof word.sources);
    word.n_sums = duty->n_sums;
    memcpy(word.sums, duty->sums, sizeof word.sums);
    node->parts->sums_taken += word.n_sums;
    if (!dp_part_sign(&word, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return;
    }
    dp_action *keep = dp_out_add(&node->out, DP_DO_OBJECT_KEEP);
    keep->u.keep.root = word.root;
    keep->u.keep.use = DP_USE_BLOB;
    keep->u.keep.round = word.round;
    dp_node_hold(node, &word.root, word.bytes);
    dp_part_round_word(node, &word, false);
    tell(node, &word);
    tell_sources(node, &word);
}

/* Nobody linked is known to hold it: as show_missing of tell.c. */
static bool is_out_of_reach(const dp_node *node, const dp_result *result)
{
    const uint32_t owner = dp_node_member_index(node, &result->word.owner);
    bool near = owner != DP_MEMBER_NONE && dp_members_at(node->members, owner)->linked;

    for (uint32_t i = 0; i < node->ledger.n_voters && !near; i++) {
        const uint32_t index = dp_node_member_index(node, &node->ledger.voters[i].peer);
        near = (result->have & (1U << i)) != 0 && index != DP_MEMBER_NONE &&
               dp_members_at(node->members, index)->linked;
    }
    return !near;
}

void dp_part_round_repeat(dp_node *node)
{
    dp_part_collect_repeat(node);
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        const dp_result *result = &node->parts->results[i];
        if (dp_peer_equal(&result->word.owner, &node->self)) {
            tell_sources(node, &result->word);
        }
        if (dp_peer_equal(&result->word.owner, &node->self) ||
            (!result->held && !result->bad && node->commit->self != DP_NOBODY &&
             is_out_of_reach(node, result))) {
            tell(node, &result->word);
        }
    }
}
