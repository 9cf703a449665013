/* The virtual network: connections, delay, bandwidth, loss, copies, partitions. Decides when bytes
 * arrive, not what they mean. Draws from a separate stream, so that turning off another class of
 * faults does not change this one. */
#ifndef DP_SIM_NET_H
#define DP_SIM_NET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/rng.h"
#include "tests/sim/queue.h"

enum { DP_NET_CONTROL = 0, DP_NET_BULK = 1 };

/* Rates of faults. Shares are per 65536 messages. */
typedef struct dp_net_weather {
    uint32_t loss;
    uint32_t spike;
    uint32_t copy;
    uint32_t reorder;
    uint32_t damage; /* the message does not decrypt: its link is cut */
    uint32_t spike_us_max;
    uint32_t jitter_us;
} dp_net_weather;

/* Numbers of messages by fault. */
typedef struct dp_net_harm {
    uint64_t loss;
    uint64_t spike;
    uint64_t copy;
    uint64_t reorder;
    uint64_t damage;
} dp_net_harm;

typedef struct dp_net_end {
    uint64_t connection; /* 0: down */
} dp_net_end;

typedef struct dp_net_path {
    uint64_t blocked_until; /* 0: open */
    uint64_t last_at[2];    /* messages of a stream stay in order */
    uint32_t delay_us;
    bool hold; /* messages sent while blocked arrive when it opens; otherwise they are lost */
} dp_net_path;

typedef struct dp_net {
    uint32_t n;
    dp_rng rng;
    dp_net_weather weather;
    dp_net_end *ends;       /* [n][n]: the link to b as node a sees it */
    dp_net_path *paths;     /* [n][n]: from a to b */
    uint64_t *free_at;      /* [n][2]: time at which the sender's line is free */
    uint32_t *bytes_per_ms; /* [n] */
    uint32_t sites;         /* node i is at site i % sites; 0: no sites */
    uint64_t connections;
    uint64_t sent;
    dp_net_harm harm; /* done so far */
} dp_net;

DP_MUST dp_status dp_net_open(dp_net *net, uint32_t n, uint64_t seed);
void dp_net_close(dp_net *net);
/* Delays by place: near ones 50..500 us, or with wide 1..80 ms between two of up to four
 * regions. */
void dp_net_lay_out(dp_net *net, bool wide, bool slow_lines);
/* The same for so many sites, 5..25 ms from each other; jitter stays so small that it does not hide
 * them. */
void dp_net_lay_sites(dp_net *net, uint32_t sites, bool slow_lines);
bool dp_net_afar(const dp_net *net, uint32_t a, uint32_t b);

dp_net_path *dp_net_path_of(const dp_net *net, uint32_t from, uint32_t to);
bool dp_net_blocked(const dp_net *net, uint64_t now_us, uint32_t from, uint32_t to);
void dp_net_block(dp_net *net, uint32_t from, uint32_t to, uint64_t until_us, bool hold);
void dp_net_heal(dp_net *net, uint64_t now_us);
bool dp_net_linked(const dp_net *net, uint32_t a, uint32_t b);

/* Sends a message (takes one use of the packet). The fault rates decide whether it is lost, late or
 * doubled. */
DP_MUST dp_status dp_net_send(dp_net *net, dp_queue *queue, uint64_t now_us, uint32_t from,
                              uint32_t to, dp_packet *packet, uint32_t lane);
/* Tells b that a has closed its end, after the delay of the path and the messages under way; not
 * while blocked. */
DP_MUST dp_status dp_net_reset(dp_net *net, dp_queue *queue, uint64_t now_us, uint32_t a,
                               uint32_t b, uint64_t connection, uint16_t cause);
/* The connection between a and b breaks, and both notice; does nothing without a connection. */
DP_MUST dp_status dp_net_cut(dp_net *net, dp_queue *queue, uint64_t at_us, uint32_t a, uint32_t b,
                             uint16_t cause);

#endif
