/* Admission: a node becomes a member for being there, before it has done any work. A record admits
 * nodes that have a link to the voter that drafts it, or to a member that has told it so, a
 * credential that holds, and a place in the run; while nobody has finished a round yet a record of
 * its own does, so that nobody waits for the end of a long one. Before the admission of a node,
 * others answer its questions and take its statements about itself and bytes that prove themselves;
 * they ignore all else. */
#include "gossip/round/admit.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/ledger/inviting.h"
#include "gossip/requests/revoke_request.h"
#include "gossip/round/config_part.h"
#include "gossip/round/round.h"

/* Between records that only admit: so many nodes at once, not one by one. */
#define ADMIT_PAUSE_US DP_SECOND

bool dp_admit_members_only(uint8_t type)
{
    switch ((dp_msg_type)type) {
    case DP_MSG_PING:
    case DP_MSG_ACK:
    case DP_MSG_STATEMENT: /* of itself: statement_take.c */
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
    case DP_MSG_INVITE_REVOKE:
    case DP_MSG_ROTATE:
    case DP_MSG_SECRET_GET:
    case DP_MSG_SECRET:
    case DP_MSG_RENEW_GET:
    case DP_MSG_RENEWAL:
    case DP_MSG_FENCE_ASK:
    case DP_MSG_STOP:
    case DP_MSG_PART:
    case DP_MSG_LIST_GET:
    case DP_MSG_INFO:
    case DP_MSG_CHUNK:
    case DP_MSG_CHUNK_DROP:
    case DP_MSG_LIST:
    case DP_MSG_SUBTOTAL:
    case DP_MSG_COLLECT:
    case DP_MSG_GUEST:
    case DP_MSG_HARM:
    case DP_MSG_MIX_OFFER:
    case DP_MSG_MIX_ACK:
    case DP_MSG_MIX_COMMIT:
    case DP_MSG_MIX_DONE:
    case DP_MSG_MIX_STATUS:
    case DP_MSG_MIX_SIGNED:
    case DP_MSG_RELAY:
    case DP_MSG_MANIFEST:
        return !dp_broken(188);
    }
    return false; /* An unknown type is refused as from any peer. */
}

static uint32_t count_of(const dp_admitted *admitted, uint32_t n, const dp_invite_id *invite)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < n; i++) {
        count += memcmp(&admitted[i].invite, invite, sizeof *invite) == 0 ? 1 : 0;
    }
    return count;
}

/* One that could be admitted: linked here, or told of by a member that it is linked to. */
typedef struct waiter {
    const dp_peer *peer;
    dp_view credential;
    const dp_invite_id *invite;
    uint16_t uses;
} waiter;

enum { WAITING_MAX = DP_GUESTS_MAX + DP_TOLD_GUESTS_MAX };

/* Its invite has a use left beside those that the chain and a draft have admitted by it. */
static bool has_use(const dp_node *node, const waiter *who, uint32_t more)
{
    return who->uses == 0 ||
           dp_ledger_uses(&node->ledger, who->invite, who->peer) + more < who->uses;
}

/* Nothing known here stands against it. */
static bool may_come(const dp_node *node, const waiter *who, uint32_t caps)
{
    return (caps & DP_CAP_TRAIN) != 0 && dp_ledger_member(&node->ledger, who->peer) == NULL &&
           !dp_ledger_barred(&node->ledger, who->peer) && has_use(node, who, 0) &&
           !dp_inviting_revoked(&node->ledger, who->invite) &&
           !dp_revoke_requested(node, who->invite);
}

/* Those with a link to this node: how many. */
static uint32_t list_linked(const dp_node *node, waiter waiting[DP_GUESTS_MAX])
{
    const dp_rowset *linked = dp_members_linked(node->members);
    uint32_t n = 0;

    for (uint32_t k = 0; k < linked->count && n < DP_GUESTS_MAX; k++) {
        const dp_member *member = dp_members_at(node->members, linked->at[k]);
        waiting[n] =
            (waiter){.peer = &member->peer,
                     .credential = dp_view_of(member->credential, member->credential_bytes),
                     .invite = &member->invite,
                     .uses = member->uses};
        n += member->state == DP_MEMBER_ALIVE && member->credential_bytes > 0 &&
                     may_come(node, &waiting[n], member->caps)
                 ? 1
                 : 0;
    }
    return n;
}

static bool is_among(const waiter *waiting, uint32_t n, const dp_peer *peer)
{
    dp_assert(n <= WAITING_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (dp_peer_equal(waiting[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

/* And those that others have told of. */
static uint32_t list_waiting(const dp_node *node, waiter waiting[WAITING_MAX])
{
    const dp_told_guests *told = node->round->guests;
    uint32_t n = list_linked(node, waiting);

    for (uint32_t i = 0; i < told->n && !dp_broken(216); i++) {
        const dp_told_guest *guest = &told->items[i];
        waiting[n] = (waiter){.peer = &guest->peer,
                              .credential = dp_view_of(guest->credential, guest->credential_bytes),
                              .invite = &guest->grants.invite,
                              .uses = guest->grants.uses};
        n += !dp_time_reached(node->now, guest->until) && !is_among(waiting, n, &guest->peer) &&
                     may_come(node, &waiting[n], guest->grants.caps)
                 ? 1
                 : 0;
    }
    return n;
}

void dp_admit_tell(dp_node *node)
{
    waiter waiting[DP_GUESTS_MAX];
    uint8_t room[DP_MSG_HEAD_BYTES + 32 + 2 + DP_CREDENTIAL_MAX];
    const uint32_t n = list_linked(node, waiting);

    if (dp_ledger_member(&node->ledger, &node->self) == NULL) {
        return;
    }
    for (uint32_t i = 0; i < n && i < DP_CONFIG_ADMIT_MAX; i++) {
        dp_writer writer = dp_writer_of(room, sizeof room);
        dp_write_u8(&writer, DP_MSG_GUEST);
        dp_write_u8(&writer, DP_MSG_VERSION);
        dp_write_bytes(&writer, waiting[i].peer->bytes, sizeof waiting[i].peer->bytes);
        dp_write_u16(&writer, (uint16_t)waiting[i].credential.size);
        dp_write_view(&writer, waiting[i].credential);
        dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    }
}

/* The one of this peer, one whose time is over, or a new one; NULL: there are too many. */
static dp_told_guest *place_of(dp_node *node, const dp_peer *peer)
{
    dp_told_guests *told = node->round->guests;
    dp_told_guest *place = NULL;

    for (uint32_t i = 0; i < told->n; i++) {
        if (dp_peer_equal(&told->items[i].peer, peer)) {
            return &told->items[i];
        }
        if (dp_time_reached(node->now, told->items[i].until)) {
            place = &told->items[i];
        }
    }
    if (place == NULL && told->n < DP_TOLD_GUESTS_MAX) {
        place = &told->items[told->n++];
        *place = (dp_told_guest){.until = node->now};
    }
    return place;
}

dp_status dp_admit_message(dp_node *node, dp_view bytes)
{
    const dp_admission *admission = &node->config.admission;
    dp_reader reader = dp_reader_of(bytes);
    dp_peer peer;

    DP_IGNORE(dp_read_view(&reader, DP_MSG_HEAD_BYTES).size == 0);
    dp_read_bytes(&reader, peer.bytes, sizeof peer.bytes);
    const uint16_t size = dp_read_u16(&reader);
    const dp_view credential = dp_read_view(&reader, size);
    if (dp_reader_finish(&reader) != DP_OK || size == 0 || size > DP_CREDENTIAL_MAX) {
        return DP_BADMSG;
    }
    if (node->commit->self == DP_NOBODY || dp_ledger_member(&node->ledger, &peer) != NULL) {
        return DP_OK;
    }
    dp_told_guest *place = place_of(node, &peer);
    if (place == NULL) {
        return DP_TOOBIG;
    }
    if (!dp_peer_equal(&place->peer, &peer) || place->credential_bytes != size ||
        memcmp(place->credential, credential.data, size) != 0) {
        dp_admitted grants;
        if (admission->check(admission->context, credential, &node->run, node->ledger.root_key,
                             &peer, 0, &grants) != DP_OK ||
            dp_revoke_request_struck(node, NULL, &grants) != NULL) {
            return DP_DENIED;
        }
        *place = (dp_told_guest){.peer = peer, .grants = grants, .credential_bytes = size};
        memcpy(place->credential, credential.data, size);
    }
    place->until = dp_time_after(node->now, DP_TOLD_GUEST_US);
    return DP_OK;
}

/* Is it above one of these in a credential? Its place cannot be given by the record that admits
 * them (inviting.h). */
static bool is_above(const dp_peer *peer, const dp_admitted *admitted, uint32_t n)
{
    dp_assert(n <= DP_CONFIG_ADMIT_MAX);
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t k = 0; k < admitted[i].n_above; k++) {
            if (dp_peer_equal(&admitted[i].above[k], peer)) {
                return true;
            }
        }
    }
    return false;
}

/* Room for one admission more: in a full run the member that has been away for longest gives its
 * place, unless something of it is here for this record. */
static bool make_place(const dp_node *node, dp_record *draft, const dp_admitted *admitted,
                       const dp_admitted *grants)
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
            dp_round_claim_of(node, &entry->peer) == NULL && !is_above(&entry->peer, grants, 1) &&
            !is_above(&entry->peer, admitted, config->n_admits) &&
            !dp_config_removes(config, &entry->peer)) {
            longest = entry;
        }
    }
    if (longest == NULL || config->n_removes == DP_CONFIG_REMOVE_MAX || dp_broken(131)) {
        return false;
    }
    const dp_remove remove = {.peer = longest->peer, .reason = DP_REMOVE_ABSENT};
    dp_config_add_removal(config, &remove);
    return true;
}

/* In order of peer. */
static void add(dp_config_part *config, dp_admitted *admitted, const waiter *who,
                const dp_admitted *grants)
{
    uint32_t at = config->n_admits++;

    dp_assert(config->n_admits <= DP_CONFIG_ADMIT_MAX);
    while (at > 0 && dp_peer_compare(who->peer, &config->admits[at - 1].peer) < 0) {
        config->admits[at] = config->admits[at - 1];
        admitted[at] = admitted[at - 1];
        at--;
    }
    config->admits[at] = (dp_admit){.peer = *who->peer, .credential = who->credential};
    admitted[at] = *grants;
}

/* Of those that wait, one of the invite that this draft admits the fewest by: many nodes of one
 * invite do not keep those of another waiting. Takes it out of the list. */
static waiter take_next(const dp_admitted *admitted, uint32_t n_admitted, waiter *waiting,
                        uint32_t *n)
{
    uint32_t best = 0;
    uint32_t fewest = UINT32_MAX;

    dp_assert(*n > 0);
    dp_assert(*n > 0);
    for (uint32_t i = 0; i < *n; i++) {
        const uint32_t count = count_of(admitted, n_admitted, waiting[i].invite);
        if (count < fewest) {
            best = i;
            fewest = count;
        }
    }
    const waiter taken = waiting[best];
    (*n)--;
    memmove(&waiting[best], &waiting[best + 1], (*n - best) * sizeof waiting[0]);
    return taken;
}

void dp_admit_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted)
{
    const dp_admission *admission = &node->config.admission;
    dp_config_part *config = &draft->config;
    waiter waiting[WAITING_MAX];
    uint32_t n = list_waiting(node, waiting);

    while (n > 0 && config->n_admits < DP_CONFIG_ADMIT_MAX &&
           dp_ledger_rows_left(&node->ledger) > config->n_admits) {
        const waiter who = take_next(admitted, config->n_admits, waiting, &n);
        dp_admitted grants;
        if (!has_use(node, &who, count_of(admitted, config->n_admits, who.invite)) ||
            admission->check(admission->context, who.credential, &node->run, node->ledger.root_key,
                             who.peer, draft->time_ms, &grants) != DP_OK ||
            dp_revoke_request_struck(node, config, &grants) != NULL) {
            continue;
        }
        if (!make_place(node, draft, admitted, &grants)) {
            continue; /* Somebody else may find one. */
        }
        add(config, admitted, &who, &grants);
        draft->has_config = true;
    }
}

bool dp_admit_may_stand_alone(const dp_node *node)
{
    const dp_round *round = node->round;
    waiter waiting[WAITING_MAX];

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
