/* Describes the path of a bulk connection by the kernel's counters, and decides from that how fast
 * to send at most and how many connections to keep. Arithmetic only: the samples come from
 * path_probe.c, the socket options go there.
 *
 * A short path (loopback, LAN) is left alone. On a long one
 *   queue   srtt > 5/4 min_rtt + 5 ms: what we send waits somewhere
 *   loss    more than 1/1000 of the bytes of a sample again
 *   rate    goodput while a queue stood and there was enough to send: the speed of the path for us.
 *           The best of the last 16 such samples, of which none counts for more than 5/4 of the
 *           best before it, or the pace: data that was held up somewhere comes all at once.
 *   pace    none before the first queue. While one stands 31/32 of rate, and what is above that
 *           queue is drained in a second, at most a tenth of rate: less than that leaves the line
 *           idle between two samples. Without a queue an eighth more whenever three quarters were
 *           used, so that a faster path is found, a quarter more before four samples had a queue.
 *           The first queue stands at the end of a window that doubled, and the sample's mean is
 *           far below what arrived last: then the kernel's rate of delivery counts, up to four
 *           times the goodput. A sample without a queue lowers nothing: it shows how much we had to
 *           send, or how much a window that starts small let through. A cubic that is not paced
 *           overshoots into the queue and loses what it sends: 5.3 s where 3.2 would do (25 MB, 100
 *           Mbit, 100 ms).
 *           A queue that stands for eight samples although we send less than the path carried is
 *           not ours: then an eighth more for one sample. Otherwise the traffic of others, or a
 *           busy machine, would slow us by a thirty-second every four seconds.
 *   share   when most of the connections that send have a queue it is our own line that is full,
 *           and what cubic gives each is chance: all get the same part of the best total. An
 *           exchange is as slow as its slowest.
 *   count   of all connections to one peer together. Loss a second or more after the last queue is
 *           not ours, and one loss-based connection gets 1.22 MSS / (rtt sqrt(loss)) (Mathis et al.
 *           1997). Two lost segments or more in the last 1 MB or less, and more than 1/1000 of it:
 *           twice as many, up to 8. Ten seconds of traffic without loss, or ten minutes without
 *           traffic: one again.
 *   choice  among several the next message goes where it is through first: its bytes and those
 *           before it, in windows of the connection, each of which takes a round trip; a hole that
 *           is being filled costs one more, a window lost as a whole two. */
#ifndef DP_DAEMON_NET_PATH_H
#define DP_DAEMON_NET_PATH_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DP_PATH_CONNECTIONS_MAX = 8,
    /* A record batch of 256 KiB takes 2.1 ms on a line of 1 Gbit/s: on a shorter path sending
     * cannot be smoother than one batch, and no queue that pacing could avoid is measurable. */
    DP_PATH_LONG_RTT_US = 2100,
    DP_PATH_QUEUE_US = 5000,
    DP_PATH_DRAIN_US = 100000,
    DP_PATH_RATES = 16, /* samples, at four a second */
    DP_PATH_KNOWN = 4,
    DP_PATH_STANDS = 8,
    DP_PATH_CALM_SAMPLES = 40,
    DP_PATH_IDLE_SAMPLES = 2400,
    DP_PATH_SEGMENT = 1448,
    DP_PATH_LOSSES_MIN = 2 * DP_PATH_SEGMENT,
    DP_PATH_LOSS_BYTES = 1 << 20,
    DP_PATH_CLEAR_SAMPLES = 4,
    /* A sample with fewer bytes than this does not describe the path: less than two windows of ten
     * segments. */
    DP_PATH_BYTES_MIN = 32 * 1024,
    DP_PATH_PACE_MIN = 128 * 1024 /* bytes per second: a wrong measurement must not starve a link */
};

/* Counters of one connection since its start, as in struct tcp_info of Linux. */
typedef struct dp_path_sample {
    uint64_t now_us;
    uint32_t srtt_us;
    uint32_t min_rtt_us; /* 0: unknown */
    uint64_t acked;      /* bytes */
    uint64_t sent;       /* bytes, including retransmissions */
    uint64_t again;      /* bytes */
    uint64_t busy_us;    /* time with something to send */
    uint64_t delivered;  /* bytes per second over the last round trip; 0: had too little to send */
    uint32_t segments_in;
    uint32_t out_of_order_in; /* segments that arrived after a gap */
} dp_path_sample;

/* Zeroed at the start. */
typedef struct dp_path {
    dp_path_sample last;
    uint64_t rates[DP_PATH_RATES]; /* bytes per second; 0: none */
    uint32_t next_rate;
    uint64_t paced;   /* pace during the last sample */
    uint64_t pace;    /* bytes per second; 0: as fast as TCP allows */
    uint64_t moved;   /* bytes of the last sample, either way */
    uint64_t lost;    /* of them, as far as visible */
    uint32_t clear;   /* samples since the last queue */
    uint32_t queues;  /* samples with a queue, up to DP_PATH_KNOWN */
    uint32_t stands;  /* samples in a row with a queue */
    uint64_t goodput; /* bytes per second in the last sample; 0: had too little to send */
    uint64_t rate;    /* the same, or at the first queue the delivery rate */
    bool queue;
} dp_path;

/* The losses of the connections to one peer that no queue of ours explains. Zeroed at the start. */
typedef struct dp_path_loss {
    uint32_t wanted; /* connections, 1 to DP_PATH_CONNECTIONS_MAX; 0: nothing was measured yet */
    uint64_t moved;  /* bytes since the number changed, the last DP_PATH_LOSS_BYTES or so */
    uint64_t lost;
    uint32_t calm; /* samples in a row with traffic and without loss */
    uint32_t idle; /* samples in a row without traffic */
} dp_path_loss;

/* The traffic that leaves through this machine's line. Zeroed at the start. */
typedef struct dp_path_line {
    uint64_t totals[DP_PATH_RATES]; /* total rates of samples in which the line was full */
    uint32_t next_total;
    /* goodputs of samples in which some connection had enough to send */
    uint64_t sums[DP_PATH_RATES];
    uint32_t next_sum;
    uint32_t stands; /* consecutive samples in which it was full */
} dp_path_line;

/* One more sample, several rtt after the last one. */
void dp_path_step(dp_path *path, const dp_path_sample *sample);

/* All connections to one peer, after a step of each. */
void dp_path_count(dp_path_loss *loss, dp_path *const *paths, uint32_t n_paths);

/* The state of a connection to which a message may be given now. */
typedef struct dp_path_room {
    uint64_t waiting; /* bytes that were sent and not acknowledged, or not sent */
    uint64_t window;  /* bytes that may be under way */
    bool hole;        /* a retransmission is under way */
    bool stalled;     /* because of a timeout */
} dp_path_room;

/* Round trips until size more bytes have arrived, in 1/16. */
uint64_t dp_path_turns(const dp_path_room *room, uint64_t size);

/* All connections of this machine that may share its line, after a step of each. */
void dp_path_share(dp_path_line *line, dp_path *const *paths, uint32_t n_paths);

/* Bytes per second: the best of the last samples with enough data to send. 0: there was none, as on
 * a LAN. */
uint64_t dp_path_uplink(const dp_path_line *line);

/* path_probe.c. False: not a TCP socket, or the kernel reports too little. */
bool dp_path_read(int fd, dp_path_sample *sample);
bool dp_path_look(int fd, dp_path_room *room);
/* Sets the options that every connection gets at its start. Best effort: an older kernel lacks
 * some. */
void dp_path_set_options(int fd, bool bulk);
/* 0: no limit. */
void dp_path_set_pace(int fd, uint64_t bytes_per_second);
/* The largest receive window, in bytes, that TCP offers the sender; a window that was already
 * offered remains. */
void dp_path_set_window(int fd, int bytes);
/* bbr paces loopback to a third of its speed, so if bbr is the system's default, a short path gets
 * cubic, or reno. */
void dp_path_set_short(int fd);

#endif
