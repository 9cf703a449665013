/* The weights that a run begins with, from a Hugging Face folder (hf_import.h) or a file of llm.c
 * (llmc.h), as the objects of its manifest: the state of round 0, or with adapters the base below
 * them. */
#ifndef DP_COMPUTE_FORMAT_FIRST_WEIGHTS_H
#define DP_COMPUTE_FORMAT_FIRST_WEIGHTS_H

#include "base/run/manifest.h"

/* The model of these weights. */
DP_MUST dp_status dp_first_weights_model(const char *path, dp_model_config *config, dp_why *why);
/* Reads them, writes init.state or base.weights (base/run/prepared.h) to folder, and names it in
 * manifest, whose model they must fit. A base that cannot be made is refused before the weights are
 * read (dp_base_file_check). With a sentence. */
DP_MUST dp_status dp_first_weights_write(const char *path, const char *folder,
                                         dp_manifest *manifest, dp_why *why);
/* Writes init.state from n values, with the moments of the run's outer step at zero, and names it
 * in manifest. theta is lost. DP_IO, DP_NOSPACE, DP_TOOBIG, DP_NOMEM, with a sentence. */
DP_MUST dp_status dp_first_state_write(const char *folder, float *theta, size_t n,
                                       dp_manifest *manifest, dp_why *why);

#endif
