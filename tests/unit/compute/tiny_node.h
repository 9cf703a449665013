/* A trainer of a tiny run, opened and with its first weights, for tests of trainers. */
#ifndef DP_TESTS_UNIT_COMPUTE_TINY_NODE_H
#define DP_TESTS_UNIT_COMPUTE_TINY_NODE_H

#include <string.h>

#include "compute/codec/codec.h"
#include "compute/trainer/trainer.h"
#include "tests/unit/compute/tiny_run.h"

typedef struct node {
    tiny_run run;
    dp_trainer *trainer;
    dp_manifest manifest;
    dp_buf blob; /* of the last publication, where a test keeps it */
    size_t n;    /* elements */
} node;

/* The manifest of a tiny run, to be changed. */
static inline dp_manifest node_settings(dp_codec_kind codec, uint32_t beta_milli)
{
    tiny_run run;
    dp_manifest m;
    tiny_run_open(&run, codec, beta_milli);
    CHECK_OK(dp_manifest_decode(&m, dp_view_of(run.manifest, run.manifest_size)));
    tiny_run_close(&run);
    return m;
}

/* Of setup: what is not of the run. */
static inline node node_open_with(const dp_manifest *m, dp_trainer_setup setup)
{
    node x = {.manifest = *m};
    tiny_run_open(&x.run, m->codec, m->feedback_beta_milli);
    CHECK_OK(dp_manifest_encode(m, x.run.manifest, &x.run.manifest_size));
    setup.manifest = dp_view_of(x.run.manifest, x.run.manifest_size);
    setup.tokenizer = dp_buf_view(&x.run.tokenizer);
    setup.shards = (dp_view[]){dp_buf_view(&x.run.data)};
    setup.n_shards = 1;
    setup.threads = 1;
    dp_why why = {{0}};
    CHECK_OK(dp_trainer_open(&x.trainer, &setup, &why));
    CHECK_OK(dp_trainer_init(x.trainer));
    x.n = dp_trainer_elements(x.trainer);
    dp_buf_init(&x.blob, dp_codec_bytes_max_any(x.n));
    return x;
}

static inline node node_open(uint8_t member, dp_codec_kind codec, uint32_t beta_milli,
                             uint64_t seed)
{
    const dp_manifest m = node_settings(codec, beta_milli);

    return node_open_with(&m, (dp_trainer_setup){.member = {member}, .seed = seed});
}

static inline void node_close(node *x)
{
    dp_buf_close(&x->blob);
    dp_trainer_close(x->trainer);
    tiny_run_close(&x->run);
}

static inline dp_hash node_root(const node *x, dp_view *state)
{
    dp_hash root;
    CHECK_OK(dp_trainer_state_bytes(x->trainer, state, &root));
    return root;
}

static inline void node_train(const node *x, uint32_t steps)
{
    const uint32_t goal = dp_trainer_progress_of(x->trainer).steps + steps;
    while (dp_trainer_progress_of(x->trainer).steps < goal) {
        CHECK_OK(dp_trainer_work(x->trainer));
    }
}

/* The caller frees it. */
static inline float *node_copy(const float *x, size_t n)
{
    float *const c = test_malloc(n * sizeof *c);
    memcpy(c, x, n * sizeof *c);
    return c;
}

#endif
