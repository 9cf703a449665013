#include "cli/file.h"

#include <errno.h>
#include <sys/stat.h>

enum { READ_BYTES = 16 * 1024 };

dp_status dp_cli_file_read_stream(FILE *stream, dp_buf *buf)
{
    uint8_t room[READ_BYTES];
    for (;;) {
        const size_t size = fread(room, 1, sizeof room, stream);
        if (size == 0) {
            return ferror(stream) != 0 ? DP_IO : DP_OK;
        }
        DP_TRY(dp_buf_append(buf, dp_view_of(room, size)));
    }
}

dp_status dp_cli_file_read(const char *path, dp_buf *buf)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        return errno == ENOENT || errno == ENOTDIR ? DP_NOTFOUND : DP_IO;
    }
    if (!S_ISREG(info.st_mode)) {
        return DP_BADARG;
    }
    FILE *stream = fopen(path, "re");
    if (stream == NULL) {
        return errno == ENOENT ? DP_NOTFOUND : DP_IO;
    }
    const dp_status status = dp_cli_file_read_stream(stream, buf);
    return fclose(stream) == 0 ? status : DP_IO;
}
