/* Any bytes as a model file of llm.c: a sentence, or a model whose weights are all read and,
 * written again, say the same. */
#include <stdlib.h>
#include <string.h>

#include "compute/format/llmc.h"

enum { PARAMETERS_MAX = 1 << 16, HEADER_FIELDS_BYTES = 28 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Of a small model alone. */
static void read_all(dp_view file, const dp_model_config *config)
{
    dp_model model;
    dp_why why = {{0}};
    if (dp_model_open(&model, config, &why) != DP_OK) {
        abort();
    }
    float *const theta = calloc(model.n_elements, sizeof *theta);
    dp_buf again;
    dp_buf_init(&again, 1 << 24);
    if (theta != NULL) {
        const dp_status status = dp_llmc_read(file, &model, theta, &why);
        if (status != DP_OK && (status != DP_DIVERGED || why.text[0] == '\0')) {
            abort();
        }
        if (status == DP_OK &&
            (dp_llmc_write(&model, theta,
                           file.data[4] == DP_LLMC_FP32 ? DP_LLMC_FP32 : DP_LLMC_BF16, &again,
                           NULL) != DP_OK ||
             memcmp(again.data, file.data, HEADER_FIELDS_BYTES) != 0)) {
            abort();
        }
    }
    dp_buf_close(&again);
    free(theta);
    dp_model_close(&model);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_model_config config;
    dp_why why = {{0}};
    const dp_view file = dp_view_of(data, size);
    if (dp_llmc_config(file, &config, &why) != DP_OK) {
        if (why.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    if (!dp_llmc_is(file)) {
        abort();
    }
    if (dp_model_config_parameters(&config) <= PARAMETERS_MAX) {
        read_all(file, &config);
    }
    return 0;
}
