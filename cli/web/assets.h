/* The files of the page, which are part of the program. */
#ifndef DP_CLI_WEB_ASSETS_H
#define DP_CLI_WEB_ASSETS_H

#include "base/bytes.h"

typedef struct dp_asset {
    const char *type; /* Content-Type */
    dp_view bytes;
} dp_asset;

/* False: no file of the page has this path. */
bool dp_asset_find(const char *path, dp_asset *asset);

#endif
