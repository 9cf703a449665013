/* Any bytes as a GGUF file: tensors that lie inside of it, or a sentence. */
#include <stdlib.h>

#include "compute/format/gguf_read.h"

enum { ELEMENTS_MAX = 4096 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_gguf *file;
    uint32_t type = 0;
    dp_view value;
    dp_why why = {{0}};
    if (dp_gguf_open(&file, dp_view_of(data, size), &why) != DP_OK) {
        if (why.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    for (size_t i = 0; i < dp_gguf_count(file); i++) {
        const dp_gguf_tensor *const tensor = dp_gguf_at(file, i);
        float values[ELEMENTS_MAX];
        if (tensor->bytes.size > 0 &&
            (tensor->bytes.data < data || tensor->bytes.data + tensor->bytes.size > data + size)) {
            abort();
        }
        if (tensor->elements <= ELEMENTS_MAX) {
            dp_gguf_floats(tensor, values);
        }
    }
    if (dp_gguf_value(file, "general.architecture", &type, &value) == DP_OK && value.size > 0 &&
        (value.data < data || value.data + value.size > data + size)) {
        abort();
    }
    dp_gguf_close(file);
    return 0;
}
