/* The job that optim.c gives to the optimizers (optim_layer.c, optim_muon.c). Private to these. */
#ifndef DP_COMPUTE_MODEL_OPTIM_INSIDE_H
#define DP_COMPUTE_MODEL_OPTIM_INSIDE_H

#include "compute/cpu/ops.h"
#include "compute/model/optim.h"

/* Elements of one tensor in one block of the arena; padding belongs to the tensor before it. */
struct dp_optim_piece {
    size_t tensor;
    size_t from;
    size_t to;
};

/* One step of one optimizer. */
typedef struct dp_optim_job {
    const dp_ops *ops;
    dp_optim *optim;
    const dp_optim_options *options;
    /* the weights that the step moves, parameters or masters: element i of the arena is x[i -
     * x_first] */
    float *x;
    size_t x_first;
    const float *grads; /* whole arena */
    float grad_scale;   /* clipping and the loss scale */
    double correct1;    /* 1 - beta1^t */
    double correct2;
    float *params; /* whole arena */
} dp_optim_job;

static inline const dp_tensor *dp_optim_tensor(const dp_optim *optim, const dp_optim_piece *piece)
{
    return &optim->setup.model->tensors[piece->tensor];
}

/* AdamW on one piece. */
void dp_optim_adamw(const dp_optim_job *job, const dp_optim_piece *piece);
/* Whole steps. */
void dp_optim_lamb(dp_optim_job *job, dp_pool *pool);
void dp_optim_lars(dp_optim_job *job, dp_pool *pool);
void dp_optim_muon(dp_optim_job *job, dp_pool *pool);

/* True if Muon takes this tensor: a matrix inside a block of the model. */
bool dp_muon_takes(const dp_tensor *tensor);
/* Scratch for the largest such matrix of the part, for each thread if all together is no more than
 * a vector of the model or 64 MiB. DP_NOMEM. */
DP_MUST dp_status dp_muon_open(dp_muon **out, const dp_optim *optim);
void dp_muon_close(dp_muon *muon); /* Accepts NULL. */
/* Bytes of that, of the whole model. */
size_t dp_muon_scratch_bytes(const dp_model *model, size_t threads);

#endif
