/* The CUDA backend where the host or the card has too little memory, and on a card that hangs. */
#include "compute/cuda/engine.h"

#include "base/alloc.h"
#include "compute/backend/plugin.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/cuda/gemm_emulated.h"
#include "tests/lib/check.h"

enum { ROWS = 2, LENGTH = 8, VOCAB = 40, TOKENS = ROWS * LENGTH, HOST_PIECES = 5 };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static dp_model model;
static uint32_t tokens[TOKENS + 1];

static int open_all(void **state)
{
    (void)state;
    static const dp_model_config config = {
        .layers = 2, .width = 16, .heads = 2, .context = LENGTH, .vocab = VOCAB};
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

static dp_engine *opened(const fake_cuda *fake)
{
    const dp_engine_setup setup = {.model = &model,
                                   .precision = DP_PRECISION_FP32,
                                   .optimizer = DP_OPTIM_ADAMW,
                                   .weights = DP_WEIGHTS_FP32,
                                   .rows_max = ROWS,
                                   .threads = 1,
                                   .momentum = true,
                                   .shared = true};
    dp_engine *e = NULL;
    dp_why why = {{0}};
    fake_cuda_set(fake);
    CHECK_OK(cuda->create(&e, &setup, &why));
    CHECK_OK(cuda->init(e, 5));
    CHECK_OK(cuda->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    return e;
}

/* A step and its update. */
static dp_status train(dp_engine *e)
{
    static const dp_optim_options options = {
        .lr = 1e-2F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F, .clip = 1.0F, .loss_scale = 1.0F};
    const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
    double loss;
    double norm;
    DP_TRY(cuda->step(e, &batch, 1.0F / TOKENS, &loss));
    DP_TRY(cuda->norm(e, &norm));
    DP_TRY(cuda->update(e, &options, norm));
    return cuda->drop(e);
}

static void add_bits(const float *x, uint64_t *sum)
{
    CHECK(x != NULL);
    for (size_t i = 0; i < model.n_elements; i++) {
        uint32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        *sum = *sum * 31 + bits;
    }
}

/* Bits of all vectors and of the optimizer's after a step and a round. */
static uint64_t round_sum(const fake_cuda *fake)
{
    const dp_codec codecs[2] = {dp_codec_default(DP_CODEC_SPARSE), dp_codec_default(DP_CODEC_INT8)};
    const dp_outer outer = {.alpha = 60000, .mu = 50000};
    const uint32_t q[2] = {0x50000000U, 0x30000000U};
    dp_engine *const e = opened(fake);
    dp_optim_vector lent[DP_BACKEND_STATE_MAX];
    dp_view blobs[2];
    dp_outer_seen seen;
    double moved;
    uint64_t sum = 0;
    CHECK_OK(train(e));
    CHECK_OK(cuda->snapshot(e, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA));
    CHECK_OK(cuda->snapshot(e, DP_VECTOR_F, DP_VECTOR_NONE, DP_VECTOR_THETA));
    CHECK_OK(cuda->encode(e, DP_VECTOR_A, &codecs[0], &blobs[0]));
    CHECK_OK(cuda->encode(e, DP_VECTOR_F, &codecs[1], &blobs[1]));
    CHECK_OK(cuda->apply(e, &(dp_consensus_items){.blobs = blobs, .q = q, .n = 2}, &outer, &seen));
    CHECK_OK(cuda->settle(e, blobs[0], 20000, 0.95F));
    CHECK_OK(cuda->mix(e, blobs, 0.375, &moved));
    CHECK(cuda->problem(e)[0] == '\0');
    for (int v = 0; v < DP_VECTORS; v++) {
        add_bits(cuda->values(e, (dp_vector)v), &sum);
    }
    add_bits(cuda->gradients(e), &sum);
    const size_t n = cuda->lend_state(e, lent);
    CHECK(n == 3);
    for (size_t i = 0; i < n; i++) {
        add_bits(lent[i].values, &sum);
    }
    CHECK_OK(cuda->take_state(e, cuda->updates(e)));
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
    return sum;
}

static void a_round_needs_no_page_locked_memory(void **state)
{
    (void)state;
    const size_t before = dp_alloc_live_bytes();
    const uint64_t sum = round_sum(&(fake_cuda){0});
    CHECK(round_sum(&(fake_cuda){.host_at = HOST_PIECES + 1}) == sum);
    CHECK(round_sum(&(fake_cuda){.host_at = HOST_PIECES + 2}) == sum);
    CHECK(round_sum(&(fake_cuda){.host_at = HOST_PIECES + 1, .late = 3, .late_all = true}) == sum);
    CHECK(dp_alloc_live_bytes() == before);
}

static void a_vector_that_no_memory_is_there_for_is_told_by_a_sentence(void **state)
{
    (void)state;
    dp_engine *const e = opened(&(fake_cuda){.host_at = HOST_PIECES + 2});
    dp_alloc_fail_after(1);
    CHECK(cuda->gradients(e) == NULL);
    dp_alloc_fail_after(0);
    CHECK(strstr(cuda->problem(e), "this machine has no 0 MiB of memory") != NULL);
    CHECK_STATUS(train(e), DP_IO);
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
}

/* The block alone would fit with all rows. */
static void products_have_room_left_for_them(void **state)
{
    (void)state;
    const dp_cuda_shape shape = {.model = &model,
                                 .type = DP_FP32,
                                 .optimizer = DP_OPTIM_ADAMW,
                                 .weights = DP_WEIGHTS_FP32,
                                 .momentum = true,
                                 .rows = ROWS};
    gemm_emulated_takes(4096);
    const size_t total = dp_cuda_bytes_of(&shape).total;
    dp_engine *e = opened(&(fake_cuda){.memory = total});
    CHECK(e->shape.rows == ROWS);
    cuda->close(e);
    e = opened(&(fake_cuda){.memory = total - 1});
    CHECK(e->shape.rows == ROWS / 2 && cuda->problem(e)[0] == '\0');
    CHECK_OK(train(e));
    cuda->close(e);
    CHECK(fake_cuda_used() == 0);
    gemm_emulated_takes(0);
}

/* The fake card ends the test where something is freed. */
static void closing_an_engine_whose_card_hangs_waits_for_nothing(void **state)
{
    (void)state;
    static const fake_cuda hanging = {.hangs = true};
    const dp_codec codec = dp_codec_default(DP_CODEC_INT8);
    const size_t before = dp_alloc_live_bytes();
    for (int way = 0; way < 3; way++) {
        dp_engine *const e = opened(&(fake_cuda){.host_at = way == 2 ? HOST_PIECES + 1 : 0});
        dp_view blob;
        const float *values;
        for (int i = 0; i < 3; i++) { /* So that there are graphs. */
            CHECK_OK(train(e));
        }
        CHECK_OK(cuda->snapshot(e, DP_VECTOR_A, DP_VECTOR_E, DP_VECTOR_THETA));
        CHECK_OK(cuda->encode(e, DP_VECTOR_A, &codec, &blob)); /* and a stage */
        CHECK_OK(cuda->encode_start(e, DP_VECTOR_A, &codec));
        e->device.wait_ms = 5;
        fake_cuda_set(&hanging);
        CHECK_STATUS(way == 0 ? train(e) : cuda->encode_take(e, &blob, &values), DP_IO);
        CHECK(strstr(cuda->problem(e), "it hangs") != NULL);
        const unsigned calls = fake_cuda_calls();
        cuda->close(e);
        CHECK(fake_cuda_calls() == calls && fake_cuda_used() > 0);
        CHECK(dp_alloc_live_bytes() == before);
        fake_cuda_end();
        CHECK(fake_cuda_used() == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_round_needs_no_page_locked_memory),
        cmocka_unit_test(products_have_room_left_for_them),
        cmocka_unit_test(closing_an_engine_whose_card_hangs_waits_for_nothing),
        cmocka_unit_test(a_vector_that_no_memory_is_there_for_is_told_by_a_sentence),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
