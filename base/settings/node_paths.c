#include "base/settings/node_paths.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The folder that an XDG variable names; NULL: none, or a relative one, which is to be ignored. */
static const char *folder_of(const char *name)
{
    const char *const value = getenv(name); /* NOLINT(concurrency-mt-unsafe): no other thread */
    return value != NULL && value[0] == '/' ? value : NULL;
}

static const char *home(void)
{
    const char *const value = getenv("HOME"); /* NOLINT(concurrency-mt-unsafe): no other thread */
    return value != NULL ? value : "";
}

void dp_node_path_config(char path[DP_NODE_PATH_MAX])
{
    const char *const folder = folder_of("XDG_CONFIG_HOME");
    path[0] = '\0';
    if (geteuid() != 0 && folder != NULL) {
        snprintf(path, DP_NODE_PATH_MAX, "%s/dpnode/dpnoded.conf", folder);
    } else if (geteuid() != 0) {
        snprintf(path, DP_NODE_PATH_MAX, "%s/.config/dpnode/dpnoded.conf", home());
    }
    if (path[0] == '\0' || access(path, F_OK) != 0) {
        snprintf(path, DP_NODE_PATH_MAX, "/etc/dpnode/dpnoded.conf");
    }
}

void dp_node_path_dir(char path[DP_NODE_PATH_MAX])
{
    const char *const state = folder_of("XDG_STATE_HOME");
    if (geteuid() == 0) {
        snprintf(path, DP_NODE_PATH_MAX, "/var/lib/dpnode");
    } else if (state != NULL) {
        snprintf(path, DP_NODE_PATH_MAX, "%s/dpnode", state);
    } else {
        snprintf(path, DP_NODE_PATH_MAX, "%s/.local/state/dpnode", home());
    }
}

void dp_node_path_socket(char path[DP_NODE_PATH_MAX])
{
    char dir[DP_NODE_PATH_MAX];
    const char *const runtime = folder_of("XDG_RUNTIME_DIR");
    if (geteuid() == 0) {
        snprintf(path, DP_NODE_PATH_MAX, "/run/dpnode/dpnode.sock");
    } else if (runtime != NULL) {
        snprintf(path, DP_NODE_PATH_MAX, "%s/dpnode/dpnode.sock", runtime);
    } else {
        dp_node_path_dir(dir);
        snprintf(path, DP_NODE_PATH_MAX, "%.480s/dpnode.sock", dir);
    }
}
