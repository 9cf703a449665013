/* Real processes that share a step: the same bits as one process, and an end within a bound when
 * one dies or hangs. */
#include "tests/unit/compute/optim_rig.h"

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compute/model/zero.h"

enum { STEPS = 3, LANES = 5, PROCESSES_MAX = 3, NEVER = 1000 };
static const uint64_t long_us = 60U * 1000 * 1000;

/* The results that a process reports, in memory that all share. */
typedef struct tale {
    dp_status status;
    uint32_t steps;
    double norm;
    double loss;
    char why[DP_WHY_MAX];
} tale;

typedef struct scene {
    rig rig;
    dp_zero_setup setup;
    int fd;
    tale *told;    /* [PROCESSES_MAX] */
    float *params; /* [PROCESSES_MAX][n] */
    /* The last process misbehaves before its step of this number, as odd says; NEVER: it does
     * not. */
    int odd_step;
    enum { DIES, HANGS, OTHER_RATE } odd;
} scene;

static void *shared(size_t bytes)
{
    void *const memory =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static scene open_scene(dp_optim_kind kind, dp_weights_kind weights, uint32_t processes,
                        uint32_t lanes)
{
    scene s = {.odd_step = NEVER};
    rig_open(&s.rig);
    s.told = shared(PROCESSES_MAX * sizeof *s.told);
    s.params = shared(PROCESSES_MAX * s.rig.model.n_elements * sizeof *s.params);
    s.setup = (dp_zero_setup){.optim = {.kind = kind, .weights = weights, .seed = 5},
                              .processes = processes,
                              .lanes = lanes,
                              .wait_us = long_us};
    return s;
}

static void close_scene(scene *s)
{
    munmap(s->told, PROCESSES_MAX * sizeof *s->told);
    munmap(s->params, PROCESSES_MAX * s->rig.model.n_elements * sizeof *s->params);
    rig_close(&s->rig);
}

static void be_odd(const scene *s, dp_optim_options *options)
{
    if (s->odd == DIES) {
        raise(SIGKILL);
    }
    if (s->odd == HANGS) {
        pause();
    }
    options->lr *= 2.0F;
}

static dp_status step_once(const scene *s, dp_zero *zero, int step, tale *told, dp_why *why)
{
    dp_optim_options options = rig_options;
    uint32_t first;
    const uint32_t count = dp_zero_lanes(zero, &first);
    for (uint32_t lane = first; lane < first + count; lane++) {
        const dp_zero_lane l = dp_zero_lane_of(zero, lane);
        rig_draw(&s->rig, l.grads, (uint64_t)(1000 * step) + lane, 1.0F / (float)(lane + 3));
        *l.loss = 1.0 / (double)(step + 3 * (int)lane + 1);
    }
    if (step == s->odd_step && first + count == s->setup.lanes) {
        be_odd(s, &options);
    }
    DP_TRY(dp_zero_reduce(zero, &told->norm, &told->loss, why));
    float *const params = s->rig.params;
    return dp_zero_update(zero, params, &options, told->norm, why);
}

/* One process from joining to the end. */
static void live(const scene *s, uint32_t rank)
{
    tale *const told = &s->told[rank];
    dp_zero_setup setup = s->setup;
    dp_zero *zero = NULL;
    dp_why why = {{0}};
    setup.rank = rank;
    setup.optim.model = &s->rig.model;
    told->status = dp_zero_join(&zero, s->fd, &setup, NULL, &why);
    for (int step = 0; step < STEPS && told->status == DP_OK; step++) {
        told->status = step_once(s, zero, step, told, &why);
        told->steps += told->status == DP_OK;
    }
    const size_t n = s->rig.model.n_elements;
    memcpy(s->params + rank * n, s->rig.params, n * sizeof *s->params);
    memcpy(told->why, why.text, sizeof told->why);
    dp_zero_close(zero);
}

/* All processes of the scene, as children; waits until all but those that hang have ended, which
 * are killed then. */
static void play(scene *s)
{
    pid_t children[PROCESSES_MAX];
    s->rig.model.tensors = s->rig.tensors; /* The scene was copied. */
    s->setup.optim.model = &s->rig.model;
    CHECK_OK(dp_zero_make(&s->fd, &s->setup));
    for (uint32_t rank = 0; rank < s->setup.processes; rank++) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] == 0) {
            live(s, rank);
            _exit(0);
        }
    }
    for (uint32_t rank = 0; rank < s->setup.processes; rank++) {
        const bool odd = s->odd_step != NEVER && rank + 1 == s->setup.processes;
        if (odd && s->odd == HANGS) {
            kill(children[rank], SIGKILL);
        }
        int status = 0;
        assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
        assert_true(odd || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    }
    close(s->fd);
}

static void check_same_as_alone(dp_optim_kind kind, dp_weights_kind weights, uint32_t processes)
{
    scene alone = open_scene(kind, weights, 1, LANES);
    scene many = open_scene(kind, weights, processes, LANES);
    const size_t n = alone.rig.model.n_elements;
    play(&alone);
    play(&many);
    CHECK(alone.told[0].steps == STEPS && isfinite(alone.told[0].loss));
    CHECK(memcmp(alone.params, alone.rig.params, n * sizeof(float)) != 0); /* it has moved */
    for (uint32_t rank = 0; rank < processes; rank++) {
        CHECK_OK(many.told[rank].status);
        CHECK(many.told[rank].norm == alone.told[0].norm);
        CHECK(many.told[rank].loss == alone.told[0].loss);
        assert_memory_equal(many.params + rank * n, alone.params, n * sizeof(float));
    }
    close_scene(&alone);
    close_scene(&many);
}

static void two_and_three_processes_give_the_bits_of_one(void **state)
{
    (void)state;
    for (size_t k = 0; k < RIG_KINDS; k++) {
        check_same_as_alone(rig_kinds[k], DP_WEIGHTS_FP32, 2);
        check_same_as_alone(rig_kinds[k], DP_WEIGHTS_FP32, 3);
    }
    check_same_as_alone(DP_OPTIM_ADAMW, DP_WEIGHTS_BF16, 3);
    check_same_as_alone(DP_OPTIM_ADAMW, DP_WEIGHTS_BF16_SR, 3);
}

/* The tree of five lanes written down: ((0+1)+(2+3))+4. */
static void one_process_adds_the_tree_and_steps_as_the_optimizer_does(void **state)
{
    (void)state;
    scene s = open_scene(DP_OPTIM_ADAMW, DP_WEIGHTS_FP32, 1, LANES);
    rig r;
    dp_optim optim;
    rig_open(&r);
    const size_t n = r.model.n_elements;
    float *const lanes = calloc(LANES * n, sizeof *lanes);
    play(&s);
    CHECK_OK(dp_optim_init(&optim, &(dp_optim_setup){.model = &r.model}));
    for (int step = 0; step < STEPS; step++) {
        for (size_t lane = 0; lane < LANES; lane++) {
            rig_draw(&r, lanes + lane * n, (uint64_t)(1000 * step) + lane,
                     1.0F / (float)(lane + 3));
        }
        for (size_t i = 0; i < n; i++) {
            const float *const g = lanes + i;
            r.grads[i] = ((g[0] + g[n]) + (g[2 * n] + g[3 * n])) + g[4 * n];
        }
        CHECK_OK(dp_optim_step(&optim, r.params, r.grads, &rig_options, NULL, NULL));
    }
    assert_memory_equal(s.params, r.params, n * sizeof(float));
    free(lanes);
    dp_optim_close(&optim);
    rig_close(&r);
    close_scene(&s);
}

static void check_ends(scene *s, dp_status first, const char *word)
{
    const size_t n = s->rig.model.n_elements;
    size_t firsts = 0;
    play(s);
    for (uint32_t rank = 0; rank + 1 < s->setup.processes; rank++) {
        const tale *const told = &s->told[rank];
        CHECK(told->steps == 1 && (told->status == first || told->status == DP_CLOSED));
        firsts += told->status == first;
        CHECK(strstr(told->why, "process 2 of 3") != NULL);
        CHECK(told->status != first || strstr(told->why, word) != NULL);
        /* All stand after the same step. */
        assert_memory_equal(s->params + rank * n, s->params, n * sizeof(float));
    }
    CHECK(firsts > 0);
    close_scene(s);
}

static void a_killed_process_ends_the_others(void **state)
{
    (void)state;
    scene s = open_scene(DP_OPTIM_ADAMW, DP_WEIGHTS_FP32, 3, 3);
    s.odd_step = 1;
    s.odd = DIES;
    check_ends(&s, DP_CLOSED, "gone");
}

static void a_process_that_hangs_ends_the_others(void **state)
{
    (void)state;
    scene s = open_scene(DP_OPTIM_ADAMW, DP_WEIGHTS_FP32, 3, 3);
    s.odd_step = 1;
    s.odd = HANGS;
    s.setup.wait_us = 300U * 1000;
    check_ends(&s, DP_TIMEOUT, "300 ms");
}

static void options_that_differ_are_told_to_all_and_move_nothing(void **state)
{
    (void)state;
    scene s = open_scene(DP_OPTIM_ADAMW, DP_WEIGHTS_FP32, 3, 3);
    const size_t n = s.rig.model.n_elements;
    s.odd_step = 0;
    s.odd = OTHER_RATE;
    play(&s);
    for (uint32_t rank = 0; rank < 3; rank++) {
        CHECK_STATUS(s.told[rank].status, DP_BADARG);
        CHECK(strstr(s.told[rank].why, "do not agree") != NULL);
        assert_memory_equal(s.params + rank * n, s.rig.params, n * sizeof(float));
    }
    close_scene(&s);
}

static void a_group_that_does_not_fit_the_memory_is_refused(void **state)
{
    (void)state;
    scene s = open_scene(DP_OPTIM_ADAMW, DP_WEIGHTS_FP32, 2, 3);
    s.rig.model.tensors = s.rig.tensors;
    s.setup.optim.model = &s.rig.model;
    dp_zero *zero = NULL;
    dp_zero *other = NULL;
    dp_why why = {{0}};
    CHECK_OK(dp_zero_make(&s.fd, &s.setup));
    dp_zero_setup setup = s.setup;
    setup.lanes = 4;
    CHECK_STATUS(dp_zero_join(&zero, s.fd, &setup, NULL, &why), DP_BADARG);
    CHECK(strstr(why.text, "bytes") != NULL);
    setup = s.setup;
    setup.processes = 3;
    CHECK_STATUS(dp_zero_join(&zero, s.fd, &setup, NULL, &why), DP_BADARG);
    CHECK(strstr(why.text, "another") != NULL);
    CHECK_OK(dp_zero_join(&zero, s.fd, &s.setup, NULL, &why));
    CHECK_STATUS(dp_zero_join(&other, s.fd, &s.setup, NULL, &why), DP_BUSY);
    dp_zero_close(zero);
    CHECK_STATUS(dp_zero_join(&other, s.fd, &s.setup, NULL, &why), DP_CLOSED);
    static const dp_zero_setup bad[] = {
        {.processes = 0, .lanes = 1},
        {.processes = 2, .lanes = 1},
        {.processes = 1, .lanes = DP_ZERO_LANES_MAX + 1},
        {.processes = DP_PROCESS_BARRIER_PROCESSES_MAX + 1, .lanes = 64},
        {.processes = 2, .lanes = 2, .rank = 2}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setup = bad[i];
        setup.optim.model = &s.rig.model;
        int fd = -1;
        CHECK_STATUS(dp_zero_make(&fd, &setup), DP_BADARG);
    }
    close(s.fd);
    close_scene(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_and_three_processes_give_the_bits_of_one),
        cmocka_unit_test(one_process_adds_the_tree_and_steps_as_the_optimizer_does),
        cmocka_unit_test(a_killed_process_ends_the_others),
        cmocka_unit_test(a_process_that_hangs_ends_the_others),
        cmocka_unit_test(options_that_differ_are_told_to_all_and_move_nothing),
        cmocka_unit_test(a_group_that_does_not_fit_the_memory_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
