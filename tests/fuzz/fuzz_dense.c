/* Fuzz target of the dense exchange: a message, then its bytes as the part of a chunk whose size the first two bytes say. */
#include <stdlib.h>

#include "base/assert.h"
#include "compute/dense.h"
#include "gossip/dense.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CHUNK = 15 * 1024 };
    dp_dense_message message;
    dp_reader reader = dp_reader_of(dp_view_of(data, size));
    const size_t n = dp_read_u16(&reader) % 5000U;
    uint32_t present[8];
    dp_dense_layout layout;
    dp_dense_tally tally;

    if (reader.failed || dp_dense_read(dp_view_of(data + 2, size - 2), &message) != DP_OK) {
        return 0;
    }
    dp_assert(dp_dense_layout_init(&layout, 8 * CHUNK, 4, NULL, CHUNK) == DP_OK);
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
    size_t n_checked = n;
    if (status == DP_OK) {
        const uint32_t weight = message.weight == 0 ? 1 : message.weight;
        const dp_terms terms = {.codec = message.codec,
                                .begun = true,
                                .n_parts = 1,
                                .n = n,
                                .x = x,
                                .sum = sum,
                                .parts = {message.bytes.data},
                                .weights = {weight}};
        uint8_t *out = malloc(4 * n + 64);
        dp_assert(out != NULL);
        dp_assert(dp_dense_add(&terms) == DP_OK);
        /* Twice the part by twice its weight: what a peer says at most is just beyond what int8 can say. */
        const dp_status made = dp_dense_mean(&terms, 2 * (uint64_t)weight, out);
        dp_assert(made == DP_OK || (made == DP_DIVERGED && message.codec == DP_DENSE_INT8));
        free(out);
        if (made != DP_OK) {
            n_checked = 0;
        }
        for (size_t i = 0; i < n_checked; i++) {
            dp_assert(x[i] > -1e4F && x[i] < 1e4F);
        }
    }
    free(x);
    free(sum);
    return 0;
}
