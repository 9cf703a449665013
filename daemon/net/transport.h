/* Encrypted TCP links to peers over libuv: dialing, accepting, the handshake, and two lanes per
 * link, so that control messages never wait behind bulk data. It does not know the meaning of
 * messages. All calls and hooks on the loop thread. */
#ifndef DP_DAEMON_NET_TRANSPORT_H
#define DP_DAEMON_NET_TRANSPORT_H

#include <uv.h>

#include "gossip/channel/channel.h"
#include "gossip/node/node.h"

enum {
    DP_TRANSPORT_CONNECTIONS_MAX = 1024, /* of these at the port: daemon/net/port.h */
    DP_TRANSPORT_TICK_MS = 250,
    /* Until the first byte of a connection that was accepted: a second. Counted in ticks, between
     * which sockets are read, so that a machine that stood still for a while cuts no connection
     * whose bytes have come. */
    DP_TRANSPORT_SILENT_TICKS = 1000 / DP_TRANSPORT_TICK_MS,
    DP_TRANSPORT_HANDSHAKE_MS = 5000,
    DP_TRANSPORT_RENEW_MS = 3600 * 1000, /* then a connection gets new keys: transport_renew.c */
    DP_TRANSPORT_DIAL_MS = 3000,         /* per address */
    /* A dial of the peer that began before a connection stood is over by then. */
    DP_TRANSPORT_SETTLED_MS = DP_TRANSPORT_DIAL_MS + DP_TRANSPORT_HANDSHAKE_MS,
    DP_TRANSPORT_CONTROL_QUEUE =
        8 << 20, /* bytes waiting on a control lane; beyond: the link is cut */
    DP_TRANSPORT_BULK_QUEUE = 16 << 20, /* bytes waiting on a bulk lane; beyond: DP_AGAIN */
    DP_TRANSPORT_BULK_LOW =
        512 << 10 /* below this the bulk lane asks for more through hooks.drained */
};
#define DP_TRANSPORT_RENEW_BYTES (64ULL << 30)

typedef struct dp_transport dp_transport;

/* The bandwidth that the owner lets this node take of its line (daemon/net/throttle.h), in bytes
 * per second, at most DP_THROTTLE_RATE_MAX; 0: all of it. */
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
    /* Tells the time that the clock of the other end of a handshake shows. peer: proved; NULL: the
     * first message, which is too far from this clock and may be an old one that somebody repeats.
     * refused: the peer's certificate is not valid now, or its first message was refused because of
     * its time. False: no link is wanted, since the other end will cut it. met itself may be NULL:
     * of no interest. */
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
        n_threads; /* that seal and open bulk records: dp_crypto_pool_fit; 0: the loop's does */
    dp_transport_hooks hooks;
} dp_transport_config;

typedef struct dp_transport_stats {
    uint64_t bytes_sent;
    uint64_t bytes_received;
    /* bytes per second that left on long paths at best lately (path.h), or the limit if that is
     * less, or is all that is known; 0: unknown */
    uint64_t uplink;
    dp_limits limits;
    uint64_t upload_held_us; /* in all, some bulk connection waited for the limit */
    uint64_t download_held_us;
    uint64_t handshakes;
    uint64_t handshakes_failed; /* strangers, garbage, wrong keys, timeouts */
    uint64_t dials_cut;         /* of these, ours that the other side cut soon: not wanted there */
    uint64_t accepts_refused;   /* no place, or gave way to others at the port */
    uint32_t links;
    uint32_t connections;
    uint64_t held; /* bytes of memory that peers make this node hold now: see held.h */
    uint64_t held_guests;
    uint64_t held_most; /* that came in pieces, ever */
    uint64_t held_limit;
} dp_transport_stats;

DP_MUST dp_status dp_transport_open(dp_transport **transport, const dp_transport_config *config);
/* Says goodbye on every link (authenticated close), closes all handles; memory goes when libuv has
 * closed them. */
void dp_transport_close(dp_transport *transport);

/* Could address be listened on, by its form alone? DP_BADARG: no, and why gives the form. */
DP_MUST dp_status dp_transport_check(const char *address, dp_why *why);

/* Could it be listened on now? Nobody is left listening. DP_BADARG, as above; DP_BUSY: taken. */
DP_MUST dp_status dp_transport_try(const char *address, dp_why *why);

/* "ADDR:PORT". *port: the bound one. DP_BUSY: taken; DP_BADARG: not an address; why gives the
 * fix. */
DP_MUST dp_status dp_transport_listen(dp_transport *transport, const char *address, uint16_t *port,
                                      dp_why *why);

/* Try addresses in order until one answers as this peer. Without a peer (NULL) anybody of the run
 * will do. A link that stands, or a dial to the same peer under way, makes this do nothing. */
void dp_transport_dial(dp_transport *transport, const dp_peer *peer, const dp_addr *addrs,
                       uint32_t n_addrs);
void dp_transport_hangup(dp_transport *transport, const dp_peer *peer);

/* DP_NOTFOUND: no link (or no bulk lane yet), or its control queue is full and it will be cut.
 * DP_AGAIN: the bulk queue is full. DP_TOOBIG. Sending calls no hook. */
DP_MUST dp_status dp_transport_send(dp_transport *transport, const dp_peer *peer, dp_lane lane,
                                    dp_view bytes);
/* On the bulk lane without a copy: takes the bytes, which leaves message empty; after an error it
 * is as before. */
DP_MUST dp_status dp_transport_give(dp_transport *transport, const dp_peer *peer, dp_buf *message);
/* An empty buffer with room for size bytes, for dp_transport_give: one that was sent before, whose
 * pages are warm, if there is one. DP_NOMEM, DP_TOOBIG above DP_MESSAGE_BULK_MAX. */
DP_MUST dp_status dp_transport_buffer(dp_transport *transport, size_t size, dp_buf *buffer);
/* Bytes that wait on the bulk connection of a peer that has the fewest; UINT64_MAX without one. */
uint64_t dp_transport_bulk_waiting(const dp_transport *transport, const dp_peer *peer);
/* A peer that is no member, as far as this node knows the chain. */
bool dp_transport_is_guest(const dp_transport *transport, const dp_peer *peer);
/* Bytes that wait on the bulk connections of all links, or of guests'. */
uint64_t dp_transport_waiting(const dp_transport *transport, bool guests);
/* On the control lane of every link. */
void dp_transport_send_all(dp_transport *transport, dp_view bytes);

/* Call hooks.link_up once more for every link that stands: for a listener that came late. */
void dp_transport_replay(dp_transport *transport);

/* Other limits from now on. Control messages never wait for them. */
void dp_transport_limit(dp_transport *transport, const dp_limits *limits);
/* Another hello, for handshakes from now on; at most DP_CHANNEL_HELLO_MAX bytes, copied. */
void dp_transport_say(dp_transport *transport, dp_view hello);

/* Other pre-shared keys, for handshakes from now on. older NULL: there is none. */
void dp_transport_keys(dp_transport *transport, const dp_channel_psk *psk,
                       const dp_channel_psk *older);

void dp_transport_look(const dp_transport *transport, dp_transport_stats *stats);

/* Text form of an address, "127.0.0.1:7717". */
enum { DP_ADDR_TEXT_MAX = DP_ADDRESS_TEXT_MAX };
void dp_addr_text(const dp_addr *addr, char text[DP_ADDR_TEXT_MAX]);

#endif
