/* Reads a whole file, or standard input, into memory, up to a limit. */
#ifndef DP_CLI_FILE_H
#define DP_CLI_FILE_H

#include <stdio.h>

#include "base/bytes.h"

/* All of stream appended to buf. DP_TOOBIG beyond buf->max, DP_IO, DP_NOMEM. */
DP_MUST dp_status dp_cli_file_read_stream(FILE *stream, dp_buf *buf);
/* DP_NOTFOUND and DP_IO with errno. Only plain files: DP_BADARG for a folder or a device. */
DP_MUST dp_status dp_cli_file_read(const char *path, dp_buf *buf);

#endif
