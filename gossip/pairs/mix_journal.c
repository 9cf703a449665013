/* The journal of pair exchanges: its rows, their meaning after a crash, and how F is rebuilt from
 * them. */
#include <string.h>

#include "base/assert.h"
#include "base/trainer/trainer_msg.h"
#include "gossip/pairs/mix_internal.h"

uint32_t dp_mix_row_store(dp_mix *mix, const dp_mix_row *row, dp_out *out)
{
    uint32_t op = 0;
    uint8_t *const bytes = mix->writes[mix->n_writes++ % DP_MIX_WRITES_MAX];
    dp_action *const action = dp_out_store(out, DP_STORE_EXCHANGE, &op);

    dp_mix_row_write(row, bytes);
    action->u.store.bytes = dp_view_of(bytes, DP_MIX_ROW_BYTES);
    memcpy(action->u.store.exchange, row->id.bytes, sizeof row->id.bytes);
    if (row->has_f) {
        action->u.store.keep[0] = row->f_root;
        action->u.store.keep[1] = row->own.root;
        if (row->mark != DP_MIX_MARK_ABORTED) {
            action->u.store.keep[2] = row->other.root;
        }
    }
    return op;
}

void dp_mix_row_delete(const dp_mix_id *id, dp_out *out)
{
    uint32_t op = 0; /* nothing waits for it: a row too many is settled at the next start */
    dp_action *const action = dp_out_store(out, DP_STORE_EXCHANGE, &op);

    memcpy(action->u.store.exchange, id->bytes, sizeof id->bytes);
}

uint32_t dp_mix_outcome_find(const dp_mix *mix, const dp_mix_id *id)
{
    uint32_t i = 0;

    dp_assert(mix->n_outcomes <= DP_MIX_OUTCOMES_MAX);
    while (i < mix->n_outcomes && !dp_mix_id_equal(&mix->outcomes[i].id, id)) {
        i++;
    }
    return i;
}

void dp_mix_outcome_add(dp_mix *mix, const dp_mix_row *row)
{
    dp_assert(mix->n_outcomes < DP_MIX_OUTCOMES_MAX);
    if (dp_mix_outcome_find(mix, &row->id) == mix->n_outcomes) {
        dp_assert(mix->n_outcomes < DP_MIX_OUTCOMES_MAX);
        mix->outcomes[mix->n_outcomes++] = *row;
    }
}

void dp_mix_outcome_close(dp_mix *mix, uint32_t index, dp_out *out)
{
    dp_assert(index < mix->n_outcomes);
    dp_assert(index < mix->n_outcomes);
    const dp_mix_id id = mix->outcomes[index].id;

    mix->outcomes[index] = mix->outcomes[--mix->n_outcomes];
    if (mix->has_f && dp_mix_id_equal(&mix->f.id, &id)) {
        mix->f.mark = DP_MIX_MARK_DONE; /* F still stands on it */
        DP_IGNORE(dp_mix_row_store(mix, &mix->f, out) == 0);
    } else {
        dp_mix_row_delete(&id, out);
    }
}

void dp_mix_release_f(dp_mix *mix, dp_out *out)
{
    dp_assert(mix->has_f);
    const uint32_t outcome = dp_mix_outcome_find(mix, &mix->f.id);

    mix->has_f = false;
    if (outcome < mix->n_outcomes) {
        mix->outcomes[outcome].has_f = false;
        DP_IGNORE(dp_mix_row_store(mix, &mix->outcomes[outcome], out) == 0);
    } else {
        dp_mix_row_delete(&mix->f.id, out);
    }
}

void dp_mix_adopt_f(dp_mix *mix, dp_out *out)
{
    if (mix->has_f && !dp_mix_id_equal(&mix->f.id, &mix->x.id)) {
        dp_mix_release_f(mix, out);
    }
    mix->has_f = true;
    mix->f = mix->x;
}

dp_mix_pair dp_mix_pair_of(const dp_mix_row *row)
{
    const dp_mix_terms *const a = row->initiator ? &row->own : &row->other;
    const dp_mix_terms *const b = row->initiator ? &row->other : &row->own;

    return (dp_mix_pair){.root_a = a->root,
                         .root_b = b->root,
                         .incarnation_a = a->incarnation,
                         .incarnation_b = b->incarnation};
}

void dp_mix_do_mix(const dp_mix *mix, dp_out *out)
{
    const dp_mix_row *const row = &mix->x;
    dp_action *const action = dp_out_add(out, DP_DO_MIX);

    memcpy(action->u.mix.exchange, row->id.bytes, sizeof row->id.bytes);
    action->u.mix.own_root = row->own.root;
    action->u.mix.other_root = row->other.root;
    action->u.mix.weight_own = dp_mix_weight(row->own.tokens, row->own.steps);
    action->u.mix.weight_other = dp_mix_weight(row->other.tokens, row->other.steps);
    action->u.mix.damp = row->damp;
    action->u.mix.lambda = (uint32_t)((uint64_t)mix->kept * row->damp / 65536);
}

dp_status dp_mix_restore(dp_mix *mix, const uint8_t exchange[DP_EXCHANGE_BYTES], dp_view row)
{
    dp_mix_row read;

    dp_assert(!mix->started);
    DP_TRY(dp_mix_row_read(row, &read));
    if (memcmp(read.id.bytes, exchange, DP_EXCHANGE_BYTES) != 0) {
        return DP_BADMSG;
    }
    if (mix->n_restored == DP_MIX_ROWS_MAX) {
        return DP_TOOBIG;
    }
    mix->restored[mix->n_restored++] = read;
    return DP_OK;
}

/* One row of an earlier life. newest: F is rebuilt from it. */
static void settle_row(dp_mix *mix, dp_mix_row *row, bool newest, dp_time now, dp_out *out)
{
    if (row->mark == DP_MIX_MARK_PREPARED) {
        /* As a, COMMIT was not sent; as b, nothing was decided, and an unknown exchange is an
         * aborted one. */
        row->mark = DP_MIX_MARK_ABORTED;
        if (newest) {
            DP_IGNORE(dp_mix_row_store(mix, row, out) == 0);
        }
    }
    if (newest) {
        mix->has_f = true;
        mix->f = *row;
        mix->trainer = false; /* until it is given F back */
    }
    if (row->mark == DP_MIX_MARK_ASKED && newest) { /* a later row would prove it settled */
        mix->x = *row;
        dp_mix_enter(mix, DP_MIX_ASKED, now);
        return;
    }
    if (row->mark == DP_MIX_MARK_COMMITTED && mix->n_outcomes < DP_MIX_OUTCOMES_MAX) {
        const bool stale = row->has_f && !newest;
        row->has_f = newest;
        dp_mix_outcome_add(mix, row);
        if (stale) {
            DP_IGNORE(dp_mix_row_store(mix, row, out) == 0);
        }
        return;
    }
    if (!newest) {
        dp_mix_row_delete(&row->id, out);
    }
}

void dp_mix_published(dp_mix *mix, uint64_t order)
{
    dp_assert(!mix->started);
    mix->published = order;
}

uint64_t dp_mix_order(const dp_mix *mix)
{
    return mix->order;
}

void dp_mix_start(dp_mix *mix, dp_time now, dp_out *out)
{
    uint32_t newest = DP_MIX_ROWS_MAX;

    dp_assert(!mix->started);
    mix->started = true;
    mix->order = mix->published;
    for (uint32_t i = 0; i < mix->n_restored; i++) {
        const dp_mix_row *const row = &mix->restored[i];
        mix->order = row->order > mix->order ? row->order : mix->order;
        if (row->has_f && row->order > mix->published &&
            (newest == DP_MIX_ROWS_MAX || row->order > mix->restored[newest].order)) {
            newest = i;
        }
    }
    for (uint32_t i = 0; i < mix->n_restored; i++) {
        settle_row(mix, &mix->restored[i], i == newest, now, out);
    }
    mix->n_restored = 0;
    mix->next_at = dp_time_after(now, dp_rng_below(&mix->rng, mix->config.pause_us + 1));
}

void dp_mix_trainer_up(dp_mix *mix)
{
    mix->trainer = true;
}

void dp_mix_trainer_restore(dp_mix *mix, dp_time now, uint32_t lambda, dp_out *out)
{
    dp_assert(lambda <= 65536);
    mix->trainer = true;
    if (!mix->has_f) {
        return;
    }
    mix->kept = lambda;
    dp_action *const action = dp_out_add(out, DP_DO_TRAINER_RESTORE);
    action->u.restore.frozen = true;
    action->u.restore.round = mix->now.round;
    action->u.restore.a_root = mix->f.f_root;
    action->u.restore.blob_root = mix->f.own.root;
    action->u.restore.settle = DP_SETTLE_NONE;
    action->u.restore.lambda = lambda;
    action->u.restore.steps =
        lambda > 0 ? mix->f.own.steps : 0; /* Worth nothing, it claims nothing. */
    action->u.restore.tokens = lambda > 0 ? mix->f.own.tokens : 0;
    const bool committed = mix->f.mark == DP_MIX_MARK_COMMITTED || mix->f.mark == DP_MIX_MARK_DONE;
    if (committed && mix->state == DP_MIX_IDLE) {
        mix->x = mix->f;
        mix->rebuilding = true;
        dp_mix_enter(mix, DP_MIX_MIXING, now);
        dp_mix_do_mix(mix, out);
    }
}

bool dp_mix_fence_self(dp_mix *mix, dp_time now, uint64_t incarnation, dp_out *out)
{
    bool void_here = false;

    if (dp_broken(36)) {
        return false;
    }
    for (uint32_t i = mix->n_outcomes; i-- > 0;) {
        if (mix->outcomes[i].own.incarnation <= incarnation) {
            dp_mix_outcome_close(mix, i, out);
        }
    }
    if (mix->state != DP_MIX_IDLE && mix->x.own.incarnation <= incarnation) {
        dp_mix_row_delete(&mix->x.id, out);
        dp_mix_give_up(mix, now, "fenced", out);
        void_here = true;
    }
    if (mix->has_f && mix->f.own.incarnation <= incarnation) {
        dp_mix_release_f(mix, out);
        void_here = true;
    }
    return void_here;
}

static bool needs(const dp_mix_row *row, const dp_hash *root)
{
    const bool mixes = row->mark == DP_MIX_MARK_ASKED || row->mark == DP_MIX_MARK_COMMITTED ||
                       row->mark == DP_MIX_MARK_DONE;

    return dp_hash_equal(&row->f_root, root) || dp_hash_equal(&row->own.root, root) ||
           (mixes && dp_hash_equal(&row->other.root, root));
}

bool dp_mix_lost(dp_mix *mix, dp_time now, const dp_hash *root, dp_out *out)
{
    const bool under_way = mix->state != DP_MIX_IDLE && mix->state != DP_MIX_FREEZING &&
                           mix->state != DP_MIX_OFFERED && needs(&mix->x, root);

    if (dp_broken(143) || (!under_way && !(mix->has_f && needs(&mix->f, root)))) {
        return false;
    }
    if (mix->state != DP_MIX_IDLE) {
        dp_mix_row_delete(&mix->x.id, out);
        dp_mix_give_up(mix, now, "lost", out);
    }
    if (mix->has_f) {
        dp_mix_release_f(mix, out);
    }
    return true;
}

void dp_mix_folded(dp_mix *mix, dp_time now, dp_out *out)
{
    (void)now;
    dp_assert(!dp_mix_locked(mix));
    if (mix->has_f) {
        dp_mix_release_f(mix, out);
        mix->shares_out = true;
    }
}

bool dp_mix_frozen_row(const dp_mix *mix, dp_mix_frozen_view *view)
{
    if (!mix->has_f) {
        return false;
    }
    *view = (dp_mix_frozen_view){
        .f_root = mix->f.f_root,
        .f_bytes = mix->f.f_bytes,
        .base = mix->f.base,
        .steps = mix->f.own.steps,
        .tokens = mix->f.own.tokens,
        .reach = mix->f.own.reach,
        .mixed = mix->f.mark == DP_MIX_MARK_COMMITTED || mix->f.mark == DP_MIX_MARK_DONE,
    };
    return true;
}
