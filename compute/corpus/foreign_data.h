/* Files and folders of data that other programs write and this one does not read: Parquet, Arrow,
 * folders of the `datasets` library, compressed files, and JSON that is not named JSON lines. */
#ifndef DP_COMPUTE_CORPUS_FOREIGN_DATA_H
#define DP_COMPUTE_CORPUS_FOREIGN_DATA_H

#include <stdbool.h>

#include "base/bytes.h"

/* DP_UNSUPPORTED if the first bytes of a file, or the files of a folder, are of such a format: the
 * sentence has the command that makes text or JSON lines of it. Also for JSON in a file that is
 * named .json, which would be read as text, unless the format is told by the user. DP_OK for
 * everything else, also for what cannot be read, and for pipes, of which nothing is read. */
DP_MUST dp_status dp_foreign_data_check(const char *path, bool told, dp_why *why);

#endif
