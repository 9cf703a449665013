/* Any bytes as the head of a checkpoint of training without peers: what is read is written as the
 * same bytes. */
#include <stdlib.h>
#include <string.h>

#include "compute/standalone/standalone_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dp_standalone_head head;
    uint8_t again[DP_STANDALONE_HEAD_BYTES];
    if (dp_standalone_head_read(&head, dp_view_of(bytes, size)) == DP_OK) {
        dp_standalone_head_write(&head, again);
        if (size != DP_STANDALONE_HEAD_BYTES || memcmp(bytes, again, size) != 0) {
            abort();
        }
    }
    return 0;
}
