/* The places at the port that incoming connections hold until they have proved their identity:
 * which address may have one, and which connection gives way when there are too many. Pure memory:
 * knows addresses, no sockets.
 *
 *   strangers   only their address is known
 *   homes       the same, but a member has proved itself from their address before: reserved
 *               places, of which an address has its share; if none is left, the connection takes a
 *               stranger's place
 *   holders     their first message proves that they hold the run's secret: reserved places
 *
 * A newcomer is never refused: a connection of the run needs its place as a stranger only until its
 * first message arrives, and an attacker holds many places for a long time. So the oldest
 * connection gives way: of the newcomer's address, if that has as many as it may have; else of its
 * network; else, if all places are taken, of the largest network of the region that has the most.
 * An attacker with fewer regions than there are places therefore never displaces the only
 * connection of another region, and one with fewer networks none of another network. A network is a
 * /24 of IPv4 and a /64 of IPv6; a region is a /16 and a /32, as in Bitcoin Core, since one
 * customer of a provider can have all networks of a region. Loopback addresses are addresses like
 * others. */
#ifndef DP_DAEMON_NET_PORT_H
#define DP_DAEMON_NET_PORT_H

#include "gossip/node/node.h"

enum {
    DP_PORT_STRANGERS_MAX = 256,
    /* strangers: all nodes of a site behind one address may connect at once */
    DP_PORT_PER_ADDRESS = 64,
    DP_PORT_PER_NETWORK = 128,
    DP_PORT_HOMES_MAX = 64,
    DP_PORT_PER_HOME = 16,
    DP_PORT_HOLDERS_MAX = 128,
    DP_PORT_ROWS_MAX = 256, /* of the largest of these */
    /* Answered first messages, each of which costs half a millisecond of Diffie-Hellman and
     * signatures: per second, and in a burst. For one network, one region, and all; from addresses
     * of members, any number. */
    DP_PORT_ANSWERS = 16,
    DP_PORT_ANSWERS_BURST = 128,
    DP_PORT_ANSWERS_REGION = 32,
    DP_PORT_ANSWERS_REGION_BURST = 256,
    DP_PORT_ANSWERS_ALL = 64,
    DP_PORT_ANSWERS_ALL_BURST = 512,
    /* counted networks, and regions; the one that asked longest ago is replaced */
    DP_PORT_NETWORKS_MAX = 64,
    DP_PORT_REMEMBERED_MAX =
        256 /* addresses of members, IPv6 by its network; the oldest is replaced */
};

typedef struct dp_port_from {
    uint8_t family;
    uint8_t ip[16];
} dp_port_from;

struct dp_port_pool;

/* The place of one connection, which owns it; zero: it holds none. */
typedef struct dp_place {
    struct dp_port_pool *pool;
    uint32_t row;
} dp_place;

typedef struct dp_port_row {
    dp_place *place;
    uint64_t since;   /* rising */
    uint32_t network; /* rows of the same one, this one included */
    uint32_t region;
    dp_port_from from;
} dp_port_row;

typedef struct dp_port_pool {
    uint32_t max;
    uint32_t per_address;
    uint32_t per_network;
    uint32_t n;
    dp_port_row rows[DP_PORT_ROWS_MAX];
} dp_port_pool;

/* Answers that may still be given; filled with time. */
typedef struct dp_port_answers {
    dp_port_from from;
    uint64_t left; /* thousandths */
    uint64_t filled_ms;
} dp_port_answers;

typedef struct dp_port {
    dp_port_pool strangers;
    dp_port_pool homes;
    dp_port_pool holders;
    uint64_t turn;
    uint32_t n_networks;
    dp_port_answers networks[DP_PORT_NETWORKS_MAX];
    uint32_t n_regions;
    dp_port_answers regions[DP_PORT_NETWORKS_MAX];
    dp_port_answers all;
    uint32_t n_remembered;
    uint32_t next_remembered;
    dp_port_from remembered[DP_PORT_REMEMBERED_MAX];
} dp_port;

void dp_port_init(dp_port *port);
/* Gives a place to a connection from addr. Returns the one that has lost its place for it, or
 * NULL. */
DP_MUST dp_place *dp_port_enter(dp_port *port, dp_place *place, const dp_addr *addr);
/* It has proved that it holds the run's secret. Returns as above. */
DP_MUST dp_place *dp_port_prove(dp_port *port, dp_place *place);
/* May a first message from there be answered now? Takes one of its answers if so. A holder of a
 * token, present or past, can send any number of first messages. */
bool dp_port_may_answer(dp_port *port, const dp_addr *addr, uint64_t now_ms);
/* It is closed, or no longer needs a place. Harmless without a place. */
void dp_port_leave(dp_place *place);
/* A member has proved itself from this address, now or before this start. */
void dp_port_remember(dp_port *port, const dp_addr *addr);
/* The stranger that must be closed first to free a descriptor; it keeps its place until then. NULL:
 * there is none. */
dp_place *dp_port_first_to_go(dp_port *port);

#endif
