#include "bench/defence_measure.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

enum { SKETCH = 4096, CONTEXT_MAX = 1024 };

double defence_dot(const float *a, const float *b, size_t n)
{
    double lanes[8] = {0};
    size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (size_t k = 0; k < 8; k++) {
            lanes[k] += (double)a[i + k] * (double)b[i + k];
        }
    }
    double sum = 0;
    for (; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    for (size_t k = 0; k < 8; k++) {
        sum += lanes[k];
    }
    return sum;
}

double defence_norm(const float *a, size_t n)
{
    return sqrt(defence_dot(a, a, n));
}

double defence_cosine(const float *a, const float *b, size_t n)
{
    const double norms = defence_norm(a, n) * defence_norm(b, n);
    return norms > 0 ? defence_dot(a, b, n) / norms : 0;
}

defence_likeness defence_likeness_of(const float *d, size_t n)
{
    float sketch[SKETCH] = {0};
    for (size_t i = 0; i < n; i++) {
        if (d[i] != 0) {
            const uint64_t hash = dp_mix64(i + 1);
            sketch[hash % SKETCH] += hash >> 63 != 0 ? d[i] : -d[i];
        }
    }
    defence_likeness out = {{0}};
    for (uint32_t bit = 0; bit < 8 * DP_LIKENESS_BYTES; bit++) {
        double sum = 0;
        for (uint32_t i = 0; i < SKETCH; i += 64) {
            uint64_t signs = dp_mix64(((uint64_t)bit << 32) + i + 7);
            for (uint32_t k = 0; k < 64; k++, signs >>= 1) {
                sum += (signs & 1) != 0 ? (double)sketch[i + k] : -(double)sketch[i + k];
            }
        }
        out.bits[bit / 8] |= (uint8_t)((unsigned)(sum > 0) << bit % 8);
    }
    return out;
}

uint32_t defence_distance(const defence_likeness *a, const defence_likeness *b)
{
    uint32_t n = 0;
    for (size_t i = 0; i < sizeof a->bits; i++) {
        n += (uint32_t)__builtin_popcount((unsigned)(a->bits[i] ^ b->bits[i]));
    }
    return n;
}

dp_status defence_eye_open(defence_eye *eye, const dp_manifest *manifest, dp_why *why)
{
    *eye = (defence_eye){.now = NULL};
    const dp_model_config config = dp_manifest_model(manifest);
    const dp_gpt_options options = {.rows_max = 1};
    DP_TRY(dp_model_open(&eye->model, &config, why));
    DP_TRY(dp_gpt_open(&eye->now, &eye->model, &options));
    return dp_gpt_open(&eye->moved, &eye->model, &options);
}

void defence_eye_close(defence_eye *eye)
{
    dp_gpt_close(eye->now);
    dp_gpt_close(eye->moved);
    dp_model_close(&eye->model);
}

void defence_eye_theta(defence_eye *eye, const float *theta)
{
    memcpy(dp_gpt_params_to_write(eye->now), theta, eye->model.n_elements * sizeof *theta);
}

void defence_eye_move(defence_eye *eye, const float *theta, const float *d, double step)
{
    float *const to = dp_gpt_params_to_write(eye->moved);
    for (size_t i = 0; i < eye->model.n_elements; i++) {
        to[i] = theta[i] - (float)step * d[i];
    }
}

/* A piece of DEFENCE_WINDOW tokens of a window of the model's context: short pieces give more
 * windows. */
static dp_status draw(const defence_source *s, size_t context, dp_rng *rng, uint32_t *x,
                      uint32_t *y)
{
    if (s->count > 0) {
        return dp_data_sample(s->data, s->seed, s->first + dp_rng_below(rng, s->count), context, x,
                              y);
    }
    const uint64_t windows = dp_data_val_windows(s->data, context);
    const size_t length = dp_data_val_row(s->data, dp_rng_below(rng, windows), context, x, y);
    return length == context ? DP_OK : DP_AGAIN;
}

dp_status defence_gains(defence_eye *eye, const defence_source *source, dp_rng *rng,
                        uint32_t n_windows, double *gains)
{
    uint32_t x[CONTEXT_MAX];
    uint32_t y[CONTEXT_MAX];
    const size_t context = eye->model.config.context;
    for (uint32_t i = 0; i < n_windows; i++) {
        DP_TRY(draw(source, context, rng, x, y));
        const size_t at = dp_rng_below(rng, context / DEFENCE_WINDOW) * DEFENCE_WINDOW;
        const dp_gpt_batch batch = {.x = x + at, .y = y + at, .rows = 1, .length = DEFENCE_WINDOW};
        double now;
        double moved;
        DP_TRY(dp_gpt_loss(eye->now, &batch, &now));
        DP_TRY(dp_gpt_loss(eye->moved, &batch, &moved));
        gains[i] = (now - moved) / DEFENCE_WINDOW;
    }
    return DP_OK;
}

defence_gain defence_gain_of(const double *gains, uint32_t n)
{
    double sum = 0;
    double squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += gains[i];
    }
    const double mean = sum / n;
    for (uint32_t i = 0; i < n; i++) {
        squares += (gains[i] - mean) * (gains[i] - mean);
    }
    return (defence_gain){.mean = mean, .error = sqrt(squares / (n - 1.0) / n)};
}
