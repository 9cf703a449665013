/* The arena cut into pieces: where a tensor or a block begins, as optim.c cuts it. */
#include "compute/cuda/optim.h"
#include "compute/model/optim.h"

size_t dp_cuda_optim_table(const dp_model *model, dp_cuda_piece *pieces, dp_cuda_pieces_of *tensors)
{
    size_t count = 0;
    for (size_t t = 0; t < model->n_tensors; t++) {
        const bool last = t + 1 == model->n_tensors;
        const size_t end = last ? model->n_elements : model->tensors[t + 1].offset;
        const size_t first = count;
        size_t from = model->tensors[t].offset;
        while (from < end) {
            const size_t block_end = (from / DP_NORM_BLOCK + 1) * DP_NORM_BLOCK;
            const size_t to = block_end < end ? block_end : end;
            if (pieces != NULL) {
                pieces[count] = (dp_cuda_piece){.from = from,
                                                .to = to,
                                                .tensor = (uint32_t)t,
                                                .decays = model->tensors[t].decay ? 1 : 0};
            }
            count++;
            from = to;
        }
        if (tensors != NULL) {
            tensors[t] = (dp_cuda_pieces_of){.first = (uint32_t)first,
                                             .count = (uint32_t)(count - first),
                                             .decays = model->tensors[t].decay ? 1 : 0};
        }
    }
    return count;
}
