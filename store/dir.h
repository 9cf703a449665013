/* The directory of a store as a file system object: its lock, its ballast, and small secret files
 * that are replaced atomically. Knows no SQLite. */
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
    uint32_t mode_was;    /* of the directory, where others could enter it before; else 0 */
    uint32_t n_tightened; /* its files that others could read before */
} dp_dir;

/* Create dir (0700) if absent and take its lock. A directory that is there must belong to this
 * user; if it is empty or holds a store already, it and its files are made private, but for *.key:
 * a key that others could read is for dp_dir_read_secret to refuse. DP_BUSY: why names the pid that
 * holds it. DP_TOOBIG: path too long. DP_DENIED (also: the directory is another user's, or holds
 * something else and others may enter it), DP_IO, DP_NOSPACE. */
DP_MUST dp_status dp_dir_open(dp_dir *dir, const char *path, dp_why *why);
void dp_dir_close(dp_dir *dir); /* Accepts a zeroed or closed one. */

/* A kind of file system (statfs's f_type) that lies behind a network. FUSE is not one: what is
 * behind it cannot be seen. */
bool dp_dir_is_network(uint64_t kind);
/* DP_UNSUPPORTED with a sentence when path, or the folder that it will lie in, is on such a file
 * system. DP_OK when that cannot be told. */
DP_MUST dp_status dp_dir_check_disk(const char *path, dp_why *why);

/* What dp_dir_open would refuse for its owner or mode, told in advance; changes nothing. DP_OK when
 * it is not there. */
DP_MUST dp_status dp_dir_check_private(const char *path, dp_why *why);

/* path = dir/name; name of at most 62 characters, for which dp_dir_open left room. */
void dp_dir_join(const dp_dir *dir, const char *name, char path[DP_DIR_PATH_MAX]);
bool dp_dir_has(const dp_dir *dir, const char *name);
/* Rename name to the first free name.corrupt-N and write that name to moved (at least 64 bytes).
 * DP_NOTFOUND. */
DP_MUST dp_status dp_dir_set_aside(const dp_dir *dir, const char *name, char moved[64]);
/* Bytes that an unprivileged writer may still use on this disk. */
DP_MUST dp_status dp_dir_free_bytes(const dp_dir *dir, uint64_t *bytes);

/* Ballast: name with exactly size bytes of allocated blocks. DP_NOSPACE leaves no file behind. */
DP_MUST dp_status dp_dir_reserve(const dp_dir *dir, const char *name, uint64_t size);
DP_MUST dp_status dp_dir_release(const dp_dir *dir, const char *name);

/* Files outside the databases, so that a damaged store never loses them (the identity key). write:
 * mode 0600, temporary file + fsync + rename + fsync of the directory; a crash leaves the old or
 * the new content. Both take a path to the directory, which needs no lock. read appends to out:
 * DP_NOTFOUND, DP_TOOBIG, DP_DENIED (the file is another user's, or others may read it). why (or
 * NULL) tells the file, the reason and what to do. */
DP_MUST dp_status dp_dir_write_secret(const char *dir, const char *name, dp_view bytes);
DP_MUST dp_status dp_dir_read_secret(const char *dir, const char *name, dp_buf *out, dp_why *why);

#endif
