/* dpnode.h: a C program trains a run of dpnode with this one file: a run of any model (model.arch:
 * external), or of a built-in one, whose tensors have Hugging Face's names (docs/TRAINER.md, section 6).
 *
 *     #define DPNODE_IMPLEMENTATION // in one source
 *     #include "dpnode.h"
 *
 *     dpnode_tensor tensors[] = {{"w", w, 2, {64, 32}}, {"b", b, 1, {64}}};
 *     dpnode *run;
 *     if (dpnode_open(&run, NULL, tensors, 2) != DPNODE_OK) {
 *         fprintf(stderr, "%s\n", dpnode_problem(NULL));
 *         return 1;
 *     }
 *     while (dpnode_draw(run, indices, BATCH) == BATCH) {
 *         double loss = step_of_your_optimizer(indices);
 *         if (dpnode_step(run, BATCH, loss) != DPNODE_OK) { break; }
 *     }
 *     dpnode_close(run);
 *
 * The protocol is in docs/TRAINER.md of dpnode. One thread uses a run. Needs Linux (memfd) and
 * nothing but libc (gcc's default, gnu11 or later, or _GNU_SOURCE); also compiles as C++. dpnode_open, dpnode_draw, dpnode_step and dpnode_look change the tensors' values. */
#ifndef DPNODE_H
#define DPNODE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dpnode dpnode;

enum { DPNODE_DIMS_MAX = 8 };

/* One tensor of the model: row-major fp32 values, which stay the caller's until close. */
typedef struct dpnode_tensor {
    const char *name; /* as in the file that the run was made from */
    float *values;
    uint32_t n_dims; /* 0: one number */
    uint32_t shape[DPNODE_DIMS_MAX];
} dpnode_tensor;

typedef enum dpnode_status {
    DPNODE_OK = 0,
    DPNODE_PAUSED,  /* of dpnode_look: the node is paused, and steps are not wanted now */
    DPNODE_NO_NODE, /* nobody listens: the node is down, or has no such run */
    DPNODE_REFUSED, /* by the node; dpnode_problem says why and what to do */
    DPNODE_GONE,    /* the node has ended, restarts or could not wait: open again */
    DPNODE_NO_MEMORY,
    DPNODE_BAD_MODEL /* a tensor without values, or of a name or shape that cannot be sent */
} dpnode_status;

/* Connects to the node and fills the tensors with the run's weights. path: of script.sock, or of the
 * node's directory; NULL: $DPNODE_DIR, else the default directory of the user. *run is NULL if it
 * fails. */
dpnode_status dpnode_open(dpnode **run, const char *path, const dpnode_tensor *tensors, size_t n);
/* Hands in the steps that the node has not taken yet, and ends the connection. Returns DPNODE_OK, or
 * why the node does not have them. Accepts NULL. */
dpnode_status dpnode_close(dpnode *run);
/* A sentence about the last call that failed; of dpnode_open and dpnode_close with NULL. */
const char *dpnode_problem(const dpnode *run);

/* DPNODE_OK, or the status that ended the connection: DPNODE_GONE, open again; DPNODE_REFUSED. */
dpnode_status dpnode_state(const dpnode *run);

/* The next n samples (at most 8,000) as indices of the data set, 0 .. dpnode_samples - 1. Returns
 * how many; fewer than n: see dpnode_state, and dpnode_problem. Now and then it looks, which may
 * change the tensors. */
uint32_t dpnode_draw(dpnode *run, uint64_t *indices, uint32_t n);

/* After each optimizer step: tells of it and looks whether rounds have something to do, which may
 * change the tensors. samples: used in the step, in the order of drawing, at least 1: a
 * step without samples counts for nothing. loss: mean of the step,
 * NaN: as the last one that is known. Waits while the node is paused. Without anything to do it makes no call of the
 * system. */
dpnode_status dpnode_step(dpnode *run, uint64_t samples, double loss);
/* The same without a step, and without waiting: may return DPNODE_PAUSED. */
dpnode_status dpnode_look(dpnode *run);

uint64_t dpnode_samples(const dpnode *run);      /* of one pass */
uint64_t dpnode_unit(const dpnode *run);         /* tokens that a sample counts as */
uint64_t dpnode_round(const dpnode *run);        /* that steps are for */
uint64_t dpnode_tokens(const dpnode *run);       /* of the run, before that round */
uint64_t dpnode_tokens_total(const dpnode *run); /* of the run's schedule */

#ifdef __cplusplus
}
#endif
#endif /* DPNODE_H */

#ifdef DPNODE_IMPLEMENTATION
#ifndef DPNODE_IMPLEMENTED
#define DPNODE_IMPLEMENTED

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum {
    dpnode_hello = 1,
    dpnode_welcome,
    dpnode_refused,
    dpnode_looks,
    dpnode_do,
    dpnode_done,
    dpnode_draws,
    dpnode_drawn,
    dpnode_version = 1,
    dpnode_packet_max = 65536,
    dpnode_draw_max = 8000
};

enum { dpnode_ends = 5, dpnode_slow = 9 }; /* of refusals: open again */
enum { dpnode_go, dpnode_assign, dpnode_add, dpnode_copy, dpnode_paused };

struct dpnode {
    int fd;
    dpnode_tensor *tensors; /* in the order of names */
    size_t n;
    uint64_t elements, samples, unit, tokens_total;
    uint8_t *memory;
    size_t bytes;
    float *buffer;
    uint64_t steps, used;
    uint64_t given;    /* of steps: those that the node has */
    dpnode_status end; /* of the connection, or DPNODE_OK */
    double loss;       /* sum */
    double last_loss;  /* that is known */
    time_t looked_s;   /* at the socket */
    char problem[512];
    uint8_t packet[dpnode_packet_max];
};

static char dpnode_last_problem[512];

static void dpnode_put(uint8_t *at, uint64_t value, int size)
{
    for (int i = 0; i < size; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

static uint64_t dpnode_get(const uint8_t *at, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++) {
        value |= (uint64_t)at[i] << (8 * i);
    }
    return value;
}

static dpnode_status dpnode_fail(dpnode *run, dpnode_status status, const char *text)
{
    snprintf(run->problem, sizeof run->problem, "%s", text);
    return status;
}

static dpnode_status dpnode_exchange(dpnode *run, size_t size, int sent, size_t *got, int *file);

/* The first failure is the last word: later calls give its status, and leave its sentence. */
static dpnode_status dpnode_ask(dpnode *run, size_t size, int sent, size_t *got, int *file)
{
    if (run->end == DPNODE_OK) {
        run->end = dpnode_exchange(run, size, sent, got, file);
    }
    return run->end;
}

/* Sends size bytes of the packet, with a descriptor (-1: none), and receives the answer into it.
 * Its size goes to *got, a descriptor that came along to *file. */
static dpnode_status dpnode_exchange(dpnode *run, size_t size, int sent, size_t *got, int *file)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {run->packet, size};
    struct msghdr message;
    memset(&control, 0, sizeof control);
    memset(&message, 0, sizeof message);
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (sent >= 0) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        struct cmsghdr *c = CMSG_FIRSTHDR(&message);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(sizeof sent);
        memcpy(CMSG_DATA(c), &sent, sizeof sent);
    }
    int resets = 0;
    ssize_t n;
    do {
        n = sendmsg(run->fd, &message, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n >= 0 || errno == EPIPE || errno == ECONNRESET) { /* A refusal may be there to read, ... */
        part.iov_len = sizeof run->packet;
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        do {
            n = recvmsg(run->fd, &message, MSG_CMSG_CLOEXEC);
        } while (n < 0 &&
                 (errno == EINTR || (errno == ECONNRESET && resets++ == 0))); /* ... behind it */
    }
    if (n < 8) {
        return dpnode_fail(run, DPNODE_GONE,
                           "the node has ended or restarts its trainer: open again");
    }
    struct cmsghdr *c = CMSG_FIRSTHDR(&message);
    if (c != NULL && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
        int came;
        memcpy(&came, CMSG_DATA(c), sizeof came);
        if (file != NULL) {
            *file = came;
        } else {
            close(came);
        }
    }
    if (dpnode_get(run->packet, 4) == dpnode_refused) {
        const uint64_t code = dpnode_get(run->packet + 4, 4);
        snprintf(run->problem, sizeof run->problem, "%.*s", (int)(n - 8),
                 (const char *)run->packet + 8);
        return code == dpnode_ends || code == dpnode_slow ? DPNODE_GONE : DPNODE_REFUSED;
    }
    *got = (size_t)n;
    return DPNODE_OK;
}

static uint64_t dpnode_count(const dpnode_tensor *tensor)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        count *= tensor->shape[i];
    }
    return count;
}

static int dpnode_compare(const void *a, const void *b)
{
    return strcmp(((const dpnode_tensor *)a)->name, ((const dpnode_tensor *)b)->name);
}

/* Copies and sorts the tensors. */
static dpnode_status dpnode_take(dpnode *run, const dpnode_tensor *tensors, size_t n)
{
    run->tensors = (dpnode_tensor *)calloc(n + 1, sizeof *tensors);
    if (run->tensors == NULL) {
        return dpnode_fail(run, DPNODE_NO_MEMORY, "no memory for the list of tensors");
    }
    memcpy(run->tensors, tensors, n * sizeof *tensors);
    run->n = n;
    for (size_t i = 0; i < n; i++) {
        if (tensors[i].name == NULL || strlen(tensors[i].name) > 255 || tensors[i].values == NULL ||
            tensors[i].n_dims > DPNODE_DIMS_MAX) {
            return dpnode_fail(
                run, DPNODE_BAD_MODEL,
                "a tensor needs values, a name of at most 255 characters and at most "
                "8 dimensions");
        }
        run->elements += dpnode_count(&tensors[i]);
    }
    qsort(run->tensors, n, sizeof *run->tensors, dpnode_compare);
    return n > 0 ? DPNODE_OK
                 : dpnode_fail(run, DPNODE_BAD_MODEL, "a model has at least one tensor");
}

/* The table of tensors as a memfd (FORMATS of dpnode: DPX1). -1: no memory. */
static int dpnode_table(const dpnode *run)
{
    size_t size = 24;
    for (size_t i = 0; i < run->n; i++) {
        size += 3 + strlen(run->tensors[i].name) + 4 * (size_t)run->tensors[i].n_dims;
    }
    uint8_t *bytes = (uint8_t *)calloc(1, size);
    uint8_t *at = bytes + 24;
    if (bytes == NULL) {
        return -1;
    }
    memcpy(bytes, "DPX1\1\0\0\0", 8);
    dpnode_put(bytes + 8, run->n, 4);
    dpnode_put(bytes + 16, run->elements, 8);
    for (size_t i = 0; i < run->n; i++) {
        const dpnode_tensor *t = &run->tensors[i];
        const size_t name = strlen(t->name);
        at[0] = 1; /* F32 */
        at[1] = (uint8_t)t->n_dims;
        at[2] = (uint8_t)name;
        memcpy(at + 3, t->name, name);
        at += 3 + name;
        for (uint32_t d = 0; d < t->n_dims; d++, at += 4) {
            dpnode_put(at, t->shape[d], 4);
        }
    }
    int fd = (int)syscall(SYS_memfd_create, "dpnode-table", 1U /* close on exec */);
    if (fd >= 0 && write(fd, bytes, size) != (ssize_t)size) {
        close(fd);
        fd = -1;
    }
    free(bytes);
    return fd;
}

static dpnode_status dpnode_connect(dpnode *run, const char *path)
{
    struct sockaddr_un address;
    const char *set = getenv("DPNODE_DIR");
    const char *dir = path != NULL ? path : set != NULL && set[0] != '\0' ? set : NULL;
    const char *state = getenv("XDG_STATE_HOME");
    const char *home = getenv("HOME");
    char text[4096];
    if (dir != NULL) {
        const size_t size = strlen(dir);
        const int whole = size > 5 && strcmp(dir + size - 5, ".sock") == 0;
        snprintf(text, sizeof text, "%s%s", dir, whole ? "" : "/script.sock");
    } else if (geteuid() == 0) {
        snprintf(text, sizeof text, "/var/lib/dpnode/script.sock");
    } else if (state != NULL && state[0] == '/') {
        snprintf(text, sizeof text, "%s/dpnode/script.sock", state);
    } else {
        snprintf(text, sizeof text, "%s/.local/state/dpnode/script.sock", home != NULL ? home : "");
    }
    if (strlen(text) >= sizeof address.sun_path) {
        return dpnode_fail(run, DPNODE_NO_NODE, "the path of script.sock is too long for a socket");
    }
    memset(&address, 0, sizeof address);
    address.sun_family = AF_UNIX;
    memcpy(address.sun_path, text, strlen(text) + 1);
    run->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (run->fd < 0 || connect(run->fd, (const struct sockaddr *)&address, sizeof address) != 0) {
        snprintf(
            run->problem, sizeof run->problem,
            "no node with a run of any model at %.200s (%s): start one with dpnode up or dpnode "
            "join TOKEN, or give its directory",
            text, strerror(errno));
        return DPNODE_NO_NODE;
    }
    return DPNODE_OK;
}

static dpnode_status dpnode_greet(dpnode *run)
{
    size_t got = 0;
    int memory = -1;
    const int table = dpnode_table(run);
    if (table < 0) {
        return dpnode_fail(run, DPNODE_NO_MEMORY, "no memory for the table of tensors");
    }
    dpnode_put(run->packet, dpnode_hello, 4);
    dpnode_put(run->packet + 4, dpnode_version, 4);
    dpnode_status status = dpnode_ask(run, 8, table, &got, &memory);
    close(table);
    if (status != DPNODE_OK) {
        return status;
    }
    const uint64_t offset = dpnode_get(run->packet + 40, 8);
    run->samples = dpnode_get(run->packet + 16, 8);
    run->unit = dpnode_get(run->packet + 24, 8);
    run->tokens_total = dpnode_get(run->packet + 32, 8);
    run->bytes = (size_t)dpnode_get(run->packet + 48, 8);
    if (dpnode_get(run->packet, 4) != dpnode_welcome || got != 56 || memory < 0 ||
        dpnode_get(run->packet + 8, 8) != run->elements ||
        run->bytes < offset + run->elements * sizeof(float)) {
        status = dpnode_fail(run, DPNODE_REFUSED, "the node answers with another protocol");
    } else {
        void *at = mmap(NULL, run->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
        run->memory = at == MAP_FAILED ? NULL : (uint8_t *)at;
        run->buffer = (float *)(run->memory + offset);
        if (run->memory == NULL) {
            status = dpnode_fail(run, DPNODE_NO_MEMORY, "the shared memory cannot be mapped");
        }
    }
    if (memory >= 0) {
        close(memory);
    }
    return status;
}

/* Between the tensors and the buffer. */
static void dpnode_move(dpnode *run, int what)
{
    float *at = run->buffer;
    for (size_t i = 0; i < run->n; i++) {
        const size_t count = (size_t)dpnode_count(&run->tensors[i]);
        float *values = run->tensors[i].values;
        if (what == dpnode_assign) {
            memcpy(values, at, count * sizeof *at);
        } else if (what == dpnode_copy) {
            memcpy(at, values, count * sizeof *at);
        } else {
            for (size_t k = 0; k < count; k++) {
                values[k] += at[k];
            }
        }
        at += count;
    }
}

/* flags: 1: waits while the node is paused; 2: hands in its steps (COPY). */
static dpnode_status dpnode_look_now(dpnode *run, uint64_t flags)
{
    size_t size = 8;
    size_t got = 0;
    dpnode_put(run->packet, dpnode_looks, 4);
    dpnode_put(run->packet + 4, flags, 4);
    for (;;) {
        const dpnode_status status = dpnode_ask(run, size, -1, &got, NULL);
        if (status != DPNODE_OK) {
            return status;
        }
        const uint64_t what = dpnode_get(run->packet + 4, 4);
        if (dpnode_get(run->packet, 4) != dpnode_do || got != 24 || what > dpnode_paused) {
            return dpnode_fail(run, DPNODE_GONE, "the node answers with another protocol");
        }
        if (what == dpnode_go || what == dpnode_paused) {
            return what == dpnode_go ? DPNODE_OK : DPNODE_PAUSED;
        }
        uint64_t bits;
        dpnode_move(run, (int)what);
        run->given = what == dpnode_add ? run->given : run->steps;
        memcpy(&bits, &run->loss, sizeof bits);
        dpnode_put(run->packet, dpnode_done, 4);
        dpnode_put(run->packet + 4, what, 4);
        dpnode_put(run->packet + 8, run->steps, 8);
        dpnode_put(run->packet + 16, run->used, 8);
        dpnode_put(run->packet + 24, bits, 8);
        size = 32;
    }
}

static uint64_t dpnode_read(const dpnode *run, size_t offset)
{
    return __atomic_load_n((const uint64_t *)(const void *)(run->memory + offset),
                           __ATOMIC_RELAXED);
}

/* A worker that was killed says nothing in the memory, so the socket is looked at once a second. */
static int dpnode_is_closed(dpnode *run)
{
    struct timespec now;
    struct pollfd at = {run->fd, 0, 0}; /* POLLHUP comes unasked. */
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    if (now.tv_sec == run->looked_s) {
        return 0;
    }
    run->looked_s = now.tv_sec;
    return poll(&at, 1, 0) > 0;
}

static dpnode_status dpnode_look_if(dpnode *run, uint64_t flags)
{
    const uint32_t *word = (const uint32_t *)(const void *)run->memory;
    if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == 0 && !dpnode_is_closed(run)) {
        return DPNODE_OK;
    }
    return dpnode_look_now(run, flags);
}

dpnode_status dpnode_open(dpnode **run, const char *path, const dpnode_tensor *tensors, size_t n)
{
    dpnode *made = (dpnode *)calloc(1, sizeof *made);
    dpnode_status status = DPNODE_NO_MEMORY;
    *run = NULL;
    if (made == NULL) {
        snprintf(dpnode_last_problem, sizeof dpnode_last_problem, "no memory");
        return status;
    }
    made->fd = -1;
    status = dpnode_take(made, tensors, n);
    status = status == DPNODE_OK ? dpnode_connect(made, path) : status;
    status = status == DPNODE_OK ? dpnode_greet(made) : status;
    status = status == DPNODE_OK ? dpnode_look_now(made, 0) : status; /* ASSIGN */
    if (status != DPNODE_OK && status != DPNODE_PAUSED) {
        snprintf(dpnode_last_problem, sizeof dpnode_last_problem, "%s", made->problem);
        dpnode_close(made);
        return status;
    }
    *run = made;
    return DPNODE_OK;
}

dpnode_status dpnode_close(dpnode *run)
{
    dpnode_status status = DPNODE_OK;
    if (run == NULL) {
        return status;
    }
    if (run->memory != NULL && run->steps > 0) { /* The last copy may have been refused since. */
        const int gives = run->steps > run->given;
        status = dpnode_look_now(run, gives ? 2 : 0);
        status = status == DPNODE_PAUSED || (status == DPNODE_GONE && !gives) ? DPNODE_OK : status;
        snprintf(dpnode_last_problem, sizeof dpnode_last_problem, "%s", run->problem);
    }
    if (run->memory != NULL) {
        munmap(run->memory, run->bytes);
    }
    if (run->fd >= 0) {
        close(run->fd);
    }
    free(run->tensors);
    free(run);
    return status;
}

const char *dpnode_problem(const dpnode *run)
{
    return run != NULL ? run->problem : dpnode_last_problem;
}

dpnode_status dpnode_state(const dpnode *run)
{
    return run->end;
}

static uint32_t dpnode_draw_now(dpnode *run, uint64_t *indices, uint32_t n)
{
    size_t got = 0;
    dpnode_put(run->packet, dpnode_draws, 4);
    dpnode_put(run->packet + 4, n, 4);
    if (dpnode_ask(run, 8, -1, &got, NULL) != DPNODE_OK) {
        return 0;
    }
    const uint64_t made = dpnode_get(run->packet + 4, 4);
    if (dpnode_get(run->packet, 4) != dpnode_drawn || made > n || got != 8 + 8 * made) {
        run->end = dpnode_fail(run, DPNODE_GONE, "the node answers with another protocol");
        return 0;
    }
    for (uint32_t i = 0; i < made; i++) {
        indices[i] = dpnode_get(run->packet + 8 + 8 * (size_t)i, 8);
    }
    return (uint32_t)made;
}

uint32_t dpnode_draw(dpnode *run, uint64_t *indices, uint32_t n)
{
    n = n < (uint32_t)dpnode_draw_max ? n : (uint32_t)dpnode_draw_max;
    uint32_t made = n > 0 ? dpnode_draw_now(run, indices, n) : 0;
    if (made < n && run->end == DPNODE_OK && run->steps > run->given) {
        dpnode_look_now(run, 2); /* A copy makes room. */
        made += dpnode_draw_now(run, indices + made, n - made);
    }
    if (made < n && run->end == DPNODE_OK) {
        dpnode_fail(run, DPNODE_OK, "a million samples are drawn and unused: take steps first");
    }
    return made;
}

dpnode_status dpnode_step(dpnode *run, uint64_t samples, double loss)
{
    uint64_t bits;
    run->steps++;
    run->used += samples;
    run->last_loss = isfinite(loss) ? loss : run->last_loss;
    run->loss += run->last_loss;
    memcpy(&bits, &run->loss, sizeof bits);
    __atomic_store_n((uint64_t *)(void *)(run->memory + 72), run->used, __ATOMIC_RELAXED);
    __atomic_store_n((uint64_t *)(void *)(run->memory + 80), bits, __ATOMIC_RELAXED);
    __atomic_store_n((uint64_t *)(void *)(run->memory + 64), run->steps, __ATOMIC_RELEASE);
    return dpnode_look_if(run, 1);
}

dpnode_status dpnode_look(dpnode *run)
{
    return dpnode_look_if(run, 0);
}

uint64_t dpnode_samples(const dpnode *run)
{
    return run->samples;
}

uint64_t dpnode_unit(const dpnode *run)
{
    return run->unit;
}

uint64_t dpnode_round(const dpnode *run)
{
    return dpnode_read(run, 8);
}

uint64_t dpnode_tokens(const dpnode *run)
{
    return dpnode_read(run, 16);
}

uint64_t dpnode_tokens_total(const dpnode *run)
{
    return run->tokens_total;
}

#endif /* DPNODE_IMPLEMENTED */
#endif /* DPNODE_IMPLEMENTATION */
