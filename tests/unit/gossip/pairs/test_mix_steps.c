/* An exchange from step to step: what each event of the driver leads to, for each side. */
#include "gossip/ledger/weights.h"
#include "tests/unit/gossip/kit/mix_kit.h"

enum { OP = 7 };

/* The exchange stands in this state, with its row under way to the disk. */
static dp_mix *stand_at(pool *p, dp_mix_state at, bool initiator)
{
    dp_mix *const mix = mix_begin_at(p);

    mix->x = mix_row_of(4, initiator, DP_MIX_MARK_PREPARED);
    mix->has_f = mix->trainer = true;
    mix->f = mix_row_of(3, true, DP_MIX_MARK_ABORTED);
    mix->fetched = mix->other_prepared = mix->abort_wanted = mix->rebuilding = false;
    mix->n_outcomes = 0;
    mix->done = mix->aborted = 0;
    mix->state = DP_MIX_IDLE;
    mix->now.gossip = true;
    mix->now.base = pool_base;
    dp_mix_enter(mix, at, pool_now(p));
    mix->op = OP;
    return mix;
}

static void end(pool *p)
{
    dp_mix *const mix = p->nodes[0].mix;

    mix->state = DP_MIX_IDLE;
    mix->has_f = mix->trainer = false;
    mix->n_outcomes = 0;
    mix->op = 0;
    pool_close(p);
}

/* The only message that was sent, of this type. */
static dp_mix_msg told(const pool *p, dp_msg_type type)
{
    dp_mix_msg msg = {0};
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->actions->count; i++) {
        const dp_action *action = &p->actions->items[i];
        if (action->type == DP_DO_SEND) {
            CHECK_OK(dp_mix_msg_read(action->u.send.bytes, &msg));
            n++;
        }
    }
    CHECK(n == 1 && msg.type == type && msg.id.bytes[0] == 4);
    return msg;
}

static bool says(const pool *p, dp_action_type type)
{
    return mix_find_action(p, type) != NULL;
}

/* ---- the row is durable ---- */

static void an_initiator_asks_for_the_commit_once_both_are_prepared(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t prepared = 0; prepared < 2; prepared++) {
        dp_mix *const mix = stand_at(p, DP_MIX_PREPARING, true);
        mix->other_prepared = prepared == 1;
        CHECK(dp_mix_stored(mix, pool_now(p), OP, DP_OK, &p->out));
        CHECK(mix->state == (prepared == 1 ? DP_MIX_ASKING : DP_MIX_PREPARED));
        CHECK(mix->f.id.bytes[0] == 4 && !says(p, DP_DO_SEND)); /* F stands on the new row. */
        const dp_action *store = NULL;                          /* The row before goes, too. */
        for (uint32_t i = 0; i < p->actions->count; i++) {
            const dp_action *action = &p->actions->items[i];
            store = action->type == DP_DO_STORE && action->u.store.bytes.size > 0 ? action : store;
        }
        CHECK((store != NULL) == (prepared == 1));
        if (prepared == 1) {
            dp_mix_row row;
            CHECK_OK(dp_mix_row_read(store->u.store.bytes, &row));
            CHECK(row.mark == DP_MIX_MARK_ASKED && mix->op == store->u.store.op);
        }
    }
    end(p);
}

static void
the_commit_names_what_both_sides_froze_and_goes_out_when_its_row_is_durable(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    dp_mix *const mix = stand_at(p, DP_MIX_ASKING, true);
    const uint64_t since = p->now;
    mix->x.mark = DP_MIX_MARK_ASKED;
    mix->retries = 2;
    p->now += 5;
    CHECK(dp_mix_stored(mix, pool_now(p), OP, DP_OK, &p->out));
    CHECK(mix->state == DP_MIX_ASKED && mix->f.mark == DP_MIX_MARK_ASKED);
    CHECK(mix->progress.us == p->now && mix->retries == 0 && mix->since.us == since);
    CHECK(mix->retry_at.us == p->now + DP_MIX_RETRY_US);
    const dp_mix_msg msg = told(p, DP_MSG_MIX_COMMIT);
    CHECK(msg.ticket == mix->x.ticket);
    CHECK(dp_hash_equal(&msg.pair.root_a, &mix->x.own.root));
    CHECK(dp_hash_equal(&msg.pair.root_b, &mix->x.other.root));
    CHECK(msg.pair.incarnation_a == 5 && msg.pair.incarnation_b == 8);
    end(p);
}

/* The initiator lets the other forget it; the other keeps it as an outcome until then. */
static void what_is_committed_is_told_and_mixed_by_a_trainer_that_is_up(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        const bool initiator = what % 2 == 1;
        const bool trainer = what >= 2;
        dp_mix *const mix = stand_at(p, DP_MIX_COMMITTING, initiator);
        mix->x.mark = initiator ? DP_MIX_MARK_DONE : DP_MIX_MARK_COMMITTED;
        mix->trainer = trainer;
        CHECK(dp_mix_stored(mix, pool_now(p), OP, DP_OK, &p->out));
        CHECK(mix->state == (trainer ? DP_MIX_MIXING : DP_MIX_IDLE));
        CHECK(mix->done == (trainer ? 0 : 1) && says(p, DP_DO_MIX) == trainer);
        CHECK(mix->n_outcomes == (initiator ? 0 : 1) && mix->f.id.bytes[0] == 4);
        const dp_mix_msg msg = told(p, initiator ? DP_MSG_MIX_STATUS : DP_MSG_MIX_DONE);
        CHECK(msg.ticket == 44);
        if (initiator) {
            CHECK(msg.status == DP_MIX_STATUS_CLOSED);
        } else {
            CHECK(mix->outcomes[0].id.bytes[0] == 4 && mix->outcomes[0].ticket == 44);
            CHECK(dp_hash_equal(&msg.pair.root_b, &mix->outcomes[0].own.root));
        }
    }
    end(p);
}

/* ---- the trainer ---- */

static void a_mix_that_failed_is_tried_again_after_a_second_and_one_that_did_not_ends(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    dp_event event = {.type = DP_EV_MIXED, .u.mixed.status = DP_IO};
    dp_mix *const mix = stand_at(p, DP_MIX_MIXING, true);
    mix->op = 0;
    CHECK(!dp_mix_mixed(mix, pool_now(p), &event, &p->out)); /* Another exchange. */
    memcpy(event.u.mixed.exchange, mix->x.id.bytes, sizeof event.u.mixed.exchange);
    mix->state = DP_MIX_COMMITTING;
    CHECK(!dp_mix_mixed(mix, pool_now(p), &event, &p->out));
    mix->state = DP_MIX_MIXING;
    CHECK(dp_mix_mixed(mix, pool_now(p), &event, &p->out));
    CHECK(mix->state == DP_MIX_MIXING && mix->write_at.us == p->now + DP_SECOND);
    CHECK(!says(p, DP_DO_MIX));
    dp_mix_tick(mix, (dp_time){p->now + DP_SECOND - 1}, &p->out);
    CHECK(!says(p, DP_DO_MIX));
    dp_mix_tick(mix, (dp_time){p->now + DP_SECOND}, &p->out);
    CHECK(says(p, DP_DO_MIX) && mix->write_at.us == 0);
    event.u.mixed.status = DP_OK;
    CHECK(dp_mix_mixed(mix, pool_now(p), &event, &p->out));
    CHECK(mix->state == DP_MIX_IDLE && mix->done == 1 && says(p, DP_DO_NOTE));
    end(p);
}

/* The change of an earlier life that is made again is not counted again. */
static void a_trainer_that_goes_ends_what_it_worked_for(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (int at = DP_MIX_FREEZING; at <= DP_MIX_MIXING; at++) {
        for (uint32_t rebuilding = 0; rebuilding < 2; rebuilding++) {
            dp_mix *const mix = stand_at(p, (dp_mix_state)at, true);
            const bool gives_up = dp_mix_may_abort(mix);
            mix->rebuilding = rebuilding == 1;
            dp_mix_trainer_down(mix, pool_now(p), &p->out);
            CHECK(!mix->trainer);
            CHECK((mix->state == DP_MIX_IDLE) == (gives_up || at == DP_MIX_MIXING));
            CHECK(mix->aborted == (gives_up ? 1 : 0));
            CHECK(mix->done == (at == DP_MIX_MIXING && rebuilding == 0 ? 1 : 0));
            CHECK(mix->abort_wanted == (at == DP_MIX_PREPARING));
        }
    }
    end(p);
}

/* ---- the work of the other ---- */

static void an_update_that_does_not_decode_ends_the_exchange_by_name(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t ok = 0; ok < 2; ok++) {
        dp_mix *const mix = stand_at(p, DP_MIX_FETCHING, true);
        const dp_hash root = mix->x.other.root;
        mix->op = 0;
        mix->energy = 100;
        CHECK(!dp_mix_checked(mix, pool_now(p), &root, true, 9, &p->out)); /* It is not here. */
        mix->fetched = true;
        CHECK(!dp_mix_checked(mix, pool_now(p), &mix->x.own.root, true, 9, &p->out));
        CHECK(mix->state == DP_MIX_FETCHING && p->actions->count == 0);
        CHECK(dp_mix_checked(mix, pool_now(p), &root, ok == 1, 9, &p->out));
        CHECK(mix->state == (ok == 1 ? DP_MIX_PREPARING : DP_MIX_IDLE));
        CHECK(mix->aborted == 1 - ok && says(p, DP_DO_STORE) == (ok == 1));
        CHECK(says(p, DP_DO_SEND) == (ok == 0)); /* The other hears of it. */
        const dp_action *note = mix_find_action(p, DP_DO_NOTE);
        CHECK((note != NULL && note->u.note.code == DP_NOTE_REJECTED) == (ok == 0));
        if (ok == 0) {
            const dp_peer peer = mesh_peer(1);
            CHECK(dp_peer_equal(&note->u.note.peer, &peer));
            CHECK(told(p, DP_MSG_MIX_STATUS).status == DP_MIX_STATUS_ABORTED);
        } else {
            dp_mix_row row;
            CHECK_OK(dp_mix_row_read(mix_find_action(p, DP_DO_STORE)->u.store.bytes, &row));
            const uint64_t weights[2] = {dp_mix_weight(40, 4), dp_mix_weight(100, 5)};
            const unsigned __int128 energies[2] = {100, 9};
            CHECK(row.mark == DP_MIX_MARK_PREPARED);
            CHECK(row.damp == dp_weight_pair(weights, energies, mix->now.clip_median));
        }
    }
    end(p);
}

/* An object that both hold is here already; from a peer that is no member nothing is fetched. */
static void the_work_of_the_other_is_fetched_from_it_unless_it_is_here(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 3; what++) {
        dp_mix *const mix = stand_at(p, DP_MIX_OFFERED, true);
        mix->op = 0;
        if (what == 0) {
            mix->x.other.root = mix->x.own.root;
        } else if (what == 1) {
            mix->x.peer = mesh_peer(9);
        }
        p->now += 3;
        dp_mix_start_fetch(mix, pool_now(p), &p->out);
        CHECK(mix->state == (what == 1 ? DP_MIX_IDLE : DP_MIX_FETCHING));
        CHECK(mix->fetched == (what == 0));
        CHECK(says(p, DP_DO_GET_INFO) == (what == 2));
        const dp_action *check = mix_find_action(p, DP_DO_CHECK);
        CHECK((check != NULL) == (what == 0));
        if (what == 0) {
            CHECK(dp_hash_equal(&check->u.check.root, &mix->x.own.root));
            CHECK(check->u.check.first == 0 && check->u.check.end == DP_PART_WHOLE);
        } else if (what == 2) {
            const dp_action *get = mix_find_action(p, DP_DO_GET_INFO);
            CHECK(dp_hash_equal(&get->u.get.root, &mix->x.other.root));
            CHECK(dp_peer_equal(&get->u.get.peer, &mix->x.peer));
            CHECK(mix->progress.us == p->now);
            const dp_hash other = {{77}};
            p->now += 3;
            CHECK(!dp_mix_object(mix, pool_now(p), &other, &p->out));
            CHECK(!mix->fetched && mix->progress.us != p->now);
            CHECK(dp_mix_object(mix, pool_now(p), &mix->x.other.root, &p->out));
            CHECK(mix->fetched && mix->progress.us == p->now && says(p, DP_DO_CHECK));
            CHECK(!dp_mix_object(mix, pool_now(p), &mix->x.other.root, &p->out));
            dp_picker_cancel(mix->config.picker, pool_now(p), &mix->x.other.root, &p->out);
        }
    }
    end(p);
}

/* ---- orders ---- */

static void another_base_or_no_majority_to_miss_ends_what_may_end_and_forgets_refusals(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        dp_mix *const mix = stand_at(p, DP_MIX_OFFERED, true);
        dp_mix_now now = mix->now;
        mix->op = 0;
        mix->refused[1] = true;
        mix->now.gossip = what != 3;
        mix->next_at = (dp_time){1};
        if (what == 1) {
            now.gossip = false;
        } else if (what == 2) {
            now.base.bytes[0] ^= 1;
        }
        dp_mix_set(mix, pool_now(p), &now, &p->out);
        CHECK(mix->now.gossip == now.gossip && dp_hash_equal(&mix->now.base, &now.base));
        CHECK((mix->state == DP_MIX_IDLE) == (what == 1 || what == 2));
        CHECK(mix->refused[1] == (what != 2));
        /* It begins: the first exchange is after a random part of the pause. */
        CHECK(what != 3 ||
              (mix->next_at.us >= p->now && mix->next_at.us <= p->now + mix->config.pause_us));
        CHECK(what != 0 || mix->next_at.us == 1);
        mix->refused[1] = false;
    }
    end(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_initiator_asks_for_the_commit_once_both_are_prepared),
        cmocka_unit_test(
            the_commit_names_what_both_sides_froze_and_goes_out_when_its_row_is_durable),
        cmocka_unit_test(what_is_committed_is_told_and_mixed_by_a_trainer_that_is_up),
        cmocka_unit_test(a_mix_that_failed_is_tried_again_after_a_second_and_one_that_did_not_ends),
        cmocka_unit_test(a_trainer_that_goes_ends_what_it_worked_for),
        cmocka_unit_test(an_update_that_does_not_decode_ends_the_exchange_by_name),
        cmocka_unit_test(the_work_of_the_other_is_fetched_from_it_unless_it_is_here),
        cmocka_unit_test(
            another_base_or_no_majority_to_miss_ends_what_may_end_and_forgets_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
