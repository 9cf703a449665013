/* A model made for optimizers: few tensors of odd shapes over several blocks of the arena, and
 * draws of weights and gradients for it. */
#ifndef DP_TESTS_UNIT_COMPUTE_OPTIM_RIG_H
#define DP_TESTS_UNIT_COMPUTE_OPTIM_RIG_H

#include "tests/lib/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "compute/model/optim.h"

enum { RIG_TENSORS = 7 };

typedef struct rig {
    dp_tensor tensors[RIG_TENSORS];
    dp_model model;
    float *params;
    float *grads;
} rig;

static inline void rig_draw(const rig *r, float *x, uint64_t seed, float scale)
{
    dp_rng rng;
    dp_rng_init(&rng, seed);
    for (size_t t = 0; t < r->model.n_tensors; t++) {
        for (size_t i = 0; i < r->tensors[t].elements; i++) {
            x[r->tensors[t].offset + i] =
                scale * ((float)dp_rng_below(&rng, 2001) / 1000.0F - 1.0F);
        }
    }
}

static inline void rig_open(rig *r)
{
    static const struct {
        const char *name;
        size_t shape[2];
        dp_slot slot;
    } rows[RIG_TENSORS] = {
        {"transformer.wte.weight", {301, 223}, DP_SLOT_EMBED}, /* 67,123 elements: two blocks */
        {"transformer.h.0.wide.weight", {31, 65}, DP_LAYER_QKV_W},
        {"transformer.h.0.bias", {33, 1}, DP_LAYER_QKV_B},
        {"transformer.h.0.tall.weight", {101, 33}, DP_LAYER_DOWN_W},
        {"transformer.h.1.square.weight", {40, 40}, DP_LAYER_OUT_W},
        {"transformer.h.1.row.weight", {1, 7}, DP_LAYER_UP_W},
        {"transformer.ln_f.weight", {257, 1}, DP_SLOT_NORM_W},
    };
    /* q has 25 columns, k and v have 20 each. */
    *r = (rig){.model = {.n_tensors = RIG_TENSORS, .config = {.heads = 5, .head_width = 5}}};
    size_t at = 0;
    for (size_t t = 0; t < RIG_TENSORS; t++) {
        dp_tensor *const tensor = &r->tensors[t];
        const bool matrix =
            strstr(rows[t].name, "bias") == NULL && strstr(rows[t].name, "ln_") == NULL;
        snprintf(tensor->name, sizeof tensor->name, "%s", rows[t].name);
        tensor->slot = rows[t].slot;
        tensor->n_dims = matrix ? 2 : 1;
        tensor->shape[0] = rows[t].shape[0];
        tensor->shape[1] = rows[t].shape[1];
        tensor->offset = at;
        tensor->elements = tensor->shape[0] * tensor->shape[1];
        tensor->decay = matrix;
        at += (tensor->elements + DP_ARENA_ALIGN - 1) / DP_ARENA_ALIGN * DP_ARENA_ALIGN;
    }
    r->model.tensors = r->tensors;
    r->model.n_elements = at;
    r->params = calloc(at, sizeof(float));
    r->grads = calloc(at, sizeof(float));
    rig_draw(r, r->params, 99, 0.5F);
    rig_draw(r, r->grads, 1, 1.0F);
}

static inline void rig_close(rig *r)
{
    free(r->params);
    free(r->grads);
}

static const dp_optim_kind rig_kinds[] = {DP_OPTIM_ADAMW, DP_OPTIM_LAMB, DP_OPTIM_LARS,
                                          DP_OPTIM_MUON};
enum { RIG_KINDS = sizeof rig_kinds / sizeof rig_kinds[0] };

static const dp_optim_options rig_options = {.lr = 1e-2F,
                                             .beta1 = 0.9F,
                                             .beta2 = 0.95F,
                                             .eps = 1e-6F,
                                             .decay = 0.1F,
                                             .clip = 1.0F,
                                             .momentum = 0.95F};

#endif
