#include "tests/unit/gossip/kit/pool.h"

#include "gossip/pairs/mix_internal.h"

#include "tests/lib/allocfail.h"
#include "tests/lib/mutate.h"

/* Each node has trained a different amount, and trains no more. */
static void give(pool *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        p->nodes[i].f = (int64_t)(8 * i) << 40;
        p->expected += p->nodes[i].f * p->nodes[i].weight;
    }
    p->frozen_o = true;
}

/* For runs of any length: 10^12 tokens, and more than any run has. */
static void a_weight_is_tokens_squared_by_steps_and_never_wraps(void **state)
{
    (void)state;
    CHECK(dp_mix_weight(40, 4) == 400);
    CHECK(dp_mix_weight(40, 0) == 0);
    CHECK(dp_mix_weight(1000000000000, 10000000) == 100000000000000000);
    CHECK(dp_mix_weight(1ULL << 40, 1U << 18) == 1ULL << 62);
    CHECK(dp_mix_weight((1ULL << 40) + (1ULL << 20), 1U << 18) == 1ULL << 62);
    CHECK(dp_mix_weight(UINT64_MAX, 1) == 1ULL << 62);
}

static void two_nodes_meet_in_the_weighted_middle(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 1);
    give(p);
    while (pool_done(p) < 2 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    pool_settle(p);
    CHECK(p->nodes[0].f == 6LL << 40 && p->nodes[1].f == 6LL << 40); /* (1 * 0 + 3 * 8) / 4 */
    CHECK(pool_sum(p) == p->expected);
    CHECK(p->invalid == 0);
    pool_close(p);
}

static void the_pin_of_a_partner_s_work_goes_once_a_row_keeps_it(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 1);
    give(p);
    while (pool_done(p) < 2 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    pool_settle(p);
    CHECK(p->nodes[0].drops > 0 && p->nodes[1].drops > 0);
    pool_close(p);
}

static void four_nodes_draw_together_and_keep_the_sum(void **state)
{
    (void)state;
    pool *const p = pool_of(4, 2);
    give(p);
    while (pool_done(p) < 20 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    pool_settle(p);
    int64_t least = INT64_MAX;
    int64_t most = INT64_MIN;
    for (uint32_t i = 0; i < 4; i++) {
        least = p->nodes[i].f < least ? p->nodes[i].f : least;
        most = p->nodes[i].f > most ? p->nodes[i].f : most;
    }
    CHECK(pool_done(p) >= 20);
    CHECK(p->invalid == 0);
    CHECK(pool_sum(p) == p->expected);
    CHECK(most - least < (4LL << 40)); /* from 24 */
    pool_close(p);
}

/* After an exchange both hold the same mean, and a record that counts one of them has that of the
 * other, too. */
static void what_was_exchanged_is_shared_until_it_is_counted(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 4);
    const dp_peer other = mesh_peer(1);
    dp_mix *const mix = p->nodes[0].mix;
    CHECK(dp_mix_take_share(mix, &other, UINT64_MAX, 1) == 0);
    give(p);
    while (dp_mix_view(mix).done == 0 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    const uint32_t member = dp_members_find(p->nodes[0].members, &other);
    const dp_mix_share share = mix->shares[member];
    CHECK(share.own > 0 && share.other > 0 && !mix->shares_out);
    dp_mix_counted(mix); /* A publication of before the exchange. */
    CHECK(dp_mix_take_share(mix, &other, share.other - 1, share.own) == 0); /* Nor has that it. */
    CHECK(dp_mix_take_share(mix, &other, share.other, 4 * share.own) == 65536 / 4);
    CHECK(dp_mix_take_share(mix, &other, share.other, share.own) == 0); /* Once. */
    mix->shares[member] = share;
    CHECK(dp_mix_take_share(mix, &other, share.other, 0) == 65536);
    mix->shares[member] = share;
    mix->shares_out = true; /* It went into a publication, */
    dp_mix_counted(mix);    /* which counts. */
    CHECK(dp_mix_take_share(mix, &other, UINT64_MAX, share.own) == 0);
    mix->shares[member] = share;
    dp_mix_forget(mix, member);
    CHECK(dp_mix_take_share(mix, &other, UINT64_MAX, share.own) == 0);
    pool_close(p);
}

static void loss_doubling_and_reordering_keep_the_sum(void **state)
{
    (void)state;
    uint64_t done = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pool *const p = pool_of(2 + (uint32_t)(seed % 3), 1000 + seed);
        p->loss = 200;
        p->doubling = 300;
        p->jitter_us = 400 * DP_MS;
        pool_run_for(p, 12 * DP_SECOND);
        pool_settle(p);
        if (pool_sum(p) != p->expected || !pool_idle(p) || p->invalid != 0) {
            print_error("seed %llu: sum %lld, expected %lld, invalid %u\n",
                        (unsigned long long)seed, (long long)pool_sum(p), (long long)p->expected,
                        p->invalid);
        }
        CHECK(p->invalid == 0);
        CHECK(pool_idle(p));
        CHECK(pool_sum(p) == p->expected);
        done += pool_done(p);
        pool_close(p);
    }
    print_message("lossy: %llu exchanges\n", (unsigned long long)done);
    CHECK(done > 200);
}

static void random_crashes_with_kept_disks_keep_the_sum(void **state)
{
    (void)state;
    uint64_t done = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pool *const p = pool_of(2 + (uint32_t)(seed % 3), 5000 + seed);
        p->loss = 100;
        p->doubling = 200;
        p->jitter_us = 100 * DP_MS;
        for (uint32_t k = 0; k < 30; k++) {
            pool_run_for(p, dp_rng_below(&p->rng, 300 * DP_MS));
            const uint32_t i = (uint32_t)dp_rng_below(&p->rng, p->n);
            if (p->nodes[i].running) {
                done += dp_mix_view(p->nodes[i].mix).done;
                if (dp_rng_below(&p->rng, 3) == 0) {
                    pool_kill(p, i);
                }
            } else {
                pool_boot(p, i);
            }
        }
        for (uint32_t i = 0; i < p->n; i++) {
            if (!p->nodes[i].running) {
                pool_boot(p, i);
            }
        }
        pool_settle(p);
        if (pool_sum(p) != p->expected || !pool_idle(p)) {
            print_error("seed %llu: sum %lld, expected %lld\n", (unsigned long long)seed,
                        (long long)pool_sum(p), (long long)p->expected);
        }
        CHECK(pool_idle(p));
        CHECK(p->invalid == 0);
        CHECK(pool_sum(p) == p->expected);
        pool_close(p);
    }
    print_message("crashes: %llu exchanges\n", (unsigned long long)done);
    CHECK(done > 30);
}

/* Runs until the responder of an exchange is prepared and gives its number and row; its answers are
 * then lost. */
static uint32_t prepared_responder(pool *p, dp_mix_row *row)
{
    for (uint32_t k = 0; k < 20000; k++) {
        pool_run_for(p, DP_MS / 2);
        for (uint32_t i = 0; i < 2; i++) {
            const dp_mix_look look = dp_mix_view(p->nodes[i].mix);
            if (look.state == DP_MIX_PREPARED && !look.initiator) {
                p->loss = 1000;
                CHECK_OK(dp_mix_row_read(
                    dp_view_of(pool_row_find(&p->nodes[i], look.exchange)->bytes, DP_MIX_ROW_BYTES),
                    row));
                return i;
            }
        }
    }
    fail();
    return 0;
}

/* Gives responder i a message that a would send. */
static void say(pool *p, uint32_t i, const dp_mix_msg *msg)
{
    uint8_t bytes[DP_MIX_MESSAGE_MAX];
    const dp_peer peer = mesh_peer(i);

    dp_out_begin(&p->out, p->actions);
    dp_mix_msg_send(msg, &peer, &p->out);
    const dp_view sent = p->actions->items[0].u.send.bytes;
    const size_t size = sent.size;
    memcpy(bytes, sent.data, size);
    dp_out_begin(&p->out, p->actions);
    CHECK_OK(dp_mix_message(p->nodes[i].mix, pool_now(p), 1, dp_view_of(bytes, size), &p->out));
    pool_perform(p, i);
}

/* Did it answer with the end of this attempt? */
static bool says_aborted(const pool *p, const dp_mix_id *id, uint64_t ticket)
{
    for (uint32_t k = 0; k < p->actions->count; k++) {
        dp_mix_msg msg;
        const dp_action *const action = &p->actions->items[k];
        if (action->type == DP_DO_SEND && dp_mix_msg_read(action->u.send.bytes, &msg) == DP_OK &&
            msg.type == DP_MSG_MIX_STATUS && msg.status == DP_MIX_STATUS_ABORTED &&
            dp_mix_id_equal(&msg.id, id) && msg.ticket == ticket) {
            return true;
        }
    }
    return false;
}

/* The offer that this row is of comes a second time. */
static void offer_again(pool *p, uint32_t i, const dp_mix_row *row)
{
    say(p, i,
        &(dp_mix_msg){.type = DP_MSG_MIX_OFFER,
                      .id = row->id,
                      .number = row->number,
                      .base = row->base,
                      .terms = row->other});
}

/* Its partner has said so while the own row was on its way to the disk, and says it no more. */
static void an_initiator_that_is_prepared_last_asks_for_the_commit_at_once(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 12);
    uint32_t a = 2;
    give(p);
    while (a == 2 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, DP_MS / 2);
        for (uint32_t i = 0; i < 2; i++) {
            const dp_mix_look look = dp_mix_view(p->nodes[i].mix);
            a = look.state == DP_MIX_PREPARING && look.initiator ? i : a;
        }
    }
    CHECK(a < 2);
    const dp_mix *const mix = p->nodes[a].mix;
    const dp_mix_row *const row = &mix->x;
    p->loss = 1000;
    for (uint32_t i = p->n_items; i-- > 0;) { /* Messages under way are lost too. */
        if (p->items[i].kind == POOL_MESSAGE && p->items[i].large == NULL) {
            p->items[i] = p->items[--p->n_items];
        }
    }
    say(p, a,
        &(dp_mix_msg){.type = DP_MSG_MIX_ACK,
                      .id = row->id,
                      .ticket = row->ticket,
                      .prepared = true,
                      .base = row->base,
                      .terms = row->other});
    CHECK(dp_mix_view(mix).state == DP_MIX_PREPARING); /* Its own row is not there yet. */
    pool_run_for(p, 10 * DP_MS);                       /* Both rows take eight. */
    CHECK(dp_mix_view(mix).state == DP_MIX_ASKED);
    pool_close(p);
}

static void an_offer_that_comes_again_leaves_the_row_that_f_stands_on(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 12);
    dp_mix_row row;
    dp_mix_frozen_view before;
    dp_mix_frozen_view after;
    give(p);
    const uint32_t b = prepared_responder(p, &row);
    dp_mix *const mix = p->nodes[b].mix;
    dp_out_begin(&p->out, p->actions);
    CHECK(dp_mix_finish(mix, pool_now(p), &p->out));
    pool_perform(p, b);
    CHECK(dp_mix_frozen_row(mix, &before));
    offer_again(p, b, &row);
    CHECK(dp_mix_view(mix).state == DP_MIX_IDLE);
    dp_out_begin(&p->out, p->actions);
    CHECK(dp_mix_finish(mix, pool_now(p), &p->out)); /* Given up before anything was frozen. */
    pool_perform(p, b);
    CHECK(dp_mix_frozen_row(mix, &after));
    CHECK(dp_hash_equal(&before.f_root, &after.f_root) && !dp_hash_is_zero(&after.f_root));
    CHECK_OK(dp_mix_check(mix, NULL));
    pool_close(p);
}

/* This row alone, after a start; published: order of the newest F in the pending row. */
static bool is_f_after_start(pool *p, uint32_t i, const dp_mix_row *row, uint64_t published,
                             uint64_t *order)
{
    dp_mix_frozen_view frozen;
    dp_mix *mix = NULL;

    CHECK_OK(dp_mix_open(&mix, &p->nodes[i].mix->config));
    dp_mix_published(mix, published);
    CHECK_OK(dp_mix_restore(
        mix, row->id.bytes,
        dp_view_of(pool_row_find(&p->nodes[i], row->id.bytes)->bytes, DP_MIX_ROW_BYTES)));
    dp_out_begin(&p->out, p->actions);
    dp_mix_start(mix, pool_now(p), &p->out);
    const bool is_f = dp_mix_frozen_row(mix, &frozen);
    *order = dp_mix_order(mix);
    dp_mix_close(mix);
    return is_f;
}

/* The exchange continues with the weights of its row; the next publication claims no tokens of
 * it. */
static void f_that_is_worth_nothing_comes_back_without_its_work(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 12);
    dp_mix_row row;
    give(p);
    const uint32_t b = prepared_responder(p, &row);
    for (uint32_t lambda = 0; lambda <= 65536; lambda += 65536) {
        dp_out_begin(&p->out, p->actions);
        dp_mix_trainer_restore(p->nodes[b].mix, pool_now(p), lambda, &p->out);
        const dp_action *const restore = &p->actions->items[0];
        CHECK(restore->type == DP_DO_TRAINER_RESTORE && restore->u.restore.lambda == lambda);
        CHECK(restore->u.restore.steps == (lambda > 0 ? row.own.steps : 0));
        CHECK(restore->u.restore.tokens == (lambda > 0 ? row.own.tokens : 0) && row.own.tokens > 0);
    }
    pool_close(p);
}

/* A full disk had refused to delete the row, and its work was counted long ago. */
static void a_row_that_should_have_gone_brings_nothing_back(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 12);
    dp_mix_row row;
    uint64_t order = 0;
    give(p);
    const uint32_t b = prepared_responder(p, &row);
    CHECK(row.order > 0);
    CHECK(is_f_after_start(p, b, &row, row.order - 1, &order));
    CHECK(order == row.order);
    CHECK(!is_f_after_start(p, b, &row, row.order, &order));
    CHECK(!is_f_after_start(p, b, &row, row.order + 7, &order));
    CHECK(order == row.order + 7); /* The next row is not taken for an old one. */
    pool_close(p);
}

static void a_late_commit_of_an_attempt_given_up_commits_nothing(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 12);
    dp_mix_row row;
    give(p);
    const uint32_t b = prepared_responder(p, &row);
    dp_mix *const mix = p->nodes[b].mix;
    dp_out_begin(&p->out, p->actions);
    CHECK(dp_mix_finish(mix, pool_now(p), &p->out));
    pool_perform(p, b);
    dp_out_begin(&p->out, p->actions);
    dp_mix_folded(mix, pool_now(p), &p->out); /* F was published, and its row was deleted. */
    pool_perform(p, b);
    /* The old offer comes a second time: b freezes F again and prepares again, under a new
     * ticket. */
    offer_again(p, b, &row);
    for (uint32_t k = 0; k < 200 && dp_mix_view(mix).state != DP_MIX_PREPARED; k++) {
        pool_run_for(p, DP_MS);
    }
    CHECK(dp_mix_view(mix).state == DP_MIX_PREPARED);
    say(p, b,
        &(dp_mix_msg){.type = DP_MSG_MIX_COMMIT,
                      .id = row.id,
                      .ticket = row.ticket,
                      .pair = dp_mix_pair_of(&row)});
    CHECK(says_aborted(p, &row.id, row.ticket)); /* Or the other would ask on and on. */
    CHECK(dp_mix_view(mix).state == DP_MIX_PREPARED);
    say(p, b,
        &(dp_mix_msg){.type = DP_MSG_MIX_ACK,
                      .id = row.id,
                      .ticket = row.ticket,
                      .base = row.base,
                      .terms = row.other});
    CHECK(says_aborted(p, &row.id, row.ticket));
    pool_close(p);
}

static void a_commit_of_other_blobs_commits_nothing(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 13);
    dp_mix_row row;
    give(p);
    const uint32_t b = prepared_responder(p, &row);
    dp_mix_pair pair = dp_mix_pair_of(&row);
    pair.root_a.bytes[0] ^= 1;
    say(p, b,
        &(dp_mix_msg){.type = DP_MSG_MIX_COMMIT, .id = row.id, .ticket = row.ticket, .pair = pair});
    CHECK(dp_mix_view(p->nodes[b].mix).state == DP_MIX_IDLE);
    CHECK(p->nodes[b].f == (int64_t)(8 * b) << 40);
    pool_close(p);
}

static void a_dead_trainer_gets_its_frozen_work_back(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        pool *const p = pool_of(2, 300 + seed);
        while (pool_done(p) < 2 && p->now < 60 * DP_SECOND) {
            pool_run_for(p, 10 * DP_MS);
        }
        pool_run_for(p, dp_rng_below(&p->rng, 400 * DP_MS)); /* anywhere in the next exchange */
        pool_node *const node = &p->nodes[seed % 2];
        dp_out_begin(&p->out, p->actions);
        dp_mix_trainer_down(node->mix, pool_now(p), &p->out);
        pool_perform(p, seed % 2);
        p->expected -= node->o_unsaved * node->weight;
        node->o_unsaved = 0;
        node->f = 0;
        for (uint32_t i = p->n_items; i-- > 0;) { /* the old process no longer answers */
            if (p->items[i].to == seed % 2 && p->items[i].kind == POOL_EVENT &&
                (p->items[i].event.type == DP_EV_FROZEN || p->items[i].event.type == DP_EV_MIXED)) {
                p->items[i] = p->items[--p->n_items];
            }
        }
        memset(node->freeze, 0, sizeof node->freeze);
        pool_run_for(p, DP_SECOND);
        dp_out_begin(&p->out, p->actions);
        dp_mix_trainer_restore(node->mix, pool_now(p), 65536, &p->out);
        pool_perform(p, seed % 2);
        pool_settle(p);
        CHECK(pool_idle(p));
        CHECK(pool_sum(p) == p->expected);
        pool_close(p);
    }
}

/* Rounds pass, by APPLY or while it does not run, between a's question and b's answer. */
static void the_change_of_an_exchange_ages_with_the_work_that_was_frozen_for_it(void **state)
{
    (void)state;
    for (uint32_t dies = 0; dies < 2; dies++) {
        pool *const p = pool_of(2, 11);
        uint32_t a = 2;
        give(p);
        while (a == 2 && p->now < 60 * DP_SECOND) {
            pool_run_for(p, DP_MS / 4);
            a = dp_mix_view(p->nodes[0].mix).in_doubt   ? 0
                : dp_mix_view(p->nodes[1].mix).in_doubt ? 1
                                                        : 2;
        }
        CHECK(a < 2);
        if (dies == 1) {
            pool_kill(p, a);
            p->lambda = 16384;
            pool_boot(p, a);
        } else {
            dp_mix_faded(p->nodes[a].mix, 32768);
            dp_mix_faded(p->nodes[a].mix, 32768);
            p->nodes[a].f /= 4;
        }
        while (!pool_idle(p) && p->now < 60 * DP_SECOND) {
            pool_run_for(p, DP_MS);
        }
        pool_settle(p);
        CHECK(p->nodes[a].f * 4 == 6LL << 40);
        CHECK(p->nodes[1 - a].f == 6LL << 40);
        pool_close(p);
    }
}

static const char *judge_three(void *context, const dp_peer *peer, const dp_mix_terms *terms)
{
    uint32_t *const asked = context;
    (void)peer;
    (*asked)++;
    return terms->tokens == 3 ? "too much" : NULL;
}

/* Node 1 claims more than node 0 accepts. */
static void a_partner_whose_terms_do_not_pass_is_not_asked_again(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 5);
    uint32_t asked = 0;
    give(p);
    p->nodes[0].mix->config.judge = judge_three;
    p->nodes[0].mix->config.judge_context = &asked;
    pool_run_for(p, 20 * DP_SECOND);
    CHECK(pool_done(p) == 0 && asked == 1);
    CHECK(p->nodes[0].freezes <= 1); /* Its own offer, before it knew. */
    CHECK(p->nodes[0].f == 0);
    for (uint32_t k = 0; k < p->n_objects; k++) { /* Nor was an object fetched for it. */
        CHECK(!dp_picker_wants(p->nodes[0].picker, &p->objects[k].root));
    }
    /* Until both have applied another round, and earlier messages are no longer valid. */
    const dp_hash next = {.bytes = {7}};
    for (uint32_t i = 0; i < 2; i++) {
        p->nodes[i].weight = 1;
        dp_out_begin(&p->out, p->actions);
        dp_mix_set(p->nodes[i].mix, pool_now(p), &(dp_mix_now){.gossip = true, .base = next},
                   &p->out);
        dp_members_tell(p->nodes[i].members,
                        &(dp_summary){.base = next, .has_trainer = true, .mode = DP_MODE_GOSSIP});
        pool_perform(p, i);
    }
    pool_run_for(p, 5 * DP_SECOND);
    CHECK(pool_done(p) > 0 && asked > 1);
    pool_close(p);
}

static void a_partner_of_any_weight_leaves_a_fifth_of_the_own_work(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 6);
    p->nodes[1].weight = 99;
    p->nodes[1].f = 100LL << 40;
    p->frozen_o = true;
    while (pool_done(p) < 2 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, DP_MS);
    }
    /* 99 of 100 parts would be the plain mean; the sum is kept. */
    CHECK(p->nodes[0].f > 79LL << 40 && p->nodes[0].f <= 80LL << 40);
    CHECK(llabs(p->nodes[0].f + 99 * p->nodes[1].f - (9900LL << 40)) < 100LL << 24);
    pool_close(p);
}

static void damaged_messages_never_hurt(void **state)
{
    (void)state;
    pool *const p = pool_of(3, 8);
    dp_rng rng;
    dp_rng_init(&rng, 5);
    for (uint32_t round = 0; round < 1500; round++) {
        pool_run_for(p, DP_MS);
        for (uint32_t i = 0; i < p->n_items; i++) {
            pool_item item = p->items[i];
            if (item.kind != POOL_MESSAGE || item.large != NULL) {
                continue;
            }
            const size_t whole = item.size;
            const uint32_t from = 1 + (uint32_t)dp_rng_below(&rng, 2);
            for (size_t cut = 0; cut < whole; cut += 7) {
                dp_out_begin(&p->out, p->actions);
                CHECK(dp_mix_message(p->nodes[item.to].mix, pool_now(p), from,
                                     dp_view_of(item.bytes, cut), &p->out) != DP_OK);
            }
            /* Damage in flight instead of the original: the channel would stop it, a liar could
             * send it. */
            p->items[i].size = mutate(&rng, p->items[i].bytes, whole, sizeof item.bytes);
        }
    }
    pool_close(p);
}

/* Of an attempt that was given up meanwhile: no row will hold what was frozen for it. */
static void a_freeze_that_comes_too_late_leaves_only_what_the_newest_row_needs(void **state)
{
    pool *const p = pool_of(1, 14);
    dp_mix *const mix = p->nodes[0].mix;
    const dp_event event = {
        .type = DP_EV_FROZEN,
        .u.frozen = {.exchange = {1}, .root = {.bytes = {2}}, .f_root = {.bytes = {3}}}};

    (void)state;
    dp_out_begin(&p->out, p->actions);
    CHECK(!dp_mix_frozen(mix, pool_now(p), &event, &p->out));
    CHECK(p->actions->count == 2);
    for (uint32_t k = 0; k < p->actions->count; k++) {
        const dp_action *const drop = &p->actions->items[k];
        CHECK(drop->type == DP_DO_OBJECT_DROP && drop->u.keep.use == DP_USE_EXCHANGE);
        CHECK(dp_hash_equal(&drop->u.keep.root,
                            k == 0 ? &event.u.frozen.root : &event.u.frozen.f_root));
    }
    mix->has_f = true;
    mix->f.f_root = event.u.frozen.f_root;
    dp_out_begin(&p->out, p->actions);
    CHECK(!dp_mix_frozen(mix, pool_now(p), &event, &p->out));
    CHECK(p->actions->count == 1);
    CHECK(dp_hash_equal(&p->actions->items[0].u.keep.root, &event.u.frozen.root));
    pool_close(p);
}

static dp_status open_and_close(void *context)
{
    pool *const p = context;
    dp_mix *mix = NULL;
    DP_TRY(dp_mix_open(&mix, &(dp_mix_config){.members = p->nodes[0].members,
                                              .picker = p->nodes[0].picker,
                                              .members_max = 8}));
    dp_mix_close(mix);
    return DP_OK;
}

static void open_survives_every_failed_allocation(void **state)
{
    (void)state;
    pool *const p = pool_of(1, 9);
    CHECK(fail_each_allocation(open_and_close, p) == 4);
    pool_close(p);
}

static void run_to(pool *p, dp_mix_state wanted)
{
    while (p->nodes[0].mix->state != wanted && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 100);
    }
    assert_int_equal(p->nodes[0].mix->state, wanted);
}

/* The row is being written when the exchange is cancelled. */
static void an_exchange_given_up_during_its_write_spoils_no_later_one(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = p->nodes[0].mix;
    give(p);
    run_to(p, DP_MIX_PREPARING);
    dp_out_begin(&p->out, p->actions);
    dp_mix_want_abort(mix, pool_now(p), true, &p->out);
    pool_perform(p, 0);
    CHECK(mix->state == DP_MIX_PREPARING && mix->abort_wanted);
    while (mix->aborted == 0 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, DP_MS);
    }
    CHECK(mix->state == DP_MIX_IDLE && !mix->abort_wanted && !mix->fetched);
    CHECK(!mix->other_prepared && !mix->rebuilding && mix->op == 0);
    while (pool_done(p) < 2 && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 10 * DP_MS);
    }
    CHECK(pool_done(p) >= 2 && mix->aborted == 1);
    pool_close(p);
}

static void a_blob_counts_as_checked_once_and_when_it_is_here(void **state)
{
    (void)state;
    pool *const p = pool_of(2, 1);
    dp_mix *const mix = p->nodes[0].mix;
    give(p);
    run_to(p, DP_MIX_FETCHING);
    CHECK(!mix->fetched);
    const dp_hash root = mix->x.other.root;
    const dp_hash strange = {{1, 2, 3}};
    dp_out_begin(&p->out, p->actions);
    CHECK(!dp_mix_checked(mix, pool_now(p), &root, true, 1, &p->out));
    CHECK(!dp_mix_object(mix, pool_now(p), &strange, &p->out));
    while (!mix->fetched && p->now < 60 * DP_SECOND) {
        pool_run_for(p, 100);
    }
    dp_out_begin(&p->out, p->actions);
    CHECK(!dp_mix_object(mix, pool_now(p), &root, &p->out));
    CHECK(!dp_mix_checked(mix, pool_now(p), &strange, true, 1, &p->out));
    CHECK(mix->state == DP_MIX_FETCHING);
    run_to(p, DP_MIX_PREPARED);
    dp_out_begin(&p->out, p->actions);
    CHECK(!dp_mix_checked(mix, pool_now(p), &root, true, 1, &p->out));
    CHECK(mix->state == DP_MIX_PREPARED);
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_weight_is_tokens_squared_by_steps_and_never_wraps),
        cmocka_unit_test(two_nodes_meet_in_the_weighted_middle),
        cmocka_unit_test(the_pin_of_a_partner_s_work_goes_once_a_row_keeps_it),
        cmocka_unit_test(four_nodes_draw_together_and_keep_the_sum),
        cmocka_unit_test(what_was_exchanged_is_shared_until_it_is_counted),
        cmocka_unit_test(loss_doubling_and_reordering_keep_the_sum),
        cmocka_unit_test(random_crashes_with_kept_disks_keep_the_sum),
        cmocka_unit_test(an_initiator_that_is_prepared_last_asks_for_the_commit_at_once),
        cmocka_unit_test(an_offer_that_comes_again_leaves_the_row_that_f_stands_on),
        cmocka_unit_test(f_that_is_worth_nothing_comes_back_without_its_work),
        cmocka_unit_test(a_row_that_should_have_gone_brings_nothing_back),
        cmocka_unit_test(a_late_commit_of_an_attempt_given_up_commits_nothing),
        cmocka_unit_test(a_commit_of_other_blobs_commits_nothing),
        cmocka_unit_test(a_dead_trainer_gets_its_frozen_work_back),
        cmocka_unit_test(the_change_of_an_exchange_ages_with_the_work_that_was_frozen_for_it),
        cmocka_unit_test(a_partner_whose_terms_do_not_pass_is_not_asked_again),
        cmocka_unit_test(a_partner_of_any_weight_leaves_a_fifth_of_the_own_work),
        cmocka_unit_test(a_freeze_that_comes_too_late_leaves_only_what_the_newest_row_needs),
        cmocka_unit_test(damaged_messages_never_hurt),
        cmocka_unit_test(open_survives_every_failed_allocation),
        cmocka_unit_test(an_exchange_given_up_during_its_write_spoils_no_later_one),
        cmocka_unit_test(a_blob_counts_as_checked_once_and_when_it_is_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
