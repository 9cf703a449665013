/* One member of a dense exchange over real sockets: the daemon's transport, channel and exchange, with identities made from a
 * seed, so that every member knows all others. Run N of them; bench/allreduce.py does, beside Gloo.
 *
 *   bench_allreduce --rank R --members HOST:PORT,HOST:PORT,... [--elements N] [--codec fp32|int8] [--suite S] [--rounds K]
 *                   [--stripes S] [--threads T] [--far yes|no]
 *
 * --suite plain (bytes are only copied: this bench has it, the daemon has not), sodium (libsodium's ChaCha20-Poly1305),
 * sodium-aes, chacha and aes (libcrypto's, where it was built in). --threads: that seal and open, as many as suit the
 * machine if it is not given. --far: paths between members are long. Prints per round wall and CPU seconds, and how far the mean
 * is from the one computed in doubles. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/assert.h"
#include "bench/clock.h"
#include "compute/dense.h"
#include "daemon/aead.h"
#include "daemon/exchange.h"
#include "daemon/transport_conn.h"
#include "gossip/cert.h"

enum { ROUNDS_MAX = 64, START_MS = 30000, REDIAL_MS = 300, LAST_MS = 30000, THREADS_FIT = 1000 };

struct rank {
    uv_loop_t loop;
    uv_timer_t clock;
    dp_transport *transport;
    dp_exchange *exchange;
    uint32_t self;
    uint32_t n;
    dp_identity identities[DP_DENSE_MEMBERS_MAX];
    dp_peer peers[DP_DENSE_MEMBERS_MAX];
    dp_addr addrs[DP_DENSE_MEMBERS_MAX];
    char listen[DP_ADDR_TEXT_MAX];
    uint8_t credential[DP_CERT_BYTES];
    uint64_t elements;
    uint8_t codec;
    uint32_t rounds;
    uint32_t round;
    uint32_t stripes;
    uint32_t threads;
    bool far;
    float *x;
    double started;
    double started_cpu;
    double wall[ROUNDS_MAX];
    double cpu[ROUNDS_MAX];
    double lost; /* when a link was; 0: none */
    bool done;
    bool running;
};

/* ---- plaintext, for this bench alone ---- */

static void plain_seal(const uint8_t *key, uint64_t counter, dp_view associated, dp_view plaintext,
                       uint8_t *out)
{
    (void)key;
    (void)counter;
    (void)associated;
    if (plaintext.size > 0 && out != plaintext.data) {
        memcpy(out, plaintext.data, plaintext.size);
    }
    memset(out + plaintext.size, 0, 16);
}

static bool plain_open(const uint8_t *key, uint64_t counter, dp_view associated, dp_view sealed,
                       uint8_t *out)
{
    (void)key;
    (void)counter;
    (void)associated;
    if (sealed.size > 16 && out != sealed.data) {
        memcpy(out, sealed.data, sealed.size - 16);
    }
    return true;
}

static bool choose_suite(const char *name, const dp_suite *suites[DP_SUITES])
{
    static const dp_suite plain = {DP_SUITE_AES256GCM, "plain", plain_seal, plain_open};
    const dp_suite *fast[DP_SUITES];
    dp_aead_suites(fast);
    suites[0] = dp_suite_of(DP_SUITE_CHACHAPOLY);
    suites[1] = NULL;
    if (strcmp(name, "plain") == 0) {
        suites[1] = &plain;
    } else if (strcmp(name, "chacha") == 0) {
        suites[0] = fast[0];
    } else if (strcmp(name, "aes") == 0) {
        suites[1] = fast[1];
    } else if (strcmp(name, "sodium-aes") == 0) {
        suites[1] = dp_suite_of(DP_SUITE_AES256GCM);
    } else {
        return strcmp(name, "sodium") == 0;
    }
    return strcmp(name, "chacha") == 0 || suites[1] != NULL;
}

/* ---- the vector: every member has another one, and the mean is known ---- */

static float value_of(uint32_t member, uint64_t i)
{
    const uint64_t mixed = (i + 1) * 0x9e3779b97f4a7c15ULL + member * 0xd1b54a32d192ed03ULL;
    return (float)((int64_t)(mixed >> 40) - (1 << 23)) * 0x1p-25F; /* -0.25 to 0.25 */
}

static double mean_of(uint32_t n, uint64_t i)
{
    double sum = 0;
    for (uint32_t member = 0; member < n; member++) {
        sum += (double)value_of(member, i);
    }
    return sum / n;
}

/* L2 of the difference by L2 of the mean, over a sample of the elements. */
static double error_of(const struct rank *rank)
{
    double wrong = 0;
    double right = 0;
    for (uint64_t i = 0; i < rank->elements; i += 97) {
        const double wanted = mean_of(rank->n, i);
        wrong += (rank->x[i] - wanted) * (rank->x[i] - wanted);
        right += wanted * wanted;
    }
    return sqrt(wrong / right);
}

/* ---- rounds ---- */

static void next_round(struct rank *rank)
{
    rank->started = bench_seconds(CLOCK_MONOTONIC);
    rank->started_cpu = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_exchange_start(rank->exchange, rank->round + 1, 1, rank->x);
}

/* Not from within the call that ended the last one. */
static void on_next(uv_timer_t *timer)
{
    next_round(timer->data);
}

static void on_done(void *context, dp_status status)
{
    struct rank *rank = context;
    if (status != DP_OK) {
        fprintf(stderr, "rank %u: %s\n", rank->self, dp_status_text(status));
        exit(1);
    }
    rank->wall[rank->round] = bench_seconds(CLOCK_MONOTONIC) - rank->started;
    rank->cpu[rank->round] = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - rank->started_cpu;
    rank->round++;
    rank->done = rank->round == rank->rounds;
    if (!rank->done) {
        uv_timer_start(&rank->clock, on_next, 0, 0);
    }
}

/* ---- links ---- */

static void on_up(void *context, const dp_peer *peer, const dp_addr *addr, dp_view credential,
                  dp_view hello, bool outgoing)
{
    (void)context;
    (void)peer;
    (void)addr;
    (void)credential;
    (void)hello;
    (void)outgoing;
}

static void on_down(void *context, const dp_peer *peer, dp_link_cause cause)
{
    struct rank *rank = context;
    (void)peer;
    if (rank->running && !rank->done) { /* Who has all may go; what others owe can still come. */
        fprintf(stderr, "rank %u: a link went down (%d)\n", rank->self, (int)cause);
        rank->lost = bench_seconds(CLOCK_MONOTONIC);
    }
}

static void on_message(void *context, const dp_peer *peer, dp_view bytes)
{
    struct rank *rank = context;
    DP_IGNORE(!dp_exchange_message(rank->exchange, peer, bytes));
}

static void on_drained(void *context, const dp_peer *peer)
{
    struct rank *rank = context;
    dp_exchange_drained(rank->exchange, peer);
}

static bool on_known(void *context, const dp_peer *peer, uint8_t x_public[32])
{
    (void)context;
    (void)peer;
    (void)x_public;
    return true;
}

static uint32_t bulk_connections(const struct rank *rank)
{
    uint32_t count = 0;
    for (dp_list *at = rank->transport->conns.next; at != &rank->transport->conns; at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        count += conn->bulk != NULL && conn->link != NULL;
    }
    return count;
}

static void on_dial(uv_timer_t *timer)
{
    struct rank *rank = timer->data;
    for (uint32_t i = 0; i < rank->self; i++) { /* Each dials those before it. */
        dp_transport_dial(rank->transport, &rank->peers[i], &rank->addrs[i], 1);
    }
    if (bulk_connections(rank) == (rank->n - 1) * rank->stripes) {
        uv_timer_stop(timer);
        rank->running = true;
        next_round(rank);
    }
}

static void make_identities(struct rank *rank, dp_transport_config *config)
{
    dp_sign_key root;
    dp_entropy entropy = {{7}};
    dp_assert(dp_crypto_start() == DP_OK);
    dp_sign_key_of_seed(entropy.bytes, &root);
    memcpy(config->root, root.public_key, sizeof config->root);
    for (uint32_t i = 0; i < rank->n; i++) {
        entropy.bytes[1] = (uint8_t)(i + 1);
        dp_identity_of_seed(&entropy, &rank->identities[i]);
        rank->peers[i] = dp_identity_peer(&rank->identities[i]);
    }
    uv_timeval64_t now = {0};
    dp_assert(uv_gettimeofday(&now) == 0);
    entropy.bytes[1] = (uint8_t)(rank->self + 1);
    dp_founder_credential(&root, &config->run, &rank->identities[rank->self], entropy.bytes,
                          (uint64_t)now.tv_sec * 1000 - 10000, rank->credential);
    config->identity = &rank->identities[rank->self];
    config->credential = dp_view_of(rank->credential, sizeof rank->credential);
}

static bool read_members(struct rank *rank, char *text)
{
    char *rest = NULL;
    for (char *one = strtok_r(text, ",", &rest); one != NULL; one = strtok_r(NULL, ",", &rest)) {
        dp_address address;
        if (rank->n == DP_DENSE_MEMBERS_MAX || dp_address_parse(one, &address, NULL) != DP_OK ||
            address.kind != DP_ADDRESS_IP4) {
            return false;
        }
        rank->addrs[rank->n] = (dp_addr){.family = 4, .port = address.port};
        memcpy(rank->addrs[rank->n].ip, address.ip, 4);
        if (rank->n == rank->self) {
            snprintf(rank->listen, sizeof rank->listen, "%s", one);
        }
        rank->n++;
    }
    return rank->self < rank->n;
}

static void report(const struct rank *rank, const char *suite)
{
    dp_transport_stats stats;
    dp_transport_look(rank->transport, &stats);
    printf("{\"rank\": %u, \"codec\": \"%s\", \"suite\": \"%s\", \"library\": \"%s\", \"error\": "
           "%.3g, "
           "\"connections\": %u, \"bytes_sent\": %llu, \"wall\": [",
           rank->self, rank->codec == DP_DENSE_INT8 ? "int8" : "fp32", suite, dp_aead_name(),
           error_of(rank), bulk_connections(rank), (unsigned long long)stats.bytes_sent);
    for (uint32_t i = 0; i < rank->rounds; i++) {
        printf("%s%.6f", i > 0 ? ", " : "", rank->wall[i]);
    }
    printf("], \"cpu\": [");
    for (uint32_t i = 0; i < rank->rounds; i++) {
        printf("%s%.6f", i > 0 ? ", " : "", rank->cpu[i]);
    }
    printf("]}\n");
}

static int usage(void)
{
    fprintf(stderr, "usage: bench_allreduce --rank R --members HOST:PORT,... [--elements N] "
                    "[--codec fp32|int8] [--suite plain|sodium|sodium-aes|chacha|aes] [--rounds K] "
                    "[--stripes S] [--threads T] [--far yes|no]\n");
    return 64;
}

static const dp_exchange_ops ops = {dp_dense_bytes, dp_dense_encode, dp_dense_check,
                                    dp_dense_add,   dp_dense_mean,   dp_dense_decode};

/* Here, or in the kernel: a path that loses some of it needs its time. */
static bool waits(const struct rank *rank)
{
    for (dp_list *at = rank->transport->conns.next; at != &rank->transport->conns; at = at->next) {
        const dp_conn *conn = DP_LIST_ITEM(at, dp_conn, item);
        dp_path_room room;
        uv_os_fd_t fd;
        if (conn->bulk != NULL && uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0 &&
            dp_path_look(fd, &room) && room.waiting > 0) {
            return true;
        }
    }
    for (uint32_t i = 0; i < rank->n; i++) {
        const uint64_t bytes = dp_transport_bulk_waiting(rank->transport, &rank->peers[i]);
        if (bytes > 0 && bytes < UINT64_MAX) { /* That is: no link, as to itself. */
            return true;
        }
    }
    return false;
}

static double patience_ends(const struct rank *rank, double start)
{
    if (!rank->running) {
        return start + START_MS / 1000.0;
    }
    return rank->lost > 0 ? rank->lost + LAST_MS / 1000.0 : INFINITY;
}

static int run(struct rank *rank, dp_transport_config *config, const char *suite)
{
    uint16_t port = 0;
    dp_why why = {""};
    uv_loop_init(&rank->loop);
    config->loop = &rank->loop;
    config->incarnation = 1;
    config->n_threads =
        rank->threads == THREADS_FIT ? dp_crew_fit(uv_available_parallelism()) : rank->threads;
    config->hooks = (dp_transport_hooks){.context = rank,
                                         .link_up = on_up,
                                         .link_down = on_down,
                                         .message = on_message,
                                         .drained = on_drained,
                                         .known = on_known};
    make_identities(rank, config);
    if (!choose_suite(suite, config->suites)) {
        fprintf(stderr, "this machine has no suite %s\n", suite);
        return 69;
    }
    dp_assert(dp_transport_open(&rank->transport, config) == DP_OK);
    rank->transport->stripes_min = rank->stripes;
    if (dp_transport_listen(rank->transport, rank->listen, &port, &why) != DP_OK) {
        fprintf(stderr, "%s\n", why.text);
        return 71;
    }
    const dp_exchange_config exchange = {.transport = rank->transport,
                                         .ops = &ops,
                                         .n_members = rank->n,
                                         .self = rank->self,
                                         .peers = rank->peers,
                                         .n_elements = rank->elements,
                                         .far = rank->far,
                                         .codec = rank->codec,
                                         .context = rank,
                                         .done = on_done};
    dp_assert(dp_exchange_open(&rank->exchange, &exchange) == DP_OK);
    uv_timer_init(&rank->loop, &rank->clock);
    rank->clock.data = rank;
    uv_timer_start(&rank->clock, on_dial, 0, REDIAL_MS);
    const double start = bench_seconds(CLOCK_MONOTONIC);
    while (!rank->done && bench_seconds(CLOCK_MONOTONIC) < patience_ends(rank, start)) {
        uv_run(&rank->loop, UV_RUN_ONCE); /* The transport's tick ends it, four times a second. */
    }
    if (!rank->done) {
        fprintf(stderr, "rank %u: not linked to all others %s\n", rank->self,
                rank->running ? "any more" : "in time");
        return 75;
    }
    report(rank, suite);
    fflush(stdout);
    const double end = bench_seconds(CLOCK_MONOTONIC) + LAST_MS / 1000.0;
    while (waits(rank) && bench_seconds(CLOCK_MONOTONIC) < end) { /* The last means. */
        uv_run(&rank->loop, UV_RUN_NOWAIT);
        uv_sleep(5);
    }
    /* Others may still read what this one has sent last: they close first, or a second goes by. */
    for (int i = 0; i < 20; i++) {
        uv_run(&rank->loop, UV_RUN_NOWAIT);
        uv_sleep(50);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct rank rank = {.elements = 1 << 20,
                               .codec = DP_DENSE_FP32,
                               .rounds = 5,
                               .stripes = 1,
                               .threads = THREADS_FIT};
    dp_transport_config config = {0};
    const char *suite = "aes";
    char *members = NULL;
    signal(SIGPIPE, SIG_IGN);
    for (int i = 1; i + 1 < argc; i += 2) {
        const char *value = argv[i + 1];
        if (strcmp(argv[i], "--rank") == 0) {
            rank.self = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--members") == 0) {
            members = argv[i + 1];
        } else if (strcmp(argv[i], "--elements") == 0) {
            rank.elements = strtoull(value, NULL, 10);
        } else if (strcmp(argv[i], "--codec") == 0) {
            rank.codec = strcmp(value, "int8") == 0 ? DP_DENSE_INT8 : DP_DENSE_FP32;
        } else if (strcmp(argv[i], "--suite") == 0) {
            suite = value;
        } else if (strcmp(argv[i], "--rounds") == 0) {
            rank.rounds = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--stripes") == 0) {
            rank.stripes = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--threads") == 0) {
            rank.threads = (uint32_t)strtoul(value, NULL, 10);
        } else if (strcmp(argv[i], "--far") == 0) {
            rank.far = strcmp(value, "yes") == 0;
        } else {
            return usage();
        }
    }
    if (members == NULL || rank.rounds == 0 || rank.rounds > ROUNDS_MAX || rank.elements == 0 ||
        rank.stripes == 0 || rank.stripes > DP_CHANNEL_STRIPES_MAX ||
        (rank.threads > DP_CREW_THREADS_MAX && rank.threads != THREADS_FIT) ||
        !read_members(&rank, members)) {
        return usage();
    }
    rank.x = malloc(rank.elements * sizeof *rank.x);
    dp_assert(rank.x != NULL);
    for (uint64_t i = 0; i < rank.elements; i++) {
        rank.x[i] = value_of(rank.self, i);
    }
    return run(&rank, &config, suite);
}
