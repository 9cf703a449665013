#include "cli/paths.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/settings/node_paths.h"
#include "base/settings/setting_lines.h"

_Static_assert((int)DP_CLI_PATH_MAX == (int)DP_NODE_PATH_MAX, "a standard place fits");

static const char *environment(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): one thread */
}

/* The value of a setting in the configuration file that dpnoded would read; "": it has none. Reads
 * up to the first mistake, because of which dpnoded does not start. */
static void read_setting(const char *name, char value[DP_CLI_PATH_MAX])
{
    static char bytes[DP_SETTING_FILE_MAX + 1];
    char path[DP_CLI_PATH_MAX];
    size_t size = 0;
    const char *const given = environment("DPNODE_CONFIG");
    value[0] = '\0';
    dp_node_path_config(path);
    if (dp_setting_file_load(given != NULL ? given : path, bytes, &size, NULL) != DP_OK) {
        return;
    }
    dp_setting_lines lines = {.next = bytes, .end = bytes + size};
    while (dp_setting_lines_next(&lines)) {
        if (lines.name_size == strlen(name) && memcmp(lines.name, name, lines.name_size) == 0 &&
            lines.value_size < DP_CLI_PATH_MAX) {
            snprintf(value, DP_CLI_PATH_MAX, "%.*s", (int)lines.value_size, lines.value);
            return;
        }
    }
}

bool dp_path_dir(const char *given, char path[DP_CLI_PATH_MAX])
{
    const char *const variable = environment("DPNODE_DIR");
    const char *const chosen = given != NULL ? given : variable;
    if (chosen != NULL && chosen[0] != '\0') {
        snprintf(path, DP_CLI_PATH_MAX, "%s", chosen);
        return false;
    }
    read_setting("dir", path);
    if (path[0] == '\0') {
        dp_node_path_dir(path);
    }
    return variable == NULL;
}

bool dp_path_socket(char path[DP_CLI_PATH_MAX])
{
    const char *const chosen = environment("DPNODE_SOCKET");
    if (chosen != NULL && chosen[0] != '\0') {
        snprintf(path, DP_CLI_PATH_MAX, "%s", chosen);
        return false;
    }
    read_setting("socket", path);
    if (path[0] != '\0') {
        return chosen == NULL;
    }
    dp_node_path_socket(path);
    if (access(path, F_OK) != 0 && euidaccess(DP_PATH_SYSTEM_SOCKET, R_OK | W_OK) == 0) {
        snprintf(path, DP_CLI_PATH_MAX, "%s", DP_PATH_SYSTEM_SOCKET);
        return geteuid() == 0;
    }
    return chosen == NULL;
}

bool dp_path_hides_system(const char *socket)
{
    char own[DP_CLI_PATH_MAX];
    dp_node_path_socket(own);
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
