#include "tests/sim/toy_bytes.h"

#include <string.h>

#include "base/assert.h"

/* A blob: u64 nonce | u16 count | count times (u16 index, i64 value). Indices ascend. A vector: u64
 * steps, u64 tokens (of a publication with those that it carries), then the elements, then u64
 * count of spans and room for all. */

static const int64_t value_max = (int64_t)1 << 40;

static int64_t magnitude(int64_t value)
{
    return value < 0 ? -value : value;
}

typedef struct range {
    uint32_t first;
    uint32_t end;
} range;

uint32_t dp_toy_kept(uint32_t length, uint32_t keep)
{
    /* Of 24: 18, 9, 5, 3. */
    return keep == 0 ? (length + 1) / 2 : (length * 12 + keep - 1) / keep;
}

uint32_t dp_toy_holds(dp_view blob)
{
    return (uint32_t)blob.data[8] | (uint32_t)blob.data[9] << 8;
}

static const range all_elements = {.end = DP_TOY_ELEMENTS};

/* The largest value of the encoding: the rest of a larger value is kept back, like low bits. A
 * round of only liars may move a model so far. */
static int64_t coded(int64_t value)
{
    const int64_t cut = value > value_max ? value_max : value < -value_max ? -value_max : value;

    return cut / 4 * 4;
}

/* Writes the largest elements by magnitude, dense or as many as a density keeps, ties to the lower
 * index; drops low bits, so the encoding is lossy in two ways. Returns the size. */
static uint32_t encode_range(const dp_toy_vector vector, range of, uint32_t count, uint64_t nonce,
                             uint8_t *out, size_t capacity)
{
    bool kept[DP_TOY_ELEMENTS];
    const bool dense = count == of.end - of.first;
    dp_writer w = dp_writer_of(out, capacity);

    memset(kept, dense, sizeof kept);
    for (uint32_t n = 0; !dense && n < count; n++) {
        uint32_t best = DP_TOY_ELEMENTS;
        for (uint32_t i = of.first; i < of.end; i++) {
            if (!kept[i] &&
                (best == DP_TOY_ELEMENTS || magnitude(vector[i]) > magnitude(vector[best]))) {
                best = i;
            }
        }
        kept[best] = true;
    }
    dp_write_u64(&w, nonce);
    dp_write_u16(&w, (uint16_t)count);
    for (uint32_t i = of.first; i < of.end; i++) {
        if (kept[i]) {
            dp_write_u16(&w, (uint16_t)i);
            dp_write_u64(&w, (uint64_t)coded(vector[i]));
        }
    }
    dp_assert(!w.full);
    return (uint32_t)w.size;
}

void dp_toy_encode(const dp_toy_vector vector, uint32_t count, uint64_t nonce,
                   dp_toy_parcel *parcel)
{
    parcel->blob_size =
        encode_range(vector, all_elements, count, nonce, parcel->blob, sizeof parcel->blob);
}

uint32_t dp_toy_element(uint32_t share)
{
    return (uint32_t)((uint64_t)DP_TOY_ELEMENTS * share / DP_PART_WHOLE);
}

uint32_t dp_toy_part_of(const dp_part_cuts *cuts, uint32_t element)
{
    uint32_t part = 0;

    while (part + 1 < cuts->n && dp_toy_element(cuts->first[part + 1]) <= element) {
        part++;
    }
    return part;
}

dp_view dp_toy_part(const dp_toy_parcel *parcel, uint32_t part)
{
    const uint32_t first = part == 0 ? 0 : parcel->part_ends[part - 1];

    return dp_view_of(parcel->parts + first, parcel->part_ends[part] - first);
}

void dp_toy_encode_parts(const dp_toy_vector vector, bool dense, const dp_part_cuts *cuts,
                         uint64_t nonce, dp_toy_parcel *parcel)
{
    dp_toy_vector sum = {0};
    uint32_t end = 0;

    parcel->cuts = *cuts;
    for (uint32_t p = 0; p < cuts->n; p++) {
        const range of = {dp_toy_element(cuts->first[p]), dp_toy_element(dp_part_end(cuts, p))};
        dp_toy_vector part;
        unsigned __int128 energy = 0;
        const uint32_t length = of.end - of.first;
        end += encode_range(vector, of, dense ? length : dp_toy_kept(length, 0), nonce << 5 | p,
                            parcel->parts + end, sizeof parcel->parts - end);
        parcel->part_ends[p] = end;
        const dp_status decoded = dp_toy_decode(dp_toy_part(parcel, p), part, &energy);
        dp_assert(decoded == DP_OK);
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            sum[i] += part[i];
        }
    }
    dp_toy_encode(sum, DP_TOY_ELEMENTS, nonce, parcel);
}

dp_status dp_toy_reduce(const dp_toy_term *terms, uint32_t count, uint32_t first_share,
                        uint32_t end_share, uint64_t nonce, uint8_t *blob, uint32_t *size)
{
    __int128 sum[DP_TOY_ELEMENTS] = {0};
    dp_toy_vector mean;
    const range of = {dp_toy_element(first_share), dp_toy_element(end_share)};

    for (uint32_t n = 0; n < count; n++) {
        dp_toy_vector value;
        unsigned __int128 energy = 0;
        DP_TRY(dp_toy_decode_part(terms[n].blob, first_share, end_share, value, &energy));
        for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
            sum[i] += (__int128)value[i] * terms[n].q;
        }
    }
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        mean[i] = (int64_t)(sum[i] / ((__int128)1 << 31));
    }
    *size = encode_range(mean, of, of.end - of.first, nonce, blob, DP_TOY_BLOB_MAX);
    return DP_OK;
}

dp_status dp_toy_decode_part(dp_view blob, uint32_t first_share, uint32_t end_share,
                             dp_toy_vector out, unsigned __int128 *energy)
{
    dp_toy_vector values;
    unsigned __int128 sum = 0;

    DP_TRY(dp_toy_decode(blob, values, &sum));
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        if (values[i] != 0 && (i < dp_toy_element(first_share) || i >= dp_toy_element(end_share))) {
            return DP_BADMSG;
        }
    }
    memcpy(out, values, sizeof values);
    *energy = sum;
    return DP_OK;
}

dp_status dp_toy_decode(dp_view blob, dp_toy_vector out, unsigned __int128 *energy)
{
    dp_toy_vector values = {0};
    unsigned __int128 sum = 0;
    dp_reader r = dp_reader_of(blob);

    (void)dp_read_u64(&r);
    const uint32_t count = dp_read_u16(&r);
    uint32_t next = 0;
    for (uint32_t n = 0; n < count; n++) {
        const uint32_t index = dp_read_u16(&r);
        const int64_t value = (int64_t)dp_read_u64(&r);
        if (r.failed || index < next || index >= DP_TOY_ELEMENTS || value > value_max ||
            value < -value_max) {
            return DP_BADMSG;
        }
        next = index + 1;
        values[index] = value;
        sum += (unsigned __int128)((__int128)value * value);
    }
    DP_TRY(dp_reader_finish(&r));
    memcpy(out, values, sizeof values);
    *energy = sum;
    return DP_OK;
}

void dp_toy_write_vector(const dp_toy_vector vector, dp_toy_work work,
                         const dp_toy_samples *samples, uint8_t out[DP_TOY_VECTOR_BYTES])
{
    static const dp_toy_span none;
    dp_writer w = dp_writer_of(out, DP_TOY_VECTOR_BYTES);

    dp_write_u64(&w, work.steps);
    dp_write_u64(&w, work.tokens);
    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        dp_write_u64(&w, (uint64_t)vector[i]);
    }
    dp_write_u64(&w, samples->n);
    for (uint32_t i = 0; i < DP_TOY_SPANS_MAX; i++) {
        const dp_toy_span *span = i < samples->n ? &samples->spans[i] : &none;
        dp_write_u64(&w, span->line);
        dp_write_u64(&w, span->first);
        dp_write_u64(&w, span->end);
    }
    dp_assert(!w.full && w.size == DP_TOY_VECTOR_BYTES);
}

dp_status dp_toy_read_vector(dp_view bytes, dp_toy_vector vector, dp_toy_work *work,
                             dp_toy_samples *samples)
{
    dp_toy_vector values;
    dp_reader r = dp_reader_of(bytes);
    const uint64_t steps = dp_read_u64(&r);
    const uint64_t tokens = dp_read_u64(&r);

    for (uint32_t i = 0; i < DP_TOY_ELEMENTS; i++) {
        values[i] = (int64_t)dp_read_u64(&r);
    }
    const uint64_t n = dp_read_u64(&r);
    for (uint32_t i = 0; i < DP_TOY_SPANS_MAX; i++) {
        samples->spans[i].line = dp_read_u64(&r);
        samples->spans[i].first = dp_read_u64(&r);
        samples->spans[i].end = dp_read_u64(&r);
    }
    samples->n = n < DP_TOY_SPANS_MAX ? (uint32_t)n : (uint32_t)DP_TOY_SPANS_MAX;
    DP_TRY(dp_reader_finish(&r));
    memcpy(vector, values, sizeof values);
    *work = (dp_toy_work){.steps = (uint32_t)steps, .tokens = tokens};
    return DP_OK;
}
