/* A trainer of a model that dpnode does not know: vectors, states, records, and no steps. */
#include "tests/unit/compute/any_run.h"

#include <string.h>

#include "compute/backend/backend_cpu.h"
#include "compute/model/state.h"
#include "compute/model/tensor_table.h"
#include "compute/trainer/trainer.h"

static void the_first_weights_are_held_and_given_back(void **state)
{
    (void)state;
    any_run run;
    dp_view bytes;
    dp_hash root;
    any_run_open(&run);
    dp_trainer *const t = any_run_trainer(&run);
    CHECK(dp_trainer_elements(t) == N);
    CHECK_STATUS(dp_trainer_init(t), DP_UNSUPPORTED);
    CHECK_OK(dp_trainer_load(t, 0, dp_buf_view(&run.init)));
    CHECK_OK(dp_trainer_state_bytes(t, &bytes, &root));
    CHECK(dp_view_equal(bytes, dp_buf_view(&run.init)));
    const dp_hash want = dp_object_hash(dp_buf_view(&run.init), NULL);
    CHECK(dp_hash_equal(&root, &want));
    dp_trainer_close(t);
    any_run_close(&run);
}

static void it_waits_and_takes_no_step(void **state)
{
    (void)state;
    any_run run;
    dp_buf text;
    dp_trainer_score score;
    any_run_open(&run);
    dp_trainer *const t = any_run_trainer(&run);
    const dp_sample_range range = {.first = 5, .count = 10};
    const dp_reach from = {0};
    CHECK_OK(dp_trainer_load(t, 0, dp_buf_view(&run.init)));
    dp_trainer_aim(t, 1, 0);
    CHECK_OK(dp_trainer_lease(t, &from, &range, 1));
    for (int i = 0; i < 3; i++) {
        CHECK(dp_trainer_waits(t));
        CHECK_OK(dp_trainer_work(t));
    }
    const dp_trainer_progress done = dp_trainer_progress_of(t);
    CHECK(done.steps == 0 && done.skipped == 0 && done.tokens == 0);
    const dp_reach reach = dp_trainer_reach(t);
    CHECK(reach.leased == 0 && reach.own == 0);
    dp_buf_init(&text, 100);
    CHECK_STATUS(dp_trainer_eval(t, NULL, 0, &score), DP_UNSUPPORTED);
    CHECK_STATUS(dp_trainer_sample(t, &(dp_sampler){.top_k = 1}, "x", 1, &text), DP_UNSUPPORTED);
    dp_buf_close(&text);
    dp_trainer_close(t);
    any_run_close(&run);
}

/* Updates of others move two replicas to the same bits, and by as much as the record says. */
static void records_are_applied_alike_everywhere(void **state)
{
    (void)state;
    const dp_codec codec = {.kind = DP_CODEC_FP32};
    any_run run;
    dp_buf blob;
    dp_view bytes[2];
    dp_hash roots[2];
    float d[N] = {0};
    any_run_open(&run);
    for (size_t i = 0; i < ELEMENTS; i++) {
        d[i] = 0.5F;
    }
    dp_buf_init(&blob, dp_codec_bytes_max_any(N));
    CHECK_OK(dp_codec_encode(&codec, d, N, &blob));
    const dp_view view = dp_buf_view(&blob);
    const uint32_t q = 1U << 31;
    dp_trainer *replicas[2];
    for (size_t r = 0; r < 2; r++) {
        replicas[r] = any_run_trainer(&run);
        CHECK_OK(dp_trainer_load(replicas[r], 0, dp_buf_view(&run.init)));
        for (uint64_t round = 1; round <= 2; round++) {
            const dp_trainer_record record = {.round = round,
                                              .alpha = 65536,
                                              .lambda = 65536,
                                              .settle = DP_SETTLE_NONE,
                                              .q = &q,
                                              .blobs = &view,
                                              .n_items = 1};
            CHECK_OK(dp_trainer_apply(replicas[r], &record));
        }
        CHECK_OK(dp_trainer_state_bytes(replicas[r], &bytes[r], &roots[r]));
        CHECK(dp_trainer_theta(replicas[r])[0] < -0.5F);
        CHECK(dp_trainer_theta(replicas[r])[ELEMENTS] == 0.0F);
        CHECK(dp_trainer_params(replicas[r])[3] == dp_trainer_theta(replicas[r])[3]);
    }
    CHECK(dp_hash_equal(&roots[0], &roots[1]) && dp_view_equal(bytes[0], bytes[1]));

    /* A third one starts from their state. */
    dp_trainer *const late = any_run_trainer(&run);
    CHECK_OK(dp_trainer_load(late, 2, bytes[0]));
    CHECK_OK(dp_trainer_state_bytes(late, &bytes[1], &roots[1]));
    CHECK(dp_hash_equal(&roots[0], &roots[1]));
    dp_trainer_close(late);
    dp_trainer_close(replicas[0]);
    dp_trainer_close(replicas[1]);
    dp_buf_close(&blob);
    any_run_close(&run);
}

static void setups_that_do_not_fit_together_are_named(void **state)
{
    (void)state;
    any_run run;
    dp_trainer *t = NULL;
    dp_why why = {{0}};
    any_run_open(&run);
    const dp_view none = {0};
    dp_trainer_setup setup = any_run_setup(&run);
    setup.shards = &none;
    setup.n_shards = 1;
    CHECK_STATUS(dp_trainer_open(&t, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "no shards") != NULL);
    setup = any_run_setup(&run);
    setup.alone = true;
    setup.rows = 1;
    CHECK_STATUS(dp_trainer_open(&t, &setup, &why), DP_UNSUPPORTED);
    setup = any_run_setup(&run);
    setup.tokenizer.size--;
    CHECK_STATUS(dp_trainer_open(&t, &setup, &why), DP_BADMSG);
    dp_manifest m = any_run_manifest(&run);
    m.elements = ELEMENTS - 1;
    any_run_write(&run, &m);
    setup = any_run_setup(&run);
    CHECK_STATUS(dp_trainer_open(&t, &setup, &why), DP_BADMSG);
    CHECK(strstr(why.text, "manifest is of 506 elements, its table of tensors of 507") != NULL);
    CHECK(t == NULL);
    any_run_close(&run);
}

static void an_engine_of_a_vector_has_no_network(void **state)
{
    (void)state;
    const dp_backend *const cpu = dp_backend_cpu();
    dp_model model;
    dp_engine *e;
    double number;
    float logits[2];
    const uint32_t token = 0;
    const dp_gpt_batch batch = {.x = &token, .y = &token, .rows = 1, .length = 1};
    const dp_optim_options options = {.lr = 0.1F};
    dp_optim_vector lent[DP_BACKEND_STATE_MAX];
    dp_model_open_vector(&model, 65);
    CHECK(model.n_elements == 128 && model.n_parameters == 65 && model.n_tensors == 0);
    const dp_engine_setup setup = {.model = &model, .threads = 1};
    CHECK_OK(cpu->create(&e, &setup, NULL));
    CHECK_STATUS(cpu->init(e, 1), DP_UNSUPPORTED);
    CHECK_STATUS(cpu->step(e, &batch, 1.0F, &number), DP_UNSUPPORTED);
    CHECK_STATUS(cpu->norm(e, &number), DP_UNSUPPORTED);
    CHECK_STATUS(cpu->update(e, &options, 1.0), DP_UNSUPPORTED);
    CHECK_STATUS(cpu->loss(e, DP_VECTOR_THETA, &batch, &number), DP_UNSUPPORTED);
    CHECK_STATUS(cpu->logits(e, DP_VECTOR_X, &token, 1, logits), DP_UNSUPPORTED);
    CHECK(cpu->gradients(e) == NULL && cpu->lend_state(e, lent) == 0);
    CHECK_OK(cpu->reset(e));
    CHECK_OK(cpu->drop(e));
    CHECK_OK(cpu->zero(e, DP_VECTOR_X));
    CHECK(cpu->values(e, DP_VECTOR_X)[127] == 0.0F && cpu->values(e, DP_VECTOR_M) == NULL);
    cpu->close(e);
    dp_model_close(&model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_weights_are_held_and_given_back),
        cmocka_unit_test(it_waits_and_takes_no_step),
        cmocka_unit_test(records_are_applied_alike_everywhere),
        cmocka_unit_test(setups_that_do_not_fit_together_are_named),
        cmocka_unit_test(an_engine_of_a_vector_has_no_network),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
