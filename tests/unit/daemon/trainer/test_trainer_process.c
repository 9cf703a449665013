/* A real child process: this program itself, started by the daemon's code, plays the trainer that
 * its mode names. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/trainer/trainer_life.h"
#include "daemon/trainer/trainer_process.h"
#include "tests/unit/daemon/turn.h"

#include "tests/lib/fake_root.h"

/* Modes travel in the threads setting. */
enum mode {
    GOOD = 1, /* answers EVAL, with as many fds as it got; leaves on STOP */
    DIES,     /* says hello and dies */
    FAILS,    /* exits with 3 before hello */
    WRONG_ABI,
    GARBAGE,    /* hello, then bytes that are no message */
    FLOODS,     /* hello, then STEP without end */
    DEAF,       /* hello, then never reads */
    HUNG_UP,    /* hello, closes its socket, stays alive */
    TWICE,      /* hello and hello again */
    EARLY,      /* an answer before hello */
    LAST_WORDS, /* sends hello and FAILED, and ends */
    /* sends hello and FAILED, closes its socket, and ends a moment later, like a worker with a
     * card */
    WINDS_UP,
    CRASHES,
    SPOILT, /* dies like CRASHES on every backend but the CPU, where it is GOOD */
};

static void say(int fd, dp_trainer_kind kind)
{
    static dp_trainer_msg msg;
    msg = (dp_trainer_msg){.kind = kind,
                           .abi = DP_TRAINER_ABI,
                           .pid = (uint32_t)getpid(),
                           .round = 7,
                           .steps = 1,
                           .loss = 2.5};
    if (dp_trainer_send(fd, &msg, NULL, 0) != DP_OK) {
        _exit(4);
    }
}

static void play_good(int fd)
{
    static dp_trainer_msg msg;
    int fds[DP_TRAINER_FDS_MAX];
    uint32_t n_fds = 0;
    for (;;) {
        const dp_status status = dp_trainer_receive(fd, &msg, fds, &n_fds);
        if (status != DP_OK || msg.kind == DP_TRAINER_STOP) {
            _exit(status == DP_OK || status == DP_CLOSED ? 0 : 5);
        }
        if (msg.kind == DP_TRAINER_EVAL) {
            say(fd, DP_TRAINER_EVALUATED);
        } else if (msg.kind == DP_TRAINER_PUBLISH) {
            int memfds[2] = {-1, -1};
            const dp_status made = dp_memfd_make("a", dp_view_text("blob"), &memfds[0]) == DP_OK
                                       ? dp_memfd_make("b", dp_view_text("vector"), &memfds[1])
                                       : DP_IO;
            msg.kind = DP_TRAINER_PUBLISHED;
            if (made != DP_OK || dp_trainer_send(fd, &msg, memfds, 2) != DP_OK) {
                _exit(6);
            }
        }
        for (uint32_t i = 0; i < n_fds; i++) {
            close(fds[i]);
        }
    }
}

static void stay(void)
{
    for (;;) {
        pause();
    }
}

static void play(int fd, enum mode mode)
{
    static dp_trainer_msg msg;
    if (mode == FAILS) {
        _exit(3);
    }
    if (mode == EARLY) {
        say(fd, DP_TRAINER_STEP);
        stay();
    }
    msg = (dp_trainer_msg){.kind = DP_TRAINER_HELLO,
                           .abi = mode == WRONG_ABI ? 99 : DP_TRAINER_ABI,
                           .pid = (uint32_t)getpid()};
    if (dp_trainer_send(fd, &msg, NULL, 0) != DP_OK) {
        _exit(4);
    }
    switch (mode) {
    case GOOD:
        play_good(fd);
        break;
    case DIES:
        raise(SIGKILL);
        break;
    case CRASHES:
        raise(SIGABRT);
        break;
    case GARBAGE:
        if (send(fd, "\xc1garbage", 8, 0) < 0) {
            _exit(4);
        }
        stay();
        break;
    case FLOODS:
        for (;;) {
            say(fd, DP_TRAINER_STEP);
        }
        break;
    case HUNG_UP:
        close(fd);
        stay();
        break;
    case TWICE:
        say(fd, DP_TRAINER_HELLO);
        stay();
        break;
    case LAST_WORDS:
        say(fd, DP_TRAINER_FAILED);
        _exit(3);
        break;
    case WINDS_UP:
        say(fd, DP_TRAINER_FAILED);
        shutdown(fd, SHUT_RDWR);
        nanosleep(&(const struct timespec){.tv_nsec = 50000000}, NULL);
        _exit(3);
        break;
    case FAILS:
    case EARLY:
    case WRONG_ABI:
    case DEAF:
    case SPOILT: /* main made it one of the others */
        stay();
        break;
    }
}

/* ---- the daemon's side ---- */

struct stage {
    uv_loop_t loop;
    dp_trainer_process *trainer;
    unsigned starts;
    unsigned downs;
    unsigned messages;
    unsigned fds;
    char cause[128];
    dp_trainer_kind last;
};

static char own_path[512];

static void on_started(void *context)
{
    ((struct stage *)context)->starts++;
}

static void on_down(void *context, const char *cause)
{
    struct stage *stage = context;
    stage->downs++;
    snprintf(stage->cause, sizeof stage->cause, "%s", cause);
}

static void on_message(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds)
{
    struct stage *stage = context;
    stage->messages++;
    stage->last = msg->kind;
    for (uint32_t i = 0; i < n_fds; i++) {
        dp_view bytes;
        CHECK_OK(dp_memfd_map(fds[i], 100, &bytes));
        dp_memfd_unmap(bytes);
        close(fds[i]);
        stage->fds++;
    }
}

static void stage_open_at(struct stage *stage, enum mode mode, const dp_oom_place *oom)
{
    memset(stage, 0, sizeof *stage);
    turn_open(&stage->loop);
    const dp_trainer_process_config config = {.loop = &stage->loop,
                                              .program = own_path,
                                              .threads = (uint64_t)mode,
                                              .nice = 0,
                                              .end_ms = mode == HUNG_UP ? 20 : 60 * 1000,
                                              .oom = oom,
                                              .hooks = {stage, on_started, on_down, on_message}};
    CHECK_OK(dp_trainer_process_open(&stage->trainer, &config));
    CHECK_OK(dp_trainer_process_start(stage->trainer, NULL));
    CHECK(dp_trainer_process_pid(stage->trainer) > 0);
}

static void stage_open(struct stage *stage, enum mode mode)
{
    stage_open_at(stage, mode, NULL);
}

static void stage_close(struct stage *stage)
{
    const unsigned downs = stage->downs;
    dp_trainer_process_close(stage->trainer);
    turn_close(&stage->loop);
    assert_int_equal(stage->downs, downs); /* no hook after close */
}

static bool has_started(void *context)
{
    return ((struct stage *)context)->starts >= 1;
}

static bool has_restarted(void *context)
{
    return ((struct stage *)context)->starts >= 2;
}

static bool has_started_after_all(void *context)
{
    return ((struct stage *)context)->starts > DP_TRAINER_DEVICE_LIVES;
}

static bool is_down(void *context)
{
    return ((struct stage *)context)->downs >= 1;
}

static bool has_answered(void *context)
{
    return ((struct stage *)context)->messages >= 1;
}

static unsigned open_fds(void)
{
    unsigned count = 0;
    for (int fd = 0; fd < 256; fd++) {
        count += fcntl(fd, F_GETFD) >= 0;
    }
    return count;
}

static void a_trainer_says_hello_and_answers(void **state)
{
    struct stage stage;
    static dp_trainer_msg msg;
    (void)state;
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    msg = (dp_trainer_msg){.kind = DP_TRAINER_EVAL};
    CHECK_OK(dp_trainer_process_tell(stage.trainer, &msg, NULL, 0));
    turn_until(&stage.loop, has_answered, &stage);
    assert_int_equal(stage.last, DP_TRAINER_EVALUATED);
    assert_int_equal(stage.downs, 0);
    stage_close(&stage);
}

static void bulk_data_travels_both_ways_and_no_descriptor_stays_open(void **state)
{
    struct stage stage;
    static dp_trainer_msg msg;
    const unsigned before = open_fds();
    (void)state;
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    int fds[2];
    CHECK_OK(dp_memfd_make("x", dp_view_text("one"), &fds[0]));
    CHECK_OK(dp_memfd_make("y", dp_view_text("two"), &fds[1]));
    msg = (dp_trainer_msg){.kind = DP_TRAINER_APPLY, .round = 1, .n_items = 2};
    CHECK_OK(dp_trainer_process_tell(stage.trainer, &msg, fds, 2));
    msg = (dp_trainer_msg){.kind = DP_TRAINER_PUBLISH, .round = 3};
    CHECK_OK(dp_trainer_process_tell(stage.trainer, &msg, NULL, 0));
    turn_until(&stage.loop, has_answered, &stage);
    assert_int_equal(stage.last, DP_TRAINER_PUBLISHED);
    assert_int_equal(stage.fds, 2);
    stage_close(&stage);
    assert_int_equal(open_fds(), before);
}

static void a_trainer_that_dies_is_started_again(void **state)
{
    struct stage stage;
    (void)state;
    stage_open(&stage, DIES);
    turn_until(&stage.loop, has_restarted, &stage);
    CHECK(stage.downs >= 1);
    assert_string_equal(stage.cause, "killed by a signal");
    CHECK(dp_trainer_process_restarts(stage.trainer) >= 1);
    stage_close(&stage);
}

static void check_cause(enum mode mode, const char *cause)
{
    struct stage stage;
    stage_open(&stage, mode);
    turn_until(&stage.loop, is_down, &stage);
    assert_string_equal(stage.cause, cause);
    assert_int_equal(dp_trainer_process_pid(stage.trainer), 0);
    stage_close(&stage);
}

static void the_cause_of_a_death_is_told(void **state)
{
    (void)state;
    check_cause(FAILS, "failed");
    check_cause(
        WRONG_ABI,
        "speaks version 99 of the trainer protocol, this daemon version 7; install both from one "
        "release");
    check_cause(GARBAGE, "sent an unexpected message");
    check_cause(TWICE, "sent an unexpected message");
    check_cause(EARLY, "sent an unexpected message");
    check_cause(HUNG_UP, "closed its socket and kept running");
    check_cause(WINDS_UP, "failed");
}

static void a_trainer_that_closes_its_socket_died_of_its_own(void **state)
{
    static const enum mode modes[] = {HUNG_UP, WINDS_UP, LAST_WORDS};
    static dp_trainer_msg msg;
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        struct stage stage;
        stage_open(&stage, modes[i]);
        turn_until(&stage.loop, has_started, &stage);
        msg = (dp_trainer_msg){.kind = DP_TRAINER_EVAL};
        const dp_status told =
            dp_trainer_process_tell(stage.trainer, &msg, NULL, 0); /* It is not read. */
        CHECK(told == DP_OK || told == DP_CLOSED);
        turn_until(&stage.loop, is_down, &stage);
        assert_int_equal(dp_trainer_process_deaths(stage.trainer), 1);
        stage_close(&stage);
    }
}

static void last_words_are_heard(void **state)
{
    struct stage stage;
    (void)state;
    stage_open(&stage, LAST_WORDS);
    turn_until(&stage.loop, is_down, &stage);
    assert_int_equal(stage.messages, 1);
    assert_int_equal(stage.last, DP_TRAINER_FAILED);
    stage_close(&stage);
}

static bool heard_many(void *context)
{
    return ((struct stage *)context)->messages >= 500;
}

static void on_beat(uv_timer_t *timer)
{
    ++*(unsigned *)timer->data;
}

static void a_flood_does_not_keep_the_loop(void **state)
{
    struct stage stage;
    uv_timer_t beat;
    unsigned beats = 0;
    (void)state;
    stage_open(&stage, FLOODS);
    uv_timer_init(&stage.loop, &beat);
    beat.data = &beats;
    uv_timer_start(&beat, on_beat, 0, 1);
    turn_until(&stage.loop, heard_many, &stage);
    CHECK(beats > 0);
    uv_close((uv_handle_t *)&beat, NULL);
    stage_close(&stage);
}

static void a_deaf_trainer_is_replaced_when_its_queue_is_full(void **state)
{
    struct stage stage;
    static dp_trainer_msg msg;
    const unsigned before = open_fds();
    (void)state;
    stage_open(&stage, DEAF);
    turn_until(&stage.loop, has_started, &stage);
    msg = (dp_trainer_msg){.kind = DP_TRAINER_SAMPLE};
    memset(msg.text, 'a', DP_TRAINER_TEXT_MAX);
    dp_status status = DP_OK;
    unsigned told = 0;
    while (status == DP_OK && told < 2000) {
        int fd;
        CHECK_OK(dp_memfd_make("x", dp_view_text("one"), &fd));
        status = dp_trainer_process_tell(stage.trainer, &msg, &fd, 1);
        told++;
    }
    CHECK_STATUS(status, DP_CLOSED);
    CHECK(told > DP_TRAINER_QUEUE_MAX);
    assert_int_equal(stage.downs, 1);
    assert_string_equal(stage.cause, "does not read its commands");
    turn_until(&stage.loop, has_restarted, &stage);
    stage_close(&stage);
    assert_int_equal(open_fds(), before);
}

static void a_killed_trainer_comes_back(void **state)
{
    struct stage stage;
    static dp_trainer_msg msg;
    (void)state;
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    dp_trainer_process_kill(stage.trainer, "did not answer");
    assert_int_equal(stage.downs, 1);
    msg = (dp_trainer_msg){.kind = DP_TRAINER_EVAL};
    CHECK_STATUS(dp_trainer_process_tell(stage.trainer, &msg, NULL, 0), DP_CLOSED);
    dp_trainer_process_kill(stage.trainer, "did not answer"); /* nothing there */
    assert_int_equal(stage.downs, 1);
    turn_until(&stage.loop, has_restarted, &stage);
    stage_close(&stage);
}

static void a_trainer_that_is_held_starts_when_it_is_let_go(void **state)
{
    struct stage stage;
    (void)state;
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    dp_trainer_process_hold(stage.trainer, "gives its GPU to other programs");
    dp_trainer_process_hold(stage.trainer, "once is enough");
    assert_int_equal(stage.downs, 1);
    assert_string_equal(stage.cause, "gives its GPU to other programs");
    CHECK(dp_trainer_process_pid(stage.trainer) == 0);
    CHECK(dp_trainer_process_next_ms(stage.trainer) == 0); /* No start is due. */
    CHECK(dp_trainer_process_deaths(stage.trainer) == 0);
    CHECK(!dp_trainer_process_start_early(stage.trainer));
    dp_trainer_process_let_go(stage.trainer);
    turn_until(&stage.loop, has_restarted, &stage);
    dp_trainer_process_let_go(stage.trainer);
    assert_int_equal(stage.downs, 1);
    stage_close(&stage);
}

static void a_trainer_without_room_for_its_model_starts_after_minutes(void **state)
{
    struct stage stage;
    (void)state;
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    dp_trainer_process_postpone(stage.trainer, "could not hold the model in memory");
    assert_true(stage.downs == 1 && dp_trainer_process_deaths(stage.trainer) == 0);
    CHECK(dp_trainer_process_next_ms(stage.trainer) >= DP_RESTART_SIZE_MS / 2);
    stage_close(&stage);
}

static void a_missing_program_is_not_found(void **state)
{
    uv_loop_t loop;
    dp_trainer_process *trainer = NULL;
    dp_why why = {""};
    (void)state;
    turn_open(&loop);
    const dp_trainer_process_config config = {.loop = &loop, .program = "/nowhere/dpnode-worker"};
    CHECK_OK(dp_trainer_process_open(&trainer, &config));
    CHECK_STATUS(dp_trainer_process_start(trainer, &why), DP_NOTFOUND);
    assert_non_null(strstr(why.text, "/nowhere/dpnode-worker"));
    dp_trainer_process_close(trainer);
    turn_close(&loop);
}

static bool waits_long(void *context)
{
    return dp_trainer_process_next_ms(((struct stage *)context)->trainer) > DP_TRAINER_SOON_MS;
}

static void a_long_wait_is_cut_short_once(void **state)
{
    struct stage stage;
    (void)state;
    stage_open(&stage, DIES);
    turn_until(&stage.loop, waits_long, &stage);
    CHECK(dp_trainer_process_in_a_row(stage.trainer) >= 4);
    const unsigned downs = stage.downs;
    CHECK(dp_trainer_process_start_early(stage.trainer));
    CHECK(dp_trainer_process_next_ms(stage.trainer) <= DP_TRAINER_SOON_MS);
    CHECK(!dp_trainer_process_start_early(stage.trainer)); /* It comes soon. */
    turn_until(&stage.loop, waits_long, &stage);
    CHECK(stage.downs > downs);
    CHECK(dp_trainer_process_fails(stage.trainer));
    CHECK(!dp_trainer_process_start_early(stage.trainer)); /* Spent. */
    stage_close(&stage);
}

/* As driver_train.c does. */
static void leave_device(void *context, const char *cause)
{
    struct stage *stage = context;
    on_down(context, cause);
    if (dp_trainer_process_deaths(stage->trainer) >= DP_TRAINER_DEVICE_LIVES) {
        dp_trainer_process_take_cpu(stage->trainer);
    }
}

static void a_trainer_that_a_device_spoils_goes_on_with_the_cpu(void **state)
{
    struct stage stage = {0};
    static dp_trainer_msg msg;
    (void)state;
    turn_open(&stage.loop);
    const dp_trainer_process_config config = {
        .loop = &stage.loop,
        .program = own_path,
        .backend = "faulty",
        .threads = SPOILT,
        .hooks = {&stage, on_started, leave_device, on_message}};
    CHECK_OK(dp_trainer_process_open(&stage.trainer, &config));
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 0);
    CHECK_OK(dp_trainer_process_start(stage.trainer, NULL));
    turn_until(&stage.loop, has_started_after_all, &stage);
    assert_int_equal(stage.downs, DP_TRAINER_DEVICE_LIVES);
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), DP_TRAINER_DEVICE_LIVES);
    msg = (dp_trainer_msg){.kind = DP_TRAINER_EVAL};
    CHECK_OK(dp_trainer_process_tell(stage.trainer, &msg, NULL, 0));
    turn_until(&stage.loop, has_answered, &stage);
    stage_close(&stage);
}

static bool has_restarted_twice(void *context)
{
    return ((struct stage *)context)->starts >= 3;
}

static bool is_down_again(void *context)
{
    return ((struct stage *)context)->downs == 2;
}

static void outside_causes_are_no_deaths_of_its_own(void **state)
{
    struct stage stage;
    (void)state;
    stage_open(&stage, WRONG_ABI);
    turn_until(&stage.loop, is_down, &stage);
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 0);
    stage_close(&stage);
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    dp_trainer_process_replace(stage.trainer, "does not take its commands");
    assert_int_equal(stage.downs, 1);
    assert_string_equal(stage.cause, "does not take its commands");
    assert_int_equal(dp_trainer_process_restarts(stage.trainer), 1);
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 0);
    turn_until(&stage.loop, has_restarted, &stage);
    CHECK(!dp_trainer_process_takes_cpu(stage.trainer));
    assert_int_equal(kill(dp_trainer_process_pid(stage.trainer), SIGKILL),
                     0); /* By another program. */
    turn_until(&stage.loop, is_down_again, &stage);
    assert_string_equal(stage.cause, "killed by a signal");
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 0);
    turn_until(&stage.loop, has_restarted_twice, &stage);
    dp_trainer_process_kill(stage.trainer, "did not answer");
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 1);
    stage_close(&stage);
}

static void who_is_killed_for_lack_of_memory_has_died_of_its_own(void **state)
{
    static const dp_oom_place none = {
        .groups = "/nowhere", .root = "/nowhere", .vmstat = "/nowhere"};
    char groups[TEMPDIR_FILE_MAX];
    const dp_oom_place place = {
        .groups = tempdir_file(&fake_root, "cgroup", groups), .root = fake_root.path, .vmstat = ""};
    struct stage stage;
    (void)state;
    folder("box");
    put("cgroup", "0::/box\n");
    put("box/memory.events", "oom 1\noom_kill 1\n");
    stage_open_at(&stage, GOOD, &place);
    turn_until(&stage.loop, has_started, &stage);
    put("box/memory.events", "oom 2\noom_kill 2\n");
    assert_int_equal(kill(dp_trainer_process_pid(stage.trainer), SIGKILL), 0);
    turn_until(&stage.loop, is_down, &stage);
    assert_string_equal(stage.cause, "was killed by the kernel for lack of memory");
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 1);
    turn_until(&stage.loop, has_restarted, &stage); /* The kill before is not about this life. */
    assert_int_equal(kill(dp_trainer_process_pid(stage.trainer), SIGKILL), 0);
    turn_until(&stage.loop, is_down_again, &stage);
    assert_string_equal(stage.cause, "killed by a signal");
    assert_int_equal(dp_trainer_process_deaths(stage.trainer), 1);
    stage_close(&stage);
    stage_open_at(&stage, GOOD, &none); /* Without a counter it counts as another program. */
    turn_until(&stage.loop, has_started, &stage);
    assert_int_equal(kill(dp_trainer_process_pid(stage.trainer), SIGKILL), 0);
    turn_until(&stage.loop, is_down, &stage);
    assert_string_equal(stage.cause, "killed by a signal");
    stage_close(&stage);
}

static void close_it(void *context, const char *cause)
{
    struct stage *stage = context;
    (void)cause;
    stage->downs++;
    dp_trainer_process_close(stage->trainer);
}

static void hold_it(void *context, const char *cause)
{
    struct stage *stage = context;
    on_down(context, cause);
    dp_trainer_process_hold(stage->trainer, "");
}

static void a_hook_may_hold_a_trainer_that_could_not_be_read(void **state)
{
    const dp_trainer_msg publish = {.kind = DP_TRAINER_PUBLISH};
    struct stage stage;
    struct rlimit limit;
    (void)state;
    stage_open(&stage, GOOD);
    turn_until(&stage.loop, has_started, &stage);
    stage.trainer->config.hooks.down = hold_it;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {0, limit.rlim_max};
    CHECK_OK(dp_trainer_process_tell(stage.trainer, &publish, NULL, 0));
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0); /* The files of the answer do not fit. */
    turn_until(&stage.loop, is_down, &stage);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    CHECK(strstr(stage.cause, "lacks memory or file descriptors") != NULL);
    CHECK(!uv_is_active((uv_handle_t *)stage.trainer->restart)); /* No start is due. */
    stage_close(&stage);
}

static void a_hook_may_close_the_trainer(void **state)
{
    struct stage stage = {0};
    (void)state;
    turn_open(&stage.loop);
    const dp_trainer_process_config config = {.loop = &stage.loop,
                                              .program = own_path,
                                              .threads = GARBAGE,
                                              .hooks = {&stage, on_started, close_it, on_message}};
    CHECK_OK(dp_trainer_process_open(&stage.trainer, &config));
    CHECK_OK(dp_trainer_process_start(stage.trainer, NULL));
    turn_until(&stage.loop, is_down, &stage);
    turn_close(&stage.loop);
}

int main(int argc, char **argv)
{
    if (argc > 4 && strcmp(argv[1], "--fd") == 0) {
        const bool on_cpu = strcmp(argv[argc - 1], "cpu") == 0;
        const enum mode mode = (enum mode)atoi(argv[4]);
        play(atoi(argv[2]), mode != SPOILT ? mode : on_cpu ? GOOD : CRASHES);
        _exit(9);
    }
    const ssize_t size = readlink("/proc/self/exe", own_path, sizeof own_path - 1);
    if (size <= 0) {
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_says_hello_and_answers),
        cmocka_unit_test(bulk_data_travels_both_ways_and_no_descriptor_stays_open),
        cmocka_unit_test(a_trainer_that_dies_is_started_again),
        cmocka_unit_test(the_cause_of_a_death_is_told),
        cmocka_unit_test(a_trainer_that_closes_its_socket_died_of_its_own),
        cmocka_unit_test(last_words_are_heard),
        cmocka_unit_test(a_flood_does_not_keep_the_loop),
        cmocka_unit_test(a_deaf_trainer_is_replaced_when_its_queue_is_full),
        cmocka_unit_test(a_killed_trainer_comes_back),
        cmocka_unit_test(a_trainer_that_is_held_starts_when_it_is_let_go),
        cmocka_unit_test(a_trainer_without_room_for_its_model_starts_after_minutes),
        cmocka_unit_test(a_missing_program_is_not_found),
        cmocka_unit_test(a_long_wait_is_cut_short_once),
        cmocka_unit_test(a_trainer_that_a_device_spoils_goes_on_with_the_cpu),
        cmocka_unit_test(outside_causes_are_no_deaths_of_its_own),
        in_root(who_is_killed_for_lack_of_memory_has_died_of_its_own),
        cmocka_unit_test(a_hook_may_hold_a_trainer_that_could_not_be_read),
        cmocka_unit_test(a_hook_may_close_the_trainer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
