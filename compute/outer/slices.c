#include "compute/outer/slices.h"

#include <string.h>

#include "base/assert.h"
#include "compute/codec/codec.h"

static const dp_codec floats = {.kind = DP_CODEC_FP32};

/* A run of the sum, where it stood before: the cursor has passed it. */
static dp_status put_run(dp_buf *sum, size_t at, const float *g, size_t length, dp_buf *room)
{
    dp_buf_clear(room);
    DP_TRY(dp_codec_append(&floats, g, at, length, room));
    const size_t from = DP_CODEC_HEADER_BYTES + at * sizeof *g;
    dp_assert(room->size == length * sizeof *g && from + room->size <= sum->size);
    memcpy(sum->data + from, room->data, room->size);
    return DP_OK;
}

static dp_status add_runs(dp_consensus_sum *from, dp_buf *sum, bool anew, dp_buf *room)
{
    const float *g;
    size_t length;
    size_t at = 0;
    DP_TRY(dp_consensus_sum_next(from, &g, &length));
    while (length > 0) {
        DP_TRY(anew ? dp_codec_append(&floats, g, at, length, sum)
                    : put_run(sum, at, g, length, room));
        at += length;
        DP_TRY(dp_consensus_sum_next(from, &g, &length));
    }
    return DP_OK;
}

static dp_status add(dp_buf *sum, size_t n, const dp_view *blobs, const uint32_t *q, size_t n_items,
                     bool steps)
{
    dp_view views[DP_CONSENSUS_ITEMS_MAX] = {dp_buf_view(sum)};
    uint32_t shares[DP_CONSENSUS_ITEMS_MAX] = {UINT32_C(1) << 31};
    const bool anew = sum->size == 0;
    const size_t before = anew ? 0 : 1;
    dp_consensus_sum *from;
    dp_buf room;
    if (n_items == 0 || n_items > DP_SLICE_ITEMS_MAX) {
        return DP_BADARG;
    }
    memcpy(views + before, blobs, n_items * sizeof *blobs);
    memcpy(shares + before, q, n_items * sizeof *q);
    const dp_consensus_items items = {
        .blobs = views, .q = shares, .n = before + n_items, .steps = steps};
    DP_TRY(dp_consensus_sum_open(&from, 0, n, &items));
    dp_buf_init(&room, DP_CODEC_RUN * sizeof(float));
    dp_status status = anew ? dp_codec_header(&floats, n, sum) : DP_OK;
    if (status == DP_OK) {
        status = add_runs(from, sum, anew, &room);
    }
    dp_buf_close(&room);
    dp_consensus_sum_close(from);
    return status;
}

dp_status dp_slice_add(dp_buf *sum, size_t n, const dp_view *blobs, const uint32_t *q,
                       size_t n_items, bool steps)
{
    const dp_status status = add(sum, n, blobs, q, n_items, steps);
    if (status != DP_OK) {
        dp_buf_clear(sum);
    }
    return status;
}
