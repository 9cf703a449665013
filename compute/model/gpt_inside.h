/* The engine's buffers and the tasks of a step. Private to gpt_*.c. */
#ifndef DP_COMPUTE_MODEL_GPT_INSIDE_H
#define DP_COMPUTE_MODEL_GPT_INSIDE_H

#include "compute/cpu/ops.h"
#include "compute/model/adapter.h"
#include "compute/model/base_weights.h"
#include "compute/model/gpt.h"

enum {
    DP_GPT_ALIGN_FLOATS = 16, /* 64 bytes: a cache line and the widest vector */
    DP_GPT_SLICE_MAX = 144,   /* tokens: rows of the widest activation fit a 2 MiB cache */
    DP_GPT_RUN_MAX = 8,       /* tiles: the gradients of a run fit a 1 MiB cache */
    DP_GPT_TASKS_MIN = 16,    /* per thread, so that threads end nearly together */
    DP_GPT_COLD = 1 << 24     /* parameters: 64 MiB of gradients exceed every cache */
};

/* Floats that one token has in a buffer of its kind. */
typedef struct dp_gpt_sizes {
    size_t width;    /* C */
    size_t qkv;      /* q, k and v side by side */
    size_t query;    /* heads * head */
    size_t up;       /* into the activation: hidden, or gates and ups */
    size_t hidden;   /* out of it */
    size_t heads;    /* of q */
    size_t kv_heads; /* of k and v */
    size_t one;
} dp_gpt_sizes;

/* The buffers of a layer that are kept from forward to backward, all fp32. N: tokens of the largest
 * batch, rows_max * context. From a step of dp_recompute on, all layers share one buffer
 * (gpt_memory.c has the table). */
typedef struct dp_gpt_layer {
    float *x;     /* [N][C] residual stream before the layer */
    float *norm1; /* [N][C] */
    float *qkv;   /* [N][qkv]; rotated, unless q and k have norms */
    /* [N][qkv]: q and k after their norms, rotated; the columns of v are not used. NULL without */
    float *qk;
    float *q_rstd; /* [N][heads] of those norms */
    float *k_rstd; /* [N][kv heads] */
    float *lse;    /* [rows][heads][length] */
    float *att;    /* [N][query] heads side by side */
    float *out;    /* [N][C] product of att, before the norm behind it; NULL without, as the next */
    float *down;   /* [N][C] product of act, before its norm */
    float *middle; /* [N][C] after attention */
    float *norm2;  /* [N][C] */
    float *hidden; /* [N][up] before the activation */
    float *act;    /* [N][hidden] */
    float *mean1;  /* [N]; RMSNorm does not fill it */
    float *rstd1;
    float *mean2;
    float *rstd2;
    float *rstd_out; /* [N] of the norms of out and down */
    float *rstd_down;
    /* The four matrices as b of a product, and transposed; packs may be shared with the other
     * layers and the head. */
    float *packed[DP_LAYER_SLOTS];
    float *packed_t[DP_LAYER_SLOTS];
} dp_gpt_layer;

/* The adapters of one weight: buffers of all layers. P: their parts. */
typedef struct dp_gpt_adapter {
    float *us;  /* [N][P rank]: input times A, scaled */
    float *ds;  /* [N][P rank]: gradient of the output times B transposed, scaled */
    float *a;   /* packs, of the running layer: [inputs][P rank] */
    float *a_t; /* transposed */
    float *b[DP_MODEL_PARTS_MAX];   /* [rank][columns of the part] */
    float *b_t[DP_MODEL_PARTS_MAX]; /* transposed */
} dp_gpt_adapter;

struct dp_gpt_norm_kind;

/* The direction of products: forward, or backward with transposed weights. */
typedef enum dp_gpt_way { DP_GPT_ONWARD, DP_GPT_BACK, DP_GPT_WAYS } dp_gpt_way;

struct dp_gpt {
    const dp_model *model;       /* the shapes of all weights */
    const dp_model *trained;     /* the model of params and grads: the same, or adapters on it */
    const dp_base_weights *base; /* with adapters: the weights that do not change */
    const dp_ops *ops;
    dp_pool *pool;
    dp_recompute recompute;
    dp_gpt_packs packs;
    const struct dp_gpt_norm_kind *norms;
    const dp_activation *activation;
    dp_gpt_sizes sizes;
    size_t rows_max;
    size_t head;         /* width of a head */
    float softcap;       /* 0: none */
    float embed_scale;   /* of rows of the embedding */
    float scores_scale;  /* 0: 1/sqrt(head) */
    float scores_cap;    /* 0: none */
    size_t scratch_size; /* floats per worker */
    size_t head_tokens;  /* tokens whose logits live at once */
    void *memory;        /* of everything below */

    float *params;
    /* parameters of the running call: params, or those of dp_gpt_look_at */
    const float *weights;
    float *grads;
    bool grads_elsewhere; /* grads are the caller's memory */
    dp_gpt_layer *layers;
    dp_gpt_adapter adapters[DP_LAYER_SLOTS];
    float *angles[DP_ROPE_KINDS]; /* [T][head] of dp_rope_angles; NULL: no layer needs them */
    float *last;                  /* [N][C] residual stream after the last layer */
    float *normed;                /* [N][C] its norm; lives only in the head */
    float *meanf;                 /* [N] */
    float *rstdf;
    float *packed_head; /* the head's weight transposed: logits; shared like those of the layers */
    float *packed_head_t;     /* as it is: back */
    float *logits;            /* [head_tokens][V] */
    float *losses;            /* [N] */
    uint32_t *positions_room; /* [N] */
    float *dx;                /* [N][C] gradient of the residual stream behind the layer ... */
    float *dx_next;           /* ... and before it */
    float *d_middle;          /* [N][C] */
    float *d_att;             /* [N][query] */
    float *d_out;   /* [N][C] gradient before the norm behind attention; NULL without, as ... */
    float *d_down;  /* [N][C] ... of the feed-forward part */
    float *d_norm1; /* [N][C] */
    float *d_norm2;
    float *d_qkv;    /* [N][qkv] */
    float *d_hidden; /* [N][up] */
    float *scratch;  /* [threads][scratch_size] */

    bool stale[DP_GPT_WAYS]; /* kept packs are older than the parameters */
    uint64_t packed_sum;     /* of the parameters that were packed; only with DP_PARANOID */

    /* The batch of the running call. */
    dp_gpt_batch batch;
    /* [N] position of each token in its document, if the batch has marks: positions_room, else
     * NULL */
    const uint32_t *positions;
    struct dp_gpt_cache *cache; /* gpt_decode.c: of tokens before the batch, a row; NULL: none */
    size_t past;                /* their number, else 0 */
    size_t tokens;              /* rows * length */
    size_t slice;               /* tokens of one task */
    size_t layer;               /* layer of the running tasks */
    size_t head_slice;          /* tokens of one task of the head */
    size_t head_first;          /* first token of the running part of the head */
    size_t head_count;
    float scale;
    bool backward;
    bool unwritten; /* gradients of products count as 0, with any bytes in their memory */
    /* unwritten was true when the step began: it writes gradients and does not add */
    bool first_terms;
};

/* Some tokens of the batch. */
typedef struct dp_gpt_range {
    size_t first;
    size_t count;
} dp_gpt_range;

/* The position of a token of the batch, in its document and behind those of the cache. */
static inline size_t dp_gpt_position(const dp_gpt *gpt, size_t token)
{
    return gpt->positions != NULL ? gpt->positions[token] : gpt->past + token % gpt->batch.length;
}

/* The tokens of a task over slices. */
static inline dp_gpt_range dp_gpt_slice(const dp_gpt *gpt, size_t task)
{
    const size_t first = task * gpt->slice;
    const size_t left = gpt->tokens - first;
    return (dp_gpt_range){first, left < gpt->slice ? left : gpt->slice};
}

/* Tokens of a task, so that threads end together and multiply whole groups of rows. Slices only
 * divide work: no sum runs over them, so they may depend on the number of threads. threads > 0. */
size_t dp_gpt_slice_of(size_t tokens, size_t threads);

static inline size_t dp_gpt_slices(size_t tokens, size_t slice)
{
    return (tokens + slice - 1) / slice;
}

/* The first column, of n, of the product of a slice whose first token is `first` of all: threads
 * then read different parts of a weight at a time. */
static inline size_t dp_gpt_begin(size_t first, size_t all, size_t n)
{
    return first * n / all;
}

/* True if gradients of weights are written past the caches. */
static inline bool dp_gpt_cold(const dp_gpt *gpt)
{
    return gpt->trained->n_elements >= DP_GPT_COLD;
}

static inline size_t dp_gpt_tiles(size_t n)
{
    return (n + DP_OPS_TILE - 1) / DP_OPS_TILE;
}

/* Tiles of so many rows of a weight's gradient. */
static inline size_t dp_gpt_row_tiles(const dp_gpt *gpt, size_t rows)
{
    return (rows + gpt->ops->tile_rows - 1) / gpt->ops->tile_rows;
}

/* Columns of a weight's gradient per task, when all tasks have so many tiles: as many tiles side by
 * side as leave every thread enough tasks. */
static inline size_t dp_gpt_run(const dp_gpt *gpt, size_t tiles)
{
    /* Tiles of more rows are more work, so fewer tasks are enough. */
    const size_t least = (size_t)DP_GPT_TASKS_MIN * DP_OPS_TILE / gpt->ops->tile_rows;
    const size_t run = tiles / (least * dp_pool_threads(gpt->pool));
    return DP_OPS_TILE * (run == 0 ? 1 : run > DP_GPT_RUN_MAX ? DP_GPT_RUN_MAX : run);
}

static inline float *dp_gpt_scratch(const dp_gpt *gpt, size_t worker)
{
    return gpt->scratch + worker * gpt->scratch_size;
}

static inline dp_layer_traits dp_gpt_traits(const dp_gpt *gpt)
{
    return dp_model_layer_traits(&gpt->model->config, gpt->layer);
}

/* True: the weights of the model do not change, only adapters do. */
static inline bool dp_gpt_adapts(const dp_gpt *gpt)
{
    return gpt->trained != gpt->model;
}

/* NULL: the model has no such tensor. With adapters: of vectors alone. */
static inline const float *dp_gpt_weight(const dp_gpt *gpt, size_t layer, dp_slot slot)
{
    const dp_tensor *const tensor = dp_model_tensor(gpt->model, layer, slot);
    if (tensor == NULL) {
        return NULL;
    }
    return dp_gpt_adapts(gpt) ? dp_base_weights_vector(gpt->base, tensor)
                              : gpt->weights + tensor->offset;
}

/* NULL with adapters too. */
static inline float *dp_gpt_grad(const dp_gpt *gpt, size_t layer, dp_slot slot)
{
    const dp_tensor *const tensor = dp_model_tensor(gpt->model, layer, slot);
    return tensor == NULL || dp_gpt_adapts(gpt) ? NULL : gpt->grads + tensor->offset;
}

/* dp_gpt_open with a table of operations of the caller's choice, for tests and benches. */
DP_MUST dp_status dp_gpt_open_with(dp_gpt **out, const dp_model *model, size_t rows_max,
                                   dp_pool *pool, const dp_ops *ops);

/* ---- gpt_memory.c */

/* Sets every buffer of gpt, from base on, and returns the floats they take. With base NULL it only
 * counts. Needs the fields that dp_gpt_setup sets; layers may then be NULL. */
size_t dp_gpt_carve(dp_gpt *gpt, float *base);
/* Floats of the packs, kept or shared. */
size_t dp_gpt_packed_floats(const dp_gpt *gpt);
/* The fields that follow from the model and the options. */
dp_gpt dp_gpt_setup(const dp_model *model, const dp_gpt_options *options);

/* ---- gpt_pack.c: the weights as products take them. */

/* Marks the packs as stale: the parameters may change. */
void dp_gpt_packs_stale(dp_gpt *gpt);
/* Call before forward: asserts, with DP_PARANOID, that no parameters were written without
 * dp_gpt_params_to_write. */
void dp_gpt_packs_check(dp_gpt *gpt);
/* Packs the running layer, or the head, unless kept packs are valid. Shared packs live until the
 * next call. */
void dp_gpt_pack_layer(dp_gpt *gpt, dp_gpt_way way);
void dp_gpt_pack_head(dp_gpt *gpt);
/* Marks all packs of this direction as valid. */
void dp_gpt_packs_good(dp_gpt *gpt, dp_gpt_way way);

/* ---- gpt_forward.c */

/* The attention problem of one (row, kv head) of the running layer; tasks of them. */
dp_attention dp_gpt_attention(const dp_gpt *gpt, size_t task, size_t worker);
size_t dp_gpt_attention_tasks(const dp_gpt *gpt);
/* Runs all layers up to gpt->last. */
void dp_gpt_forward(dp_gpt *gpt);
/* Fills the buffers of the running layer that its recompute step does not keep and a slice alone
 * cannot fill. */
void dp_gpt_layer_again(dp_gpt *gpt);

/* ---- gpt_head.c, gpt_backward.c */

/* Head of all tokens: losses; with gpt->backward also dx for the last layer and the head's
 * gradients. */
void dp_gpt_head(dp_gpt *gpt);
/* From dx behind the last layer to all gradients. */
void dp_gpt_backward(dp_gpt *gpt);

#endif
