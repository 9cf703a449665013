/* Any bytes as a safetensors file: tensors that lie inside of it, or a sentence; and what follows
 * when a model looks for its own among them. */
#include <stdlib.h>

#include "compute/format/safetensors_read.h"

enum { VALUES_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const dp_safetensors *file, const char *name, dp_view whole)
{
    dp_safetensors_tensor tensor;
    float values[VALUES_MAX];
    if (dp_safetensors_find(file, name, &tensor) != DP_OK || tensor.bytes.data < whole.data ||
        tensor.bytes.data + tensor.bytes.size > whole.data + whole.size) {
        abort();
    }
    const size_t n = tensor.elements < VALUES_MAX ? (size_t)tensor.elements : VALUES_MAX;
    const dp_status first = dp_safetensors_floats(&tensor, 0, n, values);
    const dp_status last = dp_safetensors_floats(&tensor, tensor.elements - n, n, values);
    if (first == DP_BADARG || last == DP_BADARG) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_safetensors *file;
    dp_why why = {{0}};
    const dp_view whole = dp_view_of(data, size);
    if (dp_safetensors_open(&file, whole, &why) != DP_OK) {
        if (why.text[0] == '\0') {
            abort();
        }
        return 0;
    }
    for (const char *name = dp_safetensors_next(file, NULL); name != NULL;
         name = dp_safetensors_next(file, name)) {
        look(file, name, whole);
    }
    dp_safetensors_close(file);
    return 0;
}
