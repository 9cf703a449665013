/* Adapters beside the products of the engine (gpt_adapters.c); nothing for a weight without them.
 * Private to gpt_*.c. */
#ifndef DP_COMPUTE_MODEL_GPT_ADAPTERS_H
#define DP_COMPUTE_MODEL_GPT_ADAPTERS_H

#include "compute/model/gpt_inside.h"

/* A linear layer seen from its weight: in [N][from], d_out [N][to]. */
typedef struct dp_gpt_product {
    dp_slot slot;
    const float *in;
    const float *d_out;
    size_t from;
    size_t to;
    size_t run; /* columns of a task */
} dp_gpt_product;

/* Packs those of the running layer. */
void dp_gpt_adapters_pack(const dp_gpt *gpt, dp_gpt_way way);
/* out [N][outputs] += their part; in [N][inputs]. */
void dp_gpt_adapters_forward(const dp_gpt *gpt, dp_slot slot, const float *in, float *out,
                             dp_gpt_range range);
/* d_in [N][inputs] at ld += their part. */
void dp_gpt_adapters_back(const dp_gpt *gpt, dp_slot slot, const float *d_out, float *d_in,
                          size_t ld, dp_gpt_range range);
/* The gradients of the running layer, after dp_gpt_adapters_back of all tokens. */
void dp_gpt_adapters_grads(dp_gpt *gpt, const dp_gpt_product *products, size_t n_products);

#endif
