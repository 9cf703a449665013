/* How many elements of an update travel in a round (codec_keep .. codec_keep_most of the manifest,
 * 1 of 32 .. 1 of 128 where its file names none): a pure function of the chain, so every node that
 * holds the same records wants the same, after a restart, a snapshot or a fork too. Integers only.
 *
 * Each ROUND record says how the lines were (dp_lines), as the voter saw it that proposed it; a
 * voter is trusted with that as with the record's time. SLOW in DP_DENSITY_SLOW records in a row
 * halves the elements from the next round on, FREE in DP_DENSITY_FREE in a row doubles them, within
 * the span; then, and after any other word, counting begins anew. So one voter that sees the lines
 * otherwise than the rest moves nothing where voters take turns. It reacts sooner to slow lines
 * than to free ones, and the gap between the two bounds is a factor of four, so that no step leads
 * to the other bound. */
#ifndef DP_GOSSIP_LEDGER_DENSITY_H
#define DP_GOSSIP_LEDGER_DENSITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/run/manifest.h"
#include "gossip/record/record.h"

enum {
    DP_DENSITY_SLOW = 3,
    DP_DENSITY_FREE = 8,
    DP_DENSITY_SLOW_SHARE = 4, /* of a round: longer than a quarter for updates is slow */
    DP_DENSITY_FREE_SHARE = 16
};

typedef struct dp_density {
    uint32_t densest;  /* one element of so many travels; of the manifest */
    uint32_t sparsest; /* densest: no span, nothing moves */
    uint32_t keep;     /* of the round to come */
    uint32_t before;   /* of the newest round: updates that came too late for it (mode stale) */
    uint32_t n_slow;   /* ROUND records in a row that say so */
    uint32_t n_free;
} dp_density;

/* Before the first record: the densest. */
dp_density dp_density_first(const dp_manifest *manifest);
/* Has the manifest a span? Without one records say nothing of lines. */
bool dp_density_moves(const dp_density *density);
/* The next ROUND record says this. */
void dp_density_next(dp_density *density, dp_lines lines);
/* From the time that a voter waited for each update, from its READY until it was here (UINT64_MAX:
 * it has not come): by the upper quartile, waits[(3 n - 1) / 4] of them in order, that of the
 * slowest where they are three or fewer. SLOW above a quarter of round_us, FREE below a sixteenth,
 * else FIT, as without any. waits is sorted. */
dp_lines dp_density_lines(uint64_t *waits, uint32_t n, uint64_t round_us);

#endif
