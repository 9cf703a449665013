#include "tests/lib/check.h"

#include "compute/trainer.h"
#include "tests/unit/compute/tiny_run.h"

static void setups_that_do_not_fit_together_are_named(void **state)
{
    (void)state;
    tiny_run run;
    tiny_run_open(&run, DP_CODEC_SPARSE, 950);
    dp_trainer_setup setup = {.manifest = dp_view_of(run.manifest, run.manifest_size),
                              .tokenizer = dp_buf_view(&run.tokenizer),
                              .data = dp_buf_view(&run.data),
                              .threads = 1};
    dp_trainer *trainer;
    dp_why why = {{0}};
    const uint32_t ids[TINY_CONTEXT] = {0};
    dp_buf short_data;
    dp_buf_init(&short_data, 1 << 20);
    CHECK_OK(dp_shard_write(ids, TINY_CONTEXT, 256, 1, &short_data));
    setup.data = dp_buf_view(&short_data);
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "training tokens") != NULL);
    dp_manifest m;
    CHECK_OK(dp_manifest_decode(&m, setup.manifest));
    m.vocab = TINY_VOCAB + 1;
    CHECK_OK(dp_manifest_encode(&m, run.manifest, &run.manifest_size));
    setup.manifest = dp_view_of(run.manifest, run.manifest_size);
    dp_buf_clear(&short_data);
    CHECK_OK(dp_shard_write(ids, TINY_CONTEXT, TINY_VOCAB + 1, 1, &short_data));
    setup.data = dp_buf_view(&short_data);
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "301 tokens, the tokenizer has 296") != NULL);
    CHECK_OK(dp_manifest_decode(&m, setup.manifest));
    m.vocab = 257;
    CHECK_OK(dp_manifest_encode(&m, run.manifest, &run.manifest_size));
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADARG);
    CHECK(strstr(why.text, "tokenizer") != NULL);
    setup.manifest.size--;
    CHECK_STATUS(dp_trainer_open(&trainer, &setup, &why), DP_BADMSG);
    dp_buf_close(&short_data);
    tiny_run_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(setups_that_do_not_fit_together_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
