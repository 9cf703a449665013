/* The directory of a store: its lock, its disk reserve, and small secret files that are replaced
 * atomically. Knows no SQLite. */
#ifndef DP_STORE_DIR_H
#define DP_STORE_DIR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

enum { DP_DIR_PATH_MAX = 1024 };

typedef struct dp_dir {
    char path[DP_DIR_PATH_MAX];
    int fd; /* -1 when closed. */
    int lock_fd;
    uint32_t mode_was;    /* mode of the directory if others could enter it before; else 0 */
    uint32_t n_tightened; /* files of it that others could read before */
} dp_dir;

/* Creates the directory (0700) if absent and takes its lock. An existing one must belong to this
 * user. If it is empty or holds a store, it and its files are made private, except *.key:
 * dp_dir_read_secret refuses a key that others could read. DP_BUSY: why names the pid that holds
 * it. DP_TOOBIG: path too long. DP_DENIED: the directory belongs to another user, or holds other
 * files and others may enter it. DP_IO, DP_NOSPACE. */
DP_MUST dp_status dp_dir_open(dp_dir *dir, const char *path, dp_why *why);
void dp_dir_close(dp_dir *dir); /* Accepts a zeroed or closed one. */

/* True for a type of file system (f_type of statfs) on a network. FUSE does not count: its backing
 * is unknown. */
bool dp_dir_is_network(uint64_t kind);
/* DP_UNSUPPORTED with a sentence if path, or the folder that will hold it, is on such a file
 * system. DP_OK also if the type cannot be read. */
DP_MUST dp_status dp_dir_check_disk(const char *path, dp_why *why);

/* Checks owner and mode as dp_dir_open does, but changes nothing. DP_OK if path does not exist. */
DP_MUST dp_status dp_dir_check_private(const char *path, dp_why *why);

/* path = dir/name. name has at most 62 characters; dp_dir_open keeps room for it. */
void dp_dir_join(const dp_dir *dir, const char *name, char path[DP_DIR_PATH_MAX]);
bool dp_dir_has(const dp_dir *dir, const char *name);
/* The first free name.corrupt-N. DP_TOOBIG: there are too many of them. */
DP_MUST dp_status dp_dir_aside_name(const dp_dir *dir, const char *name, char moved[64]);
/* Renames name to that name and writes it to moved. DP_NOTFOUND. */
DP_MUST dp_status dp_dir_set_aside(const dp_dir *dir, const char *name, char moved[64]);
/* Free bytes of this disk for an unprivileged user. */
DP_MUST dp_status dp_dir_free_bytes(const dp_dir *dir, uint64_t *bytes);

/* Ballast: a file of exactly size allocated bytes; an existing one of that size stays. DP_NOSPACE
 * leaves no file behind. */
DP_MUST dp_status dp_dir_reserve(const dp_dir *dir, const char *name, uint64_t size);
DP_MUST dp_status dp_dir_release(const dp_dir *dir, const char *name);

/* Files outside the databases, which a damaged store cannot lose (the identity key). write: mode
 * 0600, temporary file + fsync + rename + fsync of the directory; a crash leaves the old or the new
 * content. Both take a path to the directory, which needs no lock. read appends to out;
 * DP_NOTFOUND, DP_TOOBIG, DP_DENIED (the file belongs to another user, or others may read it), with
 * a sentence in why, which may be NULL. */
DP_MUST dp_status dp_dir_write_secret(const char *dir, const char *name, dp_view bytes);
DP_MUST dp_status dp_dir_read_secret(const char *dir, const char *name, dp_buf *out, dp_why *why);
/* Durable when they return, as write is. delete: DP_OK also if there is none. rename: replaces
 * nothing, DP_EXISTS; DP_NOTFOUND. */
DP_MUST dp_status dp_dir_delete_secret(const char *dir, const char *name);
DP_MUST dp_status dp_dir_rename_secret(const char *dir, const char *name, const char *to);

#endif
