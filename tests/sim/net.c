#include "tests/sim/net.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "gossip/node/node.h"

enum { SITE_JITTER_US = 200 };

dp_status dp_net_open(dp_net *net, uint32_t n, uint64_t seed)
{
    memset(net, 0, sizeof *net);
    net->n = n;
    dp_rng_init(&net->rng, seed);
    net->ends = calloc((size_t)n * n, sizeof *net->ends);
    net->paths = calloc((size_t)n * n, sizeof *net->paths);
    net->free_at = calloc((size_t)n * 2, sizeof *net->free_at);
    net->bytes_per_ms = calloc(n, sizeof *net->bytes_per_ms);
    if (net->ends == NULL || net->paths == NULL || net->free_at == NULL ||
        net->bytes_per_ms == NULL) {
        dp_net_close(net);
        return DP_NOMEM;
    }
    return DP_OK;
}

void dp_net_close(dp_net *net)
{
    free(net->ends);
    free(net->paths);
    free(net->free_at);
    free(net->bytes_per_ms);
    memset(net, 0, sizeof *net);
}

dp_net_path *dp_net_path_of(const dp_net *net, uint32_t from, uint32_t to)
{
    dp_assert(from < net->n && to < net->n);
    return &net->paths[(size_t)from * net->n + to];
}

/* Inside a region 50..500 us, between two of them least_us and up to range_us more. */
static void lay_out(dp_net *net, uint32_t regions, bool slow_lines, uint64_t least_us,
                    uint64_t range_us)
{
    for (uint32_t a = 0; a < net->n; a++) {
        net->bytes_per_ms[a] = 100000;
        if (slow_lines && dp_rng_below(&net->rng, 2) == 0) {
            net->bytes_per_ms[a] = 40 + (uint32_t)dp_rng_below(&net->rng, 1000);
        }
        for (uint32_t b = 0; b < a; b++) {
            uint64_t delay = 50 + dp_rng_below(&net->rng, 450);
            if (a % regions != b % regions) {
                delay = least_us + dp_rng_below(&net->rng, range_us);
            }
            dp_net_path_of(net, a, b)->delay_us = (uint32_t)delay;
            dp_net_path_of(net, b, a)->delay_us =
                (uint32_t)(delay + dp_rng_below(&net->rng, delay / 4 + 1));
        }
    }
}

void dp_net_lay_out(dp_net *net, bool wide, bool slow_lines)
{
    lay_out(net, wide ? 2 + (uint32_t)dp_rng_below(&net->rng, 3) : 1, slow_lines, 1000, 79000);
}

void dp_net_lay_sites(dp_net *net, uint32_t sites, bool slow_lines)
{
    net->sites = sites;
    lay_out(net, sites, slow_lines, 5000, 20000);
    if (net->weather.jitter_us > SITE_JITTER_US) {
        net->weather.jitter_us = SITE_JITTER_US;
    }
}

bool dp_net_afar(const dp_net *net, uint32_t a, uint32_t b)
{
    return net->sites > 1 && a % net->sites != b % net->sites;
}

bool dp_net_blocked(const dp_net *net, uint64_t now_us, uint32_t from, uint32_t to)
{
    return dp_net_path_of(net, from, to)->blocked_until > now_us;
}

void dp_net_block(dp_net *net, uint32_t from, uint32_t to, uint64_t until_us, bool hold)
{
    dp_net_path *path = dp_net_path_of(net, from, to);

    if (until_us > path->blocked_until) {
        path->blocked_until = until_us;
    }
    path->hold = hold;
}

void dp_net_heal(dp_net *net, uint64_t now_us)
{
    for (size_t i = 0; i < (size_t)net->n * net->n; i++) {
        if (net->paths[i].blocked_until > now_us) {
            net->paths[i].blocked_until = now_us;
        }
    }
    const uint32_t jitter = net->weather.jitter_us;
    net->weather = (dp_net_weather){.jitter_us = jitter};
}

bool dp_net_linked(const dp_net *net, uint32_t a, uint32_t b)
{
    const uint64_t connection = net->ends[(size_t)a * net->n + b].connection;

    return connection != 0 && connection == net->ends[(size_t)b * net->n + a].connection;
}

static bool chance(dp_net *net, uint32_t share)
{
    return share != 0 && dp_rng_below(&net->rng, 65536) < share;
}

/* The time at which the line has carried size bytes. */
static uint64_t line_time(dp_net *net, uint64_t now_us, uint32_t from, uint32_t lane, uint32_t size)
{
    uint64_t *free_at = &net->free_at[(size_t)from * 2 + lane];

    if (*free_at < now_us) {
        *free_at = now_us;
    }
    *free_at += ((uint64_t)size + 60) * 1000 / net->bytes_per_ms[from];
    return *free_at;
}

dp_status dp_net_send(dp_net *net, dp_queue *queue, uint64_t now_us, uint32_t from, uint32_t to,
                      dp_packet *packet, uint32_t lane)
{
    dp_net_path *path = dp_net_path_of(net, from, to);
    const uint64_t connection = net->ends[(size_t)from * net->n + to].connection;
    const bool blocked = path->blocked_until > now_us;

    if (connection == 0 || (blocked && !path->hold)) {
        dp_packet_drop(packet);
        return DP_OK;
    }
    if (chance(net, net->weather.loss)) {
        net->harm.loss++;
        dp_packet_drop(packet);
        return DP_OK;
    }
    net->sent++;
    uint64_t at = line_time(net, now_us, from, lane, packet->size) + path->delay_us;
    if (net->weather.jitter_us != 0) {
        at += dp_rng_below(&net->rng, net->weather.jitter_us);
    }
    if (chance(net, net->weather.spike)) {
        net->harm.spike++;
        at += dp_rng_below(&net->rng, net->weather.spike_us_max + 1);
    }
    if (blocked && at < path->blocked_until + path->delay_us) {
        at = path->blocked_until + path->delay_us;
    }
    if (chance(net, net->weather.reorder)) {
        net->harm.reorder++;
    } else {
        if (at < path->last_at[lane]) {
            at = path->last_at[lane];
        }
        path->last_at[lane] = at;
    }
    if (!blocked && chance(net, net->weather.damage)) {
        net->harm.damage++;
        dp_packet_drop(packet);
        return dp_net_cut(net, queue, at, from, to, DP_LINK_RESET);
    }
    dp_occasion occasion = {
        .at_us = at, .kind = DP_ON_PACKET, .node = to, .other = from, .value = connection};
    if (chance(net, net->weather.copy)) {
        /* A copy may arrive much later and on another connection, as if a relay had kept it. */
        dp_occasion copy = occasion;
        net->harm.copy++;
        copy.packet = dp_packet_share(packet);
        copy.value = 0;
        copy.at_us = at + dp_rng_below(&net->rng, chance(net, 16384) ? 8000000 : 300000);
        const dp_status status = dp_queue_push(queue, &copy);
        if (status != DP_OK) {
            dp_packet_drop(packet);
            return status;
        }
    }
    occasion.packet = packet;
    return dp_queue_push(queue, &occasion);
}

dp_status dp_net_reset(dp_net *net, dp_queue *queue, uint64_t now_us, uint32_t a, uint32_t b,
                       uint64_t connection, uint16_t cause)
{
    const dp_net_path *path = dp_net_path_of(net, a, b);

    if (connection == 0 || path->blocked_until > now_us) {
        return DP_OK;
    }
    uint64_t at = now_us + path->delay_us;
    if (at < path->last_at[DP_NET_CONTROL]) {
        at = path->last_at[DP_NET_CONTROL];
    }
    return dp_queue_push(queue, &(dp_occasion){.at_us = at,
                                               .kind = DP_ON_LINK_DOWN,
                                               .node = b,
                                               .other = a,
                                               .value = connection,
                                               .detail = cause});
}

dp_status dp_net_cut(dp_net *net, dp_queue *queue, uint64_t at_us, uint32_t a, uint32_t b,
                     uint16_t cause)
{
    const uint64_t connection = net->ends[(size_t)a * net->n + b].connection;
    dp_occasion occasion = {.at_us = at_us,
                            .kind = DP_ON_LINK_DOWN,
                            .node = b,
                            .other = a,
                            .value = connection,
                            .detail = cause};

    if (connection == 0) {
        return DP_OK;
    }
    DP_TRY(dp_queue_push(queue, &occasion));
    occasion.at_us += dp_net_path_of(net, b, a)->delay_us;
    occasion.node = a;
    occasion.other = b;
    return dp_queue_push(queue, &occasion);
}
