/* A file that figures of a training are appended to, for other programs that read it meanwhile. A
 * failure costs the figures that it hits and no more: what does not fit is taken back as a whole,
 * and the next append tries again, also to create the file. Never blocks on a pipe. */
#ifndef DP_CLI_FIGURES_FIGURE_FILE_H
#define DP_CLI_FIGURES_FIGURE_FILE_H

#include <stdbool.h>

#include "base/bytes.h"
#include "cli/paths.h"

typedef struct dp_figure_file {
    char path[DP_CLI_PATH_MAX];
    int fd;      /* -1: not open */
    bool failed; /* the last append, or one before it that none has succeeded after */
} dp_figure_file;

/* Opens nothing yet. False: the path is empty or too long. */
bool dp_figure_file_init(dp_figure_file *file, const char *path);
void dp_figure_file_close(dp_figure_file *file);
/* All of bytes, or none of a regular file. DP_IO, DP_NOSPACE: *why has a sentence if this is the
 * first failure since the last success, else it is empty. */
DP_MUST dp_status dp_figure_file_append(dp_figure_file *file, dp_view bytes, dp_why *why);

#endif
