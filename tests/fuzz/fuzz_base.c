/* Any bytes as the weights of a base, of a small model in each number format: a sentence, or a file
 * of the model's size whose weights are all read. Inputs are also taken over and over until they
 * have that size, so that the header behind the length is reached. */
#include <stdlib.h>

#include "compute/model/base_weights.h"

enum { FILE_MAX = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte of it is read. */
static void read_all(const dp_base_weights *base)
{
    float *const theta = calloc(base->model->n_elements, sizeof *theta);
    if (theta != NULL && dp_base_weights_read(base, theta) != DP_OK) {
        abort();
    }
    free(theta);
}

static void open_as(const dp_model *model, dp_base_kind kind, dp_view file)
{
    dp_base_weights base = {.at = NULL};
    dp_why why = {{0}};
    const dp_status status = dp_base_weights_open(&base, model, kind, file, &why);
    if (status == DP_OK) {
        if (file.size != dp_base_weights_bytes(model, kind) || file.data[6] != (uint8_t)kind) {
            abort();
        }
        read_all(&base);
    } else if (status != DP_NOMEM && why.text[0] == '\0') {
        abort();
    }
    dp_base_weights_close(&base);
}

/* data: the kind, then the header, then what follows it, over and over until the file is full. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const dp_model_config shape = {.arch = DP_ARCH_LLAMA,
                                          .layers = 1,
                                          .width = 8,
                                          .heads = 2,
                                          .kv_heads = 1,
                                          .context = 8,
                                          .vocab = 11,
                                          .hidden = 9};
    dp_model model;
    if (size < 2 || dp_model_open(&model, &shape, NULL) != DP_OK) {
        return 0;
    }
    const dp_base_kind kind = (dp_base_kind)(data[0] % DP_BASE_KINDS);
    const uint64_t whole = dp_base_weights_bytes(&model, kind);
    uint8_t *const file = malloc(whole);
    if (file != NULL && whole <= FILE_MAX) {
        for (uint64_t i = 0; i < whole; i++) {
            file[i] = data[1 + i % (size - 1)];
        }
        open_as(&model, kind, dp_view_of(file, whole));
    }
    open_as(&model, kind, dp_view_of(data + 1, size - 1));
    free(file);
    dp_model_close(&model);
    return 0;
}
