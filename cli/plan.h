/* The needs of a run, before it is created: memory and text as dpnode-worker counts them, and disk
 * space. The command line links no engine. */
#ifndef DP_CLI_PLAN_H
#define DP_CLI_PLAN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/run/manifest.h"

/* The line of dpnode-worker --plan on a backend (NULL: the CPU), owned by the caller; NULL without
 * such a program, or if its output is invalid. */
json_t *dp_plan_ask(const dp_manifest *manifest, const char *backend, uint64_t data_bytes);
/* Estimates the memory of the shards of the text or folder at path before they are made: a folder
 * already has them, and a text counts with its own size, since a token rarely has less text than
 * the two or four bytes that it takes. 0 if nothing can be read. */
uint64_t dp_plan_data_bytes(const char *path);
/* The plan for a user, on stdout. external: of a run of any model. */
void dp_plan_print(const json_t *plan, bool external);

/* The model of weights to start from, by dpnode-worker --model. False: unknown; the preparation of
 * the run reports the reason. */
bool dp_plan_model(const char *weights, dp_model_config *model);

enum { DP_PLAN_WHY_MAX = 512 };
/* Sets elements of a run of any model by its safetensors file. False: the file cannot be used; why
 * has the reason. True also without that program: the preparation of the run reports the reason. */
bool dp_plan_tensors(const char *path, dp_manifest *manifest, char why[DP_PLAN_WHY_MAX]);
/* True if the data at path has at least one sequence to train on. Only a short text is checked:
 * dpnode-worker prepares it in a temporary folder; a long one is assumed to have one. False: why
 * has the reason; true also without that program. skip: lines of JSON that cannot be used do not
 * matter. */
bool dp_plan_text_holds(const dp_manifest *manifest, const char *path, bool skip,
                        char why[DP_PLAN_WHY_MAX]);
/* True if the disk of dir, which may not exist yet, has space for the run (base/run/prepared.h).
 * False: why has the reason. */
bool dp_plan_disk_holds(const dp_manifest *manifest, uint64_t data_bytes, const char *dir,
                        char why[DP_PLAN_WHY_MAX]);

#endif
