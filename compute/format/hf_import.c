#include "compute/format/hf_import.h"

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/run/adapt.h"
#include "base/run/manifest.h"
#include "compute/format/hf_config.h"
#include "compute/format/safetensors_read.h"
#include "compute/machine/files.h"

#define ONE_FILE "model.safetensors"
#define INDEX_FILE "model.safetensors.index.json"

typedef struct weights {
    size_t n_files;
    dp_view bytes[DP_HF_FILES_MAX];
    dp_safetensors *files[DP_HF_FILES_MAX];
} weights;

static void close_weights(weights *w)
{
    for (size_t i = 0; i < w->n_files; i++) {
        dp_safetensors_close(w->files[i]);
        dp_file_unmap(w->bytes[i]);
    }
    dp_free(w);
}

static dp_status add_file(weights *w, const char *folder, const char *name, dp_why *why)
{
    if (w->n_files == DP_HF_FILES_MAX) {
        return dp_why_set(why, DP_TOOBIG, INDEX_FILE " names more than %d files", DP_HF_FILES_MAX);
    }
    DP_TRY(dp_file_map(folder, name, &w->bytes[w->n_files], why));
    dp_why inner = {""};
    const dp_status status =
        dp_safetensors_open(&w->files[w->n_files], w->bytes[w->n_files], &inner);
    if (status != DP_OK) {
        dp_file_unmap(w->bytes[w->n_files]);
        return dp_why_set(why, status, "%.200s: %.250s", name, inner.text);
    }
    w->n_files++;
    return DP_OK;
}

/* Each file of the weight map once; no path leads out of the folder. */
static dp_status add_indexed(weights *w, const char *folder, const json_t *map, dp_why *why)
{
    json_t *const seen = json_object();
    dp_status status = seen == NULL ? DP_NOMEM : DP_OK;
    const char *tensor;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)map, tensor, value)
    {
        const char *const name = json_string_value(value);
        if (status != DP_OK) {
            break;
        }
        if (name == NULL || name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL) {
            status = dp_why_set(why, DP_BADMSG, INDEX_FILE ": the file of %.100s is no plain name",
                                tensor);
        } else if (json_object_get(seen, name) == NULL) {
            status = json_object_set_new(seen, name, json_true()) == 0
                         ? add_file(w, folder, name, why)
                         : DP_NOMEM;
        }
    }
    json_decref(seen);
    return status;
}

static dp_status open_indexed(weights *w, const char *folder, dp_why *why)
{
    dp_view text;
    json_error_t error;
    DP_TRY(dp_file_map(folder, INDEX_FILE, &text, why));
    json_t *root = NULL;
    dp_status status = DP_OK;
    if (text.size > DP_HF_INDEX_BYTES_MAX) {
        status = dp_why_set(why, DP_TOOBIG, INDEX_FILE " is larger than 16 MiB");
    } else {
        root = json_loadb(text.size == 0 ? "" : (const char *)text.data, text.size,
                          JSON_REJECT_DUPLICATES, &error);
        if (root == NULL) {
            status = dp_why_set(why, DP_BADMSG, INDEX_FILE ": %.100s at line %d", error.text,
                                error.line);
        }
    }
    const json_t *const map = json_object_get(root, "weight_map");
    if (status == DP_OK && json_object_size(map) == 0) {
        status = dp_why_set(why, DP_BADMSG, INDEX_FILE " has no weight_map");
    }
    if (status == DP_OK) {
        status = add_indexed(w, folder, map, why);
    }
    json_decref(root);
    dp_file_unmap(text);
    return status;
}

static bool is_there(const char *folder, const char *name)
{
    char path[4096];
    const int size = snprintf(path, sizeof path, "%s/%s", folder, name);
    return size > 0 && (size_t)size < sizeof path && access(path, F_OK) == 0;
}

/* ---- names ---- */

static const char *bare(const char *name)
{
    static const char *const fronts[] = {"transformer.", "model.", "gpt_neox."};
    for (size_t i = 0; i < sizeof fronts / sizeof fronts[0]; i++) {
        const size_t size = strlen(fronts[i]);
        if (strncmp(name, fronts[i], size) == 0) {
            return name + size;
        }
    }
    return name;
}

static dp_status find(const weights *w, const char *name, dp_safetensors_tensor *out, dp_why *why)
{
    const char *const names[] = {name, bare(name)};
    const size_t n_names = names[0] == names[1] ? 1 : 2;
    size_t n = 0;
    for (size_t i = 0; i < w->n_files; i++) {
        for (size_t k = 0; k < n_names; k++) {
            n += dp_safetensors_find(w->files[i], names[k], out) == DP_OK;
        }
    }
    if (n == 1) {
        return DP_OK;
    }
    return n == 0 ? dp_why_set(why, DP_BADMSG, "the weights have no tensor %s", name)
                  : dp_why_set(why, DP_BADMSG, "the weights have tensor %s %zu times", name, n);
}

static bool ends_with(const char *name, const char *end)
{
    const size_t size = strlen(name);
    const size_t tail = strlen(end);
    return size >= tail && strcmp(name + size - tail, end) == 0;
}

/* Tables that follow from the config, which some files carry along. */
static bool is_table(const dp_model *model, const char *name)
{
    if (dp_model_has(model, DP_HAS_POSITIONS)) {
        return ends_with(name, ".attn.bias") || ends_with(name, ".attn.masked_bias");
    }
    return ends_with(name, ".rotary_emb.inv_freq") || ends_with(name, ".attention.bias") ||
           ends_with(name, ".attention.masked_bias");
}

static size_t count_known(const weights *w, const dp_model *model)
{
    size_t n = 0;
    for (size_t i = 0; i < w->n_files; i++) {
        const char *name = dp_safetensors_next(w->files[i], NULL);
        for (; name != NULL; name = dp_safetensors_next(w->files[i], name)) {
            const bool tied =
                model->config.head == DP_HEAD_TIED && strcmp(name, "lm_head.weight") == 0;
            n += !tied && !is_table(model, name);
        }
    }
    return n;
}

/* A tensor that the model has not, for a sentence. */
static const char *find_strange(const weights *w, const dp_model *model, char *room, size_t size)
{
    for (size_t i = 0; i < w->n_files; i++) {
        const char *name = dp_safetensors_next(w->files[i], NULL);
        for (; name != NULL; name = dp_safetensors_next(w->files[i], name)) {
            bool known = is_table(model, name) || strcmp(name, "lm_head.weight") == 0;
            for (size_t t = 0; t < model->n_tensors && !known; t++) {
                dp_tensor_part parts[DP_MODEL_PARTS_MAX];
                const size_t n = dp_model_parts(model, &model->tensors[t], parts);
                for (size_t k = 0; k < n; k++) {
                    known = known || strcmp(bare(parts[k].name), bare(name)) == 0;
                }
            }
            if (!known) {
                snprintf(room, size, "%s", name);
                return room;
            }
        }
    }
    return "lm_head.weight";
}

/* ---- values ---- */

static dp_status check_shape(const dp_tensor *tensor, const dp_tensor_part *part,
                             const dp_safetensors_tensor *found, dp_why *why)
{
    const uint64_t rows = tensor->n_dims == 1 ? 1 : tensor->shape[0];
    const uint64_t wanted[2] = {part->transposed ? part->columns : rows,
                                part->transposed ? rows : part->columns};
    const bool vector = tensor->n_dims == 1;
    const bool good =
        vector ? found->n_dims == 1 && found->shape[0] == part->columns
               : found->n_dims == 2 && found->shape[0] == wanted[0] && found->shape[1] == wanted[1];
    if (good) {
        return DP_OK;
    }
    return dp_why_set(why, DP_BADMSG,
                      "tensor %s is [%" PRIu64 ",%" PRIu64 "], config.json makes it [%" PRIu64
                      ",%" PRIu64 "]",
                      part->name, found->n_dims > 0 ? found->shape[0] : 0,
                      found->n_dims > 1 ? found->shape[1] : 1, vector ? part->columns : wanted[0],
                      vector ? 1 : wanted[1]);
}

/* The part's values to their columns; row: room for one row of the file. */
static dp_status copy_part(const dp_model *model, const dp_tensor *tensor,
                           const dp_tensor_part *part, const dp_safetensors_tensor *found,
                           float *theta, float *row)
{
    float *const to = theta + tensor->offset;
    const bool vector = tensor->n_dims == 1;
    const size_t rows = vector ? 1 : tensor->shape[0];
    const size_t columns = vector ? part->columns : tensor->shape[1];
    if (vector) {
        DP_TRY(dp_safetensors_floats(found, 0, part->columns, row));
        for (size_t j = 0; j < part->columns; j++) {
            to[dp_model_part_column(model, tensor, part, j)] = row[j] + part->above;
        }
        return DP_OK;
    }
    if (!part->transposed) {
        return dp_safetensors_floats(found, 0, tensor->elements, to);
    }
    for (size_t j = 0; j < part->columns; j++) {
        float *const column = to + dp_model_part_column(model, tensor, part, j);
        DP_TRY(dp_safetensors_floats(found, (uint64_t)j * rows, rows, row));
        for (size_t i = 0; i < rows; i++) {
            column[i * columns] = row[i];
        }
    }
    return DP_OK;
}

static dp_status read_part(const weights *w, const dp_model *model, const dp_tensor *tensor,
                           const dp_tensor_part *part, float *theta, float *row, dp_why *why)
{
    dp_safetensors_tensor found;
    DP_TRY(find(w, part->name, &found, why));
    const dp_status status = copy_part(model, tensor, part, &found, theta, row);
    if (status == DP_DIVERGED) {
        return dp_why_set(why, status, "a weight of tensor %s is not finite", part->name);
    }
    if (status == DP_UNSUPPORTED) {
        return dp_why_set(why, status, "tensor %s is not F32, F16 or BF16", part->name);
    }
    return status;
}

/* That the files have all tensors of the model, and no others, before the first value is read. */
static dp_status check_tensors(const weights *w, const dp_model *model, dp_why *why)
{
    size_t n_parts = 0;
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    for (size_t t = 0; t < model->n_tensors; t++) {
        const size_t n = dp_model_parts(model, &model->tensors[t], parts);
        n_parts += n;
        for (size_t k = 0; k < n; k++) {
            dp_safetensors_tensor found;
            DP_TRY(find(w, parts[k].name, &found, why));
            DP_TRY(check_shape(&model->tensors[t], &parts[k], &found, why));
        }
    }
    if (count_known(w, model) != n_parts) {
        char room[128];
        return dp_why_set(why, DP_UNSUPPORTED,
                          "the weights have a tensor %s, which the model of config.json has not",
                          find_strange(w, model, room, sizeof room));
    }
    return DP_OK;
}

static dp_status read_tensors(const weights *w, const dp_model *model, float *theta, dp_why *why)
{
    size_t rows_max = 0;
    dp_tensor_part parts[DP_MODEL_PARTS_MAX];
    DP_TRY(check_tensors(w, model, why));
    for (size_t t = 0; t < model->n_tensors; t++) {
        const size_t rows = model->tensors[t].shape[0];
        rows_max = rows > rows_max ? rows : rows_max;
    }
    float *const row = dp_alloc(rows_max, sizeof *row);
    dp_status status = row == NULL ? dp_why_set(why, DP_NOMEM, "no memory for a row") : DP_OK;
    for (size_t t = 0; t < model->n_tensors && status == DP_OK; t++) {
        const size_t n = dp_model_parts(model, &model->tensors[t], parts);
        for (size_t k = 0; k < n && status == DP_OK; k++) {
            status = read_part(w, model, &model->tensors[t], &parts[k], theta, row, why);
        }
    }
    dp_free(row);
    return status;
}

/* Weights that Python alone unpickles are no missing file. */
static dp_status check_pickled(const char *folder, dp_why *why)
{
    const bool pickled =
        is_there(folder, "pytorch_model.bin") || is_there(folder, "pytorch_model.bin.index.json");
    return pickled && !is_there(folder, ONE_FILE) && !is_there(folder, INDEX_FILE)
               ? dp_why_set(why, DP_UNSUPPORTED,
                            "%.300s has its weights in pytorch_model.bin, which is not read; in "
                            "Python, model.save_pretrained(FOLDER, safe_serialization=True) "
                            "writes " ONE_FILE,
                            folder)
               : DP_OK;
}

dp_status dp_hf_import_weights(const char *folder, const dp_model *model, float *theta, dp_why *why)
{
    DP_TRY(check_pickled(folder, why));
    weights *const w = dp_alloc(1, sizeof *w);
    if (w == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a list of files");
    }
    dp_status status = is_there(folder, ONE_FILE) || !is_there(folder, INDEX_FILE)
                           ? add_file(w, folder, ONE_FILE, why)
                           : open_indexed(w, folder, why);
    if (status == DP_OK) {
        status = read_tensors(w, model, theta, why);
    }
    close_weights(w);
    return status;
}

dp_status dp_hf_import_config(const char *folder, dp_model_config *config, dp_why *why)
{
    dp_view text;
    if (!is_there(folder, "config.json") && is_there(folder, "adapter_config.json")) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "%.300s holds adapters, not a model: go on with them by dpnode train "
                          "--resume --out FOLDER of their training, or begin from the whole model "
                          "(ckpt export --merged)",
                          folder);
    }
    DP_TRY(dp_file_map(folder, "config.json", &text, why));
    const dp_status status = dp_hf_config_read(text, config, why);
    dp_file_unmap(text);
    return status;
}

/* Text that is appended to, as much as there is room for. */
typedef struct line {
    char *text;
    size_t used;
} line;

static void add(line *out, const char *key, const char *value)
{
    const size_t room = DP_HF_MODEL_TEXT_MAX - out->used;
    const int size = snprintf(out->text + out->used, room, "%s%s: %s", out->used > 1 ? ", " : "",
                              key + strlen("model."), value);
    out->used += size > 0 && (size_t)size < room ? (size_t)size : 0;
}

/* The words that are not those of every model of the family; the family itself. */
static void add_words(line *out, const dp_manifest *manifest, bool family)
{
    size_t count = 0;
    const dp_model_family *const row = dp_model_family_of(manifest->arch);
    const dp_manifest_choice *const choices = dp_manifest_choices(&count);
    for (size_t i = 0; i < count; i++) {
        int value;
        memcpy(&value, (const char *)manifest + choices[i].offset, sizeof value);
        const bool is_family = strcmp(choices[i].key, "model.arch") == 0;
        const bool own =
            choices[i].offset == offsetof(dp_manifest, activation) && value == (int)row->activation;
        if (is_family != family || own || value == choices[i].default_value ||
            strncmp(choices[i].key, "model.", strlen("model.")) != 0) {
            continue;
        }
        for (size_t k = 0; k < choices[i].n_words; k++) {
            if (choices[i].words[k].value == value) {
                add(out, choices[i].key, choices[i].words[k].name);
            }
        }
    }
}

static void add_numbers(line *out, const dp_manifest *manifest)
{
    size_t count = 0;
    const dp_manifest_row *const rows = dp_manifest_rows(&count);
    for (size_t i = 0; i < count; i++) {
        uint32_t value;
        char text[32];
        memcpy(&value, (const char *)manifest + rows[i].offset, sizeof value);
        if (dp_manifest_of_shape(rows[i].key) && value != 0) {
            snprintf(text, sizeof text, "%.10g", (double)value / (double)rows[i].scale);
            add(out, rows[i].key, text);
        }
    }
}

void dp_hf_import_describe(const dp_model_config *config, char text[DP_HF_MODEL_TEXT_MAX])
{
    dp_model_config m = dp_model_config_resolve(config);
    if (m.rope_theta != 0 && m.context > DP_MANIFEST_CONTEXT_MAX) {
        m.context = DP_MANIFEST_CONTEXT_MAX; /* Angles need no table. */
    }
    dp_manifest manifest;
    line out = {.text = text, .used = 1};
    dp_manifest_default(&manifest);
    dp_manifest_set_model(&manifest, &m);
    text[0] = '{';
    if (m.arch == DP_ARCH_GPT2) { /* The word that a manifest need not say. */
        add(&out, "model.arch", "gpt2");
    }
    add_words(&out, &manifest, true);
    add_numbers(&out, &manifest);
    add_words(&out, &manifest, false);
    snprintf(text + out.used, DP_HF_MODEL_TEXT_MAX - out.used, "}");
}

_Static_assert(sizeof(dp_model_config) % sizeof(uint32_t) == 0,
               "fields of four bytes without holes are compared as bytes");

dp_status dp_hf_import_match(const dp_model_config *found, const dp_model_config *wanted,
                             dp_why *why)
{
    const dp_model_config bases[2] = {dp_model_config_base(found), dp_model_config_base(wanted)};
    const dp_model_config a = dp_model_config_resolve(&bases[0]);
    dp_model_config b = dp_model_config_resolve(&bases[1]);
    if (a.rope_theta != 0) {
        b.context = a.context; /* Angles need no table. */
    }
    if (memcmp(&a, &b, sizeof a) == 0) {
        return DP_OK;
    }
    char text[DP_HF_MODEL_TEXT_MAX];
    dp_hf_import_describe(&a, text);
    return dp_why_set(why, DP_BADARG,
                      "the weights are of another model than the manifest's; leave its model keys "
                      "out, or write model: %s",
                      text);
}
