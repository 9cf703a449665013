/* Methods that take the root key of the run, or the rights of an admin. */
#include "daemon/control.h"
#include "daemon/driver.h"
#include "daemon/reply.h"

void dp_method_revoke(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    char name[64];
    char id[DP_PEER_TEXT_MAX];
    dp_why why = {""};
    dp_order order = {.kind = DP_ORDER_REVOKE, .why = &why};
    dp_packer packer;

    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (!dp_pack_copy_text(dp_pack_key(parameters, "peer"), name, sizeof name) ||
        !dp_call_find_peer(daemon, name, &order.peer)) {
        dp_call_fail(call, 1, "E0120", "dpnode peers   # lists names and ids",
                     "there is no such peer", "");
        return;
    }
    if (dp_driver_order(daemon->driver, &order) != DP_OK) {
        dp_call_fail(call, 77, "E0121", "dpnode peers   # lists who is a member",
                     "this peer is not put out", why.text);
        return;
    }
    dp_peer_text(&order.peer, id);
    dp_diary_add(daemon->diary, DP_LOG_WARN, "member.revoked", 0, &order.peer,
                 "%s (%s) is put out of the run by this node's owner",
                 dp_driver_peer_name(daemon->driver, &order.peer), id);
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_text(&map, "peer", id);
        dp_pair_text(&map, "key", daemon->has_root ? "root" : "admin");
        dp_pair_text(&map, "text", why.text); /* Empty: the voters that are left can decide. */
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

static void order_chain(dp_daemon *daemon, const dp_call *call, dp_order_kind kind)
{
    dp_why why = {""};
    const dp_order order = {.kind = kind, .why = &why};
    dp_driver_view view;
    dp_packer packer;

    if (dp_call_driver(daemon, call) == NULL) {
        return;
    }
    if (dp_driver_order(daemon->driver, &order) != DP_OK) {
        dp_call_fail(call, 77, "E0123", "dpnode why   # tells what this node waits for",
                     kind == DP_ORDER_FORK ? "the chain is not begun anew" : "nothing is merged",
                     why.text);
        return;
    }
    dp_driver_look(daemon->driver, &view);
    if (dp_call_begin(call, DP_CONTROL_REPLY, &packer)) {
        dp_group map = dp_map_begin(&packer);
        dp_pair_u64(&map, "round", view.node.round);
        dp_pair_text(&map, "text", why.text);
        dp_group_end(&map);
        dp_call_end(call, &packer);
    }
}

void dp_method_run_fork(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    order_chain(daemon, call, DP_ORDER_FORK);
}

void dp_method_run_merge(dp_daemon *daemon, const dp_call *call, const dp_pack_value *parameters)
{
    (void)parameters;
    order_chain(daemon, call, DP_ORDER_MERGE);
}
