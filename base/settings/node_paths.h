/* The standard places of a node's files, for the daemon and for the programs that look for it:
 * system folders for root, XDG folders for others. Looks at no settings. */
#ifndef DP_BASE_SETTINGS_NODE_PATHS_H
#define DP_BASE_SETTINGS_NODE_PATHS_H

enum { DP_NODE_PATH_MAX = 512 };

/* The configuration file: that of the user if it exists, else that of the machine, which may not
 * exist. */
void dp_node_path_config(char path[DP_NODE_PATH_MAX]);
/* The directory of keys and store. */
void dp_node_path_dir(char path[DP_NODE_PATH_MAX]);
/* The control socket. May be longer than a socket's path can be. */
void dp_node_path_socket(char path[DP_NODE_PATH_MAX]);

#endif
