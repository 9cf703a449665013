/* The addresses that a node advertises to peers: those of the setting, those of its cloud's port
 * mapping, or those of its interfaces. Does not resolve names; the node that dials resolves
 * them. */
#ifndef DP_DAEMON_HOST_ADVERTISE_H
#define DP_DAEMON_HOST_ADVERTISE_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"
#include "gossip/core/address.h"
#include "gossip/node/node.h"

/* "ADDR:PORT" up to DP_ADDRS_MAX times, separated by commas or spaces; an empty text has none.
 * DP_BADARG with a sentence. */
DP_MUST dp_status dp_advertise_parse(const char *text, dp_address addresses[DP_ADDRS_MAX],
                                     uint32_t *count, dp_why *why);

/* A port of a container that is reachable through its cloud. */
typedef struct dp_cloud_port {
    uint16_t inner;    /* to listen on */
    dp_address outer;  /* to advertise */
    const char *cloud; /* "Vast" */
} dp_cloud_port;

/* Reads VAST_TCP_PORT_<inner>=<outer> with PUBLIC_IPADDR, and RUNPOD_TCP_PORT_<inner>=<outer> with
 * RUNPOD_PUBLIC_IP; an inner number above 65535 asks for the same port on both sides. Of several
 * ports: wanted; else one that is the same on both sides; else the only one from 1024 on, because
 * those below belong to ssh and its like. With only_wanted no port other than wanted. False: there
 * is no such variable, or its value is not an address. environment ends with NULL. */
bool dp_cloud_port_find(char *const *environment, uint16_t wanted, bool only_wanted,
                        dp_cloud_port *out);

/* Both families (with_v6) alternate, loopback comes last: it serves tests on one machine.
 * Link-local addresses are useless for others and left out. Returns their number. */
uint32_t dp_advertise_interfaces(const uv_interface_address_t *list, int count, uint16_t port,
                                 bool with_v6, dp_address addresses[DP_ADDRS_MAX]);

#endif
