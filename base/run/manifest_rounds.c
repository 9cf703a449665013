#include "base/run/manifest_rounds.h"

#include <stddef.h>

/* With gradients the outer step is the optimizer's, on every replica alike
 * (compute/outer/outer_adamw.h), and nothing else moves weights. */
static dp_status check_exchange(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->exchange != DP_EXCHANGE_GRADIENTS) {
        return DP_OK;
    }
    if (manifest->inner_steps_max != 1) {
        return dp_why_set(
            why, DP_BADARG,
            "round.steps_max is %u; with round.mode ddp a round is one step, so it must be 1",
            manifest->inner_steps_max);
    }
    if (manifest->optimizer != DP_OPTIM_ADAMW || manifest->weights != DP_WEIGHTS_FP32) {
        return dp_why_set(why, DP_BADARG,
                          "round.mode ddp needs train.optimizer adamw and train.weights "
                          "fp32, the step that all nodes compute to the last bit");
    }
    if (manifest->outer_mu_milli != 0 || manifest->alpha_milli != 1000) {
        return dp_why_set(why, DP_BADARG,
                          "round.mode ddp steps by train.lr and train.beta1, so "
                          "round.momentum must be 0 and round.alpha 1");
    }
    if (manifest->pairs != DP_OFF) {
        return dp_why_set(why, DP_BADARG,
                          "gradients do not go together with exchanges in pairs: nodes have no "
                          "work of their own to exchange");
    }
    return DP_OK;
}

/* An owner encodes a sum again, and no error feedback keeps that loss. */
static dp_status check_reduce(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->reduce == DP_REDUCE_WHOLE) {
        return DP_OK;
    }
    if (dp_codec_row_of(manifest->codec)->thins) {
        return dp_why_set(why, DP_BADARG,
                          "rounds of parts need a round.codec that keeps every element, such as "
                          "int8 or bf16; a sum "
                          "in codec %s would lose most of it",
                          dp_codec_name(manifest->codec));
    }
    return DP_OK;
}

static dp_status check_site_sums(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->site_sums != DP_OFF && manifest->reduce != DP_REDUCE_PARTS) {
        return dp_why_set(why, DP_BADARG,
                          "sums of sites need rounds of parts: whole updates are not added up on "
                          "their way");
    }
    return DP_OK;
}

static dp_status check_stale(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->stale == DP_OFF) {
        return DP_OK;
    }
    if (manifest->exchange == DP_EXCHANGE_GRADIENTS) {
        return dp_why_set(why, DP_BADARG,
                          "late updates do not go together with gradients: a late gradient counts "
                          "whole in the next publication of its node");
    }
    if (manifest->pairs != DP_OFF) {
        return dp_why_set(why, DP_BADARG,
                          "late updates do not go together with exchanges in pairs: a node does "
                          "not exchange while an update of its own waits for a record");
    }
    if (manifest->reduce != DP_REDUCE_WHOLE) {
        return dp_why_set(why, DP_BADARG,
                          "late updates do not go together with rounds of parts: an update that "
                          "is in no sum when its round ends is in no sum of the next one");
    }
    return DP_OK;
}

/* Halves of codec_keep's elements, down to codec_keep_most's (gossip/ledger/density.h). */
static dp_status check_density(const dp_manifest *manifest, dp_why *why)
{
    const uint32_t most = manifest->codec_keep_most;

    if (most == 0) {
        return DP_OK;
    }
    if (!dp_codec_row_of(manifest->codec)->thins || manifest->exchange == DP_EXCHANGE_GRADIENTS) {
        return dp_why_set(why, DP_BADARG,
                          "a span of densities needs updates in a round.codec that keeps some "
                          "elements only; lines are judged by round.time, which says nothing of a "
                          "gradient");
    }
    if ((most & (most - 1)) != 0 || most <= manifest->codec_keep || most > DP_CODEC_KEEP_MAX) {
        return dp_why_set(why, DP_BADARG,
                          "a span of densities goes from 1 of %u to 1 of %u; the second may be 32, "
                          "64 or 128 and more than the first",
                          manifest->codec_keep, most);
    }
    return DP_OK;
}

/* Parts and lateness are marked in 32 bits of a record. */
static dp_status check_listed(const dp_manifest *manifest, dp_why *why)
{
    const uint32_t most = manifest->contributors_max;

    if (most > DP_MANIFEST_LISTED_DEFAULT && manifest->reduce != DP_REDUCE_WHOLE) {
        return dp_why_set(why, DP_BADARG,
                          "round.contributors_max must be %d in rounds of parts: a sum names "
                          "whose updates are in it among so many",
                          DP_MANIFEST_LISTED_DEFAULT);
    }
    if (most > DP_MANIFEST_LISTED_DEFAULT && manifest->stale != DP_OFF) {
        return dp_why_set(
            why, DP_BADARG,
            "round.contributors_max must be %d with round.mode stale: a record marks late "
            "updates among so many",
            DP_MANIFEST_LISTED_DEFAULT);
    }
    return DP_OK;
}

/* Runs with a step of three times an update diverged, with 1/16 of its elements
 * (docs/BENCHMARKS.md, "Learning quality against bytes"). */
static dp_status check_alpha(const dp_manifest *manifest, dp_why *why)
{
    const double gain = dp_codec_gain(manifest->codec, manifest->codec_keep) / 65536.0;
    const uint32_t most = (uint32_t)(DP_MANIFEST_STEP_MILLI_MAX / gain);

    if (manifest->codec_gain > DP_ON) {
        return dp_why_set(why, DP_BADARG,
                          "whether codecs have gains is %u, which is neither on nor off",
                          (unsigned)manifest->codec_gain);
    }
    if (manifest->codec_gain == DP_ON && manifest->alpha_milli > most) {
        return dp_why_set(
            why, DP_BADARG,
            "round.alpha is %.10g; with round.codec %s it may be 0.001 to %.10g, since an update "
            "of "
            "it is lengthened %.3g times already and steps of more than %.3g in all diverge",
            manifest->alpha_milli / 1000.0, dp_codec_name(manifest->codec), most / 1000.0, gain,
            DP_MANIFEST_STEP_MILLI_MAX / 1000.0);
    }
    return DP_OK;
}

/* Values without a key, as they come from other nodes. */
static dp_status check_keyless(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->feedback_beta_milli > 1000) {
        return dp_why_set(
            why, DP_BADARG,
            "the share of the compression error that is kept is %.10g; it may be 0 to "
            "1",
            manifest->feedback_beta_milli / 1000.0);
    }
    const unsigned switches[] = {(unsigned)manifest->pairs, (unsigned)manifest->exchange,
                                 (unsigned)manifest->stale, (unsigned)manifest->reduce,
                                 (unsigned)manifest->site_sums};
    if (manifest->long_once != DP_OFF &&
        (manifest->long_once != DP_ON || manifest->outer_mu_milli == 0)) {
        return dp_why_set(why, DP_BADARG,
                          "whether long updates count once beyond the momentum is %u; it may be 1 "
                          "with round.momentum and is 0 without",
                          (unsigned)manifest->long_once);
    }
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        if (switches[i] > 1) {
            return dp_why_set(why, DP_BADARG,
                              "pairs, exchange, stale, reduce and site sums are %u, %u, %u, %u and "
                              "%u; each may be 0 or 1",
                              switches[0], switches[1], switches[2], switches[3], switches[4]);
        }
    }
    return DP_OK;
}

bool dp_manifest_judgeable(const dp_manifest *manifest)
{
    return manifest->exchange == DP_EXCHANGE_UPDATES && manifest->pairs == DP_OFF &&
           manifest->reduce == DP_REDUCE_WHOLE && !dp_manifest_external(manifest);
}

static dp_status check_trust(const dp_manifest *manifest, dp_why *why)
{
    if (manifest->trust == DP_TRUST_MEMBERS || dp_manifest_judgeable(manifest)) {
        return DP_OK;
    }
    if (dp_manifest_external(manifest)) {
        return dp_why_set(
            why, DP_BADARG,
            "with model.arch external no voter can evaluate an update, so each counts "
            "without a look: write members: {trust: members} if all members trust "
            "each other");
    }
    const char *const cause = manifest->exchange == DP_EXCHANGE_GRADIENTS
                                  ? "round.mode ddp exchanges gradients"
                              : manifest->pairs != DP_OFF ? "round.mode gossip exchanges in pairs"
                                                          : "rounds of parts exchange sums";
    return dp_why_set(why, DP_BADARG,
                      "%s, which no voter can evaluate, so each counts without a look: write "
                      "members: {trust: members} if all members trust each other, or another mode",
                      cause);
}

dp_status dp_manifest_check_rounds(const dp_manifest *manifest, dp_why *why)
{
    DP_TRY(check_keyless(manifest, why));
    DP_TRY(check_trust(manifest, why));
    DP_TRY(check_alpha(manifest, why));
    DP_TRY(check_exchange(manifest, why));
    DP_TRY(check_reduce(manifest, why));
    DP_TRY(check_site_sums(manifest, why));
    DP_TRY(check_listed(manifest, why));
    DP_TRY(check_stale(manifest, why));
    return check_density(manifest, why);
}
