/* Whole files in and out, for the worker's tools. Nothing here is durable or atomic: store/ does
 * that. */
#ifndef DP_COMPUTE_MACHINE_FILES_H
#define DP_COMPUTE_MACHINE_FILES_H

#include <stdbool.h>

#include "base/bytes.h"

/* Append the file to out, whose max bounds it. DP_IO, DP_NOTFOUND, DP_TOOBIG, DP_NOMEM, with a
 * sentence. */
DP_MUST dp_status dp_file_read(const char *path, dp_buf *out, dp_why *why);
/* The same of what is open already, from where it stands to its end: a pipe too. name: for
 * sentences. */
DP_MUST dp_status dp_file_read_fd(int fd, const char *name, dp_buf *out, dp_why *why);
/* Open for reading; the caller closes *fd. DP_IO (also of a pipe, for which one might wait for
 * ever), DP_NOTFOUND, with a sentence. */
DP_MUST dp_status dp_file_open(const char *path, int *fd, dp_why *why);
/* The same for who reads once, from begin to end: a pipe too, and one with a name waits for its
 * writer. */
DP_MUST dp_status dp_file_open_once(const char *path, int *fd, dp_why *why);
/* False for everything else, also for what is not there. */
bool dp_file_is_pipe(const char *path);
/* folder/name, mapped for reading until dp_file_unmap; empty files give no bytes. Who shortens the
 * file meanwhile ends this process with SIGBUS: for tools alone. DP_IO, DP_NOTFOUND, DP_NOMEM,
 * DP_BADARG (path too long), with a sentence. */
DP_MUST dp_status dp_file_map(const char *folder, const char *name, dp_view *bytes, dp_why *why);
DP_MUST dp_status dp_file_map_path(const char *path, dp_view *bytes, dp_why *why); /* the same */
void dp_file_unmap(dp_view bytes);
/* Create or replace folder/name. DP_IO, DP_NOSPACE, DP_BADARG (path too long). */
DP_MUST dp_status dp_file_write(const char *folder, const char *name, dp_view bytes, dp_why *why);
/* The same, so that a reader, and whoever comes after a crash or a power cut, finds the old bytes
 * or the new. */
DP_MUST dp_status dp_file_replace(const char *folder, const char *name, dp_view bytes, dp_why *why);
/* False for everything else, also for what is not there. */
bool dp_folder_is(const char *path);
/* The paths of the plain files in a folder, sorted by bytes; names that begin with a dot are left
 * out. */
typedef struct dp_file_list {
    char **paths; /* owned */
    size_t count;
    uint64_t bytes; /* of all */
} dp_file_list;

/* DP_TOOBIG: more than most; DP_IO, DP_NOTFOUND, DP_NOMEM, with a sentence; then *list is empty. */
DP_MUST dp_status dp_file_list_open(dp_file_list *list, const char *folder, size_t most,
                                    dp_why *why);
void dp_file_list_close(dp_file_list *list); /* Accepts an empty one. */
/* Make a folder unless it is there. */
DP_MUST dp_status dp_folder_make(const char *path, dp_why *why);

#endif
