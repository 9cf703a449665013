/* Judges the daemon's reply to status: for `dpnode status --check` and the pages of dpnode-web. */
#ifndef DP_CLI_DOCTOR_CHECK_STATE_H
#define DP_CLI_DOCTOR_CHECK_STATE_H

#include <jansson.h>
#include <stdbool.h>

typedef enum dp_check_kind {
    DP_CHECK_LIVE, /* it answers and has its run, if it ever had one */
    DP_CHECK_READY /* it trains */
} dp_check_kind;

bool dp_check_state(const json_t *status, dp_check_kind kind);
/* The state in a few words, for whoever reads why the check fails. Borrowed from status. */
const char *dp_check_state_text(const json_t *status, dp_check_kind kind);

#endif
