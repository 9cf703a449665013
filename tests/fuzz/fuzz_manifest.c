/* Any bytes as a manifest: a status, or a manifest whose canonical form is those bytes. */
#include <stdlib.h>
#include <string.h>

#include "base/run/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t again[DP_MANIFEST_BYTES_MAX];
    size_t again_size = 0;
    dp_manifest manifest;

    (void)dp_manifest_run_id(dp_view_of(data, size));
    if (dp_manifest_decode(&manifest, dp_view_of(data, size)) == DP_OK) {
        if (dp_manifest_encode(&manifest, again, &again_size) != DP_OK || again_size != size ||
            memcmp(again, data, size) != 0) {
            abort();
        }
    }
    return 0;
}
