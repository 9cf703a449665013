/* The user to whom a daemon's directory belongs: a daemon that root starts in the directory of
 * another user, as a package makes it, runs as that user. */
#ifndef DP_CLI_START_START_OWNER_H
#define DP_CLI_START_START_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/status.h"
#include "cli/paths.h"

typedef struct dp_start_owner {
    bool other; /* this process is root and the directory is another user's; else the rest is 0 */
    uid_t uid;
    gid_t gid; /* the user's, or the directory's for one without a name */
    char home[DP_CLI_PATH_MAX];
} dp_start_owner;

/* Of dir, which need not exist. */
void dp_start_owner_of(const char *dir, dp_start_owner *owner);
/* From here on files are accessed as the owner, so that a link in the owner's directory leads root
 * nowhere. Changes nothing unless owner->other. DP_IO with errno. */
DP_MUST dp_status dp_start_owner_enter(const dp_start_owner *owner);
/* Ends dp_start_owner_enter. */
void dp_start_owner_leave(const dp_start_owner *owner);
/* Makes the folder of the socket if it is missing, for the owner and readers of its group: only
 * root can make one in /run. Nothing unless owner->other. DP_IO with errno. */
DP_MUST dp_status dp_start_owner_socket(const dp_start_owner *owner, const char *socket);
/* Becomes the owner for good, with HOME, before exec. Nothing unless owner->other. DP_IO with
 * errno. */
DP_MUST dp_status dp_start_owner_become(const dp_start_owner *owner);

#endif
