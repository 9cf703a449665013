/* Any bytes as a table of tensors: a sentence, or rows that make the same bytes again. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/run/model_config.h"
#include "compute/model/tensor_table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_again(const dp_tensor_table *table, dp_view whole)
{
    dp_tensor_row *const rows = dp_alloc(table->n_tensors, sizeof *rows);
    dp_tensor_walk walk = {0};
    dp_tensor_row row;
    uint64_t elements = 0;
    dp_buf out;
    uint32_t n = 0;
    dp_buf_init(&out, DP_TENSOR_TABLE_BYTES_MAX);
    while (rows != NULL && dp_tensor_table_next(table, &walk, &row)) {
        if (n == table->n_tensors || row.offset != elements || row.elements == 0) {
            abort();
        }
        elements += row.elements;
        rows[n++] = row;
    }
    if (rows != NULL &&
        (n != table->n_tensors || elements != table->elements || elements > DP_MODEL_ELEMENTS_MAX ||
         dp_tensor_table_write(rows, n, &out, NULL) != DP_OK ||
         !dp_view_equal(dp_buf_view(&out), whole))) {
        abort();
    }
    dp_buf_close(&out);
    dp_free(rows);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_tensor_table table;
    dp_why why = {{0}};
    const dp_view whole = dp_view_of(data, size);
    if (dp_tensor_table_open(&table, whole, &why) == DP_OK) {
        write_again(&table, whole);
    } else if (why.text[0] == '\0') {
        abort();
    }
    return 0;
}
