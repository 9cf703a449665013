/* Timers of pair exchanges: the own offer to a partner chosen here, repeated messages and writes,
 * ends of waits. */
#include <string.h>

#include "base/assert.h"
#include "gossip/pairs/mix_internal.h"

enum { CANDIDATES = 3, DOUBLINGS_MAX = 3 };
#define NUDGE_US                                                                                   \
    (10 * DP_SECOND) /* an initiator is reminded of an outcome that it has not closed */

/* ---- an own offer ---- */

bool dp_mix_is_partner(const dp_mix *mix, uint32_t index)
{
    const dp_member *const member = dp_members_at(mix->config.members, index);

    dp_assert(index < mix->config.members_max);
    return index != 0 && !mix->refused[index] && member->linked &&
           member->state == DP_MEMBER_ALIVE && member->in_roster && member->incarnation != 0 &&
           member->has_summary &&
           (member->summary.mode == DP_MODE_GOSSIP ||
            (mix->config.pairs && member->summary.mode == DP_MODE_SYNC)) &&
           member->summary.has_trainer &&
           (dp_hash_equal(&member->summary.base, &mix->now.base) || dp_broken(35));
}

/* Of three random partners the one not met for longest. DP_MEMBER_NONE: there is none. */
static uint32_t choose_partner(dp_mix *mix)
{
    uint32_t picked[CANDIDATES];
    uint32_t count = 0;

    for (uint32_t i = 1; i < dp_members_count(mix->config.members); i++) {
        if (!dp_mix_is_partner(mix, i)) {
            continue;
        }
        const uint64_t place = count < CANDIDATES ? count : dp_rng_below(&mix->rng, count + 1U);
        if (place < CANDIDATES) {
            picked[place] = i;
        }
        count++;
    }
    uint32_t best = DP_MEMBER_NONE;
    for (uint32_t k = 0; k < count && k < CANDIDATES; k++) {
        if (best == DP_MEMBER_NONE || mix->seen[picked[k]].us < mix->seen[best].us) {
            best = picked[k];
        }
    }
    return best;
}

bool dp_mix_may_begin(const dp_mix *mix)
{
    return mix->started && mix->state == DP_MIX_IDLE && mix->now.gossip && mix->trainer;
}

static void begin(dp_mix *mix, dp_time now, dp_out *out)
{
    const uint32_t partner = choose_partner(mix);

    mix->next_at = dp_time_after(now, mix->config.pause_us / 2 +
                                          dp_rng_below(&mix->rng, mix->config.pause_us + 1));
    if (partner == DP_MEMBER_NONE) {
        return;
    }
    const dp_member *const member = dp_members_at(mix->config.members, partner);
    mix->number++;
    mix->x =
        (dp_mix_row){.initiator = true,
                     .has_f = true,
                     .id = dp_mix_id_of(&mix->config.self, mix->config.incarnation, mix->number),
                     .order = ++mix->order,
                     .number = mix->number,
                     .peer = member->peer,
                     .base = mix->now.base,
                     .own = {.incarnation = mix->config.incarnation}};
    mix->seen[partner] = now;
    dp_mix_freeze(mix, now, out);
}

/* ---- the clock ---- */

static void write_again(dp_mix *mix, dp_time now, dp_out *out)
{
    if (mix->write_at.us == 0 || !dp_time_reached(now, mix->write_at)) {
        return;
    }
    mix->write_at = (dp_time){0};
    if (mix->state == DP_MIX_ASKING || mix->state == DP_MIX_COMMITTING) {
        mix->op = dp_mix_row_store(mix, &mix->x, out);
    } else if (mix->state == DP_MIX_MIXING) {
        dp_mix_do_mix(mix, out);
    }
}

/* Repeats messages that may have been lost, at growing intervals. */
static void retry(dp_mix *mix, dp_time now, dp_out *out)
{
    if (!dp_time_reached(now, mix->retry_at)) {
        return;
    }
    mix->retries++;
    const uint32_t doublings = mix->retries < DOUBLINGS_MAX ? mix->retries : DOUBLINGS_MAX;
    mix->retry_at = dp_time_after(now, DP_MIX_RETRY_US << doublings);
    if (mix->state == DP_MIX_OFFERED) {
        dp_mix_send_offer(mix, out);
    } else if (mix->state == DP_MIX_ASKED) {
        dp_mix_send_pair(mix, &mix->x, DP_MSG_MIX_COMMIT, out);
        if (mix->retries == DOUBLINGS_MAX) {
            dp_mix_note(mix, "in doubt", out);
        }
    } else if (!mix->x.initiator &&
               (mix->state == DP_MIX_FETCHING || mix->state == DP_MIX_PREPARED)) {
        dp_mix_send_ack(mix, out);
    }
}

static void nudge(dp_mix *mix, dp_time now, dp_out *out)
{
    if (mix->n_outcomes == 0 || !dp_time_reached(now, mix->nudge_at)) {
        return;
    }
    mix->nudge_at = dp_time_after(now, NUDGE_US);
    dp_mix_send_pair(mix, &mix->outcomes[mix->nudge_next++ % mix->n_outcomes], DP_MSG_MIX_DONE,
                     out);
}

void dp_mix_tick(dp_mix *mix, dp_time now, dp_out *out)
{
    if (!mix->started) {
        return;
    }
    write_again(mix, now, out);
    nudge(mix, now, out);
    if (mix->state == DP_MIX_IDLE) {
        if (dp_mix_may_begin(mix) && dp_time_reached(now, mix->next_at)) {
            begin(mix, now, out);
        }
        return;
    }
    const bool late = dp_time_between(mix->progress, now) >= DP_MIX_WAIT_US;
    if (dp_broken(34) && late && mix->state == DP_MIX_ASKED) {
        dp_mix_abort(mix, now, false, out);
        return;
    }
    const uint32_t member = dp_members_find(mix->config.members, &mix->x.peer);
    const bool gone = mix->x.initiator && member != DP_MEMBER_NONE &&
                      !dp_members_at(mix->config.members, member)->linked;
    if (dp_mix_may_abort(mix) && (late || gone)) {
        dp_mix_abort(mix, now, true, out);
        return;
    }
    retry(mix, now, out);
}

dp_time dp_mix_wake(const dp_mix *mix)
{
    dp_time wake = DP_NEVER;

    if (!mix->started) {
        return wake;
    }
    if (mix->write_at.us != 0) {
        wake = mix->write_at;
    }
    if (mix->n_outcomes > 0) {
        wake = dp_time_min(wake, mix->nudge_at);
    }
    if (mix->state == DP_MIX_IDLE) {
        return dp_mix_may_begin(mix) ? dp_time_min(wake, mix->next_at) : wake;
    }
    wake = dp_time_min(wake, mix->retry_at);
    return dp_mix_may_abort(mix) ? dp_time_min(wake, dp_time_after(mix->progress, DP_MIX_WAIT_US))
                                 : wake;
}
