/* Gradients told while backward goes on. Behind each layer of backward an event; the side stream
 * waits for it and brings the layer's gradients to the host, and the same elements of a vector that
 * no step changes, behind an event of their own. All of a pass is launched before anybody is told,
 * so that the card never waits for who encodes what is told. Such a pass is no graph: an event
 * inside one cannot be told from that of the run before. */
#include "compute/cuda/engine.h"

void dp_cuda_e_on_final(dp_engine *e, dp_backend_final final, dp_vector beside, void *context)
{
    e->final.tell = final;
    e->final.beside = beside;
    e->final.context = context;
}

/* A dp_cuda_net_final. */
static dp_status fetch_piece(void *context, size_t first)
{
    dp_engine *const e = context;
    dp_cuda_final *const f = &e->final;
    dp_cuda_device *const device = &e->device;
    const size_t last = f->pieces == 0 ? e->n : f->first[f->pieces - 1];
    dp_assert(f->pieces < DP_CUDA_PIECES_MAX && first < last);
    cudaEvent_t *const come = &f->come[f->pieces];
    if (*come == NULL) {
        DP_TRY(DP_CUDA(device, event_open, come));
    }
    DP_TRY(DP_CUDA(device, event_record, device->before, device->compute));
    DP_TRY(DP_CUDA(device, stream_wait, device->side, device->before));
    DP_TRY(DP_CUDA(device, copy, e->mirror_other + first, e->grads + first,
                   (last - first) * sizeof *e->grads, DP_CUDA_TO_HOST, device->side));
    if (f->beside != DP_VECTOR_NONE) {
        DP_TRY(DP_CUDA(device, copy, e->mirror + first, dp_cuda_vector(e, f->beside) + first,
                       (last - first) * sizeof *e->grads, DP_CUDA_TO_HOST, device->side));
    }
    DP_TRY(DP_CUDA(device, event_record, *come, device->side));
    f->first[f->pieces++] = first;
    return DP_OK;
}

bool dp_cuda_final_begin(dp_engine *e)
{
    e->final.pieces = 0;
    e->net.final = NULL;
    /* Without memory nothing is reported, which backend.h allows. */
    const bool beside = e->final.beside != DP_VECTOR_NONE;
    if (e->final.tell != NULL && dp_cuda_mirror(e, &e->mirror_other) == DP_OK &&
        (!beside || dp_cuda_mirror(e, &e->mirror) == DP_OK)) {
        e->net.final = fetch_piece;
        e->net.final_context = e;
    }
    return e->net.final != NULL;
}

dp_status dp_cuda_final_end(dp_engine *e, dp_status launched)
{
    dp_cuda_final *const f = &e->final;
    const float *const beside = f->beside == DP_VECTOR_NONE ? NULL : e->mirror;
    dp_status status = launched;
    e->net.final = NULL;
    for (size_t piece = 0; piece < f->pieces && status == DP_OK; piece++) {
        status = dp_cuda_wait_for(&e->device, f->come[piece]);
        if (status == DP_OK) {
            f->tell(f->context, e->mirror_other, beside, f->first[piece]);
        }
    }
    f->here = status == DP_OK;
    if (status != DP_OK) {
        DP_IGNORE(dp_cuda_wait(&e->device, e->device.side)); /* A lost card has ended it. */
    }
    return status;
}

void dp_cuda_final_close(dp_engine *e)
{
    for (size_t i = 0; i < DP_CUDA_PIECES_MAX; i++) {
        if (e->final.come[i] != NULL) {
            DP_IGNORE(e->device.api->event_close(e->final.come[i]) != 0);
        }
    }
    e->final = (dp_cuda_final){0};
}
