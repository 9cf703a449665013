/* The state of an exchange, field by field: its actions, rows and views, and the times of its
 * timers. */
#include "base/trainer/trainer_msg.h"
#include "tests/unit/gossip/kit/mix_kit.h"

static uint32_t count_drops(const pool *p, const dp_hash *root)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->actions->count; i++) {
        const dp_action *action = &p->actions->items[i];
        n += action->type == DP_DO_OBJECT_DROP && dp_hash_equal(&action->u.keep.root, root) &&
             action->u.keep.use == DP_USE_EXCHANGE;
    }
    return n;
}

static void a_view_says_what_is_under_way(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    mix->x = mix_row_of(1, true, DP_MIX_MARK_ASKED);
    mix->f = mix->x;
    mix->has_f = true;
    mix->state = DP_MIX_ASKED;
    mix->since = (dp_time){123};
    mix->done = 11;
    mix->aborted = 12;
    mix->n_outcomes = 2;
    const dp_mix_look look = dp_mix_view(mix);
    CHECK(look.state == DP_MIX_ASKED && look.initiator && look.in_doubt && look.since.us == 123);
    CHECK(dp_peer_equal(&look.peer, &mix->x.peer) && look.peer_incarnation == 8);
    CHECK(look.done == 11 && look.aborted == 12 && look.outcomes == 2);
    assert_memory_equal(look.exchange, mix->x.id.bytes, sizeof look.exchange);
    assert_memory_equal(look.life, mix->x.life, sizeof look.life);
    CHECK(dp_mix_busy(mix) && dp_mix_locked(mix));
    mix->n_outcomes = 0;
    dp_mix_frozen_view frozen;
    CHECK(dp_mix_frozen_row(mix, &frozen));
    CHECK(dp_hash_equal(&frozen.f_root, &mix->f.f_root) && frozen.f_bytes == 102);
    CHECK(dp_hash_equal(&frozen.base, &pool_base) && frozen.steps == 4 && frozen.tokens == 40);
    CHECK(frozen.reach.leased == 6 && frozen.reach.own == 7 && !frozen.mixed);
    for (int mark = DP_MIX_MARK_PREPARED; mark <= DP_MIX_MARK_DONE; mark++) {
        mix->f.mark = (dp_mix_mark)mark;
        CHECK(dp_mix_frozen_row(mix, &frozen));
        CHECK(frozen.mixed == (mark == DP_MIX_MARK_COMMITTED || mark == DP_MIX_MARK_DONE));
    }
    mix->has_f = false;
    CHECK(!dp_mix_frozen_row(mix, &frozen));
    mix->state = DP_MIX_IDLE;
    CHECK(!dp_mix_busy(mix) && !dp_mix_locked(mix));
    pool_close(p);
}

static void the_trainer_is_given_the_frozen_work_and_mixes_again_what_was_committed(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    mix->trainer = false;
    dp_mix_trainer_restore(mix, pool_now(p), 65536, &p->out);
    CHECK(p->actions->count == 0 && mix->trainer);
    mix->f = mix_row_of(1, false, DP_MIX_MARK_ABORTED);
    mix->has_f = true;
    mix->now.round = 9;
    dp_mix_trainer_restore(mix, pool_now(p), 1000, &p->out);
    CHECK(p->actions->count == 1 && mix->state == DP_MIX_IDLE && mix->kept == 1000);
    const dp_action *restore = mix_find_action(p, DP_DO_TRAINER_RESTORE);
    CHECK(restore != NULL && restore->u.restore.frozen && restore->u.restore.round == 9);
    CHECK(dp_hash_equal(&restore->u.restore.a_root, &mix->f.f_root));
    CHECK(dp_hash_equal(&restore->u.restore.blob_root, &mix->f.own.root));
    CHECK(restore->u.restore.settle == DP_SETTLE_NONE && restore->u.restore.lambda == 1000);
    CHECK(restore->u.restore.steps == 4 && restore->u.restore.tokens == 40);
    mix->f.mark = DP_MIX_MARK_DONE;
    (void)mix_begin_at(p);
    dp_mix_trainer_restore(mix, pool_now(p), 32768, &p->out);
    CHECK(mix->state == DP_MIX_MIXING && mix->rebuilding);
    const dp_action *mixes = mix_find_action(p, DP_DO_MIX);
    CHECK(mixes != NULL);
    assert_memory_equal(mixes->u.mix.exchange, mix->f.id.bytes, DP_EXCHANGE_BYTES);
    CHECK(dp_hash_equal(&mixes->u.mix.own_root, &mix->f.own.root));
    CHECK(dp_hash_equal(&mixes->u.mix.other_root, &mix->f.other.root));
    CHECK(mixes->u.mix.weight_own == 400 && mixes->u.mix.weight_other == 2000);
    CHECK(mixes->u.mix.damp == 32768 && mixes->u.mix.lambda == 16384);
    (void)mix_begin_at(p);
    mix->done = 0;
    dp_event mixed = {.type = DP_EV_MIXED, .u.mixed = {.status = DP_CORRUPT}};
    memcpy(mixed.u.mixed.exchange, mix->f.id.bytes, DP_EXCHANGE_BYTES);
    CHECK(dp_mix_mixed(mix, pool_now(p), &mixed, &p->out));
    CHECK(mix->state == DP_MIX_MIXING && mix->write_at.us > p->now);
    mixed.u.mixed.status = DP_OK;
    CHECK(dp_mix_mixed(mix, pool_now(p), &mixed, &p->out));
    CHECK(mix->state == DP_MIX_IDLE && mix->done == 0 &&
          !mix->rebuilding); /* It was counted then. */
    CHECK(!dp_mix_mixed(mix, pool_now(p), &mixed, &p->out));
    pool_close(p);
}

static void a_row_keeps_the_objects_that_it_needs(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);
    const dp_hash none = {{0}};

    (void)state;
    for (int mark = DP_MIX_MARK_PREPARED; mark <= DP_MIX_MARK_DONE; mark++) {
        for (uint32_t f = 0; f < 2; f++) {
            dp_mix_row row = mix_row_of(3, mark != DP_MIX_MARK_COMMITTED, (dp_mix_mark)mark);
            dp_mix_row read;
            row.has_f = f == 1;
            (void)mix_begin_at(p);
            const uint32_t op = dp_mix_row_store(mix, &row, &p->out);
            const dp_action *store = mix_find_action(p, DP_DO_STORE);
            CHECK(op != 0 && store != NULL && store->u.store.op == op);
            CHECK(store->u.store.kind == DP_STORE_EXCHANGE);
            assert_memory_equal(store->u.store.exchange, row.id.bytes, DP_EXCHANGE_BYTES);
            CHECK(dp_hash_equal(&store->u.store.keep[0], f ? &row.f_root : &none));
            CHECK(dp_hash_equal(&store->u.store.keep[1], f ? &row.own.root : &none));
            CHECK(dp_hash_equal(&store->u.store.keep[2],
                                f && mark != DP_MIX_MARK_ABORTED ? &row.other.root : &none));
            CHECK_OK(dp_mix_row_read(store->u.store.bytes, &read));
            assert_memory_equal(&read, &row, sizeof row);
        }
    }
    (void)mix_begin_at(p);
    const dp_mix_id id = {{9}};
    dp_mix_row_delete(&id, &p->out);
    const dp_action *store = mix_find_action(p, DP_DO_STORE);
    CHECK(store != NULL && store->u.store.bytes.size == 0);
    assert_memory_equal(store->u.store.exchange, id.bytes, DP_EXCHANGE_BYTES);
    pool_close(p);
}

/* An attempt without a row drops all three objects, unless F depends on them. */
static void objects_of_an_attempt_without_a_row_are_dropped(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    for (uint32_t needed = 0; needed < 4; needed++) {
        mix->x = mix_row_of(4, false, DP_MIX_MARK_PREPARED);
        mix->f = mix_row_of(5, false, DP_MIX_MARK_ABORTED);
        mix->has_f = true;
        const dp_hash roots[3] = {mix->x.f_root, mix->x.own.root, mix->x.other.root};
        mix->f.f_root = needed == 1 ? roots[0] : mix->f.f_root;
        mix->f.own.root = needed == 2 ? roots[1] : mix->f.own.root;
        mix->f.other.root = needed == 3 ? roots[2] : mix->f.other.root;
        mix->state = DP_MIX_FETCHING;
        mix->fetched = true;
        mix->other_prepared = mix->abort_wanted = mix->rebuilding = true;
        mix->aborted = 0;
        (void)mix_begin_at(p);
        dp_mix_abort(mix, pool_now(p), true, &p->out);
        for (uint32_t i = 0; i < 3; i++) {
            CHECK(count_drops(p, &roots[i]) == (needed == i + 1 ? 0 : 1));
        }
        CHECK(mix->state == DP_MIX_IDLE && mix->aborted == 1 && mix->op == 0);
        CHECK(!mix->fetched && !mix->other_prepared && !mix->abort_wanted && !mix->rebuilding);
        CHECK(mix->next_at.us >= p->now + mix->config.pause_us / 2);
        CHECK(mix->next_at.us <= p->now + mix->config.pause_us * 3 / 2);
        const dp_action *note = mix_find_action(p, DP_DO_NOTE);
        CHECK(note != NULL && note->u.note.code == DP_NOTE_EXCHANGE);
        CHECK(note->u.note.a == 400 && note->u.note.b == 2000);
        CHECK(dp_peer_equal(&note->u.note.peer, &(dp_peer){{2, 0x55}}));
        assert_string_equal(note->u.note.cause, "aborted");
    }
    mix->has_f = false;
    pool_close(p);
}

static void an_attempt_with_a_row_has_it_say_that_it_was_aborted(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);
    dp_mix_row read;

    (void)state;
    mix->x = mix_row_of(4, false, DP_MIX_MARK_PREPARED);
    mix->f = mix->x;
    mix->has_f = true;
    mix->state = DP_MIX_PREPARED;
    dp_mix_abort(mix, pool_now(p), false, &p->out);
    const dp_action *store = mix_find_action(p, DP_DO_STORE);
    CHECK(store != NULL);
    CHECK_OK(dp_mix_row_read(store->u.store.bytes, &read));
    CHECK(read.mark == DP_MIX_MARK_ABORTED && mix->f.mark == DP_MIX_MARK_ABORTED);
    CHECK(mix_find_action(p, DP_DO_OBJECT_DROP) == NULL && mix_find_action(p, DP_DO_SEND) == NULL);
    mix->has_f = false;
    pool_close(p);
}

static void it_wakes_for_what_is_due_first(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);
    const uint64_t now = p->now;

    (void)state;
    mix->now.gossip = true;
    mix->trainer = true;
    mix->next_at = (dp_time){now + 90};
    CHECK(dp_mix_wake(mix).us == now + 90);
    mix->trainer = false;
    CHECK(dp_mix_wake(mix).us == UINT64_MAX);
    mix->n_outcomes = 1;
    mix->nudge_at = (dp_time){now + 95};
    CHECK(dp_mix_wake(mix).us == now + 95);
    mix->trainer = true;
    CHECK(dp_mix_wake(mix).us == now + 90);
    mix->state = DP_MIX_ASKED; /* Which waits without end. */
    mix->progress = (dp_time){now};
    mix->retry_at = (dp_time){now + 80};
    CHECK(dp_mix_wake(mix).us == now + 80);
    mix->retry_at = (dp_time){now + 2 * DP_MIX_WAIT_US};
    mix->n_outcomes = 0;
    CHECK(dp_mix_wake(mix).us == now + 2 * DP_MIX_WAIT_US);
    mix->state = DP_MIX_OFFERED;
    CHECK(dp_mix_wake(mix).us == now + DP_MIX_WAIT_US);
    mix->write_at = (dp_time){now + 70};
    CHECK(dp_mix_wake(mix).us == now + 70);
    mix->started = false;
    CHECK(dp_mix_wake(mix).us == UINT64_MAX);
    mix->started = true;
    mix->write_at = (dp_time){0};
    mix->state = DP_MIX_IDLE;
    pool_close(p);
}

static void an_outcome_that_is_not_closed_is_told_again_every_ten_seconds(void **state)
{
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);
    const uint64_t due = p->now + DP_SECOND;

    (void)state;
    mix->now.gossip = false;
    mix->outcomes[0] = mix_row_of(1, false, DP_MIX_MARK_COMMITTED);
    mix->outcomes[1] = mix_row_of(2, false, DP_MIX_MARK_COMMITTED);
    mix->n_outcomes = 2;
    mix->nudge_at = (dp_time){due};
    mix->nudge_next = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const uint64_t at = due + i * 10 * DP_SECOND;
        (void)mix_begin_at(p);
        dp_mix_tick(mix, (dp_time){at - 1}, &p->out);
        CHECK(p->actions->count == 0);
        dp_mix_tick(mix, (dp_time){at}, &p->out);
        dp_mix_msg msg;
        const dp_action *send = mix_find_action(p, DP_DO_SEND);
        CHECK(send != NULL);
        CHECK_OK(dp_mix_msg_read(send->u.send.bytes, &msg));
        CHECK(msg.type == DP_MSG_MIX_DONE && msg.id.bytes[0] == 1 + i % 2);
        CHECK(msg.ticket == mix->outcomes[i % 2].ticket);
        CHECK(dp_hash_equal(&msg.pair.root_a, &mix->outcomes[i % 2].other.root));
        CHECK(dp_hash_equal(&msg.pair.root_b, &mix->outcomes[i % 2].own.root));
        CHECK(msg.pair.incarnation_a == 8 && msg.pair.incarnation_b == 5);
        CHECK(mix->nudge_at.us == at + 10 * DP_SECOND);
    }
    mix->n_outcomes = 0;
    pool_close(p);
}

static void a_message_is_told_again_after_waits_that_double_three_times(void **state)
{
    static const uint32_t waits[] = {2, 4, 8, 8, 8};
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);
    uint64_t at = p->now;

    (void)state;
    mix->x = mix_row_of(1, true, DP_MIX_MARK_ASKED);
    mix->f = mix->x;
    mix->has_f = true;
    dp_mix_enter(mix, DP_MIX_ASKED, (dp_time){at});
    CHECK(mix->progress.us == at && mix->retries == 0);
    CHECK(mix->retry_at.us == at + DP_MIX_RETRY_US);
    at += DP_MIX_RETRY_US;
    for (uint32_t i = 0; i < 5; i++) {
        (void)mix_begin_at(p);
        dp_mix_tick(mix, (dp_time){at - 1}, &p->out);
        CHECK(mix_find_action(p, DP_DO_SEND) == NULL);
        dp_mix_tick(mix, (dp_time){at}, &p->out);
        CHECK(mix_find_action(p, DP_DO_SEND) != NULL);
        const dp_action *note = mix_find_action(p, DP_DO_NOTE);
        CHECK((note != NULL) == (i == 2));
        at += waits[i] * DP_MIX_RETRY_US;
        CHECK(mix->retry_at.us == at);
    }
    mix->state = DP_MIX_IDLE;
    mix->has_f = false;
    pool_close(p);
}

/* As initiator or not; lost while it is under way, or when only F depends on it. */
static void an_object_that_is_lost_ends_what_needs_it_and_nothing_else(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);
    const dp_hash other = {{200}};

    (void)state;
    mix->f = mix_row_of(1, true, DP_MIX_MARK_ABORTED);
    mix->has_f = true;
    CHECK(!dp_mix_lost(mix, pool_now(p), &other, &p->out) && mix->has_f);
    CHECK(!dp_mix_lost(mix, pool_now(p), &mix->f.other.root, &p->out) && mix->has_f);
    CHECK(dp_mix_lost(mix, pool_now(p), &mix->f.own.root, &p->out) && !mix->has_f);
    mix->f = mix_row_of(1, true, DP_MIX_MARK_DONE);
    mix->has_f = true;
    CHECK(dp_mix_lost(mix, pool_now(p), &mix->f.other.root, &p->out) && !mix->has_f);
    for (int state_of = DP_MIX_FREEZING; state_of <= DP_MIX_MIXING; state_of++) {
        const bool begun = state_of != DP_MIX_FREEZING && state_of != DP_MIX_OFFERED;
        mix->x = mix_row_of(2, false, DP_MIX_MARK_PREPARED);
        mix->state = (dp_mix_state)state_of;
        mix->aborted = 0;
        CHECK(dp_mix_lost(mix, pool_now(p), &mix->x.f_root, &p->out) == begun);
        CHECK((mix->state == DP_MIX_IDLE) == begun && mix->aborted == (begun ? 1 : 0));
    }
    mix->state = DP_MIX_IDLE;
    pool_close(p);
}

static void a_fence_ends_what_lives_up_to_it_had_begun(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);
    const dp_peer peer = mesh_peer(1);
    const dp_peer nobody = mesh_peer(0);

    (void)state;
    for (uint32_t up_to = 7; up_to <= 8; up_to++) {
        mix->x = mix_row_of(2, true, DP_MIX_MARK_ASKED);
        mix->f = mix->x;
        mix->has_f = true;
        mix->state = DP_MIX_ASKED;
        mix->outcomes[0] = mix_row_of(4, false, DP_MIX_MARK_COMMITTED);
        mix->n_outcomes = 1;
        (void)mix_begin_at(p);
        dp_mix_fence(mix, pool_now(p), &nobody, up_to, &p->out);
        CHECK(mix->state == DP_MIX_ASKED && mix->n_outcomes == 1);
        dp_mix_fence(mix, pool_now(p), &peer, up_to, &p->out);
        CHECK((mix->state == DP_MIX_IDLE) == (up_to == 8));
        CHECK(mix->n_outcomes == (up_to == 8 ? 0 : 1));
    }
    /* Of a later life than the one that is fenced: it goes on, and the outcomes of others end. */
    for (uint32_t same = 0; same < 2; same++) {
        mix->x = mix_row_of(2, true, DP_MIX_MARK_ASKED);
        mix->x.other.incarnation = 9;
        mix->f = mix->x;
        mix->has_f = true;
        mix->state = DP_MIX_ASKED;
        mix->outcomes[0] = mix_row_of(4, false, DP_MIX_MARK_COMMITTED);
        mix->outcomes[0].id = same == 1 ? mix->x.id : mix->outcomes[0].id;
        mix->n_outcomes = 1;
        (void)mix_begin_at(p);
        dp_mix_fence(mix, pool_now(p), &peer, 8, &p->out);
        CHECK(mix->state == DP_MIX_ASKED && mix->n_outcomes == same);
    }
    mix->state = DP_MIX_IDLE;
    mix->outcomes[0] = mix_row_of(4, false, DP_MIX_MARK_COMMITTED);
    mix->n_outcomes = 1;
    mix->f = mix_row_of(6, false, DP_MIX_MARK_ABORTED);
    mix->has_f = true;
    (void)mix_begin_at(p);
    CHECK(!dp_mix_fence_self(mix, pool_now(p), 4, &p->out));
    CHECK(mix->n_outcomes == 1 && mix->has_f);
    CHECK(dp_mix_fence_self(mix, pool_now(p), 5, &p->out));
    CHECK(mix->n_outcomes == 0 && !mix->has_f);
    CHECK(!dp_mix_fence_self(mix, pool_now(p), 5, &p->out));
    mix->x = mix_row_of(2, true, DP_MIX_MARK_ASKED);
    mix->state = DP_MIX_ASKED;
    CHECK(!dp_mix_fence_self(mix, pool_now(p), 4, &p->out) && mix->state == DP_MIX_ASKED);
    CHECK(dp_mix_fence_self(mix, pool_now(p), 5, &p->out) && mix->state == DP_MIX_IDLE);
    pool_close(p);
}

static void the_kept_share_of_the_work_shrinks_by_each_fade(void **state)
{
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    mix->kept = 65536;
    dp_mix_faded(mix, 65536);
    CHECK(mix->kept == 65536);
    dp_mix_faded(mix, 32768);
    CHECK(mix->kept == 32768);
    dp_mix_faded(mix, 16384);
    CHECK(mix->kept == 8192);
    dp_mix_faded(mix, 0);
    CHECK(mix->kept == 0);
    pool_close(p);
}

static void an_exchange_given_up_during_its_write_ends_when_the_row_is_durable(void **state)
{
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    for (uint32_t what = 0; what < 3; what++) {
        mix->x = mix_row_of(4, false, DP_MIX_MARK_PREPARED);
        mix->has_f = false;
        mix->fetched = true;
        mix->abort_wanted = false;
        mix->state = DP_MIX_PREPARING;
        mix->op = 7;
        mix->aborted = 0;
        (void)mix_begin_at(p);
        if (what == 0) {
            CHECK(!dp_mix_finish(mix, pool_now(p), &p->out));
            CHECK(mix->state == DP_MIX_PREPARING && mix->abort_wanted && p->actions->count == 0);
        }
        CHECK(!dp_mix_stored(mix, pool_now(p), 6, DP_OK, &p->out));
        CHECK(!dp_mix_stored(mix, pool_now(p), 0, DP_OK, &p->out));
        CHECK(dp_mix_stored(mix, pool_now(p), 7, what == 2 ? DP_NOSPACE : DP_OK, &p->out));
        CHECK((mix->state == DP_MIX_PREPARED) == (what == 1));
        CHECK((mix->state == DP_MIX_IDLE) == (what != 1));
        CHECK(mix->aborted == (what == 1 ? 0 : 1) && mix->op == 0);
        CHECK(mix->has_f == (what != 2));
        dp_mix_msg msg;
        const dp_action *send = mix_find_action(p, DP_DO_SEND);
        CHECK(send != NULL);
        CHECK_OK(dp_mix_msg_read(send->u.send.bytes, &msg));
        CHECK(msg.type == (what == 1 ? DP_MSG_MIX_ACK : DP_MSG_MIX_STATUS));
        CHECK(msg.ticket == 44);
        CHECK(what == 1 ? msg.prepared : msg.status == DP_MIX_STATUS_ABORTED);
        CHECK(count_drops(p, &(dp_hash){{2, 4}}) == 1); /* The pin of the other's work. */
        mix->state = DP_MIX_IDLE;
        mix->has_f = false;
    }
    pool_close(p);
}

/* It may be on the disk nevertheless: the write of a decision is repeated until it succeeds. */
static void a_decision_that_could_not_be_written_is_written_again_after_a_second(void **state)
{
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    for (uint32_t what = 0; what < 2; what++) {
        mix->x = mix_row_of(4, what == 0, what == 0 ? DP_MIX_MARK_ASKED : DP_MIX_MARK_COMMITTED);
        mix->f = mix->x;
        mix->has_f = true;
        dp_mix_enter(mix, what == 0 ? DP_MIX_ASKING : DP_MIX_COMMITTING, pool_now(p));
        mix->op = 7;
        (void)mix_begin_at(p);
        CHECK(dp_mix_stored(mix, pool_now(p), 7, DP_NOSPACE, &p->out));
        CHECK(mix->op == 0 && mix->write_at.us == p->now + DP_SECOND && p->actions->count == 0);
        dp_mix_tick(mix, (dp_time){p->now + DP_SECOND - 1}, &p->out);
        CHECK(mix_find_action(p, DP_DO_STORE) == NULL);
        dp_mix_tick(mix, (dp_time){p->now + DP_SECOND}, &p->out);
        const dp_action *store = mix_find_action(p, DP_DO_STORE);
        CHECK(store != NULL && mix->op == store->u.store.op && mix->write_at.us == 0);
        CHECK(dp_mix_stored(mix, pool_now(p), mix->op, DP_OK, &p->out));
        CHECK(mix->state == (what == 0 ? DP_MIX_ASKED : DP_MIX_MIXING));
        mix->state = DP_MIX_IDLE;
        mix->n_outcomes = 0;
    }
    mix->has_f = false;
    pool_close(p);
}

/* Its acceptance may have been lost; before there is one, nothing is answered. */
static void an_offer_that_comes_again_is_answered_once_its_terms_are_known(void **state)
{
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);
    const dp_peer peer = mesh_peer(1);
    uint8_t bytes[DP_MIX_MESSAGE_MAX];
    const dp_mix_msg offer = {.type = DP_MSG_MIX_OFFER,
                              .id = dp_mix_id_of(&peer, 8, 34),
                              .number = 34,
                              .base = pool_base,
                              .terms = {.incarnation = 8}};

    (void)state;
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    dp_mix_msg_write(&writer, &offer);
    for (int state_of = DP_MIX_FREEZING; state_of <= DP_MIX_MIXING; state_of++) {
        mix->x = mix_row_of(4, false, DP_MIX_MARK_PREPARED);
        mix->x.id = offer.id;
        mix->state = (dp_mix_state)state_of;
        (void)mix_begin_at(p);
        CHECK_OK(dp_mix_message(mix, pool_now(p), 1, dp_view_of(bytes, writer.size), &p->out));
        const bool answers = state_of == DP_MIX_FETCHING || state_of == DP_MIX_PREPARED;
        CHECK(p->actions->count == (answers ? 1 : 0));
        CHECK(mix->state == (dp_mix_state)state_of);
    }
    mix->state = DP_MIX_IDLE;
    pool_close(p);
}

/* The responder's terms, its ticket, and its statement for the voters. */
static void an_acceptance_is_taken_as_its_author_signed_it(void **state)
{
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);
    const dp_crypto crypto = mesh_crypto(1);
    const dp_peer self = mix->config.self;
    uint8_t bytes[DP_MIX_MESSAGE_MAX];

    (void)state;
    for (uint32_t forged = 0; forged < 2; forged++) {
        const dp_mix_row sample = mix_row_of(4, true, DP_MIX_MARK_PREPARED);
        dp_mix_msg ack = {.type = DP_MSG_MIX_ACK,
                          .id = sample.id,
                          .ticket = 99,
                          .prepared = true,
                          .base = pool_base,
                          .terms = sample.other};
        dp_fence_ask life = {.fence = {.peer = mesh_peer(1), .incarnation = 8}, .asker = self};
        memcpy(life.exchange, sample.id.bytes, sizeof life.exchange);
        CHECK(dp_life_sign(&life, &crypto, &mix->config.run));
        memcpy(ack.life, life.signature, sizeof ack.life);
        ack.life[3] ^= (uint8_t)forged;
        mix->x = sample;
        mix->x.ticket = 0;
        mix->x.other = (dp_mix_terms){.bytes = 0};
        memset(mix->x.life, 0, sizeof mix->x.life);
        mix->other_prepared = mix->fetched = false;
        dp_mix_enter(mix, DP_MIX_OFFERED, pool_now(p));
        (void)mix_begin_at(p);
        dp_writer writer = dp_writer_of(bytes, sizeof bytes);
        dp_mix_msg_write(&writer, &ack);
        CHECK_OK(dp_mix_message(mix, pool_now(p), 1, dp_view_of(bytes, writer.size), &p->out));
        CHECK(mix->state == (forged ? DP_MIX_OFFERED : DP_MIX_FETCHING));
        CHECK(mix->x.ticket == (forged ? 0 : 99) && mix->other_prepared == !forged);
        CHECK(dp_hash_equal(&mix->x.other.root, &sample.other.root) == !forged);
        CHECK((memcmp(mix->x.life, life.signature, sizeof mix->x.life) == 0) == !forged);
        if (!forged) {
            dp_mix_abort(mix, pool_now(p), false, &p->out);
        }
        mix->state = DP_MIX_IDLE;
    }
    pool_close(p);
}

/* In the terms that the other hears, and in the row. */
static void what_the_trainer_has_frozen_is_in_the_exchange_field_by_field(void **state)
{
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);
    dp_event event = {.type = DP_EV_FROZEN,
                      .u.frozen = {.root = {{1}},
                                   .bytes = 2,
                                   .f_root = {{3}},
                                   .f_bytes = 4,
                                   .steps = 5,
                                   .tokens = 6,
                                   .reach = {.leased = 7, .own = 8},
                                   .energy = 9}};

    (void)state;
    for (uint32_t initiator = 0; initiator < 2; initiator++) {
        mix->x = mix_row_of(4, initiator == 1, DP_MIX_MARK_PREPARED);
        mix->x.own = (dp_mix_terms){.incarnation = 1};
        memcpy(event.u.frozen.exchange, mix->x.id.bytes, sizeof event.u.frozen.exchange);
        mix->state = DP_MIX_OFFERED;
        CHECK(!dp_mix_frozen(mix, pool_now(p), &event, &p->out)); /* It does not wait for this. */
        mix->state = DP_MIX_FREEZING;
        CHECK(dp_mix_frozen(mix, pool_now(p), &event, &p->out));
        CHECK(mix->state == (initiator == 1 ? DP_MIX_OFFERED : DP_MIX_FETCHING));
        CHECK(mix->x.own.root.bytes[0] == 1 && mix->x.own.bytes == 2);
        CHECK(mix->x.f_root.bytes[0] == 3 && mix->x.f_bytes == 4);
        CHECK(mix->x.own.steps == 5 && mix->x.own.tokens == 6);
        CHECK(mix->x.own.reach.leased == 7 && mix->x.own.reach.own == 8 && mix->energy == 9);
        dp_mix_abort(mix, pool_now(p), false, &p->out);
    }
    pool_close(p);
}

static void of_an_exchange_that_was_given_up_nothing_stays(void **state)
{
    static const dp_mix_row none;
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);

    (void)state;
    mix->x = mix_row_of(4, true, DP_MIX_MARK_PREPARED);
    mix->state = DP_MIX_OFFERED;
    mix->fetched = mix->other_prepared = mix->abort_wanted = mix->rebuilding = true;
    mix->op = 0;
    dp_mix_abort(mix, pool_now(p), false, &p->out);
    CHECK(mix->state == DP_MIX_IDLE && mix->op == 0);
    CHECK(!mix->fetched && !mix->other_prepared && !mix->abort_wanted && !mix->rebuilding);
    assert_memory_equal(&mix->x, &none, sizeof none);
    const dp_mix_look look = dp_mix_view(mix);
    CHECK(dp_peer_is_zero(&look.peer));
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_says_what_is_under_way),
        cmocka_unit_test(the_trainer_is_given_the_frozen_work_and_mixes_again_what_was_committed),
        cmocka_unit_test(a_row_keeps_the_objects_that_it_needs),
        cmocka_unit_test(objects_of_an_attempt_without_a_row_are_dropped),
        cmocka_unit_test(an_attempt_with_a_row_has_it_say_that_it_was_aborted),
        cmocka_unit_test(it_wakes_for_what_is_due_first),
        cmocka_unit_test(an_outcome_that_is_not_closed_is_told_again_every_ten_seconds),
        cmocka_unit_test(a_message_is_told_again_after_waits_that_double_three_times),
        cmocka_unit_test(an_object_that_is_lost_ends_what_needs_it_and_nothing_else),
        cmocka_unit_test(a_fence_ends_what_lives_up_to_it_had_begun),
        cmocka_unit_test(the_kept_share_of_the_work_shrinks_by_each_fade),
        cmocka_unit_test(an_exchange_given_up_during_its_write_ends_when_the_row_is_durable),
        cmocka_unit_test(a_decision_that_could_not_be_written_is_written_again_after_a_second),
        cmocka_unit_test(an_offer_that_comes_again_is_answered_once_its_terms_are_known),
        cmocka_unit_test(an_acceptance_is_taken_as_its_author_signed_it),
        cmocka_unit_test(what_the_trainer_has_frozen_is_in_the_exchange_field_by_field),
        cmocka_unit_test(of_an_exchange_that_was_given_up_nothing_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
