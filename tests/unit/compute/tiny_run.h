/* A run small enough for tests: manifest, tokenizer and data of a made-up language, as OPEN carries
 * them. */
#ifndef DP_TESTS_UNIT_COMPUTE_TINY_RUN_H
#define DP_TESTS_UNIT_COMPUTE_TINY_RUN_H

#include "tests/lib/check.h"

#include <stdio.h>

#include "base/run/manifest.h"
#include "compute/data/data.h"
#include "compute/text/bpe.h"
#include "compute/trainer/trainer.h"
#include "compute/trainer/trainer_keep.h"

enum { TINY_CONTEXT = 32, TINY_VOCAB = 300, TINY_ROWS = 4, TINY_TEXT = 40000 };

typedef struct tiny_run {
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
    size_t manifest_size;
    dp_buf tokenizer;
    dp_buf data;
} tiny_run;

static inline void tiny_run_text(char *text, size_t size)
{
    static const char *const words[] = {"light ",    "and ",   "darkness ", "were ",
                                        "over the ", "deep, ", "waters ",   "said "};
    uint64_t state = 1;
    size_t at = 0;
    while (at + 16 < size) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        at += (size_t)snprintf(text + at, size - at, "%s", words[state >> 61]);
    }
    memset(text + at, '.', size - at);
}

static inline void tiny_run_open(tiny_run *run, dp_codec_kind codec, uint32_t beta_milli)
{
    static char text[TINY_TEXT];
    tiny_run_text(text, sizeof text);
    dp_bpe *bpe;
    dp_tokens tokens = {0};
    dp_buf_init(&run->tokenizer, 1 << 20);
    dp_buf_init(&run->data, 1 << 20);
    CHECK_OK(dp_bpe_train(&bpe, dp_view_of(text, sizeof text), TINY_VOCAB, NULL));
    CHECK_OK(dp_bpe_encode(bpe, dp_view_of(text, sizeof text), &tokens, NULL));
    CHECK_OK(dp_bpe_save(bpe, &run->tokenizer));
    CHECK_OK(dp_shard_write(tokens.ids, tokens.count, (uint32_t)dp_bpe_count(bpe), sizeof text,
                            &run->data));
    dp_bpe_close(bpe);
    dp_manifest m;
    dp_manifest_default(&m);
    m.precision = DP_PRECISION_FP32;
    m.layers = 2;
    m.width = 32;
    m.heads = 2;
    m.context = TINY_CONTEXT;
    m.vocab = TINY_VOCAB;
    m.batch_rows = TINY_ROWS;
    m.warmup_tokens = 256;
    m.lr_nano = 5000000;
    m.codec = codec;
    m.codec_keep = 64;
    m.codec_keep_most = 0;
    m.feedback_beta_milli = beta_milli;
    m.n_shards = 1;
    m.shards[0] = (dp_manifest_shard){.root = dp_object_hash(dp_buf_view(&run->data), NULL),
                                      .bytes = run->data.size,
                                      .tokens = tokens.count};
    dp_tokens_close(&tokens);
    CHECK_OK(dp_manifest_encode(&m, run->manifest, &run->manifest_size));
}

static inline void tiny_run_close(tiny_run *run)
{
    dp_buf_close(&run->tokenizer);
    dp_buf_close(&run->data);
}

/* Trains to the end of that step. */
static inline void tiny_run_work(dp_trainer *trainer, uint64_t until)
{
    while (dp_trainer_last_of(trainer).step < until || !dp_trainer_between_steps(trainer)) {
        CHECK_OK(dp_trainer_work(trainer));
    }
}

#endif
