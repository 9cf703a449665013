/* Makes a daemon of the next version: linked with daemon/net/hello.c built for DP_HELLO_VERSION 4
 * and with every call of dp_transport_send and dp_transport_give redirected here, it sends all
 * messages of this version and, with every eighth one, a message of a type that this version does
 * not know, or the same message in a longer form of version 2. tests/system/test_versions.py mixes
 * both. */
#include <string.h>

#include "daemon/net/transport.h"
#include "gossip/core/msg.h"

enum { ONE_IN = 8, TYPE_NEW = 200, TAIL = 12 };

dp_status __real_dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                                   dp_view bytes); /* NOLINT: the linker's name */
dp_status __wrap_dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                                   dp_view bytes); /* NOLINT: the linker's name */

dp_status __real_dp_transport_give(dp_transport *transport, const dp_peer *peer,
                                   dp_buf *message); /* NOLINT: the linker's name */
dp_status __wrap_dp_transport_give(dp_transport *transport, const dp_peer *peer,
                                   dp_buf *message); /* NOLINT: the linker's name */

static void say_more(dp_transport *transport, const dp_peer *peer, dp_lane lane, dp_view bytes)
{
    static uint8_t out[DP_MESSAGE_MAX + TAIL]; /* loop thread only */
    static unsigned said;
    size_t size = DP_MSG_HEAD_BYTES;

    said++;
    if (said % ONE_IN != 0 || bytes.size < DP_MSG_HEAD_BYTES ||
        bytes.size > DP_MESSAGE_MAX - TAIL) {
        return;
    }
    memset(out, 0x5a, sizeof out);
    if (said % (2 * ONE_IN) == 0) {
        memcpy(out, bytes.data, bytes.size);
        size = bytes.size;
        out[1] = DP_MSG_VERSION + 1;
    } else {
        out[0] = TYPE_NEW;
        out[1] = DP_MSG_VERSION;
    }
    DP_IGNORE(__real_dp_transport_send(transport, peer, lane, dp_view_of(out, size + TAIL)));
}

dp_status __wrap_dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                                   dp_view bytes)
{
    const dp_status status = __real_dp_transport_send(transport, peer, lane, bytes);

    say_more(transport, peer, lane, bytes);
    return status;
}

/* Sent before the message itself, because sending that gives its bytes away. */
dp_status __wrap_dp_transport_give(dp_transport *transport, const dp_peer *peer, dp_buf *message)
{
    say_more(transport, peer, DP_LANE_BULK, dp_buf_view(message));
    return __real_dp_transport_give(transport, peer, message);
}
