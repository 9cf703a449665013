/* Nodes of two versions in one group (S16). The later version sends all messages of this one, as it
 * must while both exist, and in addition messages of unknown types, and of known types in a longer
 * form. All nodes run this code; the check is that nodes which receive such messages continue as if
 * they had not. */
#include <string.h>

#include "base/assert.h"
#include "gossip/core/msg.h"
#include "tests/sim/faults.h"
#include "tests/sim/host.h"
#include "tests/sim/sim.h"

enum {
    /* of the messages of a newer node: one of so many is followed by such a message */
    ONE_IN = 8,
    TYPE_FIRST = 200, /* types that no version has yet */
    TYPES = 50,
    TAIL_MAX = 40 /* bytes that it appends to a known message */
};

static uint32_t word_of_its_own(dp_sim *sim, uint8_t *out)
{
    const uint32_t size = DP_MSG_HEAD_BYTES + (uint32_t)dp_fault_below(sim, TAIL_MAX);

    for (uint32_t i = 0; i < size; i++) {
        out[i] = (uint8_t)dp_fault_below(sim, 256);
    }
    out[0] = (uint8_t)(TYPE_FIRST + dp_fault_below(sim, TYPES));
    out[1] = DP_MSG_VERSION;
    return size;
}

static uint32_t longer_form(dp_sim *sim, dp_view known, uint8_t *out)
{
    const uint32_t more = (uint32_t)dp_fault_below(sim, TAIL_MAX);

    memcpy(out, known.data, known.size);
    memset(out + known.size, 0x5a, more);
    out[1] = DP_MSG_VERSION + 1;
    return (uint32_t)known.size + more;
}

void dp_newer_says(dp_host *host, const dp_action *send)
{
    static uint8_t out[DP_MESSAGE_MAX + TAIL_MAX];
    dp_sim *sim = host->sim;
    const dp_view known = send->u.send.bytes;

    if (!host->newer) {
        return;
    }
    sim->striking = DP_FAULT_NEWER;
    const uint32_t to = send->u.send.to == DP_TO_PEER
                            ? dp_sim_index(sim, &send->u.send.peer)
                            : (uint32_t)dp_fault_below(sim, sim->plan.nodes);
    if (dp_fault_below(sim, ONE_IN) != 0 || to >= sim->plan.nodes || to == host->index ||
        sim->net.ends[(size_t)host->index * sim->plan.nodes + to].connection == 0) {
        return;
    }
    const uint32_t size = dp_fault_below(sim, 2) == 0 || known.size > DP_MESSAGE_MAX
                              ? word_of_its_own(sim, out)
                              : longer_form(sim, known, out);
    dp_packet *packet = dp_packet_of(out, size);
    dp_assert(packet != NULL);
    DP_IGNORE(dp_net_send(&sim->net, &sim->queue, sim->now_us, host->index, to, packet,
                          DP_NET_CONTROL)); /* the loop notices a full queue */
}

bool dp_newer_is(dp_view message)
{
    const uint8_t type = dp_msg_type_of(message);

    return message.size >= DP_MSG_HEAD_BYTES && (message.data[1] == DP_MSG_VERSION + 1 ||
                                                 (type >= TYPE_FIRST && type < TYPE_FIRST + TYPES));
}

void dp_newer_arrives(dp_host *host, uint32_t from, dp_event *event)
{
    dp_sim *sim = host->sim;
    const uint32_t boot = host->boot;
    dp_node_view before;
    dp_node_view after;

    dp_node_look(host->node, &before);
    dp_host_event(host, event);
    if (host->boot != boot || host->node == NULL) {
        return; /* It was killed in that step. */
    }
    dp_node_look(host->node, &after);
    if (after.rejected != before.rejected + 1) {
        dp_sim_fail(sim, "S16", host->index,
                    "a word of a later version, type %u, is not dropped and counted",
                    event->u.message.bytes.data[0]);
    }
    if (sim->net.ends[(size_t)host->index * sim->plan.nodes + from].connection == 0) {
        dp_sim_fail(sim, "S16", host->index, "cuts off node %u for a word of a later version",
                    from);
    }
}
