#include "compute/format/safetensors_read.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "compute/cpu/half.h"

enum { SIZE_BYTES = 8 };
#define METADATA "__metadata__"

struct dp_safetensors {
    json_t *header; /* every entry of it passes read_entry */
    dp_view data;
};

static const struct type_row {
    const char *name;
    uint32_t bytes;
    dp_safetensors_type type;
} type_rows[] = {
    {"F32", 4, DP_SAFETENSORS_F32},       {"F16", 2, DP_SAFETENSORS_F16},
    {"BF16", 2, DP_SAFETENSORS_BF16},     {"F64", 8, DP_SAFETENSORS_OTHER},
    {"I64", 8, DP_SAFETENSORS_OTHER},     {"U64", 8, DP_SAFETENSORS_OTHER},
    {"I32", 4, DP_SAFETENSORS_OTHER},     {"U32", 4, DP_SAFETENSORS_OTHER},
    {"I16", 2, DP_SAFETENSORS_OTHER},     {"U16", 2, DP_SAFETENSORS_OTHER},
    {"I8", 1, DP_SAFETENSORS_OTHER},      {"U8", 1, DP_SAFETENSORS_OTHER},
    {"BOOL", 1, DP_SAFETENSORS_OTHER},    {"F8_E4M3", 1, DP_SAFETENSORS_OTHER},
    {"F8_E5M2", 1, DP_SAFETENSORS_OTHER},
};

static const struct type_row *type_of(const json_t *entry)
{
    const char *const name = json_string_value(json_object_get(entry, "dtype"));
    for (size_t i = 0; name != NULL && i < sizeof type_rows / sizeof type_rows[0]; i++) {
        if (strcmp(type_rows[i].name, name) == 0) {
            return &type_rows[i];
        }
    }
    return NULL;
}

static bool read_count(const json_t *json, uint64_t *out)
{
    if (!json_is_integer(json) || json_integer_value(json) < 0) {
        return false;
    }
    *out = (uint64_t)json_integer_value(json);
    return true;
}

/* The fault of an entry, or NULL. */
static const char *read_shape(const json_t *shape, dp_safetensors_tensor *tensor)
{
    if (!json_is_array(shape) || json_array_size(shape) > DP_SAFETENSORS_DIMS_MAX) {
        return "its shape is no list of at most 8 numbers";
    }
    tensor->n_dims = (uint32_t)json_array_size(shape);
    tensor->elements = 1;
    for (uint32_t i = 0; i < tensor->n_dims; i++) {
        if (!read_count(json_array_get(shape, i), &tensor->shape[i]) ||
            __builtin_mul_overflow(tensor->elements, tensor->shape[i], &tensor->elements)) {
            return "its shape is no list of at most 8 numbers";
        }
    }
    return NULL;
}

static const char *read_entry(const dp_safetensors *file, const json_t *entry,
                              dp_safetensors_tensor *tensor)
{
    *tensor = (dp_safetensors_tensor){.elements = 0};
    const struct type_row *const type = type_of(entry);
    if (type == NULL) {
        return "its dtype is not known";
    }
    tensor->type = type->type;
    const char *const wrong = read_shape(json_object_get(entry, "shape"), tensor);
    if (wrong != NULL) {
        return wrong;
    }
    const json_t *const offsets = json_object_get(entry, "data_offsets");
    uint64_t begin = 0;
    uint64_t end = 0;
    uint64_t bytes = 0;
    if (json_array_size(offsets) != 2 || !read_count(json_array_get(offsets, 0), &begin) ||
        !read_count(json_array_get(offsets, 1), &end) || begin > end || end > file->data.size) {
        return "its data_offsets do not lie inside the file";
    }
    if (__builtin_mul_overflow(tensor->elements, type->bytes, &bytes) || bytes != end - begin) {
        return "its shape and its data_offsets disagree";
    }
    tensor->bytes = dp_view_of(file->data.data + begin, (size_t)bytes);
    return NULL;
}

static int by_start(const void *left, const void *right)
{
    const dp_view *const a = left;
    const dp_view *const b = right;
    if (a->data != b->data) {
        return a->data < b->data ? -1 : 1;
    }
    return (a->size > b->size) - (a->size < b->size); /* Empty ones first. */
}

static dp_status check_cover(const dp_safetensors *file, dp_view *ranges, size_t n, dp_why *why)
{
    qsort(ranges, n, sizeof *ranges, by_start);
    const uint8_t *at = file->data.data;
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].data != at) {
            return dp_why_set(why, DP_BADMSG,
                              "tensors of the safetensors file %s at byte %zu of its data",
                              ranges[i].data < at ? "overlap" : "leave a hole",
                              (size_t)(ranges[i].data - file->data.data));
        }
        at += ranges[i].size;
    }
    if (at != file->data.data + file->data.size) {
        return dp_why_set(why, DP_BADMSG,
                          "bytes at the end of the safetensors file belong to no tensor");
    }
    return DP_OK;
}

static dp_status check_entries(const dp_safetensors *file, dp_view *ranges, dp_why *why)
{
    size_t n = 0;
    const char *name;
    json_t *entry;
    json_object_foreach(file->header, name, entry)
    {
        dp_safetensors_tensor tensor;
        if (strcmp(name, METADATA) == 0) {
            continue;
        }
        const char *const wrong = read_entry(file, entry, &tensor);
        if (wrong != NULL) {
            return dp_why_set(why, DP_BADMSG, "tensor %.100s of the safetensors file: %s", name,
                              wrong);
        }
        ranges[n++] = tensor.bytes;
    }
    return check_cover(file, ranges, n, why);
}

static dp_status check_header(const dp_safetensors *file, dp_why *why)
{
    if (!json_is_object(file->header)) {
        return dp_why_set(why, DP_BADMSG, "the header of the safetensors file is no JSON object");
    }
    const size_t n = json_object_size(file->header);
    if (n > DP_SAFETENSORS_TENSORS_MAX) {
        return dp_why_set(why, DP_TOOBIG,
                          "the safetensors file has %zu tensors, at most %d are read", n,
                          DP_SAFETENSORS_TENSORS_MAX);
    }
    dp_view *const ranges = dp_alloc(n + 1, sizeof *ranges);
    if (ranges == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a table of %zu tensors", n);
    }
    const dp_status status = check_entries(file, ranges, why);
    dp_free(ranges);
    return status;
}

static dp_status load_header(dp_safetensors *file, dp_view bytes, dp_why *why)
{
    dp_reader reader = dp_reader_of(bytes);
    const uint64_t size = dp_read_u64(&reader);
    if (reader.failed || size > dp_reader_left(&reader)) {
        return dp_why_set(why, DP_BADMSG,
                          "this is no safetensors file: its header would end behind it");
    }
    if (size > DP_SAFETENSORS_HEADER_MAX) {
        return dp_why_set(why, DP_TOOBIG,
                          "the header of the safetensors file has %" PRIu64
                          " bytes, at most %d are read",
                          size, DP_SAFETENSORS_HEADER_MAX);
    }
    json_error_t error;
    file->data = dp_view_of(bytes.data + SIZE_BYTES + size, bytes.size - SIZE_BYTES - (size_t)size);
    file->header = json_loadb((const char *)bytes.data + SIZE_BYTES, (size_t)size,
                              JSON_REJECT_DUPLICATES, &error);
    if (file->header == NULL) {
        return dp_why_set(why, DP_BADMSG, "the header of the safetensors file: %.100s at byte %d",
                          error.text, error.position);
    }
    return check_header(file, why);
}

dp_status dp_safetensors_open(dp_safetensors **out, dp_view file, dp_why *why)
{
    dp_safetensors *const self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a safetensors file");
    }
    const dp_status status = load_header(self, file, why);
    if (status != DP_OK) {
        dp_safetensors_close(self);
        return status;
    }
    *out = self;
    return DP_OK;
}

void dp_safetensors_close(dp_safetensors *file)
{
    if (file != NULL) {
        json_decref(file->header);
        dp_free(file);
    }
}

dp_status dp_safetensors_find(const dp_safetensors *file, const char *name,
                              dp_safetensors_tensor *tensor)
{
    const json_t *const entry =
        strcmp(name, METADATA) == 0 ? NULL : json_object_get(file->header, name);
    return entry != NULL && read_entry(file, entry, tensor) == NULL ? DP_OK : DP_NOTFOUND;
}

const char *dp_safetensors_next(const dp_safetensors *file, const char *name)
{
    void *at = name == NULL ? json_object_iter(file->header)
                            : json_object_iter_next(file->header, json_object_key_to_iter(name));
    const char *key = at == NULL ? NULL : json_object_iter_key(at);
    if (key != NULL && strcmp(key, METADATA) == 0) {
        at = json_object_iter_next(file->header, at);
        key = at == NULL ? NULL : json_object_iter_key(at);
    }
    return key;
}

static float value_of(dp_safetensors_type type, const uint8_t *at)
{
    const uint32_t low = at[0] | (uint32_t)at[1] << 8;
    if (type == DP_SAFETENSORS_F32) {
        return dp_float_of_bits(low | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
    }
    if (type == DP_SAFETENSORS_BF16) {
        return dp_bfloat_value((uint16_t)low);
    }
    return dp_half_float((uint16_t)low);
}

dp_status dp_safetensors_floats(const dp_safetensors_tensor *tensor, uint64_t first, size_t n,
                                float *out)
{
    if (tensor->type == DP_SAFETENSORS_OTHER) {
        return DP_UNSUPPORTED;
    }
    if (first > tensor->elements || n > tensor->elements - first) {
        return DP_BADARG;
    }
    const size_t size = tensor->type == DP_SAFETENSORS_F32 ? 4 : 2;
    const uint8_t *const from = tensor->bytes.data + first * size;
    for (size_t i = 0; i < n; i++) {
        out[i] = value_of(tensor->type, from + i * size);
        if (!isfinite(out[i])) {
            return DP_DIVERGED;
        }
    }
    return DP_OK;
}
