/* Whole files in and out, for the worker's tools. Only dp_file_replace is durable: store/ does
 * more. */
#ifndef DP_COMPUTE_MACHINE_FILES_H
#define DP_COMPUTE_MACHINE_FILES_H

#include <stdbool.h>

#include "base/bytes.h"

/* Appends the file to out, whose max limits it. DP_IO, DP_NOTFOUND, DP_TOOBIG, DP_NOMEM, with a
 * sentence. */
DP_MUST dp_status dp_file_read(const char *path, dp_buf *out, dp_why *why);
/* The same for an open descriptor, from its position to its end; may be a pipe. name: for
 * sentences. */
DP_MUST dp_status dp_file_read_fd(int fd, const char *name, dp_buf *out, dp_why *why);
/* Opens for reading; the caller closes *fd. DP_IO (also for a pipe, which could block for ever),
 * DP_NOTFOUND, with a sentence. */
DP_MUST dp_status dp_file_open(const char *path, int *fd, dp_why *why);
/* The same for a single read from begin to end: may be a pipe, and a named pipe waits for its
 * writer. */
DP_MUST dp_status dp_file_open_once(const char *path, int *fd, dp_why *why);
/* False: it is something else, or absent. */
bool dp_file_is_pipe(const char *path);
/* Maps folder/name for reading until dp_file_unmap; an empty file gives no bytes. If another
 * process shortens the file, this process ends with SIGBUS: for tools only. DP_IO, DP_NOTFOUND,
 * DP_NOMEM, DP_BADARG (path too long), with a sentence. */
DP_MUST dp_status dp_file_map(const char *folder, const char *name, dp_view *bytes, dp_why *why);
DP_MUST dp_status dp_file_map_path(const char *path, dp_view *bytes, dp_why *why); /* the same */
void dp_file_unmap(dp_view bytes);
/* Creates or replaces folder/name: a link under that name is replaced and not followed. Needs room
 * for both files at once; what a killed process left of such a file is removed first. DP_IO,
 * DP_NOSPACE, DP_BADARG (path too long). */
DP_MUST dp_status dp_file_write(const char *folder, const char *name, dp_view bytes, dp_why *why);
/* The same, durably: a reader, also after a crash or a power cut, finds the old bytes or the
 * new. */
DP_MUST dp_status dp_file_replace(const char *folder, const char *name, dp_view bytes, dp_why *why);
/* False: it is something else, or absent. */
bool dp_folder_is(const char *path);
/* The paths of the regular files in a folder, sorted by bytes, without names that begin with a
 * dot. */
typedef struct dp_file_list {
    char **paths; /* owned */
    size_t count;
    uint64_t bytes; /* of all */
} dp_file_list;

/* Lists a folder. DP_TOOBIG: more than most files; DP_IO, DP_NOTFOUND, DP_NOMEM, with a sentence;
 * *list is then empty. */
DP_MUST dp_status dp_file_list_open(dp_file_list *list, const char *folder, size_t most,
                                    dp_why *why);
void dp_file_list_close(dp_file_list *list); /* Accepts an empty one. */
/* Makes a folder if absent. */
DP_MUST dp_status dp_folder_make(const char *path, dp_why *why);
/* The same, in places where others may write: also DP_DENIED if the folder, or the link to it,
 * belongs neither to this user nor to root, DP_BADARG if it is no folder, with a sentence. */
DP_MUST dp_status dp_folder_make_own(const char *path, dp_why *why);

#endif
