#include "compute/format/first_weights.h"

#include <string.h>

#include "base/alloc.h"
#include "base/run/prepared.h"
#include "compute/format/base_file.h"
#include "compute/format/hf_import.h"
#include "compute/format/llmc.h"
#include "compute/machine/files.h"
#include "compute/machine/memory.h"
#include "compute/model/state.h"

typedef struct weights {
    const char *path;
    bool is_file;
    dp_view bytes; /* of the file */
} weights;

static dp_status open_weights(weights *w, const char *path, dp_why *why)
{
    *w = (weights){.path = path, .is_file = !dp_folder_is(path)};
    return w->is_file ? dp_file_map_path(path, &w->bytes, why) : DP_OK;
}

static dp_status config_of(const weights *w, dp_model_config *config, dp_why *why)
{
    return w->is_file ? dp_llmc_config(w->bytes, config, why)
                      : dp_hf_import_config(w->path, config, why);
}

dp_status dp_first_weights_model(const char *path, dp_model_config *config, dp_why *why)
{
    weights w;
    DP_TRY(open_weights(&w, path, why));
    const dp_status status = config_of(&w, config, why);
    dp_file_unmap(w.bytes);
    return status;
}

static dp_status encode_state(const dp_manifest *manifest, float *theta, size_t n, dp_buf *state)
{
    const uint32_t moments = dp_manifest_moments(manifest);
    DP_TRY(dp_state_write_header(0, n, moments, state));
    DP_TRY(dp_floats_write(theta, n, state));
    memset(theta, 0, n * sizeof *theta);
    for (uint32_t i = 0; i < moments; i++) {
        DP_TRY(dp_floats_write(theta, n, state));
    }
    return DP_OK;
}

dp_status dp_first_state_write(const char *folder, float *theta, size_t n, dp_manifest *manifest,
                               dp_why *why)
{
    dp_buf state;
    dp_buf_init(&state, DP_OBJECT_BYTES_MAX);
    dp_status status = encode_state(manifest, theta, n, &state);
    if (status != DP_OK) {
        status = dp_why_set(why, status, "the first state: %s", dp_status_text(status));
    } else {
        manifest->init = dp_object_hash(dp_buf_view(&state), NULL);
        manifest->init_bytes = state.size;
        status = dp_file_write(folder, DP_PREPARED_INIT, dp_buf_view(&state), why);
    }
    dp_buf_close(&state);
    return status;
}

/* With adapters, weights are below them: the base. The first adapters come from the seed. */
static dp_status write_values(const weights *w, const char *folder, const dp_model *model,
                              float *theta, dp_manifest *manifest, dp_why *why)
{
    DP_TRY(w->is_file ? dp_llmc_read(w->bytes, model, theta, why)
                      : dp_hf_import_weights(w->path, model, theta, why));
    return dp_manifest_adapts(manifest)
               ? dp_base_file_write(folder, DP_PREPARED_BASE, model, manifest->base_kind, theta,
                                    &manifest->base, &manifest->base_bytes, why)
               : dp_first_state_write(folder, theta, model->n_elements, manifest, why);
}

static dp_status write_model(const weights *w, const char *folder, const dp_model *model,
                             dp_manifest *manifest, dp_why *why)
{
    if (dp_manifest_adapts(manifest)) {
        DP_TRY(dp_base_file_check(model, manifest->base_kind, dp_memory_usable(), why));
    }
    float *const theta = dp_alloc(model->n_elements, sizeof *theta);
    const dp_status status = theta == NULL ? dp_why_set(why, DP_NOMEM, "no memory for the weights")
                                           : write_values(w, folder, model, theta, manifest, why);
    dp_free(theta);
    return status;
}

static dp_status write_all(const weights *w, const char *folder, dp_manifest *manifest, dp_why *why)
{
    const dp_model_config given = dp_manifest_model(manifest);
    const dp_model_config wanted = dp_model_config_base(&given);
    dp_model_config found;
    dp_model model;
    DP_TRY(config_of(w, &found, why));
    DP_TRY(dp_hf_import_match(&found, &wanted, why));
    DP_TRY(dp_model_open(&model, &wanted, why));
    const dp_status status = write_model(w, folder, &model, manifest, why);
    dp_model_close(&model);
    return status;
}

dp_status dp_first_weights_write(const char *path, const char *folder, dp_manifest *manifest,
                                 dp_why *why)
{
    weights w;
    DP_TRY(open_weights(&w, path, why));
    const dp_status status = write_all(&w, folder, manifest, why);
    dp_file_unmap(w.bytes);
    return status;
}
