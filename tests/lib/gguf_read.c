#include "tests/lib/gguf_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "compute/cpu/half.h"
#include "compute/format/gguf_words.h"

enum { VERSION = 3, BLOCK_BYTES = 2 + DP_GGUF_BLOCK, TYPES = 13 };

typedef struct pair {
    dp_view key;
    uint32_t type;
    dp_view value;
} pair;

struct dp_gguf {
    pair *pairs;
    size_t n_pairs;
    dp_gguf_tensor *tensors;
    size_t n_tensors;
};

/* By type of value; 0: text and arrays have their own. */
static const uint8_t value_bytes[TYPES] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};

static dp_view read_text(dp_reader *reader)
{
    const uint64_t size = dp_read_u64(reader);
    if (size > dp_reader_left(reader)) {
        reader->failed = true;
        return dp_view_of(NULL, 0);
    }
    return dp_read_view(reader, (size_t)size);
}

/* Goes over count values of a type that is no array; each takes a byte at least, so left bounds the
 * loop. */
static void skip_values(dp_reader *reader, uint32_t type, uint64_t count)
{
    if (type >= TYPES || type == DP_GGUF_ARRAY || count > dp_reader_left(reader)) {
        reader->failed = true;
        return;
    }
    if (type != DP_GGUF_TEXT) {
        const uint64_t size = count * value_bytes[type];
        if (size > dp_reader_left(reader)) {
            reader->failed = true;
        } else {
            dp_read_view(reader, (size_t)size);
        }
        return;
    }
    for (uint64_t i = 0; i < count && !reader->failed; i++) {
        read_text(reader);
    }
}

static dp_status read_pair(dp_reader *reader, dp_view file, pair *out)
{
    out->key = read_text(reader);
    out->type = dp_read_u32(reader);
    const size_t start = file.size - dp_reader_left(reader);
    if (out->type == DP_GGUF_TEXT) {
        out->value = read_text(reader);
        return reader->failed ? DP_BADMSG : DP_OK;
    }
    if (out->type == DP_GGUF_ARRAY) {
        const uint32_t type = dp_read_u32(reader);
        skip_values(reader, type, dp_read_u64(reader));
    } else {
        skip_values(reader, out->type, 1);
    }
    if (reader->failed) {
        return DP_BADMSG;
    }
    out->value = dp_view_of(file.data + start, file.size - dp_reader_left(reader) - start);
    return DP_OK;
}

static bool bytes_of(const dp_gguf_tensor *tensor, uint64_t *bytes)
{
    switch (tensor->type) {
    case DP_GGUF_F32:
        return !__builtin_mul_overflow(tensor->elements, 4, bytes);
    case DP_GGUF_F16:
    case DP_GGUF_BF16:
        return !__builtin_mul_overflow(tensor->elements, 2, bytes);
    case DP_GGUF_Q8_0:
        return tensor->dims[0] % DP_GGUF_BLOCK == 0 &&
               !__builtin_mul_overflow(tensor->elements / DP_GGUF_BLOCK, BLOCK_BYTES, bytes);
    }
    return false;
}

/* bytes.size is set and bytes.data is not: the data begins only behind the last of them. */
static dp_status read_tensor(dp_reader *reader, dp_gguf_tensor *out, uint64_t *offset, dp_why *why)
{
    uint64_t bytes = 0;
    out->name = read_text(reader);
    out->n_dims = dp_read_u32(reader);
    out->elements = 1;
    if (reader->failed || out->n_dims == 0 || out->n_dims > DP_GGUF_DIMS_MAX) {
        return dp_why_set(why, DP_BADMSG, "a tensor of the GGUF file has no 1 to 4 dimensions");
    }
    for (uint32_t i = 0; i < DP_GGUF_DIMS_MAX; i++) {
        out->dims[i] = i < out->n_dims ? dp_read_u64(reader) : 1;
        if (__builtin_mul_overflow(out->elements, out->dims[i], &out->elements)) {
            return dp_why_set(why, DP_BADMSG, "a tensor of the GGUF file has too many elements");
        }
    }
    const uint32_t type = dp_read_u32(reader);
    *offset = dp_read_u64(reader);
    if (reader->failed) {
        return dp_why_set(why, DP_BADMSG, "the GGUF file ends inside its list of tensors");
    }
    if (type != DP_GGUF_F32 && type != DP_GGUF_F16 && type != DP_GGUF_BF16 &&
        type != DP_GGUF_Q8_0) {
        return dp_why_set(why, DP_UNSUPPORTED,
                          "a tensor of the GGUF file has type %" PRIu32
                          "; F32, F16, BF16 and Q8_0 are read",
                          type);
    }
    out->type = (dp_gguf_type)type;
    if (!bytes_of(out, &bytes) || bytes > SIZE_MAX) {
        return dp_why_set(why, DP_BADMSG,
                          "a tensor of the GGUF file has rows that are no whole blocks");
    }
    out->bytes.size = (size_t)bytes;
    return DP_OK;
}

typedef struct range {
    uint64_t begin;
    uint64_t end;
} range;

static int by_begin(const void *left, const void *right)
{
    const range *const a = left;
    const range *const b = right;
    return a->begin != b->begin ? (a->begin > b->begin) - (a->begin < b->begin)
                                : (a->end > b->end) - (a->end < b->end);
}

static dp_status check_ranges(range *ranges, size_t n, size_t data_bytes, dp_why *why)
{
    qsort(ranges, n, sizeof *ranges, by_begin);
    for (size_t i = 0; i < n; i++) {
        if (ranges[i].end < ranges[i].begin || ranges[i].end > data_bytes) {
            return dp_why_set(why, DP_BADMSG, "a tensor of the GGUF file ends behind it");
        }
        if (i > 0 && ranges[i].begin < ranges[i - 1].end) {
            return dp_why_set(why, DP_BADMSG, "tensors of the GGUF file overlap");
        }
    }
    return DP_OK;
}

static dp_status place_tensors(const dp_gguf *self, range *ranges, dp_view data, dp_why *why)
{
    for (size_t i = 0; i < self->n_tensors; i++) {
        const uint64_t begin = ranges[i].begin;
        if (begin % DP_GGUF_ALIGN != 0) {
            return dp_why_set(why, DP_BADMSG, "a tensor of the GGUF file is not aligned to 32");
        }
        ranges[i].end = begin + self->tensors[i].bytes.size; /* A wrap is found by check_ranges. */
        if (begin <= data.size) {
            self->tensors[i].bytes.data = data.data + begin;
        }
    }
    return check_ranges(ranges, self->n_tensors, data.size, why);
}

static dp_status read_tensors(const dp_gguf *self, dp_reader *reader, dp_view file, range *ranges,
                              dp_why *why)
{
    for (size_t i = 0; i < self->n_tensors; i++) {
        DP_TRY(read_tensor(reader, &self->tensors[i], &ranges[i].begin, why));
    }
    uint64_t start = file.size - dp_reader_left(reader);
    start = (start + DP_GGUF_ALIGN - 1) / DP_GGUF_ALIGN * DP_GGUF_ALIGN;
    if (start > file.size) {
        start = file.size;
    }
    return place_tensors(self, ranges, dp_view_of(file.data + start, file.size - (size_t)start),
                         why);
}

static dp_status read_file(dp_gguf *self, dp_view file, dp_why *why)
{
    dp_reader reader = dp_reader_of(file);
    const dp_view magic = dp_read_view(&reader, 4);
    const uint32_t version = dp_read_u32(&reader);
    const uint64_t n_tensors = dp_read_u64(&reader);
    const uint64_t n_pairs = dp_read_u64(&reader);
    if (reader.failed || !dp_view_equal(magic, dp_view_text("GGUF"))) {
        return dp_why_set(why, DP_BADMSG, "this is no GGUF file");
    }
    if (version != VERSION) {
        return dp_why_set(why, DP_VERSION, "the GGUF file has version %" PRIu32 "; 3 is read",
                          version);
    }
    if (n_tensors > DP_GGUF_TENSORS_MAX || n_pairs > DP_GGUF_PAIRS_MAX) {
        return dp_why_set(why, DP_TOOBIG, "the GGUF file has more than %d tensors or %d pairs",
                          DP_GGUF_TENSORS_MAX, DP_GGUF_PAIRS_MAX);
    }
    self->pairs = dp_alloc((size_t)n_pairs + 1, sizeof *self->pairs);
    self->tensors = dp_alloc((size_t)n_tensors + 1, sizeof *self->tensors);
    range *const ranges = dp_alloc((size_t)n_tensors + 1, sizeof *ranges);
    dp_status status = self->pairs == NULL || self->tensors == NULL || ranges == NULL
                           ? dp_why_set(why, DP_NOMEM, "no memory for the tables of a GGUF file")
                           : DP_OK;
    for (; status == DP_OK && self->n_pairs < n_pairs; self->n_pairs++) {
        status = read_pair(&reader, file, &self->pairs[self->n_pairs]);
        if (status != DP_OK) {
            dp_why_set(why, status, "pair %zu of the GGUF file is damaged", self->n_pairs);
        }
    }
    static const uint8_t aligned[4] = {DP_GGUF_ALIGN};
    uint32_t type = 0;
    dp_view align;
    if (status == DP_OK && dp_gguf_value(self, "general.alignment", &type, &align) == DP_OK &&
        (type != DP_GGUF_U32 || memcmp(align.data, aligned, sizeof aligned) != 0)) {
        status = dp_why_set(why, DP_UNSUPPORTED, "the GGUF file is not aligned to 32");
    }
    if (status == DP_OK) {
        self->n_tensors = (size_t)n_tensors;
        status = read_tensors(self, &reader, file, ranges, why);
    }
    dp_free(ranges);
    return status;
}

dp_status dp_gguf_open(dp_gguf **out, dp_view file, dp_why *why)
{
    dp_gguf *const self = dp_alloc(1, sizeof *self);
    if (self == NULL) {
        return dp_why_set(why, DP_NOMEM, "no memory for a GGUF file");
    }
    const dp_status status = read_file(self, file, why);
    if (status != DP_OK) {
        dp_gguf_close(self);
        return status;
    }
    *out = self;
    return DP_OK;
}

void dp_gguf_close(dp_gguf *file)
{
    if (file != NULL) {
        dp_free(file->pairs);
        dp_free(file->tensors);
        dp_free(file);
    }
}

size_t dp_gguf_count(const dp_gguf *file)
{
    return file->n_tensors;
}

const dp_gguf_tensor *dp_gguf_at(const dp_gguf *file, size_t index)
{
    dp_assert(index < file->n_tensors);
    return &file->tensors[index];
}

const dp_gguf_tensor *dp_gguf_find(const dp_gguf *file, const char *name)
{
    for (size_t i = 0; i < file->n_tensors; i++) {
        if (dp_view_equal(file->tensors[i].name, dp_view_text(name))) {
            return &file->tensors[i];
        }
    }
    return NULL;
}

dp_status dp_gguf_value(const dp_gguf *file, const char *key, uint32_t *type, dp_view *value)
{
    for (size_t i = 0; i < file->n_pairs; i++) {
        if (dp_view_equal(file->pairs[i].key, dp_view_text(key))) {
            *type = file->pairs[i].type;
            *value = file->pairs[i].value;
            return DP_OK;
        }
    }
    return DP_NOTFOUND;
}

static uint16_t u16_at(const uint8_t *at)
{
    return (uint16_t)(at[0] | at[1] << 8);
}

void dp_gguf_floats(const dp_gguf_tensor *tensor, float *out)
{
    const uint8_t *const from = tensor->bytes.data;
    for (uint64_t i = 0; i < tensor->elements; i++) {
        if (tensor->type == DP_GGUF_F32) {
            out[i] =
                dp_float_of_bits(u16_at(from + 4 * i) | (uint32_t)u16_at(from + 4 * i + 2) << 16);
        } else if (tensor->type == DP_GGUF_Q8_0) {
            const uint8_t *const block = from + i / DP_GGUF_BLOCK * BLOCK_BYTES;
            out[i] = dp_half_float(u16_at(block)) * (float)(int8_t)block[2 + i % DP_GGUF_BLOCK];
        } else {
            const uint16_t bits = u16_at(from + 2 * i);
            out[i] = tensor->type == DP_GGUF_F16 ? dp_half_float(bits) : dp_bfloat_value(bits);
        }
    }
}
