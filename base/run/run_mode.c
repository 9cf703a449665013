#include "base/run/run_mode.h"

#include <string.h>

#include "base/nearest.h"

/* DiLoCo's eta and mu: good over rounds of 15, 60 and 100 steps with 2, 4 and 8 workers
 * (docs/BENCHMARKS.md, "The outer step of mode diloco"); published ones are 0.7 and 0.9. */
static const dp_run_mode modes[] = {
    {.name = "sparse",
     .text = "few elements of each update, error feedback; over the internet",
     .codec = DP_CODEC_SPARSE,
     .alpha_milli = 1000},
    {.name = "diloco",
     .text = "whole updates, one byte per element, outer step with momentum; few nodes, fast lines",
     .codec = DP_CODEC_INT8,
     .alpha_milli = 700,
     .outer_mu_milli = 800},
    {.name = "average",
     .text = "plain mean of whole updates in fp32 (local SGD); one local network",
     .codec = DP_CODEC_FP32,
     .alpha_milli = 1000},
    {.name = "gossip",
     .text = "pair exchanges all the time, and a round every two minutes",
     .codec = DP_CODEC_INT8,
     .alpha_milli = 1000,
     .pairs = DP_ON,
     .round_ms = 120000,
     .inner_steps_max = 100000},
    {.name = "ddp",
     .text = "one step per round with the mean gradient in fp32; one local network",
     .codec = DP_CODEC_FP32,
     .alpha_milli = 1000,
     .exchange = DP_EXCHANGE_GRADIENTS,
     .round_ms = 1000,
     .inner_steps_max = 1},
    {.name = "stale",
     .text = "as sparse; a late update counts in the next round, by half",
     .codec = DP_CODEC_SPARSE,
     .alpha_milli = 1000,
     .stale = DP_ON},
};

const dp_run_mode *dp_run_modes(size_t *count)
{
    *count = sizeof modes / sizeof modes[0];
    return modes;
}

const dp_run_mode *dp_run_mode_find(const char *name)
{
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        if (strcmp(modes[i].name, name) == 0) {
            return &modes[i];
        }
    }
    return NULL;
}

const char *dp_run_mode_near(const char *name)
{
    dp_nearest nearest = {.word = name};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        dp_nearest_offer(&nearest, modes[i].name);
    }
    return nearest.best;
}

void dp_run_mode_set(dp_manifest *manifest, const dp_run_mode *mode)
{
    manifest->codec = mode->codec;
    manifest->alpha_milli = mode->alpha_milli;
    manifest->outer_mu_milli = mode->outer_mu_milli;
    manifest->pairs = mode->pairs;
    manifest->exchange = mode->exchange;
    manifest->stale = mode->stale;
    manifest->round_ms = mode->round_ms != 0 ? mode->round_ms : manifest->round_ms;
    manifest->inner_steps_max =
        mode->inner_steps_max != 0 ? mode->inner_steps_max : manifest->inner_steps_max;
    dp_run_decide(manifest, false);
}

void dp_run_decide(dp_manifest *manifest, bool keep_given)
{
    const dp_codec_row *const codec = dp_codec_row_of(manifest->codec);
    const bool moves =
        !keep_given && codec != NULL && codec->thins && manifest->exchange == DP_EXCHANGE_UPDATES;

    manifest->codec_keep_most = moves ? DP_MANIFEST_KEEP_SPARSEST : 0;
    manifest->long_once = manifest->outer_mu_milli > 0 ? DP_ON : DP_OFF;

    const bool parts = manifest->trust == DP_TRUST_MEMBERS && codec != NULL && !codec->thins &&
                       manifest->stale == DP_OFF &&
                       manifest->contributors_max <= DP_MANIFEST_LISTED_DEFAULT;

    manifest->reduce = parts ? DP_REDUCE_PARTS : DP_REDUCE_WHOLE;
    manifest->site_sums = parts ? DP_ON : DP_OFF;
}
