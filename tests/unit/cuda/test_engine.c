/* The whole CUDA backend, with its kernels on the emulator: compared with the CPU, with itself, and
 * on a failing card. */
#include "compute/cuda/engine.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "compute/backend/backend_check.h"
#include "compute/backend/plugin.h"
#include "compute/cpu/half.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"
#include "tests/lib/optim_pairs.h"

enum { ROWS = 2, LENGTH = 8, VOCAB = 40, TOKENS = ROWS * LENGTH };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static dp_model model;
static uint32_t tokens[TOKENS + 1];

static const fake_cuda healthy = {0};

static int open_all(void **state)
{
    (void)state;
    static const dp_model_config config = {.layers = 2,
                                           .width = 16,
                                           .heads = 2,
                                           .kv_heads = 1,
                                           .context = LENGTH,
                                           .vocab = VOCAB,
                                           .arch = DP_ARCH_LLAMA,
                                           .qk_norm = DP_ON};
    dp_why why = {{0}};
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    for (size_t i = 0; i <= TOKENS; i++) {
        tokens[i] = (uint32_t)(i * i * 7 + 3) % VOCAB;
    }
    return cuda == NULL || dp_model_open(&model, &config, &why) != DP_OK;
}

static int close_all(void **state)
{
    (void)state;
    dp_model_close(&model);
    return 0;
}

static dp_engine_setup setup_with(dp_precision_kind precision, dp_recompute recompute)
{
    return (dp_engine_setup){.model = &model,
                             .precision = precision,
                             .optimizer = DP_OPTIM_ADAMW,
                             .weights = DP_WEIGHTS_FP32,
                             .rows_max = ROWS,
                             .recompute = recompute,
                             .threads = 1,
                             .momentum = true};
}

static dp_gpt_batch batch(void)
{
    return (dp_gpt_batch){.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
}

static const dp_optim_options options = {.lr = 1e-2F,
                                         .beta1 = 0.9F,
                                         .beta2 = 0.95F,
                                         .eps = 1e-8F,
                                         .decay = 0.1F,
                                         .clip = 1.0F,
                                         .loss_scale = 1.0F};

/* One step and its update. */
static dp_status train_once(dp_engine *e, double *loss)
{
    const dp_gpt_batch b = batch();
    double norm;
    DP_TRY(cuda->step(e, &b, 1.0F / TOKENS, loss));
    DP_TRY(cuda->norm(e, &norm));
    DP_TRY(cuda->update(e, &options, norm));
    return cuda->drop(e);
}

static dp_status train(dp_engine *e, int steps, double *loss)
{
    DP_TRY(cuda->init(e, 5));
    DP_TRY(cuda->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    for (int i = 0; i < steps; i++) {
        DP_TRY(train_once(e, loss));
    }
    return DP_OK;
}

/* Sums the bits of x: the same for the same bits. */
static uint64_t sum_of_x(dp_engine *e)
{
    const float *const x = cuda->values(e, DP_VECTOR_X);
    uint64_t sum = 0;
    CHECK(x != NULL);
    for (size_t i = 0; i < model.n_elements; i++) {
        sum = sum * 31 + dp_float_bits(x[i]);
    }
    return sum;
}

static uint64_t trained(const fake_cuda *fake, dp_precision_kind precision, dp_recompute recompute,
                        int steps, double *loss)
{
    const dp_engine_setup setup = setup_with(precision, recompute);
    dp_why why = {{0}};
    dp_engine *e = NULL;
    fake_cuda_set(fake);
    const dp_status status = cuda->create(&e, &setup, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    CHECK_OK(train(e, steps, loss));
    const uint64_t sum = sum_of_x(e);
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
    return sum;
}

static bool with_sanitizer(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#else
    return false;
#endif
}

static void the_table_is_whole_and_of_this_version(void **state)
{
    (void)state;
    CHECK(cuda->magic == DP_BACKEND_MAGIC && cuda->version == DP_BACKEND_VERSION);
    CHECK(dp_backend_query(DP_BACKEND_VERSION + 1) == NULL);
    for (size_t at = offsetof(dp_backend, devices); at < sizeof *cuda; at += sizeof(void *)) {
        void *call;
        memcpy(&call, (const char *)cuda + at, sizeof call);
        CHECK(call != NULL);
    }
}

static void all_of_it_agrees_with_the_cpu(void **state)
{
    (void)state;
    dp_why why = {{0}};
    dp_backend table = *cuda;
    if (with_sanitizer()) { /* One precision then: the emulator is slow enough without. */
        table.capabilities &= ~(uint32_t)(DP_CAN_FP32 | DP_CAN_FP16);
    }
    fake_cuda_set(&(fake_cuda){.arch = 90}); /* Heads of 64 and 128 go by warpgroups. */
    const dp_status status = dp_backend_check(&table, 0, NULL, &why);
    if (status != DP_OK) {
        print_error("%s\n", why.text);
    }
    CHECK_OK(status);
    CHECK(fake_cuda_used() == 0);
}

static void a_model_learns_and_the_ladder_changes_no_bit(void **state)
{
    (void)state;
    static const dp_precision_kind kinds[] = {DP_PRECISION_FP32, DP_PRECISION_BF16};
    for (size_t k = with_sanitizer() ? 1 : 0; k < 2; k++) {
        double first;
        double last;
        trained(&healthy, kinds[k], DP_RECOMPUTE_NOTHING, 1, &first);
        const uint64_t sum = trained(&healthy, kinds[k], DP_RECOMPUTE_NOTHING, 6, &last);
        CHECK(last < 0.9 * first);
        for (int at = DP_RECOMPUTE_NORMS; at < DP_RECOMPUTE_STEPS; at++) {
            double loss;
            CHECK(trained(&healthy, kinds[k], (dp_recompute)at, 6, &loss) == sum);
            CHECK(loss == last);
        }
    }
}

static void the_same_shape_is_replayed_as_a_graph_with_the_same_bits(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_BF16, DP_RECOMPUTE_NORMS);
    const dp_gpt_batch b = batch();
    dp_engine *e = NULL;
    dp_why why = {{0}};
    double losses[4];
    fake_cuda_set(&healthy);
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(cuda->init(e, 5));
    CHECK_OK(cuda->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(cuda->step(e, &b, 1.0F / TOKENS, &losses[i]));
        CHECK(losses[i] == losses[0]);
        CHECK(fake_cuda_graphs() == (unsigned)i);
    }
    cuda->close(e);
}

/* Updates with other options each; anew: none is a graph. */
static uint64_t updated(const optim_pair *pair, bool anew)
{
    dp_engine_setup setup = setup_with(DP_PRECISION_BF16, DP_RECOMPUTE_NORMS);
    const dp_gpt_batch b = batch();
    dp_engine *e = NULL;
    dp_why why = {{0}};
    double loss;
    double norm;
    setup.optimizer = pair->optimizer;
    setup.weights = pair->weights;
    fake_cuda_set(&healthy);
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(cuda->init(e, 5));
    CHECK_OK(cuda->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    for (int i = 0; i < 4; i++) {
        dp_optim_options other = options;
        other.lr = 1e-2F / (float)(i + 1);
        other.momentum = 0.9F;
        other.clip = i % 2 == 0 ? 0.5F : 0;
        if (anew) {
            dp_cuda_graphs_close(&e->graphs);
        }
        CHECK_OK(cuda->step(e, &b, 1.0F / TOKENS, &loss));
        CHECK_OK(cuda->norm(e, &norm));
        CHECK_OK(cuda->update(e, &other, norm));
        CHECK_OK(cuda->drop(e));
    }
    CHECK(fake_cuda_graphs() == (anew ? 0U : 6U)); /* The first pass and update run as they are. */
    const uint64_t sum = sum_of_x(e);
    cuda->close(e);
    return sum;
}

static void an_update_is_replayed_as_a_graph_with_the_options_of_its_step(void **state)
{
    (void)state;
    for (size_t i = 0; i < OPTIM_PAIRS; i++) {
        CHECK(updated(&optim_pairs[i], false) == updated(&optim_pairs[i], true));
    }
}

static void too_little_memory_makes_the_micro_batch_smaller(void **state)
{
    (void)state;
    double wanted;
    double loss;
    trained(&healthy, DP_PRECISION_FP32, DP_RECOMPUTE_NOTHING, 3, &wanted);
    /* The first block finds no room: one row at a time. */
    trained(&(fake_cuda){.alloc_at = 1}, DP_PRECISION_FP32, DP_RECOMPUTE_NOTHING, 3, &loss);
    CHECK(fabs(loss - wanted) < 1e-4 * wanted);
}

static void a_card_that_is_too_small_gives_up_with_advice(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_NOTHING);
    dp_engine *e = NULL;
    dp_why why = {{0}};
    fake_cuda_set(&(fake_cuda){.memory = 4096});
    CHECK(cuda->create(&e, &setup, &why) == DP_TOOBIG);
    CHECK(strstr(why.text, "end what else uses the card") != NULL);
    CHECK(fake_cuda_used() == 0);
}

static void bf16_on_a_card_without_it_names_what_to_take(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_BF16, DP_RECOMPUTE_NOTHING);
    dp_engine *e = NULL;
    dp_why why = {{0}};
    fake_cuda_set(&(fake_cuda){.arch = 75});
    CHECK(cuda->create(&e, &setup, &why) == DP_UNSUPPORTED);
    CHECK(strstr(why.text, "fp16 or fp32") != NULL);
}

/* The card may go in any call: a status, a sentence, and all memory given back. */
static void a_card_that_vanishes_costs_a_sentence_wherever_it_happens(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_NOTHING);
    dp_status status = DP_IO;
    for (unsigned at = 1; status != DP_OK; at++) {
        dp_engine *e = NULL;
        dp_why why = {{0}};
        double loss;
        fake_cuda_set(&(fake_cuda){.fail_at = at, .fail_with = DP_CUDA_LAUNCH_FAILED});
        status = cuda->create(&e, &setup, &why);
        if (status == DP_OK) {
            status = train(e, 1, &loss);
            const char *const problem = cuda->problem(e);
            CHECK((strstr(problem, "has failed or is gone") != NULL) == (status == DP_IO));
        } else {
            CHECK(strstr(why.text, "has failed or is gone") != NULL);
        }
        CHECK(status == DP_OK || status == DP_IO);
        cuda->close(e);
        CHECK(fake_cuda_used() == 0);
        CHECK(at < 1000);
    }
}

static void losses_that_are_no_numbers_cost_the_step(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_NOTHING);
    const dp_gpt_batch b = batch();
    dp_engine *e = NULL;
    dp_why why = {{0}};
    double loss;
    fake_cuda_set(&(fake_cuda){.poison_at = 1});
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(cuda->init(e, 5));
    CHECK_OK(cuda->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    CHECK(cuda->step(e, &b, 1.0F / TOKENS, &loss) == DP_DIVERGED);
    CHECK_OK(cuda->drop(e));
    CHECK_OK(cuda->step(e, &b, 1.0F / TOKENS, &loss));
    CHECK(isfinite(loss));
    cuda->close(e);
}

static void two_engines_share_a_card_only_where_both_fit(void **state)
{
    (void)state;
    dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_LAYER);
    dp_engine *first = NULL;
    dp_engine *second = NULL;
    dp_why why = {{0}};
    setup.shared = true;
    fake_cuda_set(&healthy);
    CHECK_OK(cuda->create(&first, &setup, &why));
    const size_t used = fake_cuda_used();
    cuda->close(first);
    fake_cuda_set(&(fake_cuda){.memory = used + used / 4});
    CHECK_OK(cuda->create(&first, &setup, &why));
    CHECK(cuda->create(&second, &setup, &why) == DP_TOOBIG);
    cuda->close(first);
}

/* In processes of their own too: the kernel keeps the claim. */
static void a_second_worker_for_one_card_is_told_so(void **state)
{
    (void)state;
    dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_LAYER);
    dp_engine *first = NULL;
    dp_engine *second = NULL;
    dp_why why = {{0}};
    dp_device seen;
    fake_cuda_set(&(fake_cuda){.cards = 2});
    CHECK(cuda->device(0, &seen, &why) == DP_OK && !seen.taken);
    CHECK_OK(cuda->create(&first, &setup, &why));
    CHECK(cuda->device(0, &seen, &why) == DP_OK && seen.taken);
    CHECK(cuda->device(1, &seen, &why) == DP_OK && !seen.taken);
    CHECK_STATUS(cuda->create(&second, &setup, &why), DP_BUSY);
    CHECK(strstr(why.text, "another trainer of dpnode on this machine has Emulated Card") != NULL);
    setup.device = 1;
    CHECK_OK(cuda->create(&second, &setup, &why));
    cuda->close(second);
    cuda->close(first);
    setup.device = 0;
    CHECK_OK(cuda->create(&first, &setup, &why));
    cuda->close(first);
    CHECK(fake_cuda_used() == 0);
}

/* A process without standard input gives the claim its number. */
static void a_claim_may_be_descriptor_zero(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_LAYER);
    dp_engine *e = NULL;
    dp_why why = {{0}};
    fake_cuda_set(&healthy);
    const int input = dup(STDIN_FILENO);
    CHECK(input > 0 && close(STDIN_FILENO) == 0);
    for (int i = 0; i < 2; i++) {
        const dp_status status = cuda->create(&e, &setup, &why);
        if (status == DP_OK) {
            CHECK(e->claim == STDIN_FILENO);
            cuda->close(e);
        }
        CHECK_OK(status);
    }
    CHECK(dup2(input, STDIN_FILENO) == STDIN_FILENO && close(input) == 0);
}

struct elsewhere {
    dp_engine *e;
    dp_status status;
    double loss;
};

static void *train_elsewhere(void *context)
{
    struct elsewhere *const job = context;
    job->status = train(job->e, 1, &job->loss);
    return NULL;
}

/* The fake card ends the test if a call goes to another card. */
static void the_second_card_is_reached_from_every_thread(void **state)
{
    (void)state;
    dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_LAYER);
    struct elsewhere job = {.status = DP_IO};
    dp_why why = {{0}};
    double loss;
    pthread_t thread;
    setup.device = 1;
    fake_cuda_set(&(fake_cuda){.cards = 2});
    CHECK_OK(cuda->create(&job.e, &setup, &why));
    CHECK(pthread_create(&thread, NULL, train_elsewhere, &job) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_OK(job.status);
    CHECK_OK(train(job.e, 1, &loss));
    CHECK(loss == job.loss);
    cuda->close(job.e);
}

/* A round after a step; sums the bits of every vector. */
static uint64_t round_sum(size_t memory, uint64_t memory_max)
{
    dp_engine_setup setup = setup_with(DP_PRECISION_FP32, DP_RECOMPUTE_NOTHING);
    const dp_codec codecs[2] = {dp_codec_default(DP_CODEC_SPARSE), dp_codec_default(DP_CODEC_INT8)};
    const dp_outer outer = {.alpha = 60000, .mu = 50000, .long_once = true};
    const uint32_t q[2] = {0x50000000U, 0x30000000U};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    dp_view blobs[2];
    dp_outer_seen seen;
    double value;
    uint64_t sum = 0;
    fake_cuda_set(&(fake_cuda){.memory = memory});
    setup.memory_max = memory_max;
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(train(e, 1, &value));
    CHECK_OK(cuda->snapshot(e, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA));
    CHECK_OK(cuda->snapshot(e, DP_VECTOR_F, DP_VECTOR_NONE, DP_VECTOR_THETA));
    CHECK_OK(cuda->encode(e, DP_VECTOR_A, &codecs[0], &blobs[0]));
    CHECK_OK(cuda->encode(e, DP_VECTOR_F, &codecs[1], &blobs[1]));
    CHECK_OK(cuda->apply(e, &(dp_consensus_items){.blobs = blobs, .q = q, .n = 2}, &outer, &seen));
    CHECK_OK(cuda->settle(e, blobs[0], 20000, 0.95F));
    CHECK_OK(cuda->mix(e, blobs, 0.375, &value));
    CHECK(cuda->problem(e)[0] == '\0'); /* A lack of memory was no failure. */
    for (int v = 0; v < DP_VECTORS; v++) {
        const float *const x = cuda->values(e, (dp_vector)v);
        CHECK(x != NULL);
        for (size_t i = 0; i < model.n_elements; i++) {
            sum = sum * 31 + dp_float_bits(x[i]);
        }
    }
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
    return sum;
}

/* An engine after a step, with the displacement in a. */
static dp_engine *with_displacement(const fake_cuda *fake)
{
    const dp_engine_setup setup = setup_with(DP_PRECISION_BF16, DP_RECOMPUTE_NOTHING);
    dp_engine *e = NULL;
    dp_why why = {{0}};
    double loss;
    fake_cuda_set(fake);
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(train(e, 1, &loss));
    CHECK_OK(cuda->snapshot(e, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA));
    return e;
}

/* If every stream is late, an engine that does not wait for the half encodes the whole, and one
 * that then waits only for the encoding gets it. */
static void a_blob_is_made_of_what_was_put_on_before_it(void **state)
{
    (void)state;
    dp_engine *const e = with_displacement(&(fake_cuda){.late = 2, .late_all = true});
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    const size_t bytes = model.n_elements * sizeof(float);
    float *const a = test_malloc(bytes);
    const float *values = NULL;
    dp_buf wanted;
    dp_view blob;
    dp_buf_init(&wanted, dp_codec_bytes_max_any(model.n_elements));
    memcpy(a, cuda->values(e, DP_VECTOR_A), bytes);
    for (size_t i = 0; i < model.n_elements; i++) {
        a[i] *= 0.5F;
    }
    CHECK_OK(dp_codec_encode(&codec, a, model.n_elements, &wanted));
    CHECK_OK(cuda->scale(e, DP_VECTOR_A, 32768));
    CHECK_OK(cuda->encode_start(e, DP_VECTOR_A, &codec));
    CHECK_OK(cuda->encode_take(e, &blob, &values));
    CHECK(dp_view_equal(blob, dp_buf_view(&wanted)));
    CHECK(memcmp(values, a, bytes) == 0);
    dp_buf_close(&wanted);
    test_free(a);
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
}

/* The card executes the other stream only on request: the writes of a step in between must not
 * affect it. */
static void a_blob_made_beside_steps_has_the_bytes_of_the_moment_it_began(void **state)
{
    (void)state;
    static const dp_codec_kind kinds[] = {DP_CODEC_SPARSE, DP_CODEC_INT8};
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        dp_engine *const e = with_displacement(&(fake_cuda){.late = 4});
        const dp_codec codec = dp_codec_default(kinds[k]);
        const size_t bytes = model.n_elements * sizeof(float);
        float *const a = test_malloc(bytes);
        const float *values = NULL;
        dp_buf wanted;
        dp_view blob;
        double loss;
        bool ready = true;
        dp_buf_init(&wanted, dp_codec_bytes_max_any(model.n_elements));
        memcpy(a, cuda->values(e, DP_VECTOR_A), bytes);
        CHECK_OK(dp_codec_encode(&codec, a, model.n_elements, &wanted));
        CHECK_OK(cuda->encode_start(e, DP_VECTOR_A, &codec));
        CHECK_OK(cuda->copy(e, DP_VECTOR_ANCHOR, DP_VECTOR_X));
        CHECK_OK(cuda->encode_ready(e, &ready));
        CHECK(!ready);
        CHECK_OK(train_once(e, &loss));
        CHECK(cuda->values(e, DP_VECTOR_X) != NULL);
        CHECK_OK(cuda->encode_ready(e, &ready));
        CHECK(!ready); /* Steps have not waited for it. */
        CHECK_OK(cuda->encode_take(e, &blob, &values));
        CHECK(dp_view_equal(blob, dp_buf_view(&wanted)));
        CHECK(memcmp(values, a, bytes) == 0);
        dp_buf_close(&wanted);
        test_free(a);
        cuda->close(e);
        CHECK(fake_cuda_used() == 0);
    }
}

static void an_engine_may_be_closed_in_the_middle_of_an_encoding(void **state)
{
    (void)state;
    const dp_codec codec = dp_codec_default(DP_CODEC_SPARSE);
    dp_engine *const e = with_displacement(&(fake_cuda){.late = 4});
    CHECK_OK(cuda->encode_start(e, DP_VECTOR_A, &codec));
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
}

static void a_card_that_goes_in_the_middle_of_an_encoding_costs_a_sentence(void **state)
{
    (void)state;
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    dp_status status = DP_IO;
    for (unsigned at = 1; status != DP_OK; at++) {
        dp_engine *const e = with_displacement(&healthy);
        dp_view blob;
        const float *values;
        fake_cuda_set(&(fake_cuda){.late = 2, .fail_at = at, .fail_with = DP_CUDA_LAUNCH_FAILED});
        status = cuda->encode_start(e, DP_VECTOR_A, &codec);
        if (status == DP_OK) {
            status = cuda->encode_take(e, &blob, &values);
        }
        CHECK(status == DP_OK || status == DP_IO);
        CHECK((cuda->problem(e)[0] != '\0') == (status == DP_IO));
        cuda->close(e);
        CHECK(fake_cuda_used() == 0);
        CHECK(at < 100);
    }
}

static void a_round_without_room_for_blobs_goes_by_the_host_to_the_same_bits(void **state)
{
    (void)state;
    const dp_cuda_shape shape = {.model = &model,
                                 .type = DP_FP32,
                                 .optimizer = DP_OPTIM_ADAMW,
                                 .weights = DP_WEIGHTS_FP32,
                                 .momentum = true,
                                 .rows = ROWS};
    const uint64_t total = dp_cuda_bytes_of(&shape).total;
    const uint64_t sum = round_sum(0, 0);
    CHECK(fake_cuda_most() > total);
    CHECK(round_sum(total, 0) == sum);
    CHECK(round_sum(0, total) == sum); /* There is room, and its owner does not grant it. */
    CHECK(fake_cuda_most() == total);
}

static void a_share_of_the_card_bounds_what_training_takes(void **state)
{
    (void)state;
    dp_manifest m;
    dp_plan all;
    dp_plan some;
    dp_why why = {{0}};
    dp_manifest_default(&m);
    dp_manifest_set_model(&m, &dp_model_preset_find("gpt2-tiny")->config);
    m.batch_rows = 64;
    dp_plan_request request = {.manifest = &m, .threads = 1};
    fake_cuda_set(&(fake_cuda){.memory = (size_t)1 << 30});
    CHECK_OK(cuda->plan(0, &request, &all, &why));
    request.card_share = 100;
    CHECK_OK(cuda->plan(0, &request, &some, &why));
    CHECK(some.budget <= all.budget && all.budget - some.budget < 100 && some.rows == all.rows);
    request.card_share = 15;
    CHECK_OK(cuda->plan(0, &request, &some, &why));
    CHECK(some.rows > 0 && some.rows < all.rows && some.total <= some.budget);
    CHECK(some.budget < ((uint64_t)1 << 30) * 15 / 100);
    request.card_share = 1;
    CHECK(cuda->plan(0, &request, &some, &why) == DP_TOOBIG);
    CHECK(strstr(why.text, "of the 1 % that its owner grants 10 MiB are there; to grant more: "
                           "dpnode limits --vram-share PERCENT") != NULL);
    request.budget = all.budget; /* Told by a person: the share is no matter. */
    CHECK_OK(cuda->plan(0, &request, &some, &why));
    CHECK(some.rows == all.rows);
}

static void the_plan_counts_what_create_takes(void **state)
{
    (void)state;
    const dp_engine_setup setup = setup_with(DP_PRECISION_BF16, DP_RECOMPUTE_ATTENTION);
    const dp_cuda_shape shape = {.model = &model,
                                 .type = DP_BF16,
                                 .optimizer = DP_OPTIM_ADAMW,
                                 .weights = DP_WEIGHTS_FP32,
                                 .momentum = true,
                                 .recompute = DP_RECOMPUTE_ATTENTION,
                                 .rows = ROWS};
    const dp_cuda_bytes bytes = dp_cuda_bytes_of(&shape);
    dp_engine *e = NULL;
    dp_why why = {{0}};
    fake_cuda_set(&(fake_cuda){.memory = bytes.total - 1});
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK(e->shape.rows == ROWS / 2); /* One byte too few. */
    cuda->close(e);
    fake_cuda_set(&(fake_cuda){.memory = bytes.total});
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK(e->shape.rows == ROWS);
    cuda->close(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_is_whole_and_of_this_version),
        cmocka_unit_test(all_of_it_agrees_with_the_cpu),
        cmocka_unit_test(a_model_learns_and_the_ladder_changes_no_bit),
        cmocka_unit_test(the_same_shape_is_replayed_as_a_graph_with_the_same_bits),
        cmocka_unit_test(an_update_is_replayed_as_a_graph_with_the_options_of_its_step),
        cmocka_unit_test(too_little_memory_makes_the_micro_batch_smaller),
        cmocka_unit_test(a_card_that_is_too_small_gives_up_with_advice),
        cmocka_unit_test(bf16_on_a_card_without_it_names_what_to_take),
        cmocka_unit_test(a_card_that_vanishes_costs_a_sentence_wherever_it_happens),
        cmocka_unit_test(losses_that_are_no_numbers_cost_the_step),
        cmocka_unit_test(a_second_worker_for_one_card_is_told_so),
        cmocka_unit_test(a_claim_may_be_descriptor_zero),
        cmocka_unit_test(the_second_card_is_reached_from_every_thread),
        cmocka_unit_test(two_engines_share_a_card_only_where_both_fit),
        cmocka_unit_test(a_blob_is_made_of_what_was_put_on_before_it),
        cmocka_unit_test(a_blob_made_beside_steps_has_the_bytes_of_the_moment_it_began),
        cmocka_unit_test(an_engine_may_be_closed_in_the_middle_of_an_encoding),
        cmocka_unit_test(a_card_that_goes_in_the_middle_of_an_encoding_costs_a_sentence),
        cmocka_unit_test(a_round_without_room_for_blobs_goes_by_the_host_to_the_same_bits),
        cmocka_unit_test(the_plan_counts_what_create_takes),
        cmocka_unit_test(a_share_of_the_card_bounds_what_training_takes),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
