/* A door for scripts with a trainer behind it, and dpnode.h as the script, for tests. */
#ifndef DP_TESTS_UNIT_COMPUTE_SCRIPT_KIT_H
#define DP_TESTS_UNIT_COMPUTE_SCRIPT_KIT_H

#include "tests/unit/compute/any_run.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/trainer/trainer_msg.h"
#include "compute/machine/stopwatch.h"
#include "compute/worker/script_door.h"
#include "compute/worker/script_link.h"
#include "compute/worker/script_msg.h"
#include "tests/lib/tempdir.h"

#define DPNODE_IMPLEMENTATION
#include "contrib/script/dpnode.h"

enum { UNIT = 3 };

static any_run run;
static tempdir dir;
static char path[TEMPDIR_FILE_MAX];
static dp_trainer *trainer;
static dp_script *door;
static float a[6];
static float b[1];
static float c[500];
static const dpnode_tensor tensors[] = {
    {"c", c, 1, {500}}, {"a", a, 2, {2, 3}}, {"b", b, 0, {0}}}; /* not in the order of names */

/* Told by the door. */
static atomic_uint present_pid;
static atomic_uint n_present;
static atomic_uint n_copied;
static bool odd_step;                /* one that the daemon would refuse */
static dp_script_progress last_step; /* read between enter and leave */

static inline void on_present(void *context, uint32_t pid)
{
    (void)context;
    atomic_store(&present_pid, pid);
    atomic_fetch_add(&n_present, 1);
}

static inline void on_copied(void *context)
{
    (void)context;
    atomic_fetch_add(&n_copied, 1);
}

static inline void on_stepped(void *context, const dp_script_progress *progress)
{
    (void)context;
    last_step = *progress;
    odd_step = odd_step || progress->done.steps == 0 || !isfinite(progress->done.loss);
}

static inline void open_door(uint64_t patience_us, uint64_t copy_every_us)
{
    dp_why why = {{0}};
    const dp_script_setup setup = {.path = path,
                                   .trainer = trainer,
                                   .patience_us = patience_us,
                                   .copy_every_us = copy_every_us,
                                   .present = on_present,
                                   .copied = on_copied,
                                   .stepped = on_stepped};
    if (dp_script_open(&door, &setup, &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
}

static inline void train(uint64_t round, uint64_t tokens)
{
    const dp_reach from = {0};
    dp_script_enter(door, false);
    dp_script_train(door, round, tokens);
    CHECK_OK(dp_trainer_lease(trainer, &from, NULL, 0)); /* none: samples of the own line */
    dp_script_leave(door, DP_SCRIPT_SAME);
}

static inline int set_up(void **state)
{
    (void)state;
    tempdir_open(&dir);
    tempdir_file(&dir, "script.sock", path);
    any_run_open(&run);
    dp_manifest m = any_run_manifest(&run);
    m.unit = UNIT;
    m.total_tokens = 90000;
    m.warmup_tokens = 0;
    any_run_write(&run, &m);
    trainer = any_run_trainer(&run);
    CHECK_OK(dp_trainer_load(trainer, 0, dp_buf_view(&run.init)));
    atomic_store(&present_pid, 0);
    atomic_store(&n_present, 0);
    atomic_store(&n_copied, 0);
    last_step = (dp_script_progress){0};
    odd_step = false;
    open_door(0, UINT64_MAX);
    train(1, 500);
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    dp_script_close(door);
    door = NULL;
    CHECK(!odd_step);
    dp_trainer_close(trainer);
    any_run_close(&run);
    tempdir_close(&dir);
    return 0;
}

static inline dpnode *connected(void)
{
    dpnode *node = NULL;
    if (dpnode_open(&node, dir.path, tensors, 3) != DPNODE_OK) {
        fail_msg("%s", dpnode_problem(NULL));
    }
    return node;
}

/* Ends as a process does that is killed. */
static inline void kill_script(dpnode *node)
{
    node->end = DPNODE_GONE;
    dpnode_close(node);
}

/* The door has seen n scripts come and go. */
static inline void wait_present(uint32_t n)
{
    while (atomic_load(&n_present) < n) {
        usleep(100);
    }
}

/* As a record that moves every weight by so much. */
static inline void move_weights(float by)
{
    float weights[N] = {0};
    const dp_script_work none = {0};
    dp_script_enter(door, true);
    CHECK_OK(dp_trainer_give_weights(trainer, weights));
    for (size_t i = 0; i < ELEMENTS; i++) {
        weights[i] += by;
    }
    CHECK_OK(dp_trainer_take_weights(trainer, weights, &none));
    dp_script_leave(door, DP_SCRIPT_MOVED);
}

static inline bool ask_copy(void)
{
    dp_script_enter(door, true);
    const bool asked = dp_script_ask_copy(door) > 0;
    dp_script_leave(door, DP_SCRIPT_SAME);
    return asked;
}

/* The last report of the door, and the state of the trainer: the door's thread may be at both. */
static inline dp_script_progress told_now(void)
{
    dp_script_enter(door, false);
    const dp_script_progress told = last_step;
    dp_script_leave(door, DP_SCRIPT_SAME);
    return told;
}

static inline dp_trainer_progress progress_now(void)
{
    dp_script_enter(door, false);
    const dp_trainer_progress now = dp_trainer_progress_of(trainer);
    dp_script_leave(door, DP_SCRIPT_SAME);
    return now;
}

static inline float weight_now(size_t at)
{
    dp_script_enter(door, false);
    const float now = dp_trainer_params(trainer)[at];
    dp_script_leave(door, DP_SCRIPT_SAME);
    return now;
}

/* The door has told of so many steps. */
static inline void wait_stepped(uint32_t steps)
{
    uint32_t seen = 0;
    while (seen < steps) {
        usleep(1000);
        dp_script_enter(door, false);
        seen = last_step.done.steps;
        dp_script_leave(door, DP_SCRIPT_SAME);
    }
}

/* The door has taken what it was given before it answered. */
static inline void settle(void)
{
    dp_script_enter(door, false);
    dp_script_leave(door, DP_SCRIPT_SAME);
}

static inline void step(dpnode *node, uint64_t samples, double loss)
{
    assert_int_equal(dpnode_step(node, samples, loss), DPNODE_OK);
    settle();
}

#define TEST_OF(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

#endif
