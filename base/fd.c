#include "base/fd.h"

#include <errno.h>
#include <unistd.h>

dp_status dp_fd_write(int fd, dp_view bytes)
{
    size_t done = 0;

    while (done < bytes.size) {
        const ssize_t n = write(fd, bytes.data + done, bytes.size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            errno = n < 0 ? errno : EIO; /* A device that takes no byte must not loop for ever. */
            return DP_IO;
        }
        done += (size_t)n;
    }
    return DP_OK;
}
