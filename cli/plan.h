/* The needs of a run, before it is created: memory and text as dpnode-worker counts them, and disk
 * space. The command line links no engine. */
#ifndef DP_CLI_PLAN_H
#define DP_CLI_PLAN_H

#include <jansson.h>
#include <stdbool.h>

#include "base/run/manifest.h"

/* The line of dpnode-worker --plan on a backend (NULL: the CPU), owned by the caller; NULL where
 * there is no such program, or it says nothing sensible. */
json_t *dp_plan_ask(const dp_manifest *manifest, const char *backend, uint64_t data_bytes);
/* About how much memory the shards of the text or folder at path will take, before they are made: a
 * folder's are there already, and a text counts as itself, since a token is rarely shorter than the
 * two or four bytes that it takes. 0 where nothing can be read. */
uint64_t dp_plan_data_bytes(const char *path);
/* The plan for a person, on stdout. external: of a run of any model. */
void dp_plan_print(const json_t *plan, bool external);

/* The model of weights to start from, as dpnode-worker --model tells it. False: it cannot be told;
 * the preparation of the run says why. */
bool dp_plan_model(const char *weights, dp_model_config *model);

enum { DP_PLAN_WHY_MAX = 512 };
/* Sets elements of a run of any model by its safetensors file. False: the file cannot be used, and
 * why tells. True also where there is no such program: the preparation of the run says why. */
bool dp_plan_tensors(const char *path, dp_manifest *manifest, char why[DP_PLAN_WHY_MAX]);
/* Whether the data at path holds one sequence to train on. Only a short text is read, which
 * dpnode-worker prepares in a folder that goes again; a long one is believed. False: why tells;
 * true also where there is no such program. */
bool dp_plan_text_holds(const dp_manifest *manifest, const char *path, char why[DP_PLAN_WHY_MAX]);
/* Whether the disk of dir, which need not be there yet, has room for the run (base/run/prepared.h).
 * False: why tells. */
bool dp_plan_disk_holds(const dp_manifest *manifest, uint64_t data_bytes, const char *dir,
                        char why[DP_PLAN_WHY_MAX]);

#endif
