/* A trainer of a tiny run, opened and with its first weights, for tests of what trainers do. */
#ifndef DP_TESTS_UNIT_COMPUTE_TINY_NODE_H
#define DP_TESTS_UNIT_COMPUTE_TINY_NODE_H

#include <string.h>

#include "compute/trainer.h"
#include "tests/unit/compute/tiny_run.h"

typedef struct node {
    tiny_run run;
    dp_trainer *trainer;
    size_t n; /* elements */
} node;

static inline node node_open(uint8_t member, dp_codec_kind codec, uint32_t beta_milli,
                             uint64_t seed)
{
    node x = {0};
    tiny_run_open(&x.run, codec, beta_milli);
    const dp_trainer_setup setup = {.manifest = dp_view_of(x.run.manifest, x.run.manifest_size),
                                    .tokenizer = dp_buf_view(&x.run.tokenizer),
                                    .shards = (dp_view[]){dp_buf_view(&x.run.data)},
                                    .n_shards = 1,
                                    .member = {member},
                                    .seed = seed,
                                    .threads = 1};
    dp_why why = {{0}};
    CHECK_OK(dp_trainer_open(&x.trainer, &setup, &why));
    CHECK_OK(dp_trainer_init(x.trainer));
    x.n = dp_trainer_elements(x.trainer);
    return x;
}

static inline void node_close(node *x)
{
    dp_trainer_close(x->trainer);
    tiny_run_close(&x->run);
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
