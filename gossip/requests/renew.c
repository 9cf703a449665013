#include "gossip/requests/renew.h"

#include <string.h>

#include "base/assert.h"
#include "gossip/context/context.h"
#include "gossip/requests/admin_key.h"
#include "gossip/requests/requests.h"

/* May this key renew that member's certificate? */
static bool may_renew(const dp_ledger *ledger, const dp_peer *by, const dp_peer *peer)
{
    const dp_roster_entry *entry = dp_ledger_member(ledger, by);

    return memcmp(by->bytes, ledger->root_key, sizeof by->bytes) == 0 ||
           (entry != NULL && (entry->caps & DP_CAP_INVITE) != 0 && !dp_peer_equal(by, peer)) ||
           dp_broken(208);
}

bool dp_renew_holds(const dp_renewal *renewal, const dp_ledger *ledger, const dp_crypto *crypto,
                    uint64_t now_ms)
{
    return (dp_ledger_member(ledger, &renewal->peer) != NULL || dp_broken(209)) &&
           may_renew(ledger, &renewal->by, &renewal->peer) &&
           dp_renewal_fits(renewal, crypto, &ledger->run, &renewal->peer, now_ms);
}

bool dp_renew_counts(const dp_node *node, const dp_renewal *renewal, const dp_peer *peer,
                     uint64_t now_ms)
{
    const dp_crypto *crypto = &node->config.crypto;

    if (dp_ledger_member(&node->ledger, &node->self) == NULL && node->mode == DP_MODE_JOINING) {
        /* A newcomer knows nobody yet, and believes signed records alone. */
        return dp_renewal_fits(renewal, crypto, &node->run, peer, now_ms);
    }
    return dp_peer_equal(&renewal->peer, peer) &&
           dp_renew_holds(renewal, &node->ledger, crypto, now_ms);
}

uint64_t dp_renew_end(const dp_node *node)
{
    const dp_renewal *renewal = &node->config.renewal;
    const uint64_t until_ms = node->config.certified_until_ms;

    return renewal->until_ms > until_ms && may_renew(&node->ledger, &renewal->by, &node->self)
               ? renewal->until_ms
               : until_ms;
}

static bool is_due(const dp_node *node)
{
    const dp_node_config *config = &node->config;
    const uint64_t third_ms = (config->certified_until_ms - config->certified_from_ms) / 3;
    const uint64_t end_ms = dp_renew_end(node);

    return config->certified_until_ms != 0 &&
           dp_ledger_member(&node->ledger, &node->self) != NULL &&
           (end_ms <= node->wall_ms || end_ms - node->wall_ms < third_ms);
}

static bool make(dp_node *node, const dp_peer *peer, dp_renewal *renewal)
{
    dp_assert(node->config.crypto.sign != NULL);
    *renewal = (dp_renewal){.peer = *peer, .until_ms = node->wall_ms + DP_RENEWAL_MS};
    const int key = dp_admin_key(node, &renewal->by);

    return may_renew(&node->ledger, &renewal->by, peer) &&
           dp_renewal_sign(renewal, &node->config.crypto, key, &node->run);
}

static dp_status take(dp_node *node, const dp_renewal *renewal)
{
    if (!dp_peer_equal(&renewal->peer, &node->self) ||
        !dp_renew_holds(renewal, &node->ledger, &node->config.crypto, node->wall_ms)) {
        return DP_DENIED;
    }
    if (renewal->until_ms > dp_renew_end(node) && dp_out_room(&node->out, 1)) {
        node->config.renewal = *renewal;
        dp_out_add(&node->out, DP_DO_RENEWED)->u.renewal = *renewal;
    }
    return DP_OK;
}

/* A linked member that may invite, another one each time. */
static const dp_peer *choose(dp_node *node)
{
    const dp_rowset *linked = dp_members_linked(node->members);
    const dp_peer *chosen = NULL;
    uint32_t n = 0;

    for (uint32_t k = 0; k < linked->count; k++) {
        const dp_peer *peer = &dp_members_at(node->members, linked->at[k])->peer;
        if (may_renew(&node->ledger, peer, &node->self) && dp_rng_below(&node->rng, ++n) == 0) {
            chosen = peer;
        }
    }
    return chosen;
}

void dp_renew_tick(dp_node *node)
{
    static const uint8_t question[DP_MSG_HEAD_BYTES] = {DP_MSG_RENEW_GET, DP_MSG_VERSION};
    dp_renewal own;

    dp_assert(node->started);
    if (!is_due(node) ||
        (node->requests->renew_asked_at.us != 0 &&
         dp_time_between(node->requests->renew_asked_at, node->now) < DP_RENEW_PAUSE_US)) {
        return;
    }
    node->requests->renew_asked_at = node->now;
    if (make(node, &node->self, &own)) { /* The root key is here. */
        DP_IGNORE(take(node, &own));
        return;
    }
    const dp_peer *peer = choose(node);
    if (peer != NULL) {
        dp_node_send(node, peer, dp_view_of(question, sizeof question));
    }
}

dp_status dp_renew_message(dp_node *node, const dp_peer *from, dp_view bytes)
{
    uint8_t room[DP_MSG_HEAD_BYTES + DP_RENEWAL_BYTES];
    dp_writer writer = dp_writer_of(room, sizeof room);
    dp_renewal renewal;

    if (dp_msg_type_of(bytes) == DP_MSG_RENEWAL) {
        DP_TRY(dp_renewal_msg_read(bytes, &renewal));
        return take(node, &renewal);
    }
    if (bytes.size != DP_MSG_HEAD_BYTES) {
        return DP_BADMSG;
    }
    if (dp_ledger_member(&node->ledger, from) == NULL || dp_node_revoked(node, from) ||
        !make(node, from, &renewal)) {
        return DP_DENIED;
    }
    dp_renewal_msg_write(&writer, &renewal);
    dp_node_send(node, from, dp_view_of(room, writer.size));
    return DP_OK;
}
