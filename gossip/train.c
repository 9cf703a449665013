/* The trainer's side of a round: load, replay, train, publish, apply, settle, bring back after a crash. */
#include <string.h>

#include "base/assert.h"
#include "gossip/node_internal.h"

enum { PENDING_VERSION = 1, CKPT_NONE = DP_CKPTS_MAX };

/* ---- what was published ---- */

static bool is_undecided(const dp_node *node)
{
    const dp_pending *pending = &node->train.pending;

    return pending->has && pending->ready.round == node->ledger.round + 1 &&
           dp_hash_equal(&pending->ready.base, &node->ledger.base);
}

static void write_row(dp_node *node)
{
    dp_train *train = &node->train;
    dp_writer writer = dp_writer_of(train->row, sizeof train->row);
    dp_view row;

    if (train->op != 0) {
        train->row_waits = true;
        return;
    }
    train->row_waits = false;
    train->row_failed = false;
    dp_write_u8(&writer, PENDING_VERSION);
    dp_ready_msg_write(&writer, &train->pending.ready);
    dp_write_bytes(&writer, train->pending.a_root.bytes, DP_HASH_BYTES);
    dp_write_u64(&writer, train->pending.a_bytes);
    dp_write_u64(&writer, train->pending.slot);
    dp_write_bytes(&writer, train->pending.f_root.bytes, DP_HASH_BYTES);
    const dp_status status = dp_writer_finish(&writer, &row);
    dp_assert(status == DP_OK);
    dp_action *action = dp_out_store(&node->out, DP_STORE_PENDING, &train->op);
    action->u.store.bytes = row;
    action->u.store.keep[0] = train->pending.a_root;
    action->u.store.keep[1] = train->pending.ready.root;
}

dp_status dp_train_restore(dp_node *node, dp_view row)
{
    dp_pending *pending = &node->train.pending;
    dp_pending read = {.has = true, .durable = true};
    dp_reader reader = dp_reader_of(row);
    enum { READY_BYTES = 2 + 32 + 8 + 32 + 32 + 8 + 8 + 8 + 4 + 4 + 32 + DP_SIGNATURE_BYTES };

    if (dp_read_u8(&reader) != PENDING_VERSION) {
        return DP_VERSION;
    }
    const dp_view ready = dp_read_view(&reader, READY_BYTES);
    dp_read_bytes(&reader, read.a_root.bytes, DP_HASH_BYTES);
    read.a_bytes = dp_read_u64(&reader);
    read.slot = dp_read_u64(&reader);
    dp_read_bytes(&reader, read.f_root.bytes, DP_HASH_BYTES);
    DP_TRY(dp_reader_finish(&reader));
    DP_TRY(dp_ready_msg_read(ready, &read.ready));
    if (!dp_peer_equal(&read.ready.peer, &node->self)) {
        return DP_DENIED;
    }
#if DP_MUTATION == 26
    return DP_OK;
#endif
    *pending = read;
    return DP_OK;
}

/* Tell the contribution of the round under way; the same one after a restart. */
void dp_train_announce(dp_node *node)
{
    const dp_pending *pending = &node->train.pending;
    dp_writer writer = dp_writer_of(node->room, sizeof node->room);

    if (!pending->has || !pending->durable || !is_undecided(node) || node->halted) {
        return;
    }
    dp_round_ready(node, &pending->ready, false, true);
    dp_ready_msg_write(&writer, &pending->ready);
    if (node->ledger.n_members <= DP_LISTED_MAX) {
        dp_node_send_all(node, dp_view_of(writer.data, writer.size));
    } else {
        dp_node_send_voters(node, dp_view_of(writer.data, writer.size));
    }
}

bool dp_train_stored(dp_node *node, uint32_t op, dp_status status)
{
    dp_train *train = &node->train;

    if (train->op == 0 || op != train->op) {
        return false;
    }
    train->op = 0;
    if (train->row_waits) {
        write_row(node);
        return true;
    }
    if (status != DP_OK) {
        train->row_failed = true;
        return true;
    }
    train->pending.durable = true;
    if (!dp_hash_is_zero(&train->pending.f_root) && !dp_mix_locked(node->mix)) {
        dp_mix_folded(node->mix, node->now, &node->out);
    }
    dp_train_announce(node);
    node->dirty = true;
    return true;
}

static void on_published(dp_node *node, const dp_event *event)
{
    dp_train *train = &node->train;
    dp_mix_frozen_view frozen;

    if (!train->publishing) {
        return;
    }
    train->publishing = false;
    train->steps = 0;
    train->tokens = 0;
    train->exchanges = 0;
    dp_pending pending = {.has = true, .a_root = event->u.published.a_root, .a_bytes = event->u.published.a_bytes,
                          .slot = node->ledger.slot + 1};
    pending.ready = (dp_ready){.peer = node->self,
                               .round = event->u.published.round,
                               .base = train->publish_base,
                               .root = event->u.published.root,
                               .bytes = event->u.published.bytes,
                               .tokens = event->u.published.tokens,
                               .carried = event->u.published.carried,
                               .steps = event->u.published.steps,
                               .loss_micro = event->u.published.loss_micro,
                               .state_root = train->state_root};
    if (dp_mix_frozen_row(node->mix, &frozen)) {
        pending.f_root = frozen.f_root;
    }
    if (!dp_ready_sign(&pending.ready, &node->config.crypto, &node->run, &node->ledger.fork)) {
        return;
    }
    train->pending = pending;
    dp_node_hold(node, &pending.ready.root, pending.ready.bytes);
    dp_action *keep = dp_out_add(&node->out, DP_DO_OBJECT_KEEP);
    keep->u.keep.root = pending.ready.root;
    keep->u.keep.use = DP_USE_BLOB;
    keep->u.keep.round = pending.ready.round;
    dp_node_note(node, DP_NOTE_PUBLISHED, pending.ready.round, NULL, pending.ready.bytes, pending.ready.tokens, "");
    write_row(node);
    node->dirty = true;
}

/* ---- loading ---- */

static bool can_replay_from(const dp_node *node, uint64_t round)
{
    dp_hash digest;

    return round == node->ledger.round ||
           (round < node->ledger.round && dp_chain_digest(node, round, &digest) &&
            dp_chain_row(node, round + 1) != NULL && node->ledger.round - round < DP_RING_ROUNDS);
}

static bool is_certified_state(const dp_node *node, uint64_t round, const dp_hash *tensor_root, bool *known)
{
    dp_hash digest;
    dp_hash certified;

    *known = dp_chain_digest(node, round, &digest) && dp_chain_certified(node, round, &certified);
    if (!*known) {
        return false;
    }
    const dp_hash root = dp_state_root(round, tensor_root, &digest);
    return dp_hash_equal(&root, &certified);
}

static uint32_t best_ckpt(const dp_node *node)
{
    const dp_train *train = &node->train;
    uint32_t best = CKPT_NONE;

    for (uint32_t i = 0; i < DP_CKPTS_MAX; i++) {
        const dp_ckpt *ckpt = &train->ckpts[i];
        bool known = false;
        if (!ckpt->has || ckpt->bad || !can_replay_from(node, ckpt->round)) {
            continue;
        }
        if (!is_certified_state(node, ckpt->round, &ckpt->root, &known) && known) {
            continue;
        }
        if (best == CKPT_NONE || ckpt->round > train->ckpts[best].round) {
            best = i;
        }
    }
    return best;
}

void dp_train_ckpt(dp_node *node, uint64_t round, const dp_hash *root, uint64_t bytes)
{
    dp_ckpt *oldest = &node->train.ckpts[0];

    for (uint32_t i = 0; i < DP_CKPTS_MAX; i++) {
        dp_ckpt *ckpt = &node->train.ckpts[i];
        if (ckpt->has && ckpt->round == round) {
            oldest = ckpt;
            break;
        }
        if (!ckpt->has || (oldest->has && ckpt->round < oldest->round)) {
            oldest = ckpt;
        }
    }
    *oldest = (dp_ckpt){.has = true, .round = round, .root = *root, .bytes = bytes};
    node->dirty = true;
}

uint64_t dp_train_newest_ckpt(const dp_node *node)
{
    uint64_t newest = 0;

    for (uint32_t i = 0; i < DP_CKPTS_MAX; i++) {
        const dp_ckpt *ckpt = &node->train.ckpts[i];
        newest = ckpt->has && !ckpt->bad && ckpt->round > newest ? ckpt->round : newest;
    }
    return newest;
}

/* The chain is as long here as anybody linked says; a voter may go by its own. */
static bool knows_the_chain(const dp_node *node)
{
    if (dp_catchup_behind(node) || node->chain->op != 0) {
        return false;
    }
    if (dp_ledger_voter(&node->ledger, &node->self) != DP_NOBODY) {
        return true;
    }
    for (uint32_t i = 1; i < dp_members_count(node->members); i++) {
        const dp_member *member = dp_members_at(node->members, i);
        if (member->linked && member->has_summary) {
            return true;
        }
    }
    return false;
}

static void load(dp_node *node)
{
    dp_train *train = &node->train;

    if (!knows_the_chain(node)) {
        return;
    }
    const uint32_t best = best_ckpt(node);
    if (best != CKPT_NONE) {
        dp_action *action = dp_out_add(&node->out, DP_DO_TRAINER_LOAD);
        action->u.load.round = train->ckpts[best].round;
        action->u.load.root = train->ckpts[best].root;
        train->moving_round = train->ckpts[best].round;
        train->moving_root = train->ckpts[best].root;
        train->state = DP_TRAINER_MOVING;
        return;
    }
    if (node->ledger.round <= DP_WINDOW_ROUNDS && node->catchup.stuck_at.us == 0) {
        dp_out_add(&node->out, DP_DO_TRAINER_INIT);
        train->moving_round = 0;
        train->moving_root = (dp_hash){{0}};
        train->state = DP_TRAINER_MOVING;
        return;
    }
    dp_catchup_state(node);
}

static void reload(dp_node *node, const char *cause)
{
    dp_train *train = &node->train;

    dp_node_note(node, DP_NOTE_CATCHUP, node->ledger.round, NULL, train->applied, node->ledger.round, cause);
    train->state = DP_TRAINER_EMPTY;
    train->has_theta = false;
    train->applying = false;
    if (train->training) {
        dp_out_add(&node->out, DP_DO_TRAIN_STOP);
        train->training = false;
    }
    node->dirty = true;
}

static void diverged(dp_node *node)
{
    dp_train *train = &node->train;

    dp_node_note(node, DP_NOTE_DIVERGED, train->applied, NULL, 0, 0, "own state root differs");
    for (uint32_t i = 0; i < DP_CKPTS_MAX; i++) {
        if (train->ckpts[i].has && dp_hash_equal(&train->ckpts[i].root, &train->moving_root)) {
            train->ckpts[i].bad = true;
        }
    }
    node->round->states[node->commit->self == DP_NOBODY ? 0 : node->commit->self].known = false;
    reload(node, "state");
}

/* theta of round stands with this tensor root. */
static void arrive(dp_node *node, uint64_t round, const dp_hash *tensor_root)
{
    dp_train *train = &node->train;
    dp_hash digest;
    dp_hash certified;

    if (!dp_chain_digest(node, round, &digest)) {
        reload(node, "state"); /* The chain has run away meanwhile. */
        return;
    }
    train->applied = round;
    train->has_theta = true;
    train->tensor_root = *tensor_root;
    train->state_root = dp_state_root(round, tensor_root, &digest);
    train->saved = false;
    node->catchup.stuck_at = (dp_time){0};
    if (dp_chain_certified(node, round, &certified) && !dp_hash_equal(&certified, &train->state_root)) {
        diverged(node);
    }
}

static void on_at(dp_node *node, const dp_event *event)
{
    dp_train *train = &node->train;

    if (train->state != DP_TRAINER_MOVING || event->u.at.round != train->moving_round) {
        return;
    }
    if (event->u.at.status != DP_OK) {
        for (uint32_t i = 0; i < DP_CKPTS_MAX; i++) {
            if (train->ckpts[i].has && dp_hash_equal(&train->ckpts[i].root, &train->moving_root)) {
                train->ckpts[i].bad = true;
            }
        }
        reload(node, "broken checkpoint");
        return;
    }
    train->state = DP_TRAINER_SET;
    train->fresh = true;
    train->training = false;
    train->train_round = 0;
    dp_chain_cancel(node, event->u.at.round);
    arrive(node, event->u.at.round, &event->u.at.root);
    node->dirty = true;
}

/* ---- applying ---- */

/* lambda = 0.5^(gap / 4) in Q16, 0 beyond 16 rounds (review, B8). */
uint32_t dp_train_lambda(uint64_t gap)
{
    static const uint32_t quarter[4] = {65536, 55109, 46341, 38968};

    return gap > 16 ? 0 : quarter[gap % 4] >> (gap / 4);
}

static uint32_t settle_of(const dp_node *node, const dp_ring_row *row, uint32_t *clip)
{
    const dp_pending *pending = &node->train.pending;

    *clip = 0;
    if (!pending->has || pending->settled || node->train.fresh || pending->ready.round > row->round) {
        return DP_SETTLE_NONE;
    }
    for (uint32_t i = 0; pending->ready.round == row->round && i < row->n; i++) {
        const bool mine = dp_peer_equal(&row->items[i].peer, &node->self);
#if DP_MUTATION == 21
        if (mine) {
#else
        if (mine && dp_hash_equal(&row->items[i].root, &pending->ready.root)) {
#endif
            *clip = row->items[i].clip;
            return DP_SETTLE_INCLUDED;
        }
    }
    return DP_SETTLE_LEFT_OUT;
}

static bool fetch_row(dp_node *node, const dp_ring_row *row)
{
    bool whole = true;

    for (uint32_t i = 0; i < row->n; i++) {
        const dp_ring_item *item = &row->items[i];
        if (dp_node_holds(node, &item->root)) {
            continue;
        }
        whole = false;
        /* Dropped here: gone everywhere. And once a state is on its way, it has the room. */
        if (!row->dropped && !node->catchup.wants_state && !dp_spread_wants(node->spread, &item->root)) {
            const dp_priority priority = row->round == node->ledger.round ? DP_PRIORITY_ROUND : DP_PRIORITY_REPLAY;
            if (dp_spread_want(node->spread, node->now, &item->root, item->bytes, DP_USE_BLOB, priority,
                               &node->out) == DP_OK) {
                dp_spread_holders_all(node->spread, node->now, &item->root, &node->out);
            }
        }
    }
    return whole;
}

/* One missed gap of the chain costs this round's share of lambda; a fresh trainer pays all of it with its RESTORE. */
static uint32_t discount(dp_node *node, const dp_ring_row *row)
{
    if (node->train.fresh || row->touched) {
        return 65536;
    }
    const uint32_t lambda = row->gap > 16 ? 0 : dp_train_lambda(1);
    dp_node_note(node, DP_NOTE_DISCARDED, row->round, NULL, 65536 - lambda, 0, "lambda");
    return lambda;
}

static void replay(dp_node *node)
{
    dp_train *train = &node->train;
    const dp_ring_row *row = dp_chain_row(node, train->applied + 1);
    const dp_ring_row *after = dp_chain_row(node, train->applied + 2);

    if (row == NULL) {
        reload(node, "state");
        return;
    }
    const bool whole = fetch_row(node, row);
    if (after != NULL) {
        (void)fetch_row(node, after);
    }
    if (!whole) {
        if (node->catchup.stuck_at.us == 0) {
            node->catchup.stuck_at = node->now;
        }
        if (row->dropped || dp_time_between(node->catchup.stuck_at, node->now) > DP_STATE_PATIENCE_US) {
            dp_catchup_state(node);
        }
        return;
    }
    node->catchup.stuck_at = (dp_time){0};
    dp_action *action = dp_out_add(&node->out, DP_DO_APPLY);
    action->u.apply.round = row->round;
    action->u.apply.tokens = row->tokens;
    action->u.apply.alpha = row->alpha;
    action->u.apply.lambda = discount(node, row);
    action->u.apply.settle = settle_of(node, row, &action->u.apply.clip);
    action->u.apply.n_items = row->n;
    for (uint32_t i = 0; i < row->n; i++) {
        action->u.apply.items[i] =
            (dp_apply_item){.root = row->items[i].root, .bytes = row->items[i].bytes, .q = row->items[i].q};
    }
    if (action->u.apply.settle != DP_SETTLE_NONE) {
        train->pending.settled = true;
    }
    train->applying = true;
}

static void on_applied(dp_node *node, const dp_event *event)
{
    dp_train *train = &node->train;

    if (!train->applying || event->u.applied.round != train->applied + 1) {
        return;
    }
    train->applying = false;
    if (event->u.applied.status != DP_OK) {
        dp_node_note(node, DP_NOTE_DIVERGED, event->u.applied.round, NULL, 0, 0, "apply failed");
        reload(node, "state");
        return;
    }
    train->tensor_bytes = event->u.applied.tensor_bytes;
    dp_node_note(node, DP_NOTE_APPLIED, event->u.applied.round, NULL, 0, 0, "");
    arrive(node, event->u.applied.round, &event->u.applied.tensor_root);
    if (train->applied == node->ledger.round) {
        node->round->repeat_at = node->now; /* An offer to vote waits for the state. */
    }
    node->dirty = true;
}

/* The trainer is new: bring back what an earlier one had published or frozen. Replay is over. */
static void bring_back(dp_node *node)
{
    dp_train *train = &node->train;
    dp_pending *pending = &train->pending;
    const dp_chain *chain = node->chain;
    dp_mix_frozen_view frozen;

    train->fresh = false;
    if (pending->has) { /* Its objects are durable, even if the row is still being written. */
        dp_action *action = dp_out_add(&node->out, DP_DO_TRAINER_RESTORE);
        action->u.restore.round = pending->ready.round;
        action->u.restore.a_root = pending->a_root;
        action->u.restore.blob_root = pending->ready.root;
        action->u.restore.lambda = 65536;
        action->u.restore.settle = DP_SETTLE_NONE;
        pending->settled = !is_undecided(node);
        if (pending->settled) {
            bool included = chain->own_round == pending->ready.round;
#if DP_MUTATION != 21
            included = included && dp_hash_equal(&chain->own_root, &pending->ready.root);
#endif
            action->u.restore.settle = included ? DP_SETTLE_INCLUDED : DP_SETTLE_LEFT_OUT;
            action->u.restore.clip = included ? chain->own_clip : 0;
            action->u.restore.lambda = dp_train_lambda(chain->gap);
        }
    }
    if (dp_mix_frozen_row(node->mix, &frozen)) {
        if (pending->has && dp_hash_equal(&pending->f_root, &frozen.f_root) && !dp_mix_locked(node->mix)) {
            if (pending->durable) {
                dp_mix_folded(node->mix, node->now, &node->out); /* It is inside a already. */
            }
        } else {
            dp_mix_trainer_restore(node->mix, node->now, dp_train_lambda(chain->gap), &node->out);
        }
    }
}

/* ---- training ---- */

void dp_train_certified(dp_node *node, uint64_t round)
{
    dp_hash certified;

    if (node->train.has_theta && node->train.applied == round && !node->train.applying &&
        dp_chain_certified(node, round, &certified) && !dp_hash_equal(&certified, &node->train.state_root)) {
        diverged(node);
    }
}

static void save(dp_node *node)
{
    dp_train *train = &node->train;
    dp_hash certified;
    const dp_ring_row *row = dp_chain_row(node, train->applied);

    if (train->saved || row == NULL || !dp_chain_certified(node, train->applied, &certified)) {
        return;
    }
    train->saved = true;
    dp_action *action = dp_out_add(&node->out, DP_DO_SAVE);
    action->u.save.round = train->applied;
    action->u.save.slot = row->slot;
    action->u.save.state_root = certified;
    action->u.save.tensor_root = train->tensor_root;
}

static bool may_publish(const dp_node *node)
{
    const dp_train *train = &node->train;
    const uint64_t elapsed = dp_time_between(node->round->opened, node->now);

    if (node->mode != DP_MODE_SYNC || train->steps == 0 || is_undecided(node) ||
        (train->pending.has && !train->pending.durable) || train->op != 0 || dp_mix_busy(node->mix) ||
        dp_mix_locked(node->mix)) {
        return false;
    }
    const uint32_t others = dp_round_others_ready(node);
    return elapsed >= (uint64_t)node->manifest.round_ms * 1000 || train->steps >= node->manifest.inner_steps_max ||
           (others > 0 && others >= dp_deadline_enough(dp_round_active(node)));
}

static void open_trainer(dp_node *node)
{
    const dp_hash *needs[2] = {&node->manifest.tokenizer, &node->manifest.data};
    const uint64_t sizes[2] = {node->manifest.tokenizer_bytes, node->manifest.data_bytes};
    bool whole = true;

    for (uint32_t i = 0; i < 2; i++) {
        if (dp_hash_is_zero(needs[i]) || dp_node_holds(node, needs[i])) {
            continue;
        }
        whole = false;
        if (!dp_spread_wants(node->spread, needs[i]) &&
            dp_spread_want(node->spread, node->now, needs[i], sizes[i], DP_USE_DATA, DP_PRIORITY_DATA, &node->out) ==
                DP_OK) {
            dp_spread_holders_all(node->spread, node->now, needs[i], &node->out);
        }
    }
    if (whole && !node->train.opening && !node->config.observer) {
        node->train.opening = true;
        dp_out_add(&node->out, DP_DO_TRAINER_OPEN);
    }
}

void dp_train_start(dp_node *node)
{
    open_trainer(node);
}

static void train_on(dp_node *node)
{
    dp_train *train = &node->train;
    const bool may = !node->paused && !node->halted && !node->leaving && node->mode != DP_MODE_LEFT;

    if (!may) {
        if (train->training) {
            dp_out_add(&node->out, DP_DO_TRAIN_STOP);
            train->training = false;
            train->train_round = 0;
        }
        return;
    }
    if (!train->training || train->train_round != train->applied + 1) {
        dp_action *action = dp_out_add(&node->out, DP_DO_TRAIN);
        action->u.train.round = train->applied + 1;
        action->u.train.tokens = node->ledger.tokens;
        train->training = true;
        train->train_round = train->applied + 1;
    }
    if (may_publish(node)) {
        dp_action *action = dp_out_add(&node->out, DP_DO_PUBLISH);
        action->u.publish.round = train->applied + 1;
        action->u.publish.dense = train->exchanges >= 2;
        train->publishing = true;
        train->publish_base = node->ledger.base;
    }
}

void dp_train_advance(dp_node *node)
{
    dp_train *train = &node->train;

    if (train->state == DP_TRAINER_OFF) {
        open_trainer(node);
        return;
    }
    if (train->state == DP_TRAINER_EMPTY) {
        load(node);
        return;
    }
    if (train->state == DP_TRAINER_MOVING) {
        return;
    }
    if (train->applied == node->ledger.round) {
        dp_round_state_own(node);
    }
    if (train->state != DP_TRAINER_SET || train->applying || train->publishing) {
        return; /* One thing at a time: what is being published belongs to the present base. */
    }
    if (train->applied < node->ledger.round) {
        replay(node);
        return;
    }
    if (node->round->opened.us == 0) {
        node->round->opened = node->now;
        dp_node_note(node, DP_NOTE_ROUND_OPENED, train->applied + 1, NULL, 0, 0, "");
    }
    if (train->fresh) {
        bring_back(node);
    }
    save(node);
    train_on(node);
}

void dp_train_tick(dp_node *node)
{
    if (node->train.row_failed) {
        write_row(node);
    }
}

dp_time dp_train_wake(const dp_node *node)
{
    const dp_train *train = &node->train;

    if (train->state != DP_TRAINER_SET || !train->training || is_undecided(node) || node->round->opened.us == 0) {
        return DP_NEVER;
    }
    const dp_time due = dp_time_after(node->round->opened, (uint64_t)node->manifest.round_ms * 1000);
    return due.us > node->now.us ? due : DP_NEVER; /* After it every TRAINED event asks again. */
}

/* ---- events ---- */

static void trainer_down(dp_node *node)
{
    dp_train *train = &node->train;

    train->state = DP_TRAINER_OFF;
    train->has_theta = false;
    train->applying = false;
    train->publishing = false;
    train->training = false;
    train->train_round = 0;
    train->steps = 0;
    train->checks = 0;
    if (train->pending.has && !train->pending.settled && !is_undecided(node)) {
        train->pending.settled = true; /* The RESTORE settles it. */
    }
    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        node->round->claims[i].checking = false;
    }
    dp_mix_trainer_down(node->mix, node->now, &node->out);
    node->dirty = true;
}

void dp_train_event(dp_node *node, const dp_event *event)
{
    dp_train *train = &node->train;

    switch ((int)event->type) {
    case DP_EV_TRAINER_UP:
        train->state = DP_TRAINER_EMPTY;
        train->opening = true;
        for (uint32_t i = 0; i < node->round->n_claims; i++) {
            if (node->round->claims[i].held && !node->round->claims[i].checked) {
                dp_round_object(node, &node->round->claims[i].ready.root, node->round->claims[i].size);
            }
        }
        node->round->repeat_at = node->now;
        node->dirty = true;
        break;
    case DP_EV_TRAINER_DOWN:
        trainer_down(node);
        break;
    case DP_EV_TRAINER_AT:
        on_at(node, event);
        break;
    case DP_EV_TRAINED:
        train->steps = event->u.trained.steps;
        train->tokens = event->u.trained.tokens;
        train->step_us = event->u.trained.step_us;
        node->dirty = true;
        break;
    case DP_EV_PUBLISHED:
        on_published(node, event);
        break;
    case DP_EV_APPLIED:
        on_applied(node, event);
        break;
    case DP_EV_SAVED:
        dp_train_ckpt(node, event->u.saved.round, &event->u.saved.tensor_root, event->u.saved.tensor_bytes);
        break;
    default: /* The caller sends nothing else. */
        break;
    }
}
