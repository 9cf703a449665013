/* Speed of tokenization on one core: MB per second of process CPU time, with a given tokenizer or
 * one trained on the text.
 * bench_tokenizer [--json] [--tokenizer FILE] [--vocab N] TEXT    1024 tokens if neither is given
 * bench_tokenizer_hf.py runs it beside Hugging Face's tokenizers and prints the ratios. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/clock.h"
#include "compute/machine/files.h"
#include "compute/text/bpe.h"

enum { REPEATS = 5 };

typedef struct options {
    bool json;
    const char *tokenizer;
    size_t vocab;
    const char *text;
} options;

typedef struct result {
    double train_s; /* or 0 */
    double load_s;
    double first_mb_s; /* with a new encoder */
    double again_mb_s; /* with one whose cache has seen the text */
    double decode_mb_s;
    size_t tokens;
    size_t vocab;
} result;

static dp_status get_tokenizer(dp_bpe **bpe, const options *o, dp_view text, result *r, dp_why *why)
{
    dp_buf json;
    dp_buf_init(&json, DP_BPE_JSON_BYTES_MAX);
    double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    dp_status status = DP_OK;
    if (o->tokenizer == NULL) {
        dp_bpe *trained = NULL;
        status = dp_bpe_train(&trained, text, o->vocab, why);
        r->train_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
        status = status == DP_OK ? dp_bpe_save(trained, &json) : status;
        dp_bpe_close(trained);
    } else {
        status = dp_file_read(o->tokenizer, &json, why);
    }
    start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (status == DP_OK) {
        status = dp_bpe_load(bpe, dp_buf_view(&json), why);
    }
    r->load_s = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    dp_buf_close(&json);
    return status;
}

/* Megabytes per second of the fastest of a few calls, on one encoder or each on a new one. */
static dp_status encode(const dp_bpe *bpe, dp_view text, bool anew, dp_tokens *tokens, double *mb_s,
                        dp_why *why)
{
    dp_encoder *encoder = NULL;
    double best = 0;
    dp_status status = DP_OK;
    for (int i = 0; i < REPEATS + !anew && status == DP_OK; i++) {
        if (anew || encoder == NULL) {
            dp_encoder_close(encoder);
            encoder = NULL;
            status = dp_encoder_open(&encoder, bpe, why);
        }
        const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
        tokens->count = 0;
        status = status == DP_OK ? dp_encode(encoder, text, tokens, why) : status;
        const double seconds = bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
        best = best == 0 || seconds < best ? seconds : best;
    }
    dp_encoder_close(encoder);
    *mb_s = (double)text.size / best * 1e-6;
    return status;
}

static dp_status measure(const options *o, dp_view text, result *r, dp_why *why)
{
    dp_bpe *bpe = NULL;
    dp_tokens tokens = {0};
    dp_buf back;
    dp_buf_init(&back, 4 * text.size + 1024);
    dp_status status = get_tokenizer(&bpe, o, text, r, why);
    if (status == DP_OK) {
        r->vocab = dp_bpe_count(bpe);
        status = encode(bpe, text, true, &tokens, &r->first_mb_s, why);
    }
    if (status == DP_OK) {
        status = encode(bpe, text, false, &tokens, &r->again_mb_s, why);
    }
    const double start = bench_seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (status == DP_OK) {
        status = dp_bpe_decode(bpe, tokens.ids, tokens.count, &back);
    }
    r->decode_mb_s = (double)back.size / (bench_seconds(CLOCK_PROCESS_CPUTIME_ID) - start) * 1e-6;
    r->tokens = tokens.count;
    dp_buf_close(&back);
    dp_tokens_close(&tokens);
    dp_bpe_close(bpe);
    return status;
}

static bool parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        const bool more = i + 1 < argc;
        if (strcmp(argv[i], "--json") == 0) {
            o->json = true;
        } else if (strcmp(argv[i], "--tokenizer") == 0 && more) {
            o->tokenizer = argv[++i];
        } else if (strcmp(argv[i], "--vocab") == 0 && more) {
            o->vocab = strtoul(argv[++i], NULL, 10);
        } else if (argv[i][0] != '-' && o->text == NULL) {
            o->text = argv[i];
        } else {
            return false;
        }
    }
    return o->text != NULL;
}

int main(int argc, char **argv)
{
    options o = {.vocab = 1024};
    result r = {.vocab = 0};
    dp_why why = {{0}};
    dp_buf text;
    if (!parse(argc, argv, &o)) {
        fputs("usage: bench_tokenizer [--json] [--tokenizer FILE] [--vocab N] TEXT\n", stderr);
        return 64;
    }
    dp_buf_init(&text, 1U << 30);
    dp_status status = dp_file_read(o.text, &text, &why);
    if (status == DP_OK) {
        status = measure(&o, dp_buf_view(&text), &r, &why);
    }
    dp_buf_close(&text);
    if (status != DP_OK) {
        fprintf(stderr, "bench_tokenizer: %s\n", why.text);
        return 65;
    }
    printf(o.json
               ? "{\"vocab\": %zu, \"tokens\": %zu, \"train_s\": %.3f, \"load_s\": %.4f, "
                 "\"first_mb_s\": %.2f, \"again_mb_s\": %.2f, \"decode_mb_s\": %.1f}\n"
               : "vocabulary %zu, %zu tokens; train %.3f s, load %.4f s; encode %.2f MB/s, again "
                 "%.2f MB/s; decode %.1f MB/s\n",
           r.vocab, r.tokens, r.train_s, r.load_s, r.first_mb_s, r.again_mb_s, r.decode_mb_s);
    return 0;
}
