/* Runs a program of this package once as a tool (dpnode-worker --prepare, dpnode run create),
 * asynchronously, and reports its result. Loop thread only. */
#ifndef DP_DAEMON_HOST_TOOL_H
#define DP_DAEMON_HOST_TOOL_H

#include "daemon/host/daemon.h"

enum {
    DP_TOOL_ARGUMENTS_MAX = 16,
    DP_TOOL_OUTPUT_MAX = 64 * 1024 /* a text of 2,000 tokens */
};

/* exit: its exit status, -1 if it had none. output: its output, standard error included, cut at
 * DP_TOOL_OUTPUT_MAX, without the line feeds at its end. */
typedef void dp_tool_done(void *context, int exit, const char *output);

/* program: its path. arguments: after the program name, ended by NULL. Both are copied. DP_OK: done
 * will be called, later, also when the program cannot be started. DP_TOOBIG, DP_NOMEM, DP_IO: it
 * will not. */
DP_MUST dp_status dp_tool_run(dp_daemon *daemon, const char *program, const char *const *arguments,
                              dp_tool_done *done, void *context);

/* Makes a new folder in the daemon's directory, and removes it with its plain files. */
DP_MUST dp_status dp_tool_folder(const dp_daemon *daemon, char path[DP_CONFIG_PATH_MAX]);
/* A new file in it. DP_IO, DP_NOSPACE. Any thread. */
DP_MUST dp_status dp_tool_file(const char *folder, const char *name, dp_view bytes);
void dp_tool_folder_remove(const char *path);
/* Removes the folders of an earlier life that did not end cleanly. At the start only, while this
 * process holds the lock of the directory. */
void dp_tool_folders_remove(const char *dir);

/* Writes the output of --prepare as a sentence; another output gives "the text is ready". */
void dp_tool_sentence(const char *output, char *text, size_t size);

#endif
