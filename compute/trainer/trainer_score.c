/* Looking at theta: validation loss and samples. Training stands still meanwhile and goes on
 * unchanged. */
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/trainer/sample.h"
#include "compute/trainer/trainer_inside.h"
#include "compute/unicode/utf8.h"

enum { SAMPLE_TOKENS_MAX = 4096, TOP_K = 40 };

typedef struct sums {
    double nats;
    uint64_t tokens;
    uint64_t bytes;
} sums;

/* Up to rows_max windows from first on; all are full but possibly the only one. */
static dp_status score_windows(dp_trainer *t, const dp_data *data, uint64_t first, uint32_t rows,
                               sums *s)
{
    const size_t context = t->manifest.context;
    size_t length = context;
    for (uint32_t i = 0; i < rows; i++) {
        length = dp_data_val_row(data, first + i, context, t->inputs + i * context,
                                 t->targets + i * context);
        for (size_t j = 0; j < length; j++) {
            s->bytes += dp_bpe_text_bytes(t->bpe, t->targets[i * context + j]);
        }
    }
    const dp_gpt_batch batch = {.x = t->inputs, .y = t->targets, .rows = rows, .length = length};
    double loss_sum = 0;
    DP_TRY(t->backend->loss(t->engine, DP_VECTOR_THETA, &batch, &loss_sum));
    s->nats += loss_sum;
    s->tokens += rows * length;
    return DP_OK;
}

static dp_status score(dp_trainer *t, const dp_data *data, uint64_t tokens, sums *s)
{
    const uint64_t windows = dp_data_val_windows(data, t->manifest.context);
    uint64_t at = 0;
    while (at < windows && (tokens == 0 || s->tokens < tokens)) {
        uint64_t rows = windows - at < t->rows_max ? windows - at : t->rows_max;
        if (tokens != 0) {
            const uint64_t wanted =
                (tokens - s->tokens + t->manifest.context - 1) / t->manifest.context;
            rows = wanted < rows ? wanted : rows;
        }
        DP_TRY(score_windows(t, data, at, (uint32_t)rows, s));
        at += rows;
    }
    return DP_OK;
}

dp_status dp_trainer_eval(dp_trainer *t, const dp_data *data, uint64_t tokens,
                          dp_trainer_score *out)
{
    sums s = {0};
    if (dp_manifest_external(&t->manifest)) {
        return DP_UNSUPPORTED;
    }
    DP_TRY(score(t, data != NULL ? data : &t->data, tokens, &s));
    if (s.tokens == 0) {
        return DP_NOTFOUND;
    }
    *out =
        (dp_trainer_score){.loss = s.nats / (double)s.tokens,
                           .bits_per_byte = s.bytes > 0 ? s.nats / log(2.0) / (double)s.bytes : 0,
                           .tokens = s.tokens};
    return DP_OK;
}

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

static dp_status logits_of(void *context, const uint32_t *tokens, size_t length, float *logits)
{
    const dp_trainer *const t = context;
    return t->backend->logits(t->engine, DP_VECTOR_THETA, tokens, length, logits);
}

static dp_status draw(dp_trainer *t, dp_tokens *tokens, size_t n, uint64_t seed)
{
    uint32_t *const larger = dp_realloc(tokens->ids, (tokens->count + n) * sizeof *larger);
    if (larger == NULL) {
        return DP_NOMEM;
    }
    tokens->ids = larger;
    tokens->capacity = tokens->count + n;
    const dp_sampler sampler = {.temperature = 0.8F, .top_k = TOP_K, .seed = seed};
    const dp_sample_model model = {.config = &t->model.config, .context = t, .logits = logits_of};
    DP_TRY(dp_sample(&model, &sampler, tokens->ids, tokens->count, n));
    tokens->count += n;
    /* A model may have room for more tokens than its tokenizer names. */
    size_t kept = 0;
    for (size_t i = 0; i < tokens->count; i++) {
        tokens->ids[kept] = tokens->ids[i];
        kept += tokens->ids[i] < dp_bpe_count(t->bpe);
    }
    tokens->count = kept;
    return DP_OK;
}

dp_status dp_trainer_sample(dp_trainer *t, const char *prompt, size_t n, uint64_t seed,
                            dp_buf *text)
{
    if (n > SAMPLE_TOKENS_MAX) {
        return DP_TOOBIG;
    }
    if (dp_manifest_external(&t->manifest)) {
        return DP_UNSUPPORTED;
    }
    dp_tokens tokens = {0};
    dp_buf bytes;
    dp_buf_init(&bytes, (size_t)8 << 20);
    dp_status status =
        dp_bpe_encode(t->bpe, dp_view_text(prompt[0] != '\0' ? prompt : "\n"), &tokens, NULL);
    if (status == DP_OK) {
        status = draw(t, &tokens, n, seed);
    }
    if (status == DP_OK) {
        status = dp_bpe_decode(t->bpe, tokens.ids, tokens.count, &bytes);
    }
    if (status == DP_OK) {
        status = append_clean(text, dp_buf_view(&bytes));
    }
    dp_buf_close(&bytes);
    dp_tokens_close(&tokens);
    return status;
}
