/* The others of a team: their lives between orders, and within one. */
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "compute/numa.h"
#include "compute/pool.h"
#include "compute/team_inside.h"

/* False at the end of the socket. */
static bool next_order(int socket, dp_team_order *order, int fds[DP_TEAM_FDS])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char bytes[CMSG_SPACE(DP_TEAM_FDS * sizeof(int))];
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
    if (head == NULL || head->cmsg_len != CMSG_LEN(DP_TEAM_FDS * sizeof(int))) {
        return false;
    }
    memcpy(fds, CMSG_DATA(head), DP_TEAM_FDS * sizeof(int));
    return true;
}

/* Until it is told to quit, or the first process is gone. */
static void obey(dp_team_member *m)
{
    uint32_t culprit;
    for (;;) {
        if (dp_gate_wait(&m->board->gate, m->rank, UINT64_MAX, &culprit) != DP_OK ||
            m->board->command == DP_TEAM_QUIT) {
            return;
        }
        dp_team_member_obey(m);
        if (dp_gate_wait(&m->board->gate, m->rank, UINT64_MAX, &culprit) != DP_OK) {
            return;
        }
    }
}

static dp_status prepare(dp_team_member *m, dp_team_order *order, const int fds[DP_TEAM_FDS],
                         dp_model *model, dp_why *why)
{
    /* Before memory is taken. Where it cannot be, it runs anywhere. */
    DP_IGNORE(dp_numa_bind(DP_NUMA_FOLDER, order->zero.rank, order->zero.processes));
    DP_TRY(dp_model_open(model, &order->model, why));
    order->zero.optim.model = model;
    DP_TRY(dp_pool_open(&m->pool, order->setup.threads));
    const dp_gpt_options options = {.rows_max =
                                        dp_team_rows(order->setup.rows_max, order->zero.lanes),
                                    .pool = m->pool,
                                    .precision = dp_precision_of_kind(order->setup.precision),
                                    .recompute = order->setup.recompute,
                                    .packs = order->setup.packs,
                                    .grads_elsewhere = true};
    DP_TRY(dp_gpt_open(&m->gpt, model, &options));
    return dp_team_member_open(m, order, fds, why);
}

void dp_team_serve(int socket)
{
    dp_team_order order;
    int fds[DP_TEAM_FDS];
    while (next_order(socket, &order, fds)) {
        dp_team_member m = {0};
        dp_model model = {0};
        dp_team_verdict verdict = {.status = DP_OK};
        verdict.status = prepare(&m, &order, fds, &model, &verdict.why);
        close(fds[0]);
        close(fds[1]);
        /* Who does not hear it is gone, which the gate says too. */
        DP_IGNORE(send(socket, &verdict, sizeof verdict, MSG_NOSIGNAL) < 0);
        if (verdict.status == DP_OK) {
            obey(&m);
        }
        dp_gpt *const gpt = m.gpt;
        dp_pool *const pool = m.pool;
        dp_team_member_close(&m);
        dp_gpt_close(gpt);
        dp_pool_close(pool);
        dp_model_close(&model);
    }
}
