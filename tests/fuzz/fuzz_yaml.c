/* Any bytes as a manifest in YAML: a checked manifest, or a sentence with line and column. */
#include <stdlib.h>
#include <string.h>

#include "cli/manifest_yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dp_manifest_file file;
    dp_why what;
    dp_why fix;

    const dp_status status =
        dp_manifest_yaml_read(dp_view_of(data, size), "f", NULL, &file, &what, &fix);
    if (status == DP_OK ? dp_manifest_check(&file.manifest, NULL) != DP_OK
                        : strncmp(what.text, "f:", 2) != 0) {
        abort();
    }
    return 0;
}
