/* Encrypted TCP links to peers over libuv: dialing, accepting, the handshake, and two lanes per
 * link, so that control messages never wait behind bulk data. It does not know the meaning of
 * messages. All calls and hooks on the loop thread. */
#ifndef DP_DAEMON_NET_TRANSPORT_H
#define DP_DAEMON_NET_TRANSPORT_H

#include <uv.h>

#include "gossip/channel/channel.h"
#include "gossip/node/node.h"

enum {
    /* A run's only voter has a link to every other node, of two connections each. The rest is for
     * connections at the port (daemon/net/port.h) and dials. */
    DP_TRANSPORT_CONNECTIONS_MAX = 5120,
    /* Links of guests. While a node is up, it keeps DP_GUESTS_MAX of them; this is the bound while
     * its store is read and nobody is known to be a member. */
    DP_TRANSPORT_GUESTS_MAX = 512,
    DP_TRANSPORT_TICK_MS = 250,
    /* Limit until the first byte of an accepted connection: a second. Counted in ticks, between
     * which sockets are read, so that a machine that was suspended for a while does not cut
     * connections whose bytes have arrived. */
    DP_TRANSPORT_SILENT_TICKS = 1000 / DP_TRANSPORT_TICK_MS,
    DP_TRANSPORT_HANDSHAKE_MS = 5000,
    DP_TRANSPORT_RENEW_MS = 3600 * 1000, /* then a connection gets new keys: transport_renew.c */
    DP_TRANSPORT_DIAL_MS = 3000,         /* per address */
    /* A dial of the peer that began before a connection existed has ended by then. */
    DP_TRANSPORT_SETTLED_MS = DP_TRANSPORT_DIAL_MS + DP_TRANSPORT_HANDSHAKE_MS,
    DP_TRANSPORT_CONTROL_QUEUE =
        8 << 20, /* bytes waiting on a control lane; beyond that the link is cut */
    DP_TRANSPORT_GUEST_QUEUE = 256 << 10, /* the same for a guest */
    DP_TRANSPORT_BULK_QUEUE = 16 << 20,   /* bytes waiting on a bulk lane; beyond that DP_AGAIN */
    DP_TRANSPORT_BULK_LOW =
        512 << 10 /* below this the bulk lane asks for more through hooks.drained */
};
#define DP_TRANSPORT_RENEW_BYTES (64ULL << 30)

typedef struct dp_transport dp_transport;

/* The bandwidth that the owner allows this node (daemon/net/throttle.h), in bytes per second, at
 * most DP_THROTTLE_RATE_MAX; 0: unlimited. */
typedef struct dp_limits {
    uint64_t upload;
    uint64_t download;
} dp_limits;

typedef struct dp_transport_hooks {
    void *context;
    void (*link_up)(void *context, const dp_peer *peer, const dp_addr *addr, dp_view credential,
                    dp_view hello, bool outgoing);
    void (*link_down)(void *context, const dp_peer *peer, dp_link_cause cause);
    void (*message)(void *context, const dp_peer *peer, dp_view bytes);
    void (*drained)(void *context, const dp_peer *peer);
    bool (*known)(void *context, const dp_peer *peer,
                  uint8_t x_public[32]); /* in the roster: see dp_channel_config.member */
    /* It has a guest's share of memory, and its address no reserve at the port: it is not in the
     * roster, or the roster is still being read, when known says yes. NULL: nobody. */
    bool (*guest)(void *context, const dp_peer *peer);
    /* Reports the clock of the other end of a handshake. peer: proved; NULL: from the first
     * message, whose time is too far from this clock and which may be a replay. refused: the peer's
     * certificate is not valid now, or its first message was refused because of its time. False: no
     * link is wanted, since the other end will cut it. met may be NULL. */
    bool (*met)(void *context, const dp_peer *peer, const dp_addr *addr, uint64_t peer_ms,
                bool refused);
    uint64_t (*wall_ms)(
        void *context); /* unix time to judge certificates by; NULL: the machine's */
    /* A member's certificate has ended: see dp_channel_config.renewed. NULL: it is not renewed. */
    bool (*renewed)(void *context, const dp_peer *peer, dp_view hello, uint64_t now_ms);
} dp_transport_hooks;

typedef struct dp_transport_config {
    uv_loop_t *loop;
    dp_run_id run;
    uint8_t root[DP_PUBLIC_KEY_BYTES];
    dp_channel_psk psk;   /* of the newest epoch */
    dp_channel_psk older; /* has_older: of the one before, valid too */
    bool has_older;
    const dp_identity *identity; /* borrowed until close */
    dp_view credential;          /* copied */
    dp_view hello;               /* copied; shown to peers: see daemon/net/hello.h */
    uint64_t incarnation;
    /* Ciphers for records, [id - 1], static; all NULL: the fastest of this machine
     * (daemon/net/aead.h). */
    const dp_suite *suites[DP_SUITES];
    dp_limits limits; /* from the start */
    uint32_t
        /* threads that seal and open bulk records: dp_crypto_pool_fit; 0: the loop thread does
         * it */
        n_threads;
    dp_transport_hooks hooks;
} dp_transport_config;

typedef struct dp_transport_stats {
    uint64_t bytes_sent;
    uint64_t bytes_received;
    /* the best recent rate on long paths in bytes per second (path.h), or the limit if that is
     * lower or no rate is known; 0: unknown */
    uint64_t uplink;
    dp_limits limits;
    uint64_t upload_held_us; /* total time in which some bulk connection waited for the limit */
    uint64_t download_held_us;
    uint64_t handshakes;
    uint64_t handshakes_failed; /* strangers, garbage, wrong keys, timeouts */
    /* of these, our dials that the other side cut soon: it refuses this node, or is a proxy whose
     * node is down */
    uint64_t dials_cut;
    uint64_t accepts_refused; /* no place, or displaced by others at the port */
    uint32_t links;
    uint32_t connections;
    uint64_t held; /* bytes of memory that peers make this node hold now (peer_memory.h) */
    uint64_t held_guests;
    uint64_t held_most; /* messages of several records so far */
    uint64_t held_limit;
} dp_transport_stats;

DP_MUST dp_status dp_transport_open(dp_transport **transport, const dp_transport_config *config);
/* Says goodbye on every link (authenticated close), closes all handles; memory is freed when libuv
 * has closed them. */
void dp_transport_close(dp_transport *transport);

/* Checks only the form of an address to listen on. DP_BADARG: invalid, and why gives the form. */
DP_MUST dp_status dp_transport_check(const char *address, dp_why *why);

/* Checks whether listening there is possible now, and does not keep listening. DP_BADARG, as above;
 * DP_BUSY: taken. */
DP_MUST dp_status dp_transport_try(const char *address, dp_why *why);

/* "ADDR:PORT". *port: the bound one. DP_BUSY: taken; DP_BADARG: not an address; why gives the
 * fix. */
DP_MUST dp_status dp_transport_listen(dp_transport *transport, const char *address, uint16_t *port,
                                      dp_why *why);

/* Tries addresses in order until one answers as this peer; without a peer (NULL) as any member of
 * the run. Does nothing if a link, or a dial to the same peer, exists. */
void dp_transport_dial(dp_transport *transport, const dp_peer *peer, const dp_addr *addrs,
                       uint32_t n_addrs);
void dp_transport_hangup(dp_transport *transport, const dp_peer *peer);

/* DP_NOTFOUND: no link (or no bulk lane yet), or its control queue is full and the link will be
 * cut. DP_AGAIN: the bulk queue is full. DP_TOOBIG. Calls no hook. */
DP_MUST dp_status dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                                    dp_view bytes);
/* Sends on the bulk lane without a copy: takes the bytes, which leaves message empty; after an
 * error it is unchanged. */
DP_MUST dp_status dp_transport_give(dp_transport *transport, const dp_peer *peer, dp_buf *message);
/* An empty buffer with room for size bytes, for dp_transport_give: if possible one that was sent
 * before, whose pages are in the cache. DP_NOMEM, DP_TOOBIG above DP_MESSAGE_BULK_MAX. */
DP_MUST dp_status dp_transport_buffer(dp_transport *transport, size_t size, dp_buf *buffer);
/* Bytes waiting on the bulk connection of a peer with the fewest; UINT64_MAX without one. */
uint64_t dp_transport_bulk_waiting(const dp_transport *transport, const dp_peer *peer);
/* True for a peer that is not a member, as far as this node knows the chain (hooks.guest). */
bool dp_transport_is_guest(const dp_transport *transport, const dp_peer *peer);
/* Bytes that wait on the bulk connections of all links, or of guests'. */
uint64_t dp_transport_waiting(const dp_transport *transport, bool guests);
/* On the control lane of every link. */
void dp_transport_send_all(dp_transport *transport, dp_view bytes);

/* Calls hooks.link_up again for every existing link, once each: for a user that starts later. */
void dp_transport_replay(dp_transport *transport);

/* Sets other limits. Control messages never wait for them. */
void dp_transport_limit(dp_transport *transport, const dp_limits *limits);
/* Sets another hello for later handshakes; at most DP_CHANNEL_HELLO_MAX bytes, copied. */
void dp_transport_say(dp_transport *transport, dp_view hello);

/* Sets other pre-shared keys for later handshakes. older NULL: there is none. */
void dp_transport_keys(dp_transport *transport, const dp_channel_psk *psk,
                       const dp_channel_psk *older);

/* A member had this address before this start: it has a reserve at the port. Nothing for a name. */
void dp_transport_remember(dp_transport *transport, const dp_addr *addr);

void dp_transport_look(const dp_transport *transport, dp_transport_stats *stats);

/* Bytes of all links with this peer since the start, from the end of their handshakes on. False:
 * there was none, or so many other peers came since that they are forgotten (peer_traffic.h). */
bool dp_transport_traffic(const dp_transport *transport, const dp_peer *peer, uint64_t *sent,
                          uint64_t *received);

/* Text form of an address, "127.0.0.1:7717". */
enum { DP_ADDR_TEXT_MAX = DP_ADDRESS_TEXT_MAX };
void dp_addr_text(const dp_addr *addr, char text[DP_ADDR_TEXT_MAX]);

#endif
