#include "bench/defence_round.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"

bool defence_is_hostile(const defence_round *round, uint32_t worker)
{
    return worker >= round->n - round->hostile;
}

static dp_status open_worker(defence_worker *w, size_t n, bool hostile)
{
    float **const vectors[] = {&w->d, &w->honest, &w->a, &w->before, &w->work};
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        *vectors[i] = dp_alloc(n, sizeof(float));
        if (*vectors[i] == NULL) {
            return DP_NOMEM;
        }
    }
    for (size_t i = 0; hostile && i < DEFENCE_HISTORY; i++) {
        w->past[i] = dp_alloc(n, sizeof(float));
        if (w->past[i] == NULL) {
            return DP_NOMEM;
        }
    }
    return DP_OK;
}

dp_status defence_round_open(defence_round *round, const quality_plan *plan, uint32_t hostile,
                             size_t elements, uint64_t seed)
{
    *round = (defence_round){.n = plan->workers,
                             .hostile = hostile,
                             .elements = elements,
                             .alpha = plan->alpha_milli / 1000.0};
    dp_rng_init(&round->rng, seed);
    for (uint32_t i = 0; i < round->n; i++) {
        DP_TRY(open_worker(&round->workers[i], elements, defence_is_hostile(round, i)));
    }
    return DP_OK;
}

void defence_round_close(defence_round *round)
{
    for (uint32_t i = 0; i < round->n; i++) {
        defence_worker *const w = &round->workers[i];
        dp_free(w->d);
        dp_free(w->honest);
        dp_free(w->a);
        dp_free(w->before);
        dp_free(w->work);
        for (size_t k = 0; k < DEFENCE_HISTORY; k++) {
            dp_free(w->past[k]);
        }
    }
}

/* The local work lies between theta and the weights of the trainer. */
static void take_own(defence_worker *w, const quality_seat *seat, size_t n)
{
    if (seat->a == NULL) {
        return; /* It has waited since the round before. */
    }
    float *const older = w->before;
    w->before = w->a;
    w->has_before = w->has_a;
    w->a = older;
    memcpy(w->a, seat->a, n * sizeof(float));
    w->has_a = true;
    const float *const theta = dp_trainer_theta(seat->trainer);
    memcpy(w->work, theta, n * sizeof(float));
    const float *const x = dp_trainer_params(seat->trainer);
    for (size_t i = 0; i < n; i++) {
        w->work[i] -= x[i];
    }
    w->own_first = w->own_end;
    w->own_end = dp_trainer_reach(seat->trainer).own;
}

dp_status defence_round_take(defence_round *round, uint64_t number, const quality_seat *seats)
{
    const size_t bytes = round->elements * sizeof(float);
    round->number = number;
    for (uint32_t i = 0; i < round->n; i++) {
        defence_worker *const w = &round->workers[i];
        uint64_t elements;
        take_own(w, &seats[i], round->elements);
        w->counted = seats[i].counted;
        DP_TRY(dp_codec_peek(dp_buf_view(seats[i].blob), &w->codec, &elements));
        DP_TRY(dp_codec_decode(dp_buf_view(seats[i].blob), w->d, round->elements));
        memcpy(w->honest, w->d, bytes);
        if (defence_is_hostile(round, i)) {
            memcpy(w->past[number % DEFENCE_HISTORY], w->d, bytes);
        }
    }
    round->theta = dp_trainer_theta(seats[0].trainer);
    defence_round_measure(round);
    return DP_OK;
}

/* Approximates dp_weights: ignores work of several rounds in one publication. */
void defence_round_measure(defence_round *round)
{
    double norms[QUALITY_WORKERS];
    double sorted[QUALITY_WORKERS];
    uint32_t n = 0;
    for (uint32_t i = 0; i < round->n; i++) {
        norms[i] = defence_norm(round->workers[i].d, round->elements);
        uint32_t at = n;
        while (norms[i] > 0 && at > 0 && sorted[at - 1] > norms[i]) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        if (norms[i] > 0) {
            sorted[at] = norms[i];
            n++;
        }
    }
    round->median = n > 0 ? sorted[(n - 1) / 2] : 0;
    for (uint32_t i = 0; i < round->n; i++) {
        defence_worker *const w = &round->workers[i];
        const double clip = norms[i] > round->median ? round->median / norms[i] : 1;
        w->step = round->alpha * clip * dp_codec_gain(w->codec.kind, w->codec.keep) / 65536.0;
    }
}

/* ---- What hostile workers send. */

/* Approximately a normal deviate: the sum of twelve uniform ones (Irwin 1927, Hall 1927). */
static float deviate(dp_rng *rng)
{
    uint32_t sum = 0;
    for (int i = 0; i < 3; i++) {
        const uint64_t bits = dp_rng_next(rng);
        for (uint32_t k = 0; k < 4; k++) {
            sum += (uint32_t)(bits >> 16 * k & 0xffff);
        }
    }
    return ((float)sum - 6 * 65535.0F) / 65535.0F;
}

/* to = to + factor from. */
static void add(float *to, const float *from, double factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] += (float)factor * from[i];
    }
}

static void scale(float *to, double factor, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] *= (float)factor;
    }
}

/* The mean of the honest updates before compression. */
static void mean_of_honest(const defence_round *round, float *out)
{
    const uint32_t honest = round->n - round->hostile;
    memset(out, 0, round->elements * sizeof *out);
    for (uint32_t i = 0; i < honest; i++) {
        add(out, round->workers[i].a, 1.0 / honest, round->elements);
    }
}

static void fill_with_noise(float *out, dp_rng *rng, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        out[i] = deviate(rng);
    }
}

/* Noise without its component along the mean of the honest updates. */
static void fill_with_orthogonal(const defence_round *round, float *out, float *mean, dp_rng *rng)
{
    const size_t n = round->elements;
    mean_of_honest(round, mean);
    fill_with_noise(out, rng, n);
    const double squares = defence_dot(mean, mean, n);
    add(out, mean, squares > 0 ? -defence_dot(out, mean, n) / squares : 0, n);
}

/* Writes the vector that the worker encodes to v; other: memory for a second vector. */
static void make(defence_round *round, defence_attack attack, uint32_t worker, double size,
                 float *v, float *other)
{
    const size_t n = round->elements;
    const defence_worker *const w = &round->workers[worker];
    dp_rng rng;
    dp_rng_init(&rng, dp_mix64(round->number) + worker);
    memcpy(v, w->honest, n * sizeof *v);
    switch (attack) {
    case DEFENCE_HONEST:
    case DEFENCE_ATTACKS:
        break;
    case DEFENCE_FLIP:
        scale(v, -1, n);
        break;
    case DEFENCE_FLIP_TEN:
        scale(v, -10, n);
        break;
    case DEFENCE_NOISE:
        fill_with_noise(v, &rng, n);
        scale(v, round->median / sqrt((double)n), n);
        break;
    case DEFENCE_COPY:
        memcpy(v, round->workers[0].honest, n * sizeof *v);
        break;
    case DEFENCE_COPY_NEAR:
        for (size_t i = 0; i < n; i++) {
            v[i] = round->workers[0].honest[i] * (1 + 0.05F * deviate(&rng));
        }
        break;
    case DEFENCE_REPLAY:
        if (round->number > 4) {
            memcpy(v, w->past[(round->number - 4) % DEFENCE_HISTORY], n * sizeof *v);
        }
        break;
    case DEFENCE_LAZY:
        memset(v, 0, n * sizeof *v);
        break;
    case DEFENCE_DRIFT:
        memcpy(v, w->a, n * sizeof *v);
        mean_of_honest(round, other);
        add(v, other, -size * defence_norm(v, n) / defence_norm(other, n), n);
        break;
    case DEFENCE_COLLUDE:
        mean_of_honest(round, v);
        scale(v, -1, n);
        break;
    case DEFENCE_NUDGE:
        fill_with_orthogonal(round, v, other, &rng);
        scale(v, size * defence_norm(w->a, n) / defence_norm(v, n), n);
        add(v, w->a, 1, n);
        break;
    }
}

/* The residual of a codec that drops elements has far more energy than a publication, so the sent
 * vector is scaled to the length of the median. */
static bool is_dense(defence_attack attack)
{
    return attack == DEFENCE_NOISE || attack == DEFENCE_DRIFT || attack == DEFENCE_COLLUDE ||
           attack == DEFENCE_NUDGE;
}

static dp_status encode(defence_round *round, uint32_t worker, const float *v, dp_buf *out)
{
    defence_worker *const w = &round->workers[worker];
    dp_buf_clear(out);
    DP_TRY(dp_codec_encode(&w->codec, v, round->elements, out));
    return dp_codec_decode(dp_buf_view(out), w->d, round->elements);
}

dp_status defence_forge(defence_round *round, defence_attack attack, uint32_t worker, double size,
                        dp_buf *out)
{
    const size_t n = round->elements;
    float *const v = dp_alloc(2 * n, sizeof *v);
    if (v == NULL) {
        return DP_NOMEM;
    }
    make(round, attack, worker, size, v, v + n);
    dp_status status = encode(round, worker, v, out);
    const double norm = defence_norm(round->workers[worker].d, n);
    if (status == DP_OK && is_dense(attack) && norm > 0) {
        scale(v, round->median / norm, n);
        status = encode(round, worker, v, out);
    }
    dp_free(v);
    return status;
}
