/* The others of a team: their lives between orders, and within one. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/backend/plugin.h"
#include "compute/backend/process_group_inside.h"
#include "compute/machine/numa.h"
#include "compute/machine/pool.h"

/* False at the end of the socket. */
static bool next_order(int socket, dp_process_group_order *order, int fds[DP_PROCESS_GROUP_FDS])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char bytes[CMSG_SPACE(DP_PROCESS_GROUP_FDS * sizeof(int))];
    } control;
    struct iovec part = {.iov_base = order, .iov_len = sizeof *order};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *order) {
        return false;
    }
    const struct cmsghdr *const head = CMSG_FIRSTHDR(&message);
    if (head == NULL || head->cmsg_len != CMSG_LEN(DP_PROCESS_GROUP_FDS * sizeof(int))) {
        return false;
    }
    memcpy(fds, CMSG_DATA(head), DP_PROCESS_GROUP_FDS * sizeof(int));
    return true;
}

/* Until it is told to quit, or the first process is gone. */
static void obey(dp_process_group_member *m)
{
    uint32_t culprit;
    for (;;) {
        if (dp_process_barrier_wait(&m->board->gate, m->rank, UINT64_MAX, &culprit) != DP_OK ||
            m->board->command == DP_PROCESS_GROUP_QUIT) {
            return;
        }
        dp_process_group_member_obey(m);
        if (dp_process_barrier_wait(&m->board->gate, m->rank, UINT64_MAX, &culprit) != DP_OK) {
            return;
        }
    }
}

/* The member and the model of a process but the first. */
typedef struct post {
    dp_process_group_member member;
    dp_model model;
} post;

static dp_status open_cpu(post *p, const dp_process_group_order *order)
{
    const dp_gpt_options options = {
        .rows_max = dp_process_group_rows(order->setup.rows_max, order->zero.lanes),
        .pool = p->member.pool,
        .precision = dp_precision_of_kind(order->setup.precision),
        .recompute = order->setup.recompute,
        .packs = order->setup.packs,
        .grads_elsewhere = true};
    return dp_gpt_open(&p->member.gpt, &p->model, &options);
}

/* It holds no work buffers of rounds, which are the first one's. */
static dp_status open_card(post *p, const dp_process_group_order *order, dp_why *why)
{
    dp_process_group_member *const m = &p->member;
    m->backend = order->backend;
    if (order->path[0] != '\0') {
        DP_TRY(dp_plugin_load(order->path, &m->backend, why));
    }
    if (m->backend->parts == NULL) {
        return dp_why_set(why, DP_UNSUPPORTED, "the backend '%s' trains on one device alone",
                          m->backend->name);
    }
    dp_engine_setup setup = order->setup;
    setup.model = &p->model;
    setup.team = NULL;
    setup.device = order->device;
    setup.rows_max = dp_process_group_rows(order->setup.rows_max, order->zero.lanes);
    setup.part = order->zero.rank;
    setup.parts = order->zero.processes;
    setup.alone = true;
    setup.momentum = false;
    return m->backend->create(&m->engine, &setup, why);
}

static dp_status prepare(post *p, dp_process_group_order *order,
                         const int fds[DP_PROCESS_GROUP_FDS], dp_why *why)
{
    const bool card = order->backend != NULL || order->path[0] != '\0';
    /* Before memory is taken. Where it cannot be, it runs anywhere. */
    DP_IGNORE(dp_numa_bind(DP_NUMA_FOLDER, order->zero.rank, order->zero.processes));
    DP_TRY(dp_model_open(&p->model, &order->model, why));
    order->zero.optim.model = &p->model;
    DP_TRY(dp_pool_open(&p->member.pool, order->setup.threads));
    DP_TRY(card ? open_card(p, order, why) : open_cpu(p, order));
    return dp_process_group_member_open(&p->member, order, fds, why);
}

static void close_post(post *p)
{
    dp_gpt *const gpt = p->member.gpt;
    dp_pool *const pool = p->member.pool;
    const dp_backend *const backend = p->member.backend;
    dp_engine *const engine = p->member.engine;
    if (engine != NULL) {
        backend->close(engine); /* It asks the member that is gone until it is closed. */
    }
    dp_process_group_member_close(&p->member);
    dp_gpt_close(gpt);
    dp_pool_close(pool);
    dp_model_close(&p->model);
}

void dp_process_group_serve(int socket)
{
    dp_process_group_order order;
    int fds[DP_PROCESS_GROUP_FDS];
    while (next_order(socket, &order, fds)) {
        post p = {.member = {0}};
        dp_process_group_verdict verdict = {.status = DP_OK};
        verdict.status = prepare(&p, &order, fds, &verdict.why);
        close(fds[0]);
        close(fds[1]);
        /* A failed send means that the first process is gone, and the barrier tells that too. */
        DP_IGNORE(send(socket, &verdict, sizeof verdict, MSG_NOSIGNAL) < 0);
        if (verdict.status == DP_OK) {
            obey(&p.member);
        }
        close_post(&p);
    }
}
