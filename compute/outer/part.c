#include "compute/outer/part.h"

#include <math.h>
#include <string.h>

#include "base/assert.h"
#include "base/mutation.h"
#include "compute/codec/feedback.h"
#include "compute/model/state.h"
#include "compute/outer/consensus.h"

static const uint32_t q_one = UINT32_C(1) << 31;

/* ---- Places. */

static size_t element_of(uint32_t share, size_t elements)
{
    const uint64_t runs = ((uint64_t)elements + DP_CODEC_RUN - 1) / DP_CODEC_RUN;
    const uint64_t element = runs * share / DP_PART_WHOLE * DP_CODEC_RUN;
    return element < elements ? (size_t)element : elements;
}

dp_status dp_part_place_of(dp_part_range range, size_t elements, dp_part_place *place)
{
    const uint32_t end = range.first == 0 && range.end == 0 ? DP_PART_WHOLE : range.end;
    if (range.first > end || end > DP_PART_WHOLE) {
        return DP_BADARG;
    }
    place->first = element_of(range.first, elements);
    place->n = element_of(end, elements) - place->first;
    return DP_OK;
}

dp_part_range dp_part_range_of(const dp_part_cuts *cuts, uint32_t p)
{
    dp_assert(p < cuts->n);
    return (dp_part_range){.first = cuts->first[p], .end = dp_part_end(cuts, p)};
}

/* ---- A publication. */

static dp_status write_header(const dp_codec *codec, dp_part_place place,
                              uint8_t header[DP_CODEC_HEADER_BYTES])
{
    dp_buf buf;
    dp_buf_init(&buf, DP_CODEC_HEADER_BYTES);
    const dp_status status = dp_codec_header_at(codec, place.first, place.n, &buf);
    if (status == DP_OK) {
        memcpy(header, buf.data, DP_CODEC_HEADER_BYTES);
    }
    dp_buf_close(&buf);
    return status;
}

dp_status dp_part_cut(dp_view blob, size_t n, const dp_part_cuts *cuts,
                      dp_part_blob parts[DP_PARTS_MAX], unsigned __int128 *energy)
{
    dp_assert(dp_part_cuts_good(cuts) && cuts->n > 0);
    dp_codec_cursor cursor;
    unsigned __int128 sum = 0; /* of 32 at most, each below 2^120 */
    DP_TRY(dp_codec_open(&cursor, blob, n));
    for (uint32_t p = 0; p < cuts->n; p++) {
        const uint8_t *const from = cursor.reader.at;
        dp_part_place place;
        DP_TRY(dp_part_place_of(dp_part_range_of(cuts, p), n, &place));
        DP_TRY(dp_codec_energy_next(&cursor, place.n, &parts[p].energy));
        DP_TRY(write_header(&cursor.codec, place, parts[p].header));
        parts[p].runs = dp_view_of(from, (size_t)(cursor.reader.at - from));
        sum += parts[p].energy;
    }
    dp_assert(cursor.left == 0);
    *energy = sum > DP_CODEC_ENERGY_MAX ? DP_CODEC_ENERGY_MAX : sum;
    return DP_OK;
}

dp_status dp_part_energy(dp_view blob, dp_part_place place, unsigned __int128 *energy)
{
    dp_codec_cursor cursor;
    DP_TRY(dp_codec_open_at(&cursor, blob, place.first, place.n));
    return dp_codec_energy_next(&cursor, place.n, energy);
}

/* ---- A sum. */

/* Measurements of a sum while it is encoded. */
typedef struct measured {
    double squares[2];     /* |g|^2, |g - decode(runs)|^2 */
    dp_codec_tally energy; /* of the runs before those that wait */
    dp_codec_run waiting[DP_CODEC_ABREAST];
    size_t n_waiting;
} measured;

static void measure_waiting(const dp_codec *codec, measured *m)
{
    dp_codec_tally_add(&m->energy, codec, m->waiting, m->n_waiting);
    m->n_waiting = 0;
}

/* One run, as its receivers read it. */
static dp_status measure_run(const dp_codec *codec, dp_view runs, const float *g, size_t n,
                             measured *m)
{
    const size_t most = dp_codec_tally_waits(codec) ? DP_CODEC_ABREAST : 1;
    dp_codec_cursor cursor = dp_codec_cursor_of(codec, runs, n);
    dp_codec_run *const run = &m->waiting[m->n_waiting];
    DP_TRY(dp_codec_next(&cursor, run));
    dp_codec_leaves(cursor.ops, run, g, m->squares);
    m->n_waiting++;
    if (m->n_waiting == most) {
        measure_waiting(codec, m);
    }
    return DP_OK;
}

static dp_status encode_sum(const dp_codec *codec, dp_part_place place, dp_consensus_sum *from,
                            dp_buf *out, measured *m)
{
    const size_t end = place.first + place.n;
    DP_TRY(dp_codec_header_at(codec, place.first, place.n, out));
    for (size_t at = place.first; at < end;) {
        const size_t before = out->size;
        const float *g;
        size_t length;
        DP_TRY(dp_consensus_sum_next(from, &g, &length));
        DP_TRY(dp_codec_append(codec, g, at, length, out));
        const dp_view runs = dp_view_of(out->data + before, out->size - before);
        DP_TRY(measure_run(codec, runs, g, length, m));
        at += length;
    }
    measure_waiting(codec, m);
    return DP_OK;
}

dp_status dp_part_reduce(const dp_codec *codec, dp_part_place place, const dp_part_items *items,
                         dp_buf *out, dp_part_sum *sum)
{
    const size_t before = out->size;
    uint8_t *room;
    measured m; /* Without the content of runs: they are filled when they come. */
    memset(m.squares, 0, sizeof m.squares);
    m.energy = (dp_codec_tally){0};
    m.n_waiting = 0;
    dp_consensus_sum *from;
    const dp_consensus_items added = {.blobs = items->blobs, .q = items->q, .n = items->n};
    DP_TRY(dp_consensus_sum_open(&from, place.first, place.n, &added));
    /* At once: growing with the sum would copy it. */
    dp_status status = dp_buf_reserve(out, dp_codec_bytes_max(codec, place.n), &room);
    if (status == DP_OK) {
        status = encode_sum(codec, place, from, out, &m);
    }
    dp_consensus_sum_close(from);
    if (status != DP_OK) {
        out->size = before;
        return status;
    }
    *sum = (dp_part_sum){.energy = dp_codec_tally_end(&m.energy),
                         .norm = sqrt(m.squares[0]),
                         .error = sqrt(m.squares[1])};
    return DP_OK;
}

/* ---- A record. */

dp_status dp_part_places(const dp_part_results *results, size_t elements,
                         dp_part_place places[DP_PARTS_MAX])
{
    size_t done = 0;
    if (results->n > DP_PARTS_MAX) {
        return DP_BADARG;
    }
    for (size_t i = 0; i < results->n; i++) {
        DP_TRY(dp_part_place_of(results->ranges[i], elements, &places[i]));
        if (places[i].first < done || results->q[i] > q_one) {
            return DP_BADARG;
        }
        done = places[i].first + places[i].n;
        DP_TRY(dp_codec_check_at(results->blobs[i], places[i].first, places[i].n));
    }
    return DP_OK;
}

/* One part of e, whose runs the cursor comes to next. */
static dp_status settle_part(const dp_part_outcome *outcome, bool taken, dp_part_place place,
                             const float *a, dp_codec_cursor *cursor, dp_buf *out)
{
    dp_codec_run run;
    float e[DP_CODEC_RUN];
    const size_t end = place.first + place.n;
    for (size_t at = place.first; at < end; at += run.length) {
        DP_TRY(dp_codec_next(cursor, &run));
        if (taken) {
            float d[DP_CODEC_RUN];
            dp_codec_expand(&run, d);
            dp_feedback_included(e, a + at, d, outcome->clip, outcome->beta, run.length);
        }
        DP_TRY(dp_floats_write(taken ? e : a + at, run.length, out));
    }
    return DP_OK;
}

dp_status dp_part_settle(const dp_part_outcome *outcome, const float *a, size_t n, dp_view blob,
                         dp_buf *out)
{
    const dp_part_cuts *const cuts = outcome->cuts;
    const size_t before = out->size;
    dp_codec_cursor cursor;
    dp_assert(dp_part_cuts_good(cuts) && cuts->n > 0);
    DP_TRY(dp_codec_open(&cursor, blob, n));
    dp_status status = DP_OK;
    for (uint32_t p = 0; p < cuts->n && status == DP_OK; p++) {
        const bool taken = (outcome->taken >> p & 1U) != 0 || dp_broken(43);
        dp_part_place place;
        status = dp_part_place_of(dp_part_range_of(cuts, p), n, &place);
        if (status == DP_OK) {
            status = settle_part(outcome, taken, place, a, &cursor, out);
        }
    }
    if (status != DP_OK) {
        out->size = before;
    }
    return status;
}
