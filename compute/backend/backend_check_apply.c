/* The self-test's outer steps: on whole updates, and on results of parts. */
#include "compute/backend/backend_check_inside.h"
#include "compute/cpu/half.h"
#include "compute/outer/part.h"

enum { PARTS = 3 };

static dp_status apply(dp_twins *t, const dp_consensus_items *items, const dp_outer *outer,
                       const char *after)
{
    dp_outer_seen seen[2];
    for (int twin = 0; twin < 2; twin++) {
        DP_TRY(dp_twins_told(t, twin, "apply",
                             t->of[twin]->apply(t->engines[twin], items, outer, &seen[twin])));
    }
    DP_TRY(dp_twins_same(t, DP_VECTOR_THETA, after));
    DP_TRY(dp_twins_same(t, DP_VECTOR_M, after));
    if (seen[0].reach != seen[1].reach ||
        dp_float_bits(seen[0].eta) != dp_float_bits(seen[1].eta) ||
        dp_float_bits(seen[0].in_m) != dp_float_bits(seen[1].in_m) ||
        dp_float_bits(seen[0].once) != dp_float_bits(seen[1].once)) {
        return dp_twins_differ(t, "reach of the outer step", seen[0].reach, seen[1].reach);
    }
    return DP_OK;
}

dp_status dp_twins_apply(dp_twins *t, const dp_consensus_items *items, const dp_outer *outer)
{
    return apply(t, items, outer, "a round");
}

/* The blob's parts, each in one piece. */
static dp_status cut(dp_view blob, size_t n, const dp_part_cuts *cuts, dp_buf pieces[PARTS])
{
    dp_part_blob parts[DP_PARTS_MAX];
    unsigned __int128 energy;
    DP_TRY(dp_part_cut(blob, n, cuts, parts, &energy));
    for (uint32_t p = 0; p < PARTS; p++) {
        DP_TRY(dp_buf_append(&pieces[p], dp_view_of(parts[p].header, sizeof parts[p].header)));
        DP_TRY(dp_buf_append(&pieces[p], parts[p].runs));
    }
    return DP_OK;
}

dp_status dp_twins_apply_parts(dp_twins *t, dp_view blob, const dp_outer *outer)
{
    static const dp_part_cuts cuts = {.n = PARTS, .first = {0, 22000, 44000}};
    static const uint32_t q[] = {0x50000000U, 0x80000000U};
    const size_t n = t->model.n_elements;
    dp_buf pieces[PARTS];
    dp_part_place places[DP_PARTS_MAX];
    for (uint32_t p = 0; p < PARTS; p++) {
        dp_buf_init(&pieces[p], dp_codec_bytes_max_any(n));
    }
    dp_status status = cut(blob, n, &cuts, pieces);
    if (status == DP_OK) {
        const dp_view views[] = {dp_buf_view(&pieces[0]), dp_buf_view(&pieces[2])};
        const dp_part_range ranges[] = {dp_part_range_of(&cuts, 0), dp_part_range_of(&cuts, 2)};
        const dp_part_results results = {.ranges = ranges, .blobs = views, .q = q, .n = 2};
        const dp_consensus_items items = {.blobs = views, .q = q, .places = places, .n = 2};
        status = dp_part_places(&results, n, places);
        status = status == DP_OK ? apply(t, &items, outer, "a round of parts") : status;
    }
    for (uint32_t p = 0; p < PARTS; p++) {
        dp_buf_close(&pieces[p]);
    }
    return status;
}
