/* `sample`: dpnode-worker draws text from the newest checkpoint, as a process of its own that takes
 * only what the trainer leaves of one processor. */
#ifndef DP_DAEMON_MODEL_SAMPLING_H
#define DP_DAEMON_MODEL_SAMPLING_H

#include "base/trainer/trainer_msg.h"
#include "daemon/control/control.h"

enum { DP_SAMPLINGS_MAX = 2 }; /* at a time; each has the model in memory */
#define DP_SAMPLING_TEMPERATURE_MAX 1000.0

/* Called instead of an answer where there is no checkpoint yet. */
typedef void dp_sampling_without(dp_daemon *daemon, const dp_call *call,
                                 const dp_trainer_msg *question);

/* Replies to call at the end, unless without is called. question: a SAMPLE, copied. The daemon is
 * in a run with a manifest, of a model that dpnode computes. */
void dp_sampling_start(dp_daemon *daemon, const dp_call *call, const dp_trainer_msg *question,
                       dp_sampling_without *without);

/* Packs the reply: the text, its round, where it is from, and how tokens were chosen. */
void dp_sampling_reply(const dp_call *call, const dp_trainer_msg *question, const char *text,
                       uint64_t round, const char *source);

#endif
