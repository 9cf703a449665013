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

/* ---- Parts that are told before their publication. */

static void drop_open(dp_worker_early *early)
{
    if (early->has_open) {
        dp_worker_close_fds(&early->open, 1);
    }
    early->has_open = false;
}

static void drop_part(dp_worker_early *early, uint32_t part)
{
    if ((early->told >> part & 1U) != 0) {
        dp_worker_close_fds(&early->fds[part], 1);
    }
    early->told &= ~(1U << part);
}

void dp_worker_forget_early(dp_worker *w)
{
    drop_open(&w->early);
    for (uint32_t p = 0; p < DP_PARTS_MAX; p++) {
        drop_part(&w->early, p);
    }
}

static dp_status add_piece(dp_worker_early *early, dp_view piece)
{
    if (!early->has_open) {
        DP_TRY(dp_memfd_start("dpnode-part", &early->open));
        early->has_open = true;
    }
    return dp_memfd_add(early->open, piece);
}

static dp_status tell_part(dp_worker *w, uint32_t part)
{
    dp_worker_early *const early = &w->early;
    const dp_trainer_msg msg = {.kind = DP_TRAINER_EARLY,
                                .round = early->round,
                                .part = part,
                                .range = dp_part_range_of(&early->cuts, part)};
    DP_TRY(dp_memfd_seal(early->open));
    DP_TRY(dp_trainer_send(w->socket, &msg, &early->open, 1));
    early->fds[part] = early->open;
    early->told |= 1U << part;
    early->has_open = false;
    return DP_OK;
}

/* The next batch may begin before TRAIN, so its round follows from the state. */
static void begin_part(dp_worker *w, uint32_t part)
{
    dp_worker_early *const early = &w->early;
    const uint64_t round = dp_trainer_round(w->trainer) + 1;
    if (round != early->round) {
        dp_worker_forget_early(w);
        early->round = round;
    }
    drop_open(early); /* Of one that did not end. */
    drop_part(early, part);
    early->failed = false;
}

/* A dp_trainer_take_part. A part that cannot be sent now goes with the publication, which also
 * notices a lost daemon. */
static void take_part(void *context, uint32_t part, size_t at, dp_view piece, bool last)
{
    dp_worker *const w = context;
    dp_worker_early *const early = &w->early;
    if (at == 0) {
        begin_part(w, part);
    }
    early->failed =
        early->failed || add_piece(early, piece) != DP_OK || (last && tell_part(w, part) != DP_OK);
}

void dp_worker_tell_early(dp_worker *w, const dp_part_cuts *cuts)
{
    dp_worker_early *const early = &w->early;
    if (memcmp(cuts, &early->cuts, sizeof *cuts) != 0) {
        dp_worker_forget_early(w);
    }
    early->cuts = *cuts;
    dp_trainer_on_part(w->trainer, cuts->n > 0 ? cuts : NULL, take_part, w);
}

static bool is_same(int fd, const dp_part_blob *part)
{
    const uint64_t size = sizeof part->header + part->runs.size;
    dp_view told;
    if (dp_memfd_map(fd, size, &told) != DP_OK) {
        return false;
    }
    const bool same =
        told.size == size && memcmp(told.data, part->header, sizeof part->header) == 0 &&
        memcmp(told.data + sizeof part->header, part->runs.data, part->runs.size) == 0;
    dp_memfd_unmap(told);
    return same;
}

/* A step that was dropped, or a record in between, and it is another. */
static bool was_told(const dp_worker *w, uint32_t p, const dp_trainer_msg *msg,
                     const dp_part_blob *part)
{
    const dp_worker_early *const early = &w->early;
    return (early->told >> p & 1U) != 0 && early->round == msg->round &&
           memcmp(&early->cuts, &msg->cuts, sizeof early->cuts) == 0 &&
           is_same(early->fds[p], part);
}

/* ---- A publication. */

/* The file of part p: the one sent as EARLY, or a new one. */
static dp_status part_file(dp_worker *w, uint32_t p, const dp_trainer_msg *msg,
                           const dp_part_blob *part, int *fd)
{
    if (!was_told(w, p, msg, part)) {
        return part_memfd(part, fd);
    }
    *fd = w->early.fds[p];
    w->early.told &= ~(1U << p);
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
        const uint32_t p = made - WHOLES;
        status = part_file(w, p, msg, &parts[p], &fds[made]);
        made += status == DP_OK;
    }
    if (status == DP_OK) {
        status = dp_trainer_send(w->socket, msg, fds, made);
    }
    dp_worker_close_fds(fds, made);
    dp_worker_forget_early(w);
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
