#include "gossip/identity/replay.h"

#include <string.h>

static bool has(const dp_replay_key *keys, uint32_t n, const uint8_t *ephemeral)
{
    for (uint32_t i = 0; i < n; i++) {
        if (memcmp(keys[i].bytes, ephemeral, DP_REPLAY_KEY_BYTES) == 0) {
            return true;
        }
    }
    return false;
}

static void put(dp_replay_key *keys, uint32_t max, uint32_t *n, uint32_t *next,
                const uint8_t *ephemeral)
{
    memcpy(keys[*next].bytes, ephemeral, DP_REPLAY_KEY_BYTES);
    *next = (*next + 1) % max;
    *n += *n < max ? 1 : 0;
}

bool dp_replay_add(dp_replay_cache *cache, const uint8_t ephemeral[32], bool timely)
{
    if (has(cache->timely, cache->n, ephemeral) || has(cache->stale, cache->n_stale, ephemeral)) {
        return false;
    }
    if (timely) {
        put(cache->timely, DP_REPLAY_MAX, &cache->n, &cache->next, ephemeral);
    } else {
        put(cache->stale, DP_REPLAY_STALE_MAX, &cache->n_stale, &cache->next_stale, ephemeral);
    }
    return true;
}
