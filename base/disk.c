#include "base/disk.h"

#include <stdio.h>
#include <sys/statvfs.h>

#include "base/size.h"

bool dp_disk_free(const char *path, uint64_t *bytes)
{
    struct statvfs disk;
    if (statvfs(path, &disk) != 0) {
        return false;
    }
    *bytes = (uint64_t)disk.f_bavail * disk.f_frsize;
    return true;
}

void dp_disk_full_text(const char *path, char text[DP_DISK_TEXT_MAX])
{
    char free_text[DP_SIZE_TEXT_MAX];
    uint64_t bytes = 0;
    if (dp_disk_free(path, &bytes)) {
        dp_size_text(bytes, free_text);
        snprintf(text, DP_DISK_TEXT_MAX, "the disk is full: %s are free where %.200s lies",
                 free_text, path);
    } else {
        snprintf(text, DP_DISK_TEXT_MAX, "the disk is full where %.200s lies", path);
    }
}
