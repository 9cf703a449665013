/* A run of any model in memory, and a trainer of it, for tests. */
#ifndef DP_TESTS_UNIT_COMPUTE_ANY_RUN_H
#define DP_TESTS_UNIT_COMPUTE_ANY_RUN_H

#include "tests/lib/check.h"

#include "compute/model/state.h"
#include "compute/model/tensor_table.h"
#include "compute/trainer/trainer.h"

enum { ELEMENTS = 6 + 1 + 500, N = 512, STATE_MAX = 1 << 14 };

typedef struct any_run {
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t manifest_size;
    dp_buf table;
    dp_buf init;
} any_run;

static inline void any_run_write(any_run *run, const dp_manifest *m)
{
    CHECK_OK(dp_manifest_encode(m, run->manifest, &run->manifest_size));
}

static inline dp_manifest any_run_manifest(const any_run *run)
{
    const dp_model_config shape = {.arch = DP_ARCH_EXTERNAL};
    dp_manifest m;
    dp_manifest_default(&m);
    dp_manifest_set_model(&m, &shape);
    m.val_per_mille = 0;
    m.samples = 1000;
    m.trust = DP_TRUST_MEMBERS;
    m.codec_keep_most = 0;
    m.outer_mu_milli = 500;
    m.elements = ELEMENTS;
    m.tokenizer = dp_object_hash(dp_buf_view(&run->table), NULL);
    m.tokenizer_bytes = run->table.size;
    m.init = dp_object_hash(dp_buf_view(&run->init), NULL);
    m.init_bytes = run->init.size;
    return m;
}

static inline void any_run_open(any_run *run)
{
    const dp_tensor_row rows[] = {
        {.name = dp_view_text("a"), .type = DP_NUMBER_F32, .n_dims = 2, .shape = {2, 3}},
        {.name = dp_view_text("b"), .type = DP_NUMBER_F16},
        {.name = dp_view_text("c"), .type = DP_NUMBER_BF16, .n_dims = 1, .shape = {500}}};
    float theta[N] = {0};
    const float m[N] = {0};
    for (size_t i = 0; i < ELEMENTS; i++) {
        theta[i] = (float)i * 0.25F;
    }
    dp_buf_init(&run->table, DP_TENSOR_TABLE_BYTES_MAX);
    dp_buf_init(&run->init, STATE_MAX);
    CHECK_OK(dp_tensor_table_write(rows, 3, &run->table, NULL));
    CHECK_OK(dp_state_write(0, theta, m, N, &run->init));
    const dp_manifest manifest = any_run_manifest(run);
    any_run_write(run, &manifest);
}

static inline void any_run_close(any_run *run)
{
    dp_buf_close(&run->table);
    dp_buf_close(&run->init);
}

static inline dp_trainer_setup any_run_setup(const any_run *run)
{
    return (dp_trainer_setup){.manifest = dp_view_of(run->manifest, run->manifest_size),
                              .tokenizer = dp_buf_view(&run->table),
                              .threads = 1};
}

static inline dp_trainer *any_run_trainer(const any_run *run)
{
    const dp_trainer_setup setup = any_run_setup(run);
    dp_trainer *trainer;
    dp_why why = {{0}};
    if (dp_trainer_open(&trainer, &setup, &why) != DP_OK) {
        fail_msg("%s", why.text);
    }
    return trainer;
}

#endif
