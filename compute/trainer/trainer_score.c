/* Looking at theta: validation loss and samples. Training stands still meanwhile and goes on
 * unchanged. */
#include <math.h>

#include "base/run/token_marks.h"
#include "compute/trainer/sample_text.h"
#include "compute/trainer/trainer_inside.h"

typedef struct sums {
    double nats;
    uint64_t tokens;
    uint64_t bytes;
} sums;

static void tell_alive(const dp_trainer *t)
{
    if (t->alive != NULL) {
        t->alive(t->alive_context);
    }
}

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
            const uint32_t target = t->targets[i * context + j];
            if (target != DP_TOKEN_NO_LOSS) {
                s->bytes += dp_bpe_text_bytes(t->bpe, target);
                s->tokens++;
            }
        }
    }
    const dp_gpt_batch batch = {.x = t->inputs, .y = t->targets, .rows = rows, .length = length};
    double loss_sum = 0;
    tell_alive(t);
    DP_TRY(t->backend->loss(t->engine, DP_VECTOR_THETA, &batch, &loss_sum));
    s->nats += loss_sum;
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

static dp_status logits_of(void *context, const uint32_t *tokens, size_t known, size_t length,
                           float *logits)
{
    const dp_trainer *const t = context;
    (void)known; /* A backend computes the whole window. */
    tell_alive(t);
    return t->backend->logits(t->engine, DP_VECTOR_THETA, tokens, length, logits);
}

dp_status dp_trainer_sample(dp_trainer *t, const dp_sampler *sampler, const char *prompt, size_t n,
                            dp_buf *text)
{
    if (dp_manifest_external(&t->manifest)) {
        return DP_UNSUPPORTED;
    }
    const dp_sample_model model = {.config = &t->model.config, .context = t, .logits = logits_of};
    return dp_sample_text(&model, sampler, t->bpe, prompt, n, text);
}
