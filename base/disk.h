/* Free space of the file system that holds a path. */
#ifndef DP_BASE_DISK_H
#define DP_BASE_DISK_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes that this user may still write there. False: unknown, for example because the path does not
 * exist. Any thread. */
bool dp_disk_free(const char *path, uint64_t *bytes);

enum { DP_DISK_TEXT_MAX = 320 };
/* "the disk is full: 1.2 MB are free where DIR lies", for an error. */
void dp_disk_full_text(const char *path, char text[DP_DISK_TEXT_MAX]);

#endif
