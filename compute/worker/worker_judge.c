/* JUDGE: measures a peer's update and answers. */
#include <string.h>

#include "compute/codec/codec.h"
#include "compute/worker/worker_inside.h"

/* The blob is looked at once more: that it was checked is the daemon's word. */
static dp_status judge_blob(const dp_worker *w, const dp_worker_command *c, dp_view blob,
                            dp_judged *out)
{
    dp_codec codec;
    uint64_t elements;
    DP_TRY(dp_codec_peek(blob, &codec, &elements));
    if (!dp_codec_allowed(&codec, dp_trainer_manifest(w->trainer), c->msg.keep)) {
        return DP_BADMSG;
    }
    dp_trainer_update update = {.blob = blob,
                                .scale = c->msg.scale,
                                .tokens = c->msg.tokens < UINT32_MAX ? (uint32_t)c->msg.tokens
                                                                     : UINT32_MAX,
                                .seed = c->msg.seed,
                                .own = c->msg.reach.own,
                                .own_count = c->msg.own_count,
                                .n_ranges = c->msg.n_ranges,
                                .ranges = c->msg.ranges};
    memcpy(update.member, c->msg.member, sizeof update.member);
    return dp_trainer_judge(w->trainer, &update, out);
}

dp_status dp_worker_judge(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    dp_trainer_msg reply = {.kind = DP_TRAINER_JUDGED, .id = c->msg.id};
    dp_view blob;
    dp_status status =
        dp_memfd_map(c->fds[0], dp_codec_bytes_max_any(dp_trainer_elements(w->trainer)), &blob);
    if (status == DP_OK) {
        status = judge_blob(w, c, blob, &reply.judged);
        dp_memfd_unmap(blob);
    }
    if (status == DP_IO) { /* The device, or theta, is gone. */
        return status;
    }
    reply.judged.failed = status != DP_OK; /* No memory included: training is worth more. */
    return dp_worker_answer(w, &reply, NULL, 0);
}
