/* The record that a voter proposes for the slot, and whether it may accept the proposal of
 * another. */
#include <stddef.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/catchup/list_exchange.h"
#include "gossip/context/context.h"
#include "gossip/record/lists.h"
#include "gossip/requests/requests.h"
#include "gossip/round/admit.h"
#include "gossip/round/config_part.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge_round.h"
#include "gossip/round/kind.h"
#include "gossip/round/round.h"
#include "gossip/round/turn.h"

/* ---- contributions that are ready ---- */

/* ---- building ---- */

static bool is_listed(const dp_record *record, const dp_peer *peer)
{
    for (uint32_t i = 0; i < record->n_listed; i++) {
        if (dp_peer_equal(&record->listed[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

/* Members that are not listed keep their share of the step (SAFETY B3), unless they are known to be
 * dead or to have left. A member of which nothing is heard yet may work: its READY has come by
 * others. */
static void list_late(dp_node *node, dp_record *draft)
{
    dp_assert(draft->n_listed > 0);
    for (uint32_t i = 0; !dp_broken(52) && i < node->ledger.n_roster && draft->n_late < DP_LATE_MAX;
         i++) {
        const dp_roster_entry *entry = &node->ledger.roster[i];
        const uint32_t index = dp_node_member_index(node, &entry->peer);
        if (index == DP_MEMBER_NONE || is_listed(draft, &entry->peer) ||
            dp_node_revoked(node, &entry->peer) ||
            dp_config_removes(&draft->config, &entry->peer) ||
            dp_judging_rejects(node, &entry->peer) ||
            !dp_ledger_may_be_late(&node->ledger, entry, draft->round)) {
            continue;
        }
        const dp_member_state state = dp_members_at(node->members, index)->state;
        if (index != 0 && (state == DP_MEMBER_DEAD || state == DP_MEMBER_LEFT)) {
            continue;
        }
        uint32_t at = draft->n_late++;
        while (at > 0 && dp_peer_compare(&entry->peer, &draft->late[at - 1]) < 0) {
            draft->late[at] = draft->late[at - 1];
            at--;
        }
        draft->late[at] = entry->peer;
    }
}

/* The record that this voter would have decided now; 0 when there is nothing to list. */
size_t dp_round_value(void *context, uint8_t *out)
{
    dp_node *node = context;
    dp_record *draft = &node->draft;
    dp_admitted admitted[DP_CONFIG_ADMIT_MAX];
    const dp_valid valid = {.ledger = &node->ledger,
                            .crypto = &node->config.crypto,
                            .admission = &node->config.admission,
                            .admitted = admitted};
    const char *cause = "";
    dp_view bytes;

    memset(draft, 0, offsetof(dp_record, listed));
    draft->kind = DP_RECORD_ROUND;
    draft->in_lists = dp_ledger_lists(&node->ledger);
    draft->run = node->run;
    draft->fork = node->ledger.fork;
    draft->slot = node->ledger.slot + 1;
    draft->prev = node->ledger.head;
    draft->time_ms = dp_node_record_ms(node);
    draft->round = node->ledger.round + 1;
    draft->base = node->ledger.base;
    if (dp_round_state_cert(node, &draft->state_root, draft->state, &draft->n_state)) {
        node->kind->list(node, draft);
    }
    if (draft->n_listed > 0) {
        dp_config_draft(node, draft, admitted);
        list_late(node, draft);
        draft->lines = dp_round_lines(node);
        dp_valid_fill(&node->ledger, draft);
    } else if (dp_config_may_stand_alone(node) || dp_admit_may_stand_alone(node)) {
        draft->kind = DP_RECORD_CONFIG;
        draft->in_lists = false;
        draft->parted = false;
        draft->round = 0;
        dp_config_draft(node, draft, admitted);
    }
    if (draft->n_listed == 0 && !draft->has_config) {
        return 0;
    }
    const dp_status status = dp_valid_record(&valid, draft, &cause);
    if (status != DP_OK) {
        dp_node_note(node, DP_NOTE_REJECTED, draft->round, &node->self, draft->slot, 0, cause);
        return 0;
    }
    if (!draft->in_lists) {
        return dp_record_encode(draft, out, DP_RECORD_BYTES_MAX, &bytes) == DP_OK ? bytes.size : 0;
    }
    if (dp_record_encode(draft, node->list_exchange->whole, DP_RECORD_WHOLE_MAX, &bytes) != DP_OK) {
        return 0;
    }
    dp_lists_put_all(&node->list_exchange->lists, bytes);
    const dp_view voted = dp_record_voted(bytes);
    memcpy(out, voted.data, voted.size);
    return voted.size;
}

/* ---- judging ---- */

/* Mutations 15, 16 and 47 refuse a record for a reason that is no rule. */
static bool refuses_by_mutation(const dp_node *node, const dp_record *record)
{
    bool refused = dp_broken(16) && record->n_listed < dp_deadline_enough(dp_round_active(node));

    for (uint32_t i = 0; (dp_broken(15) || dp_broken(47)) && i < record->n_listed; i++) {
        const dp_peer *peer = &record->listed[i].peer;
        const uint32_t index = dp_node_member_index(node, peer);
        const bool dead =
            index != 0 && (index == DP_MEMBER_NONE ||
                           dp_members_at(node->members, index)->state != DP_MEMBER_ALIVE);
        refused = refused || (dp_broken(15) ? dead : dp_node_revoked(node, peer));
    }
    return refused;
}

/* Of a record's time: later than the own clock, than a majority's clocks and than the chain's
 * newest time, by more than the skew. A chain that wrong clocks have put into the future goes on
 * from there; and a record that some voter accepted while they were wrong may be the only one that
 * can still be decided, so no node waits for its time for ever. */
static bool is_ahead(dp_node *node, uint64_t time_ms)
{
    dp_round *round = node->round;
    const uint64_t agreed_ms = dp_heartbeat_agreed_ms(&node->beat, node->now);
    uint64_t here_ms = node->wall_ms > node->ledger.time_ms ? node->wall_ms : node->ledger.time_ms;

    dp_assert(node->ledger.time_ms > 0 || node->ledger.slot == 0);
    here_ms = agreed_ms > here_ms ? agreed_ms : here_ms;
    if (time_ms <= here_ms || time_ms - here_ms <= DP_RECORD_SKEW_MS) {
        return false;
    }
    if (round->ahead_since.us == 0) {
        round->ahead_since = node->now;
    }
    return dp_time_between(round->ahead_since, node->now) < DP_RECORD_PATIENCE_US;
}

dp_verdict dp_round_judge(void *context, dp_view bytes)
{
    dp_node *node = context;
    dp_round *round = node->round;
    const dp_hash hash = dp_record_hash(bytes);
    const char *cause = "";

    if (!dp_hash_equal(&hash, &round->judged)) {
        dp_view whole = bytes;
        if (dp_ledger_lists(&node->ledger) && dp_list_join(node, bytes, true, &whole) == DP_AGAIN) {
            return DP_VERDICT_LATER;
        }
        const dp_valid valid = {.ledger = &node->ledger,
                                .crypto = &node->config.crypto,
                                .admission = &node->config.admission,
                                .admitted = round->judged_admitted};
        round->judged = hash;
        round->verdict = dp_record_decode(&round->judged_record, whole);
        if (round->verdict == DP_OK) {
            round->verdict = dp_valid_record(&valid, &round->judged_record, &cause);
        }
        if (round->verdict != DP_OK) {
            dp_node_note(node, DP_NOTE_REJECTED, node->ledger.round + 1, NULL,
                         node->ledger.slot + 1, 0, cause);
        }
    }
    if (round->verdict != DP_OK) {
        return DP_VERDICT_NO;
    }
    if ((!dp_broken(108) && is_ahead(node, round->judged_record.time_ms)) ||
        DP_BUGGIFY_HALF(node, DP_BUG_SLOW_VOTE)) {
        return DP_VERDICT_LATER;
    }
    if (dp_broken(14)) {
        return DP_VERDICT_YES;
    }
    if (dp_broken(15) || dp_broken(47)) {
        (void)node->kind->judge(node, &round->judged_record); /* They are fetched all the same. */
    }
    if (refuses_by_mutation(node, &round->judged_record)) {
        return DP_VERDICT_NO;
    }
    return node->kind->judge(node, &round->judged_record);
}
