/* Files and folders of data that other programs write and this one does not read: Parquet, Arrow,
 * folders of the `datasets` library, compressed files. */
#ifndef DP_COMPUTE_CORPUS_FOREIGN_DATA_H
#define DP_COMPUTE_CORPUS_FOREIGN_DATA_H

#include "base/bytes.h"

/* DP_UNSUPPORTED if the first bytes of a file, or the files of a folder, are of such a format: the
 * sentence has the command that makes text or JSON lines of it. DP_OK for everything else, also for
 * what cannot be read, and for pipes, of which nothing is read. */
DP_MUST dp_status dp_foreign_data_check(const char *path, dp_why *why);

#endif
