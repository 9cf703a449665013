/* Fetches and takes the objects of the parts of the round under way: objects of publications for
 * the parts that this node works on, words of owners, results. */
#include "gossip/parts/part_round.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/chain.h"
#include "gossip/context/context.h"
#include "gossip/record/part_sum.h"
#include "gossip/round/round.h"

static const dp_part_cuts *cuts_of(const dp_node *node)
{
    return &node->ledger.layout.cuts;
}

/* ---- objects of publications ---- */

static void look_at_claim(dp_node *node, dp_claim *claim, uint32_t part)
{
    const dp_part_ref *ref = &claim->ready.parts.refs[part];
    const uint32_t bit = 1U << part;

    dp_assert(part < node->ledger.layout.cuts.n);
    dp_assert(!claim->evidence);
    dp_time until;

    if (claim->ready.parts.n <= part) {
        return; /* Known from a record only: its owner had them. */
    }
    if (!dp_part_collect_wants(node, part, claim)) {
        if (!node->parts->duties[part].works || node->parts->duties[part].done ||
            dp_part_take_awaits(node, part, claim, &until)) {
            return;
        }
    }
    if ((claim->parts.held & bit) == 0) {
        if ((claim->parts.bad & bit) != 0) {
            return;
        }
        if (!dp_node_holds(node, &ref->root)) {
            if (!dp_picker_wants(node->picker, &ref->root)) {
                dp_part_round_fetch(node, &ref->root, ref->bytes, &claim->ready.peer);
            }
            return;
        }
        claim->parts.held |= bit;
        dp_node_changed(node);
    }
    if (((claim->parts.checked | claim->parts.checking) & bit) == 0 &&
        dp_part_round_may_check(node)) {
        claim->parts.checking |= bit;
        dp_part_round_check(node, &ref->root, part);
    }
}

/* Does a near node fetch it? Then this node looks again when that node has had its time. */
static bool waits(dp_node *node, const dp_result *result)
{
    dp_time until;

    if (!dp_part_site_waits(node, result, &until)) {
        return false;
    }
    node->parts->wake_at = dp_time_min(node->parts->wake_at, until);
    return true;
}

static void look_at_result(dp_node *node, dp_result *result)
{
    const dp_hash *root = &result->word.root;

    dp_assert(result->word.part < node->ledger.layout.cuts.n);
    if (!result->held) {
        if (result->bad) {
            return;
        }
        if (!dp_node_holds(node, root)) {
            if (!dp_picker_wants(node->picker, root) && !waits(node, result)) {
                dp_part_round_fetch(node, root, result->word.bytes, &result->word.owner);
            }
            return;
        }
        result->held = true;
        result->size = dp_node_size(node, root);
        dp_node_changed(node);
        dp_part_site_tell(node, result);
    }
    if (!result->checked && !result->checking && dp_part_round_may_check(node)) {
        result->checking = true;
        dp_part_round_check(node, root, result->word.part);
    }
}

void dp_part_round_look_again(dp_node *node)
{
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        if (result->held || result->bad) {
            continue;
        }
        if (!dp_picker_wants(node->picker, &result->word.root)) {
            look_at_result(node, result);
        } else if (result->near && !waits(node, result)) {
            result->near = false;
            dp_part_round_fetch(node, &result->word.root, result->word.bytes, &result->word.owner);
        }
    }
}

void dp_part_round_look(dp_node *node)
{
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        look_at_result(node, &node->parts->results[i]);
    }
    dp_part_take_look(node);
    for (uint32_t p = 0; p < cuts_of(node)->n; p++) {
        const dp_duty *duty = &node->parts->duties[p];
        const bool wanted = (duty->works && !duty->done) || node->parts->collects[p].duty.works;
        for (uint32_t i = 0; wanted && i < node->round->n_claims; i++) {
            if (!node->round->claims[i].evidence) {
                look_at_claim(node, &node->round->claims[i], p);
            }
        }
    }
}

void dp_part_round_open_round(dp_node *node)
{
    dp_part_round *parts = node->parts;

    dp_assert(node->ledger.layout.cuts.n <= DP_PARTS_MAX);
    parts->ripe_at = (dp_time){0};
    parts->n_results = 0;
    parts->n_hints = 0;
    parts->n_sums = 0;
    memset(parts->collects, 0, sizeof parts->collects);
    dp_part_site_look(node);
    memset(parts->duties, 0, sizeof parts->duties);
}

void dp_part_round_sweep(dp_node *node)
{
    dp_part_round *parts = node->parts;

    dp_assert(node->parts->n_garbage <= DP_GARBAGE_MAX);
    for (uint32_t i = 0; i < DP_GARBAGE_PER_STEP && parts->n_garbage > 0 &&
                         dp_out_room(&node->out, 2 * DP_GARBAGE_PER_STEP);
         i++) {
        const dp_hash root = parts->garbage[--parts->n_garbage].root;
        if (!dp_part_round_knows(node, &root)) { /* Else it is of use again. */
            dp_chain_drop(node, &root, parts->garbage[parts->n_garbage].round);
        }
    }
}

void dp_part_round_drop(dp_node *node)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_ready *ready = &node->round->claims[i].ready;
        for (uint32_t p = 0; p < ready->parts.n; p++) {
            dp_part_round_throw_away(node, &ready->parts.refs[p].root, ready->round);
        }
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_part_round_throw_away(node, &node->parts->results[i].word.root,
                                 node->parts->results[i].word.round);
    }
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        dp_part_round_throw_away(node, &node->parts->sums[i].word.root,
                                 node->parts->sums[i].word.round);
    }
}

bool dp_part_round_knows(const dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_part_list *list = &node->round->claims[i].ready.parts;
        for (uint32_t p = 0; p < list->n; p++) {
            if (dp_hash_equal(&list->refs[p].root, root)) {
                return true;
            }
        }
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        if (dp_hash_equal(&node->parts->results[i].word.root, root)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        if (dp_hash_equal(&node->parts->sums[i].word.root, root)) {
            return true;
        }
    }
    return false;
}

void dp_part_round_object(dp_node *node, const dp_hash *root, uint64_t size)
{
    (void)size;
    if (dp_part_round_knows(node, root)) {
        dp_part_round_look(node); /* It is held by now. */
        dp_node_changed(node);
    }
}

void dp_part_round_lost(dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        for (uint32_t p = 0; p < claim->ready.parts.n; p++) {
            if (dp_hash_equal(&claim->ready.parts.refs[p].root, root)) {
                claim->parts.held &= ~(1U << p);
                claim->parts.checking &= ~(1U << p); /* As in dp_round_lost. */
            }
        }
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        if (dp_hash_equal(&result->word.root, root)) {
            result->held = false;
            result->checking = false;
        }
    }
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        dp_sum *sum = &node->parts->sums[i];
        if (dp_hash_equal(&sum->word.root, root)) {
            sum->held = false;
            sum->checking = false;
            sum->in_use = false;
        }
    }
    dp_part_round_look(node);
}

void dp_part_round_asked(dp_node *node, const dp_hash *root)
{
    if (dp_node_holds(node, root) || dp_picker_wants(node->picker, root)) {
        return;
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_ready *ready = &node->round->claims[i].ready;
        const uint32_t author = dp_node_member_index(node, &ready->peer);
        for (uint32_t p = 0; p < ready->parts.n; p++) {
            if (dp_hash_equal(&ready->parts.refs[p].root, root) && author != DP_MEMBER_NONE &&
                dp_members_at(node->members, author)->linked) {
                dp_part_round_fetch(node, root, ready->parts.refs[p].bytes, &ready->peer);
                return;
            }
        }
    }
}

/* The same bytes may be good for one part and not for another. */
static bool is_of(const dp_node *node, uint32_t part, const dp_event *event)
{
    return part < cuts_of(node)->n && event->u.checked.first == cuts_of(node)->first[part] &&
           event->u.checked.end == dp_part_end(cuts_of(node), part);
}

static bool claim_checked(const dp_node *node, dp_claim *claim, const dp_event *event)
{
    bool ours = false;

    for (uint32_t p = 0; p < claim->ready.parts.n; p++) {
        const uint32_t bit = 1U << p;
        const dp_part_ref *ref = &claim->ready.parts.refs[p];
        if ((claim->parts.held & bit) == 0 || !dp_hash_equal(&ref->root, &event->u.checked.root) ||
            !is_of(node, p, event)) {
            continue;
        }
        ours = true;
        claim->parts.checking &= ~bit;
        claim->parts.checked |= bit;
        claim->parts.nothing |= event->u.checked.energy == 0 ? bit : 0;
        /* No part has more energy than its author says the whole has: by that it is clipped. */
        if (!event->u.checked.ok || event->u.checked.energy > claim->ready.energy ||
            dp_node_size(node, &ref->root) != ref->bytes) {
            claim->parts.bad |= bit;
        }
    }
    return ours;
}

bool dp_part_round_checked(dp_node *node, const dp_event *event)
{
    bool ours = false;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        const uint32_t bad = claim->parts.bad;
        ours = claim_checked(node, claim, event) || ours;
        if (claim->parts.bad != bad) {
            node->rejected++;
            dp_node_note(
                node, DP_NOTE_REJECTED, claim->ready.round, &claim->ready.peer, 0, 0,
                event->u.checked.foreign ? "its update has a codec that this run does not use"
                : event->u.checked.ok
                    ? "a part of its update has another size or more energy than it announced"
                    : "its update cannot be decoded");
        }
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        if (result->held && dp_hash_equal(&result->word.root, &event->u.checked.root) &&
            is_of(node, result->word.part, event)) {
            ours = true;
            result->checking = false;
            result->checked = true;
            result->bad = !event->u.checked.ok;
            if (result->bad) {
                node->rejected++;
                dp_node_note(node, DP_NOTE_REJECTED, result->word.round, &result->word.owner, 0, 0,
                             "its sum of a part cannot be decoded");
            }
        }
    }
    ours = dp_part_take_checked(node, event) || ours;
    if (ours) {
        dp_round_tell_have(node);
        dp_node_changed(node);
    }
    dp_part_round_look(node); /* Others' turn has come. */
    return ours;
}

void dp_part_round_trainer_down(dp_node *node)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        node->round->claims[i].parts.checking = 0;
    }
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        node->parts->results[i].checking = false;
    }
    for (uint32_t i = 0; i < node->parts->n_sums; i++) {
        node->parts->sums[i].checking = false;
    }
    for (uint32_t p = 0; p < DP_PARTS_MAX; p++) {
        node->parts->duties[p].reducing = false;
        node->parts->collects[p].duty.reducing = false;
    }
}

/* ---- words of owners ---- */

static dp_result *find_result(dp_part_round *parts, const dp_part_word *word)
{
    for (uint32_t i = 0; i < parts->n_results; i++) {
        if (memcmp(parts->results[i].word.signature, word->signature, sizeof word->signature) ==
                0 &&
            dp_hash_equal(&parts->results[i].word.root, &word->root)) {
            return &parts->results[i];
        }
    }
    return NULL;
}

/* Its place in line does not depend on others: the owner by the chain, or the one after it. */
static bool is_first(const dp_node *node, const dp_part_word *word)
{
    const dp_part_layout *layout = &node->ledger.layout;

    return dp_peer_equal(&layout->owners[word->part], &word->owner) ||
           dp_peer_equal(&layout->owners[(word->part + 1) % layout->cuts.n], &word->owner);
}

static bool has_room(const dp_node *node, const dp_part_word *word, bool needed)
{
    const dp_part_round *parts = node->parts;
    uint32_t of_others = 0;
    uint32_t of_owner = 0;

    if (needed || parts->n_results >= DP_RESULTS_MAX) {
        return parts->n_results < DP_RESULTS_MAX;
    }
    for (uint32_t i = 0; i < parts->n_results; i++) {
        const dp_part_word *other = &parts->results[i].word;
        if (other->part == word->part && !parts->results[i].evidence) {
            of_others += is_first(node, other) ? 0 : 1;
            of_owner += dp_peer_equal(&other->owner, &word->owner) ? 1 : 0;
        }
    }
    return of_owner < DP_RESULTS_OF_OWNER_MAX &&
           (is_first(node, word) || of_others < DP_RESULTS_OF_OTHERS_MAX);
}

void dp_part_round_word(dp_node *node, const dp_part_word *word, bool evidence)
{
    dp_part_round *parts = node->parts;
    dp_result *known = find_result(parts, word);

    dp_assert(word->part < node->ledger.layout.cuts.n);
    dp_assert(node->parts->n_results <= DP_RESULTS_MAX);
    if (known != NULL) {
        known->evidence = known->evidence && evidence;
        return;
    }
    if (!has_room(node, word, evidence || dp_peer_equal(&word->owner, &node->self))) {
        return;
    }
    dp_result *result = &parts->results[parts->n_results++];
    *result = (dp_result){.word = *word, .evidence = evidence, .since = node->now};
    look_at_result(node, result);
    dp_node_changed(node);
}

dp_status dp_part_round_message(dp_node *node, dp_view bytes)
{
    dp_part_word word;

    DP_TRY(dp_part_msg_read(bytes, &word));
    if (node->parts == NULL) {
        return DP_DENIED;
    }
    if (word.round != node->ledger.round + 1 || !dp_hash_equal(&word.base, &node->ledger.base) ||
        dp_peer_equal(&word.owner, &node->self)) {
        return DP_OK; /* Old, early or our own: it is told again. */
    }
    const dp_result *known = find_result(node->parts, &word);
    if (known != NULL && !known->evidence) {
        return DP_OK;
    }
    if (word.part >= cuts_of(node)->n || !dp_round_may_contribute(node, &word.owner) ||
        word.n_sums > (node->ledger.summed ? dp_site_sums_most(cuts_of(node)->n) : 0)) {
        return DP_DENIED;
    }
    if (known == NULL && !has_room(node, &word, false)) {
        return DP_OK; /* Before its signatures, of which it may have many, are looked at. */
    }
    if (!dp_part_verify(&word, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return DP_BADSIG;
    }
    const uint32_t before = node->parts->n_results;
    dp_part_round_word(node, &word, false);
    if (node->parts->n_results > before && node->commit->self != DP_NOBODY) {
        dp_node_send_voters(node, bytes); /* Once: for voters that the owner does not reach. */
    }
    return DP_OK;
}

void dp_part_round_have(dp_node *node, uint32_t voter, uint32_t member, const dp_hash *roots,
                        uint32_t n)
{
    dp_assert(voter < node->ledger.n_voters || voter == DP_NOBODY);
    for (uint32_t i = 0; i < node->parts->n_results; i++) {
        dp_result *result = &node->parts->results[i];
        bool has = false;
        for (uint32_t k = 0; k < n && !has; k++) {
            has = dp_hash_equal(&roots[k], &result->word.root);
        }
        if (has && voter != DP_NOBODY && (result->have & (1U << voter)) == 0) {
            result->have |= 1U << voter;
            dp_node_changed(node);
        }
        if (!has || result->held || member == DP_MEMBER_NONE || member == 0) {
            continue;
        }
        if (dp_part_site_near(node->parts, member) && !dp_node_holds(node, &result->word.root) &&
            !dp_picker_wants(node->picker, &result->word.root)) {
            result->near = true;
            dp_node_changed(node); /* That wait ends too. */
            result->since = node->now;
            dp_part_round_fetch(node, &result->word.root, result->word.bytes,
                                &dp_members_at(node->members, member)->peer);
            node->parts->results_near++;
        } else {
            dp_picker_holder(node->picker, node->now, &result->word.root, member, &node->out);
        }
    }
}

dp_status dp_part_round_subtotal(dp_node *node, dp_view bytes)
{
    bool look = false;
    const dp_status status = dp_part_take_message(node, bytes, &look);

    if (look) {
        dp_part_round_look(node);
    }
    return status;
}

dp_status dp_part_round_collect(dp_node *node, uint32_t from, dp_view bytes)
{
    bool look = false;
    const dp_status status = dp_part_take_hint(node, from, bytes, &look);

    if (look) {
        dp_part_round_look(node);
    }
    return status;
}
