/* What training a model takes on this machine, as dpnode-worker counts it: the command line links no engine. */
#ifndef DP_CLI_PLAN_H
#define DP_CLI_PLAN_H

#include <jansson.h>

#include "base/manifest.h"

/* The line of dpnode-worker --plan on a backend (NULL: the CPU), owned by the caller; NULL where there is no such program, or it says nothing sensible. */
json_t *dp_plan_ask(const dp_manifest *manifest, const char *backend);
/* The same for a person, on stdout. */
void dp_plan_print(const json_t *plan);

#endif
