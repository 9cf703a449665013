#include "bench/quality_parts.h"

/* Part p of a blob in one piece. */
static dp_status part_of(const quality_parts *parts, dp_view blob, size_t n, uint32_t p, dp_buf *to)
{
    dp_part_blob cut[DP_PARTS_MAX];
    unsigned __int128 energy;
    DP_TRY(dp_part_cut(blob, n, &parts->cuts, cut, &energy));
    dp_buf_init(to, sizeof cut[p].header + cut[p].runs.size);
    DP_TRY(dp_buf_append(to, dp_view_of(cut[p].header, sizeof cut[p].header)));
    return dp_buf_append(to, cut[p].runs);
}

static dp_status add_up(quality_parts *parts, const dp_codec *codec, size_t n, const dp_view *blobs,
                        const uint32_t *q, uint32_t n_blobs, uint32_t p)
{
    dp_buf pieces[QUALITY_WORKERS] = {0};
    dp_view views[QUALITY_WORKERS];
    dp_part_place place;
    dp_part_sum sum;
    dp_status status = dp_part_place_of(parts->ranges[p], n, &place);
    for (uint32_t i = 0; i < n_blobs && status == DP_OK; i++) {
        status = part_of(parts, blobs[i], n, p, &pieces[i]);
        views[i] = dp_buf_view(&pieces[i]);
    }
    if (status == DP_OK) {
        const dp_part_items items = {.blobs = views, .q = q, .n = n_blobs};
        status = dp_part_reduce(codec, place, &items, &parts->results[p], &sum);
        parts->views[p] = dp_buf_view(&parts->results[p]);
    }
    for (uint32_t i = 0; i < n_blobs; i++) {
        dp_buf_close(&pieces[i]);
    }
    return status;
}

dp_status quality_parts_make(quality_parts *parts, const dp_codec *codec, size_t n,
                             const dp_view *blobs, const uint32_t *q, uint32_t n_blobs)
{
    *parts = (quality_parts){.cuts = {.n = QUALITY_WORKERS}};
    for (uint32_t p = 0; p < QUALITY_WORKERS; p++) {
        parts->cuts.first[p] = (uint16_t)(DP_PART_WHOLE / QUALITY_WORKERS * p);
    }
    for (uint32_t p = 0; p < QUALITY_WORKERS; p++) {
        parts->ranges[p] = dp_part_range_of(&parts->cuts, p);
        parts->q[p] = UINT32_C(1) << 31;
        dp_buf_init(&parts->results[p], dp_codec_bytes_max(codec, n));
        DP_TRY(add_up(parts, codec, n, blobs, q, n_blobs, p));
    }
    return DP_OK;
}

void quality_parts_close(quality_parts *parts)
{
    for (uint32_t p = 0; p < QUALITY_WORKERS; p++) {
        dp_buf_close(&parts->results[p]);
    }
}
