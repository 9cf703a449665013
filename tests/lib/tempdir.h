/* A temporary folder of a test; it is removed with its contents. */
#ifndef DP_TESTS_LIB_TEMPDIR_H
#define DP_TESTS_LIB_TEMPDIR_H

enum { TEMPDIR_PATH_MAX = 256, TEMPDIR_FILE_MAX = 512 };

typedef struct tempdir {
    char path[TEMPDIR_PATH_MAX];
} tempdir;

/* From here on the folders of this program are in memory, if the machine has a folder there.
 * Otherwise the duration of a test that waits for many syncs of a store depends on the disk and on
 * its other users. */
void tempdir_in_memory(void);
/* Under TMPDIR or /tmp. Fails the running test if it cannot be made. */
void tempdir_open(tempdir *dir);
/* Accepts a zeroed or closed tempdir. Follows no symbolic link out of the folder. */
void tempdir_close(tempdir *dir);
/* Writes "<dir>/<name>" into out (TEMPDIR_FILE_MAX bytes) and returns it. */
const char *tempdir_file(const tempdir *dir, const char *name, char *out);

#endif
