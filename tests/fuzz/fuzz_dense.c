/* Fuzz target of the dense exchange: a message, then its bytes as the part of a chunk whose size the first two bytes say. */
#include <stdlib.h>

#include "base/assert.h"
#include "compute/dense.h"
#include "gossip/dense.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_dense_message message;
    dp_reader reader = dp_reader_of(dp_view_of(data, size));
    const size_t n = dp_read_u16(&reader) % 5000U;
    uint32_t present[8];
    dp_dense_layout layout;
    dp_dense_tally tally;

    if (reader.failed || dp_dense_read(dp_view_of(data + 2, size - 2), &message) != DP_OK) {
        return 0;
    }
    dp_assert(dp_dense_layout_init(&layout, 8 * DP_DENSE_CHUNK_ELEMENTS, 4, NULL) == DP_OK);
    dp_dense_tally_init(&tally, &layout, 1, present);
    for (uint32_t from = 0; from < 5; from++) {
        const dp_dense_verdict verdict = dp_dense_judge(&tally, from, &message);
        if (verdict != DP_DENSE_REFUSED && verdict != DP_DENSE_LATE) {
            dp_dense_count(&tally, from, &message);
            dp_assert(dp_dense_judge(&tally, from, &message) == DP_DENSE_REFUSED);
        }
    }
    float *x = malloc((n + 1) * sizeof *x);
    int64_t *sum = calloc(n + 1, sizeof *sum);
    dp_assert(x != NULL && sum != NULL);
    const dp_status status = dp_dense_check(message.codec, message.bytes, n);
    dp_assert(dp_dense_decode(message.codec, message.bytes, n, x) == status);
    if (status == DP_OK) {
        const uint32_t weight = message.weight == 0 ? 1 : message.weight;
        dp_dense_add(message.codec, message.bytes.data, n, weight, sum);
        dp_dense_mean(sum, n, weight, x);
        for (size_t i = 0; i < n; i++) {
            dp_assert(x[i] > -1e4F && x[i] < 1e4F);
        }
    }
    free(x);
    free(sum);
    return 0;
}
