/* Reads checkpoints to the end, as the daemon does over several jobs. */
#ifndef DP_TESTS_UNIT_STORE_CKPT_KIT_H
#define DP_TESTS_UNIT_STORE_CKPT_KIT_H

#include "store/ckpt.h"

static inline dp_status take_tensors(void *context, dp_view chunk)
{
    return dp_buf_append(context, chunk);
}

/* The newest one that is whole. tensors: NULL, or gets its state. n_bad may be NULL. */
static inline dp_status load_ckpt(dp_store *store, const dp_hash *run, dp_ckpt *ckpt,
                                  dp_buf *tensors, uint32_t *n_bad)
{
    dp_ckpt_reading reading = {
        .run = *run, .pieces = {.take = tensors != NULL ? take_tensors : NULL, .context = tensors}};
    dp_status status = DP_AGAIN;
    while (status == DP_AGAIN) {
        if (tensors != NULL && !reading.begun) {
            dp_buf_clear(tensors);
        }
        status = dp_ckpt_read(store, &reading);
    }
    if (n_bad != NULL) {
        *n_bad = reading.n_bad;
    }
    if (status == DP_OK) {
        *ckpt = reading.ckpt;
    }
    return status;
}

static inline dp_status verify_ckpts(dp_store *store, const dp_hash *run, uint32_t *n_good,
                                     uint32_t *n_bad)
{
    dp_ckpt_reading reading = {.run = *run};
    dp_status status = DP_AGAIN;
    while (status == DP_AGAIN || status == DP_OK) {
        status = dp_ckpt_read(store, &reading);
    }
    *n_good = reading.n_good;
    *n_bad = reading.n_bad;
    return status == DP_NOTFOUND ? DP_OK : status;
}

#endif
