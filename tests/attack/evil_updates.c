/* evil_trainer: a trainer that harms the run with well-formed updates. It runs as the `worker` of a
 * daemon, starts a real dpnode-worker, and forwards everything except PUBLISHED: it decodes this
 * update, changes it, encodes it by the same codec, and sends it with matching numbers. The claims
 * about the training samples stay true.
 *
 *   evil_trainer KIND[@ROUND] REAL-WORKER ARGUMENT...
 *
 *   honest        as it is
 *   flip1         times -1
 *   flip10        times -10
 *   flip10-step   the same, and it claims one step
 *   noise         a random vector of the same length
 *   zero          nothing
 *   replay        its own update of three publications before
 *   drift         less 0.3 of its length along the mean of the record applied last
 *
 * It is hostile from ROUND on (default 1). Without --fd among the arguments it just executes the
 * real worker. Exit status of the real worker, or 64 for wrong arguments, 70. */
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/rng.h"
#include "base/trainer/trainer_msg.h"
#include "compute/codec/codec.h"
#include "compute/model/state.h"
#include "compute/outer/consensus.h"
#include "compute/outer/part.h"

enum { KEPT = 3, FILES = 2 /* blob and a, before parts */ };

typedef struct evil evil;

static bool make_honest(evil *e, float *a);
static bool make_flip1(evil *e, float *a);
static bool make_flip10(evil *e, float *a);
static bool make_noise(evil *e, float *a);
static bool make_zero(evil *e, float *a);
static bool make_replay(evil *e, float *a);
static bool make_drift(evil *e, float *a);

/* Changes n floats; false: they stay as they are. */
static const struct kind {
    const char *name;
    bool (*make)(evil *e, float *a);
    bool one_step;
} kinds[] = {{"honest", make_honest, false}, {"flip1", make_flip1, false},
             {"flip10", make_flip10, false}, {"flip10-step", make_flip10, true},
             {"noise", make_noise, false},   {"zero", make_zero, false},
             {"replay", make_replay, false}, {"drift", make_drift, false}};

struct evil {
    const struct kind *kind;
    uint64_t from; /* round */
    int daemon;
    int worker;
    size_t n; /* of every vector; 0: unknown */
    dp_rng rng;
    float *kept[KEPT]; /* own updates; once the ring is full, the oldest is at next */
    size_t next;
    pthread_mutex_t lock; /* guards mean, which the other thread computes */
    float *mean;          /* of the record applied last; NULL: none yet */
};

/* ---- What it makes of an update. */

static double norm_of(const float *a, size_t n)
{
    double square = 0;
    for (size_t i = 0; i < n; i++) {
        square += (double)a[i] * (double)a[i];
    }
    return sqrt(square);
}

static void scale(float *a, size_t n, double factor)
{
    for (size_t i = 0; i < n; i++) {
        a[i] = (float)((double)a[i] * factor);
    }
}

static bool make_honest(evil *e, float *a)
{
    (void)e;
    (void)a;
    return false;
}

static bool make_flip1(evil *e, float *a)
{
    scale(a, e->n, -1);
    return true;
}

static bool make_flip10(evil *e, float *a)
{
    scale(a, e->n, -10);
    return true;
}

static bool make_noise(evil *e, float *a)
{
    const double norm = norm_of(a, e->n);
    /* Approximately normal: the sum of eight uniform numbers. */
    for (size_t i = 0; i < e->n; i++) {
        int64_t sum = 0;
        for (int j = 0; j < 8; j++) {
            sum += (int64_t)dp_rng_below(&e->rng, 1 << 16) - (1 << 15);
        }
        a[i] = (float)sum;
    }
    scale(a, e->n, norm / norm_of(a, e->n));
    return true;
}

static bool make_zero(evil *e, float *a)
{
    memset(a, 0, e->n * sizeof *a);
    return true;
}

static bool make_replay(evil *e, float *a)
{
    float *const old = e->kept[e->next];
    float *const copy = malloc(e->n * sizeof *copy);
    if (copy == NULL) {
        return false;
    }
    memcpy(copy, a, e->n * sizeof *copy);
    if (old != NULL) {
        memcpy(a, old, e->n * sizeof *a);
    }
    free(old);
    e->kept[e->next] = copy;
    e->next = (e->next + 1) % KEPT;
    return old != NULL;
}

static bool make_drift(evil *e, float *a)
{
    pthread_mutex_lock(&e->lock);
    const double length = e->mean != NULL ? norm_of(e->mean, e->n) : 0;
    const double share = length > 0 ? 0.3 * norm_of(a, e->n) / length : 0;
    for (size_t i = 0; i < e->n && share > 0; i++) {
        a[i] = (float)((double)a[i] - share * (double)e->mean[i]);
    }
    pthread_mutex_unlock(&e->lock);
    return share > 0;
}

/* ---- Publications. */

static void close_all(const int *fds, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        close(fds[i]);
    }
}

static dp_status put_file(int *fd, dp_view bytes)
{
    int made;
    DP_TRY(dp_memfd_make("dpnode-update", bytes, &made));
    close(*fd);
    *fd = made;
    return DP_OK;
}

static dp_status put_parts(const evil *e, dp_trainer_msg *msg, dp_view blob, int *fds)
{
    dp_part_blob parts[DP_PARTS_MAX];
    DP_TRY(dp_part_cut(blob, e->n, &msg->cuts, parts, &msg->energy));
    for (uint32_t p = 0; p < msg->cuts.n; p++) {
        dp_buf bytes;
        dp_buf_init(&bytes, dp_codec_bytes_max_any(e->n));
        dp_status status =
            dp_buf_append(&bytes, dp_view_of(parts[p].header, sizeof parts[p].header));
        if (status == DP_OK) {
            status = dp_buf_append(&bytes, parts[p].runs);
        }
        if (status == DP_OK) {
            status = put_file(&fds[p], dp_buf_view(&bytes));
        }
        dp_buf_close(&bytes);
        DP_TRY(status);
    }
    return DP_OK;
}

/* The message and its files as they are for a. */
static dp_status put_update(evil *e, dp_trainer_msg *msg, const dp_codec *codec, const float *a,
                            int *fds)
{
    dp_buf blob;
    dp_buf floats;
    dp_buf_init(&blob, dp_codec_bytes_max_any(e->n));
    dp_buf_init(&floats, e->n * sizeof *a);
    dp_status status = dp_codec_encode(codec, a, e->n, &blob);
    if (status == DP_OK) {
        status = dp_codec_energy(dp_buf_view(&blob), e->n, &msg->energy);
    }
    if (status == DP_OK) {
        status = dp_codec_error(dp_buf_view(&blob), a, e->n, &msg->norm, &msg->error);
    }
    if (status == DP_OK) {
        status = dp_floats_write(a, e->n, &floats);
    }
    if (status == DP_OK) {
        status = put_file(&fds[0], dp_buf_view(&blob));
    }
    if (status == DP_OK) {
        status = put_file(&fds[1], dp_buf_view(&floats));
    }
    if (status == DP_OK && msg->cuts.n > 0) {
        status = put_parts(e, msg, dp_buf_view(&blob), fds + FILES);
    }
    dp_buf_close(&floats);
    dp_buf_close(&blob);
    return status;
}

static dp_status spoil_vector(evil *e, dp_trainer_msg *msg, const dp_codec *codec, dp_view bytes,
                              int *fds)
{
    float *const a = malloc(e->n * sizeof *a);
    dp_status status = a == NULL ? DP_NOMEM : dp_floats_read(bytes, a, e->n);
    if (status == DP_OK && e->kind->make(e, a)) {
        status = put_update(e, msg, codec, a, fds);
        msg->steps = e->kind->one_step ? 1 : msg->steps;
    }
    free(a);
    return status;
}

static dp_status spoil(evil *e, dp_trainer_msg *msg, int *fds, uint32_t n_fds)
{
    dp_view blob;
    dp_view bytes;
    dp_codec codec;
    uint64_t elements;
    if (n_fds != FILES + msg->cuts.n) {
        return DP_BADMSG;
    }
    DP_TRY(dp_memfd_map(fds[0], dp_codec_bytes_max_any(e->n), &blob));
    dp_status status = dp_codec_peek(blob, &codec, &elements);
    dp_memfd_unmap(blob);
    DP_TRY(status);
    DP_TRY(dp_memfd_map(fds[1], e->n * sizeof(float), &bytes));
    status = spoil_vector(e, msg, &codec, bytes, fds);
    dp_memfd_unmap(bytes);
    return status;
}

/* ---- What it sees. */

static dp_status see_items(const evil *e, const dp_trainer_msg *msg, const int *fds, float *mean)
{
    dp_view blobs[DP_TRAINER_ITEMS_MAX];
    uint32_t mapped = 0;
    dp_status status = DP_OK;
    while (mapped < msg->n_items && status == DP_OK) {
        status = dp_memfd_map(fds[mapped], dp_codec_bytes_max_any(e->n), &blobs[mapped]);
        mapped += status == DP_OK;
    }
    if (status == DP_OK) {
        const dp_consensus_items items = {.blobs = blobs, .q = msg->q, .n = msg->n_items};
        status = dp_consensus_mean(mean, e->n, &items);
    }
    for (uint32_t i = 0; i < mapped; i++) {
        dp_memfd_unmap(blobs[i]);
    }
    return status;
}

/* Only whole updates in one command. */
static void see(evil *e, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    if (e->kind->make != make_drift || msg->kind != DP_TRAINER_APPLY || msg->cuts.n > 0 ||
        msg->n_items == 0 || msg->n_items != n_fds) {
        return;
    }
    pthread_mutex_lock(&e->lock);
    float *const mean = e->n > 0 ? malloc(e->n * sizeof *mean) : NULL;
    if (mean != NULL && see_items(e, msg, fds, mean) == DP_OK) {
        free(e->mean);
        e->mean = mean;
    } else {
        free(mean);
    }
    pthread_mutex_unlock(&e->lock);
}

/* ---- The two ways. */

static void *to_worker(void *context)
{
    evil *const e = context;
    static dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds = 0;
    dp_status status = DP_OK;
    while (status == DP_OK) {
        status = dp_trainer_receive(e->daemon, &msg, fds, &n_fds);
        if (status == DP_OK) {
            see(e, &msg, fds, n_fds);
            status = dp_trainer_send(e->worker, &msg, fds, n_fds);
            close_all(fds, n_fds);
        }
    }
    /* The worker ends, and with it the other direction. */
    DP_IGNORE(shutdown(e->worker, SHUT_RDWR));
    return NULL;
}

static void tell_update(evil *e, dp_trainer_msg *msg, int *fds, uint32_t n_fds)
{
    const dp_status status = spoil(e, msg, fds, n_fds);
    if (status != DP_OK) {
        fprintf(stderr, "evil_trainer: %s: round %llu stays honest\n", dp_status_text(status),
                (unsigned long long)msg->round);
    }
}

static void to_daemon(evil *e)
{
    static dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds = 0;
    dp_status status = DP_OK;
    while (status == DP_OK) {
        status = dp_trainer_receive(e->worker, &msg, fds, &n_fds);
        if (status != DP_OK) {
            break;
        }
        if (msg.kind == DP_TRAINER_OPENED) {
            pthread_mutex_lock(&e->lock);
            e->n = (size_t)msg.elements;
            pthread_mutex_unlock(&e->lock);
        }
        if (msg.kind == DP_TRAINER_PUBLISHED && msg.round >= e->from) {
            tell_update(e, &msg, fds, n_fds);
        }
        status = dp_trainer_send(e->daemon, &msg, fds, n_fds);
        close_all(fds, n_fds);
    }
}

/* ---- The real worker. */

/* Replaces its --fd by the worker's end of a socket pair; returns the place of the number among the
 * arguments. NULL: there is none. */
static char **find_fd(char **arguments)
{
    for (; *arguments != NULL; arguments++) {
        if (strcmp(*arguments, "--fd") == 0) {
            return arguments[1] != NULL ? arguments + 1 : NULL;
        }
    }
    return NULL;
}

static pid_t start_worker(char *real, char **arguments, char **number, int socket)
{
    char text[16];
    const pid_t pid = fork();
    if (pid == 0) {
        fcntl(socket, F_SETFD, 0);
        snprintf(text, sizeof text, "%d", socket);
        *number = text;
        arguments[-1] = real;
        execv(real, arguments - 1);
        perror(real);
        _exit(EX_OSERR);
    }
    return pid;
}

static int exit_of(pid_t pid)
{
    int status = 0;
    if (waitpid(pid, &status, 0) != pid) {
        return EX_SOFTWARE;
    }
    if (WIFSIGNALED(status)) { /* Ends by the same signal, so that the daemon sees the same end. */
        signal(WTERMSIG(status), SIG_DFL);
        raise(WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : EX_SOFTWARE;
}

static int serve(evil *e, char *real, char **arguments, char **number)
{
    int pair[2];
    pthread_t thread;
    e->daemon = atoi(*number);
    if (fcntl(e->daemon, F_SETFD, FD_CLOEXEC) != 0 ||
        socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        perror("evil_trainer");
        return EX_SOFTWARE;
    }
    e->worker = pair[0];
    const pid_t pid = start_worker(real, arguments, number, pair[1]);
    close(pair[1]);
    if (pid < 0 || pthread_create(&thread, NULL, to_worker, e) != 0) {
        perror("evil_trainer");
        return EX_SOFTWARE;
    }
    to_daemon(e);
    /* Ends the other thread, whichever side has closed. */
    DP_IGNORE(shutdown(e->daemon, SHUT_RDWR));
    pthread_join(thread, NULL);
    close(e->worker);
    return exit_of(pid);
}

static bool parse_kind(evil *e, const char *text)
{
    const size_t length = strcspn(text, "@");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (strlen(kinds[i].name) == length && strncmp(kinds[i].name, text, length) == 0) {
            e->kind = &kinds[i];
        }
    }
    e->from = text[length] == '@' ? strtoull(text + length + 1, NULL, 10) : 1;
    return e->kind != NULL;
}

int main(int argc, char **argv)
{
    static evil e = {.lock = PTHREAD_MUTEX_INITIALIZER};
    if (argc < 3 || !parse_kind(&e, argv[1])) {
        fputs("usage: evil_trainer KIND[@ROUND] REAL-WORKER ARGUMENT...\n", stderr);
        return EX_USAGE;
    }
    dp_rng_init(&e.rng, (uint64_t)getpid());
    char **const arguments = argv + 3;
    char **const number = find_fd(arguments);
    if (number == NULL) {
        execv(argv[2], argv + 2);
        perror(argv[2]);
        return EX_OSERR;
    }
    signal(SIGPIPE, SIG_IGN);
    const int status = serve(&e, argv[2], arguments, number);
    for (size_t i = 0; i < KEPT; i++) {
        free(e.kept[i]);
    }
    free(e.mean);
    return status;
}
