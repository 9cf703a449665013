#include "cli/paths.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *environment(const char *name)
{
    const char *value = getenv(name); /* NOLINT(concurrency-mt-unsafe): one thread */
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static void standard_dir(char path[DP_CLI_PATH_MAX])
{
    const char *state = environment("XDG_STATE_HOME");
    const char *home = environment("HOME");
    if (geteuid() == 0) {
        snprintf(path, DP_CLI_PATH_MAX, "/var/lib/dpnode");
    } else if (state != NULL && state[0] == '/') {
        snprintf(path, DP_CLI_PATH_MAX, "%s/dpnode", state);
    } else {
        snprintf(path, DP_CLI_PATH_MAX, "%s/.local/state/dpnode", home != NULL ? home : "");
    }
}

void dp_path_dir(const char *given, char path[DP_CLI_PATH_MAX])
{
    const char *chosen = given != NULL ? given : environment("DPNODE_DIR");
    if (chosen != NULL) {
        snprintf(path, DP_CLI_PATH_MAX, "%s", chosen);
    } else {
        standard_dir(path);
    }
}

static void own_socket(char path[DP_CLI_PATH_MAX])
{
    char dir[DP_CLI_PATH_MAX];
    const char *runtime = environment("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/') {
        snprintf(path, DP_CLI_PATH_MAX, "%s/dpnode/dpnode.sock", runtime);
    } else {
        standard_dir(dir);
        snprintf(path, DP_CLI_PATH_MAX, "%.480s/dpnode.sock", dir);
    }
}

void dp_path_socket(char path[DP_CLI_PATH_MAX])
{
    const char *chosen = environment("DPNODE_SOCKET");
    if (chosen != NULL) {
        snprintf(path, DP_CLI_PATH_MAX, "%s", chosen);
        return;
    }
    own_socket(path);
    if (geteuid() == 0 ||
        (access(path, F_OK) != 0 && euidaccess(DP_PATH_SYSTEM_SOCKET, R_OK | W_OK) == 0)) {
        snprintf(path, DP_CLI_PATH_MAX, "%s", DP_PATH_SYSTEM_SOCKET);
    }
}

bool dp_path_hides_system(const char *socket)
{
    char own[DP_CLI_PATH_MAX];
    own_socket(own);
    return strcmp(socket, own) == 0 && euidaccess(DP_PATH_SYSTEM_SOCKET, R_OK | W_OK) != 0 &&
           errno == EACCES;
}

void dp_path_program(const char *name, char path[DP_CLI_PATH_MAX])
{
    char self[DP_CLI_PATH_MAX];
    const ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    if (size > 0) {
        self[size] = '\0';
        char *slash = strrchr(self, '/');
        if (slash != NULL) {
            *slash = '\0';
            const int length = snprintf(path, DP_CLI_PATH_MAX, "%s/%s", self, name);
            if (length < DP_CLI_PATH_MAX && access(path, X_OK) == 0) {
                return;
            }
        }
    }
    snprintf(path, DP_CLI_PATH_MAX, "%s", name);
}

dp_status dp_path_absolute(const char *path, char out[DP_CLI_PATH_MAX])
{
    char here[DP_CLI_PATH_MAX];
    int size = 0;
    if (path[0] == '/') {
        size = snprintf(out, DP_CLI_PATH_MAX, "%s", path);
    } else {
        if (getcwd(here, sizeof here) == NULL) {
            return DP_TOOBIG;
        }
        while (path[0] == '.' && path[1] == '/') { /* A user will read it. */
            path += 2 + strspn(path + 2, "/");
        }
        size = snprintf(out, DP_CLI_PATH_MAX, "%s/%s", here, path);
    }
    return size < DP_CLI_PATH_MAX ? DP_OK : DP_TOOBIG;
}

static mode_t user_umask = S_IWGRP | S_IWOTH;

void dp_path_be_private(void)
{
    user_umask = umask(S_IRWXG | S_IRWXO);
}

mode_t dp_path_user_umask(void)
{
    return user_umask;
}

dp_status dp_path_make_folders(const char *path)
{
    char work[DP_CLI_PATH_MAX];
    struct stat info;
    snprintf(work, sizeof work, "%s", path);
    for (char *slash = strchr(work + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        if (mkdir(work, 0700) != 0 && errno != EEXIST) {
            return DP_IO;
        }
        *slash = '/';
    }
    if (mkdir(work, 0700) != 0 && errno != EEXIST) {
        return DP_IO;
    }
    if (stat(work, &info) != 0) {
        return DP_IO;
    }
    if (!S_ISDIR(info.st_mode)) {
        errno = ENOTDIR;
        return DP_IO;
    }
    return DP_OK;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

dp_status dp_path_remove_tree(const char *path)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0 ? DP_OK : DP_IO;
}
