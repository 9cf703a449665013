/* The model of a group reaches its processes: makes the shared memory, sends each process its order
 * and waits for their answers. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "compute/backend/process_group_inside.h"

static dp_status send_order(int socket, const dp_process_group_order *order,
                            const int fds[DP_PROCESS_GROUP_FDS])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char bytes[CMSG_SPACE(DP_PROCESS_GROUP_FDS * sizeof(int))];
    } control = {.bytes = {0}};
    dp_process_group_order copy = *order;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof copy};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(DP_PROCESS_GROUP_FDS * sizeof(int));
    memcpy(CMSG_DATA(head), fds, DP_PROCESS_GROUP_FDS * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof copy ? DP_OK : DP_IO;
}

/* Makes the board in shared memory, with its barrier. */
static dp_status make_board(int *fd, size_t bytes, uint32_t processes)
{
    const int made = memfd_create("dpnode-team", MFD_CLOEXEC);
    if (made < 0) {
        return DP_IO;
    }
    dp_process_group_board *board = MAP_FAILED;
    if (ftruncate(made, (off_t)bytes) == 0) {
        board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    }
    if (board == MAP_FAILED) {
        close(made);
        return DP_NOMEM;
    }
    const dp_status status = dp_process_barrier_make(&board->gate, processes);
    munmap(board, bytes);
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

static dp_process_group_order order_of(const dp_process_group *team, const dp_engine_setup *setup)
{
    const size_t tokens = (size_t)setup->rows_max * setup->model->config.context;
    return (dp_process_group_order){.model = setup->model->config,
                                    .setup = *setup,
                                    .zero = {.optim = {.model = setup->model,
                                                       .kind = setup->optimizer,
                                                       .weights = setup->weights,
                                                       .seed = setup->seed,
                                                       .threads = setup->threads},
                                             .processes = team->processes,
                                             .lanes = team->lanes,
                                             .wait_us = DP_PROCESS_GROUP_WAIT_US},
                                    .board_bytes = sizeof(dp_process_group_board) +
                                                   2 * tokens * sizeof(uint32_t)};
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

/* Waits until there is something to read, or the process has ended, which closes its end of the
 * socket. False: neither in time. */
static bool wait_for(int socket, uint32_t most_ms)
{
    const uint64_t deadline = now_ms() + most_ms;
    for (;;) {
        const uint64_t now = now_ms();
        struct pollfd one = {.fd = socket, .events = POLLIN};
        const int got = poll(&one, 1, now < deadline ? (int)(deadline - now) : 0);
        if (got > 0 || (got < 0 && errno != EINTR)) {
            return true;
        }
        if (now >= deadline) {
            return false;
        }
    }
}

static dp_status hear_one(const dp_process_group *team, uint32_t rank, dp_why *why)
{
    dp_process_group_verdict verdict;
    if (!wait_for(team->others[rank].socket, team->open_ms)) {
        /* An answer that came later would be taken for one to the next order. */
        DP_IGNORE(kill(team->others[rank].pid, SIGKILL) != 0);
        return dp_why_set(why, DP_IO, "process %u of %u does not answer", rank, team->processes);
    }
    if (recv(team->others[rank].socket, &verdict, sizeof verdict, MSG_DONTWAIT) !=
        (ssize_t)sizeof verdict) {
        return dp_why_set(why, DP_IO, "process %u of %u is gone", rank, team->processes);
    }
    verdict.why.text[sizeof verdict.why.text - 1] = '\0';
    return verdict.status == DP_OK
               ? DP_OK
               : dp_why_set(why, verdict.status, "process %u of %u: %.400s", rank, team->processes,
                            verdict.why.text[0] != '\0' ? verdict.why.text
                                                        : dp_status_text(verdict.status));
}

/* Receives every answer, so that none is taken for one to a later order. Returns the last status
 * that is not DP_OK. */
static dp_status hear_all(const dp_process_group *team, dp_why *why)
{
    dp_status status = DP_OK;
    for (uint32_t rank = 1; rank < team->processes; rank++) {
        const dp_status one = hear_one(team, rank, why);
        status = one != DP_OK ? one : status;
    }
    return status;
}

/* Opens the own member, sends the orders and waits for all answers. */
static dp_status gather_all(const dp_process_group *team, dp_process_group_member *own,
                            dp_process_group_order *order, const int fds[DP_PROCESS_GROUP_FDS],
                            dp_why *why)
{
    /* Open the own member first: if that fails, no other process waits. Processes that wait at the
     * barrier of a first process that leaves go back to their socket. */
    DP_TRY(dp_process_group_member_open(own, order, fds, why));
    for (uint32_t rank = 1; rank < team->processes; rank++) {
        order->zero.rank = rank;
        order->device = team->cards != NULL ? team->cards->devices[rank] : 0;
        if (send_order(team->others[rank].socket, order, fds) != DP_OK) {
            return dp_why_set(why, DP_IO, "process %u of %u is gone", rank, team->processes);
        }
    }
    return hear_all(team, why);
}

dp_status dp_process_group_set_up(const dp_process_group *team, dp_process_group_member *own,
                                  const dp_engine_setup *setup, dp_why *why)
{
    dp_process_group_order order = order_of(team, setup);
    if (own->engine != NULL) {
        order.backend = team->cards->inner;
        memcpy(order.path, team->cards->path, sizeof order.path);
    }
    int fds[DP_PROCESS_GROUP_FDS] = {-1, -1};
    dp_status status = make_board(&fds[0], order.board_bytes, team->processes);
    if (status == DP_OK) {
        status = dp_zero_make(&fds[1], &order.zero);
    }
    if (status == DP_OK) {
        status = gather_all(team, own, &order, fds, why);
    }
    for (size_t i = 0; i < DP_PROCESS_GROUP_FDS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return status;
}
