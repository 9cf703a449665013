/* Daemons that run for the time of one command: their folder, and the signals that end them too.
 * start.h starts them. */
#ifndef DP_CLI_CHILDREN_H
#define DP_CLI_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

#include "cli/paths.h"

enum { DP_CHILDREN_MAX = 32 };

/* From now on SIGINT, SIGTERM and SIGHUP are remembered, and number is sent to every child. The end
 * of a daemon wakes the callers that wait for its answer, so all calls return. */
void dp_children_watch(int number);
bool dp_children_interrupted(void);
/* number to every child now. */
void dp_children_signal(int number);
/* Where a child's process id stands, for dp_start.pid; 0: there is none. */
volatile pid_t *dp_children_pid(unsigned child);

/* A fresh folder for a command of that name, under TMPDIR or /tmp. False, with the tried folder in
 * path, if there can be none. */
bool dp_children_folder(const char *name, char path[DP_CLI_PATH_MAX]);
/* "<folder>/<what>3" of child 2. */
void dp_children_path(const char *folder, unsigned child, const char *what,
                      char path[DP_CLI_PATH_MAX]);

#endif
