#include "daemon/trainer/trainer_process.h"

#include <errno.h>
#include <signal.h>
#include <sodium/randombytes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "base/list.h"
#include "daemon/trainer/trainer_life.h"
#include "daemon/trainer/trainer_words.h"

enum {
    WORKER_FD = 3,
    PACKETS_PER_TURN = 64 /* so that a flooding trainer does not keep the loop from serving peers */
};

static void close_fds(const int *fds, uint32_t n_fds)
{
    for (uint32_t i = 0; i < n_fds; i++) {
        close(fds[i]);
    }
}

static void drop_packet(life *self, packet *first)
{
    dp_list_remove(&first->item);
    self->n_queued--;
    close_fds(first->fds, first->n_fds);
    dp_free(first);
}

static void on_handle_closed(uv_handle_t *handle)
{
    life *self = handle->data;
    if (--self->n_handles > 0) {
        return;
    }
    while (!dp_list_empty(&self->queue)) {
        drop_packet(self, DP_LIST_ITEM(self->queue.next, packet, item));
    }
    close(self->socket);
    dp_free(self);
}

/* The process has ended or must end: forgets it, and drops its messages. */
static void end_life(life *self)
{
    if (self->trainer != NULL) {
        self->trainer->life = NULL;
        self->trainer = NULL;
    }
    if (!uv_is_closing((uv_handle_t *)&self->poll)) {
        uv_close((uv_handle_t *)&self->poll, on_handle_closed);
    }
    if (!self->exited) {
        DP_IGNORE(uv_process_kill(&self->process, SIGKILL) != 0); /* It may have just ended. */
    } else if (!uv_is_closing((uv_handle_t *)&self->process)) {
        uv_close((uv_handle_t *)&self->process, on_handle_closed);
    }
}

static void on_restart(uv_timer_t *timer);

static uint64_t lived_ms(const dp_trainer_process *trainer)
{
    return trainer->began_ms > 0 ? uv_now(trainer->config.loop) - trainer->began_ms : 0;
}

static void start_again(dp_trainer_process *trainer, dp_death cause)
{
    const uint64_t wait_ms =
        dp_restart_wait(&trainer->backoff, cause, lived_ms(trainer), randombytes_random());
    trainer->began_ms = 0;
    trainer->n_starts++;
    if (!trainer->held) {
        uv_timer_start(trainer->restart, on_restart, wait_ms, 0);
    }
}

/* The hook may query the time of the next start, and may close the trainer. */
static void report_down(dp_trainer_process *trainer, dp_death kind, const char *cause)
{
    start_again(trainer, kind);
    trainer->config.hooks.down(trainer->config.hooks.context, cause);
}

static void report_death(dp_trainer_process *trainer, dp_death kind, const char *cause)
{
    trainer->deaths[trainer->n_deaths++ % DP_TRAINER_DEVICE_LIVES] = uv_now(trainer->config.loop);
    report_down(trainer, kind, cause);
}

/* A lack of memory or file descriptors of this machine is not the trainer's fault, so it uses none
 * of its restarts. */
static void report_lack(dp_trainer_process *trainer)
{
    uv_timer_start(trainer->restart, on_restart, DP_TRAINER_RETRY_MS,
                   0); /* The hook may hold it. */
    trainer->config.hooks.down(trainer->config.hooks.context,
                               "could not be read: the daemon lacks memory or file descriptors");
}

/* Signals of other programs on this machine: a failing device ends a process in other ways. */
static bool is_from_outside(int signal)
{
    return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

static void on_exit(uv_process_t *process, int64_t status, int signal)
{
    life *self = process->data;
    dp_trainer_process *trainer = self->trainer;
    self->exited = true;
    end_life(self);
    if (trainer == NULL || trainer->closing) {
        return;
    }
    const bool is_oom = signal == SIGKILL && dp_oom_happened(&trainer->oom, trainer->config.oom);
    const char *const cause = is_oom        ? "was killed by the kernel for lack of memory"
                              : signal != 0 ? "killed by a signal"
                              : status == 0 ? "ended"
                                            : "failed";
    if (is_from_outside(signal) && !is_oom) {
        report_down(trainer, DP_DEATH_OUTSIDE, cause);
    } else {
        report_death(trainer, is_oom ? DP_DEATH_MEMORY : DP_DEATH_OWN, cause);
    }
}

static void flush(life *self);

static void on_lingering(uv_timer_t *timer)
{
    dp_trainer_process *trainer = timer->data;
    if (trainer->life != NULL) {
        end_life(trainer->life);
        report_death(trainer, DP_DEATH_OWN, "closed its socket and kept running");
    }
}

/* It ends by itself now, or was killed, and on_exit shows which: after a kill here both would look
 * the same. */
static void wait_for_end(life *self)
{
    uv_poll_stop(&self->poll);
    self->hung_up = true;
    uv_timer_start(self->trainer->restart, on_lingering, self->trainer->config.end_ms, 0);
}

static void receive(life *self)
{
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds = 0;
    for (int i = 0; i < PACKETS_PER_TURN && self->trainer != NULL; i++) {
        const dp_status status = dp_trainer_receive(self->socket, &self->incoming, fds, &n_fds);
        if (status == DP_AGAIN) {
            return;
        }
        dp_trainer_process *trainer = self->trainer;
        if (status == DP_CLOSED) {
            wait_for_end(self);
            return;
        }
        if (status == DP_NOMEM) {
            end_life(self);
            report_lack(trainer);
            return;
        }
        if (status != DP_OK || self->said_hello == (self->incoming.kind == DP_TRAINER_HELLO)) {
            close_fds(fds, status == DP_OK ? n_fds : 0);
            end_life(self);
            report_death(trainer, DP_DEATH_OWN, "sent an unexpected message");
            return;
        }
        if (self->incoming.kind == DP_TRAINER_HELLO) {
            close_fds(fds, n_fds);
            self->said_hello = true;
            trainer->began_ms = uv_now(trainer->config.loop);
            uv_timer_stop(trainer->restart);
            if (self->incoming.abi == DP_TRAINER_ABI) {
                trainer->config.hooks.started(trainer->config.hooks.context);
            } else {
                char cause[128];
                snprintf(cause, sizeof cause,
                         "speaks version %u of the trainer protocol, this daemon version %d; "
                         "install both from one release",
                         self->incoming.abi, DP_TRAINER_ABI);
                end_life(self);
                report_down(trainer, DP_DEATH_OUTSIDE, cause);
            }
        } else {
            trainer->config.hooks.message(trainer->config.hooks.context, &self->incoming, fds,
                                          n_fds);
        }
    }
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    life *self = poll->data;
    if (status != 0) {
        wait_for_end(self);
        return;
    }
    /* Its last messages come before the end. */
    if ((events & (UV_READABLE | UV_DISCONNECT)) != 0) {
        receive(self);
    }
    if ((events & UV_WRITABLE) != 0 && self->trainer != NULL && uv_is_active((uv_handle_t *)poll)) {
        flush(self);
    }
}

static void watch(life *self)
{
    const int events =
        UV_READABLE | UV_DISCONNECT | (dp_list_empty(&self->queue) ? 0 : UV_WRITABLE);
    if (!self->hung_up && !uv_is_closing((uv_handle_t *)&self->poll)) {
        DP_IGNORE(uv_poll_start(&self->poll, events, on_poll) !=
                  0); /* Only fails for a closed handle. */
    }
}

static void flush(life *self)
{
    while (!dp_list_empty(&self->queue)) {
        packet *first = DP_LIST_ITEM(self->queue.next, packet, item);
        const dp_status status =
            dp_trainer_send(self->socket, &first->msg, first->fds, first->n_fds);
        if (status == DP_AGAIN) {
            break;
        }
        drop_packet(self, first); /* Sent, or the process is dying and on_exit reports it. */
    }
    watch(self);
}

static dp_status spawn(dp_trainer_process *trainer, life *self, int child)
{
    dp_trainer_words all;
    dp_trainer_say(&all, &trainer->config, trainer->program, trainer->backend, WORKER_FD);
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = child},
    };
    const uv_process_options_t options = {
        .exit_cb = on_exit,
        .file = trainer->program,
        .args = all.at,
        .stdio = stdio,
        .stdio_count = 4,
    };
    const int error = uv_spawn(trainer->config.loop, &self->process, &options);
    const bool lacks =
        error == UV_EMFILE || error == UV_ENFILE || error == UV_EAGAIN || error == UV_ENOMEM;
    return error == 0 ? DP_OK : lacks ? DP_NOMEM : DP_NOTFOUND;
}

static void on_silent(uv_timer_t *timer)
{
    dp_trainer_process *trainer = timer->data;
    if (trainer->life != NULL) {
        end_life(trainer->life);
        report_death(trainer, DP_DEATH_OWN, "did not start its protocol");
    }
}

static dp_status begin_life(dp_trainer_process *trainer)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return DP_IO;
    }
    life *self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        close(pair[0]);
        close(pair[1]);
        return DP_NOMEM;
    }
    self->socket = pair[0];
    self->process.data = self;
    self->poll.data = self;
    dp_list_init(&self->queue);
    dp_oom_begin(&trainer->oom, trainer->config.oom, uv_now(trainer->config.loop));
    const dp_status status = spawn(trainer, self, pair[1]);
    close(pair[1]);
    /* A failed uv_spawn leaves an initialised handle behind. */
    self->n_handles = 1;
    self->exited = status != DP_OK;
    if (status != DP_OK || uv_poll_init(trainer->config.loop, &self->poll, self->socket) != 0) {
        if (!self->exited) {
            DP_IGNORE(uv_process_kill(&self->process, SIGKILL) != 0);
        }
        uv_close((uv_handle_t *)&self->process, on_handle_closed);
        return status != DP_OK ? status : DP_IO;
    }
    self->n_handles = 2; /* uv_poll_init makes the socket non-blocking */
    self->trainer = trainer;
    trainer->life = self;
    watch(self);
    uv_timer_start(trainer->restart, on_silent, DP_TRAINER_HELLO_MS, 0);
    return DP_OK;
}

static void on_restart(uv_timer_t *timer)
{
    dp_trainer_process *trainer = timer->data;
    const dp_status status = trainer->life == NULL ? begin_life(trainer) : DP_OK;
    if (status == DP_IO ||
        status == DP_NOMEM) { /* The trainer is not at fault for a lack of this daemon. */
        uv_timer_start(timer, on_restart, DP_TRAINER_RETRY_MS, 0);
    } else if (status != DP_OK) {
        start_again(trainer, DP_DEATH_MISSING);
    }
}

uint32_t dp_trainer_process_in_a_row(const dp_trainer_process *trainer)
{
    return dp_restart_deaths(&trainer->backoff, lived_ms(trainer));
}

bool dp_trainer_process_fails(const dp_trainer_process *trainer)
{
    return dp_trainer_process_in_a_row(trainer) >= DP_RESTART_FAILS;
}

uint64_t dp_trainer_process_next_ms(const dp_trainer_process *trainer)
{
    return trainer->life == NULL && !trainer->held ? uv_timer_get_due_in(trainer->restart) : 0;
}

bool dp_trainer_process_start_early(dp_trainer_process *trainer)
{
    if (dp_trainer_process_next_ms(trainer) <= DP_TRAINER_SOON_MS ||
        !dp_restart_early(&trainer->backoff, uv_now(trainer->config.loop))) {
        return false;
    }
    uv_timer_start(trainer->restart, on_restart, randombytes_uniform(DP_TRAINER_SOON_MS) + 1, 0);
    return true;
}

dp_status dp_trainer_process_open(dp_trainer_process **out, const dp_trainer_process_config *config)
{
    dp_trainer_process *trainer = dp_alloc(1, sizeof *trainer);
    uv_timer_t *restart = dp_alloc(1, sizeof *restart);
    if (trainer == NULL || restart == NULL || uv_timer_init(config->loop, restart) != 0) {
        dp_free(trainer);
        dp_free(restart);
        return DP_NOMEM;
    }
    trainer->config = *config;
    if (trainer->config.end_ms == 0) {
        trainer->config.end_ms = DP_TRAINER_END_MS;
    }
    trainer->config.oom = config->oom != NULL ? config->oom : &dp_oom_own;
    const bool told = config->backend != NULL && strcmp(config->backend, "auto") != 0;
    snprintf(trainer->backend, sizeof trainer->backend, "%s", told ? config->backend : "");
    snprintf(trainer->program, sizeof trainer->program, "%s", config->program);
    trainer->restart = restart;
    restart->data = trainer;
    *out = trainer;
    return DP_OK;
}

dp_status dp_trainer_process_start(dp_trainer_process *trainer, dp_why *why)
{
    dp_assert(trainer->life == NULL);
    if (trainer->held) {
        return DP_OK;
    }
    const dp_status status = begin_life(trainer);
    if (status != DP_OK) {
        start_again(trainer,
                    /* It may be installed later, or memory may be available again. */
                    DP_DEATH_MISSING);
        return dp_why_set(why, status, "cannot start the trainer %s: %s", trainer->program,
                          dp_status_text(status));
    }
    return DP_OK;
}

static void on_trainer_closed(uv_handle_t *handle)
{
    dp_free(handle->data);
    dp_free(handle);
}

void dp_trainer_process_close(dp_trainer_process *trainer)
{
    if (trainer == NULL) {
        return;
    }
    trainer->closing = true;
    if (trainer->life != NULL) {
        end_life(trainer->life);
    }
    uv_close((uv_handle_t *)trainer->restart, on_trainer_closed);
}

dp_status dp_trainer_process_tell(dp_trainer_process *trainer, const dp_trainer_msg *msg,
                                  const int *fds, uint32_t n_fds)
{
    life *self = trainer->life;
    packet *last = self == NULL || n_fds > DP_TRAINER_FDS_MAX ? NULL : dp_alloc(1, sizeof *last);
    if (last == NULL) {
        close_fds(fds, n_fds);
        return self == NULL ? DP_CLOSED : DP_NOMEM;
    }
    last->msg = *msg;
    last->n_fds = n_fds;
    if (n_fds > 0) {
        memcpy(last->fds, fds, n_fds * sizeof fds[0]);
    }
    dp_list_push_back(&self->queue, &last->item);
    self->n_queued++;
    if (self->n_queued > DP_TRAINER_QUEUE_MAX) {
        end_life(self);
        report_death(trainer, DP_DEATH_OWN, "does not read its commands");
        return DP_CLOSED;
    }
    flush(self);
    return DP_OK;
}

void dp_trainer_process_kill(dp_trainer_process *trainer, const char *cause)
{
    if (trainer->life != NULL) {
        end_life(trainer->life);
        report_death(trainer, DP_DEATH_OWN, cause);
    }
}

void dp_trainer_process_limit(dp_trainer_process *trainer, const dp_trainer_limits *limits)
{
    trainer->config.threads = limits->threads;
    trainer->config.nice = limits->nice;
    trainer->config.celsius_max = limits->celsius_max;
    trainer->config.watts_max = limits->watts_max;
    trainer->config.vram_share = limits->vram_share;
}

void dp_trainer_process_replace(dp_trainer_process *trainer, const char *cause)
{
    if (trainer->life != NULL) {
        end_life(trainer->life);
        report_down(trainer, DP_DEATH_OUTSIDE, cause);
    }
}

void dp_trainer_process_postpone(dp_trainer_process *trainer, const char *cause)
{
    if (trainer->life != NULL) {
        end_life(trainer->life);
        report_down(trainer, DP_DEATH_SIZE, cause);
    }
}

void dp_trainer_process_hold(dp_trainer_process *trainer, const char *cause)
{
    if (trainer->held) {
        return;
    }
    trainer->held = true;
    uv_timer_stop(trainer->restart);
    dp_trainer_process_replace(trainer, cause);
}

void dp_trainer_process_let_go(dp_trainer_process *trainer)
{
    if (trainer->held) {
        trainer->held = false;
        uv_timer_start(trainer->restart, on_restart, 0, 0);
    }
}
