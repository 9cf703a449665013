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

/* "ADDR:PORT" up to DP_ADDRS_MAX times, with commas or spaces between. None of none. DP_BADARG with
 * a sentence. */
DP_MUST dp_status dp_advertise_parse(const char *text, dp_address addresses[DP_ADDRS_MAX],
                                     uint32_t *count, dp_why *why);

/* A port of a container that its cloud lets others reach. */
typedef struct dp_cloud_port {
    uint16_t inner;    /* to listen on */
    dp_address outer;  /* to tell */
    const char *cloud; /* "Vast" */
} dp_cloud_port;

/* Reads VAST_TCP_PORT_<inner>=<outer> with PUBLIC_IPADDR, and RUNPOD_TCP_PORT_<inner>=<outer> with
 * RUNPOD_PUBLIC_IP; an inner number above 65535 asks for the same port on both sides. Of several
 * ports: wanted; else one that is the same on both sides; else the only one from 1024 on, because
 * those below belong to ssh and its like. With only_wanted no other one than wanted. False: nothing
 * of that kind is said, or it is not an address. environment ends with NULL. */
bool dp_cloud_port_find(char *const *environment, uint16_t wanted, bool only_wanted,
                        dp_cloud_port *out);

/* Of both families (with_v6) in turn, loopback last: it serves trials on one machine. Link-local
 * ones are of no use to others. Returns their number. */
uint32_t dp_advertise_interfaces(const uv_interface_address_t *list, int count, uint16_t port,
                                 bool with_v6, dp_address addresses[DP_ADDRS_MAX]);

#endif
