/* The part of dp_manifest_check about rounds: combinations of exchange settings that do not work
 * together. */
#ifndef DP_BASE_RUN_MANIFEST_ROUNDS_H
#define DP_BASE_RUN_MANIFEST_ROUNDS_H

#include "base/run/manifest.h"

/* DP_BADARG with a sentence. */
DP_MUST dp_status dp_manifest_check_rounds(const dp_manifest *manifest, dp_why *why);

#endif
