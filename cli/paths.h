/* The paths of the daemon's files and of programs, and folders as they are made and removed. */
#ifndef DP_CLI_PATHS_H
#define DP_CLI_PATHS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/status.h"

enum { DP_CLI_PATH_MAX = 512 };

/* Root's socket, which is that of the machine's daemon. */
#define DP_PATH_SYSTEM_SOCKET "/run/dpnode/dpnode.sock"

/* The daemon's directory: given (may be NULL), else DPNODE_DIR, else that of the configuration
 * file, else the standard. True if it comes from the last two, where dpnoded finds it too. */
bool dp_path_dir(const char *given, char path[DP_CLI_PATH_MAX]);
/* The daemon's socket in DPNODE_SOCKET or in the configuration file, else the standard one: a user
 * without a daemon gets that of the machine, if it may be opened. May be longer than a socket's
 * path can be. True if dpnoded, when it is started, finds the same one in its settings. */
bool dp_path_socket(char path[DP_CLI_PATH_MAX]);
/* Is this the socket of this user's own daemon, on a machine with a daemon that the user may not
 * ask? */
bool dp_path_hides_system(const char *socket);
/* A program beside this one, or, if there is none, its bare name, so that PATH decides. */
void dp_path_program(const char *name, char path[DP_CLI_PATH_MAX]);
/* Makes path absolute from the working directory. DP_TOOBIG. */
DP_MUST dp_status dp_path_absolute(const char *path, char out[DP_CLI_PATH_MAX]);
/* Only this user may read files that this process makes from now on. Call first in main. */
void dp_path_be_private(void);
/* The umask before that: for files that the user names, as exports and shards. */
mode_t dp_path_user_umask(void);
/* Makes the folder and its parents. DP_IO with errno. */
DP_MUST dp_status dp_path_make_folders(const char *path);
/* Removes a folder and its contents. Follows no links. */
DP_MUST dp_status dp_path_remove_tree(const char *path);

#endif
