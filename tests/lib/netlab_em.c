/* The forwarder of netlab.sh: moves packets between the TUN devices of N network namespaces and
 * applies rate, delay, loss and cuts. Not part of any library; netlab.sh compiles and starts it as
 * netlab_em LAB N FOLDER.
 *
 * FOLDER/ctl (a fifo) takes one command per line, "TOKEN VERB NUMBERS...", and FOLDER/ack holds the
 *   TOKEN of the last one: set HOST UP DOWN DELAY LOSS QUEUE   bit/s twice, ns, parts per million,
 *   ns; -1 keeps; HOST 0 is every host site HOST NUMBER                 hosts of one site, unless
 *   it is 0, have a free line between them; HOST 0 is every host cut A B WAYS                     B
 *   0 is every host; WAYS 1 or 2
 *   heal                             undoes all cuts
 *   stats RESET                      writes FOLDER/stats */
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    HOSTS_MAX = 64,
    PATH_BYTES = 256,
    PACKET_BYTES_MAX = 65536,
    READS_IN_A_ROW = 32,
    NS_PER_S = 1000000000
};

/* Columns of the statistics. */
enum {
    TX_PACKETS,
    TX_BYTES,
    RX_PACKETS,
    RX_BYTES,
    LOST,
    UPLINK_FULL,
    DOWNLINK_FULL,
    CUT,
    NEAR_BYTES, /* sent inside its site; the others are of the line */
    COUNTERS
};

typedef struct packet {
    int64_t due_ns;
    uint64_t number; /* Packets with the same due time leave in order. */
    size_t size;
    unsigned from;
    unsigned to;
    bool in_downlink;
    uint8_t data[];
} packet;

typedef struct host {
    int tun;
    int64_t up_bits_per_s; /* 0: unlimited */
    int64_t down_bits_per_s;
    int64_t delay_ns;
    int64_t loss_ppm;
    int64_t queue_ns;
    long long site;         /* 0: none */
    int64_t uplink_free_ns; /* The time at which the last accepted packet will have left. */
    int64_t downlink_free_ns;
    bool cut_to[HOSTS_MAX + 1];
    uint64_t counters[COUNTERS];
} host;

static const char *folder;
static unsigned n_hosts;
static host hosts[HOSTS_MAX + 1]; /* Counted from 1. */

/* Packets on their way: a binary heap, the earliest first. */
static packet **heap;
static size_t heap_count;
static size_t heap_capacity;
static uint64_t packet_number;
static uint64_t random_state = 88172645463325252ULL;

static int64_t now_ns(void)
{
    struct timespec now = {0};

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * (int64_t)NS_PER_S + now.tv_nsec;
}

/* xorshift64 (Marsaglia 2003). */
static uint32_t draw(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static bool is_before(const packet *a, const packet *b)
{
    return a->due_ns != b->due_ns ? a->due_ns < b->due_ns : a->number < b->number;
}

static void push(packet *p)
{
    if (heap_count == heap_capacity) {
        heap_capacity = heap_capacity > 0 ? heap_capacity * 2 : 4096;
        heap = realloc(heap, heap_capacity * sizeof *heap);
        if (heap == NULL) {
            abort();
        }
    }
    size_t at = heap_count++;
    p->number = packet_number++;
    for (; at > 0 && is_before(p, heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
    }
    heap[at] = p;
}

static packet *pop(void)
{
    packet *const first = heap[0];
    packet *const last = heap[--heap_count];
    size_t at = 0;

    for (size_t child = 1; child < heap_count; child = 2 * at + 1) {
        if (child + 1 < heap_count && is_before(heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_before(heap[child], last)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = last;
    return first;
}

/* The time for which size bytes occupy a line. */
static int64_t wire_ns(int64_t bits_per_s, size_t size)
{
    return bits_per_s > 0 ? (int64_t)size * 8 * NS_PER_S / bits_per_s : 0;
}

/* Puts it into the heap, to arrive at that time. */
static void hand_over(unsigned from, unsigned to, const uint8_t *data, size_t size, int64_t due_ns)
{
    packet *const p = malloc(sizeof *p + size);

    if (p != NULL) {
        *p = (packet){.due_ns = due_ns, .size = size, .from = from, .to = to};
        memcpy(p->data, data, size);
        push(p);
    }
}

/* Takes a packet that a host sent; if it is not an IPv4 packet to 10.77.0.I, it is dropped
 * silently. */
static void take_packet(unsigned from, const uint8_t *data, size_t size)
{
    host *const sender = &hosts[from];
    const int64_t now = now_ns();

    if (size < 20 || data[0] >> 4 != 4 || data[16] != 10 || data[17] != 77 || data[18] != 0) {
        return;
    }
    const unsigned to = data[19];
    if (to < 1 || to > n_hosts) {
        return;
    }
    if (sender->cut_to[to]) {
        sender->counters[CUT]++;
        return;
    }
    const bool near = sender->site != 0 && sender->site == hosts[to].site;
    if (near) {
        sender->counters[NEAR_BYTES] += size;
        hand_over(from, to, data, size, now);
        return;
    }
    if (sender->uplink_free_ns - now > sender->queue_ns) {
        sender->counters[UPLINK_FULL]++;
        return;
    }
    sender->counters[TX_PACKETS]++;
    sender->counters[TX_BYTES] += size;
    sender->uplink_free_ns = (sender->uplink_free_ns > now ? sender->uplink_free_ns : now) +
                             wire_ns(sender->up_bits_per_s, size);
    if (sender->loss_ppm > 0 && draw() % 1000000 < sender->loss_ppm) {
        sender->counters[LOST]++;
        return;
    }
    hand_over(from, to, data, size, sender->uplink_free_ns + sender->delay_ns);
}

/* A packet that has reached the end of its delay enters the downlink, and after that its host.
 * Takes p. */
static void deliver(packet *p)
{
    host *const receiver = &hosts[p->to];
    const bool near = receiver->site != 0 && receiver->site == hosts[p->from].site;

    if (hosts[p->from].cut_to[p->to]) {
        receiver->counters[CUT]++;
    } else if (!near && !p->in_downlink && receiver->down_bits_per_s > 0 &&
               receiver->downlink_free_ns - p->due_ns > receiver->queue_ns) {
        receiver->counters[DOWNLINK_FULL]++;
    } else if (!near && !p->in_downlink && receiver->down_bits_per_s > 0) {
        receiver->downlink_free_ns =
            (receiver->downlink_free_ns > p->due_ns ? receiver->downlink_free_ns : p->due_ns) +
            wire_ns(receiver->down_bits_per_s, p->size);
        p->due_ns = receiver->downlink_free_ns;
        p->in_downlink = true;
        push(p);
        return;
    } else if (write(receiver->tun, p->data, p->size) == (ssize_t)p->size && !near) {
        receiver->counters[RX_PACKETS]++;
        receiver->counters[RX_BYTES] += p->size;
    }
    free(p);
}

static void set_links(long long which, const long long *value)
{
    for (unsigned i = 1; i <= n_hosts; i++) {
        if (which == 0 || which == i) {
            hosts[i].up_bits_per_s = value[0] >= 0 ? value[0] : hosts[i].up_bits_per_s;
            hosts[i].down_bits_per_s = value[1] >= 0 ? value[1] : hosts[i].down_bits_per_s;
            hosts[i].delay_ns = value[2] >= 0 ? value[2] : hosts[i].delay_ns;
            hosts[i].loss_ppm = value[3] >= 0 ? value[3] : hosts[i].loss_ppm;
            hosts[i].queue_ns = value[4] >= 0 ? value[4] : hosts[i].queue_ns;
        }
    }
}

static void cut_links(long long from, long long to, long long ways)
{
    for (unsigned i = 1; i <= n_hosts && from >= 1 && from <= n_hosts; i++) {
        if (to == 0 || to == i) {
            hosts[from].cut_to[i] = true;
            hosts[i].cut_to[from] |= ways == 2;
        }
    }
}

static void write_stats(bool reset)
{
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "%s/stats", folder);
    FILE *const out = fopen(path, "w");
    if (out == NULL) {
        return;
    }
    fputs("host tx_pkts tx_bytes rx_pkts rx_bytes lost uplink_full downlink_full cut near_bytes\n",
          out);
    for (unsigned i = 1; i <= n_hosts; i++) {
        fprintf(out, "%u", i);
        for (unsigned k = 0; k < COUNTERS; k++) {
            fprintf(out, " %llu", (unsigned long long)hosts[i].counters[k]);
        }
        fputc('\n', out);
        if (reset) {
            memset(hosts[i].counters, 0, sizeof hosts[i].counters);
        }
    }
    fclose(out);
}

/* Readers see only the complete acknowledgement: it is written to a temporary file, which is
 * renamed. */
static void acknowledge(const char *token)
{
    char path[PATH_BYTES];
    char place[PATH_BYTES];

    snprintf(path, sizeof path, "%s/ack.tmp", folder);
    snprintf(place, sizeof place, "%s/ack", folder);
    FILE *const out = fopen(path, "w");
    if (out != NULL) {
        fputs(token, out);
        fclose(out);
        rename(path, place);
    }
}

static void obey(const char *line)
{
    char token[32] = "";
    char verb[16] = "";
    long long n[6] = {0};

    if (sscanf(line, "%31s %15s %lld %lld %lld %lld %lld %lld", token, verb, &n[0], &n[1], &n[2],
               &n[3], &n[4], &n[5]) < 2) {
        return;
    }
    if (strcmp(verb, "set") == 0) {
        set_links(n[0], n + 1);
    } else if (strcmp(verb, "site") == 0) {
        for (unsigned i = 1; i <= n_hosts; i++) {
            hosts[i].site = n[0] == 0 || n[0] == i ? n[1] : hosts[i].site;
        }
    } else if (strcmp(verb, "cut") == 0) {
        cut_links(n[0], n[1], n[2]);
    } else if (strcmp(verb, "heal") == 0) {
        for (unsigned i = 1; i <= n_hosts; i++) {
            memset(hosts[i].cut_to, 0, sizeof hosts[i].cut_to);
        }
    } else if (strcmp(verb, "stats") == 0) {
        write_stats(n[0] != 0);
    }
    acknowledge(token);
}

static void read_commands(int ctl)
{
    static char lines[4096];
    static size_t size;
    char *end = NULL;

    const ssize_t got = read(ctl, lines + size, sizeof lines - 1 - size);
    if (got <= 0) {
        return;
    }
    size += (size_t)got;
    lines[size] = '\0';
    while ((end = strchr(lines, '\n')) != NULL) {
        *end = '\0';
        obey(lines);
        size -= (size_t)(end + 1 - lines);
        memmove(lines, end + 1, size + 1);
    }
    if (size >= sizeof lines - 1) {
        size = 0; /* A line without newline. */
    }
}

/* Enters the namespace of host i and opens its device. On failure prints the reason and returns
 * false. */
static bool open_host(const char *lab, unsigned i)
{
    struct ifreq request = {.ifr_name = "lab0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    char path[PATH_BYTES];

    snprintf(path, sizeof path, "/run/netns/netlab-%s-%u", lab, i);
    const int space = open(path, O_RDONLY | O_CLOEXEC);
    if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
        perror(path);
        return false;
    }
    close(space);
    hosts[i].queue_ns = NS_PER_S / 10;
    hosts[i].tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (hosts[i].tun < 0 || ioctl(hosts[i].tun, TUNSETIFF, &request) != 0) {
        perror("tun");
        return false;
    }
    return true;
}

static void read_host(unsigned i)
{
    static uint8_t data[PACKET_BYTES_MAX];

    for (unsigned k = 0; k < READS_IN_A_ROW; k++) {
        const ssize_t size = read(hosts[i].tun, data, sizeof data);

        if (size <= 0) {
            return;
        }
        take_packet(i, data, (size_t)size);
    }
}

/* Runs until it is killed or poll fails. */
static void forward(int ctl)
{
    struct pollfd polled[HOSTS_MAX + 1] = {{.fd = ctl, .events = POLLIN}};

    for (unsigned i = 1; i <= n_hosts; i++) {
        polled[i] = (struct pollfd){.fd = hosts[i].tun, .events = POLLIN};
    }
    for (;;) {
        struct timespec wait = {0};
        const int64_t now = now_ns();

        while (heap_count > 0 && heap[0]->due_ns <= now) {
            deliver(pop());
        }
        const int64_t left = heap_count > 0 ? heap[0]->due_ns - now_ns() : 0;
        if (left > 0) {
            wait = (struct timespec){.tv_sec = left / NS_PER_S, .tv_nsec = left % NS_PER_S};
        }
        if (ppoll(polled, n_hosts + 1, heap_count > 0 ? &wait : NULL, NULL) < 0 && errno != EINTR) {
            return;
        }
        for (unsigned i = 1; i <= n_hosts; i++) {
            if (polled[i].revents & POLLIN) {
                read_host(i);
            }
        }
        if (polled[0].revents & POLLIN) {
            read_commands(ctl);
        }
    }
}

int main(int argc, char **argv)
{
    const char *const seed = getenv("NETLAB_SEED");
    char path[PATH_BYTES];

    if (argc != 4 || strtoul(argv[2], NULL, 10) < 1 || strtoul(argv[2], NULL, 10) > HOSTS_MAX) {
        return 2;
    }
    n_hosts = (unsigned)strtoul(argv[2], NULL, 10);
    folder = argv[3];
    if (seed != NULL) {
        random_state ^= strtoull(seed, NULL, 10) * 0x9e3779b97f4a7c15ULL;
    }
    prctl(PR_SET_TIMERSLACK, 1000);
    snprintf(path, sizeof path, "%s/ctl", folder);
    const int ctl = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    for (unsigned i = 1; i <= n_hosts; i++) {
        if (ctl < 0 || !open_host(argv[1], i)) {
            return 1;
        }
    }
    snprintf(path, sizeof path, "%s/ready", folder);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    forward(ctl);
    return 1;
}
