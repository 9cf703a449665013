/* Any bytes as a safetensors file: tensors that lie inside of it, or a sentence; and what follows
 * when a model looks for its own among them, or takes all of them. */
#include <stdlib.h>

#include "base/alloc.h"
#include "compute/format/safetensors_read.h"
#include "compute/format/tensor_file.h"

enum { VALUES_MAX = 64, MODEL_MAX = 1 << 16 };

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

/* A model of any kind made of the file, written and made again: the same table. */
static void take(const dp_safetensors *file)
{
    dp_buf bytes;
    dp_buf out;
    dp_tensor_table table;
    dp_safetensors *again = NULL;
    dp_why why = {{0}};
    dp_buf_init(&bytes, 2 * (size_t)DP_TENSOR_TABLE_BYTES_MAX);
    dp_buf_init(&out, (size_t)1 << 26);
    if (dp_tensor_file_table(file, &bytes, &why) != DP_OK) {
        if (why.text[0] == '\0') {
            abort();
        }
        dp_buf_close(&bytes);
        return;
    }
    if (dp_tensor_table_open(&table, dp_buf_view(&bytes), &why) != DP_OK) {
        abort();
    }
    float *const vector =
        table.elements <= MODEL_MAX ? dp_alloc((size_t)table.elements, sizeof *vector) : NULL;
    if (vector != NULL && dp_tensor_file_read(file, &table, vector, &why) == DP_OK) {
        const size_t size = bytes.size;
        if (dp_tensor_file_write(&table, vector, &out, &why) != DP_OK ||
            dp_safetensors_open(&again, dp_buf_view(&out), &why) != DP_OK ||
            dp_tensor_file_table(again, &bytes, &why) != DP_OK || bytes.size != 2 * size ||
            !dp_view_equal(dp_view_of(bytes.data, size), dp_view_of(bytes.data + size, size))) {
            abort();
        }
    }
    dp_safetensors_close(again);
    dp_free(vector);
    dp_buf_close(&out);
    dp_buf_close(&bytes);
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
    take(file);
    dp_safetensors_close(file);
    return 0;
}
