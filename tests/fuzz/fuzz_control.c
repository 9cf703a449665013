/* Any bytes on the control socket: no frame yet, a refusal, or a frame whose parts can be read. */
#include <stdlib.h>

#include "daemon/control/control_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_view bytes = dp_view_of(data, size);
    size_t frame_bytes = 0;

    while (dp_control_frame_size(bytes, &frame_bytes) == DP_OK && frame_bytes > 0) {
        dp_control_frame frame;
        if (frame_bytes > bytes.size) {
            abort();
        }
        if (dp_control_frame_open(&frame, dp_view_of(bytes.data, frame_bytes)) == DP_OK) {
            dp_control_error error;
            uint64_t last = 0;
            dp_control_error_read(frame.error, &error);
            DP_IGNORE(
                dp_pack_get_u64(dp_pack_key(frame.body, "last"), &last)); /* reading is the point */
            dp_control_frame_close(&frame);
        }
        bytes = dp_view_of(bytes.data + frame_bytes, bytes.size - frame_bytes);
    }
    return 0;
}
