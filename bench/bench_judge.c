/* CPU seconds that a trainer takes to judge an update (compute/trainer/trainer.h), beside those of
 * a training step of the same model. Median of nine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "bench/clock.h"
#include "compute/data/shard.h"
#include "compute/text/bpe.h"
#include "compute/trainer/trainer.h"

enum { REPEATS = 9, TEXT_BYTES = 400000, VOCAB = 300, ROWS = 8, WARM_STEPS = 8 };

typedef struct shape {
    const char *name;
    uint32_t layers;
    uint32_t width;
    uint32_t heads;
    uint32_t context;
} shape;

static const shape shapes[] = {{"120k", 2, 64, 2, 64}, {"1M", 5, 128, 4, 128}};
static const dp_codec_kind codecs[] = {DP_CODEC_SPARSE, DP_CODEC_INT8};

typedef struct bench {
    dp_buf tokenizer;
    dp_buf shard;
    uint64_t tokens;
    dp_trainer *trainer;
    dp_trainer_update update;
    uint8_t manifest[DP_MANIFEST_BYTES_MAX];
} bench;

static void make_text(bench *b)
{
    static char text[TEXT_BYTES];
    static const char *const words[] = {"light ",    "and ",   "darkness ", "were ",
                                        "over the ", "deep, ", "waters ",   "said "};
    uint64_t state = 1;
    for (size_t at = 0; at + 16 < sizeof text;) {
        state = state * 6364136223846793005U + 1442695040888963407U;
        at += (size_t)snprintf(text + at, sizeof text - at, "%s", words[state >> 61]);
    }
    dp_bpe *bpe;
    dp_tokens tokens = {0};
    const dp_view bytes = dp_view_of(text, strlen(text));
    dp_buf_init(&b->tokenizer, 1 << 20);
    dp_buf_init(&b->shard, 1 << 22);
    dp_assert(dp_bpe_train(&bpe, bytes, VOCAB, NULL) == DP_OK);
    dp_assert(dp_bpe_encode(bpe, bytes, &tokens, NULL) == DP_OK);
    dp_assert(dp_bpe_save(bpe, &b->tokenizer) == DP_OK);
    dp_assert(dp_shard_write(tokens.ids, tokens.count, (uint32_t)dp_bpe_count(bpe), bytes.size,
                             &b->shard) == DP_OK);
    b->tokens = tokens.count;
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
}

static void open_trainer(bench *b, const shape *s, dp_codec_kind codec, size_t threads)
{
    dp_manifest m;
    size_t size;
    dp_why why = {{0}};
    const dp_view shard = dp_buf_view(&b->shard);
    dp_manifest_default(&m);
    m.layers = s->layers;
    m.width = s->width;
    m.heads = s->heads;
    m.context = s->context;
    m.vocab = VOCAB;
    m.batch_rows = ROWS;
    m.codec = codec;
    m.codec_keep_most = 0;
    m.n_shards = 1;
    m.shards[0] = (dp_manifest_shard){
        .root = dp_object_hash(shard, NULL), .bytes = shard.size, .tokens = b->tokens};
    dp_assert(dp_manifest_encode(&m, b->manifest, &size) == DP_OK);
    const dp_trainer_setup setup = {.manifest = dp_view_of(b->manifest, size),
                                    .tokenizer = dp_buf_view(&b->tokenizer),
                                    .shards = &shard,
                                    .n_shards = 1,
                                    .threads = threads};
    dp_assert(dp_trainer_open(&b->trainer, &setup, &why) == DP_OK);
    dp_assert(dp_trainer_init(b->trainer) == DP_OK);
}

static double step_ms(bench *b)
{
    const double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const uint32_t goal = dp_trainer_progress_of(b->trainer).steps + 1;
    while (dp_trainer_progress_of(b->trainer).steps < goal) {
        dp_assert(dp_trainer_work(b->trainer) == DP_OK);
    }
    return 1e3 * (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
}

static double judge_ms(bench *b)
{
    dp_judged found;
    const double begin = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_assert(dp_trainer_judge(b->trainer, &b->update, &found) == DP_OK);
    return 1e3 * (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
}

static double median_of(bench *b, double (*measure)(bench *b))
{
    double values[REPEATS];
    for (size_t i = 0; i < REPEATS; i++) {
        values[i] = measure(b);
    }
    return bench_median(values, REPEATS);
}

static void run(bench *b, const shape *s, dp_codec_kind codec, size_t threads)
{
    static const uint32_t tokens[] = {0, 512, 4096};
    dp_view a;
    open_trainer(b, s, codec, threads);
    for (int i = 0; i < WARM_STEPS; i++) {
        step_ms(b);
    }
    const double step = median_of(b, step_ms);
    printf("%-5s %8zu %-7s %8.2f", s->name, dp_trainer_elements(b->trainer), dp_codec_name(codec),
           step);
    b->update = (dp_trainer_update){.scale = 65536, .seed = 1, .member = {9}, .own_count = 1000};
    dp_assert(dp_trainer_publish(b->trainer, false, &b->update.blob, &a) == DP_OK);
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        b->update.tokens = tokens[i];
        const double judge = median_of(b, judge_ms);
        printf("  %8.2f %6.1f", judge, judge / step);
    }
    printf("\n");
    dp_trainer_close(b->trainer);
}

int main(int argc, char **argv)
{
    static bench b;
    const size_t threads = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    make_text(&b);
    printf(
        "CPU milliseconds of a step of %d rows, and of a judgement on so many tokens of each kind; "
        "steps that it costs\n",
        ROWS);
    printf("model elements codec       step         0  steps       512  steps      4096  steps\n");
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t j = 0; j < sizeof codecs / sizeof codecs[0]; j++) {
            run(&b, &shapes[i], codecs[j], threads);
        }
    }
    dp_buf_close(&b.tokenizer);
    dp_buf_close(&b.shard);
    return 0;
}
