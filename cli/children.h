/* Daemons that run for the time of one command: their folder, and the signals that end them too.
 * start.h starts them. */
#ifndef DP_CLI_CHILDREN_H
#define DP_CLI_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/paths.h"

enum { DP_CHILDREN_MAX = 32 };

/* SIGINT, SIGTERM and SIGHUP are remembered from now on, and number is sent to every child. The end
 * of a daemon wakes the callers that wait for its answer, so all calls return. */
void dp_children_watch(int number);
bool dp_children_interrupted(void);
/* Sends number to every child now. */
void dp_children_signal(int number);
/* The variable with a child's process id, for dp_start.pid; 0: no child. */
volatile pid_t *dp_children_pid(unsigned child);

/* Makes a new folder for a command of that name, under TMPDIR or /tmp. False, with the tried folder
 * in path, on failure. */
bool dp_children_folder(const char *name, char path[DP_CLI_PATH_MAX]);
/* "<folder>/<what>3" of child 2. */
void dp_children_path(const char *folder, unsigned child, const char *what,
                      char path[DP_CLI_PATH_MAX]);

#endif
