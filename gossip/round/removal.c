/* Removals in the config part of a record that is being drafted. */
#include "base/assert.h"
#include "gossip/round/config_part.h"

bool dp_config_removes(const dp_config_part *config, const dp_peer *peer)
{
    for (uint32_t i = 0; i < config->n_removes; i++) {
        if (dp_peer_equal(&config->removes[i].peer, peer)) {
            return true;
        }
    }
    return false;
}

void dp_config_add_removal(dp_config_part *config, const dp_remove *remove)
{
    uint32_t at = config->n_removes++;

    dp_assert(at < DP_CONFIG_REMOVE_MAX);
    while (at > 0 && dp_peer_compare(&remove->peer, &config->removes[at - 1].peer) < 0) {
        config->removes[at] = config->removes[at - 1];
        at--;
    }
    config->removes[at] = *remove;
}
