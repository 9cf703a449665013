/* Real micro-batches of a real model on one, two and three processes: the same weights, bit by
 * bit. */
#include "tests/lib/check.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/rng.h"
#include "compute/model/gpt.h"
#include "compute/model/zero.h"

enum { LANES = 3, MICROS = 2, STEPS = 3, ROWS = 2, LENGTH = 17, VOCAB = 64, PROCESSES_MAX = 3 };
enum { TOKENS = ROWS * LENGTH };

static const dp_model_config config = {
    .layers = 2, .width = 32, .heads = 2, .context = LENGTH, .vocab = VOCAB};

/* The micro-batch of a place that does not know of processes; adds its gradient. */
static void add_micro(dp_gpt *gpt, int step, uint32_t lane, int micro, double *loss)
{
    uint32_t text[TOKENS + 1];
    dp_rng rng;
    dp_rng_init(&rng, (uint64_t)((step * LANES + (int)lane) * MICROS + micro));
    for (size_t i = 0; i <= TOKENS; i++) {
        text[i] = (uint32_t)dp_rng_below(&rng, VOCAB);
    }
    const dp_gpt_batch batch = {text, text + 1, ROWS, LENGTH};
    double some = 0.0;
    CHECK_OK(dp_gpt_step(gpt, &batch, 1.0F / (LANES * MICROS * TOKENS), &some));
    *loss += some;
}

static dp_status step_once(dp_zero *zero, dp_gpt *gpt, int step)
{
    const dp_optim_options options = {.lr = 1e-2F,
                                      .beta1 = 0.9F,
                                      .beta2 = 0.95F,
                                      .eps = 1e-8F,
                                      .decay = 0.1F,
                                      .clip = 1.0F,
                                      .momentum = 0.95F};
    uint32_t first;
    const uint32_t count = dp_zero_lanes(zero, &first);
    double norm = 0.0;
    double loss = 0.0;
    for (uint32_t lane = first; lane < first + count; lane++) {
        const dp_zero_lane own = dp_zero_lane_of(zero, lane);
        *own.loss = 0.0;
        dp_gpt_zero_grads(gpt);
        for (int micro = 0; micro < MICROS; micro++) {
            add_micro(gpt, step, lane, micro, own.loss);
        }
        memcpy(own.grads, dp_gpt_grads(gpt), dp_gpt_model(gpt)->n_elements * sizeof(float));
    }
    DP_TRY(dp_zero_reduce(zero, &norm, &loss, NULL));
    return dp_zero_update(zero, dp_gpt_params_to_write(gpt), &options, norm, NULL);
}

static void live(int fd, dp_zero_setup setup, uint32_t rank, float *out)
{
    dp_model model;
    dp_gpt *gpt;
    dp_zero *zero;
    CHECK_OK(dp_model_open(&model, &config, NULL));
    CHECK_OK(dp_gpt_open(&gpt, &model, &(dp_gpt_options){.rows_max = ROWS}));
    dp_model_init(&model, 1, dp_gpt_params_to_write(gpt));
    setup.rank = rank;
    setup.optim.model = &model;
    CHECK_OK(dp_zero_join(&zero, fd, &setup, NULL, NULL));
    for (int step = 0; step < STEPS; step++) {
        if (step_once(zero, gpt, step) != DP_OK) {
            _exit(1);
        }
    }
    memcpy(out, dp_gpt_params(gpt), model.n_elements * sizeof *out);
    dp_zero_close(zero);
    dp_gpt_close(gpt);
    dp_model_close(&model);
}

/* out: [processes][n], shared. */
static void play(const dp_model *model, dp_optim_kind kind, uint32_t processes, float *out)
{
    const dp_zero_setup setup = {.optim = {.model = model, .kind = kind},
                                 .processes = processes,
                                 .lanes = LANES,
                                 .wait_us = 60U * 1000 * 1000};
    pid_t children[PROCESSES_MAX];
    int fd = -1;
    CHECK_OK(dp_zero_make(&fd, &setup));
    for (uint32_t rank = 0; rank < processes; rank++) {
        children[rank] = fork();
        assert_true(children[rank] >= 0);
        if (children[rank] == 0) {
            live(fd, setup, rank, out + rank * model->n_elements);
            _exit(0);
        }
    }
    for (uint32_t rank = 0; rank < processes; rank++) {
        int status = 0;
        assert_int_equal(waitpid(children[rank], &status, 0), children[rank]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    close(fd);
}

static void processes_change_no_bits_of_a_trained_model(void **state)
{
    (void)state;
    static const dp_optim_kind kinds[] = {DP_OPTIM_ADAMW, DP_OPTIM_MUON};
    dp_model model;
    CHECK_OK(dp_model_open(&model, &config, NULL));
    const size_t n = model.n_elements;
    const size_t bytes = (1 + PROCESSES_MAX) * n * sizeof(float);
    float *const out = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(out != MAP_FAILED);
    float *const start = calloc(n, sizeof *start);
    dp_model_init(&model, 1, start);
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        play(&model, kinds[k], 1, out);
        CHECK(memcmp(out, start, n * sizeof *start) != 0);
        for (uint32_t processes = 2; processes <= PROCESSES_MAX; processes++) {
            float *const others = out + n;
            memset(others, 0, processes * n * sizeof *others);
            play(&model, kinds[k], processes, others);
            for (uint32_t rank = 0; rank < processes; rank++) {
                assert_memory_equal(others + rank * n, out, n * sizeof *out);
            }
        }
    }
    free(start);
    munmap(out, bytes);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(processes_change_no_bits_of_a_trained_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
