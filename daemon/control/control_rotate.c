/* The method token.rotate: requests a new join secret for the run. */
#include <sodium.h>

#include "daemon/control/control.h"
#include "daemon/control/reply.h"
#include "daemon/peer/driver.h"
#include "gossip/identity/invite.h"

void dp_method_token_rotate(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    uint8_t secret[DP_JOIN_SECRET_BYTES];
    dp_why why = {""};
    const dp_admin_command order = {.kind = DP_ADMIN_ROTATE, .secret = secret, .why = &why};
    dp_packer packer;
    (void)parameters;
    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    randombytes_buf(secret, sizeof secret);
    const dp_status status = dp_driver_order(daemon->driver, &order);
    sodium_memzero(secret, sizeof secret);
    if (status != DP_OK) {
        dp_call_fail(
            call, status == DP_AGAIN ? 75 : 77, "E0214",
            status == DP_AGAIN
                ? "dpnode status   # repeat the command when one more round is decided"
                : "repeat the command on the node that created the run, or on an admin's node",
            "the join secret is not rotated", why.text);
        return;
    }
    dp_event_log_add(daemon->event_log, DP_LOG_WARN, "secret.order", 0, NULL,
                     "this node's owner requested a new join secret");
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "epoch", dp_driver_run_identity(daemon->driver)->psk_epoch);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}
