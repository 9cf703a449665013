#include "cli/figures/figure_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool dp_figure_file_init(dp_figure_file *file, const char *path)
{
    const int size = snprintf(file->path, sizeof file->path, "%s", path);
    file->fd = -1;
    file->failed = false;
    return size > 0 && (size_t)size < sizeof file->path;
}

void dp_figure_file_close(dp_figure_file *file)
{
    if (file->fd >= 0) {
        close(file->fd);
    }
    file->fd = -1;
}

static dp_status fail(dp_figure_file *file, int error, dp_why *why)
{
    const dp_status status = error == ENOSPC || error == EDQUOT ? DP_NOSPACE : DP_IO;
    char text[128];
    why->text[0] = '\0';
    if (!file->failed) {
        file->failed = true;
        return dp_why_set(why, status, "%.300s is not written: %s", file->path,
                          strerror_r(error, text, sizeof text));
    }
    return status;
}

/* 0 or an errno. */
static int write_all(int fd, dp_view bytes)
{
    size_t done = 0;
    while (done < bytes.size) {
        const ssize_t n = write(fd, bytes.data + done, bytes.size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return n < 0 ? errno : EIO;
        }
        done += (size_t)n;
    }
    return 0;
}

dp_status dp_figure_file_append(dp_figure_file *file, dp_view bytes, dp_why *why)
{
    struct stat info;
    if (file->fd < 0) {
        file->fd = open(file->path,
                        O_WRONLY | O_CREAT | O_APPEND | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0644);
    }
    if (file->fd < 0 || fstat(file->fd, &info) != 0) {
        return fail(file, errno, why);
    }
    const int error = write_all(file->fd, bytes);
    if (error != 0) {
        if (S_ISREG(info.st_mode)) { /* A part of a record would hide all that follow. */
            DP_IGNORE(ftruncate(file->fd, info.st_size) != 0);
        }
        dp_figure_file_close(file); /* The file may be another one by the next time. */
        return fail(file, error, why);
    }
    file->failed = false;
    return DP_OK;
}
