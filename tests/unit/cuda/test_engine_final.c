/* Gradients of a card that are told while backward goes on: the bits of a step that tells nobody,
 * piece by piece, and what happens where a copy fails. */
#include "compute/cuda/engine.h"

#include <math.h>
#include <string.h>

#include "compute/backend/plugin.h"
#include "compute/cpu/half.h"
#include "compute/machine/pool.h"
#include "compute/model/gpt.h"
#include "tests/cuda/fake_cuda.h"
#include "tests/lib/check.h"
#include "tests/unit/compute/parts_kit.h"

enum { ROWS = 3, LENGTH = 8, VOCAB = 40, LAYERS = 3, TOKENS = ROWS * LENGTH, MODELS = 3 };

const dp_backend *dp_backend_query(uint32_t version);

static const dp_backend *cuda;
static uint32_t tokens[TOKENS + 1];
static const fake_cuda healthy = {0};

/* A tied head, an untied one, biases. */
static const dp_model_config configs[MODELS] = {
    {.layers = LAYERS,
     .width = 16,
     .heads = 2,
     .kv_heads = 1,
     .context = LENGTH,
     .vocab = VOCAB,
     .arch = DP_ARCH_LLAMA,
     .qk_norm = DP_ON,
     .head = DP_HEAD_TIED},
    {.layers = LAYERS,
     .width = 16,
     .heads = 2,
     .context = LENGTH,
     .vocab = VOCAB,
     .arch = DP_ARCH_LLAMA,
     .head = DP_HEAD_UNTIED},
    {.layers = LAYERS, .width = 16, .heads = 2, .context = LENGTH, .vocab = VOCAB}};

static int open_all(void **state)
{
    (void)state;
    cuda = dp_backend_query(DP_BACKEND_VERSION);
    for (size_t i = 0; i <= TOKENS; i++) {
        tokens[i] = (uint32_t)(i * i * 7 + 3) % VOCAB;
    }
    return cuda == NULL;
}

/* ---- An engine, and what it tells. */

typedef struct teller {
    dp_model model;
    dp_engine *engine;
    float *told;   /* each element as it was when it was told */
    float *beside; /* the same of E; NULL: it is not asked for */
    size_t first;
    size_t borders[DP_CUDA_PIECES_MAX];
    size_t count;
} teller;

/* Nothing is in it yet. */
static dp_engine *create_engine(const dp_model *model, dp_recompute recompute)
{
    const dp_engine_setup setup = {.model = model,
                                   .precision = DP_PRECISION_BF16,
                                   .optimizer = DP_OPTIM_ADAMW,
                                   .weights = DP_WEIGHTS_FP32,
                                   .rows_max = ROWS,
                                   .recompute = recompute,
                                   .threads = 1,
                                   /* Two stand side by side. */
                                   .shared = true};
    dp_why why = {{0}};
    dp_engine *e = NULL;
    CHECK_OK(cuda->create(&e, &setup, &why));
    return e;
}

static dp_engine *open_engine(const dp_model *model, dp_recompute recompute)
{
    dp_engine *const e = create_engine(model, recompute);
    CHECK_OK(cuda->init(e, 5));
    CHECK_OK(cuda->copy(e, DP_VECTOR_X, DP_VECTOR_THETA));
    return e;
}

static void open_teller(teller *t, const dp_model_config *config, dp_recompute recompute)
{
    *t = (teller){.engine = NULL};
    CHECK_OK(dp_model_open(&t->model, config, NULL));
    t->engine = open_engine(&t->model, recompute);
    t->told = test_malloc(t->model.n_elements * sizeof *t->told);
    t->first = t->model.n_elements;
}

static void close_teller(teller *t)
{
    cuda->close(t->engine);
    test_free(t->told);
    test_free(t->beside);
    dp_model_close(&t->model);
    CHECK(fake_cuda_used() == 0);
}

static void hear(void *context, const float *gradients, const float *beside, size_t first)
{
    teller *const t = context;
    CHECK(first < t->first && t->count < DP_CUDA_PIECES_MAX);
    CHECK((beside == NULL) == (t->beside == NULL));
    if (beside != NULL) {
        memcpy(t->beside + first, beside + first, (t->first - first) * sizeof *beside);
    }
    memcpy(t->told + first, gradients + first, (t->first - first) * sizeof *gradients);
    t->first = first;
    t->borders[t->count++] = first;
}

static dp_status step(dp_engine *e, size_t rows)
{
    const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = rows, .length = LENGTH};
    double loss;
    return cuda->step(e, &batch, 1.0F / TOKENS, &loss);
}

/* Of two micro-batches the second one tells. */
static dp_status two_steps(teller *t)
{
    DP_TRY(step(t->engine, ROWS - 1));
    cuda->on_final(t->engine, hear, t->beside == NULL ? DP_VECTOR_NONE : DP_VECTOR_E, t);
    return step(t->engine, ROWS);
}

/* The gradients of the same steps when nobody is told. The caller frees them. */
static float *untold(const dp_model *model, dp_recompute recompute)
{
    dp_engine *const e = open_engine(model, recompute);
    CHECK_OK(step(e, ROWS - 1));
    CHECK_OK(step(e, ROWS));
    const float *const g = cuda->gradients(e);
    CHECK(g != NULL);
    float *const kept = test_malloc(model->n_elements * sizeof *kept);
    memcpy(kept, g, model->n_elements * sizeof *kept);
    cuda->close(e);
    return kept;
}

static void check_told(const fake_cuda *fake, const dp_model_config *config, dp_recompute recompute)
{
    teller t;
    fake_cuda_set(fake);
    open_teller(&t, config, recompute);
    float *const wanted = untold(&t.model, recompute);
    const size_t bytes = t.model.n_elements * sizeof *wanted;
    t.beside = test_malloc(bytes);
    CHECK_OK(cuda->copy(t.engine, DP_VECTOR_E, DP_VECTOR_X));
    float *const e = test_malloc(bytes);
    memcpy(e, cuda->values(t.engine, DP_VECTOR_E), bytes);
    CHECK_OK(cuda->zero(t.engine, DP_VECTOR_F));
    CHECK(cuda->values(t.engine, DP_VECTOR_F) != NULL); /* The mirror holds another one. */
    CHECK_OK(two_steps(&t));
    CHECK(t.first == 0 && t.count == LAYERS + 2);
    assert_memory_equal(t.told, wanted, bytes);
    assert_memory_equal(t.beside, e, bytes);
    test_free(e);
    assert_memory_equal(cuda->gradients(t.engine), wanted, bytes);
    test_free(wanted);
    close_teller(&t);
}

static void each_layer_is_told_with_the_bits_that_it_has_in_the_end(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        check_told(&healthy, &configs[m], DP_RECOMPUTE_NOTHING);
    }
    check_told(&healthy, &configs[0], DP_RECOMPUTE_LAYER);
}

/* Copies happen when they are waited for, one by one. */
static void nobody_is_told_before_the_copy_has_come(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        check_told(&(fake_cuda){.late = 3}, &configs[m], DP_RECOMPUTE_NORMS);
    }
}

/* Where everything is late, gradients are there for who waits for what computes them alone. */
static void what_is_told_has_been_waited_for(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        check_told(&(fake_cuda){.late = 3, .late_all = true}, &configs[m], DP_RECOMPUTE_NORMS);
    }
}

static void note(void *context, size_t first)
{
    teller *const t = context;
    t->borders[t->count++] = first;
}

static void the_borders_are_the_cpu_s(void **state)
{
    (void)state;
    for (size_t m = 0; m < MODELS; m++) {
        teller card;
        teller host = {.count = 0};
        dp_pool *pool;
        dp_gpt *gpt;
        double loss;
        const dp_gpt_batch batch = {.x = tokens, .y = tokens + 1, .rows = ROWS, .length = LENGTH};
        fake_cuda_set(&healthy);
        open_teller(&card, &configs[m], DP_RECOMPUTE_NOTHING);
        CHECK_OK(two_steps(&card));
        CHECK_OK(dp_pool_open(&pool, 1));
        const dp_gpt_options options = {.rows_max = ROWS, .pool = pool};
        CHECK_OK(dp_gpt_open(&gpt, &card.model, &options));
        dp_gpt_on_final(gpt, note, &host);
        CHECK_OK(dp_gpt_step(gpt, &batch, 1.0F, &loss));
        CHECK(host.count == card.count);
        assert_memory_equal(host.borders, card.borders, host.count * sizeof *host.borders);
        dp_gpt_close(gpt);
        dp_pool_close(pool);
        close_teller(&card);
    }
}

static void one_step_alone_tells_and_the_others_are_graphs(void **state)
{
    (void)state;
    teller t;
    fake_cuda_set(&healthy);
    open_teller(&t, &configs[0], DP_RECOMPUTE_NOTHING);
    CHECK_OK(two_steps(&t));
    CHECK_OK(step(t.engine, ROWS));
    CHECK_OK(step(t.engine, ROWS));
    CHECK_OK(step(t.engine, ROWS));
    CHECK(t.count == LAYERS + 2 && fake_cuda_graphs() == 2);
    const float *const g = cuda->gradients(t.engine); /* Of five steps, not of the second. */
    CHECK(g != NULL && memcmp(g, t.told, t.model.n_elements * sizeof *g) != 0);
    close_teller(&t);
}

static void a_refused_batch_tells_nothing_then_or_later(void **state)
{
    (void)state;
    teller t;
    fake_cuda_set(&healthy);
    open_teller(&t, &configs[0], DP_RECOMPUTE_NOTHING);
    cuda->on_final(t.engine, hear, DP_VECTOR_NONE, &t);
    CHECK_STATUS(step(t.engine, 0), DP_BADARG);
    CHECK_OK(step(t.engine, ROWS));
    CHECK(t.count == 0);
    close_teller(&t);
}

static void of_a_batch_in_parts_the_last_part_tells(void **state)
{
    (void)state;
    teller t;
    fake_cuda_set(&(fake_cuda){.alloc_at = 1}); /* Not all rows at a time then. */
    open_teller(&t, &configs[0], DP_RECOMPUTE_NOTHING);
    CHECK(t.engine->shape.rows == 1);
    cuda->on_final(t.engine, hear, DP_VECTOR_NONE, &t);
    CHECK_OK(step(t.engine, ROWS));
    CHECK(t.first == 0 && t.count == LAYERS + 2);
    t.engine->final.here = false; /* Fetched anew. */
    assert_memory_equal(cuda->gradients(t.engine), t.told, t.model.n_elements * sizeof *t.told);
    close_teller(&t);
}

static void what_changes_the_gradients_makes_them_be_fetched_anew(void **state)
{
    (void)state;
    teller t;
    fake_cuda_set(&healthy);
    open_teller(&t, &configs[0], DP_RECOMPUTE_NOTHING);
    CHECK_OK(two_steps(&t));
    CHECK_OK(cuda->drop(t.engine));
    const float *const g = cuda->gradients(t.engine);
    for (size_t i = 0; i < t.model.n_elements; i++) {
        CHECK(dp_float_bits(g[i]) == 0);
    }
    close_teller(&t);
}

/* ---- What fails. */

static void a_copy_that_fails_costs_a_sentence_and_what_was_told_is_right(void **state)
{
    (void)state;
    dp_status status = DP_IO;
    size_t most = 0;
    fake_cuda_set(&healthy);
    dp_model model;
    CHECK_OK(dp_model_open(&model, &configs[1], NULL));
    float *const wanted = untold(&model, DP_RECOMPUTE_NOTHING);
    for (unsigned at = 1; status != DP_OK; at++) {
        teller t;
        fake_cuda_set(&healthy);
        open_teller(&t, &configs[1], DP_RECOMPUTE_NOTHING);
        CHECK_OK(step(t.engine, ROWS - 1));
        fake_cuda_set(&(fake_cuda){.late = 2, .fail_at = at, .fail_with = DP_CUDA_LAUNCH_FAILED});
        cuda->on_final(t.engine, hear, DP_VECTOR_NONE, &t);
        status = step(t.engine, ROWS);
        CHECK(status == DP_OK || status == DP_IO);
        CHECK((strstr(cuda->problem(t.engine), "has failed or is gone") != NULL) ==
              (status == DP_IO));
        CHECK(memcmp(t.told + t.first, wanted + t.first,
                     (model.n_elements - t.first) * sizeof *wanted) == 0);
        most = status == DP_IO && t.count > most ? t.count : most;
        close_teller(&t);
        CHECK(at < 1000);
    }
    CHECK(most == LAYERS + 2); /* Also where only what follows them fails. */
    test_free(wanted);
    dp_model_close(&model);
}

/* The first calls of a step that tells are for page-locked memory: of the gradients, and of what
 * comes along. */
static void without_page_locked_memory_nobody_is_told(void **state)
{
    (void)state;
    for (unsigned at = 1; at <= 2; at++) {
        teller t;
        fake_cuda_set(&healthy);
        open_teller(&t, &configs[0], DP_RECOMPUTE_NOTHING);
        cuda->close(t.engine);
        t.engine = create_engine(&t.model, DP_RECOMPUTE_NOTHING); /* No mirror yet. */
        fake_cuda_set(&(fake_cuda){.fail_at = at, .fail_with = DP_CUDA_NO_MEMORY});
        cuda->on_final(t.engine, hear, DP_VECTOR_E, &t);
        CHECK_OK(step(t.engine, ROWS));
        CHECK(t.count == 0 && cuda->gradients(t.engine) != NULL);
        close_teller(&t);
    }
}

/* The second vector is copied once per element for a step that tells its elements, and never for
 * another step. */
static void the_other_vector_comes_with_what_is_told_alone(void **state)
{
    (void)state;
    teller t;
    fake_cuda_set(&healthy);
    open_teller(&t, &configs[0], DP_RECOMPUTE_NOTHING);
    const size_t bytes = t.model.n_elements * sizeof(float);
    t.beside = test_malloc(bytes);
    CHECK_OK(cuda->copy(t.engine, DP_VECTOR_E, DP_VECTOR_X));
    CHECK(cuda->values(t.engine, DP_VECTOR_F) != NULL);
    CHECK_OK(step(t.engine, ROWS));
    for (size_t i = 0; i < t.model.n_elements; i++) {
        CHECK(dp_float_bits(t.engine->mirror[i]) == 0);
    }
    CHECK_OK(two_steps(&t));
    CHECK(memcmp(t.engine->mirror, t.beside, bytes) == 0);
    close_teller(&t);
}

/* ---- A trainer over it: parts of the publication. */

typedef struct ear {
    dp_buf parts[KIT_PARTS];
    uint32_t n_told;
} ear;

static void hear_part(void *context, uint32_t part, size_t at, dp_view piece, bool last)
{
    ear *const e = context;
    CHECK(part < KIT_PARTS && at == e->parts[part].size);
    CHECK_OK(dp_buf_append(&e->parts[part], piece));
    e->n_told += last ? 1 : 0;
}

static dp_manifest gradient_settings(void)
{
    dp_manifest m = node_settings(DP_CODEC_INT8, 950);
    m.exchange = DP_EXCHANGE_GRADIENTS;
    m.inner_steps_max = 1;
    m.batch_rows = TINY_ROWS;
    m.schedule = DP_SCHEDULE_CONSTANT;
    m.warmup_tokens = 0;
    m.lr_nano = 1000000;
    return m;
}

static void one_batch(const node *x)
{
    const dp_reach from = {0};
    const dp_sample_range range = {.count = x->manifest.batch_rows};
    CHECK_OK(dp_trainer_lease(x->trainer, &from, &range, 1));
    while (!dp_trainer_waits(x->trainer)) {
        CHECK_OK(dp_trainer_work(x->trainer));
    }
}

static void a_trainer_on_a_card_tells_the_parts_of_its_publication(void **state)
{
    (void)state;
    const dp_manifest m = gradient_settings();
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    ear e = {.n_told = 0};
    dp_view blob;
    dp_view a;
    fake_cuda_set(&healthy);
    node x = node_open_with(&m, (dp_trainer_setup){.member = {1}, .backend = cuda});
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        dp_buf_init(&e.parts[p], 1 << 24);
    }
    dp_trainer_on_part(x.trainer, &kit_cuts, hear_part, &e);
    one_batch(&x);
    CHECK(e.n_told == KIT_PARTS - 1); /* One of these is of nothing. */
    CHECK_OK(dp_trainer_publish(x.trainer, false, &blob, &a));
    CHECK_OK(dp_part_cut(blob, x.n, &kit_cuts, parts, &energy));
    for (uint32_t p = 0; p < KIT_PARTS; p++) {
        const dp_buf *const told = &e.parts[p];
        const size_t header = sizeof parts[p].header;
        CHECK(told->size == 0 ||
              (told->size == header + parts[p].runs.size &&
               memcmp(told->data, parts[p].header, header) == 0 &&
               memcmp(told->data + header, parts[p].runs.data, parts[p].runs.size) == 0));
        dp_buf_close(&e.parts[p]);
    }
    node_close(&x);
    CHECK(fake_cuda_used() == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_layer_is_told_with_the_bits_that_it_has_in_the_end),
        cmocka_unit_test(nobody_is_told_before_the_copy_has_come),
        cmocka_unit_test(what_is_told_has_been_waited_for),
        cmocka_unit_test(the_borders_are_the_cpu_s),
        cmocka_unit_test(one_step_alone_tells_and_the_others_are_graphs),
        cmocka_unit_test(a_refused_batch_tells_nothing_then_or_later),
        cmocka_unit_test(of_a_batch_in_parts_the_last_part_tells),
        cmocka_unit_test(what_changes_the_gradients_makes_them_be_fetched_anew),
        cmocka_unit_test(a_copy_that_fails_costs_a_sentence_and_what_was_told_is_right),
        cmocka_unit_test(without_page_locked_memory_nobody_is_told),
        cmocka_unit_test(the_other_vector_comes_with_what_is_told_alone),
        cmocka_unit_test(a_trainer_on_a_card_tells_the_parts_of_its_publication),
    };
    return cmocka_run_group_tests(tests, open_all, NULL);
}
