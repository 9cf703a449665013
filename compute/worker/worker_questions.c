/* The commands EVAL and SAMPLE, which may take long: STEP shows meanwhile that the trainer is
 * alive. */
#include <string.h>

#include "compute/unicode/utf8.h"
#include "compute/worker/worker_inside.h"

enum { SAMPLE_BYTES_MAX = 1 << 20 }; /* before it is cut to one message */

void dp_worker_alive(void *context)
{
    dp_worker *const w = context;
    if (dp_worker_step_is_due(w)) {
        DP_IGNORE(dp_worker_tell_step(w)); /* If the daemon is gone, the answer fails as well. */
    }
}

dp_status dp_worker_eval(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    dp_trainer_score score;
    DP_TRY(dp_trainer_eval(w->trainer, NULL, c->msg.tokens, &score));
    const dp_trainer_msg reply = {.kind = DP_TRAINER_EVALUATED,
                                  .loss = score.loss,
                                  .bits_per_byte = score.bits_per_byte,
                                  .tokens = score.tokens};
    return dp_worker_answer(w, &reply, NULL, 0);
}

dp_status dp_worker_sample(dp_worker *w, const dp_worker_command *c, dp_why *why)
{
    (void)why;
    dp_buf text;
    dp_buf_init(&text, SAMPLE_BYTES_MAX);
    dp_trainer_msg reply = {.kind = DP_TRAINER_SAMPLED};
    dp_sampler sampler = {
        .temperature = DP_SAMPLE_TEMPERATURE, .top_k = DP_SAMPLE_TOP_K, .seed = c->msg.seed};
    if (c->msg.top_k != 0) {
        sampler.temperature = (float)c->msg.temperature;
        sampler.top_k = c->msg.top_k;
        sampler.top_p = (float)c->msg.top_p;
    }
    const dp_status status =
        dp_trainer_sample(w->trainer, &sampler, c->msg.text, c->msg.tokens, &text);
    if (status == DP_OK && text.size > 0) {
        memcpy(reply.text, text.data, dp_utf8_fit(dp_buf_view(&text), DP_TRAINER_TEXT_MAX));
    }
    dp_buf_close(&text);
    DP_TRY(status);
    return dp_worker_answer(w, &reply, NULL, 0);
}
