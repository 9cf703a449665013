/* Any bytes as a question of a script: refused, or within the limits that answers rely on. */
#include <stdlib.h>

#include "compute/worker/script_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_script_ask ask;
    if (dp_script_read(dp_view_of(data, size), &ask) != DP_OK) {
        return 0;
    }
    const bool draws = ask.kind == DP_SCRIPT_DRAW;
    const bool done = ask.kind == DP_SCRIPT_DONE;
    if ((draws && (ask.n < 1 || ask.n > DP_SCRIPT_DRAW_MAX)) ||
        (done && (ask.what < DP_SCRIPT_ASSIGN || ask.what > DP_SCRIPT_COPY)) ||
        size != (done ? 32U : 8U)) {
        abort();
    }
    return 0;
}
