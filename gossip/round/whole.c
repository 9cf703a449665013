/* The kind of run whose updates go whole to every voter: how contributions are fetched, checked,
 * told, listed and judged (kind.h). */
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/round_msg.h"

/* ---- messages ---- */

static void check(dp_node *node, dp_claim *claim)
{
    dp_assert(claim->held);
    if (!claim->checking && !claim->checked && dp_round_may_check(node)) {
        claim->checking = true;
        dp_round_begin_check(node, &claim->ready.root);
        dp_action *action = dp_out_add(&node->out, DP_DO_CHECK);
        action->u.check.root = claim->ready.root;
        action->u.check.end = DP_PART_WHOLE;
        action->u.check.keep = dp_node_keep(node, claim->ready.round);
    }
}

static void hold(dp_node *node, dp_claim *claim, uint64_t size)
{
    claim->held = true;
    claim->size = size;
    if (claim->held_at.us == 0) {
        claim->held_at = node->now;
        if (!dp_peer_equal(&claim->ready.peer, &node->self)) {
            dp_relay_came(&node->relay, dp_time_between(claim->told_at, node->now));
        }
    }
}

static void fetch(dp_node *node, dp_claim *claim)
{
    const dp_hash *root = &claim->ready.root;

    if (claim->bad && !claim->held) {
        return; /* The object does not match its READY. */
    }
    if (dp_node_holds(node, root)) {
        hold(node, claim, dp_node_size(node, root));
        if (node->standing.state != DP_TRAINER_OFF) {
            check(node, claim);
        }
        return;
    }
    if (dp_picker_want(node->picker, node->now, root, 0, DP_USE_BLOB, DP_PRIORITY_ROUND,
                       &node->out) != DP_OK) {
        node->round->unwanted = true; /* Asked again when one has come, or with the next repeat. */
        return;
    }
    const uint32_t author = dp_node_member_index(node, &claim->ready.peer);
    if (author != DP_MEMBER_NONE && author != 0) {
        dp_picker_holder(node->picker, node->now, root, author, &node->out);
    }
}

static void have(dp_node *node, uint32_t voter, uint32_t member, const dp_hash *roots, uint32_t n)
{
    dp_assert(voter < node->ledger.n_voters || voter == DP_NOBODY);
    for (uint32_t i = 0; voter != DP_NOBODY && i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        bool has = false;
        for (uint32_t k = 0; k < n && !has; k++) {
            has = dp_hash_equal(&roots[k], &claim->ready.root);
        }
        if (has && (claim->have & (1U << voter)) == 0) {
            claim->have |= 1U << voter;
            dp_node_changed(node);
        }
        if (has && !claim->held && member != DP_MEMBER_NONE && member != 0) {
            dp_picker_holder(node->picker, node->now, &claim->ready.root, member, &node->out);
        }
    }
}

/* Fetches blobs that could not be wanted before, for lack of room. Blobs that a decided round lacks
 * go first: they find room in the same way, at the end of the step. */
static void fetch_unwanted(dp_node *node)
{
    dp_round *round = node->round;

    if (!round->unwanted ||
        (node->standing.state == DP_TRAINER_SET && node->standing.applied < node->ledger.round)) {
        return;
    }
    round->unwanted = false;
    for (uint32_t i = 0; i < round->n_claims && !round->unwanted; i++) {
        dp_claim *claim = &round->claims[i];
        if (!claim->held && !dp_picker_wants(node->picker, &claim->ready.root)) {
            fetch(node, claim);
        }
    }
}

static void object(dp_node *node, const dp_hash *root, uint64_t size)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (!claim->held && dp_hash_equal(&claim->ready.root, root)) {
            hold(node, claim, size);
            if (node->standing.state != DP_TRAINER_OFF) {
                check(node, claim);
            }
            dp_node_changed(node);
        }
    }
    fetch_unwanted(node);
}

static void lost(dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->held && !dp_broken(145) && dp_hash_equal(&claim->ready.root, root)) {
            claim->held = false;
            claim->checking = false; /* Its result would be about bytes that are gone. */
            fetch(node, claim);
        }
    }
}

static bool checked(dp_node *node, const dp_event *event)
{
    const dp_hash *const root = &event->u.checked.root;
    const unsigned __int128 energy = event->u.checked.energy;
    bool ours = false;

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->held && !claim->checked && !claim->checking &&
            !dp_hash_equal(&claim->ready.root, root)) {
            check(node, claim); /* Its turn has come. */
        }
        if (!claim->held || !dp_hash_equal(&claim->ready.root, root)) {
            continue;
        }
        ours = true;
        claim->checking = false;
        claim->checked = true;
        claim->bad = !event->u.checked.ok || energy > DP_ENERGY_MAX;
        claim->energy = energy;
        if (claim->bad) {
            node->rejected++;
            dp_node_note(node, DP_NOTE_REJECTED, claim->ready.round, &claim->ready.peer, 0, 0,
                         event->u.checked.foreign
                             ? "its update has a codec that this run does not use"
                             : "its update cannot be decoded");
        }
    }
    if (ours) {
        dp_round_have_soon(node);
        dp_node_changed(node);
    }
    return ours;
}

static void trainer_down(dp_node *node)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        node->round->claims[i].checking = false;
    }
}

static bool knows(const dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        if (dp_hash_equal(root, &node->round->claims[i].ready.root)) {
            return true;
        }
    }
    return false;
}

/* ---- announcements ---- */

static void add_have(dp_node *node, dp_have_msg *have)
{
    dp_assert(node->commit->self < DP_VOTERS_MAX);
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->held && claim->checked && !claim->bad && dp_claim_is_told(node, claim)) {
            claim->have |= 1U << node->commit->self;
            have->roots[have->n++] = claim->ready.root;
        }
        if (have->n == DP_HAVE_MAX) { /* Of a run with lists. */
            dp_round_send_have(node, have);
        }
    }
}

/* Nobody linked is known to hold this blob: neither its author nor a voter that says so. */
static bool is_out_of_reach(const dp_node *node, const dp_claim *claim)
{
    const uint32_t author = dp_node_member_index(node, &claim->ready.peer);
    bool near = author != DP_MEMBER_NONE && dp_members_at(node->members, author)->linked;

    for (uint32_t i = 0; i < node->ledger.n_voters && !near; i++) {
        const uint32_t index = dp_node_member_index(node, &node->ledger.voters[i].peer);
        near = (claim->have & (1U << i)) != 0 && index != DP_MEMBER_NONE &&
               dp_members_at(node->members, index)->linked;
    }
    return !near;
}

/* A record may bind voters to a blob that only one of them holds, a voter to which this one has no
 * link. Members between them do not know of it, since its author is gone; shown the READY they
 * fetch it, and it is fetched from them. */
static void show_missing(dp_node *node)
{
    dp_writer writer;

    for (uint32_t i = 0; node->commit->self != DP_NOBODY && i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        if (!claim->held && !claim->bad && is_out_of_reach(node, claim)) {
            writer = dp_writer_of(node->room, sizeof node->room);
            dp_ready_msg_write(&writer, &claim->ready);
            dp_node_send_all(node, dp_view_of(writer.data, writer.size));
        }
    }
}

static void look(dp_node *node)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (!claim->held) {
            if (!dp_picker_wants(node->picker, &claim->ready.root)) {
                fetch(node, claim);
            }
        } else if (!claim->checked && node->standing.state != DP_TRAINER_OFF) {
            check(node, claim);
        }
    }
}

/* ---- listing and judging by a voter ---- */

static void list(dp_node *node, dp_record *draft)
{
    uint32_t held[DP_CLAIMS_MAX] = {0};
    uint32_t chosen[DP_LISTED_MAX];

    dp_assert(draft->n_listed == 0);
    const uint32_t n = dp_round_choose(node, held, dp_round_held(node, held), chosen);
    for (uint32_t i = 0; i < n; i++) {
        (void)dp_round_list(node, draft, &node->round->claims[chosen[i]]);
    }
}

static const dp_claim *find_listed(const dp_node *node, const dp_listed *listed)
{
    const dp_claim *claim = dp_round_claim_of(node, &listed->peer);

    if (claim != NULL && dp_hash_equal(&claim->ready.root, &listed->root)) {
        return claim;
    }
    claim = NULL;
    for (uint32_t k = 0; k < node->round->n_claims; k++) {
        if (dp_hash_equal(&node->round->claims[k].ready.root, &listed->root) &&
            dp_peer_equal(&node->round->claims[k].ready.peer, &listed->peer)) {
            claim = &node->round->claims[k];
        }
    }
    return claim;
}

/* All blobs here, checked, and with the energies that the record states (SAFETY A6 and E). */
static dp_verdict judge(dp_node *node, const dp_record *record)
{
    dp_verdict verdict = DP_VERDICT_YES;

    dp_assert(!node->ledger.parted);
    for (uint32_t i = 0; i < record->n_listed; i++) {
        const dp_listed *listed = &record->listed[i];
        const dp_claim *claim = find_listed(node, listed);
        if (claim == NULL) {
            const dp_ready ready = dp_valid_ready(&node->ledger, record, i);
            dp_round_ready(node, &ready, true, false);
            verdict = DP_VERDICT_LATER;
        } else if (!claim->held || (!claim->checked && !dp_broken(107))) {
            verdict = DP_VERDICT_LATER;
        } else if (claim->bad || claim->energy != listed->energy || claim->size != listed->bytes) {
            return DP_VERDICT_NO;
        }
    }
    return verdict;
}

static uint32_t held(const dp_node *node)
{
    return dp_round_held(node, NULL);
}

static const char *close(dp_node *node, const char *cause)
{
    (void)node;
    return cause;
}

/* ---- only for parts ---- */

static void open_slot(dp_node *node, bool new_round)
{
    (void)node;
    (void)new_round;
}

static void asked(dp_node *node, const dp_hash *root)
{
    (void)node;
    (void)root;
}

static bool sized(dp_node *node, const dp_hash *root, uint64_t size)
{
    (void)node;
    (void)root;
    (void)size;
    return false;
}

static void tick(dp_node *node)
{
    (void)node;
}

static dp_time wake(const dp_node *node)
{
    (void)node;
    return DP_NEVER;
}

const dp_round_kind dp_round_whole = {.open_slot = open_slot,
                                      .fetch = fetch,
                                      .have = have,
                                      .object = object,
                                      .lost = lost,
                                      .asked = asked,
                                      .knows = knows,
                                      .sized = sized,
                                      .checked = checked,
                                      .trainer_down = trainer_down,
                                      .look = look,
                                      .add_have = add_have,
                                      .repeat = show_missing,
                                      .ready = dp_round_held,
                                      .held = held,
                                      .close = close,
                                      .list = list,
                                      .judge = judge,
                                      .drop = dp_round_drop_unlisted,
                                      .tick = tick,
                                      .wake = wake};
