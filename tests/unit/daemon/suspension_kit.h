/* A mock of daemon/peer/suspension.h, as the control socket calls it. Used with call_kit.h. */
#ifndef DP_TESTS_UNIT_DAEMON_SUSPENSION_KIT_H
#define DP_TESTS_UNIT_DAEMON_SUSPENSION_KIT_H

#include "daemon/peer/suspension.h"
#include "tests/unit/daemon/call_kit.h"

static struct {
    dp_pause owner;   /* as the daemon knows it */
    dp_status pauses; /* of the order itself ... */
    dp_status kept;   /* ... and of its row */
    const char *word; /* of a cause besides the owner's pause; NULL: there is none */
    const char *text;
    uint32_t n_acts;
    uint32_t n_pauses;
    dp_pause pause; /* the last */
} suspension_kit;

dp_pause dp_suspension_owner(const dp_suspension *suspension)
{
    return suspension != NULL ? suspension_kit.owner : (dp_pause){.holds = false};
}

dp_status dp_suspension_pause(dp_suspension *suspension, const dp_pause *pause,
                              dp_store_thread_kept *done, void *context)
{
    if (suspension == NULL) {
        return DP_CLOSED;
    }
    suspension_kit.n_pauses++;
    suspension_kit.pause = *pause;
    suspension_kit.owner = *pause;
    if (suspension_kit.pauses == DP_OK && done != NULL) {
        done(context, suspension_kit.kept);
    }
    return suspension_kit.pauses;
}

bool dp_suspension_cause(const dp_suspension *suspension, unsigned index, const char **word,
                         char text[DP_SUSPENSION_TEXT_MAX])
{
    if (suspension == NULL || index > 0 || suspension_kit.word == NULL) {
        return false;
    }
    *word = suspension_kit.word;
    snprintf(text, DP_SUSPENSION_TEXT_MAX, "%s", suspension_kit.text);
    return true;
}

bool dp_suspension_note(const dp_suspension *suspension, const char *setting,
                        char text[DP_SUSPENSION_TEXT_MAX])
{
    snprintf(text, DP_SUSPENSION_TEXT_MAX, "open");
    return suspension != NULL && strcmp(setting, "schedule") == 0;
}

void dp_suspension_act(dp_suspension *suspension)
{
    (void)suspension;
    suspension_kit.n_acts++;
}

/* After call_open. */
static inline void suspension_open(void)
{
    memset(&suspension_kit, 0, sizeof suspension_kit);
    desk.daemon.suspension = (dp_suspension *)(void *)&suspension_kit;
}

#endif
