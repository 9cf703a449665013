#include "gossip/ledger/inviting.h"

#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"

static uint32_t find(const dp_ledger *ledger, const dp_invite_id *id)
{
    dp_assert(ledger->n_revoked <= DP_REVOKED_INVITES_MAX);
    for (uint32_t i = 0; i < ledger->n_revoked; i++) {
        if (dp_invite_id_compare(&ledger->revoked[i].id, id) == 0) {
            return i;
        }
    }
    return DP_NOBODY;
}

bool dp_inviting_revoked(const dp_ledger *ledger, const dp_invite_id *id)
{
    return find(ledger, id) != DP_NOBODY && !dp_broken(200);
}

static bool is_revoked(const dp_ledger *ledger, const dp_config_part *config,
                       const dp_invite_id *id)
{
    static const dp_invite_id none;

    if (dp_invite_id_compare(id, &none) == 0) {
        return false;
    }
    for (uint32_t i = 0; config != NULL && i < config->n_revoked && !dp_broken(201); i++) {
        if (dp_invite_id_compare(&config->revoked[i].id, id) == 0) {
            return true;
        }
    }
    return dp_inviting_revoked(ledger, id);
}

static bool is_member(const dp_ledger *ledger, const dp_config_part *config, const dp_peer *peer)
{
    for (uint32_t i = 0; config != NULL && i < config->n_removes && !dp_broken(206); i++) {
        if (dp_peer_equal(&config->removes[i].peer, peer)) {
            return false;
        }
    }
    return dp_ledger_member(ledger, peer) != NULL || dp_broken(205);
}

const char *dp_inviting_struck(const dp_ledger *ledger, const dp_config_part *config,
                               const dp_admitted *admitted)
{
    if (!ledger->judges_invites && (config == NULL || !config->has_revoked)) {
        return NULL;
    }
    if (is_revoked(ledger, config, &admitted->invite) ||
        (is_revoked(ledger, config, &admitted->invite_above) && !dp_broken(202))) {
        return "an invite was revoked";
    }
    for (uint32_t i = 0; i < admitted->n_above; i++) {
        if (!is_member(ledger, config, &admitted->above[i])) {
            return "the node that made the invite is not a member";
        }
    }
    return NULL;
}

bool dp_inviting_may_revoke(const dp_ledger *ledger, const dp_peer *by)
{
    const dp_roster_entry *judge = dp_ledger_member(ledger, by);

    return memcmp(by->bytes, ledger->root_key, sizeof by->bytes) == 0 ||
           (judge != NULL && (judge->caps & DP_CAP_ADMIN) != 0) || dp_broken(204);
}

bool dp_inviting_wants(const dp_ledger *ledger, const dp_invite_revoke *word, uint64_t time_ms)
{
    const uint32_t index = find(ledger, &word->id);

    return word->until_ms > time_ms &&
           (index == DP_NOBODY || ledger->revoked[index].until_ms < word->until_ms);
}

/* Of invites by which no credential can arrive any more. */
static bool is_over(const dp_revoked_invite *revoked, uint64_t time_ms)
{
    const uint64_t until_ms = dp_broken(203) && revoked->until_ms != UINT64_MAX
                                  ? revoked->until_ms - DP_CERT_NODE_MS_MAX
                                  : revoked->until_ms;

    return time_ms > until_ms;
}

uint32_t dp_inviting_room(const dp_ledger *ledger, uint64_t time_ms)
{
    uint32_t left = DP_REVOKED_INVITES_MAX - ledger->n_revoked;

    for (uint32_t i = 0; i < ledger->n_revoked; i++) {
        left += is_over(&ledger->revoked[i], time_ms) ? 1 : 0;
    }
    return left;
}

bool dp_inviting_due(const dp_ledger *ledger)
{
    if (ledger->judges_invites) {
        return false;
    }
    for (uint32_t i = 0; i < ledger->n_roster; i++) {
        if (ledger->roster[i].gone == DP_REMOVE_REVOKED ||
            ledger->roster[i].gone == DP_REMOVE_HARMFUL) {
            return true;
        }
    }
    return false;
}

void dp_inviting_apply(dp_ledger *ledger, const dp_config_part *config, uint64_t time_ms)
{
    uint32_t kept = 0;

    ledger->judges_invites = true;
    for (uint32_t i = 0; i < ledger->n_revoked; i++) {
        if (!is_over(&ledger->revoked[i], time_ms)) {
            ledger->revoked[kept++] = ledger->revoked[i];
        }
    }
    ledger->n_revoked = kept;
    for (uint32_t i = 0; i < config->n_revoked; i++) {
        const dp_invite_revoke *word = &config->revoked[i];
        uint32_t at = find(ledger, &word->id);
        if (at == DP_NOBODY && ledger->n_revoked == DP_REVOKED_INVITES_MAX) {
            continue; /* No valid record has so many. */
        }
        at = at != DP_NOBODY ? at : ledger->n_revoked++;
        ledger->revoked[at] =
            (dp_revoked_invite){.id = word->id, .until_ms = word->until_ms, .slot = ledger->slot};
    }
}

void dp_inviting_digest(const dp_ledger *ledger, dp_digest *digest)
{
    if (!ledger->judges_invites) {
        return; /* So the digest of such a chain is the same as before such lists existed. */
    }
    dp_digest_add_u64(digest, ledger->n_revoked);
    for (uint32_t i = 0; i < ledger->n_revoked; i++) {
        dp_digest_add(digest,
                      dp_view_of(ledger->revoked[i].id.bytes, sizeof ledger->revoked[i].id.bytes));
        dp_digest_add_u64(digest, ledger->revoked[i].until_ms);
    }
}

dp_status dp_inviting_rotation_valid(const dp_ledger *ledger, const dp_crypto *crypto,
                                     const dp_rotation *word, const char **cause)
{
    if (!dp_inviting_may_revoke(ledger, &word->by) && !dp_broken(212)) {
        *cause = "the signer may not rotate the join secret";
        return DP_DENIED;
    }
    if (!dp_rotation_follows(word, &ledger->epoch)) {
        *cause = "the join secret's epoch has passed or is too far ahead";
        return DP_DENIED;
    }
    if (!dp_rotation_verify(word, crypto, &ledger->run)) {
        *cause = "the signature of a new join secret is not valid";
        return DP_BADSIG;
    }
    return DP_OK;
}
