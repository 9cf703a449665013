#include "compute/trainer/sample_text.h"

#include <inttypes.h>

#include "base/alloc.h"
#include "compute/machine/memory.h"
#include "compute/unicode/utf8.h"

enum { TEXT_BYTES_MAX = 8 << 20 };

/* Replaces invalid UTF-8 by U+FFFD and drops NUL. */
static dp_status append_clean(dp_buf *out, dp_view bytes)
{
    size_t at = 0;
    while (at < bytes.size) {
        const dp_view rest = dp_view_of(bytes.data + at, bytes.size - at);
        const size_t good = dp_utf8_bad_at(rest);
        for (size_t i = 0; i < good; i++) {
            if (rest.data[i] != 0) {
                DP_TRY(dp_buf_append(out, dp_view_of(rest.data + i, 1)));
            }
        }
        at += good;
        if (at < bytes.size) {
            DP_TRY(dp_buf_append(out, dp_view_text("\xef\xbf\xbd")));
            at++;
        }
    }
    return DP_OK;
}

static dp_status draw(const dp_sample_model *model, const dp_sampler *sampler, const dp_bpe *bpe,
                      dp_tokens *tokens, size_t n)
{
    uint32_t *const larger = dp_realloc(tokens->ids, (tokens->count + n) * sizeof *larger);
    if (larger == NULL) {
        return DP_NOMEM;
    }
    tokens->ids = larger;
    tokens->capacity = tokens->count + n;
    DP_TRY(dp_sample(model, sampler, tokens->ids, tokens->count, n));
    tokens->count += n;
    /* A model may have room for more tokens than its tokenizer names. */
    size_t kept = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        tokens->ids[kept] = tokens->ids[i];
        kept += tokens->ids[i] < dp_bpe_count(bpe);
    }
    tokens->count = kept;
    return DP_OK;
}

dp_status dp_sample_text(const dp_sample_model *model, const dp_sampler *sampler, const dp_bpe *bpe,
                         const char *prompt, size_t n, dp_buf *text)
{
    if (n > DP_SAMPLE_TOKENS_MAX) {
        return DP_TOOBIG;
    }
    dp_tokens tokens = {0};
    dp_buf bytes;
    dp_buf_init(&bytes, TEXT_BYTES_MAX);
    dp_status status =
        dp_bpe_encode(bpe, dp_view_text(prompt[0] != '\0' ? prompt : "\n"), &tokens, NULL);
    if (status == DP_OK) {
        status = draw(model, sampler, bpe, &tokens, n);
    }
    if (status == DP_OK) {
        status = dp_bpe_decode(bpe, tokens.ids, tokens.count, &bytes);
    }
    if (status == DP_OK) {
        status = append_clean(text, dp_buf_view(&bytes));
    }
    dp_buf_close(&bytes);
    dp_tokens_close(&tokens);
    return status;
}

/* ---- from weights ---- */

typedef struct decoder {
    dp_gpt *gpt;
    dp_gpt_cache *cache;
} decoder;

static dp_status logits_of(void *context, const uint32_t *tokens, size_t known, size_t length,
                           float *logits)
{
    const decoder *const d = context;
    if (known == 0) {
        dp_gpt_cache_clear(d->cache);
    }
    return dp_gpt_decode(d->gpt, d->cache, tokens + known, length - known, logits);
}

/* Another process may train beside this one: the kernel would choose the larger of both. */
static dp_status check_memory(const dp_model *model, const dp_gpt_options *options, size_t threads,
                              dp_why *why)
{
    const dp_gpt_memory memory = dp_gpt_memory_of(model, options, threads);
    const uint64_t usable = dp_memory_usable();
    /* Packs have both directions, of which the backward one is never touched. */
    const uint64_t needed = memory.params + memory.packed / 2 + memory.scratch +
                            memory.activations + dp_gpt_cache_bytes(model);
    if (usable == 0 || needed <= usable) {
        return DP_OK;
    }
    return dp_why_set(why, DP_TOOBIG,
                      "a sample needs %" PRIu64 " MiB of memory, and %" PRIu64 " MiB are left",
                      needed >> 20, usable >> 20);
}

static dp_status open_decoder(decoder *d, const dp_sample_weights *weights, dp_pool *pool,
                              dp_why *why)
{
    const dp_gpt_options options = {.rows_max = 1,
                                    .pool = pool,
                                    .precision = DP_FP32,
                                    .recompute = DP_RECOMPUTE_LAYER,
                                    .packs = DP_GPT_PACKS_KEPT,
                                    .grads_elsewhere = true};
    DP_TRY(check_memory(weights->model, &options, dp_pool_threads(pool), why));
    DP_TRY(dp_gpt_open(&d->gpt, weights->model, &options));
    DP_TRY(dp_gpt_cache_open(&d->cache, d->gpt));
    return weights->load(weights->context, dp_gpt_params_to_write(d->gpt), why);
}

dp_status dp_sample_from(const dp_sample_weights *weights, const dp_sampler *sampler,
                         const char *prompt, size_t n, dp_buf *text, dp_why *why)
{
    decoder d = {NULL, NULL};
    dp_pool *pool = NULL;
    DP_TRY(dp_pool_open(&pool, weights->threads));
    dp_status status = open_decoder(&d, weights, pool, why);
    if (status == DP_OK) {
        const dp_sample_model model = {
            .config = &weights->model->config, .context = &d, .logits = logits_of};
        status = dp_sample_text(&model, sampler, weights->bpe, prompt, n, text);
    }
    dp_gpt_cache_close(d.cache);
    dp_gpt_close(d.gpt);
    dp_pool_close(pool);
    return status;
}
