/* Looks at the use of the machine (machine_use.h) every few seconds, and where it is wanted at its
 * cards (card_use.h) several times a second, on a thread of its own: a driver that hangs holds that
 * thread, and neither the daemon nor its end. */
#ifndef DP_DAEMON_OWNER_MACHINE_WATCH_H
#define DP_DAEMON_OWNER_MACHINE_WATCH_H

#include "base/status.h"
#include "daemon/owner/card_use.h"
#include "daemon/owner/machine_use.h"

enum {
    DP_MACHINE_WATCH_MS = 5000,
    DP_MACHINE_WATCH_CARDS_MS = 200, /* between looks at cards */
    DP_MACHINE_WATCH_LATE_MS = 30000 /* a look that takes longer hangs */
};

typedef struct dp_machine_watch dp_machine_watch;

/* root: copied, as dp_machine_use_look has it; every_ms: between looks. DP_AGAIN: no thread;
 * DP_NOMEM. */
DP_MUST dp_status dp_machine_watch_open(dp_machine_watch **watch, const char *root, uint32_t self,
                                        uint64_t every_ms);
/* Returns within a second, also if the thread hangs; that one frees the rest when it returns.
 * Accepts NULL. */
void dp_machine_watch_close(dp_machine_watch *watch);
/* The work of this process, and of its descendants, is the node's own from the next look on; 0: of
 * none but self. Accepts NULL. */
void dp_machine_watch_script(dp_machine_watch *watch, uint32_t pid);
/* From the next look on, are the cards looked at? Accepts NULL. */
void dp_machine_watch_cards(dp_machine_watch *watch, bool wanted);
/* The last look at the cards, of which library is not to be touched. False: as see, or they are not
 * looked at. */
bool dp_machine_watch_see_cards(dp_machine_watch *watch, uint64_t late_ms, dp_card_use *cards);
/* The last look. False: none has ended yet, or the present one takes longer than late_ms, or NULL;
 * *hangs says which. Any thread. */
bool dp_machine_watch_see(dp_machine_watch *watch, uint64_t late_ms, dp_machine_use *use,
                          bool *hangs);

#endif
