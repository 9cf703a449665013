/* The table of backend.h, filled by the engine, and the one function that a plugin exports
 * (compute/backend/plugin.h). */
#include "compute/backend/plugin.h"

#include <stdlib.h>

#include "compute/cuda/engine.h"

const dp_backend *dp_backend_query(uint32_t version);

static uint32_t devices(dp_why *why)
{
    return dp_cuda_devices(dp_cuda_api_of(), why);
}

static dp_status device(uint32_t index, dp_device *out, dp_why *why)
{
    return dp_cuda_device_look(dp_cuda_api_of(), index, out, why);
}

/* A lack of memory has a sentence too, which create tells; the engine goes on without. */
static const char *problem(const dp_engine *e)
{
    return e->device.lost ? e->device.problem.text : "";
}

static const dp_backend *table(void)
{
    static const dp_backend cuda = {
        .magic = DP_BACKEND_MAGIC,
        .version = DP_BACKEND_VERSION,
        .layout = DP_BACKEND_LAYOUT,
        .capabilities = DP_CAN_FP32 | DP_CAN_BF16 | DP_CAN_FP16 | DP_CAN_ADAMW | DP_CAN_LAMB |
                        DP_CAN_LARS | DP_CAN_MUON | DP_CAN_BF16_WEIGHTS | DP_CAN_CODECS,
        .name = "cuda",
        .parts = &dp_cuda_parts,
        .devices = devices,
        .device = device,
        .plan = dp_cuda_plan,
        .create = dp_cuda_create,
        .close = dp_cuda_close,
        .problem = problem,
        .init = dp_cuda_e_init,
        .load = dp_cuda_e_load,
        .values = dp_cuda_e_values,
        .zero = dp_cuda_e_zero,
        .copy = dp_cuda_e_copy,
        .add = dp_cuda_e_add,
        .subtract = dp_cuda_e_subtract,
        .scale = dp_cuda_e_scale,
        .snapshot = dp_cuda_e_snapshot,
        .reset = dp_cuda_e_reset,
        .drop = dp_cuda_e_drop,
        .step = dp_cuda_e_step,
        .gradients = dp_cuda_e_gradients,
        .norm = dp_cuda_e_norm,
        .update = dp_cuda_e_update,
        .lend_state = dp_cuda_e_lend_state,
        .take_state = dp_cuda_e_take_state,
        .updates = dp_cuda_e_updates,
        .loss = dp_cuda_e_loss,
        .logits = dp_cuda_e_logits,
        .encode = dp_cuda_e_encode,
        .encode_start = dp_cuda_e_encode_start,
        .encode_ready = dp_cuda_e_encode_ready,
        .encode_take = dp_cuda_e_encode_take,
        .settle = dp_cuda_e_settle,
        .apply = dp_cuda_e_apply,
        .mix = dp_cuda_e_mix,
    };
    return &cuda;
}

__attribute__((visibility("default"))) const dp_backend *dp_backend_query(uint32_t version)
{
    /* NCCL joins cards of one host only (link.h), so it need not listen where other hosts reach it.
     * The process that loads a plugin has no other thread that reads the environment, and a setting
     * of the owner has priority. */
    DP_IGNORE(setenv("NCCL_SOCKET_IFNAME", "lo", 0) != 0); /* NOLINT(concurrency-mt-unsafe) */
    return version == DP_BACKEND_VERSION ? table() : NULL;
}
