/* The worker over a socketpair, as a daemon sees it, for tests: a child process for each
 * trainer. */
#ifndef DP_TESTS_UNIT_COMPUTE_WORKER_KIT_H
#define DP_TESTS_UNIT_COMPUTE_WORKER_KIT_H

#include "tests/lib/check.h"

#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/trainer/trainer_msg.h"
#include "compute/worker/worker.h"
#include "tests/unit/compute/tiny_run.h"

enum { ONE = 65536, STEPS = 4 };

typedef struct peer {
    pid_t pid;
    int socket;
} peer;

typedef struct answer {
    dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds;
} answer;

static tiny_run files;

static inline int make_files(void **state)
{
    (void)state;
    tiny_run_open(&files, DP_CODEC_SPARSE, 950);
    return 0;
}

/* Of a run whose updates help however many steps are in them, which follows from the clock: a
 * hundred do not lead past the minimum. */
static inline int make_slow_files(void **state)
{
    dp_manifest m;
    make_files(state);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(files.manifest, files.manifest_size)));
    m.lr_nano /= 20;
    CHECK_OK(dp_manifest_encode(&m, files.manifest, &files.manifest_size));
    return 0;
}

/* A run of gradients in place of the files' own, until they are brought back. */
static inline void exchange_gradients(uint32_t rows)
{
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(files.manifest, files.manifest_size)));
    m.codec = DP_CODEC_FP32;
    m.exchange = DP_EXCHANGE_GRADIENTS;
    m.trust = DP_TRUST_MEMBERS;
    m.inner_steps_max = 1;
    m.batch_rows = rows;
    CHECK_OK(dp_manifest_encode(&m, files.manifest, &files.manifest_size));
}

static inline int drop_files(void **state)
{
    (void)state;
    tiny_run_close(&files);
    return 0;
}

static inline peer start_with(const dp_worker_options *options)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    const pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        close(pair[0]);
        const dp_status status = dp_worker_serve(pair[1], options);
        _exit(status == DP_OK || status == DP_CLOSED ? 0 : 1);
    }
    close(pair[1]);
    return (peer){.pid = pid, .socket = pair[0]};
}

static inline peer start(void)
{
    return start_with(&(dp_worker_options){.threads = 1});
}

static inline void expect_end(const peer *p, int wanted)
{
    int status = 0;
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    CHECK(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), wanted);
}

static inline void expect_clean_end(const peer *p)
{
    expect_end(p, 0);
}

static inline void release(const answer *a)
{
    for (uint32_t i = 0; i < a->n_fds; i++) {
        close(a->fds[i]);
    }
}

static inline void send_views(const peer *p, const dp_trainer_msg *msg, const dp_view *views,
                              uint32_t n)
{
    int fds[DP_TRAINER_FDS_MAX] = {0};
    for (uint32_t i = 0; i < n; i++) {
        CHECK_OK(dp_memfd_make("test", views[i], &fds[i]));
    }
    CHECK_OK(dp_trainer_send(p->socket, msg, fds, n));
    for (uint32_t i = 0; i < n; i++) {
        close(fds[i]);
    }
}

/* The next message that is not STEP. */
static inline answer expect(const peer *p, dp_trainer_kind kind)
{
    static answer a;
    do {
        CHECK_OK(dp_trainer_receive(p->socket, &a.msg, a.fds, &a.n_fds));
    } while (a.msg.kind == DP_TRAINER_STEP && kind != DP_TRAINER_STEP);
    if (a.msg.kind != kind) {
        fail_msg("got %s %s instead of %s", dp_trainer_kind_name(a.msg.kind), a.msg.text,
                 dp_trainer_kind_name(kind));
    }
    return a;
}

static inline uint64_t open_run(const peer *p, uint8_t member)
{
    expect(p, DP_TRAINER_HELLO);
    dp_trainer_msg msg = {.kind = DP_TRAINER_OPEN, .member = {member}};
    const dp_view views[3] = {dp_view_of(files.manifest, files.manifest_size),
                              dp_buf_view(&files.tokenizer), dp_buf_view(&files.data)};
    send_views(p, &msg, views, 3);
    return expect(p, DP_TRAINER_OPENED).msg.elements;
}

static inline dp_hash init(const peer *p)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_INIT};
    send_views(p, &msg, NULL, 0);
    const answer a = expect(p, DP_TRAINER_READY_AT);
    assert_int_equal(a.msg.round, 0);
    return a.msg.root;
}

static inline peer ready_peer(uint8_t member)
{
    const peer p = start();
    CHECK(open_run(&p, member) > 0);
    init(&p);
    return p;
}

static inline double train_until(const peer *p, uint64_t round, uint32_t steps)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_TRAIN, .round = round};
    send_views(p, &msg, NULL, 0);
    double loss;
    uint32_t done;
    do {
        const answer a = expect(p, DP_TRAINER_STEP);
        done = a.msg.steps;
        loss = a.msg.loss;
        assert_int_equal(a.msg.tokens, (uint64_t)done * 4 * TINY_CONTEXT);
        /* Only steps count as computed, and they take a while. */
        CHECK(a.msg.computed_us > 0 && a.msg.computed_us <= a.msg.trained_us);
        const dp_trainer_spent *const rest = &a.msg.spent;
        CHECK(a.msg.computed_us + rest->data_us + rest->publish_us + rest->apply_us +
                  rest->state_us + rest->tell_us <=
              a.msg.trained_us);
    } while (done < steps);
    return loss;
}

static inline answer publish(const peer *p, uint64_t round)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_PUBLISH, .round = round};
    send_views(p, &msg, NULL, 0);
    const answer a = expect(p, DP_TRAINER_PUBLISHED);
    assert_int_equal(a.n_fds, 2);
    CHECK(a.msg.energy > 0);
    CHECK(a.msg.norm > 0 && a.msg.error > 0 && a.msg.error < a.msg.norm); /* It keeps a part. */
    return a;
}

static inline dp_view map(int fd)
{
    dp_view bytes;
    CHECK_OK(dp_memfd_map(fd, 1 << 28, &bytes));
    return bytes;
}

static inline void check_blob(const peer *p, int fd, bool good)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_CHECK, .id = 77};
    CHECK_OK(dp_trainer_send(p->socket, &msg, &fd, 1));
    const answer a = expect(p, DP_TRAINER_CHECKED);
    assert_int_equal(a.msg.id, 77);
    assert_int_equal(a.msg.ok, good);
    CHECK(!good || a.msg.energy > 0);
}

static inline dp_trainer_msg record_of(uint64_t round, dp_settle settle, uint32_t n)
{
    dp_trainer_msg msg = {.kind = DP_TRAINER_APPLY,
                          .round = round,
                          .tokens = 1000 * round,
                          .alpha = ONE,
                          .clip = ONE,
                          .lambda = ONE,
                          .settle = settle,
                          .n_items = n};
    for (uint32_t i = 0; i < n; i++) {
        msg.q[i] = 0x80000000U / n;
    }
    return msg;
}

static inline dp_hash apply(const peer *p, const dp_trainer_msg *msg, const int *fds)
{
    CHECK_OK(dp_trainer_send(p->socket, msg, fds, msg->n_items));
    const answer a = expect(p, DP_TRAINER_APPLIED);
    assert_int_equal(a.n_fds, 1);
    const dp_view state = map(a.fds[0]);
    const dp_hash root = dp_object_hash(state, NULL);
    CHECK(dp_hash_equal(&root, &a.msg.root));
    dp_memfd_unmap(state);
    release(&a);
    return root;
}

static inline void stop(const peer *p)
{
    const dp_trainer_msg msg = {.kind = DP_TRAINER_STOP};
    send_views(p, &msg, NULL, 0);
    expect_clean_end(p);
    close(p->socket);
}

#endif
