#include "bench/quality_parts.h"

#include <string.h>

/* Part p of a blob, contiguous. */
static dp_status part_of(const quality_parts *parts, dp_view blob, size_t n, uint32_t p, dp_buf *to)
{
    dp_part_blob cut[DP_PARTS_MAX];
    unsigned __int128 energy;
    DP_TRY(dp_part_cut(blob, n, &parts->cuts, cut, &energy));
    dp_buf_init(to, sizeof cut[p].header + cut[p].runs.size);
    DP_TRY(dp_buf_append(to, dp_view_of(cut[p].header, sizeof cut[p].header)));
    return dp_buf_append(to, cut[p].runs);
}

/* Pieces of one part, and the number of them that remain to be added up. */
typedef struct pieces {
    dp_buf bufs[QUALITY_WORKERS];
    dp_buf subtotal;
    dp_view views[QUALITY_WORKERS];
    uint32_t q[QUALITY_WORKERS];
    uint32_t n;
} pieces;

/* Replaces the pieces from the other site than that of the owner of part p by one sum, in the place
 * of the first. */
static dp_status collect(pieces *all, const dp_codec *codec, dp_part_place place, uint32_t p)
{
    dp_view views[QUALITY_WORKERS];
    uint32_t q[QUALITY_WORKERS];
    dp_part_items items = {.blobs = views, .q = q};
    dp_part_sum sum;
    uint64_t shares = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < all->n; i++) {
        shares += i % 2 != p % 2 ? all->q[i] : 0;
    }
    for (uint32_t i = 0; i < all->n; i++) {
        if (i % 2 != p % 2) {
            views[items.n] = all->views[i];
            q[items.n++] = shares == 0 ? 0 : (uint32_t)(((uint64_t)all->q[i] << 31) / shares);
        }
    }
    if (items.n < 2) {
        return DP_OK;
    }
    dp_buf_init(&all->subtotal, dp_codec_bytes_max(codec, place.n));
    DP_TRY(dp_part_reduce(codec, place, &items, &all->subtotal, &sum));
    for (uint32_t i = 0, seen = 0; i < all->n; i++) {
        const bool far = i % 2 != p % 2;
        if (!far || seen++ == 0) {
            all->views[kept] = far ? dp_buf_view(&all->subtotal) : all->views[i];
            all->q[kept++] = far ? (uint32_t)shares : all->q[i];
        }
    }
    all->n = kept;
    return DP_OK;
}

static dp_status add_up(quality_parts *parts, const dp_codec *codec, dp_part_place place,
                        pieces *all, uint32_t p)
{
    dp_part_sum sum;

    const dp_part_items items = {.blobs = all->views, .q = all->q, .n = all->n};
    DP_TRY(dp_part_reduce(codec, place, &items, &parts->results[p], &sum));
    parts->views[p] = dp_buf_view(&parts->results[p]);
    return DP_OK;
}

static dp_status make_part(quality_parts *parts, const dp_codec *codec, size_t n, pieces *all,
                           const dp_view *blobs, uint32_t p)
{
    dp_part_place place;

    DP_TRY(dp_part_place_of(parts->ranges[p], n, &place));
    for (uint32_t i = 0; i < all->n; i++) {
        DP_TRY(part_of(parts, blobs[i], n, p, &all->bufs[i]));
        all->views[i] = dp_buf_view(&all->bufs[i]);
    }
    if (parts->sums) {
        DP_TRY(collect(all, codec, place, p));
    }
    return add_up(parts, codec, place, all, p);
}

dp_status quality_parts_make(quality_parts *parts, const dp_codec *codec, size_t n,
                             const dp_view *blobs, const uint32_t *q, uint32_t n_blobs)
{
    *parts = (quality_parts){.sums = parts->sums, .cuts = {.n = QUALITY_WORKERS}};
    for (uint32_t p = 0; p < QUALITY_WORKERS; p++) {
        parts->cuts.first[p] = (uint16_t)(DP_PART_WHOLE / QUALITY_WORKERS * p);
    }
    for (uint32_t p = 0; p < QUALITY_WORKERS; p++) {
        parts->ranges[p] = dp_part_range_of(&parts->cuts, p);
        parts->q[p] = UINT32_C(1) << 31;
        dp_buf_init(&parts->results[p], dp_codec_bytes_max(codec, n));
        pieces all = {.n = n_blobs};
        memcpy(all.q, q, n_blobs * sizeof q[0]);
        const dp_status status = make_part(parts, codec, n, &all, blobs, p);
        for (uint32_t i = 0; i < QUALITY_WORKERS; i++) {
            dp_buf_close(&all.bufs[i]);
        }
        dp_buf_close(&all.subtotal);
        DP_TRY(status);
    }
    return DP_OK;
}

void quality_parts_close(quality_parts *parts)
{
    for (uint32_t p = 0; p < QUALITY_WORKERS; p++) {
        dp_buf_close(&parts->results[p]);
    }
}
