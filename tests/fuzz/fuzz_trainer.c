/* Any packet between daemon and trainer: a status, or a message that can be sent again. */
#include <stdlib.h>

#include "base/trainer/trainer_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static dp_trainer_msg msg;

    if (dp_trainer_decode(&msg, dp_view_of(data, size)) == DP_OK) {
        dp_buf buf = {.max = DP_TRAINER_PACKET_MAX};

        if (dp_trainer_encode(&msg, &buf) != DP_OK) {
            abort();
        }
        dp_buf_close(&buf);
    }
    return 0;
}
