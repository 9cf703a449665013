#include "cli/doctor/check_state.h"

#include <string.h>

#include "cli/json.h"

static const char *state_of(const json_t *status)
{
    return dp_json_text(status, "state", "");
}

static const char *trainer_of(const json_t *status)
{
    return dp_json_text(json_object_get(status, "run"), "trainer", "");
}

static bool is_in_rounds(const json_t *status)
{
    const char *const state = state_of(status);
    return strcmp(state, "training") == 0 || strcmp(state, "waiting") == 0 ||
           strcmp(state, "gossip") == 0;
}

bool dp_check_state(const json_t *status, dp_check_kind kind)
{
    if (kind == DP_CHECK_LIVE) { /* One that has lost its run waits for its owner. */
        return json_object_get(status, "lost") == NULL;
    }
    return is_in_rounds(status) && strcmp(trainer_of(status), "up") == 0;
}

const char *dp_check_state_text(const json_t *status, dp_check_kind kind)
{
    const char *const trainer = trainer_of(status);
    if (kind == DP_CHECK_LIVE) {
        return dp_json_text(status, "lost", state_of(status));
    }
    if (!is_in_rounds(status)) {
        return state_of(status);
    }
    return strcmp(trainer, "up") == 0         ? state_of(status)
           : strcmp(trainer, "starting") == 0 ? "the trainer starts"
           : strcmp(trainer, "failing") == 0  ? "the trainer fails and is started again"
                                              : "the trainer is down";
}
