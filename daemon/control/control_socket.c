/* Creates the control socket: its folder, its modes, and the removal of the socket of a dead
 * daemon. */
#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/list.h"
#include "daemon/control/control.h"
#include "daemon/control/control_socket.h"
#include "daemon/control/reply.h"
#include "daemon/net/listener.h"

struct sockaddr_un dp_control_address_of(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    return address;
}

bool dp_control_somebody_answers(const char *path)
{
    const struct sockaddr_un address = dp_control_address_of(path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    /* EAGAIN: a daemon listens, but is too busy to accept. */
    const bool answers =
        connect(fd, (const struct sockaddr *)&address, sizeof address) == 0 || errno == EAGAIN;
    close(fd);
    return answers;
}

/* A killed daemon left it. Any other file stays, and bind fails. */
void dp_control_remove_stale(const char *path)
{
    struct stat about;
    if (lstat(path, &about) == 0 && S_ISSOCK(about.st_mode)) {
        DP_IGNORE(unlink(path) != 0);
    }
}

/* Of the socket at path; "" for one in the working directory or the root. */
static void folder_of(const char *path, char folder[DP_CONTROL_PATH_MAX + 1])
{
    snprintf(folder, DP_CONTROL_PATH_MAX + 1, "%s", path);
    char *const slash = strrchr(folder, '/');
    *(slash != NULL ? slash : folder) = '\0';
}

void dp_control_make_folder(const char *path)
{
    char folder[DP_CONTROL_PATH_MAX + 1];
    folder_of(path, folder);
    if (folder[0] != '\0') {
        DP_IGNORE(mkdir(folder, 0700) != 0); /* It may exist; if it cannot be made, bind fails. */
    }
}

/* A group may connect and query if the owner of the daemon has opened the socket's folder to it. */
mode_t dp_control_mode_of_socket(const char *path)
{
    char folder[DP_CONTROL_PATH_MAX + 1];
    struct stat of_folder;
    struct stat of_socket;
    folder_of(path, folder);
    const bool opened = stat(folder, &of_folder) == 0 && lstat(path, &of_socket) == 0 &&
                        of_folder.st_uid == geteuid() && of_folder.st_gid == of_socket.st_gid &&
                        (of_folder.st_mode & S_IXGRP) != 0;
    return opened ? S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP : S_IRUSR | S_IWUSR;
}
