/* Any bytes as config.json: a model that can exist and is described the same again, or a
 * sentence. */
#include <stdlib.h>
#include <string.h>

#include "compute/format/hf_config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_model_config config;
    dp_model_config again;
    dp_buf text;
    dp_why why = {{0}};
    if (dp_hf_config_read(dp_view_of(data, size), &config, &why) != DP_OK) {
        if (why.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    dp_buf_init(&text, 32768);
    if (dp_model_config_check(&config, NULL) != DP_OK ||
        dp_hf_config_write(&config, &text, NULL) != DP_OK ||
        dp_hf_config_read(dp_buf_view(&text), &again, NULL) != DP_OK ||
        memcmp(&config, &again, sizeof config) != 0) {
        abort();
    }
    dp_buf_close(&text);
    return 0;
}
