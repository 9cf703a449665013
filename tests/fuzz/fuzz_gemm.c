/* Any bytes as the file of algorithms of products; what is read is written so that it reads as the
 * same. */
#include <stdlib.h>
#include <string.h>

/* Of a library that is not built for fuzzing, and plain C. */
#include "compute/cuda/gemm_cache.c" /* NOLINT(bugprone-suspicious-include) */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    dp_gemm_cache first = {0};
    dp_gemm_cache second = {0};
    dp_buf text;
    dp_buf_init(&text, DP_GEMM_CACHE_BYTES_MAX);
    if (dp_gemm_cache_open(&first, "", "", "") == DP_OK &&
        dp_gemm_cache_open(&second, "", "", "") == DP_OK) {
        dp_gemm_cache_read(&first, dp_view_of(data, size), "card");
        if (dp_gemm_cache_write(&first, "card", &text) != DP_OK) {
            abort();
        }
        dp_gemm_cache_read(&second, dp_buf_view(&text), "card");
        if (second.count != first.count ||
            memcmp(second.found, first.found, first.count * sizeof *first.found) != 0) {
            abort();
        }
    }
    dp_buf_close(&text);
    dp_gemm_cache_close(&second);
    dp_gemm_cache_close(&first);
    return 0;
}
