/* Several cards of one host as one, a process each, on the emulator: the bits of one card that
 * takes their rows in turn, with NCCL (tests/cuda/nccl) and without, and an end where something
 * fails. */
#include "compute/backend/process_group_cards.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "compute/backend/backend_cpu.h"
#include "compute/backend/plugin.h"
#include "compute/backend/process_group_inside.h"
#include "compute/cuda/link.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"

enum { ROWS = 3, LENGTH = 4, TOKENS = ROWS * LENGTH, STEPS = 2, CARDS_MAX = 4 };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static dp_model wide;  /* several blocks: parts of AdamW */
static dp_model small; /* parts between tensors */
static uint32_t tokens[TOKENS + 1];
static const uint32_t devices[CARDS_MAX] = {0, 1, 2, 3};

static int open_all(void **state)
{
    (void)state;
    static const dp_model_config with_blocks = {
        .layers = 1, .width = 32, .heads = 2, .context = LENGTH, .vocab = 7000};
    static const dp_model_config with_tensors = {.layers = 2,
                                                 .width = 16,
                                                 .heads = 2,
                                                 .kv_heads = 1,
                                                 .context = LENGTH,
                                                 .vocab = 40,
                                                 .arch = DP_ARCH_LLAMA};
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    for (size_t i = 0; i <= TOKENS; i++) {
        tokens[i] = (uint32_t)(i * i * 7 + 3) % 40;
    }
    return cuda == NULL || dp_model_open(&wide, &with_blocks, NULL) != DP_OK ||
           dp_model_open(&small, &with_tensors, NULL) != DP_OK;
}

static int close_all(void **state)
{
    (void)state;
    dp_model_close(&small);
    dp_model_close(&wide);
    return 0;
}

/* ---- What is trained. */

typedef struct exercise {
    const dp_model *model;
    dp_precision_kind precision;
    dp_optim_kind optimizer;
    dp_weights_kind weights;
} exercise;

static dp_engine_setup setup_of(const exercise *t)
{
    return (dp_engine_setup){.model = t->model,
                             .precision = t->precision,
                             .optimizer = t->optimizer,
                             .weights = t->weights,
                             .seed = 5,
                             .rows_max = ROWS,
                             .recompute = DP_RECOMPUTE_NORMS,
                             .threads = 1};
}

static const dp_optim_options options = {.lr = 1e-2F,
                                         .beta1 = 0.9F,
                                         .beta2 = 0.95F,
                                         .eps = 1e-8F,
                                         .decay = 0.1F,
                                         .clip = 0.5F,
                                         .momentum = 0.9F};

static void begin(const dp_backend *b, dp_engine *e)
{
    CHECK_OK(b->init(e, 5));
    CHECK_OK(b->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    CHECK_OK(b->reset(e));
    CHECK_OK(b->drop(e));
}

static float *x_of(const dp_backend *b, dp_engine *e, const dp_model *model)
{
    const float *const x = b->values(e, DP_VECTOR_X);
    float *const kept = test_malloc(model->n_elements * sizeof *kept);
    CHECK(x != NULL);
    memcpy(kept, x, model->n_elements * sizeof *kept);
    return kept;
}

typedef struct told {
    double losses[STEPS];
    double norms[STEPS];
} told;

/* ---- One card that takes the rows of each lane in turn, the sums made here. */

static void lane_gradients(dp_engine *e, const dp_model *model, size_t lane, size_t lanes,
                           float *out, double *loss)
{
    const size_t from = ROWS * lane / lanes;
    const size_t rows = ROWS * (lane + 1) / lanes - from;
    const dp_gpt_batch batch = {.x = tokens + from * LENGTH,
                                .y = tokens + from * LENGTH + 1,
                                .rows = rows,
                                .length = LENGTH};
    double sum = 0;
    CHECK_OK(cuda->drop(e));
    CHECK_OK(rows == 0 ? DP_OK : cuda->step(e, &batch, 1.0F / TOKENS, &sum));
    const float *const g = cuda->gradients(e);
    CHECK(g != NULL);
    memcpy(out, g, model->n_elements * sizeof *out);
    *loss += sum;
}

static void one_step(dp_engine *e, const dp_model *model, size_t lanes, told *t, int at)
{
    const size_t n = model->n_elements;
    float *const sums = test_malloc(lanes * n * sizeof *sums);
    double *const squares = test_malloc(dp_norm_blocks(n) * sizeof *squares);
    t->losses[at] = 0;
    for (size_t lane = 0; lane < lanes; lane++) {
        lane_gradients(e, model, lane, lanes, sums + lane * n, &t->losses[at]);
    }
    for (size_t step = 1; step < lanes; step *= 2) {
        for (size_t lane = 0; lane + step < lanes; lane += 2 * step) {
            for (size_t i = 0; i < n; i++) {
                sums[lane * n + i] += sums[(lane + step) * n + i];
            }
        }
    }
    CHECK_OK(cuda->parts->put_sum(e, sums, squares));
    t->norms[at] = dp_norm_of(squares, n);
    CHECK_OK(cuda->update(e, &options, t->norms[at]));
    test_free(squares);
    test_free(sums);
}

static float *play_on_one(const exercise *job, size_t lanes, told *t)
{
    const dp_engine_setup setup = setup_of(job);
    dp_engine *e = NULL;
    fake_cuda_set(&(fake_cuda){0});
    CHECK_OK(cuda->create(&e, &setup, NULL));
    begin(cuda, e);
    for (int i = 0; i < STEPS; i++) {
        one_step(e, job->model, lanes, t, i);
    }
    float *const x = x_of(cuda, e, job->model);
    cuda->close(e);
    return x;
}

/* ---- The same on cards. */

static char line[sizeof((dp_why *)NULL)->text];

static void tell(const char *sentence)
{
    snprintf(line, sizeof line, "%s", sentence);
}

typedef struct rig {
    dp_process_group *team;
    const dp_backend *b;
    dp_engine *e;
} rig;

/* nccl: FAKE_NCCL for all processes; NULL: it works. */
static dp_status open_rig(rig *r, uint32_t cards, const exercise *job, const char *nccl,
                          dp_why *why)
{
    dp_engine_setup setup = setup_of(job);
    *r = (rig){.team = NULL};
    line[0] = '\0';
    fake_cuda_set(&(fake_cuda){.cards = CARDS_MAX});
    CHECK(setenv("FAKE_NCCL", nccl != NULL ? nccl : "", 1) == 0);
    CHECK_OK(dp_process_group_start(&r->team, cards, 0, why));
    CHECK_OK(dp_process_group_use_cards(r->team, cuda, "", devices, tell, &r->b, why));
    setup.team = r->team;
    return r->b->create(&r->e, &setup, why);
}

static void close_rig(rig *r)
{
    if (r->b != NULL) {
        r->b->close(r->e);
    }
    dp_process_group_close(r->team);
    CHECK(fake_cuda_used() == 0);
}

static dp_status step(const rig *r, double *loss, double *norm)
{
    const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
    DP_TRY(r->b->step(r->e, &batch, 1.0F / TOKENS, loss));
    DP_TRY(r->b->norm(r->e, norm));
    DP_TRY(r->b->update(r->e, &options, *norm));
    return r->b->drop(r->e);
}

static float *play_on(uint32_t cards, const exercise *job, const char *nccl, told *t)
{
    rig r;
    dp_why why = {{0}};
    const dp_status status = open_rig(&r, cards, job, nccl, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    begin(r.b, r.e);
    for (int i = 0; i < STEPS; i++) {
        CHECK_OK(step(&r, &t->losses[i], &t->norms[i]));
    }
    CHECK(r.b->updates(r.e) == STEPS);
    float *const x = x_of(r.b, r.e, job->model);
    close_rig(&r);
    return x;
}

static void compare(const exercise *job, uint32_t cards, const char *nccl, const char *words)
{
    told wanted;
    told got;
    float *const x = play_on_one(job, cards, &wanted);
    float *const other = play_on(cards, job, nccl, &got);
    CHECK(strstr(line, words) != NULL);
    CHECK(memcmp(other, x, job->model->n_elements * sizeof *x) == 0);
    CHECK(memcmp(got.losses, wanted.losses, sizeof got.losses) == 0);
    for (int i = 0; i < STEPS; i++) { /* Added by part, where parts are no blocks. */
        CHECK(fabs(got.norms[i] - wanted.norms[i]) <= 1e-12 * wanted.norms[i]);
    }
    test_free(other);
    test_free(x);
}

static const exercise adamw = {&wide, DP_PRECISION_BF16, DP_OPTIM_ADAMW, DP_WEIGHTS_FP32};
static const exercise muon = {&small, DP_PRECISION_FP32, DP_OPTIM_MUON, DP_WEIGHTS_BF16};

static void cards_have_the_bits_of_one_that_takes_their_rows_in_turn(void **state)
{
    (void)state;
    static const struct {
        exercise of;
        uint32_t cards;
    } others[] = {
        {{&small, DP_PRECISION_BF16, DP_OPTIM_LAMB, DP_WEIGHTS_FP32}, 3},
        {{&small, DP_PRECISION_FP32, DP_OPTIM_LARS, DP_WEIGHTS_BF16_SR}, 2},
        {{&small, DP_PRECISION_FP32, DP_OPTIM_MUON, DP_WEIGHTS_BF16}, CARDS_MAX},
    };
    compare(&adamw, 2, NULL, "2 cards train as one, by NCCL 2.21.5");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) { /* With four one has no rows. */
        compare(&others[i].of, others[i].cards, NULL, "cards train as one, by NCCL 2.21.5");
    }
}

static void without_nccl_the_hosts_memory_gives_the_same_bits(void **state)
{
    (void)state;
    compare(&adamw, 3, "version:21003",
            "3 cards train as one, by the host's memory: NCCL is too old: libnccl.so.2 has number "
            "21003");
    compare(&muon, CARDS_MAX, "version:2708", "cards train as one, by the host's memory");
}

static void three_runs_have_the_same_bits(void **state)
{
    (void)state;
    const size_t bytes = small.n_elements * sizeof(float);
    told first;
    float *const x = play_on(CARDS_MAX, &muon, NULL, &first);
    for (int run = 0; run < 2; run++) {
        told again;
        float *const other = play_on(CARDS_MAX, &muon, NULL, &again);
        CHECK(memcmp(other, x, bytes) == 0 && memcmp(&again, &first, sizeof first) == 0);
        test_free(other);
    }
    test_free(x);
}

/* Gradients, more of them after their sum, weights that move from outside, and a checkpoint. */
static void all_that_a_trainer_asks_is_of_the_whole(void **state)
{
    (void)state;
    for (int linked = 0; linked < 2; linked++) {
        const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
        dp_optim_vector lent[DP_BACKEND_STATE_MAX];
        dp_why why = {{0}};
        rig r;
        double losses[2];
        double norms[2];
        CHECK_OK(open_rig(&r, 3, &muon, linked ? NULL : "version:20000", &why));
        begin(r.b, r.e);
        CHECK_OK(r.b->step(r.e, &batch, 1, &losses[0]));
        CHECK_OK(r.b->norm(r.e, &norms[0]));
        const float *const g = r.b->gradients(r.e);
        double square = 0;
        CHECK(g != NULL);
        for (size_t i = 0; i < small.n_elements; i++) {
            square += (double)g[i] * (double)g[i];
        }
        CHECK(fabs(sqrt(square) - norms[0]) <= 1e-9 * norms[0]);
        CHECK_OK(r.b->step(r.e, &batch, 1, &losses[1]));
        CHECK_OK(r.b->norm(r.e, &norms[1]));
        CHECK(losses[1] == losses[0] && fabs(norms[1] - 2 * norms[0]) <= 1e-5 * norms[0]);
        CHECK_OK(r.b->drop(r.e));
        CHECK_OK(r.b->norm(r.e, &norms[1]));
        CHECK(norms[1] == 0);
        CHECK_OK(step(&r, &losses[0], &norms[0]));
        const size_t count = r.b->lend_state(r.e, lent);
        CHECK(count == 4 && strcmp(lent[0].name, "x") == 0 && strcmp(lent[3].name, "master") == 0);
        float *kept[DP_BACKEND_STATE_MAX];
        for (size_t v = 0; v < count; v++) {
            kept[v] = test_malloc(small.n_elements * sizeof(float));
            memcpy(kept[v], lent[v].values, small.n_elements * sizeof(float));
        }
        CHECK_OK(step(&r, &losses[0], &norms[0]));
        float *const x = x_of(r.b, r.e, &small);
        /* Back to where it was lent, and the same step again. */
        CHECK(r.b->lend_state(r.e, lent) == count);
        for (size_t v = 0; v < count; v++) {
            memcpy(lent[v].values, kept[v], small.n_elements * sizeof(float));
            test_free(kept[v]);
        }
        CHECK_OK(r.b->take_state(r.e, 1));
        CHECK(r.b->updates(r.e) == 1);
        CHECK_OK(step(&r, &losses[1], &norms[1]));
        CHECK(losses[1] == losses[0] && norms[1] == norms[0]);
        float *const again = x_of(r.b, r.e, &small);
        CHECK(memcmp(again, x, small.n_elements * sizeof *x) == 0);
        test_free(again);
        test_free(x);
        close_rig(&r);
    }
}

/* ---- What fails. */

static void an_nccl_that_cannot_begin_is_done_without(void **state)
{
    (void)state;
    static const struct {
        const char *nccl;
        const char *says;
    } failures[] = {{"id:2", "system error"},
                    {"init:2", "system error"},
                    {"init:5:1", "invalid usage"},
                    {"state:2:2", "system error"},
                    {"version:1", "too old"}};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        dp_why why = {{0}};
        rig r;
        double loss;
        double norm;
        CHECK_OK(open_rig(&r, 3, &muon, failures[i].nccl, &why));
        CHECK(strstr(line, "3 cards train as one, by the host's memory: ") != NULL);
        CHECK(strstr(line, failures[i].says) != NULL);
        begin(r.b, r.e);
        CHECK_OK(step(&r, &loss, &norm));
        close_rig(&r);
    }
}

static void an_nccl_that_fails_later_ends_the_team_with_a_sentence(void **state)
{
    (void)state;
    static const char *const failures[] = {"send:2:1", "recv:5:0", "start:2", "end:2"};
    for (size_t i = 0; i < sizeof failures / sizeof failures[0]; i++) {
        dp_why why = {{0}};
        rig r;
        double loss;
        double norm;
        CHECK_OK(open_rig(&r, 2, &muon, failures[i], &why));
        begin(r.b, r.e);
        CHECK_STATUS(step(&r, &loss, &norm), DP_IO);
        CHECK(strstr(r.b->problem(r.e), "NCCL fails (") != NULL ||
              strstr(r.b->problem(r.e), "is gone") != NULL);
        CHECK_STATUS(step(&r, &loss, &norm), DP_IO);
        close_rig(&r);
    }
}

/* The first one waits only for the data that the second one would have sent. */
static void a_process_that_dies_between_two_cards_is_noticed(void **state)
{
    (void)state;
    static const char *const deaths[] = {"recv:99:1", "init:99:1"};
    for (size_t i = 0; i < sizeof deaths / sizeof deaths[0]; i++) {
        dp_why why = {{0}};
        rig r;
        double loss;
        double norm;
        const dp_status status = open_rig(&r, 2, &muon, deaths[i], &why);
        CHECK(status == (i == 0 ? DP_OK : DP_IO));
        if (status == DP_OK) {
            begin(r.b, r.e);
            CHECK_STATUS(step(&r, &loss, &norm), DP_IO);
            CHECK(strstr(r.b->problem(r.e), "gone") != NULL);
        } else {
            CHECK(strstr(why.text, "gone") != NULL);
        }
        close_rig(&r);
    }
    rig r;
    dp_why why = {{0}};
    double loss;
    double norm;
    CHECK_OK(open_rig(&r, 3, &muon, NULL, &why));
    begin(r.b, r.e);
    CHECK_OK(step(&r, &loss, &norm));
    CHECK(kill(r.team->others[2].pid, SIGKILL) == 0);
    CHECK_STATUS(step(&r, &loss, &norm), DP_IO);
    CHECK(strstr(r.b->problem(r.e), "process 2 of the 3 that compute is gone") != NULL);
    close_rig(&r);
}

static void a_card_that_another_has_is_named_and_the_team_serves_the_next(void **state)
{
    (void)state;
    dp_engine_setup setup = setup_of(&muon);
    dp_engine *alone = NULL;
    dp_why why = {{0}};
    rig r;
    double loss;
    double norm;
    setup.device = 1;
    fake_cuda_set(&(fake_cuda){.cards = CARDS_MAX});
    CHECK_OK(cuda->create(&alone, &setup, &why));
    CHECK_STATUS(open_rig(&r, 2, &muon, NULL, &why), DP_BUSY);
    CHECK(strstr(why.text, "process 1 of 2: another trainer of dpnode") != NULL);
    cuda->close(alone);
    setup.device = 0;
    setup.team = r.team;
    CHECK_OK(r.b->create(&r.e, &setup, &why));
    begin(r.b, r.e);
    CHECK_OK(step(&r, &loss, &norm));
    close_rig(&r);
}

static void an_invalid_group_of_cards_is_refused(void **state)
{
    (void)state;
    const dp_backend *b = NULL;
    dp_engine_setup setup = setup_of(&muon);
    dp_engine *e = NULL;
    dp_process_group *team = NULL;
    dp_why why = {{0}};
    char name[DP_DEVICE_NAME_MAX];
    CHECK_OK(dp_process_group_start(&team, 2, 3, &why));
    CHECK_STATUS(dp_process_group_use_cards(team, dp_backend_cpu(), "", devices, NULL, &b, &why),
                 DP_UNSUPPORTED);
    CHECK_STATUS(dp_process_group_use_cards(team, cuda, "", devices, NULL, &b, &why), DP_BADARG);
    CHECK(dp_process_group_serves(team, dp_backend_cpu()) && !dp_process_group_serves(team, cuda));
    CHECK(!dp_process_group_serves(NULL, cuda));
    dp_process_group_close(team);
    fake_cuda_set(&(fake_cuda){0});
    setup.part = 2;
    setup.parts = 2;
    CHECK_STATUS(cuda->create(&e, &setup, &why), DP_BADARG);
    CHECK_STATUS(dp_backend_cpu()->create(&e, &setup, &why), DP_UNSUPPORTED);
    CHECK_STATUS(dp_cuda_link_library("libnccl-none.so.2", name, &why), DP_UNSUPPORTED);
    CHECK(strstr(why.text, "libnccl-none.so.2 is not installed") != NULL);
    CHECK_STATUS(dp_cuda_link_library("libm.so.6", name, &why), DP_UNSUPPORTED);
    CHECK(strstr(why.text, "libm.so.6 is no NCCL") != NULL);
    const char *const listens_on = getenv("NCCL_SOCKET_IFNAME"); /* NOLINT(concurrency-mt-unsafe) */
    CHECK(listens_on != NULL && strcmp(listens_on, "lo") == 0);
}

/* ---- The plan. */

static void several_cards_plan_one_s_share_of_the_moments(void **state)
{
    (void)state;
    dp_plugin_choice choice = {.backend = cuda, .n_devices = 2, .devices = {0, 1}};
    dp_manifest m;
    dp_plan one;
    dp_plan two;
    dp_plan cpu;
    dp_why why = {{0}};
    dp_manifest_default(&m);
    dp_manifest_set_model(&m, &dp_model_preset_find("gpt2-tiny")->config);
    const uint32_t rows = m.batch_rows;
    const dp_plan_request request = {.manifest = &m, .threads = 1, .alone = true};
    fake_cuda_set(&(fake_cuda){.cards = 2});
    CHECK_OK(dp_process_group_plan_choice(&choice, &request, &two, &why));
    choice.n_devices = 1;
    CHECK_OK(dp_process_group_plan_choice(&choice, &request, &one, &why));
    CHECK(one.rows == rows && two.rows == rows);
    CHECK(two.weights == one.weights && two.moments < one.moments);
    CHECK(two.activations < one.activations && two.total < one.total);
    /* A card that is not there has no plan. */
    choice.n_devices = 2;
    choice.devices[1] = 2;
    CHECK(dp_process_group_plan_choice(&choice, &request, &two, &why) == DP_BADARG);
    /* The CPU's are what the request says. */
    choice = (dp_plugin_choice){.backend = dp_backend_cpu()};
    CHECK_OK(dp_process_group_plan_choice(&choice, &request, &cpu, &why));
    CHECK(cpu.rows > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_have_the_bits_of_one_that_takes_their_rows_in_turn),
        cmocka_unit_test(without_nccl_the_hosts_memory_gives_the_same_bits),
        cmocka_unit_test(three_runs_have_the_same_bits),
        cmocka_unit_test(all_that_a_trainer_asks_is_of_the_whole),
        cmocka_unit_test(an_nccl_that_cannot_begin_is_done_without),
        cmocka_unit_test(an_nccl_that_fails_later_ends_the_team_with_a_sentence),
        cmocka_unit_test(a_process_that_dies_between_two_cards_is_noticed),
        cmocka_unit_test(a_card_that_another_has_is_named_and_the_team_serves_the_next),
        cmocka_unit_test(an_invalid_group_of_cards_is_refused),
        cmocka_unit_test(several_cards_plan_one_s_share_of_the_moments),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
