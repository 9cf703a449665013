/* The states of one exchange. Messages are in mix_talk.c, time in mix_tick.c, rows and restarts in
 * mix_journal.c. */
#include "gossip/pairs/mix.h"

#include <string.h>

#include "base/alloc.h"
#include "base/assert.h"
#include "gossip/ledger/weights.h"
#include "gossip/pairs/mix_internal.h"

#define WRITE_AGAIN_US DP_SECOND /* after a durable write that failed */

dp_status dp_mix_open(dp_mix **mix, const dp_mix_config *config)
{
    if (config->members == NULL || config->picker == NULL || config->members_max == 0 ||
        config->members_max > DP_MEMBERS_MAX) {
        return DP_BADARG;
    }
    dp_mix *const made = dp_alloc(1, sizeof *made);
    if (made == NULL) {
        return DP_NOMEM;
    }
    made->seen = dp_alloc(config->members_max, sizeof *made->seen);
    made->refused = dp_alloc(config->members_max, sizeof *made->refused);
    made->shares = dp_alloc(config->members_max, sizeof *made->shares);
    if (made->seen == NULL || made->refused == NULL || made->shares == NULL) {
        dp_mix_close(made);
        return DP_NOMEM;
    }
    made->config = *config;
    made->trainer = true;
    made->via = DP_MEMBER_NONE;
    /* Tickets of two lives never meet. */
    made->ticket = config->incarnation << 20;
    made->next_at = DP_NEVER;
    dp_rng_init(&made->rng, config->seed ^ 0x6d6978ULL);
    *mix = made;
    return DP_OK;
}

void dp_mix_close(dp_mix *mix)
{
    if (mix == NULL) {
        return;
    }
    dp_free(mix->seen);
    dp_free(mix->refused);
    dp_free(mix->shares);
    dp_free(mix);
}

void dp_mix_forget(dp_mix *mix, uint32_t member)
{
    dp_assert(member < mix->config.members_max);
    mix->seen[member] = (dp_time){0};
    mix->shares[member] = (dp_mix_share){0};
}

/* ---- small steps ---- */

void dp_mix_enter(dp_mix *mix, dp_mix_state state, dp_time now)
{
    if (mix->state == DP_MIX_IDLE) {
        mix->since = now;
    }
    mix->state = state;
    mix->progress = now;
    mix->retries = 0;
    mix->retry_at = dp_time_after(now, DP_MIX_RETRY_US);
}

void dp_mix_note(const dp_mix *mix, const char *cause, dp_out *out)
{
    dp_out_note(out, (dp_note){.code = DP_NOTE_EXCHANGE,
                               .round = mix->now.round,
                               .peer = mix->x.peer,
                               .a = dp_mix_weight(mix->x.own.tokens, mix->x.own.steps),
                               .b = dp_mix_weight(mix->x.other.tokens, mix->x.other.steps),
                               .cause = cause});
}

const char *dp_mix_refuse(dp_mix *mix, uint32_t from, const dp_mix_terms *terms, dp_out *out)
{
    const dp_peer *const peer = &dp_members_at(mix->config.members, from)->peer;
    const char *const cause = mix->config.judge == NULL || dp_broken(112)
                                  ? NULL
                                  : mix->config.judge(mix->config.judge_context, peer, terms);

    dp_assert(from < mix->config.members_max);
    if (cause != NULL) {
        mix->refused[from] = true;
        dp_out_note(out, (dp_note){.code = DP_NOTE_REJECTED, .peer = *peer, .cause = cause});
    }
    return cause;
}

static void go_idle(dp_mix *mix, dp_time now)
{
    mix->state = DP_MIX_IDLE;
    mix->x = (dp_mix_row){0};
    mix->fetched = false;
    mix->other_prepared = false;
    mix->abort_wanted = false;
    mix->rebuilding = false;
    mix->op = 0;
    const uint64_t pause_us = mix->config.pause_us;
    mix->next_at = dp_time_after(now, pause_us / 2 + dp_rng_below(&mix->rng, pause_us + 1));
}

/* Let go of an object of an attempt that has no row, unless the newest row of F needs it. */
static void drop_unneeded(const dp_mix *mix, const dp_hash *root, dp_out *out)
{
    const bool needed = mix->has_f && (dp_hash_equal(root, &mix->f.f_root) ||
                                       dp_hash_equal(root, &mix->f.own.root) ||
                                       dp_hash_equal(root, &mix->f.other.root));

    if (needed || dp_hash_is_zero(root)) {
        return;
    }
    dp_action *const action = dp_out_add(out, DP_DO_OBJECT_DROP);
    action->u.keep.root = *root;
    action->u.keep.use = DP_USE_EXCHANGE;
}

void dp_mix_write_row(dp_mix *mix, dp_mix_mark mark, dp_out *out)
{
    mix->x.mark = mark;
    mix->op = dp_mix_row_store(mix, &mix->x, out);
}

bool dp_mix_may_abort(const dp_mix *mix)
{
    switch (mix->state) {
    case DP_MIX_FREEZING:
    case DP_MIX_OFFERED:
    case DP_MIX_FETCHING:
    case DP_MIX_PREPARED:
        return true;
    case DP_MIX_IDLE:
    case DP_MIX_PREPARING: /* when the row is there */
    case DP_MIX_ASKING:
    case DP_MIX_ASKED:
    case DP_MIX_COMMITTING:
    case DP_MIX_MIXING:
        return false;
    }
    return false;
}

/* Give up. F stays as it was frozen. In ASKED only on the word of the other side or of a fence. */
void dp_mix_abort(dp_mix *mix, dp_time now, bool tell, dp_out *out)
{
    if (tell && (!mix->x.initiator || mix->state != DP_MIX_FREEZING)) {
        dp_mix_send_status(mix, &mix->x.peer, &mix->x.id, mix->x.ticket, DP_MIX_STATUS_ABORTED,
                           out);
    }
    if (!dp_hash_is_zero(&mix->x.other.root) && !mix->fetched) {
        dp_picker_cancel(mix->config.picker, now, &mix->x.other.root, out);
    }
    const bool has_row = mix->has_f && dp_mix_id_equal(&mix->f.id, &mix->x.id);
    if (has_row) {
        mix->x.mark = DP_MIX_MARK_ABORTED;
        mix->f = mix->x;
        DP_IGNORE(dp_mix_row_store(mix, &mix->x, out) == 0);
    } else {
        drop_unneeded(mix, &mix->x.f_root, out);
        drop_unneeded(mix, &mix->x.own.root, out);
        drop_unneeded(mix, &mix->x.other.root, out);
    }
    dp_mix_note(mix, "aborted", out);
    mix->aborted++;
    go_idle(mix, now);
}

void dp_mix_give_up(dp_mix *mix, dp_time now, const char *cause, dp_out *out)
{
    if (!dp_hash_is_zero(&mix->x.other.root) && !mix->fetched) {
        dp_picker_cancel(mix->config.picker, now, &mix->x.other.root, out);
    }
    dp_mix_note(mix, cause, out);
    mix->aborted++;
    go_idle(mix, now);
}

void dp_mix_want_abort(dp_mix *mix, dp_time now, bool tell, dp_out *out)
{
    if (dp_mix_may_abort(mix)) {
        dp_mix_abort(mix, now, tell, out);
    } else if (mix->state == DP_MIX_PREPARING) {
        mix->abort_wanted = true;
    }
}

/* ---- beginning ---- */

void dp_mix_freeze(dp_mix *mix, dp_time now, dp_out *out)
{
    dp_action *const action = dp_out_add(out, DP_DO_FREEZE);

    memcpy(action->u.mix.exchange, mix->x.id.bytes, sizeof mix->x.id.bytes);
    mix->kept = 65536;
    dp_mix_enter(mix, DP_MIX_FREEZING, now);
}

static void ask_check(const dp_hash *root, dp_out *out)
{
    dp_action *action = dp_out_add(out, DP_DO_CHECK);

    action->u.check.root = *root;
    action->u.check.end = DP_PART_WHOLE;
}

void dp_mix_start_fetch(dp_mix *mix, dp_time now, dp_out *out)
{
    dp_mix_enter(mix, DP_MIX_FETCHING, now);
    if (dp_hash_equal(&mix->x.own.root, &mix->x.other.root)) {
        mix->fetched = true; /* both hold the same: it is here */
        ask_check(&mix->x.other.root, out);
        return;
    }
    const uint32_t member = dp_members_find(mix->config.members, &mix->x.peer);
    if (member == DP_MEMBER_NONE ||
        dp_picker_want(mix->config.picker, now, &mix->x.other.root, mix->x.other.bytes,
                       DP_USE_EXCHANGE, DP_PRIORITY_ROUND, out) != DP_OK) {
        dp_mix_abort(mix, now, true, out);
        return;
    }
    dp_picker_holder(mix->config.picker, now, &mix->x.other.root, member, out);
}

bool dp_mix_weighs(const dp_mix_row *row)
{
    return dp_mix_weight(row->own.tokens, row->own.steps) > 0 ||
           dp_mix_weight(row->other.tokens, row->other.steps) > 0;
}

void dp_mix_ask(dp_mix *mix, dp_time now, dp_out *out)
{
    dp_mix_enter(mix, DP_MIX_ASKING, now);
    dp_mix_write_row(mix, DP_MIX_MARK_ASKED, out);
}

/* ---- events of the driver ---- */

/* The row keeps the other's work from now on, and its pin would outlive the row. */
static void unpin_other(const dp_mix *mix, dp_out *out)
{
    if (dp_broken(141)) {
        return;
    }
    dp_action *const action = dp_out_add(out, DP_DO_OBJECT_DROP);
    action->u.keep.root = mix->x.other.root;
    action->u.keep.use = DP_USE_EXCHANGE;
}

static bool is_current(const dp_mix *mix, dp_mix_state state,
                       const uint8_t exchange[DP_EXCHANGE_BYTES])
{
    return mix->state == state && memcmp(mix->x.id.bytes, exchange, DP_EXCHANGE_BYTES) == 0;
}

bool dp_mix_frozen(dp_mix *mix, dp_time now, const dp_event *event, dp_out *out)
{
    if (!is_current(mix, DP_MIX_FREEZING, event->u.frozen.exchange)) {
        /* Of an attempt given up meanwhile. F is the same for it; its objects are not needed. */
        drop_unneeded(mix, &event->u.frozen.root, out);
        drop_unneeded(mix, &event->u.frozen.f_root, out);
        return false;
    }
    mix->x.own.root = event->u.frozen.root;
    mix->x.own.bytes = event->u.frozen.bytes;
    mix->x.own.steps = event->u.frozen.steps;
    mix->x.own.tokens = event->u.frozen.tokens;
    mix->x.f_root = event->u.frozen.f_root;
    mix->x.f_bytes = event->u.frozen.f_bytes;
    mix->x.own.reach = event->u.frozen.reach;
    mix->energy = event->u.frozen.energy;
    if (mix->x.initiator) {
        dp_mix_enter(mix, DP_MIX_OFFERED, now);
        dp_mix_send_offer(mix, out);
        return true;
    }
    if (!dp_mix_weighs(&mix->x)) {
        dp_mix_abort(mix, now, true, out);
        return true;
    }
    dp_mix_send_ack(mix, out);
    dp_mix_start_fetch(mix, now, out);
    return true;
}

bool dp_mix_object(dp_mix *mix, dp_time now, const dp_hash *root, dp_out *out)
{
    if (mix->state != DP_MIX_FETCHING || mix->fetched || !dp_hash_equal(root, &mix->x.other.root)) {
        return false;
    }
    mix->fetched = true;
    mix->progress = now;
    ask_check(root, out);
    return true;
}

bool dp_mix_checked(dp_mix *mix, dp_time now, const dp_hash *root, bool ok,
                    unsigned __int128 energy, dp_out *out)
{
    if (mix->state != DP_MIX_FETCHING || !mix->fetched ||
        !dp_hash_equal(root, &mix->x.other.root)) {
        return false;
    }
    if (!ok) {
        dp_out_note(out, (dp_note){.code = DP_NOTE_REJECTED,
                                   .peer = mix->x.peer,
                                   .cause = "the update of a pair exchange cannot be decoded"});
        dp_mix_abort(mix, now, true, out);
        return true;
    }
    const uint64_t weights[2] = {dp_mix_weight(mix->x.own.tokens, mix->x.own.steps),
                                 dp_mix_weight(mix->x.other.tokens, mix->x.other.steps)};
    const unsigned __int128 energies[2] = {mix->energy, energy};
    mix->x.damp = dp_weight_pair(weights, energies, mix->now.clip_median);
    dp_mix_enter(mix, DP_MIX_PREPARING, now);
    dp_mix_write_row(mix, DP_MIX_MARK_PREPARED, out);
    return true;
}

static void finish_mixing(dp_mix *mix, dp_time now, dp_out *out)
{
    const uint32_t member = dp_members_find(mix->config.members, &mix->x.peer);
    if (member != DP_MEMBER_NONE) {
        mix->shares[member] =
            (dp_mix_share){.own = mix->x.own.tokens, .other = mix->x.other.tokens};
    }
    mix->shares_out = false;
    if (!mix->rebuilding) {
        dp_mix_note(mix, "done", out);
        mix->done++;
    }
    go_idle(mix, now);
}

/* The row says so now: both sides will apply it. */
static void committed(dp_mix *mix, dp_time now, dp_out *out)
{
    dp_mix_adopt_f(mix, out);
    if (mix->x.initiator) {
        dp_mix_send_status(mix, &mix->x.peer, &mix->x.id, mix->x.ticket, DP_MIX_STATUS_CLOSED, out);
    } else {
        dp_mix_outcome_add(mix, &mix->x);
        dp_mix_send_pair(mix, &mix->x, DP_MSG_MIX_DONE, out);
    }
    if (!mix->trainer) {
        finish_mixing(mix, now, out); /* F will be rebuilt with it */
        return;
    }
    dp_mix_enter(mix, DP_MIX_MIXING, now);
    dp_mix_do_mix(mix, out);
}

bool dp_mix_stored(dp_mix *mix, dp_time now, uint32_t op, dp_status status, dp_out *out)
{
    if (op == 0 || op != mix->op) {
        return false;
    }
    mix->op = 0;
    if (status != DP_OK && mix->state != DP_MIX_PREPARING) {
        /* It may be on the disk all the same: a decision is written until it is. */
        mix->write_at = dp_time_after(now, WRITE_AGAIN_US);
        return true;
    }
    if (mix->state == DP_MIX_PREPARING && status != DP_OK) {
        dp_mix_row_delete(&mix->x.id, out); /* in case it is there */
        dp_mix_abort(mix, now, true, out);
    } else if (mix->state == DP_MIX_PREPARING) {
        dp_mix_adopt_f(mix, out);
        unpin_other(mix, out);
        dp_mix_enter(mix, DP_MIX_PREPARED, now);
        if (mix->abort_wanted) {
            dp_mix_abort(mix, now, true, out);
        } else if (!mix->x.initiator) {
            dp_mix_send_ack(mix, out);
        } else if (mix->other_prepared) {
            dp_mix_ask(mix, now, out);
        }
    } else if (mix->state == DP_MIX_ASKING) {
        mix->f = mix->x;
        dp_mix_enter(mix, DP_MIX_ASKED, now);
        dp_mix_send_pair(mix, &mix->x, DP_MSG_MIX_COMMIT, out);
        if (dp_broken(33)) {
            dp_mix_enter(mix, DP_MIX_COMMITTING, now);
            dp_mix_write_row(mix, DP_MIX_MARK_DONE, out);
        }
    } else if (mix->state == DP_MIX_COMMITTING) {
        committed(mix, now, out);
    }
    return true;
}

bool dp_mix_mixed(dp_mix *mix, dp_time now, const dp_event *event, dp_out *out)
{
    if (!is_current(mix, DP_MIX_MIXING, event->u.mixed.exchange)) {
        return false;
    }
    if (event->u.mixed.status != DP_OK) {
        mix->write_at = dp_time_after(now, WRITE_AGAIN_US); /* committed is committed: try again */
        return true;
    }
    finish_mixing(mix, now, out);
    return true;
}

void dp_mix_trainer_down(dp_mix *mix, dp_time now, dp_out *out)
{
    mix->trainer = false;
    if (mix->state == DP_MIX_MIXING) {
        finish_mixing(mix, now, out); /* the row stands, F will be rebuilt */
    } else {
        dp_mix_want_abort(mix, now, true, out);
    }
}

void dp_mix_faded(dp_mix *mix, uint32_t lambda)
{
    dp_assert(lambda <= 65536);
    mix->kept = (uint32_t)((uint64_t)mix->kept * lambda / 65536);
}

/* ---- work that others have, too ---- */

uint32_t dp_mix_take_share(dp_mix *mix, const dp_peer *peer, uint64_t told, uint64_t own)
{
    const uint32_t member = dp_members_find(mix->config.members, peer);

    dp_assert(mix->started && !dp_peer_equal(peer, &mix->config.self));
    if (member == DP_MEMBER_NONE) {
        return 0;
    }
    const dp_mix_share share = mix->shares[member];
    if (share.own == 0 || told < share.other) {
        return 0; /* It published this before the exchange. */
    }
    mix->shares[member] = (dp_mix_share){0};
    return share.own < own ? (uint32_t)((unsigned __int128)share.own * 65536 / own) : 65536;
}

void dp_mix_counted(dp_mix *mix)
{
    if (mix->shares_out) {
        memset(mix->shares, 0, mix->config.members_max * sizeof *mix->shares);
    }
}

/* ---- orders ---- */

void dp_mix_set(dp_mix *mix, dp_time now, const dp_mix_now *state, dp_out *out)
{
    const bool begins = state->gossip && !mix->now.gossip;

    dp_assert(now.us > 0 || !mix->started);
    if (!dp_hash_equal(&state->base, &mix->now.base)) {
        memset(mix->refused, 0, mix->config.members_max * sizeof *mix->refused);
    }

    mix->now = *state;
    if (mix->state != DP_MIX_IDLE &&
        (!state->gossip || !dp_hash_equal(&state->base, &mix->x.base))) {
        dp_mix_want_abort(mix, now, true, out);
    }
    if (begins) {
        mix->next_at = dp_time_after(now, dp_rng_below(&mix->rng, mix->config.pause_us + 1));
    }
}

bool dp_mix_finish(dp_mix *mix, dp_time now, dp_out *out)
{
    dp_mix_want_abort(mix, now, true, out);
    return !dp_mix_locked(mix);
}

void dp_mix_fence(dp_mix *mix, dp_time now, const dp_peer *peer, uint64_t incarnation, dp_out *out)
{
    if (mix->state != DP_MIX_IDLE && dp_peer_equal(&mix->x.peer, peer) &&
        mix->x.other.incarnation <= incarnation) {
        if (mix->state == DP_MIX_ASKED) {
            dp_mix_abort(mix, now, false, out);
        } else {
            dp_mix_want_abort(mix, now, false, out);
        }
    }
    for (uint32_t i = mix->n_outcomes; i-- > 0;) {
        const bool busy =
            mix->state != DP_MIX_IDLE && dp_mix_id_equal(&mix->x.id, &mix->outcomes[i].id);
        if (!busy && dp_peer_equal(&mix->outcomes[i].peer, peer) &&
            mix->outcomes[i].other.incarnation <= incarnation) {
            dp_mix_outcome_close(mix, i, out);
        }
    }
}
