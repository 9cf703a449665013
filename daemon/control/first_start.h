/* The first start of a node that an orchestrator owns: it joins a run by a token, or creates one
 * from a manifest, without a command, and tries again until it is in a run. Loop thread only.
 *
 *   DPNODE_TOKEN, or the file of token-file   joins by that token
 *   create-from, and no token                 creates the run, by dpnode run create
 *   create-from and token-file                keeps an invite of the created run in that file
 */
#ifndef DP_DAEMON_CONTROL_FIRST_START_H
#define DP_DAEMON_CONTROL_FIRST_START_H

#include "daemon/control/control_msg.h"
#include "daemon/host/daemon.h"

enum {
    DP_FIRST_START_LOOK_MS = 500, /* interval of checks for the file, and for the end of a try */
    DP_FIRST_START_AGAIN_MS_MAX =
        60000, /* longest wait between tries that failed; each try doubles the wait */
    DP_FIRST_START_INVITE_DAYS =
        7 /* of the invite in the file, replaced after half of them, or when it is
                                      revoked */
};

/* Does nothing if none of the settings is given. A node in a run never joins or creates another
 * one: a token of another run is only reported. A token that the owner's order to leave has ended
 * is not used again, after a restart neither (dp_first_start_left). A directory with a root key has
 * created a run already: create-from does not create a second one there. */
DP_MUST dp_status dp_first_start_open(dp_first_start **start, dp_daemon *daemon);
/* Accepts NULL. Memory is freed in later turns of the loop. */
void dp_first_start_close(dp_first_start *start);

/* The outcome of dp_run_join_unasked, perhaps before that returns. Accept NULL. */
void dp_first_start_joined(dp_first_start *start);
void dp_first_start_failed(dp_first_start *start, const dp_control_error *error);
/* The owner has told this node to leave its run, or not to try to enter one: the token that is
 * there now is not used again until the node has entered a run by a command; another one is. Keeps
 * its hash in the file token.left of the directory, since the order outlives the daemon. False:
 * there is no token, or it was left before. Accepts NULL. */
bool dp_first_start_left(dp_first_start *start);

/* An invite of the run was revoked here. If the file has that one, it is replaced now. Accepts
 * NULL. */
void dp_first_start_revoked(dp_first_start *start);

/* The reason why the last try failed, why the node waits, or why the token is not used; NULL: none.
 * Borrowed until the next turn of the loop. Accepts NULL. */
const dp_control_error *dp_first_start_problem(const dp_first_start *start);
/* The node, which is in no run, makes its first try to enter one, or is about to. Accepts NULL. */
bool dp_first_start_tries(const dp_first_start *start);

#endif
