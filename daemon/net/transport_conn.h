/* One TCP connection with its channel: the half of the transport below links. The private header
 * of the transport. */
#ifndef DP_DAEMON_NET_TRANSPORT_CONN_H
#define DP_DAEMON_NET_TRANSPORT_CONN_H

#include "base/list.h"
#include "daemon/net/crypto_pool.h"
#include "daemon/net/listener.h"
#include "daemon/net/path.h"
#include "daemon/net/peer_memory.h"
#include "daemon/net/port.h"
#include "daemon/net/throttle.h"
#include "daemon/net/transport.h"

/* Spare buffers: enough for the one-record messages that wait in three lanes of an exchange, and no
 * more bytes than a lane's queue. */
enum { DP_TRANSPORT_SPARES_MAX = 64, DP_TRANSPORT_SPARE_BYTES_MAX = DP_TRANSPORT_BULK_QUEUE };

typedef struct dp_link dp_link;
typedef struct dp_bulk dp_bulk;

/* The peer that a dial should reach, and the addresses left to try. */
typedef struct dp_dial {
    dp_lane lane;
    uint8_t stripe;
    bool expects_peer;
    dp_peer expected;
    bool asked_again; /* this address told its time, and is dialed once more with it */
    bool older;       /* under the older pre-shared key: the other end may not have the newest */
    int64_t ahead_ms; /* how far its clock is ahead then */
    uint32_t n_addrs;
    uint32_t next_addr;
    dp_addr addrs[DP_ADDRS_MAX];
} dp_dial;

typedef struct dp_conn {
    uv_tcp_t tcp;
    dp_list item; /* in transport->conns */
    dp_transport *transport;
    dp_link *link; /* set once the peer is proven and the link keeps this connection */
    dp_channel channel;
    bool channel_open; /* channel must be closed */
    bool connected;
    bool met; /* the time of its clock has been told */
    bool outgoing;
    bool closing;
    bool writing;
    bool spoke;         /* a byte came */
    bool idle;          /* nothing was read or written since the last tick */
    dp_link_cause doom; /* not 0: the next tick declares it lost for this cause */
    dp_lane lane;
    uint8_t silent_ticks; /* since it was accepted, without a byte */
    dp_place place;       /* at the port, from when it was accepted until it has proved itself */
    uint8_t stripe;       /* bulk: which of the link's connections */
    dp_path path;         /* bulk */
    uint64_t pace;        /* as the socket was last told */
    dp_throttle_place up, down; /* bulk: in the lines for the owner's limits */
    dp_addr addr;
    uint64_t deadline_ms; /* uv_now: dial or handshake must be over; 0 once it is */
    uint64_t proved_ms;   /* uv_now: when the peer had proved its identity */
    uint64_t moved;       /* bytes, both ways */
    bool replaced;        /* by a newer one of its link; the other end closes it */
    dp_dial dial;         /* outgoing */
    uv_connect_t connect;
    uv_write_t write;
    dp_buf in_flight; /* being written */
    dp_buf out;       /* waits for the write under way */
    /* the bulk lane once the handshake is done: then the two above and channel's buffers rest */
    dp_bulk *bulk;
} dp_conn;

/* A peer that has proved its identity. */
struct dp_link {
    dp_list item; /* in transport->links */
    dp_peer peer;
    uint64_t boot_id;
    /* [DP_LANE_CONTROL] is never NULL while the link stands; [DP_LANE_BULK + stripe]: bulk
     * connections. */
    dp_conn *lanes[DP_LANE_BULK + DP_CHANNEL_STRIPES_MAX];
    uint64_t bulk_retry_ms;
    uint64_t stripe_retry_ms;
    uint64_t renew_retry_ms;
    dp_path_loss loss;
    size_t credential_bytes;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
};

struct dp_transport {
    dp_transport_config config;
    uint8_t credential[DP_CREDENTIAL_BYTES_MAX];
    uint8_t hello[DP_CHANNEL_HELLO_MAX];
    dp_listener *listener;          /* NULL: not listening */
    struct sockaddr_storage source; /* where dials come from; AF_UNSPEC: the system chooses */
    uv_timer_t *tick;
    uv_timer_t *meter; /* until somebody in one of the lines can be called */
    dp_throttle up;
    dp_throttle down;
    dp_crypto_pool *crypto_pool;
    dp_list conns;
    dp_list links;
    uint32_t n_conns;
    dp_port port;
    dp_replay_cache replays; /* of first messages that came */
    bool closing;
    /* of messages that were sent; all go when a tick saw none used */
    dp_buf spares[DP_TRANSPORT_SPARES_MAX];
    uint32_t n_spares;
    uint64_t spare_bytes;
    dp_path_line line;          /* bytes that leave this machine */
    dp_peer_memory peer_memory; /* of messages that arrive */
    /* a connection is dialled again when it is so old, or so much has gone over it */
    uint64_t renew_ms;
    uint64_t renew_bytes;
    bool spares_idle;
    /* bulk connections of a link that this side dialed, loss or not; 0: one */
    uint32_t stripes_min;
    dp_transport_stats stats;
    char read_buffer[64 * 1024]; /* lent to libuv for the length of one read callback */
};

/* Connection level (transport_conn.c). */
dp_conn *dp_conn_new(dp_transport *transport, bool outgoing, dp_lane lane);
/* Connect to the first address of the plan that a socket can be opened for; false when none is
 * left. */
bool dp_conn_dial(dp_transport *transport, dp_dial *plan);
/* A node that listens on one of several addresses also dials from it; address is the one that was
 * bound. */
void dp_conn_set_source(dp_transport *transport, const struct sockaddr_storage *address);
/* Waits for the first bytes of a connection that was accepted; most of its cost begins only
 * then. */
void dp_conn_await(dp_conn *conn);
void dp_conn_flush(dp_conn *conn);
/* Writes the waiting bytes if the kernel takes them now: the connection is closed next. */
void dp_conn_say_last(dp_conn *conn);
/* Begin, or go on, to read; not 0: an error of libuv. */
int dp_conn_read(dp_conn *conn);
/* Tell the link level, unless it is closing already. */
/* Tells hooks.met once the time of the other end's clock, if it has come. False: no link is
 * wanted. */
bool dp_conn_met(dp_conn *conn, bool proved, bool refused);
void dp_conn_lose(dp_conn *conn, dp_link_cause cause);
/* Close without telling the link level. Memory, and what events lent, lives until libuv has closed
 * the handle. */
void dp_conn_close(dp_conn *conn);
/* Free the buffers of a connection that has been idle since the last call. */
void dp_conn_trim(dp_conn *conn);
uint64_t dp_conn_waiting(const dp_conn *conn);

/* The port (transport_port.c). False: there are as many connections as there may be, and no
 * stranger that could go. */
bool dp_port_make_room(dp_transport *transport);
/* Bytes of an incoming connection were read: it may have proved that it holds the run's secret.
 * Closes others only, and calls no hook. */
void dp_port_heard(dp_conn *conn);
/* It has proved its identity, either way. */
void dp_port_proved(dp_conn *conn);
/* At each tick: cut those that were accepted and have not sent a byte. Calls no hook. */
void dp_port_cut_silent(dp_transport *transport);

/* Link level, called by the connection level and by transport_stripe.c (transport.c). */
void dp_link_proved(dp_conn *conn, const dp_channel_event *event);
void dp_link_message(dp_conn *conn, dp_view bytes);
void dp_link_lost(dp_conn *conn, dp_link_cause cause);
void dp_link_drained(dp_conn *conn);
void dp_link_drop_lane(dp_link *link, uint32_t slot); /* of link->lanes */
void dp_link_dial_bulk(dp_transport *transport, dp_link *link, uint8_t stripe);
/* The control connection once more, to take the place of the one that stands. */
void dp_link_dial_again(dp_transport *transport, dp_link *link);
/* transport_renew.c: have connections dialled again that are too old. */
void dp_link_renew(dp_transport *transport, dp_link *link);

/* Bulk connections of a link (transport_stripe.c). The one that is through first with a message of
 * size bytes, or NULL. */
dp_conn *dp_link_stripe(const dp_link *link, size_t size);
/* Of a peer that is no member, as far as this node knows the chain. Its handshake is done. */
bool dp_conn_is_guest(const dp_conn *conn);
/* As dp_transport_bulk_waiting. */
uint64_t dp_link_bulk_waiting(const dp_link *link);
/* Four times a second: free spare buffers unless they were used. */
void dp_transport_trim(dp_transport *transport);
/* Four times a second: measure the paths of all bulk connections and pace them. */
void dp_transport_measure(dp_transport *transport);
/* After it: dial and close bulk connections of a link. */
void dp_link_measure(dp_transport *transport, dp_link *link);
/* True if nothing is on its way on the connection, as far as this side can see. If something is on
 * its way all the same, it will be asked for again. */
bool dp_bulk_is_quiet(const dp_conn *conn);
/* The owner's limits (transport_limit.c). Bytes that a bulk connection may write now; 0: it waits,
 * and dp_bulk_write_on calls it. */
uint64_t dp_conn_may_send(dp_conn *conn);
/* The same for reading, with dp_bulk_read_on: at most so many bytes at once. */
bool dp_conn_may_read(dp_conn *conn);
size_t dp_conn_read_most(const dp_conn *conn);
/* They have gone to the system, or come from it: counted, and paid for. */
void dp_conn_sent(dp_conn *conn, uint64_t bytes);
void dp_conn_received(dp_conn *conn, uint64_t bytes);
void dp_conn_leave_lines(dp_conn *conn);
/* Of a bulk connection: the bytes that may be on their way to this node unread. */
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
