/* Named modes of exchange: round.mode of a manifest file. A mode sets other keys and is not stored
 * itself. Tables only. */
#ifndef DP_BASE_RUN_RUN_MODE_H
#define DP_BASE_RUN_RUN_MODE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/run/manifest.h"

typedef struct dp_run_mode {
    const char *name; /* "diloco" */
    const char *text; /* one sentence */
    dp_codec_kind codec;
    uint32_t alpha_milli;
    uint32_t outer_mu_milli;
    dp_switch pairs;
    dp_exchange_kind exchange;
    dp_switch stale;
    uint32_t round_ms;        /* 0: unchanged */
    uint32_t inner_steps_max; /* the same */
} dp_run_mode;

/* The first row is the mode of a manifest without one. */
const dp_run_mode *dp_run_modes(size_t *count);
/* NULL: no mode has this name. */
const dp_run_mode *dp_run_mode_find(const char *name);
/* The name nearest to an unknown one (nearest.h); NULL: none is near. */
const char *dp_run_mode_near(const char *name);
/* Sets codec, alpha and momentum of the outer step, pairs, exchange and stale; also time and steps
 * of a round if the mode has them; and what follows from these (dp_run_decide). */
void dp_run_mode_set(dp_manifest *manifest, const dp_run_mode *mode);
/* Sets the fields that no key sets and that follow from the keys: the span of densities, and
 * whether owners sum parts, with sums of sites. Parts have no judge, so they need members that
 * trust each other, a codec that keeps every element, no late updates, and 32 contributors at most.
 * keep_given: round.codec_keep was given, so the density is steady.
 * docs/decisions/050-what-a-run-decides.md */
void dp_run_decide(dp_manifest *manifest, bool keep_given);

#endif
