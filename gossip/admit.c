/* Admission: a node becomes a member for being there, before it has done any work. A record admits nodes that have a link to the voter that
 * drafts it, a credential that holds, and a place in the run; while nobody has finished a round yet a record of its own does, so that
 * nobody waits for the end of a long one. What a node sends before is not listened to, but for questions. */
#include "gossip/admit.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/node_internal.h"

/* Between records that only admit: so many nodes at once, not one by one. */
#define ADMIT_PAUSE_US DP_SECOND

bool dp_admit_members_only(uint8_t type)
{
    switch ((dp_msg_type)type) {
    case DP_MSG_PING:
    case DP_MSG_ACK:
    case DP_MSG_STATEMENT: /* of itself: accuse.c */
    case DP_MSG_SYNC:
    case DP_MSG_DECIDE: /* proves itself, */
    case DP_MSG_RECORDS:
    case DP_MSG_FORK:
    case DP_MSG_RECORDS_GET: /* asks */
    case DP_MSG_INFO_GET:
    case DP_MSG_CHUNK_GET:
    case DP_MSG_MANIFEST_GET:
        break;
    case DP_MSG_HEARTBEAT:
    case DP_MSG_PING_REQ:
    case DP_MSG_SUMMARY:
    case DP_MSG_READY:
    case DP_MSG_HAVE:
    case DP_MSG_PREPARE:
    case DP_MSG_PROMISE:
    case DP_MSG_PROPOSE:
    case DP_MSG_ACCEPTED:
    case DP_MSG_NACK:
    case DP_MSG_STATE:
    case DP_MSG_VOTER_OK:
    case DP_MSG_PROOF:
    case DP_MSG_REMOVE:
    case DP_MSG_FENCE_ASK:
    case DP_MSG_STOP:
    case DP_MSG_PART:
    case DP_MSG_EARLY:
    case DP_MSG_LIST_GET:
    case DP_MSG_INFO:
    case DP_MSG_CHUNK:
    case DP_MSG_CHUNK_DROP:
    case DP_MSG_LIST:
    case DP_MSG_SUBTOTAL:
    case DP_MSG_COLLECT:
    case DP_MSG_MIX_OFFER:
    case DP_MSG_MIX_ACK:
    case DP_MSG_MIX_COMMIT:
    case DP_MSG_MIX_DONE:
    case DP_MSG_MIX_STATUS:
    case DP_MSG_MIX_SIGNED:
    case DP_MSG_RELAY:
    case DP_MSG_MANIFEST:
    case DP_MSG_DENSE:
        return DP_MUTATION != 188;
    }
    return false; /* What nobody knows is refused as from anybody. */
}

static uint32_t count_of(const dp_admitted *admitted, uint32_t n, const dp_invite_id *invite)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        count += memcmp(&admitted[i].invite, invite, sizeof *invite) == 0 ? 1 : 0;
    }
    return count;
}

/* Its invite has a use left beside those that the chain and this draft have admitted by it. */
static bool has_use(const dp_node *node, const dp_member *member, uint32_t more)
{
    return member->uses == 0 ||
           dp_ledger_uses(&node->ledger, &member->invite, &member->peer) + more < member->uses;
}

/* Linked, not of the chain, and nothing known here stands against it. */
static bool waits(const dp_node *node, uint32_t index)
{
    const dp_member *member = dp_members_at(node->members, index);

    return member->linked && member->state == DP_MEMBER_ALIVE && member->credential_bytes > 0 &&
           (member->caps & DP_CAP_TRAIN) != 0 &&
           dp_ledger_member(&node->ledger, &member->peer) == NULL &&
           !dp_ledger_barred(&node->ledger, &member->peer) && has_use(node, member, 0);
}

/* Those that wait: how many, and their indexes. */
static uint32_t list_waiting(const dp_node *node, uint32_t waiting[DP_GUESTS_MAX])
{
    const dp_rowset *linked = dp_members_linked(node->members);
    uint32_t n = 0;

    for (uint32_t k = 0; k < linked->count && n < DP_GUESTS_MAX; k++) {
        if (waits(node, linked->at[k])) {
            waiting[n++] = linked->at[k];
        }
    }
    return n;
}

/* Room for one admission more: in a full run the member that has been away for longest gives its place, unless something of
 * it is here for this record. */
static bool make_place(const dp_node *node, dp_record *draft)
{
    const dp_ledger *ledger = &node->ledger;
    dp_config_part *config = &draft->config;
    const dp_roster_entry *longest = NULL;

    if (dp_ledger_has_place(ledger, config->n_admits + 1, config->n_removes)) {
        return true;
    }
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        const dp_roster_entry *entry = &ledger->roster[i];
        if (dp_ledger_is_absent(ledger, entry, draft->time_ms) &&
            (longest == NULL || entry->counted_ms < longest->counted_ms) &&
            dp_round_claim_of(node, &entry->peer) == NULL &&
            !dp_config_removes(config, &entry->peer)) {
            longest = entry;
        }
    }
    if (longest == NULL || config->n_removes == DP_CONFIG_REMOVE_MAX || DP_MUTATION == 131) {
        return false;
    }
    const dp_remove remove = {.peer = longest->peer, .reason = DP_REMOVE_ABSENT};
    dp_config_add_removal(config, &remove);
    return true;
}

/* In order of peer. */
static void add(dp_config_part *config, dp_admitted *admitted, const dp_member *member,
                const dp_admitted *grants)
{
    uint32_t at = config->n_admits++;

    while (at > 0 && dp_peer_compare(&member->peer, &config->admits[at - 1].peer) < 0) {
        config->admits[at] = config->admits[at - 1];
        admitted[at] = admitted[at - 1];
        at--;
    }
    config->admits[at] =
        (dp_admit){.peer = member->peer,
                   .credential = dp_view_of(member->credential, member->credential_bytes)};
    admitted[at] = *grants;
}

/* Of those that wait, one of the invite that this draft admits the fewest by: many nodes of one invite do not keep those of
 * another waiting. Takes it out of the list. */
static uint32_t take_next(const dp_node *node, const dp_admitted *admitted, uint32_t n_admitted,
                          uint32_t *waiting, uint32_t *n)
{
    uint32_t best = 0;
    uint32_t fewest = UINT32_MAX;

    dp_assert(*n > 0);
    for (uint32_t i = 0; i < *n; i++) {
        const uint32_t count =
            count_of(admitted, n_admitted, &dp_members_at(node->members, waiting[i])->invite);
        if (count < fewest) {
            best = i;
            fewest = count;
        }
    }
    const uint32_t taken = waiting[best];
    (*n)--;
    memmove(&waiting[best], &waiting[best + 1], (*n - best) * sizeof waiting[0]);
    return taken;
}

void dp_admit_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted)
{
    const dp_admission *admission = &node->config.admission;
    dp_config_part *config = &draft->config;
    uint32_t waiting[DP_GUESTS_MAX];
    uint32_t n = list_waiting(node, waiting);

    while (n > 0 && config->n_admits < DP_CONFIG_ADMIT_MAX &&
           dp_ledger_rows_left(&node->ledger) > config->n_admits) {
        const dp_member *member =
            dp_members_at(node->members, take_next(node, admitted, config->n_admits, waiting, &n));
        dp_admitted grants;
        if (!has_use(node, member, count_of(admitted, config->n_admits, &member->invite)) ||
            admission->check(admission->context,
                             dp_view_of(member->credential, member->credential_bytes), &node->run,
                             node->ledger.root_key, &member->peer, draft->time_ms,
                             &grants) != DP_OK) {
            continue;
        }
        if (!make_place(node, draft)) {
            break;
        }
        add(config, admitted, member, &grants);
        draft->has_config = true;
    }
}

bool dp_admit_may_stand_alone(const dp_node *node)
{
    const dp_round *round = node->round;
    uint32_t waiting[DP_GUESTS_MAX];

    if (dp_time_between(round->slot_opened, node->now) < ADMIT_PAUSE_US ||
        list_waiting(node, waiting) == 0) {
        return false;
    }
    for (uint32_t i = 0; i < round->n_claims; i++) {
        if (!round->claims[i].evidence && dp_round_claim_age(node, &round->claims[i]) == 0) {
            return false; /* The round is about to end, and its record admits as well. */
        }
    }
    return true;
}
