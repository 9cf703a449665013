#include "compute/cuda/link.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/alloc.h"

enum {
    NCCL_OK = 0,
    NCCL_IN_PROGRESS = 7,
    NCCL_FLOAT = 7,
    CONFIG_VERSION = 21400,
    CONFIG_NOT_BLOCKING = 0,
    NAP_NS = 200 * 1000
};

static const unsigned config_magic = 0xcafebeefU;

/* As nccl.h of release 2.14 lays them out, which every later one takes; their names there are in
 * the strings below. */
typedef struct config {
    size_t size;
    unsigned magic;
    unsigned version;
    int blocking;
    int rest; /* 0: the start of the fields of later releases, which read them by version */
} config;

typedef struct unique_id {
    char bytes[DP_LINK_BYTES];
} unique_id;

_Static_assert(sizeof(config) == 24, "the structure of release 2.14");

typedef struct library {
    void *handle;
    int (*version)(int *out);
    int (*make_id)(unique_id *out);
    int (*init)(void **out, int count, unique_id id, int rank, config *config);
    int (*state)(void *comm, int *out);
    int (*abort)(void *comm);
    int (*group_start)(void);
    int (*group_end)(void);
    int (*send)(const void *from, size_t n, int type, int peer, void *comm, cudaStream_t stream);
    int (*receive)(void *to, size_t n, int type, int peer, void *comm, cudaStream_t stream);
    const char *(*text)(int result);
} library;

struct dp_cuda_link {
    library nccl;
    dp_cuda_device *device;
    dp_card_link link;
    void *comm;
};

/* ---- The library. */

/* False when it lacks the call. */
static bool find(const library *l, const char *name, void *call)
{
    void *const symbol = dlsym(l->handle, name);
    memcpy(call, &symbol, sizeof symbol); /* ISO C has no cast from data to functions. */
    return symbol != NULL;
}

static bool find_all(library *l)
{
    return find(l, "ncclGetVersion", &l->version) && find(l, "ncclGetUniqueId", &l->make_id) &&
           find(l, "ncclCommInitRankConfig", &l->init) &&
           find(l, "ncclCommGetAsyncError", &l->state) && find(l, "ncclCommAbort", &l->abort) &&
           find(l, "ncclGroupStart", &l->group_start) && find(l, "ncclGroupEnd", &l->group_end) &&
           find(l, "ncclSend", &l->send) && find(l, "ncclRecv", &l->receive) &&
           find(l, "ncclGetErrorString", &l->text);
}

/* It is never closed: it may have threads of its own. */
static dp_status library_open(library *l, const char *file, int *version, dp_why *why)
{
    *l = (library){.handle = dlopen(file, RTLD_NOW | RTLD_LOCAL)};
    if (l->handle == NULL) {
        return dp_why_set(why, DP_UNSUPPORTED, "no NCCL: %s is not installed", file);
    }
    *version = 0;
    const bool whole = find_all(l);
    if ((!whole && l->version == NULL) || l->version(version) != NCCL_OK) {
        return dp_why_set(why, DP_UNSUPPORTED, "%s is no NCCL, or does not say its release", file);
    }
    if (!whole || *version < DP_CUDA_NCCL_MIN) {
        return dp_why_set(why, DP_UNSUPPORTED, "NCCL is too old: %s has number %d, and 2.14 is %d",
                          file, *version, DP_CUDA_NCCL_MIN);
    }
    return DP_OK;
}

dp_status dp_cuda_link_library(const char *file, char name[DP_DEVICE_NAME_MAX], dp_why *why)
{
    enum { MAJOR = 10000, MINOR = 100 };
    library l;
    int version;
    DP_TRY(library_open(&l, file, &version, why));
    snprintf(name, DP_DEVICE_NAME_MAX, "NCCL %d.%d.%d", version / MAJOR, version % MAJOR / MINOR,
             version % MINOR);
    return DP_OK;
}

dp_status dp_cuda_link_id(const char *file, dp_card_link_id *out, dp_why *why)
{
    library l;
    int version;
    unique_id id;
    DP_TRY(library_open(&l, file, &version, why));
    const int error = l.make_id(&id);
    if (error != NCCL_OK) {
        return dp_why_set(why, DP_UNSUPPORTED, "NCCL begins no link: %s", l.text(error));
    }
    memcpy(out->bytes, id.bytes, sizeof out->bytes);
    return DP_OK;
}

/* ---- Waiting. */

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

/* Until NCCL has finished the call on the host's side. DP_OK also where that failed: *error says
 * how. DP_CLOSED: another process is gone; DP_TIMEOUT. */
static dp_status settle(const dp_cuda_link *l, uint32_t wait_ms, int *error)
{
    const uint64_t deadline = now_ms() + wait_ms;
    for (;;) {
        int state = NCCL_OK;
        const int asked = l->nccl.state(l->comm, &state);
        *error = asked != NCCL_OK ? asked : state;
        if (*error != NCCL_IN_PROGRESS) {
            return DP_OK;
        }
        if (l->link.is_over(l->link.context)) {
            return DP_CLOSED;
        }
        if (now_ms() >= deadline) {
            return DP_TIMEOUT;
        }
        nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

/* ---- Life. */

void dp_cuda_link_close(dp_cuda_link *l)
{
    if (l == NULL) {
        return;
    }
    l->device->is_over = NULL;
    if (l->comm != NULL) {
        if (!l->device->hangs) {
            dp_cuda_here(l->device);
        }
        DP_IGNORE(l->nccl.abort(l->comm) != NCCL_OK); /* Then there is nothing more to be done. */
    }
    dp_free(l);
}

static dp_status join(dp_cuda_link *l, uint32_t rank, uint32_t count, uint32_t wait_ms, dp_why *why)
{
    config how = {.size = sizeof how,
                  .magic = config_magic,
                  .version = CONFIG_VERSION,
                  .blocking = CONFIG_NOT_BLOCKING};
    unique_id id;
    memcpy(id.bytes, l->link.id.bytes, sizeof id.bytes);
    dp_cuda_here(l->device);
    int error = l->nccl.init(&l->comm, (int)count, id, (int)rank, &how);
    dp_status status = DP_OK;
    if ((error == NCCL_OK || error == NCCL_IN_PROGRESS) && l->comm != NULL) {
        status = settle(l, wait_ms, &error);
    }
    if (status == DP_CLOSED) {
        return dp_why_set(why, DP_IO, "a process of another card is gone while NCCL began");
    }
    if (status == DP_TIMEOUT) {
        return dp_why_set(why, DP_UNSUPPORTED, "NCCL does not bring the %" PRIu32 " cards together",
                          count);
    }
    if (error != NCCL_OK || l->comm == NULL) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "NCCL does not join %s (%s); NCCL_DEBUG=WARN says more",
                          l->device->properties.name, l->nccl.text(error));
    }
    return DP_OK;
}

dp_status dp_cuda_link_open(dp_cuda_link **out, const char *file, dp_cuda_device *device,
                            const dp_card_link *link, uint32_t rank, uint32_t count,
                            uint32_t wait_ms, dp_why *why)
{
    int version;
    library nccl;
    DP_TRY(library_open(&nccl, file, &version, why));
    dp_cuda_link *const l = dp_alloc(1, sizeof *l);
    if (l == NULL) {
        return DP_NOMEM;
    }
    *l = (dp_cuda_link){.nccl = nccl, .device = device, .link = *link};
    const dp_status status = join(l, rank, count, wait_ms, why);
    if (status != DP_OK) {
        dp_cuda_link_close(l);
        return status;
    }
    device->is_over = link->is_over;
    device->is_over_context = link->context;
    *out = l;
    return DP_OK;
}

/* ---- Moving. */

static int put(const dp_cuda_link *l, const dp_cuda_move *m, cudaStream_t stream)
{
    if (m->n == 0) {
        return NCCL_OK;
    }
    return m->sends ? l->nccl.send(m->at, m->n, NCCL_FLOAT, (int)m->peer, l->comm, stream)
                    : l->nccl.receive(m->at, m->n, NCCL_FLOAT, (int)m->peer, l->comm, stream);
}

static bool failed(int error)
{
    return error != NCCL_OK && error != NCCL_IN_PROGRESS;
}

dp_status dp_cuda_link_run(dp_cuda_link *l, const dp_cuda_move *moves, size_t n,
                           cudaStream_t stream)
{
    dp_cuda_device *const device = l->device;
    if (device->lost) {
        return DP_IO;
    }
    dp_cuda_here(device);
    int error = l->nccl.group_start();
    for (size_t i = 0; i < n && !failed(error); i++) {
        error = put(l, &moves[i], stream);
    }
    const int ended = l->nccl.group_end(); /* Also after a failure, so that the group is closed. */
    error = failed(error) ? error : ended;
    dp_status status = DP_OK;
    if (!failed(error)) {
        status = settle(l, device->wait_ms, &error);
    }
    if (status == DP_OK && error == NCCL_OK) {
        return DP_OK;
    }
    device->lost = true;
    device->hangs = status == DP_TIMEOUT;
    return status == DP_CLOSED
               ? dp_why_set(&device->problem, DP_IO, "a process of another card is gone")
           : status == DP_TIMEOUT
               ? dp_why_set(&device->problem, DP_IO, "%s: NCCL has not answered for %" PRIu32 " s",
                            device->properties.name, device->wait_ms / 1000)
               : dp_why_set(&device->problem, DP_IO, "%s: NCCL fails (%s)", device->properties.name,
                            l->nccl.text(error));
}
