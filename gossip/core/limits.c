#include "gossip/core/limits.h"

const char *dp_mode_name(dp_mode mode)
{
    switch (mode) {
    case DP_MODE_JOINING:
        return "joining";
    case DP_MODE_SYNC:
        return "sync";
    case DP_MODE_GOSSIP:
        return "gossip";
    case DP_MODE_PAUSED:
        return "paused";
    case DP_MODE_HALTED:
        return "halted";
    case DP_MODE_LEFT:
        return "left";
    }
    return "unknown";
}

const char *dp_member_state_name(dp_member_state state)
{
    switch (state) {
    case DP_MEMBER_UNKNOWN:
        return "unknown";
    case DP_MEMBER_ALIVE:
        return "alive";
    case DP_MEMBER_SUSPECT:
        return "suspect";
    case DP_MEMBER_DEAD:
        return "dead";
    case DP_MEMBER_LEFT:
        return "left";
    }
    return "unknown";
}
