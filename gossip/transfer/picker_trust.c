/* Which holders are left alone for an object, and when they are asked again. */
#include <string.h>

#include "base/assert.h"
#include "gossip/transfer/picker_internal.h"

#define PARDON_US (5 * DP_SECOND) /* doubled with each pardon, up to 16 times */
#define FORGIVE_US (250 * DP_MS)  /* doubled each time, up to 16 times */

void dp_picker_note_holder(const dp_picker *picker, uint32_t member, const char *cause, dp_out *out)
{
    dp_assert(cause != NULL);
    dp_out_note(out, (dp_note){.code = DP_NOTE_FETCH,
                               .peer = dp_members_at(picker->members, member)->peer,
                               .cause = cause});
}

bool dp_picker_has_holder(const dp_picker *picker, const dp_want *want)
{
    const dp_rowset *linked = dp_members_linked(picker->members);

    for (uint32_t k = 0; k < linked->count; k++) {
        if (dp_picker_may_ask(picker, want, linked->at[k])) {
            return true;
        }
    }
    return false;
}

/* Is a member linked that is said to have it, and is believed? A member that only may have it does
 * not keep this node from asking a liar again. */
static bool has_teller(const dp_picker *picker, const dp_want *want)
{
    const dp_rowset *linked = dp_members_linked(picker->members);

    for (uint32_t k = 0; k < linked->count; k++) {
        if (dp_want_bit(want->holders, linked->at[k]) &&
            dp_picker_may_ask(picker, want, linked->at[k])) {
            return true;
        }
    }
    return false;
}

void dp_picker_lacks(const dp_picker *picker, dp_want *want, uint32_t member, dp_time now)
{
    dp_assert(member < picker->members_max);
    dp_want_set_bit(want->banned, member, true);
    want->lacking++;
    dp_picker_plan_pardon(picker, want, now);
    dp_picker_plan_forgiving(picker, want, now);
}

void dp_picker_plan_forgiving(const dp_picker *picker, dp_want *want, dp_time now)
{
    if (want->forgive_at.us == 0 && want->lacking > 0 && !dp_picker_has_holder(picker, want)) {
        want->forgive_at =
            dp_time_after(now, FORGIVE_US << (want->forgiven < 4 ? want->forgiven : 4));
    }
}

bool dp_picker_believe(dp_want *want, uint32_t member)
{
    const bool banned = dp_want_bit(want->banned, member);
    bool liar = banned && want->n_faults == FAULTS_MAX; /* perhaps one that is not counted */

    for (uint32_t i = 0; i < want->n_faults; i++) {
        liar =
            liar || (want->faults[i].member == member && want->faults[i].bad >= DP_BAD_CHUNKS_MAX);
    }
    const bool news = !dp_want_bit(want->holders, member) || (banned && !liar);
    dp_want_set_bit(want->holders, member, true);
    dp_want_set_bit(want->banned, member, liar);
    return news;
}

void dp_picker_forgive(const dp_picker *picker, dp_want *want)
{
    want->forgive_at = (dp_time){0};
    want->forgiven++;
    if (!dp_picker_has_holder(picker, want)) {
        dp_picker_ask_lacking(want);
    }
}

void dp_picker_ask_lacking(dp_want *want)
{
    memset(want->banned, 0, sizeof want->banned);
    for (uint32_t i = 0; i < want->n_faults; i++) {
        if (want->faults[i].bad >= DP_BAD_CHUNKS_MAX) {
            dp_want_set_bit(want->banned, want->faults[i].member, true);
        }
    }
}

void dp_picker_blame(dp_picker *picker, dp_want *want, uint32_t member, uint32_t weight,
                     const char *cause, dp_out *out)
{
    uint32_t at = 0;

    dp_assert(member < picker->members_max);
    while (at < want->n_faults && want->faults[at].member != member) {
        at++;
    }
    if (at == want->n_faults) {
        if (at == FAULTS_MAX) {
            dp_want_set_bit(want->banned, member,
                            true); /* too many liars to count: no second chance */
            return;
        }
        want->faults[want->n_faults++] = (dp_fault){.member = member};
    }
    want->faults[at].bad += weight;
    if (want->faults[at].bad >= DP_BAD_CHUNKS_MAX && !dp_want_bit(want->banned, member)) {
        dp_want_set_bit(want->banned, member, true);
        dp_picker_end_flights(picker, dp_want_index(picker, want), DP_MEMBER_NONE, member);
        dp_picker_note_holder(picker, member, cause, out);
    }
}

void dp_picker_plan_pardon(const dp_picker *picker, dp_want *want, dp_time now)
{
    if (want->pardon_at.us == 0 && want->n_faults > 0 && !has_teller(picker, want)) {
        want->pardon_at = dp_time_after(now, PARDON_US << (want->pardons < 4 ? want->pardons : 4));
    }
}

void dp_picker_pardon(const dp_picker *picker, dp_want *want)
{
    const bool alone = !has_teller(picker, want);

    want->pardon_at = (dp_time){0};
    want->pardons++;
    for (uint32_t i = 0; alone && i < want->n_faults; i++) {
        want->faults[i].bad = DP_BAD_CHUNKS_MAX - 1;
        dp_want_set_bit(want->banned, want->faults[i].member, false);
    }
}

void dp_picker_forget(dp_picker *picker, uint32_t member)
{
    dp_assert(member < picker->members_max);
    for (uint32_t i = 0; i < picker->n_wanted; i++) {
        dp_want *const want = &picker->wants[picker->queue[i]];
        uint32_t kept = 0;
        dp_want_set_bit(want->holders, member, false);
        dp_want_set_bit(want->banned, member, false);
        dp_want_set_bit(want->silent, member, false);
        for (uint32_t k = 0; k < want->n_faults; k++) {
            if (want->faults[k].member != member) {
                want->faults[kept++] = want->faults[k];
            }
        }
        want->n_faults = kept;
        want->info_from = want->info_from == member ? DP_MEMBER_NONE : want->info_from;
    }
    dp_assert(dp_picker_flights_of(picker, member) == 0);
    picker->patience_us[member] = 0;
    picker->chunk_us[member] = 0;
    picker->windows[member] = 0;
    picker->servings[member] = (dp_serving){0};
}
