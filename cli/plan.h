/* What training a model takes on this machine, as dpnode-worker counts it: the command line links no engine. */
#ifndef DP_CLI_PLAN_H
#define DP_CLI_PLAN_H

#include <jansson.h>

#include "base/manifest.h"

/* The line of dpnode-worker --plan on a backend (NULL: the CPU), owned by the caller; NULL where there is no such program, or it says nothing sensible. */
json_t *dp_plan_ask(const dp_manifest *manifest, const char *backend, uint64_t data_bytes);
/* About how much memory the shards of what lies at path will take, before they are made: a folder's are there already, and a
 * text counts as itself, since a token is rarely shorter than the two or four bytes that it takes. 0 where nothing can be read. */
uint64_t dp_plan_data_bytes(const char *path);
/* The same for a person, on stdout. */
void dp_plan_print(const json_t *plan);

#endif
