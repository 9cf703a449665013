/* One script: its beginning, its end and its questions. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/assert.h"
#include "compute/machine/stopwatch.h"
#include "compute/worker/script_inside.h"

enum {
    REFUSAL_MAX = 512,
    PACKETS_PER_TURN =
        16, /* so that a flood of questions leaves the trainer to the compute thread */
    LEASE_US = 2000 * 1000 /* at most, that a draw waits for a lease */
};

/* ---- Packets out. */

/* A script that does not read its answers has gone wrong. */
void dp_script_session_send(dp_script *s, const dp_writer *packet, int file)
{
    dp_view bytes;
    if (dp_writer_finish(packet, &bytes) != DP_OK ||
        dp_script_send(s->session.fd, bytes, file) != DP_OK) {
        dp_script_session_end(s);
    }
}

static void refuse_peer(int fd, dp_script_refusal code, const char *text)
{
    uint8_t room[REFUSAL_MAX + 8];
    dp_writer packet = dp_writer_of(room, sizeof room);
    dp_view bytes;
    dp_script_write_refused(&packet, code, text);
    if (dp_writer_finish(&packet, &bytes) == DP_OK) {
        DP_IGNORE(dp_script_send(fd, bytes, -1)); /* It will see the end in any case. */
    }
}

void dp_script_session_refuse(dp_script *s, dp_script_refusal code, const char *text)
{
    refuse_peer(s->session.fd, code, text);
    dp_script_session_end(s);
}

void dp_script_session_refuse_broken(dp_script *s)
{
    dp_why why;
    DP_IGNORE(dp_why_set(&why, DP_IO, "the trainer of this node is broken: %.300s",
                         dp_trainer_problem(s->setup.trainer)));
    dp_script_session_refuse(s, DP_SCRIPT_ENDS, why.text);
}

/* ---- Begin and end. */

void dp_script_session_begin(dp_script *s, const dp_script_peer *peer)
{
    char text[REFUSAL_MAX];
    if (peer->user != geteuid() && peer->user != 0) {
        snprintf(text, sizeof text,
                 "this node belongs to user %u, the script runs as user %u: run it as that user",
                 (unsigned)geteuid(), (unsigned)peer->user);
        refuse_peer(peer->fd, DP_SCRIPT_OTHER_USER, text);
        close(peer->fd);
        return;
    }
    if (s->session.fd >= 0) {
        snprintf(text, sizeof text,
                 s->session.welcome
                     ? "process %u trains with this node already: stop it, or start a second node"
                     : "process %u is about to connect to this node: try again in two seconds",
                 s->session.pid);
        refuse_peer(peer->fd, DP_SCRIPT_TAKEN, text);
        close(peer->fd);
        return;
    }
    s->session = (dp_script_session){.fd = peer->fd,
                                     .process = (int)syscall(SYS_pidfd_open, peer->pid, 0U),
                                     .pid = peer->pid,
                                     .since_us = dp_now_us()};
}

void dp_script_session_look_at_process(dp_script *s)
{
    struct pollfd at = {.fd = s->session.process, .events = POLLIN};
    if (s->session.fd >= 0 && at.fd >= 0 && poll(&at, 1, 0) > 0) {
        dp_script_session_end(s);
    }
}

void dp_script_session_end(dp_script *s)
{
    dp_script_session *const on = &s->session;
    const bool was_welcome = on->welcome;
    s->cut = false;
    if (on->fd < 0) {
        return;
    }
    dp_script_welcome_unmap(on);
    close(on->fd);
    if (on->process >= 0) {
        close(on->process);
    }
    *on = (dp_script_session){.fd = -1, .process = -1};
    if (!was_welcome) {
        return;
    }
    DP_IGNORE(dp_trainer_end_script(s->setup.trainer)); /* DP_IO: the next command finds it, too. */
    pthread_cond_broadcast(&s->freed);
    if (s->asked) {
        s->asked = false;
        s->setup.copied(s->setup.context);
    }
    (void)dp_script_tell_steps(s, false); /* The last of them, before it is gone. */
    s->setup.present(s->setup.context, 0);
}

/* ---- Looks. */

/* That no copy has. */
static bool has_steps(const dp_script_session *on)
{
    return atomic_load(&on->header->steps) > on->steps;
}

static dp_script_what next_of(const dp_script *s)
{
    const dp_script_session *const on = &s->session;
    return on->assign                                 ? DP_SCRIPT_ASSIGN
           : on->moved                                ? DP_SCRIPT_ADD
           : s->asked || on->gives                    ? DP_SCRIPT_COPY
           : s->round == 0                            ? DP_SCRIPT_PAUSED
           : has_steps(on) && dp_script_wants_copy(s) ? DP_SCRIPT_COPY
                                                      : DP_SCRIPT_GO;
}

static void answer_look(dp_script *s)
{
    dp_script_session *const on = &s->session;
    const dp_script_what what = next_of(s);
    dp_status status = DP_OK;
    if (what == DP_SCRIPT_ASSIGN) {
        status = dp_script_give_weights(s);
    } else if (what == DP_SCRIPT_ADD) {
        status = dp_script_give_moves(s);
    }
    if (status != DP_OK) {
        dp_script_session_refuse_broken(s);
        return;
    }
    on->waits = false;
    if (what == DP_SCRIPT_ASSIGN || what == DP_SCRIPT_ADD || what == DP_SCRIPT_COPY) {
        on->holds = what;
        on->held_us = dp_now_us();
    }
    dp_writer packet = dp_writer_of(s->packet, sizeof s->packet);
    dp_script_write_do(&packet, what, s->round, s->tokens);
    dp_script_session_send(s, &packet, -1);
}

/* The answer comes when the node is not paused any more, if the script wants to wait for that. */
static void answer_look_or_wait(dp_script *s)
{
    if (s->session.patient && next_of(s) == DP_SCRIPT_PAUSED) {
        s->session.waits = true;
    } else {
        answer_look(s);
    }
}

/* The script has given its weights. False: the session is over. */
static bool take_copy(dp_script *s, const dp_script_work *work)
{
    switch ((int)dp_script_take_weights(s, work)) {
    case DP_OK:
        return true;
    case DP_DIVERGED:
        dp_script_session_refuse(s, DP_SCRIPT_NOT_FINITE,
                                 "a weight is NaN or infinite, so nothing of it was published: "
                                 "connect again for the last good weights, with a lower learning "
                                 "rate or with clipping of gradients");
        return false;
    case DP_BADARG:
        dp_script_session_refuse(s, DP_SCRIPT_NOT_DRAWN,
                                 "the script tells of more samples than were drawn: draw each "
                                 "sample before it is used (DRAW)");
        return false;
    default:
        dp_script_session_refuse_broken(s);
        return false;
    }
}

/* False: the session is over. */
static bool take_done(dp_script *s, dp_script_what what, const dp_script_work *work)
{
    if (what == DP_SCRIPT_COPY) {
        return take_copy(s, work);
    }
    if (dp_script_give_weights(s) != DP_OK) {
        dp_script_session_refuse_broken(s);
        return false;
    }
    if (what == DP_SCRIPT_ASSIGN) { /* Its work before is not in these weights. */
        dp_trainer_pass_drawn(s->setup.trainer, work->samples);
    }
    return true;
}

/* The script gives the buffer back. *asked: a publication has waited for this copy. */
static void give_back(dp_script *s, const dp_script_ask *ask, bool *asked)
{
    dp_script_session *const on = &s->session;
    const bool copied = ask->what == DP_SCRIPT_COPY;
    *asked = s->asked && copied;
    s->asked = s->asked && !copied;
    on->holds = DP_SCRIPT_GO;
    on->gives = on->gives && !copied;
    on->moved = on->moved && copied;
    on->assign = on->assign && ask->what != DP_SCRIPT_ASSIGN;
    if (copied) {
        on->copied_us = dp_now_us();
        on->copy_us = on->copied_us - on->held_us;
    }
    if (ask->what != DP_SCRIPT_ADD) {
        on->steps = ask->steps;
        on->samples = ask->samples;
        on->loss = ask->loss;
    }
}

static void on_done(dp_script *s, const dp_script_ask *ask)
{
    dp_script_session *const on = &s->session;
    if (on->holds != ask->what || ask->steps < on->steps || ask->samples < on->samples ||
        ask->steps - on->steps > UINT32_MAX) {
        dp_script_session_refuse(s, DP_SCRIPT_ODD,
                                 "DONE of something that was not told, or with totals that fell");
        return;
    }
    const dp_script_work work = {.steps = (uint32_t)(ask->steps - on->steps),
                                 .samples = ask->samples - on->samples,
                                 .loss_sum = ask->loss - on->loss};
    const bool last = on->gives && ask->what == DP_SCRIPT_COPY;
    bool asked;
    give_back(s, ask, &asked);
    const dp_script_what next = next_of(s);
    const bool goes = !last && (next == DP_SCRIPT_GO || next == DP_SCRIPT_PAUSED);
    if (goes) { /* It goes on while the weights are taken; a refusal may be the next answer. */
        answer_look_or_wait(s);
    }
    const bool taken = on->fd >= 0 && take_done(s, ask->what, &work);
    if (asked) {
        s->setup.copied(s->setup.context); /* Also if it was not taken: none will come. */
    }
    if (taken) {
        dp_script_set_word(s);
        if (!goes) {
            answer_look_or_wait(s);
        }
    }
    pthread_cond_broadcast(&s->freed);
}

/* A lease is about to come after a load, and what is drawn before it counts for nothing. */
static void answer_draw(dp_script *s)
{
    dp_script_session *const on = &s->session;
    if (!dp_trainer_has_lease(s->setup.trainer) && dp_now_us() - on->draws_us < LEASE_US) {
        return;
    }
    const uint32_t made = dp_trainer_draw(s->setup.trainer, on->draws, s->indices);
    on->draws = 0;
    dp_writer packet = dp_writer_of(s->packet, sizeof s->packet);
    dp_script_write_drawn(&packet, s->indices, made);
    dp_script_session_send(s, &packet, -1);
}

static void on_draw(dp_script *s, const dp_script_ask *ask)
{
    s->session.draws = ask->n;
    s->session.draws_us = dp_now_us();
    answer_draw(s);
}

/* ---- Files. */

static void on_read(dp_script *s, const dp_script_ask *ask)
{
    dp_run_file file = {.fd = -1};
    if (s->setup.files != NULL) {
        file = dp_run_files_at(s->setup.files, ask->n);
    }
    if (!s->session.welcome) { /* It has spoken: HELLO may take its time again. */
        s->session.since_us = dp_now_us();
    }
    dp_writer packet = dp_writer_of(s->packet, sizeof s->packet);
    dp_script_write_given(&packet, ask->n, file.bytes);
    dp_script_session_send(s, &packet, file.fd);
}

/* ---- Questions. */

static bool is_in_turn(const dp_script_session *on, dp_script_kind kind)
{
    const bool free = on->holds == DP_SCRIPT_GO && !on->waits && on->draws == 0;
    return kind == DP_SCRIPT_HELLO  ? !on->welcome
           : kind == DP_SCRIPT_DONE ? on->holds != DP_SCRIPT_GO
           : kind == DP_SCRIPT_READ ? free
                                    : on->welcome && free;
}

static void answer(dp_script *s, const dp_script_ask *ask, int file)
{
    dp_script_session *const on = &s->session;
    if (!is_in_turn(on, ask->kind)) {
        dp_script_session_refuse(s, DP_SCRIPT_ODD, "a packet is out of turn (docs/TRAINER.md)");
        return;
    }
    switch ((int)ask->kind) {
    case DP_SCRIPT_HELLO:
        dp_script_welcome_hello(s, ask, file);
        break;
    case DP_SCRIPT_READ:
        on_read(s, ask);
        break;
    case DP_SCRIPT_LOOK:
        on->patient = (ask->flags & 1) != 0;
        on->gives = (ask->flags & 2) != 0;
        answer_look_or_wait(s);
        break;
    case DP_SCRIPT_DONE:
        on_done(s, ask);
        break;
    default:
        on_draw(s, ask);
        break;
    }
}

void dp_script_session_look(dp_script *s)
{
    if (s->session.fd >= 0 && s->session.waits) {
        answer_look_or_wait(s);
    }
    if (s->session.fd >= 0 && s->session.draws > 0) {
        answer_draw(s);
    }
}

/* Without the lock: a descriptor of a script may be of anything, and closing it may wait. */
static void close_files(dp_script *s, const dp_script_files *files)
{
    if (files->n > 0) {
        pthread_mutex_unlock(&s->lock);
        for (uint32_t i = 0; i < files->n; i++) {
            close(files->fds[i]);
        }
        pthread_mutex_lock(&s->lock);
    }
}

void dp_script_session_serve(dp_script *s)
{
    for (int i = 0; i < PACKETS_PER_TURN && s->session.fd >= 0; i++) {
        size_t size = 0;
        dp_script_files files;
        dp_script_ask ask;
        const dp_status status =
            dp_script_receive(s->session.fd, s->packet, sizeof s->packet, &size, &files);
        if (status == DP_AGAIN) {
            return;
        }
        if (status == DP_CLOSED) {
            dp_script_session_end(s);
        } else if (status != DP_OK || dp_script_read(dp_view_of(s->packet, size), &ask) != DP_OK) {
            dp_script_session_refuse(s, DP_SCRIPT_ODD,
                                     "a packet has a wrong size or value (docs/TRAINER.md)");
        } else {
            answer(s, &ask, files.n > 0 ? files.fds[0] : -1);
        }
        close_files(s, &files);
    }
}
