#include "gossip/ledger/density.h"

#include "base/assert.h"
#include "base/sort.h"

dp_density dp_density_first(const dp_manifest *manifest)
{
    const uint32_t most = manifest->codec_keep_most;

    return (dp_density){.densest = manifest->codec_keep,
                        .sparsest = most != 0 ? most : manifest->codec_keep,
                        .keep = manifest->codec_keep,
                        .before = manifest->codec_keep};
}

bool dp_density_moves(const dp_density *density)
{
    return density->sparsest > density->densest;
}

void dp_density_next(dp_density *density, dp_lines lines)
{
    density->before = density->keep;
    density->n_slow = lines == DP_LINES_SLOW ? density->n_slow + 1 : 0;
    density->n_free = lines == DP_LINES_FREE ? density->n_free + 1 : 0;
    if (density->n_slow == DP_DENSITY_SLOW) {
        density->n_slow = 0;
        density->keep *= density->keep < density->sparsest ? 2 : 1;
    }
    if (density->n_free == DP_DENSITY_FREE) {
        density->n_free = 0;
        density->keep /= density->keep > density->densest ? 2 : 1;
    }
}

dp_lines dp_density_lines(uint64_t *waits, uint32_t n, uint64_t round_us)
{
    dp_assert(round_us > 0);
    if (n == 0) {
        return DP_LINES_FIT;
    }
    dp_sort_u64(waits, n); /* At most as many as a node follows. */
    const uint64_t quartile = waits[(3 * n - 1) / 4];
    if (quartile > round_us / DP_DENSITY_SLOW_SHARE) {
        return DP_LINES_SLOW;
    }
    return quartile < round_us / DP_DENSITY_FREE_SHARE ? DP_LINES_FREE : DP_LINES_FIT;
}
