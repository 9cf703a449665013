/* The parts of a ROUND record, judged like the rest of it from the record and the chain alone: any
 * member that may train can have added up a part, and its signature covers the list of
 * contributions in it. */
#include "base/assert.h"
#include "gossip/ledger/valid.h"
#include "gossip/ledger/valid_inside.h"
#include "gossip/record/part_sum.h"

static uint32_t share_of(const dp_record *record, const dp_part_row *part)
{
    unsigned __int128 w = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        w += (part->from >> i & 1U) != 0 ? record->listed[i].w : 0;
    }
    return record->w_total == 0 ? 0 : (uint32_t)((w << 31) / record->w_total);
}

void dp_valid_fill_parts(dp_record *record)
{
    for (uint32_t p = 0; p < record->n_parts; p++) {
        record->parts[p].q = record->parts[p].has ? share_of(record, &record->parts[p]) : 0;
    }
}

static dp_status check_part(const dp_valid *valid, const dp_record *record, uint32_t p,
                            const char **cause)
{
    const dp_part_row *part = &record->parts[p];

    dp_assert(p < record->n_parts);
    if (part->from == 0 || (part->from & ~dp_part_all(record->n_listed)) != 0) {
        return no(cause, "a part sums no contribution, or one that is not listed");
    }
    if (part->bytes == 0 || part->bytes > DP_OBJECT_BYTES_MAX ||
        part->q != share_of(record, part)) {
        return no(cause, "the size or the share of a part is not valid");
    }
    if ((dp_valid_caps(valid, record, &part->owner) & DP_CAP_TRAIN) == 0) {
        return no(cause, "the owner of a part may not train");
    }
    if (part->n_sums > 0 &&
        (!valid->ledger->summed || part->n_sums > dp_site_sums_most(record->n_parts) ||
         !dp_site_sums_fit(&record->sums[part->first_sum], part->n_sums, part->from))) {
        return no(cause, "the sums of sites in a part are not valid");
    }
    const dp_part_word word = dp_part_word_of(record, p);
    if (!dp_part_verify(&word, valid->crypto, &valid->ledger->run, &valid->ledger->fork)) {
        *cause = "the signature of a part is not valid";
        return DP_BADSIG;
    }
    return DP_OK;
}

dp_status dp_valid_parts(const dp_valid *valid, const dp_record *record, const char **cause)
{
    uint32_t covered = 0;

    if (record->n_parts != valid->ledger->layout.cuts.n) {
        return no(cause, "the record has another number of parts than the run");
    }
    for (uint32_t p = 0; p < record->n_parts; p++) {
        if (record->parts[p].has) {
            DP_TRY(check_part(valid, record, p, cause));
            covered |= record->parts[p].from;
        }
    }
    /* Every listed contribution must be in a part: the work of another one would not count, so its
     * tokens must not count either. */
    return covered == dp_part_all(record->n_listed) ? DP_OK
                                                    : no(cause, "a contribution is in no part");
}
