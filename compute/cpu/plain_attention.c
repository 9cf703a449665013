/* Attention and rotary positions as plain loops. */
#include <math.h>
#include <string.h>

#include "compute/cpu/plain.h"

static double dot_of(const float *a, const float *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) {
        sum += (double)a[i] * (double)b[i];
    }
    return sum;
}

/* The problem of query head g alone. */
static dp_attention head_of(const dp_attention *a, size_t g)
{
    dp_attention head = *a;
    head.ld_qk = a->ld_qk == 0 ? a->ld_qkv : a->ld_qk;
    head.ld_q = a->ld_q == 0 ? head.ld_qk : a->ld_q;
    head.q += g * a->head;
    head.out += g * a->head;
    head.lse += g * (a->length - a->past);
    if (a->d_out != NULL) {
        head.d_out += g * a->head;
        head.dq += g * a->head;
    }
    return head;
}

/* A score from the product of a query and a key. */
static double score_of(const dp_attention *a, double dot)
{
    const double score = dp_attention_scale(a) * dot;
    return a->cap == 0.0F ? score : (double)a->cap * tanh(score / (double)a->cap);
}

static void forward_head(const dp_attention *a)
{
    float *p = a->scratch;
    for (size_t row = 0; row < a->length - a->past; row++) {
        const size_t last = a->past + row;
        const float *q = a->q + row * a->ld_q;
        const size_t first = dp_attention_first(a, last);
        double largest = -INFINITY;
        double sum = 0.0;
        for (size_t key = first; key <= last; key++) {
            p[key] = (float)score_of(a, dot_of(q, a->k + key * a->ld_qk, a->head));
            largest = fmax(largest, (double)p[key]);
        }
        for (size_t key = first; key <= last; key++) {
            sum += exp((double)p[key] - largest);
        }
        a->lse[row] = (float)(largest + log(sum));
        for (size_t i = 0; i < a->head; i++) {
            double out = 0.0;
            for (size_t key = first; key <= last; key++) {
                out += exp((double)p[key] - largest) * (double)a->v[key * a->ld_qkv + i];
            }
            a->out[row * a->ld_out + i] = (float)(out / sum);
        }
    }
}

void dp_plain_attention_forward(const dp_attention *a)
{
    for (size_t g = 0; g == 0 || g < a->groups; g++) {
        const dp_attention head = head_of(a, g);
        forward_head(&head);
    }
}

static void backward_row(const dp_attention *a, size_t row)
{
    const double scale = dp_attention_scale(a);
    const float *q = a->q + row * a->ld_qk;
    const float *d_out = a->d_out + row * a->ld_out;
    float *dq = a->dq + row * a->ld_qkv;
    const double delta = dot_of(a->out + row * a->ld_out, d_out, a->head);
    memset(dq, 0, a->head * sizeof *dq);
    for (size_t key = dp_attention_first(a, row); key <= row; key++) {
        const float *k = a->k + key * a->ld_qk;
        const size_t at = key * a->ld_qkv;
        const double score = score_of(a, dot_of(q, k, a->head));
        const double t = a->cap == 0.0F ? 0.0 : score / (double)a->cap;
        const double p = exp(score - (double)a->lse[row]);
        const double ds = p * (dot_of(d_out, a->v + at, a->head) - delta) * scale * (1.0 - t * t);
        for (size_t i = 0; i < a->head; i++) {
            a->dv[at + i] += (float)(p * (double)d_out[i]);
            a->dk[at + i] += (float)(ds * (double)q[i]);
            dq[i] += (float)(ds * (double)k[i]);
        }
    }
}

void dp_plain_attention_backward(const dp_attention *a)
{
    for (size_t row = 0; row < a->length; row++) {
        memset(a->dk + row * a->ld_qkv, 0, a->head * sizeof *a->dk);
        memset(a->dv + row * a->ld_qkv, 0, a->head * sizeof *a->dv);
    }
    for (size_t g = 0; g == 0 || g < a->groups; g++) {
        const dp_attention head = head_of(a, g);
        for (size_t row = 0; row < a->length; row++) {
            backward_row(&head, row);
        }
    }
}

void dp_plain_rope(const dp_rope_rows *rope, bool back)
{
    const size_t half = rope->width / 2;
    for (size_t row = 0; row < rope->rows; row++) {
        const float *angles =
            rope->angles +
            (rope->positions != NULL ? rope->positions[row] : (rope->first + row) % rope->length) *
                rope->width;
        for (size_t group = 0; group < rope->groups; group++) {
            float *x = rope->x + row * rope->ld + group * rope->width;
            for (size_t i = 0; i < half; i++) {
                const double c = (double)angles[i];
                const double s = back ? -(double)angles[half + i] : (double)angles[half + i];
                const double a = (double)x[i];
                const double b = (double)x[half + i];
                x[i] = (float)(a * c - b * s);
                x[half + i] = (float)(b * c + a * s);
            }
        }
    }
}
