/* Commands of rounds of parts: a publication with its parts, and a sum. */
#include <string.h>

#include "base/assert.h"
#include "compute/codec/codec.h"
#include "compute/outer/part.h"
#include "compute/worker/worker_inside.h"

/* Header and runs lie apart. */
static dp_status part_memfd(const dp_part_blob *part, int *fd)
{
    int made;
    DP_TRY(dp_memfd_start("dpnode-part", &made));
    dp_status status = dp_memfd_add(made, dp_view_of(part->header, sizeof part->header));
    if (status == DP_OK) {
        status = dp_memfd_add(made, part->runs);
    }
    if (status == DP_OK) {
        status = dp_memfd_seal(made);
    }
    if (status != DP_OK) {
        dp_worker_close_fds(&made, 1);
        return status;
    }
    *fd = made;
    return DP_OK;
}

dp_status dp_worker_answer_parts(dp_worker *w, dp_trainer_msg *msg, const dp_view views[2])
{
    enum { WHOLES = 2 };
    _Static_assert((int)WHOLES + (int)DP_PARTS_MAX <= (int)DP_TRAINER_FDS_MAX,
                   "a packet has room for all parts");
    dp_part_blob parts[DP_PARTS_MAX];
    int fds[WHOLES + DP_PARTS_MAX];
    uint32_t made = 0;
    dp_status status =
        dp_part_cut(views[0], dp_trainer_elements(w->trainer), &msg->cuts, parts, &msg->energy);
    while (made < WHOLES && status == DP_OK) {
        status = dp_memfd_make("dpnode-update", views[made], &fds[made]);
        made += status == DP_OK;
    }
    while (made < WHOLES + msg->cuts.n && status == DP_OK) {
        status = part_memfd(&parts[made - WHOLES], &fds[made]);
        made += status == DP_OK;
    }
    if (status == DP_OK) {
        status = dp_trainer_send(w->socket, msg, fds, made);
    }
    dp_worker_close_fds(fds, made);
    return status;
}

static void unmap(const dp_view *blobs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        dp_memfd_unmap(blobs[i]);
    }
}

dp_status dp_worker_map_items(const dp_worker *w, const dp_worker_command *c,
                              dp_view blobs[DP_TRAINER_ITEMS_MAX], dp_why *why)
{
    if (c->n_fds != c->msg.n_items) {
        return dp_why_set(why, DP_BADMSG, "%u items came with %u blobs", c->msg.n_items, c->n_fds);
    }
    const uint64_t most = dp_codec_bytes_max_any(dp_trainer_elements(w->trainer));
    for (uint32_t i = 0; i < c->n_fds; i++) {
        const dp_status status = dp_memfd_map(c->fds[i], most, &blobs[i]);
        if (status != DP_OK) {
            unmap(blobs, i);
            return status;
        }
    }
    return DP_OK;
}

void dp_worker_unmap_items(const dp_worker_command *c, const dp_view *blobs)
{
    unmap(blobs, c->n_fds);
}

/* Sums are dense, also where updates keep some elements only: of many updates they hold most
 * places. */
static dp_status reduce_mapped(const dp_worker *w, const dp_worker_command *c, dp_part_place place,
                               const dp_view *blobs)
{
    const dp_codec codec = dp_codec_dense_of_run(dp_trainer_manifest(w->trainer));
    dp_trainer_msg reply = {.kind = DP_TRAINER_REDUCED, .round = c->msg.round, .part = c->msg.part};
    const dp_part_items items = {.blobs = blobs, .q = c->msg.q, .n = c->msg.n_items};
    dp_part_sum sum;
    dp_buf out;
    dp_buf_init(&out, dp_codec_bytes_max(&codec, place.n));
    dp_status status = dp_part_reduce(&codec, place, &items, &out, &sum);
    if (status == DP_OK) {
        const dp_view result = dp_buf_view(&out);
        reply.energy = sum.energy;
        reply.norm = sum.norm;
        reply.error = sum.error;
        status = dp_worker_answer(w, &reply, &result, 1);
    }
    dp_buf_close(&out);
    return status;
}

dp_status dp_worker_reduce(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    dp_view blobs[DP_TRAINER_ITEMS_MAX] = {0};
    dp_part_place place;
    if (dp_part_place_of(c->msg.range, dp_trainer_elements(w->trainer), &place) != DP_OK) {
        return dp_why_set(why, DP_BADARG, "a part from share %u to %u is none", c->msg.range.first,
                          c->msg.range.end);
    }
    DP_TRY(dp_worker_map_items(w, c, blobs, why));
    const dp_status status = reduce_mapped(w, c, place, blobs);
    dp_worker_unmap_items(c, blobs);
    return status;
}

/* ---- A record in slices. */

dp_status dp_worker_add(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    dp_view blobs[DP_TRAINER_ITEMS_MAX] = {0};
    dp_trainer_msg reply = {.kind = DP_TRAINER_ADDED, .round = c->msg.round};
    DP_TRY(dp_worker_map_items(w, c, blobs, why));
    const dp_status status = dp_trainer_add(w->trainer, c->msg.at, blobs, c->msg.q, c->msg.n_items);
    dp_worker_unmap_items(c, blobs);
    if (status == DP_BADARG) {
        return dp_why_set(why, status, "the sum of %u updates before these is not here", c->msg.at);
    }
    DP_TRY(status);
    reply.at = c->msg.at + c->msg.n_items;
    return dp_worker_answer(w, &reply, NULL, 0);
}
