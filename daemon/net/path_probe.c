/* Reads the state of a connection from the kernel and sets its options. It declares all fields of
 * Linux's struct tcp_info; the one of netinet/tcp.h is shorter. */
#include "daemon/net/path.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum {
    USER_TIMEOUT_MS =
        15000, /* TCP gives up on unacknowledged data; our own probes are much faster */
    /* Unsent bytes that the kernel takes: a record batch, or a few small messages, so that the
     * order of the messages queued above can still change. */
    UNSENT_BULK = 256 * 1024,
    UNSENT_CONTROL = 64 * 1024
};

bool dp_path_read(int fd, dp_path_sample *sample)
{
    struct tcp_info info;
    socklen_t size = sizeof info;
    struct timespec now;

    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_rcv_ooopack) + sizeof info.tcpi_rcv_ooopack ||
        clock_gettime(CLOCK_MONOTONIC, &now) != 0) {
        return false;
    }
    *sample = (dp_path_sample){
        .now_us = (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U,
        .srtt_us = info.tcpi_rtt,
        .min_rtt_us = info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt,
        .acked = info.tcpi_bytes_acked,
        .sent = info.tcpi_bytes_sent,
        .again = info.tcpi_bytes_retrans,
        .busy_us = info.tcpi_busy_time,
        .delivered = info.tcpi_delivery_rate_app_limited != 0 ? 0 : info.tcpi_delivery_rate,
        .segments_in = info.tcpi_data_segs_in,
        .out_of_order_in = info.tcpi_rcv_ooopack,
    };
    return true;
}

bool dp_path_look(int fd, dp_path_room *room)
{
    enum { RECOVERY = 3, LOSS = 4 }; /* enum tcp_ca_state */
    struct tcp_info info;
    socklen_t size = sizeof info;

    memset(&info, 0, sizeof info);
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 ||
        size < offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof info.tcpi_notsent_bytes) {
        return false;
    }
    *room = (dp_path_room){
        .waiting = (uint64_t)info.tcpi_unacked * info.tcpi_snd_mss + info.tcpi_notsent_bytes,
        .window = (uint64_t)info.tcpi_snd_cwnd * info.tcpi_snd_mss,
        .hole = info.tcpi_ca_state >= RECOVERY,
        .stalled = info.tcpi_ca_state >= LOSS,
    };
    return true;
}

/* Best effort, so it returns nothing. */
static void set(int fd, int level, int name, const void *value, socklen_t size)
{
    if (setsockopt(fd, level, name, value, size) != 0) {
        return;
    }
}

void dp_path_set_options(int fd, bool bulk)
{
    const unsigned timeout = USER_TIMEOUT_MS;
    const int unsent = bulk ? UNSENT_BULK : UNSENT_CONTROL;

    set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, sizeof timeout);
    set(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &unsent, sizeof unsent);
}

void dp_path_set_pace(int fd, uint64_t bytes_per_second)
{
    const uint64_t rate = bytes_per_second == 0 ? UINT64_MAX : bytes_per_second;
    set(fd, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate);
}

void dp_path_set_window(int fd, int bytes)
{
    set(fd, IPPROTO_TCP, TCP_WINDOW_CLAMP, &bytes, sizeof bytes);
}

void dp_path_set_short(int fd)
{
    static const char *const others[] = {"cubic", "reno"};
    char name[16] = "";
    socklen_t size = sizeof name - 1;

    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &size) != 0 || strcmp(name, "bbr") != 0) {
        return;
    }
    for (unsigned i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, others[i], (socklen_t)strlen(others[i])) ==
            0) {
            return;
        }
    }
}
