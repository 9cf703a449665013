/* Whether a FORK may stand in a given chain. */
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "gossip/ledger/harm.h"
#include "gossip/ledger/inviting.h"
#include "gossip/ledger/valid.h"
#include "gossip/ledger/valid_inside.h"
#include "gossip/ledger/weights.h"

static bool is_voter_of(const dp_config_part *config, const dp_peer *peer)
{
    for (uint32_t i = 0; i < config->n_voters; i++) {
        if (dp_peer_equal(&config->voters[i].voter.peer, peer)) {
            return true;
        }
    }
    return false;
}

dp_status dp_valid_fork(const dp_valid *valid, const dp_record *record, const char **cause)
{
    const dp_ledger *ledger = valid->ledger;
    const dp_config_part *config = &record->config;

    dp_assert(record->kind == DP_RECORD_FORK);
    if (record->kind != DP_RECORD_FORK || !dp_hash_equal(&record->run, &ledger->run) ||
        !record->has_config || config->n_admits > 0 || config->n_fences > 0 ||
        config->n_voters % 2 == 0 || config->n_voters > ledger->voters_max) {
        return no(cause, "the fork is malformed");
    }
    for (uint32_t i = 0; i < config->n_voters; i++) {
        const dp_voter_entry *entry = &config->voters[i];
        const uint32_t index = dp_ledger_find(ledger, &entry->voter.peer);
        if (entry->kept || index == DP_NOBODY || (ledger->roster[index].caps & DP_CAP_VOTE) == 0) {
            return no(cause, "the fork names a voter that may not vote");
        }
        for (uint32_t k = 0; k < i; k++) {
            if (memcmp(config->voters[k].voter.key, entry->voter.key, DP_PUBLIC_KEY_BYTES) == 0) {
                return no(cause, "two voters have the same vote key");
            }
        }
        if (!dp_voter_ok_verify(valid->crypto, &entry->voter.peer, &ledger->run, &record->prev,
                                entry->voter.key, entry->signature)) {
            *cause = "the signature of a voter of the fork is not valid";
            return DP_BADSIG;
        }
    }
    for (uint32_t i = 0; i < config->n_removes; i++) {
        const dp_remove *remove = &config->removes[i];
        const uint32_t index = dp_ledger_find(ledger, &remove->peer);
        const bool at_head = record->slot == ledger->slot + 1;
        if (remove->reason != DP_REMOVE_REVOKED || index == DP_NOBODY ||
            (at_head && ledger->roster[index].gone != 0) || is_voter_of(config, &remove->peer) ||
            memcmp(remove->by.bytes, ledger->root_key, sizeof remove->by.bytes) != 0) {
            return no(cause, "the fork removes a member that it may not remove");
        }
        if (!dp_remove_verify(remove, valid->crypto, &ledger->run)) {
            *cause = "the signature of a removal is not valid";
            return DP_BADSIG;
        }
    }
    for (uint32_t i = 0; i < config->n_revoked; i++) {
        const dp_invite_revoke *word = &config->revoked[i];
        if (memcmp(word->by.bytes, ledger->root_key, sizeof word->by.bytes) != 0) {
            return no(cause, "the fork revokes an invite without the root key");
        }
        if (!dp_invite_revoke_verify(word, valid->crypto, &ledger->run)) {
            *cause = "the signature of an invite's revocation is not valid";
            return DP_BADSIG;
        }
    }
    if (!dp_fork_verify(valid->crypto, valid->bytes, ledger->root_key)) {
        *cause = "the signature of the fork is not valid";
        return DP_BADSIG;
    }
    return DP_OK;
}
