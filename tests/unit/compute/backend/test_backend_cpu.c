#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "compute/backend/backend_cpu.h"

enum { VOCAB = 61, LENGTH = 16, BYTES_MAX = 1 << 20 };

static const dp_model_config small = {
    .layers = 2, .width = 32, .heads = 4, .context = 17, .vocab = VOCAB, .hidden = 96};

typedef struct machine {
    dp_model model;
    const dp_backend *b;
    dp_engine *e;
    uint32_t tokens[LENGTH + 1];
} machine;

/* x and theta are different weights; packs are kept. */
static void open_machine(machine *m)
{
    dp_why why = {{0}};
    assert_int_equal(dp_model_open(&m->model, &small, NULL), DP_OK);
    m->b = dp_backend_cpu();
    const dp_engine_setup setup = {.model = &m->model,
                                   .optimizer = DP_OPTIM_ADAMW,
                                   .rows_max = 1,
                                   .threads = 1,
                                   .packs = DP_GPT_PACKS_KEPT};
    assert_int_equal(m->b->create(&m->e, &setup, &why), DP_OK);
    assert_int_equal(m->b->init(m->e, 1), DP_OK);
    assert_int_equal(m->b->copy(m->e, DP_VECTOR_X, DP_VECTOR_THETA), DP_OK);
    assert_int_equal(m->b->init(m->e, 2), DP_OK);
    for (uint32_t i = 0; i <= LENGTH; i++) {
        m->tokens[i] = i * 7 % VOCAB;
    }
}

static void close_machine(machine *m)
{
    m->b->close(m->e);
    dp_model_close(&m->model);
}

static double loss_of(machine *m, dp_vector weights)
{
    const dp_gpt_batch batch = {m->tokens, m->tokens + 1, 1, LENGTH};
    double loss = 0;
    assert_int_equal(m->b->loss(m->e, weights, &batch, &loss), DP_OK);
    return loss;
}

static double step_of(machine *m)
{
    const dp_gpt_batch batch = {m->tokens, m->tokens + 1, 1, LENGTH};
    double loss = 0;
    assert_int_equal(m->b->step(m->e, &batch, 1.0F, &loss), DP_OK);
    return loss;
}

static void looking_at_theta_changes_neither_vector(void **state)
{
    (void)state;
    machine m;
    open_machine(&m);
    const size_t bytes = m.model.n_elements * sizeof(float);
    static float x[BYTES_MAX / sizeof(float)];
    static float theta[BYTES_MAX / sizeof(float)];
    assert_true(bytes <= BYTES_MAX);
    memcpy(x, m.b->values(m.e, DP_VECTOR_X), bytes);
    memcpy(theta, m.b->values(m.e, DP_VECTOR_THETA), bytes);
    const double of_x = loss_of(&m, DP_VECTOR_X);
    const double of_theta = loss_of(&m, DP_VECTOR_THETA);
    assert_true(of_x != of_theta);
    assert_memory_equal(m.b->values(m.e, DP_VECTOR_X), x, bytes);
    assert_memory_equal(m.b->values(m.e, DP_VECTOR_THETA), theta, bytes);
    assert_true(loss_of(&m, DP_VECTOR_X) == of_x);
    assert_true(loss_of(&m, DP_VECTOR_THETA) == of_theta);
    float logits[2][VOCAB];
    for (int i = 0; i < 2; i++) { /* Once with packs of x, once with packs of theta. */
        assert_int_equal(m.b->logits(m.e, DP_VECTOR_THETA, m.tokens, 5, logits[i]), DP_OK);
    }
    assert_memory_equal(logits[0], logits[1], sizeof logits[0]);
    close_machine(&m);
}

static void theta_that_changed_is_looked_at_anew(void **state)
{
    (void)state;
    machine m;
    open_machine(&m);
    const double of_x = loss_of(&m, DP_VECTOR_X);
    assert_true(loss_of(&m, DP_VECTOR_THETA) != of_x);
    assert_int_equal(m.b->copy(m.e, DP_VECTOR_THETA, DP_VECTOR_X), DP_OK);
    assert_true(loss_of(&m, DP_VECTOR_THETA) == of_x);
    assert_int_equal(m.b->scale(m.e, DP_VECTOR_THETA, 32768), DP_OK);
    assert_true(loss_of(&m, DP_VECTOR_THETA) != of_x);
    assert_int_equal(m.b->init(m.e, 1), DP_OK); /* as x was made */
    assert_true(loss_of(&m, DP_VECTOR_THETA) == of_x);
    close_machine(&m);
}

static void a_step_behind_a_look_at_theta_is_one_at_x(void **state)
{
    (void)state;
    machine m;
    machine other;
    open_machine(&m);
    open_machine(&other);
    const size_t bytes = m.model.n_elements * sizeof(float);
    for (uint64_t i = 0; i < 3; i++) {
        const dp_optim_options options = {.lr = 0.01F, .beta1 = 0.9F, .beta2 = 0.95F, .eps = 1e-8F};
        double norms[2];
        (void)loss_of(&m, DP_VECTOR_THETA);
        assert_true(step_of(&m) == step_of(&other));
        (void)loss_of(&m, DP_VECTOR_THETA); /* between step and update, too */
        assert_int_equal(m.b->norm(m.e, &norms[0]), DP_OK);
        assert_int_equal(other.b->norm(other.e, &norms[1]), DP_OK);
        assert_true(norms[0] == norms[1] && norms[0] > 0);
        assert_int_equal(m.b->update(m.e, &options, norms[0]), DP_OK);
        assert_int_equal(other.b->update(other.e, &options, norms[1]), DP_OK);
        assert_int_equal(m.b->drop(m.e), DP_OK);
        assert_int_equal(other.b->drop(other.e), DP_OK);
        assert_memory_equal(m.b->values(m.e, DP_VECTOR_X), other.b->values(other.e, DP_VECTOR_X),
                            bytes);
    }
    close_machine(&other);
    close_machine(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(looking_at_theta_changes_neither_vector),
        cmocka_unit_test(theta_that_changed_is_looked_at_anew),
        cmocka_unit_test(a_step_behind_a_look_at_theta_is_one_at_x),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
