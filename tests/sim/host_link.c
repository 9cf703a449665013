/* Links between hosts as a node's transport reports them: dials, open connections, arriving
 * messages, ends. */
#include <string.h>

#include "base/assert.h"
#include "tests/sim/evil.h"
#include "tests/sim/host.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

dp_addr dp_host_addr(uint32_t index, uint16_t port)
{
    dp_addr addr = {.family = 4, .port = port};

    memcpy(addr.ip, &index, sizeof index);
    return addr;
}

void dp_host_dial(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;
    const uint32_t to = dp_evil_body(sim, host->index, dp_sim_index(sim, &action->u.dial.peer));
    bool right = false;

    dp_assert(action->u.dial.n_addrs > 0);
    if (to >= sim->plan.nodes || to == host->index) {
        return;
    }
    for (uint32_t i = 0; i < action->u.dial.n_addrs; i++) {
        right = right || action->u.dial.addrs[i].port == sim->hosts[to].port;
    }
    const uint64_t delay = (uint64_t)dp_net_path_of(&sim->net, host->index, to)->delay_us * 3;
    const bool blocked =
        !right || sim->hosts[to].nat || dp_net_blocked(&sim->net, sim->now_us, host->index, to);
    dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + delay + (blocked ? DP_SECOND : 0),
                                    .kind = DP_ON_DIALED,
                                    .node = host->index,
                                    .boot = host->boot,
                                    .other = to,
                                    .detail = !right || sim->hosts[to].nat});
}

void dp_host_hangup(dp_host *host, const dp_action *action)
{
    dp_sim *sim = host->sim;
    const uint32_t to = dp_evil_body(sim, host->index, dp_sim_index(sim, &action->u.peer));

    if (to >= sim->plan.nodes) {
        return;
    }
    dp_net_end *end = &sim->net.ends[(size_t)host->index * sim->plan.nodes + to];
    const uint64_t connection = end->connection;
    end->connection = 0;
    DP_IGNORE(dp_net_reset(&sim->net, &sim->queue, sim->now_us, host->index, to, connection,
                           DP_LINK_CLOSED));
    if (connection != 0) {
        /* The transport reports the end of every link it reported. */
        dp_sim_push(sim, &(dp_occasion){.at_us = sim->now_us + 1,
                                        .kind = DP_ON_LINK_DOWN,
                                        .node = host->index,
                                        .boot = host->boot,
                                        .other = to,
                                        .value = UINT64_MAX,
                                        .detail = DP_LINK_CLOSED});
    }
}

static void link_up(dp_host *host, uint32_t other, bool outgoing)
{
    uint8_t credential[DP_SIM_CREDENTIAL_BYTES];
    dp_event event = {.type = DP_EV_LINK_UP};

    host->met[other] = host->sim->hosts[other].told_port;
    dp_sim_credential(host->sim, other, credential);
    event.u.link.peer = host->sim->hosts[other].peer;
    event.u.link.addr = dp_host_addr(other, host->sim->hosts[other].port);
    event.u.link.credential = dp_view_of(credential, sizeof credential);
    event.u.link.outgoing = outgoing;
    dp_host_event(host, &event);
}

static void link_down(dp_host *host, uint32_t other, dp_link_cause cause)
{
    dp_event event = {.type = DP_EV_LINK_DOWN};

    event.u.link.peer = host->sim->hosts[other].peer;
    event.u.link.cause = cause;
    dp_host_event(host, &event);
}

void dp_host_dialed(dp_host *host, uint32_t other, bool hidden)
{
    dp_sim *sim = host->sim;
    dp_host *callee = &sim->hosts[other];
    dp_net_end *mine = &sim->net.ends[(size_t)host->index * sim->plan.nodes + other];
    dp_net_end *theirs = &sim->net.ends[(size_t)other * sim->plan.nodes + host->index];

    if (dp_net_linked(&sim->net, host->index, other)) {
        return; /* dials crossed: one connection stays, and both know it */
    }
    if (hidden || callee->node == NULL || callee->paused_until > sim->now_us ||
        dp_net_blocked(&sim->net, sim->now_us, host->index, other) ||
        dp_net_blocked(&sim->net, sim->now_us, other, host->index)) {
        if (mine->connection == 0) {
            link_down(host, other, DP_LINK_REFUSED);
        }
        return;
    }
    if (mine->connection != 0) {
        mine->connection = 0;
        link_down(host, other, DP_LINK_RESET);
    }
    if (theirs->connection != 0) {
        theirs->connection = 0;
        link_down(callee, host->index, DP_LINK_RESET);
    }
    if (host->node == NULL || callee->node == NULL || mine->connection != 0 ||
        theirs->connection != 0) {
        return;
    }
    mine->connection = ++sim->net.connections;
    theirs->connection = mine->connection;
    link_up(callee, host->index, false);
    if (host->node != NULL && mine->connection != 0) {
        link_up(host, other, true);
    }
}

void dp_host_packet(dp_host *host, const dp_occasion *occasion)
{
    dp_sim *sim = host->sim;
    const uint64_t here =
        sim->net.ends[(size_t)host->index * sim->plan.nodes + occasion->other].connection;

    if (here == 0 || (occasion->value != 0 && occasion->value != here)) {
        /* No such connection: the machine answers with a reset. */
        DP_IGNORE(dp_net_reset(&sim->net, &sim->queue, sim->now_us, host->index, occasion->other,
                               occasion->value, DP_LINK_RESET));
        return;
    }
    const dp_view bytes = dp_view_of(occasion->packet->data, occasion->packet->size);
    if (sim->evil != NULL) {
        dp_evil_hears(host, occasion->other, bytes);
    }
    if (dp_host_message(host, occasion->other, bytes)) {
        return;
    }
    dp_event event = {.type = DP_EV_MESSAGE};
    event.u.message.peer = sim->hosts[occasion->other].peer;
    event.u.message.bytes = bytes;
    if (dp_newer_is(bytes)) {
        dp_newer_arrives(host, occasion->other, &event);
        return;
    }
    dp_host_event(host, &event);
    dp_oracle_delivered(host, bytes);
    if (occasion->value == 0) {
        dp_oracle_copied(host);
    }
}

void dp_host_unlinked(dp_host *host, const dp_occasion *occasion)
{
    dp_net_end *end =
        &host->sim->net.ends[(size_t)host->index * host->sim->plan.nodes + occasion->other];

    const bool own =
        occasion->value == UINT64_MAX && occasion->boot == host->boot; /* this side has closed it */
    if (own ? end->connection == 0 : end->connection == occasion->value) {
        end->connection = 0;
        link_down(host, occasion->other, (dp_link_cause)occasion->detail);
    }
}
