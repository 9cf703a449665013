#include "gossip/round/judge_round.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/ledger/harm.h"
#include "gossip/round/config_part.h"
#include "gossip/round/judge.h"
#include "gossip/round/round.h"

typedef struct dp_judging {
    uint32_t asked;  /* DP_DO_JUDGE without answer */
    uint64_t tokens; /* of the budget of this round, for each kind of gain */
    dp_judge judge;
    dp_harms harms;
    uint32_t n_voters; /* the voters of the statements in harms */
    dp_voter voters[DP_VOTERS_MAX];
    bool ignored; /* a record has neither listed this node nor named it late; none has since */
} dp_judging;

dp_status dp_judging_open(dp_node *node)
{
    node->judging = dp_reserve(1, sizeof *node->judging);
    if (node->judging == NULL) {
        return DP_NOMEM;
    }
    dp_judge *judge = &node->judging->judge;
    judge->members_max = node->ledger.capacity;
    judge->members = dp_reserve(judge->members_max, sizeof *judge->members);
    return judge->members == NULL ? DP_NOMEM : DP_OK;
}

void dp_judging_close(dp_node *node)
{
    if (node->judging != NULL) {
        dp_free(node->judging->judge.members);
        dp_free(node->judging);
    }
}

/* ---- asking ---- */

/* Does the trainer hold the state that updates of this round begin from? A voter whose trainer does
 * not must apply first; until a majority of voters has done so, no round closes anyway. */
static bool can_judge(const dp_node *node)
{
    return node->judging != NULL && node->commit->self != DP_NOBODY &&
           node->standing.state == DP_TRAINER_SET && !node->standing.applying &&
           node->standing.applied == node->ledger.round;
}

static bool is_rejected(const dp_claim *claim)
{
    return claim->found != DP_FOUND_NONE && claim->found != DP_FOUND_GOOD;
}

/* The clip of the newest record's median, Q16. */
static uint32_t clip_of(const dp_node *node, const dp_claim *claim)
{
    const dp_weight_in in = {.tokens = claim->ready.tokens,
                             .steps = claim->ready.steps,
                             .rounds = 1,
                             .energy = claim->energy};

    dp_assert(claim->checked);
    return dp_weight_before(&in, node->ledger.w_median, node->ledger.clip_median).clip;
}

/* More than SHARE times as long as the newest record's median: the work of many rounds, as after a
 * time without a majority. By its bytes, which say so whatever its author tells. */
static bool is_long(const dp_node *node, const dp_claim *claim)
{
    return claim->checked && clip_of(node, claim) < DP_CLIP_ONE / DP_JUDGE_STEP_SHARE;
}

/* Are most of the updates of the round long? Then a record of them shortens none, and what was
 * measured at a part of their length says little of them. */
static bool most_are_long(const dp_node *node)
{
    uint32_t n = 0;
    uint32_t n_long = 0;

    dp_assert(node->round->n_claims <= node->round->claims_max);
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_claim *const claim = &node->round->claims[i];
        n += claim->checked && !claim->bad && !claim->evidence ? 1 : 0;
        n_long += !claim->bad && !claim->evidence && is_long(node, claim) ? 1 : 0;
    }
    return 2 * n_long > n;
}

/* The samples between the chain's count of its author and the claim. */
static void add_samples(const dp_node *node, const dp_claim *claim, dp_action *action)
{
    const dp_lease *lease = dp_ledger_lease(&node->ledger, &claim->ready.peer);
    uint64_t left = 0;

    if (lease == NULL) {
        return;
    }
    if (claim->ready.reach.own > lease->reach.own) {
        action->u.judge.own = lease->reach.own;
        action->u.judge.own_count = claim->ready.reach.own - lease->reach.own;
    }
    left = claim->ready.reach.leased > lease->reach.leased
               ? claim->ready.reach.leased - lease->reach.leased
               : 0;
    for (uint32_t i = 0; i < lease->n && left > 0; i++) {
        dp_sample_range range = lease->ranges[i];
        range.count = range.count < left ? range.count : left;
        left -= range.count;
        action->u.judge.ranges[action->u.judge.n_ranges++] = range;
    }
}

/* For each kind of gain. An update that brings the work of many rounds is worth a longer look. */
static uint32_t tokens_of(dp_node *node, const dp_claim *claim)
{
    uint64_t budget = dp_judge_budget(claim->ready.tokens);

    if (!claim->suspect) {
        return 0;
    }
    return dp_judge_take(claim->whole ? &budget : &node->judging->tokens, node->ledger.context);
}

static void ask(dp_node *node, dp_claim *claim)
{
    dp_action *action = dp_out_add(&node->out, DP_DO_JUDGE);

    dp_assert(!claim->judging);
    claim->judging = true;
    node->judging->asked++;
    action->u.judge.root = claim->ready.root;
    action->u.judge.keep = dp_node_keep(node, claim->ready.round);
    action->u.judge.scale = claim->whole ? DP_CLIP_ONE : clip_of(node, claim) / DP_JUDGE_STEP_SHARE;
    action->u.judge.tokens = tokens_of(node, claim);
    /* Drawn now, when the author cannot change it any more. */
    action->u.judge.seed = dp_broken(228) ? node->ledger.round : dp_rng_next(&node->rng);
    action->u.judge.peer = claim->ready.peer;
    add_samples(node, claim, action);
}

/* Voters are trusted; so there is always a member whose update may be listed. */
static bool is_trusted(const dp_node *node, const dp_claim *claim)
{
    return dp_ledger_voter(&node->ledger, &claim->ready.peer) != DP_NOBODY && !dp_broken(229);
}

/* One blob under two names, told by another before, or by a voter. It takes a READY alone, so it is
 * held against nobody. */
static bool is_same_blob(const dp_node *node, const dp_claim *claim)
{
    for (uint32_t i = 0; i < node->round->n_claims && claim->energy != 0; i++) {
        const dp_claim *other = &node->round->claims[i];
        if (other != claim && !other->evidence &&
            dp_hash_equal(&other->ready.root, &claim->ready.root) &&
            (is_trusted(node, other) || other->told_at.us < claim->told_at.us ||
             (other->told_at.us == claim->told_at.us && other < claim))) {
            return true;
        }
    }
    return false;
}

static void find_good(dp_node *node, dp_claim *claim)
{
    claim->found = DP_FOUND_GOOD;
    dp_node_changed(node);
    dp_round_have_soon(node);
}

static void leave_out(dp_node *node, dp_claim *claim, dp_judgement judgement)
{
    dp_assert(judgement != DP_FOUND_GOOD && judgement != DP_FOUND_NONE);
    claim->found = judgement;
    node->rejected++;
    dp_node_changed(node);
    dp_node_note(node, DP_NOTE_REJECTED, claim->ready.round, &claim->ready.peer, 0, 0,
                 dp_judgement_text(judgement));
}

/* Each once. */
static void look_again(dp_node *node)
{
    dp_assert(node->judging != NULL);
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *const claim = &node->round->claims[i];
        if (is_rejected(claim) && claim->held && !claim->whole && is_long(node, claim)) {
            claim->found = DP_FOUND_NONE;
            claim->suspect = claim->whole = true;
        }
    }
}

void dp_judging_look(dp_node *node)
{
    if (!can_judge(node)) {
        return;
    }
    if (most_are_long(node)) {
        look_again(node);
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->found != DP_FOUND_NONE || claim->judging || !claim->held || !claim->checked ||
            claim->bad || claim->evidence) {
            continue;
        }
        const bool room = node->judging->asked < DP_JUDGES_MAX && dp_out_room(&node->out, 1);
        if (is_trusted(node, claim)) {
            find_good(node, claim); /* It is measured only to judge the others by it. */
        } else if (is_same_blob(node, claim)) {
            leave_out(node, claim, DP_FOUND_COPY);
            continue;
        }
        if (room) {
            ask(node, claim);
        }
    }
}

/* ---- answers ---- */

static void tell_harm(dp_node *node, const dp_harm *harm)
{
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    dp_harm_write(&writer, harm);
    dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
}

/* With every harmful update anew, so that a word is recent as long as its reason lasts. */
static void accuse(dp_node *node, const dp_peer *peer)
{
    dp_judging *judging = node->judging;
    dp_harm harm = {.accused = *peer, .round = node->ledger.round + 1, .voter = node->self};

    if (node->commit->key_lost || !dp_judge_accuses(&judging->judge, peer) ||
        !dp_harms_want(&judging->harms, &node->ledger, &harm) ||
        !dp_harm_sign(&harm, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return;
    }
    dp_harms_add(&judging->harms, &node->ledger, &harm);
    dp_node_note(node, DP_NOTE_REJECTED, harm.round, peer, 0, 0,
                 "most of its updates are harmful; this voter asks the others to remove it");
    tell_harm(node, &harm);
}

static void note_align(dp_node *node, const dp_claim *claim, int32_t align)
{
    dp_node_note(node, DP_NOTE_JUDGED, claim->ready.round, &claim->ready.peer,
                 (uint64_t)(align < 0 ? -(int64_t)align : align), 0,
                 align < 0 ? "against the own one" : "along the own one");
}

/* The claim with this blob that the trainer is judging, or NULL. */
static dp_claim *claim_asked(const dp_node *node, const dp_hash *root)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        dp_claim *claim = &node->round->claims[i];
        if (claim->judging && dp_hash_equal(&claim->ready.root, root)) {
            return claim;
        }
    }
    return NULL;
}

/* The answer about a member that is not trusted. */
static void judge(dp_node *node, dp_claim *claim, const dp_judged *found, dp_peer *exposed)
{
    dp_judge *judge = &node->judging->judge;
    const dp_ready *ready = &claim->ready;

    dp_assert(claim->held || claim->found == DP_FOUND_NONE);
    if (!claim->suspect && dp_judge_suspects(judge, found)) {
        claim->suspect = true;
        return; /* Asked again. */
    }
    if (claim->whole && found->failed) {
        leave_out(node, claim, DP_FOUND_AGAINST); /* The first measurement stands. */
        return;
    }
    dp_judged seen = *found;
    if (is_long(node, claim) && most_are_long(node)) {
        memset(seen.likeness, 0, sizeof seen.likeness); /* Partners hold the same mean. */
    }
    const dp_judgement judgement =
        dp_judge_update(judge, &ready->peer, ready->round, claim->told_at, &seen, exposed);
    if (judgement == DP_FOUND_GOOD) {
        find_good(node, claim);
    } else {
        leave_out(node, claim, judgement);
        accuse(node, &ready->peer);
    }
}

void dp_judging_judged(dp_node *node, const dp_event *event)
{
    const dp_judged *found = &event->u.judged.found;
    dp_peer exposed = {{0}};

    if (node->judging == NULL) {
        return;
    }
    node->judging->asked -= node->judging->asked > 0 ? 1 : 0;
    dp_claim *claim = claim_asked(node, &event->u.judged.root);
    if (claim != NULL) {
        claim->judging = false;
        if (found->compared && !claim->suspect) {
            note_align(node, claim, found->align);
        }
        if (claim->found == DP_FOUND_GOOD) {
            dp_judge_trusted(&node->judging->judge, &claim->ready.peer, claim->ready.round,
                             claim->told_at, dp_peer_equal(&claim->ready.peer, &node->self), found,
                             &exposed);
        } else if (claim->held) { /* Else it is fetched anew, and then looked at. */
            judge(node, claim, found, &exposed);
        }
        dp_claim *copy = dp_round_claim_of(node, &exposed);
        if (copy != NULL && copy->found == DP_FOUND_GOOD && !is_trusted(node, copy)) {
            leave_out(node, copy, DP_FOUND_COPY);
        }
    }
    dp_judging_look(node);
}

void dp_judging_trainer_down(dp_node *node)
{
    if (node->judging == NULL) {
        return;
    }
    node->judging->asked = 0;
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        node->round->claims[i].judging = false;
    }
}

static void forget_unlisted(dp_node *node)
{
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        const dp_ready *ready = &node->round->claims[i].ready;
        const uint32_t at = dp_ledger_find(&node->ledger, &ready->peer);
        if (ready->round == node->ledger.round &&
            (at == DP_NOBODY || node->ledger.roster[at].included != node->ledger.round)) {
            dp_judge_unlisted(&node->judging->judge, &ready->peer, ready->round);
        }
    }
}

void dp_judging_open_slot(dp_node *node, bool new_round)
{
    dp_judging *judging = node->judging;

    if (judging == NULL) {
        return;
    }
    const bool changed = judging->n_voters != node->ledger.n_voters ||
                         memcmp(judging->voters, node->ledger.voters, sizeof judging->voters) != 0;
    judging->n_voters = node->ledger.n_voters;
    memcpy(judging->voters, node->ledger.voters, sizeof judging->voters);
    dp_harms_prune(&judging->harms, &node->ledger, changed);
    if (new_round) {
        forget_unlisted(node);
        judging->tokens = dp_judge_budget(node->standing.published_tokens);
        dp_judge_open_round(&judging->judge);
    }
}

/* ---- requests of others ---- */

bool dp_judging_rejects(const dp_node *node, const dp_peer *peer)
{
    const dp_claim *claim = node->judging != NULL ? dp_round_claim_of(node, peer) : NULL;

    return claim != NULL && is_rejected(claim);
}

uint32_t dp_judging_rejected(const dp_node *node)
{
    uint32_t count = 0;

    for (uint32_t i = 0; node->judging != NULL && i < node->round->n_claims; i++) {
        const dp_claim *claim = &node->round->claims[i];
        const uint32_t index = dp_node_member_index(node, &claim->ready.peer);
        count += is_rejected(claim) && !claim->evidence && index != DP_MEMBER_NONE &&
                         dp_round_is_active(node, index)
                     ? 1
                     : 0;
    }
    return count;
}

bool dp_judging_ignores(dp_node *node, const dp_record *record, bool listed)
{
    const dp_roster_entry *own = dp_ledger_member(&node->ledger, &node->self);
    dp_judging *const judging = node->judging;
    bool late = false;

    if (judging == NULL || own == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < record->n_late; i++) {
        late = late || dp_peer_equal(&record->late[i], &node->self);
    }
    if (listed || late) {
        judging->ignored = false;
    } else if (record->n_late < DP_LATE_MAX &&
               dp_ledger_may_be_late(&node->ledger, own, record->round)) {
        judging->ignored = true; /* Later records name no member that was not counted for long. */
    }
    return judging->ignored;
}

dp_status dp_judging_message(dp_node *node, dp_view bytes)
{
    dp_harm harm;

    DP_TRY(dp_harm_read(bytes, &harm));
    if (node->judging == NULL || node->commit->self == DP_NOBODY ||
        !dp_harms_want(&node->judging->harms, &node->ledger, &harm)) {
        return DP_OK;
    }
    const uint32_t voter = dp_ledger_voter(&node->ledger, &harm.voter);
    if (!dp_harm_verify(&harm, node->ledger.voters[voter].key, &node->config.crypto, &node->run,
                        &node->ledger.fork)) {
        return DP_BADSIG;
    }
    dp_harms_add(&node->judging->harms, &node->ledger, &harm);
    dp_node_changed(node);
    return DP_OK;
}

void dp_judging_list(const dp_node *node, dp_record *draft)
{
    dp_config_part *config = &draft->config;
    dp_remove remove;

    dp_assert(draft->config.n_removes <= DP_CONFIG_REMOVE_MAX);
    for (uint32_t i = 0; node->judging != NULL && i < node->judging->harms.n; i++) {
        if (dp_harms_removal(&node->judging->harms, &node->ledger, i, &remove) &&
            !dp_config_removes(config, &remove.peer) && config->n_removes < DP_CONFIG_REMOVE_MAX) {
            dp_config_add_removal(config, &remove);
            draft->has_config = true;
        }
    }
}
