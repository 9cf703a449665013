#include "tests/lib/check.h"

#include "compute/trainer/trainer.h"
#include "tests/unit/compute/tiny_run.h"

/* The run's manifest with this one shard as its data. */
static void set_data(tiny_run *run, dp_trainer_setup *setup, uint32_t vocab, const dp_buf *shard,
                     uint64_t tokens)
{
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, setup->manifest));
    m.vocab = vocab;
    m.n_shards = 1;
    m.shards[0].bytes = shard->size;
    m.shards[0].tokens = tokens;
    CHECK_OK(dp_manifest_encode(&m, run->manifest, &run->manifest_size));
    setup->manifest = dp_view_of(run->manifest, run->manifest_size);
}

static void setups_that_do_not_fit_together_are_named(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_view shard = dp_buf_view(&run.data);
    dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                              .tokenizer = dp_buf_view(&run.tokenizer),
                              .shards = &shard,
                              .n_shards = 1,
                              .threads = 1};
    dp_trainer *trainer;
    dp_why why = {{0}};
    const uint32_t ids[TINY_CONTEXT] = {0};
    dp_buf short_data;
    dp_buf_init(&short_data, 1 << 20);
    CHECK_OK(dp_shard_write(ids, TINY_CONTEXT, 256, 1, &short_data));
    shard = dp_buf_view(&short_data);
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADMSG);
    CHECK(strstr(why.text, "has 32 tokens, the run says") != NULL);
    set_data(&run, &setup, TINY_VOCAB, &short_data, TINY_CONTEXT);
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "training tokens") != NULL);
    dp_buf_clear(&short_data);
    CHECK_OK(dp_shard_write(ids, TINY_CONTEXT, TINY_VOCAB + 1, 1, &short_data));
    shard = dp_buf_view(&short_data);
    set_data(&run, &setup, TINY_VOCAB + 1, &short_data, TINY_CONTEXT);
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "301 tokens, the tokenizer has 296") != NULL);
    set_data(&run, &setup, 257, &short_data, TINY_CONTEXT);
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "tokenizer") != NULL);
    setup.manifest.size--;
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADMSG);
    dp_buf_close(&short_data);
    tiny_run_close(&run);
}

static void every_shard_of_the_manifest_must_come(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    const dp_view shards[2] = {dp_buf_view(&run.data), dp_buf_view(&run.data)};
    dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                              .tokenizer = dp_buf_view(&run.tokenizer),
                              .shards = shards,
                              .threads = 1};
    dp_trainer *trainer;
    dp_why why = {{0}};
    for (setup.n_shards = 0; setup.n_shards <= 2; setup.n_shards += 2) {
        CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
        CHECK(strstr(why.text, "has 1 shards") != NULL);
    }
    setup.n_shards = 1;
    CHECK_OK(dp_trainer_open(&trainer, &setup, &why));
    dp_trainer_close(trainer);
    tiny_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setups_that_do_not_fit_together_are_named),
        cmocka_unit_test(every_shard_of_the_manifest_must_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
