/* Each message of an exchange in each state: what it changes, and what it is answered. */
#include "tests/unit/gossip/kit/mix_kit.h"

/* The message arrives from node 1. */
static void hears(pool *p, dp_mix *mix, const dp_mix_msg *msg)
{
    uint8_t bytes[DP_MIX_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_mix_msg_write(&writer, msg);
    dp_out_begin(&p->out, p->actions);
    CHECK_OK(dp_mix_message(mix, pool_now(p), 1, dp_view_of(bytes, writer.size), &p->out));
}

/* Messages of this type that were sent, and the last of them. */
static uint32_t sends(const pool *p, dp_msg_type type, dp_mix_msg *last)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < p->actions->count; i++) {
        const dp_action *action = &p->actions->items[i];
        dp_mix_msg msg;
        if (action->type == DP_DO_SEND && dp_mix_msg_read(action->u.send.bytes, &msg) == DP_OK &&
            msg.type == type) {
            *last = msg;
            count++;
        }
    }
    return count;
}

/* It was answered that the exchange ends, with this ticket. */
static bool is_aborted(const pool *p, uint64_t ticket)
{
    dp_mix_msg told = {0};

    return sends(p, DP_MSG_MIX_STATUS, &told) == 1 && told.status == DP_MIX_STATUS_ABORTED &&
           told.ticket == ticket;
}

static bool is_closed(const pool *p, uint64_t ticket)
{
    dp_mix_msg told = {0};

    return sends(p, DP_MSG_MIX_STATUS, &told) == 1 && told.status == DP_MIX_STATUS_CLOSED &&
           told.ticket == ticket;
}

/* ---- OFFER ---- */

/* This node may begin an exchange, and the other is a partner. */
static dp_mix *ready_at(pool *p, uint32_t node)
{
    dp_mix *const mix = p->nodes[node].mix;
    dp_member *member = (dp_member *)(uintptr_t)dp_members_at(mix->config.members, 1);

    member->in_roster = member->has_summary = true;
    member->summary.mode = DP_MODE_GOSSIP;
    member->summary.has_trainer = true;
    member->summary.base = mix->now.base;

    mix->state = DP_MIX_IDLE;
    mix->now.gossip = true;
    mix->trainer = true;
    mix->n_outcomes = 0;
    mix->has_f = false;
    CHECK(dp_mix_may_begin(mix) && dp_mix_is_partner(mix, 1));
    return mix;
}

static dp_mix *ready_to_begin(pool *p)
{
    return ready_at(p, 0);
}

static dp_mix_msg offer_of(const dp_mix *mix, uint64_t number)
{
    const dp_member *member = dp_members_at(mix->config.members, 1);

    return (dp_mix_msg){.type = DP_MSG_MIX_OFFER,
                        .id = dp_mix_id_of(&member->peer, member->incarnation, number),
                        .number = number,
                        .base = mix->now.base,
                        .terms = {.root = {{5}},
                                  .bytes = 100,
                                  .steps = 3,
                                  .tokens = 9,
                                  .incarnation = member->incarnation}};
}

static void an_offer_is_taken_with_its_terms_a_new_ticket_and_a_freeze(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    dp_mix *const mix = ready_to_begin(p);
    const dp_mix_msg offer = offer_of(mix, 34);
    const uint64_t ticket = mix->ticket;
    const uint64_t order = mix->order;
    hears(p, mix, &offer);
    CHECK(mix->state == DP_MIX_FREEZING && !mix->x.initiator && mix->x.has_f);
    CHECK(dp_mix_id_equal(&mix->x.id, &offer.id) && mix->x.number == 34);
    CHECK(mix->x.ticket == ticket + 1 && mix->ticket == ticket + 1);
    CHECK(mix->x.order == order + 1 && mix->order == order + 1);
    CHECK(dp_peer_equal(&mix->x.peer, &dp_members_at(mix->config.members, 1)->peer));
    CHECK(dp_hash_equal(&mix->x.base, &mix->now.base));
    CHECK(mix->x.own.incarnation == mix->config.incarnation);
    CHECK(dp_hash_equal(&mix->x.other.root, &offer.terms.root) && mix->x.other.steps == 3);
    CHECK(mix->seen[1].us == p->now && mix->kept == 65536);
    const dp_action *freeze = mix_find_action(p, DP_DO_FREEZE);
    CHECK(freeze != NULL && memcmp(freeze->u.mix.exchange, offer.id.bytes, DP_EXCHANGE_BYTES) == 0);
    mix->state = DP_MIX_IDLE;
    pool_close(p);
}

static void an_offer_that_cannot_be_taken_is_answered_that_it_ends(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 6; what++) {
        dp_mix *const mix = ready_to_begin(p);
        dp_mix_msg offer = offer_of(mix, 34);
        if (what == 0) {
            mix->now.gossip = false;
        } else if (what == 1) {
            offer.base.bytes[0] ^= 1;
        } else if (what == 2) {
            offer.terms.incarnation++; /* A life that this node has not met. */
            const dp_peer peer = mesh_peer(1);
            offer.id = dp_mix_id_of(&peer, offer.terms.incarnation, offer.number);
        } else if (what == 3) {
            mix->n_outcomes = DP_MIX_OUTCOMES_MAX;
            for (uint32_t i = 0; i < DP_MIX_OUTCOMES_MAX; i++) {
                mix->outcomes[i] = mix_row_of((uint8_t)(10 + i), false, DP_MIX_MARK_COMMITTED);
                mix->outcomes[i].peer = mesh_peer(5);
            }
        } else if (what == 4) {
            mix->refused[1] = true;
        } else {
            offer.id.bytes[0] ^= 1; /* Not its own id: not even answered. */
        }
        hears(p, mix, &offer);
        CHECK(mix->state == DP_MIX_IDLE);
        CHECK(mix_find_action(p, DP_DO_FREEZE) == NULL);
        CHECK(what == 5 ? p->actions->count == 0 : is_aborted(p, 0));
        mix->refused[1] = false;
        mix->n_outcomes = 0;
    }
    pool_close(p);
}

/* Rows of earlier lives, or of earlier offers of this life, of this peer alone. */
static void a_newer_offer_closes_the_outcomes_of_older_ones_of_its_author(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 5; what++) {
        dp_mix *const mix = ready_to_begin(p);
        const dp_mix_msg offer = offer_of(mix, 34);
        dp_mix_row *row = &mix->outcomes[0];
        *row = mix_row_of(9, false, DP_MIX_MARK_COMMITTED);
        row->other.incarnation = offer.terms.incarnation;
        row->number = 33;
        mix->n_outcomes = 1;
        if (what == 1) {
            row->other.incarnation--;
            row->number = 90;
        } else if (what == 2) {
            row->number = 34;
        } else if (what == 3) {
            row->other.incarnation++;
        } else if (what == 4) {
            row->peer = mesh_peer(5);
        }
        hears(p, mix, &offer);
        const bool older = what < 2;
        const bool stale = what == 2 || what == 3;
        CHECK(mix->n_outcomes == (older ? 0 : 1));
        CHECK(mix->state == (stale ? DP_MIX_IDLE : DP_MIX_FREEZING));
        CHECK(!stale || p->actions->count == 0); /* It is itself older. */
        mix->state = DP_MIX_IDLE;
        mix->n_outcomes = 0;
    }
    pool_close(p);
}

static void the_outcome_that_is_being_mixed_stays_when_its_author_offers_anew(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 3; what++) {
        dp_mix *const mix = ready_to_begin(p);
        const dp_mix_msg offer = offer_of(mix, 34);
        mix->outcomes[0] = mix_row_of(9, false, DP_MIX_MARK_COMMITTED);
        mix->outcomes[0].other.incarnation = offer.terms.incarnation;
        mix->outcomes[0].number = 33;
        mix->n_outcomes = 1;
        mix->x = mix->outcomes[0];
        mix->state = what == 1 ? DP_MIX_COMMITTING : DP_MIX_MIXING;
        mix->x.id.bytes[0] ^= what == 2 ? 1 : 0;
        hears(p, mix, &offer);
        CHECK(mix->n_outcomes == (what == 0 ? 1 : 0));
        mix->state = DP_MIX_IDLE;
        mix->n_outcomes = 0;
    }
    pool_close(p);
}

/* Its author has left the exchange that this node was about to begin with it. */
static void a_newer_offer_of_the_same_partner_ends_the_one_before(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 5; what++) {
        dp_mix *const mix = ready_to_begin(p);
        const dp_mix_msg offer = offer_of(mix, 34);
        mix->x = mix_row_of(9, what == 3, DP_MIX_MARK_PREPARED);
        mix->x.other.incarnation = offer.terms.incarnation;
        mix->x.number = what == 1 ? 34 : 33;
        if (what == 2) {
            mix->x.other.incarnation--;
            mix->x.number = 90;
        } else if (what == 4) {
            mix->x.peer = mesh_peer(5);
        }
        mix->fetched = true;
        dp_mix_enter(mix, DP_MIX_PREPARED, pool_now(p));
        hears(p, mix, &offer);
        CHECK(mix->state == (what == 0 || what == 2 ? DP_MIX_FREEZING : DP_MIX_PREPARED));
        CHECK(dp_mix_id_equal(&mix->x.id, &offer.id) == (what == 0 || what == 2));
        mix->state = DP_MIX_IDLE;
    }
    pool_close(p);
}

/* Node 1 hears the offer of node 0, whose key is smaller, and the other way round. */
static void of_two_offers_that_cross_the_one_of_the_smaller_key_stands(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t hearer = 0; hearer < 2; hearer++) {
        for (int at = DP_MIX_FREEZING; at <= DP_MIX_PREPARED; at++) {
            dp_mix *const mix = ready_at(p, hearer);
            const dp_peer other = mesh_peer(1 - hearer);
            const dp_mix_msg offer = offer_of(mix, 34);
            mix->x = mix_row_of(9, true, DP_MIX_MARK_PREPARED);
            mix->x.peer = other;
            mix->fetched = true;
            mix->state = (dp_mix_state)at;
            hears(p, mix, &offer);
            const bool gives_way = hearer == 1 && (at == DP_MIX_FREEZING || at == DP_MIX_OFFERED);
            CHECK(mix->state == (gives_way ? DP_MIX_FREEZING : (dp_mix_state)at));
            CHECK(mix->x.initiator != gives_way);
            mix->state = DP_MIX_IDLE;
        }
    }
    pool_close(p);
}

/* ---- ACK ---- */

static dp_mix_msg ack_of(const dp_mix *mix, const dp_mix_row *row)
{
    const dp_crypto crypto = mesh_crypto(1);
    dp_mix_msg ack = {.type = DP_MSG_MIX_ACK,
                      .id = row->id,
                      .ticket = row->ticket,
                      .base = row->base,
                      .terms = row->other};
    dp_fence_ask life = {.fence = {.peer = mesh_peer(1), .incarnation = row->other.incarnation},
                         .asker = mix->config.self};

    memcpy(life.exchange, row->id.bytes, sizeof life.exchange);
    CHECK(dp_life_sign(&life, &crypto, &mix->config.run));
    memcpy(ack.life, life.signature, sizeof ack.life);
    return ack;
}

static void an_acceptance_of_another_base_or_of_no_weight_ends_the_exchange(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 3; what++) {
        dp_mix *const mix = mix_begin_at(p);
        dp_mix_row row = mix_row_of(4, true, DP_MIX_MARK_PREPARED);
        row.own.tokens = 0; /* It has no weight of its own. */
        if (what == 1) {
            row.other.tokens = 0;
        }
        dp_mix_msg ack = ack_of(mix, &row);
        ack.base.bytes[0] ^= what == 0 ? 1 : 0;
        mix->x = row;
        mix->x.ticket = 0;
        dp_mix_enter(mix, DP_MIX_OFFERED, pool_now(p));
        hears(p, mix, &ack);
        CHECK(mix->state == (what == 2 ? DP_MIX_FETCHING : DP_MIX_IDLE));
        CHECK(what == 2 || is_aborted(p, row.ticket));
        if (what == 2) {
            CHECK(dp_picker_wants(mix->config.picker, &row.other.root));
            dp_mix_abort(mix, pool_now(p), false, &p->out);
        }
    }
    pool_close(p);
}

static void an_acceptance_of_another_attempt_is_answered_that_it_ends(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 8; what++) {
        dp_mix *const mix = mix_begin_at(p);
        const dp_mix_row row = mix_row_of(4, what != 5, DP_MIX_MARK_PREPARED);
        dp_mix_msg ack = ack_of(mix, &row);
        mix->x = row;
        ack.ticket += what == 0 ? 1 : 0;
        ack.terms.root.bytes[0] ^= what == 1 ? 1 : 0;
        ack.terms.incarnation += what == 2 ? 1 : 0;
        ack.id.bytes[0] ^= what == 3 ? 1 : 0;
        mix->x.peer = what == 4 ? mesh_peer(5) : mix->x.peer;
        mix->state = what == 6 ? DP_MIX_FREEZING : DP_MIX_FETCHING;
        hears(p, mix, &ack);
        CHECK(what == 7 ? p->actions->count == 0 : is_aborted(p, ack.ticket));
        CHECK(mix->state == (what == 6 ? DP_MIX_FREEZING : DP_MIX_FETCHING));
        mix->state = DP_MIX_IDLE;
    }
    pool_close(p);
}

static void a_partner_that_was_prepared_once_stays_so_and_is_asked_when_this_node_is(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        dp_mix *const mix = mix_begin_at(p);
        const dp_mix_row row = mix_row_of(4, true, DP_MIX_MARK_PREPARED);
        dp_mix_msg ack = ack_of(mix, &row);
        mix->x = row;
        ack.prepared = what < 2;
        mix->other_prepared = what == 2;
        mix->state = what == 1 ? DP_MIX_PREPARING : DP_MIX_PREPARED;
        hears(p, mix, &ack);
        CHECK(mix->other_prepared == (what < 3));
        CHECK(mix->state == (what == 0   ? DP_MIX_ASKING
                             : what == 1 ? DP_MIX_PREPARING
                                         : DP_MIX_PREPARED));
        mix->state = DP_MIX_IDLE;
    }
    pool_close(p);
}

/* ---- COMMIT, DONE, STATUS ---- */

static dp_mix_msg pair_msg(dp_msg_type type, const dp_mix_row *row)
{
    return (dp_mix_msg){
        .type = type, .id = row->id, .ticket = row->ticket, .pair = dp_mix_pair_of(row)};
}

static void a_commit_of_what_is_decided_already_is_answered_with_done(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        dp_mix *const mix = mix_begin_at(p);
        mix->outcomes[0] = mix_row_of(4, false, DP_MIX_MARK_COMMITTED);
        mix->n_outcomes = 1;
        dp_mix_msg commit = pair_msg(DP_MSG_MIX_COMMIT, &mix->outcomes[0]);
        commit.ticket += what == 1 ? 1 : 0;
        mix->outcomes[0].peer = what == 2 ? mesh_peer(5) : mix->outcomes[0].peer;
        commit.id.bytes[0] ^= what == 3 ? 1 : 0;
        hears(p, mix, &commit);
        dp_mix_msg done = {0};
        CHECK(sends(p, DP_MSG_MIX_DONE, &done) == (what == 0 ? 1 : 0));
        CHECK(what == 0 ? done.ticket == commit.ticket && dp_mix_id_equal(&done.id, &commit.id)
                        : is_aborted(p, commit.ticket));
        mix->n_outcomes = 0;
    }
    pool_close(p);
}

static void a_commit_is_written_if_it_is_of_the_attempt_that_is_prepared_here(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 8; what++) {
        dp_mix *const mix = mix_begin_at(p);
        mix->x = mix_row_of(4, what == 3, DP_MIX_MARK_PREPARED);
        dp_mix_msg commit = pair_msg(DP_MSG_MIX_COMMIT, &mix->x);
        mix->fetched = true;
        mix->state = what == 6 ? DP_MIX_COMMITTING : what == 7 ? DP_MIX_PREPARING : DP_MIX_PREPARED;
        commit.ticket += what == 1 ? 1 : 0;
        commit.id.bytes[0] ^= what == 2 ? 1 : 0;
        mix->x.peer = what == 4 ? mesh_peer(5) : mix->x.peer;
        commit.pair.root_a.bytes[0] ^= what == 5 ? 1 : 0;
        hears(p, mix, &commit);
        if (what == 0) {
            CHECK(mix->state == DP_MIX_COMMITTING && mix->x.mark == DP_MIX_MARK_COMMITTED);
            CHECK(mix_find_action(p, DP_DO_STORE) != NULL);
        } else if (what == 5) {
            CHECK(mix->state == DP_MIX_IDLE); /* It will not be committed. */
        } else if (what == 6) {
            CHECK(mix->state == DP_MIX_COMMITTING && p->actions->count == 0);
        } else {
            CHECK(mix->state == (what == 7 ? DP_MIX_PREPARING : DP_MIX_PREPARED));
            CHECK(mix->abort_wanted == (what == 7));
            CHECK(is_aborted(p, commit.ticket));
        }
        mix->abort_wanted = false;
        mix->state = DP_MIX_IDLE;
        mix->op = 0;
    }
    pool_close(p);
}

static void a_done_is_written_if_it_answers_what_was_asked(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 9; what++) {
        dp_mix *const mix = mix_begin_at(p);
        mix->x = mix_row_of(4, what != 3, DP_MIX_MARK_ASKED);
        dp_mix_msg done = pair_msg(DP_MSG_MIX_DONE, &mix->x);
        mix->state = what == 6 ? DP_MIX_MIXING : what == 7 ? DP_MIX_ASKING : DP_MIX_ASKED;
        done.ticket += what == 1 ? 1 : 0;
        done.id.bytes[0] ^= what == 2 ? 1 : 0;
        mix->x.peer = what == 4 ? mesh_peer(5) : mix->x.peer;
        done.pair.incarnation_b += what == 5 ? 1 : 0;
        if (what == 8) {
            mix->state = DP_MIX_IDLE;
        }
        const dp_mix_state before = mix->state;
        hears(p, mix, &done);
        if (what == 0) {
            CHECK(mix->state == DP_MIX_COMMITTING && mix->x.mark == DP_MIX_MARK_DONE);
            CHECK(mix_find_action(p, DP_DO_STORE) != NULL && p->actions->count == 1);
        } else {
            /* The other may forget what this node has mixed, or shall never ask for. */
            const bool closes = what == 2 || what == 3 || what == 6 || what == 8;
            CHECK(mix->state == before);
            CHECK(closes ? is_closed(p, done.ticket) : p->actions->count == 0);
        }
        mix->state = DP_MIX_IDLE;
        mix->op = 0;
    }
    pool_close(p);
}

static void an_outcome_is_forgotten_by_the_word_of_its_partner_about_its_ticket(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        dp_mix *const mix = mix_begin_at(p);
        mix->outcomes[0] = mix_row_of(4, false, DP_MIX_MARK_COMMITTED);
        mix->n_outcomes = 1;
        dp_mix_msg closed = {.type = DP_MSG_MIX_STATUS,
                             .id = mix->outcomes[0].id,
                             .ticket = mix->outcomes[0].ticket,
                             .status = DP_MIX_STATUS_CLOSED};
        closed.ticket += what == 1 ? 1 : 0;
        mix->outcomes[0].peer = what == 2 ? mesh_peer(5) : mix->outcomes[0].peer;
        closed.id.bytes[0] ^= what == 3 ? 1 : 0;
        hears(p, mix, &closed);
        CHECK(mix->n_outcomes == (what == 0 ? 0 : 1));
        mix->n_outcomes = 0;
    }
    pool_close(p);
}

static void an_exchange_in_doubt_ends_by_the_word_of_its_partner_about_its_ticket(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        dp_mix *const mix = mix_begin_at(p);
        mix->x = mix_row_of(4, true, DP_MIX_MARK_ASKED);
        mix->fetched = true;
        mix->state = DP_MIX_ASKED;
        dp_mix_msg aborted = {.type = DP_MSG_MIX_STATUS,
                              .id = mix->x.id,
                              .ticket = mix->x.ticket,
                              .status = DP_MIX_STATUS_ABORTED};
        aborted.ticket += what == 1 ? 1 : 0;
        mix->x.peer = what == 2 ? mesh_peer(5) : mix->x.peer;
        aborted.id.bytes[0] ^= what == 3 ? 1 : 0;
        hears(p, mix, &aborted);
        CHECK(mix->state == (what == 0 ? DP_MIX_IDLE : DP_MIX_ASKED));
        mix->state = DP_MIX_IDLE;
    }
    pool_close(p);
}

/* Of the responder: a word about an earlier acceptance is no word about this one. */
static void an_exchange_before_its_end_stops_by_the_word_of_its_partner(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    for (uint32_t what = 0; what < 4; what++) {
        dp_mix *const mix = mix_begin_at(p);
        mix->x = mix_row_of(4, what == 3, DP_MIX_MARK_PREPARED);
        mix->fetched = true;
        mix->state = DP_MIX_PREPARED;
        const dp_mix_msg aborted = {.type = DP_MSG_MIX_STATUS,
                                    .id = mix->x.id,
                                    .ticket = what == 0   ? mix->x.ticket
                                              : what == 1 ? 0
                                                          : mix->x.ticket + 1,
                                    .status = DP_MIX_STATUS_ABORTED};
        hears(p, mix, &aborted);
        CHECK(mix->state == (what == 2 ? DP_MIX_PREPARED : DP_MIX_IDLE));
        mix->state = DP_MIX_IDLE;
    }
    pool_close(p);
}

static void nothing_is_taken_before_the_rows_of_the_last_life_were_read(void **state)
{
    (void)state;
    pool *const p = mix_linked_pool();
    dp_mix *const mix = mix_begin_at(p);
    uint8_t bytes[DP_MIX_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);
    const dp_mix_msg offer = offer_of(mix, 34);
    dp_mix_msg_write(&writer, &offer);
    mix->started = false;
    CHECK_STATUS(dp_mix_message(mix, pool_now(p), 1, dp_view_of(bytes, writer.size), &p->out),
                 DP_AGAIN);
    mix->started = true;
    for (uint32_t i = 0; i < 2; i++) { /* Neither another type nor another version. */
        bytes[i] ^= 0x40;
        CHECK_STATUS(dp_mix_message(mix, pool_now(p), 1, dp_view_of(bytes, writer.size), &p->out),
                     i == 0 ? DP_BADMSG : DP_VERSION);
        bytes[i] ^= 0x40;
    }
    CHECK(p->actions->count == 0);
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_offer_is_taken_with_its_terms_a_new_ticket_and_a_freeze),
        cmocka_unit_test(an_offer_that_cannot_be_taken_is_answered_that_it_ends),
        cmocka_unit_test(a_newer_offer_closes_the_outcomes_of_older_ones_of_its_author),
        cmocka_unit_test(the_outcome_that_is_being_mixed_stays_when_its_author_offers_anew),
        cmocka_unit_test(a_newer_offer_of_the_same_partner_ends_the_one_before),
        cmocka_unit_test(of_two_offers_that_cross_the_one_of_the_smaller_key_stands),
        cmocka_unit_test(an_acceptance_of_another_base_or_of_no_weight_ends_the_exchange),
        cmocka_unit_test(an_acceptance_of_another_attempt_is_answered_that_it_ends),
        cmocka_unit_test(a_partner_that_was_prepared_once_stays_so_and_is_asked_when_this_node_is),
        cmocka_unit_test(a_commit_of_what_is_decided_already_is_answered_with_done),
        cmocka_unit_test(a_commit_is_written_if_it_is_of_the_attempt_that_is_prepared_here),
        cmocka_unit_test(a_done_is_written_if_it_answers_what_was_asked),
        cmocka_unit_test(an_outcome_is_forgotten_by_the_word_of_its_partner_about_its_ticket),
        cmocka_unit_test(an_exchange_in_doubt_ends_by_the_word_of_its_partner_about_its_ticket),
        cmocka_unit_test(an_exchange_before_its_end_stops_by_the_word_of_its_partner),
        cmocka_unit_test(nothing_is_taken_before_the_rows_of_the_last_life_were_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
