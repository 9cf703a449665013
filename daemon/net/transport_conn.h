/* One TCP connection with its channel: the half of the transport below links. The private header
 * of the transport. */
#ifndef DP_DAEMON_NET_TRANSPORT_CONN_H
#define DP_DAEMON_NET_TRANSPORT_CONN_H

#include "base/list.h"
#include "daemon/net/crypto_pool.h"
#include "daemon/net/listener.h"
#include "daemon/net/path.h"
#include "daemon/net/peer_memory.h"
#include "daemon/net/peer_traffic.h"
#include "daemon/net/port.h"
#include "daemon/net/spending.h"
#include "daemon/net/throttle.h"
#include "daemon/net/transport.h"

/* Spare buffers: enough for the one-record messages that wait in three lanes of an exchange, and
 * not more bytes than a lane's queue. */
enum {
    DP_TRANSPORT_SPARES_MAX = 64,
    DP_TRANSPORT_SPARE_BYTES_MAX = DP_TRANSPORT_BULK_QUEUE,
    /* Connections above which no additional ones for speed are opened or taken, */
    DP_TRANSPORT_STRIPED_MAX = DP_TRANSPORT_CONNECTIONS_MAX / 2,
    DP_TRANSPORT_DIALS = 512 /* ... and room for dials when every node has a link. */
};

_Static_assert((int)DP_TRANSPORT_CONNECTIONS_MAX >=
                   2 * (int)DP_MEMBERS_MAX + (int)DP_PORT_STRANGERS_MAX + (int)DP_PORT_HOMES_MAX +
                       (int)DP_PORT_HOLDERS_MAX + (int)DP_TRANSPORT_DIALS,
               "a node can have a link to every other one");

typedef struct dp_link dp_link;
typedef struct dp_bulk dp_bulk;

/* The peer that a dial should reach, and the addresses left to try. */
typedef struct dp_dial {
    dp_lane lane;
    uint8_t stripe;
    bool expects_peer;
    dp_peer expected;
    bool asked_again; /* this address reported its time, and is dialed once more with it */
    bool older;       /* under the older pre-shared key: the other end may not have the newest */
    int64_t ahead_ms; /* then: the lead of its clock */
    uint32_t n_addrs;
    uint32_t next_addr;
    dp_addr addrs[DP_ADDRS_MAX];
} dp_dial;

typedef struct dp_conn {
    uv_tcp_t tcp;
    dp_list item; /* in transport->conns */
    dp_transport *transport;
    dp_link *link; /* set when the peer is proved and the link keeps this connection */
    dp_channel channel;
    bool channel_open; /* channel must be closed */
    bool connected;
    bool met; /* the time of its clock has been told */
    bool outgoing;
    bool closing;
    bool writing;
    bool spoke;         /* a byte has arrived */
    bool paused;        /* not read: its peer has spent too much (transport_spend.c) */
    bool idle;          /* no bytes were read or written since the last tick */
    dp_link_cause doom; /* not 0: the next tick declares it lost for this cause */
    dp_lane lane;
    uint8_t silent_ticks;       /* since it was accepted, without a byte */
    dp_place place;             /* at the port, from its acceptance until it has proved itself */
    uint8_t stripe;             /* bulk: which of the link's connections */
    dp_path path;               /* bulk */
    uint64_t pace;              /* as last set on the socket */
    dp_throttle_place up, down; /* bulk: in the lines for the owner's limits */
    dp_addr addr;
    uint64_t deadline_ms; /* uv_now: dial or handshake must have ended; 0 afterwards */
    uint64_t proved_ms;   /* uv_now at which the peer had proved its identity */
    uint64_t moved;       /* bytes, both ways */
    bool replaced;        /* replaced by a newer one of its link; the other end closes it */
    dp_dial dial;         /* outgoing */
    uv_connect_t connect;
    uv_write_t write;
    dp_buf in_flight; /* being written */
    dp_buf out;       /* waits for the write under way */
    /* the bulk lane after the handshake: then the two above and channel's buffers are unused */
    dp_bulk *bulk;
} dp_conn;

/* A peer that has proved its identity. */
struct dp_link {
    dp_list item; /* in transport->links */
    dp_peer peer;
    uint64_t boot_id;
    /* [DP_LANE_CONTROL] is never NULL while the link exists; [DP_LANE_BULK + stripe]: bulk
     * connections. */
    dp_conn *lanes[DP_LANE_BULK + DP_CHANNEL_STRIPES_MAX];
    uint64_t bulk_retry_ms;
    uint64_t stripe_retry_ms;
    uint64_t renew_retry_ms;
    dp_path_loss loss;
    dp_spending spending; /* of a member */
    uint32_t traffic;     /* row of its peer */
    bool replayed;        /* by the last dp_transport_replay */
    size_t credential_bytes;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
};

struct dp_transport {
    dp_transport_config config;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    uint8_t hello[DP_CHANNEL_HELLO_MAX];
    dp_listener *listener;          /* NULL: not listening */
    struct sockaddr_storage source; /* local address of dials; AF_UNSPEC: the system chooses */
    uv_timer_t *tick;
    uv_timer_t *meter; /* until a waiting connection can be called */
    dp_throttle up;
    dp_throttle down;
    dp_crypto_pool *crypto_pool;
    dp_list conns;
    dp_list links;
    uint32_t n_conns;
    dp_port port;
    dp_replay_cache replays; /* of received first messages */
    bool closing;
    /* of sent messages; all are freed if none was used since the last tick */
    dp_buf spares[DP_TRANSPORT_SPARES_MAX];
    uint32_t n_spares;
    uint64_t spare_bytes;
    dp_path_line line;          /* bytes that leave this machine */
    dp_peer_memory peer_memory; /* of messages that arrive */
    /* a connection is dialled again at this age, or after so many bytes */
    uint64_t renew_ms;
    uint64_t renew_bytes;
    bool spares_idle;
    dp_spending guests;   /* of all of them together */
    const dp_link *heard; /* a message of it is being handled; only compared */
    uint64_t answered;    /* bytes sent to it meanwhile on its control lane */
    /* bulk connections of a link that this side dialed, independent of loss; 0: one */
    uint32_t stripes_min;
    dp_transport_stats stats;
    dp_peer_traffic traffic;
    /* during dp_transport_measure: the bulk connections, and their paths */
    dp_conn *measured[DP_TRANSPORT_CONNECTIONS_MAX];
    dp_path *paths[DP_TRANSPORT_CONNECTIONS_MAX];
    char read_buffer[64 * 1024]; /* lent to libuv during one read callback */
};

/* Connection level (transport_conn.c). */
dp_conn *dp_conn_new(dp_transport *transport, bool outgoing, dp_lane lane);
/* Connects to the first address of the plan for which a socket can be opened; false if none is
 * left. */
bool dp_conn_dial(dp_transport *transport, dp_dial *plan);
/* A node that listens on one of several addresses also dials from it; address is the bound one. */
void dp_conn_set_source(dp_transport *transport, const struct sockaddr_storage *address);
/* Waits for the first bytes of an accepted connection; most of its cost arises only then. */
void dp_conn_await(dp_conn *conn);
void dp_conn_flush(dp_conn *conn);
/* Writes the waiting bytes if the kernel takes them now: the connection is closed next. */
void dp_conn_say_last(dp_conn *conn);
/* Begins or continues to read; not 0: an error of libuv. */
int dp_conn_read(dp_conn *conn);
/* Tells the link level, unless it is already closing. */
/* Reports the time of the other end's clock to hooks.met once, if it has arrived. False: no link is
 * wanted. */
bool dp_conn_met(dp_conn *conn, bool proved, bool refused);
void dp_conn_lose(dp_conn *conn, dp_link_cause cause);
/* Closes without telling the link level. Memory, including that lent by events, is valid until
 * libuv has closed the handle. */
void dp_conn_close(dp_conn *conn);
/* Free the buffers of a connection that has been idle since the last call. */
void dp_conn_trim(dp_conn *conn);
uint64_t dp_conn_waiting(const dp_conn *conn);

/* The port (transport_port.c). False: the number of connections is at its limit, and there is no
 * stranger and no additional bulk connection to close. */
bool dp_port_make_room(dp_transport *transport);
/* Bytes of an incoming connection were read: it may have proved that it holds the run's secret.
 * Closes others only, and calls no hook. */
void dp_port_heard(dp_conn *conn);
/* It has proved its identity, either way. */
void dp_port_proved(dp_conn *conn);
/* Called at each tick: cuts accepted connections that have not sent a byte. Calls no hook. */
void dp_port_cut_silent(dp_transport *transport);

/* Link level, called by the connection level and by transport_stripe.c (transport.c). */
void dp_link_proved(dp_conn *conn, const dp_channel_event *event);
void dp_link_lost(dp_conn *conn, dp_link_cause cause);
void dp_link_drained(dp_conn *conn);
void dp_link_drop_lane(dp_link *link, uint32_t slot); /* of link->lanes */
void dp_link_dial_bulk(dp_transport *transport, dp_link *link, uint8_t stripe);
/* Dials the control connection again, to replace the present one. */
void dp_link_dial_again(dp_transport *transport, dp_link *link);
/* transport_renew.c: dials connections again that are too old. */
void dp_link_renew(dp_transport *transport, dp_link *link);

/* Spending of peers (transport_spend.c). Delivers a message and measures its cost. */
void dp_link_message(dp_conn *conn, dp_view bytes);
/* Bytes are being sent to it on its control lane. */
void dp_link_answered(const dp_link *link, uint64_t bytes);
/* A new link: waits if the guests have spent too much and it is of one. */
void dp_link_enter(dp_conn *conn);
/* The most bytes to read at once on a control connection. */
unsigned dp_conn_read_room(const dp_conn *conn);
/* Called at each tick: reads connections again whose peers have waited long enough. May call
 * hooks. */
void dp_transport_resume(dp_transport *transport);

/* Closes an additional bulk connection of a link, if possible one without bytes under way. False:
 * there is none. Calls no hook. */
bool dp_stripe_give_way(dp_transport *transport);
/* Bulk connections of a link (transport_stripe.c). The one on which a message of size bytes would
 * arrive first, or NULL. */
dp_conn *dp_link_stripe(const dp_link *link, size_t size);
/* True for the connection of a peer that is not a member, as far as this node knows the chain. Its
 * handshake must be done. */
bool dp_conn_is_guest(const dp_conn *conn);
/* As dp_transport_bulk_waiting. */
uint64_t dp_link_bulk_waiting(const dp_link *link);
/* Four times a second: free spare buffers unless they were used. */
void dp_transport_trim(dp_transport *transport);
/* Four times a second: measure the paths of all bulk connections and pace them. */
void dp_transport_measure(dp_transport *transport);
/* Call after it: dials and closes bulk connections of a link. */
void dp_link_measure(dp_transport *transport, dp_link *link);
/* True if no bytes are under way on the connection, as far as this side knows. If there are some
 * nevertheless, they will be requested again. */
bool dp_bulk_is_quiet(const dp_conn *conn);
/* The owner's limits (transport_limit.c). Bytes that a bulk connection may write now; 0: it waits,
 * and dp_bulk_write_on calls it. */
uint64_t dp_conn_may_send(dp_conn *conn);
/* The same for reading, with dp_bulk_read_on: the most bytes at once. */
bool dp_conn_may_read(dp_conn *conn);
size_t dp_conn_read_most(const dp_conn *conn);
/* These bytes were passed to the system, or came from it: counts them, and subtracts them from the
 * limit. */
void dp_conn_sent(dp_conn *conn, uint64_t bytes);
void dp_conn_received(dp_conn *conn, uint64_t bytes);
void dp_conn_leave_lines(dp_conn *conn);
/* Sets the receive window of a bulk connection. */
void dp_conn_set_window(dp_conn *conn);
DP_MUST dp_status dp_transport_limits_open(dp_transport *transport);
void dp_transport_limits_close(dp_transport *transport);
/* Fills in the part of the statistics that the limits keep. */
void dp_transport_limits(const dp_transport *transport, dp_transport_stats *stats);
/* The socket is connected: sets the options that its path needs from the start. */
void dp_conn_set_options(dp_conn *conn);

/* transport.c */
dp_link *dp_link_find(const dp_transport *transport, const dp_peer *peer);
void dp_link_say_goodbye(dp_conn *conn);
bool dp_link_dialing(const dp_transport *transport, const dp_peer *peer, dp_lane lane,
                     uint8_t stripe);

#endif
