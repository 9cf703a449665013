#include "daemon/owner/rest.h"

#include "base/assert.h"

static const struct {
    const char *word;
    const char *text;
} rows[DP_REST_COUNT] = {
    [DP_REST_IDLE] = {"idle", "this node is in no run"},
    [DP_REST_STARTING] = {"starting", "the daemon reads its store"},
    [DP_REST_JOINING] = {"joining", "the node catches up with the run"},
    [DP_REST_DATA] = {"data", "parts of the data are not on this node yet"},
    [DP_REST_HALTED] = {"halted", "no round can be decided before the root key names new voters"},
    [DP_REST_LEFT] = {"left", "this node is no longer a member of the run"},
    [DP_REST_PAUSE] = {"pause", "its owner has paused it"},
    [DP_REST_LIMITS] = {"limits", "the stored limits cannot be read"},
    [DP_REST_SCHEDULE] = {"schedule", "it is outside of its schedule"},
    [DP_REST_BATTERY] = {"battery", "the machine runs on battery"},
    [DP_REST_USE] = {"use", "somebody uses the machine"},
    [DP_REST_CARD] = {"card", "another program uses its GPU"},
    [DP_REST_QUOTA] = {"quota", "the bandwidth quota of the month is used up"},
    [DP_REST_HEAT] = {"heat", "the machine must cool first"},
    [DP_REST_OBSERVER] = {"observer", "its setting observer says that it never trains"},
    [DP_REST_CRASHES] = {"crashes", "the trainer crashes again and again; it restarts soon"},
    [DP_REST_TRAINER] = {"trainer", "the trainer is not up yet"},
    [DP_REST_SCRIPT] = {"script", "no script is connected, and only a script trains this model"},
    [DP_REST_QUORUM] = {"quorum", "no majority of the voters is reachable, and gradients of one "
                                  "node alone are not applied"},
    [DP_REST_MODEL] = {"model", "the trainer loads the model, or applies rounds first"},
};

const char *dp_rest_word(dp_rest reason)
{
    dp_assert(reason < DP_REST_COUNT);
    return rows[reason].word;
}

const char *dp_rest_text(dp_rest reason)
{
    dp_assert(reason < DP_REST_COUNT);
    return rows[reason].text;
}
