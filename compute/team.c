/* The first process of a team: the others' lives, and what it tells them. */
#include "compute/team.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/numa.h"
#include "compute/team_inside.h"

struct dp_team_engine {
    dp_team *team; /* borrowed */
    dp_team_member member;
    size_t n;
    bool moved;   /* the others have not seen the weights as they are */
    bool summed;  /* lane 0 holds the gradient of all, board->norm its length */
    bool dropped; /* lanes are to be cleaned before they are used */
    bool broken;
    float *whole[DP_OPTIM_VECTORS_MAX]; /* n floats each, once lent; owned */
    dp_why problem;
};

/* ---- Processes. */

/* Nothing of the first process's may stay open here: who reads from its sockets waits for their end. */
static void keep_only(int socket)
{
    if (socket > STDERR_FILENO + 1) {
        close_range(STDERR_FILENO + 1, (unsigned)socket - 1, 0);
    }
    close_range((unsigned)socket + 1, ~0U, 0);
}

static void live(int socket, pid_t first)
{
    /* Also where the first process is killed before it could say so. */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != first) {
        _exit(1);
    }
    /* What a terminal sends to all of them is the first one's to answer. */
    DP_IGNORE(signal(SIGINT, SIG_IGN) == SIG_ERR);
    DP_IGNORE(signal(SIGTERM, SIG_IGN) == SIG_ERR);
    keep_only(socket);
    dp_team_serve(socket);
    _exit(0);
}

static dp_status fork_one(dp_team *team, uint32_t rank)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return DP_IO;
    }
    const pid_t first = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        live(pair[1], first);
    }
    close(pair[1]);
    if (pid < 0) {
        close(pair[0]);
        return DP_NOMEM;
    }
    team->others[rank].pid = pid;
    team->others[rank].socket = pair[0];
    return DP_OK;
}

dp_status dp_team_start(dp_team **out, uint32_t processes, uint32_t lanes, dp_why *why)
{
    const uint32_t wanted = lanes != 0 ? lanes : processes;
    if (processes == 0 || processes > DP_GATE_PROCESSES_MAX || wanted < processes ||
        wanted > DP_ZERO_LANES_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "%u processes with %u lanes: 1 to %d processes, and a "
                          "lane or more for each, %d at most",
                          processes, wanted, DP_GATE_PROCESSES_MAX, DP_ZERO_LANES_MAX);
    }
    dp_team *const team = dp_alloc(1, sizeof *team);
    if (team == NULL) {
        return DP_NOMEM;
    }
    team->processes = processes;
    team->lanes = wanted;
    team->open_ms = DP_TEAM_WAIT_US / 1000;
    dp_status status = DP_OK;
    for (uint32_t rank = 1; rank < processes && status == DP_OK; rank++) {
        status = fork_one(team, rank);
    }
    if (status != DP_OK) {
        dp_team_close(team);
        return dp_why_set(why, status, "no room for %u processes that compute", processes);
    }
    *out = team;
    return DP_OK;
}

/* It holds nothing that another one needs. */
static void end_one(const dp_team *team, uint32_t rank)
{
    close(team->others[rank].socket);
    DP_IGNORE(kill(team->others[rank].pid, SIGKILL) != 0);
    DP_IGNORE(waitpid(team->others[rank].pid, NULL, 0) < 0); /* Gone is what it should be. */
}

void dp_team_close(dp_team *team)
{
    if (team == NULL) {
        return;
    }
    for (uint32_t rank = 1; rank < team->processes; rank++) {
        if (team->others[rank].pid > 0) {
            end_one(team, rank);
        }
    }
    dp_free(team);
}

uint32_t dp_team_processes(const dp_team *team)
{
    return team->processes;
}

uint32_t dp_team_lanes(const dp_team *team)
{
    return team->lanes;
}

void dp_team_bind(const dp_team *team)
{
    DP_IGNORE(dp_numa_bind(DP_NUMA_FOLDER, 0, team->processes)); /* Else it runs anywhere. */
}

/* ---- Opening. */

static dp_status send_order(int socket, const dp_team_order *order, const int fds[DP_TEAM_FDS])
{
    union {
        struct cmsghdr head; /* for its alignment */
        char bytes[CMSG_SPACE(DP_TEAM_FDS * sizeof(int))];
    } control = {.bytes = {0}};
    dp_team_order copy = *order;
    struct iovec part = {.iov_base = &copy, .iov_len = sizeof copy};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    struct cmsghdr *const head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(DP_TEAM_FDS * sizeof(int));
    memcpy(CMSG_DATA(head), fds, DP_TEAM_FDS * sizeof(int));
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof copy ? DP_OK : DP_IO;
}

/* The board in memory of its own, with its gate. */
static dp_status make_board(int *fd, size_t bytes, uint32_t processes)
{
    const int made = memfd_create("dpnode-team", MFD_CLOEXEC);
    if (made < 0) {
        return DP_IO;
    }
    dp_team_board *board = MAP_FAILED;
    if (ftruncate(made, (off_t)bytes) == 0) {
        board = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
    }
    if (board == MAP_FAILED) {
        close(made);
        return DP_NOMEM;
    }
    const dp_status status = dp_gate_make(&board->gate, processes);
    munmap(board, bytes);
    if (status != DP_OK) {
        close(made);
        return status;
    }
    *fd = made;
    return DP_OK;
}

static dp_team_order order_of(const dp_team *team, const dp_engine_setup *setup)
{
    const size_t tokens = (size_t)setup->rows_max * setup->model->config.context;
    return (dp_team_order){.model = setup->model->config,
                           .setup = *setup,
                           .zero = {.optim = {.model = setup->model,
                                              .kind = setup->optimizer,
                                              .weights = setup->weights,
                                              .seed = setup->seed},
                                    .processes = team->processes,
                                    .lanes = team->lanes,
                                    .wait_us = DP_TEAM_WAIT_US},
                           .board_bytes = sizeof(dp_team_board) + 2 * tokens * sizeof(uint32_t)};
}

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000U + (uint64_t)now.tv_nsec / 1000000U;
}

/* Until there is something to read, or its process has ended: the kernel closes the other end with it. False: neither in time. */
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

static dp_status hear_one(const dp_team *team, uint32_t rank, dp_why *why)
{
    dp_team_verdict verdict;
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

/* Each, so that no answer is taken for one to a later order. The last that is not DP_OK. */
static dp_status hear_all(const dp_team *team, dp_why *why)
{
    dp_status status = DP_OK;
    for (uint32_t rank = 1; rank < team->processes; rank++) {
        const dp_status one = hear_one(team, rank, why);
        status = one != DP_OK ? one : status;
    }
    return status;
}

/* All that were told come to the board, or the gate says who did not. */
static dp_status gather_all(dp_team_engine *e, dp_team_order *order, const int fds[DP_TEAM_FDS],
                            dp_why *why)
{
    /* First, so that where it fails nobody waits; who waits at the gate of a first process that leaves goes back to its socket. */
    DP_TRY(dp_team_member_open(&e->member, order, fds, why));
    for (uint32_t rank = 1; rank < e->team->processes; rank++) {
        order->zero.rank = rank;
        if (send_order(e->team->others[rank].socket, order, fds) != DP_OK) {
            return dp_why_set(why, DP_IO, "process %u of %u is gone", rank, e->team->processes);
        }
    }
    return hear_all(e->team, why);
}

static dp_status open_engine(dp_team_engine *e, const dp_engine_setup *setup, dp_why *why)
{
    dp_team_order order = order_of(e->team, setup);
    int fds[DP_TEAM_FDS] = {-1, -1};
    dp_status status = make_board(&fds[0], order.board_bytes, e->team->processes);
    if (status == DP_OK) {
        status = dp_zero_make(&fds[1], &order.zero);
    }
    if (status == DP_OK) {
        status = gather_all(e, &order, fds, why);
    }
    for (size_t i = 0; i < DP_TEAM_FDS; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return status;
}

dp_status dp_team_open(dp_team_engine **out, dp_team *team, const dp_engine_setup *setup,
                       dp_gpt *gpt, dp_pool *pool, dp_why *why)
{
    dp_team_engine *const e = dp_alloc(1, sizeof *e);
    if (e == NULL) {
        return DP_NOMEM;
    }
    e->team = team;
    e->n = setup->model->n_elements;
    e->moved = true;
    e->dropped = true;
    e->member.gpt = gpt;
    e->member.pool = pool;
    const dp_status status = open_engine(e, setup, why);
    if (status != DP_OK) {
        e->broken = true; /* Not all are there to be told to quit. */
        dp_team_engine_close(e);
        return status;
    }
    *out = e;
    return DP_OK;
}

/* ---- Telling. */

static dp_status meet(dp_team_engine *e)
{
    uint32_t culprit = 0;
    const dp_status status = dp_gate_wait(&e->member.board->gate, 0, DP_TEAM_WAIT_US, &culprit);
    if (status == DP_OK) {
        return DP_OK;
    }
    e->broken = true;
    return dp_why_set(&e->problem, DP_IO,
                      "process %u of the %u that compute %s; the trainer starts again", culprit,
                      e->team->processes, status == DP_TIMEOUT ? "does not answer" : "is gone");
}

/* All do it. The first status that is not DP_OK, by rank. */
static dp_status tell(dp_team_engine *e, dp_team_command command)
{
    dp_team_board *const b = e->member.board;
    if (e->broken) {
        return DP_IO;
    }
    b->command = command;
    DP_TRY(meet(e));
    dp_team_member_obey(&e->member);
    DP_TRY(meet(e));
    for (uint32_t rank = 0; rank < e->team->processes; rank++) {
        const dp_status status = b->statuses[rank];
        if (status == DP_CLOSED || status == DP_TIMEOUT || status == DP_NOMEM) {
            e->broken = true;
            return dp_why_set(&e->problem, DP_IO, "%.400s",
                              b->whys[rank].text[0] != '\0' ? b->whys[rank].text
                                                            : dp_status_text(status));
        }
        DP_TRY(status);
    }
    return DP_OK;
}

void dp_team_engine_close(dp_team_engine *e)
{
    if (e == NULL) {
        return;
    }
    if (e->member.entered && !e->broken) {
        e->member.board->command = DP_TEAM_QUIT;
        DP_IGNORE(meet(e)); /* Who is gone needs not be told. */
    }
    dp_team_member_close(&e->member);
    for (size_t i = 0; i < DP_OPTIM_VECTORS_MAX; i++) {
        dp_free(e->whole[i]);
    }
    dp_free(e);
}

const char *dp_team_problem(const dp_team_engine *e)
{
    return e->problem.text;
}

/* ---- The calls. */

void dp_team_moved(dp_team_engine *e)
{
    e->moved = true;
}

void dp_team_drop(dp_team_engine *e)
{
    e->dropped = true;
    e->summed = false;
}

/* Before anybody begins, so that a batch is added whole or not at all. */
static bool are_tokens(const dp_team_engine *e, const uint32_t *tokens, size_t n)
{
    const uint32_t vocab = dp_gpt_model(e->member.gpt)->config.vocab;
    size_t known = 0;
    while (known < n && tokens[known] < vocab) {
        known++;
    }
    return known == n;
}

dp_status dp_team_step(dp_team_engine *e, const dp_gpt_batch *batch, float scale, double *loss_sum)
{
    dp_team_board *const b = e->member.board;
    const size_t most = (size_t)e->member.rows_max * e->member.context;
    const size_t n = batch->rows * batch->length;
    if (batch->rows == 0 || batch->rows > e->member.rows_max || batch->length == 0 ||
        batch->length > e->member.context || !are_tokens(e, batch->x, n) ||
        !are_tokens(e, batch->y, n)) {
        return DP_BADARG;
    }
    memcpy(b->tokens, batch->x, n * sizeof *b->tokens);
    memcpy(b->tokens + most, batch->y, n * sizeof *b->tokens);
    b->rows = (uint32_t)batch->rows;
    b->length = (uint32_t)batch->length;
    b->scale = scale;
    /* After a sum lane 0 holds it and the others parts of it. */
    b->clean = e->dropped  ? DP_TEAM_CLEAN_ALL
               : e->summed ? DP_TEAM_CLEAN_OTHERS
                           : DP_TEAM_CLEAN_NONE;
    b->moved = e->moved;
    if (e->moved) {
        memcpy(dp_zero_shared(e->member.zero), dp_gpt_params(e->member.gpt), e->n * sizeof(float));
    }
    DP_TRY(tell(e, DP_TEAM_STEP));
    e->moved = false;
    e->dropped = false;
    e->summed = false;
    double sum = 0;
    for (uint32_t lane = 0; lane < e->team->lanes; lane++) {
        sum += b->losses[lane];
    }
    *loss_sum = sum;
    return isfinite(sum) ? DP_OK : DP_DIVERGED;
}

static dp_status sum_up(dp_team_engine *e)
{
    if (e->dropped) {
        DP_TRY(tell(e, DP_TEAM_DROP));
        e->dropped = false;
    }
    if (!e->summed) {
        DP_TRY(tell(e, DP_TEAM_REDUCE));
        e->summed = true;
    }
    return DP_OK;
}

dp_status dp_team_norm(dp_team_engine *e, double *norm)
{
    DP_TRY(sum_up(e));
    *norm = e->member.board->norm;
    return DP_OK;
}

const float *dp_team_gradients(dp_team_engine *e)
{
    return sum_up(e) == DP_OK ? dp_zero_lane_of(e->member.zero, 0).grads : NULL;
}

dp_status dp_team_update(dp_team_engine *e, const dp_optim_options *options, double norm)
{
    dp_team_board *const b = e->member.board;
    DP_TRY(sum_up(e));
    if (e->moved) { /* The others' copies of the weights are old, and each moves its own part. */
        b->rows = 0;
        b->clean = DP_TEAM_CLEAN_NONE;
        b->moved = true;
        memcpy(dp_zero_shared(e->member.zero), dp_gpt_params(e->member.gpt), e->n * sizeof(float));
        DP_TRY(tell(e, DP_TEAM_STEP));
        e->moved = false;
    }
    b->options = *options;
    b->norm = norm;
    return tell(e, DP_TEAM_UPDATE);
}

dp_status dp_team_reset(dp_team_engine *e)
{
    return tell(e, DP_TEAM_RESET);
}

dp_status dp_team_lend(dp_team_engine *e, dp_optim_vector out[DP_OPTIM_VECTORS_MAX], size_t *count)
{
    *count = dp_optim_vectors(dp_zero_optim(e->member.zero), out);
    for (uint32_t i = 0; i < *count; i++) {
        if (e->whole[i] == NULL) {
            e->whole[i] = dp_alloc(e->n, sizeof(float));
        }
        if (e->whole[i] == NULL) {
            return dp_why_set(&e->problem, DP_IO, "no memory for a checkpoint's vectors");
        }
        e->member.board->vector = i;
        DP_TRY(tell(e, DP_TEAM_GATHER));
        memcpy(e->whole[i], dp_zero_shared(e->member.zero), e->n * sizeof(float));
        out[i].values = e->whole[i];
    }
    return DP_OK;
}

dp_status dp_team_take(dp_team_engine *e, uint64_t updates)
{
    dp_optim_vector vectors[DP_OPTIM_VECTORS_MAX];
    const size_t count = dp_optim_vectors(dp_zero_optim(e->member.zero), vectors);
    e->member.board->updates = updates;
    for (uint32_t i = 0; i < count; i++) {
        if (e->whole[i] == NULL) {
            return DP_BADARG; /* Nothing was lent. */
        }
        e->member.board->vector = i;
        memcpy(dp_zero_shared(e->member.zero), e->whole[i], e->n * sizeof(float));
        DP_TRY(tell(e, DP_TEAM_SCATTER));
    }
    return DP_OK;
}

uint64_t dp_team_updates(const dp_team_engine *e)
{
    return dp_zero_optim(e->member.zero)->steps;
}
