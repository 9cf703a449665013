/* Decides whether this node trains: not while its owner has paused it, outside of the hours of the
 * setting schedule, on battery or while the machine is used where the settings say so, while the
 * bandwidth quota of the month is used up, nor while another program uses its GPU (then its
 * trainer's process ends, too, unless a script is connected to it), nor while its trainer must
 * cool first. A suspended node is paused for the node's state machine (DP_COMMAND_PAUSE): it stays
 * a member, votes and serves, its peers hear of it at once and wait for no update of it. The
 * owner's pause (pause.h) is kept in the store's row "pause".
 *
 * At the end of its hours the node first waits until the round under way has counted its work, for
 * drain-time at the longest. Sensors that cannot be read, or hang, suspend nothing; the log names
 * them (E0134).
 *
 * Time: a pause until an hour goes by the wall clock; a pause of a length counts the time that
 * passes, also while the machine sleeps, whatever the clock is set to meanwhile. Loop thread
 * only. */
#ifndef DP_DAEMON_PEER_SUSPENSION_H
#define DP_DAEMON_PEER_SUSPENSION_H

#include "daemon/host/store_thread.h"
#include "daemon/owner/pause.h"

typedef struct dp_daemon dp_daemon;
typedef struct dp_suspension dp_suspension;

typedef struct dp_suspension_clocks {
    uint64_t (*wall_ms)(void);   /* unix */
    uint64_t (*steady_ms)(void); /* never set; runs on while the machine sleeps */
} dp_suspension_clocks;

/* Reads the row of daemon->store, before the store thread has it; the log reports a row that cannot
 * be read, and the node is paused. clocks: copied; NULL: those of the system. */
DP_MUST dp_status dp_suspension_open(dp_suspension **suspension, dp_daemon *daemon,
                                     const dp_suspension_clocks *clocks);
void dp_suspension_close(dp_suspension *suspension); /* Accepts NULL. */

/* Sets the owner's pause; an inactive one resumes, unless something else suspends the node. Takes
 * effect at once, and is durable when done is called with DP_OK, as dp_store_thread_put says. One
 * that waits (pause->waits) begins at once if no round is open. DP_CLOSED for NULL. */
DP_MUST dp_status dp_suspension_pause(dp_suspension *suspension, const dp_pause *pause,
                                      dp_store_thread_kept *done, void *context);
/* Looks again at everything that may suspend the node, and tells the node. Each second by itself;
 * by others when they know of a change. Accepts NULL. */
void dp_suspension_act(dp_suspension *suspension);

enum { DP_SUSPENSION_TEXT_MAX = 256 };
/* The causes other than the owner's pause, from index 0 on: word is that of DP_REST_LIMITS to
 * DP_REST_HEAT (daemon/owner/rest.h), text a sentence without full stop. False: there are no more,
 * or NULL. */
bool dp_suspension_cause(const dp_suspension *suspension, unsigned index, const char **word,
                         char text[DP_SUSPENSION_TEXT_MAX]);
/* The present state of the settings schedule, not-on-battery, idle-only and yield-card, as "closed
 * until Mon 22:00". False: nothing is known about this one, it is not set, or NULL. */
bool dp_suspension_note(const dp_suspension *suspension, const char *setting,
                        char text[DP_SUSPENSION_TEXT_MAX]);
/* The owner's pause; an inactive one for NULL. */
dp_pause dp_suspension_owner(const dp_suspension *suspension);

#endif
