/* Records other than lists of whole updates: rounds of parts (part.h), with the residual of parts
 * that do not count a publication, and records in slices (slices.h). The work here is on the host;
 * it is rare, or the data passes there anyway. */
#include "compute/outer/part.h"
#include "compute/outer/slices.h"
#include "compute/trainer/trainer_inside.h"

static bool is_whole(dp_part_range range)
{
    return range.first == 0 && (range.end == 0 || range.end == DP_PART_WHOLE);
}

/* Blobs of all of the vector are added up by the backend, however many there are. */
static bool has_parts(const dp_trainer_record *record)
{
    bool parts = false;
    for (size_t i = 0; record->ranges != NULL && i < record->n_items; i++) {
        parts = parts || !is_whole(record->ranges[i]);
    }
    return parts;
}

static dp_status check_wholes(const dp_trainer *t, const dp_trainer_record *record)
{
    for (size_t i = 0; i < record->n_items; i++) {
        DP_TRY(dp_codec_check(record->blobs[i], t->n));
    }
    return DP_OK;
}

/* A gradient is a direction: how far to go along it the optimizer says. */
static bool has_gains(const dp_trainer *t)
{
    return t->manifest.codec_gain == DP_ON && !dp_trainer_has_gradients(t);
}

/* Makes the sum in bytes the only update of the record. */
static dp_status join_slices(dp_trainer *t, dp_trainer_record *record)
{
    static const uint32_t q_one = UINT32_C(1) << 31;
    if (record->n_items > 0 || record->added != t->added) {
        return DP_BADARG;
    }
    t->added = 0; /* Its bytes are the call's, and then the state's. */
    t->joined = dp_buf_view(&t->bytes);
    record->ranges = NULL;
    record->blobs = &t->joined;
    record->q = &q_one;
    record->n_items = 1;
    return DP_OK;
}

dp_status dp_trainer_add(dp_trainer *t, uint32_t at, const dp_view *blobs, const uint32_t *q,
                         uint32_t n_items)
{
    if ((at != 0 && at != t->added) || at > DP_MANIFEST_LISTED_MAX ||
        n_items > DP_MANIFEST_LISTED_MAX - at) {
        dp_trainer_bytes_anew(t);
        return DP_BADARG;
    }
    dp_buf *const sum = at == 0 ? dp_trainer_bytes_anew(t) : &t->bytes;
    t->added = 0;
    for (uint32_t i = 0; i < n_items; i++) {
        DP_TRY(dp_codec_check(blobs[i], t->n));
    }
    DP_TRY(dp_slice_add(sum, t->n, blobs, q, n_items, has_gains(t)));
    t->added = at + n_items;
    return DP_OK;
}

dp_status dp_trainer_join(dp_trainer *t, dp_trainer_record *record)
{
    if (record->contributors == 0) {
        record->contributors = record->added + (uint32_t)record->n_items;
    }
    if (record->added > 0) {
        return join_slices(t, record);
    }
    if (!has_parts(record)) {
        record->ranges = NULL;
        return check_wholes(t, record);
    }
    const dp_part_results results = {
        .ranges = record->ranges, .blobs = record->blobs, .q = record->q, .n = record->n_items};
    return dp_part_places(&results, t->n, t->places);
}

dp_consensus_items dp_trainer_items(const dp_trainer *t, const dp_trainer_record *record)
{
    return (dp_consensus_items){.blobs = record->blobs,
                                .q = record->q,
                                .places = record->ranges != NULL ? t->places : NULL,
                                .n = record->n_items,
                                .steps = has_gains(t)};
}

dp_status dp_trainer_settle(dp_trainer *t, uint32_t clip, const dp_part_cuts *cuts, uint32_t taken,
                            dp_view blob)
{
    const float beta = (float)t->manifest.feedback_beta_milli / 1000.0F;
    const uint32_t all = dp_part_all(cuts->n);
    if ((taken & all) == all) { /* As there are no parts where nothing was cut. */
        return t->backend->settle(t->engine, blob, clip, beta);
    }
    const dp_part_outcome outcome = {.cuts = cuts, .taken = taken, .clip = clip, .beta = beta};
    const float *const a = t->backend->values(t->engine, DP_VECTOR_A);
    if (a == NULL) {
        return DP_IO;
    }
    DP_TRY(dp_part_settle(&outcome, a, t->n, blob, dp_trainer_bytes_anew(t)));
    return t->backend->load(t->engine, DP_VECTOR_E, dp_buf_view(&t->bytes));
}
