/* The invites that this node has made, so that its owner can list and revoke them: a row in the
 * store, without the keys that a join needs. Store thread, or before it starts. */
#ifndef DP_DAEMON_HOST_ISSUED_H
#define DP_DAEMON_HOST_ISSUED_H

#include "gossip/identity/cert.h"
#include "store/db.h"

enum { DP_ISSUED_MAX = 512 };

typedef struct dp_issued {
    dp_invite_id id;
    uint16_t uses; /* 0: any number */
    uint32_t caps;
    uint64_t from_ms;
    uint64_t until_ms;
} dp_issued;

typedef struct dp_issued_list {
    uint32_t n; /* oldest first */
    dp_issued items[DP_ISSUED_MAX];
} dp_issued_list;

/* Empty if the row is missing, or of another run. DP_CORRUPT, DP_VERSION. */
DP_MUST dp_status dp_issued_load(dp_store *store, const dp_run_id *run, dp_issued_list *list);
/* Durable when it returns. A full list drops expired invites; DP_TOOBIG: there are none. *anew: the
 * row was damaged, and the list begins with this invite. DP_VERSION. */
DP_MUST dp_status dp_issued_add(dp_store *store, const dp_run_id *run, const dp_issued *invite,
                                uint64_t now_ms, bool *anew);
DP_MUST dp_status dp_issued_forget(dp_store *store);
/* NULL: this node has not made it. */
const dp_issued *dp_issued_find(const dp_issued_list *list, const dp_invite_id *id);

#endif
