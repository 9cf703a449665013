#include "cli/start/start_owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOCKET_FOLDER_MODE = 0750 };

void dp_start_owner_of(const char *dir, dp_start_owner *owner)
{
    struct stat info;
    *owner = (dp_start_owner){.other = false};
    if (geteuid() != 0 || stat(dir, &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid == 0) {
        return;
    }
    const struct passwd *user = getpwuid(info.st_uid); /* NOLINT(concurrency-mt-unsafe) */
    owner->other = true;
    owner->uid = info.st_uid;
    owner->gid = user != NULL ? user->pw_gid : info.st_gid;
    snprintf(owner->home, sizeof owner->home, "%s", user != NULL ? user->pw_dir : dir);
}

dp_status dp_start_owner_enter(const dp_start_owner *owner)
{
    if (!owner->other) {
        return DP_OK;
    }
    if (setegid(owner->gid) != 0) {
        return DP_IO;
    }
    if (seteuid(owner->uid) != 0) {
        const int cause = errno;
        DP_IGNORE(setegid(getgid()) != 0); /* The caller gives up. */
        errno = cause;
        return DP_IO;
    }
    return DP_OK;
}

void dp_start_owner_leave(const dp_start_owner *owner)
{
    if (owner->other) {
        const int cause = errno;
        /* Root's real user may always return; what fails later says that it may not. */
        DP_IGNORE(seteuid(getuid()) != 0 || setegid(getgid()) != 0);
        errno = cause;
    }
}

dp_status dp_start_owner_socket(const dp_start_owner *owner, const char *socket)
{
    char folder[DP_CLI_PATH_MAX];
    snprintf(folder, sizeof folder, "%s", socket);
    char *const slash = strrchr(folder, '/');
    if (!owner->other || slash == NULL || slash == folder) {
        return DP_OK;
    }
    *slash = '\0';
    if (mkdir(folder, 0700) != 0) {
        return errno == EEXIST ? DP_OK : DP_IO;
    }
    const bool given =
        chmod(folder, SOCKET_FOLDER_MODE) == 0 && lchown(folder, owner->uid, owner->gid) == 0;
    return given ? DP_OK : DP_IO;
}

dp_status dp_start_owner_become(const dp_start_owner *owner)
{
    if (!owner->other) {
        return DP_OK;
    }
    const bool done = setgroups(1, &owner->gid) == 0 && setgid(owner->gid) == 0 &&
                      setuid(owner->uid) == 0 &&
                      setenv("HOME", owner->home, 1) == 0 && /* NOLINT(concurrency-mt-unsafe) */
                      unsetenv("XDG_CONFIG_HOME") == 0;      /* NOLINT(concurrency-mt-unsafe) */
    return done ? DP_OK : DP_IO;
}
