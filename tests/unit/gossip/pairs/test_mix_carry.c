/* Exchanges between two that have no link, or lose it on the way. */
#include "gossip/pairs/mix_internal.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/record/wire.h"
#include "tests/unit/gossip/kit/pool.h"

/* Runs until a node is in doubt, and breaks its link with the other forever; messages under way are
 * lost. */
static uint32_t doubt_without_a_link(pool *p)
{
    while (p->now < 60 * DP_SECOND) {
        pool_run_for(p, DP_MS / 4);
        for (uint32_t i = 0; i < p->n; i++) {
            const dp_mix_look look = dp_mix_view(p->nodes[i].mix);
            if (!look.in_doubt) {
                continue;
            }
            for (uint32_t k = p->n_items; k-- > 0;) {
                if (p->items[k].kind == POOL_MESSAGE && p->items[k].large == NULL) {
                    p->items[k] = p->items[--p->n_items];
                }
            }
            pool_cut(p, i, pool_index(p, &look.peer));
            return i;
        }
    }
    fail();
    return 0;
}

static void an_exchange_in_doubt_without_a_link_ends_through_others(void **state)
{
    (void)state;
    uint64_t done = 0;
    for (uint64_t seed = 0; seed < 40; seed++) {
        pool *const p = pool_of(3 + (uint32_t)(seed % 2), 700 + seed);
        const uint32_t a = doubt_without_a_link(p);
        if (seed % 4 >= 2) {
            pool_gossip(p, false); /* b, prepared, gives up before it is asked, or has decided. */
        }
        for (uint32_t k = 0; k < 400 && dp_mix_view(p->nodes[a].mix).in_doubt; k++) {
            pool_run_for(p, 10 * DP_MS);
        }
        CHECK(!dp_mix_view(p->nodes[a].mix).in_doubt); /* at the first or second repetition */
        CHECK(p->carried > 0);
        pool_settle(p);
        CHECK(pool_idle(p));
        CHECK(p->invalid == 0);
        CHECK(pool_sum(p) == p->expected);
        for (uint32_t i = 0; i < p->n; i++) { /* b has learned that a knows. */
            CHECK(dp_mix_view(p->nodes[i].mix).outcomes == 0);
        }
        done += pool_done(p);
        pool_close(p);
    }
    CHECK(done > 20);
}

static void links_that_come_and_go_keep_the_sum(void **state)
{
    (void)state;
    uint64_t carried = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        pool *const p = pool_of(3 + (uint32_t)(seed % 2), 9000 + seed);
        p->loss = 100;
        p->doubling = 200;
        p->jitter_us = 200 * DP_MS;
        for (uint32_t k = 0; k < 60; k++) {
            pool_run_for(p, dp_rng_below(&p->rng, 200 * DP_MS));
            const uint32_t i = (uint32_t)dp_rng_below(&p->rng, p->n);
            const uint32_t j = (uint32_t)dp_rng_below(&p->rng, p->n);
            if (dp_rng_below(&p->rng, 2) == 0) {
                pool_cut(p, i, j);
            } else {
                pool_link(p, i, j);
            }
        }
        for (uint32_t i = 1; i < p->n;
             i++) { /* In the end all have a link with one, and no other. */
            pool_link(p, 0, i);
            for (uint32_t j = 1; j < i; j++) {
                pool_cut(p, i, j);
            }
        }
        pool_settle(p);
        CHECK(pool_idle(p));
        CHECK(p->invalid == 0);
        CHECK(pool_sum(p) == p->expected);
        carried += p->carried;
        pool_close(p);
    }
    print_message("%llu words carried\n", (unsigned long long)carried);
    CHECK(carried > 100);
}

static dp_status bring(pool *p, uint32_t to, const dp_mix_signed *word)
{
    uint8_t bytes[DP_MIX_SIGNED_MAX];
    dp_writer writer = dp_writer_of(bytes, sizeof bytes);

    dp_mix_signed_write(&writer, word);
    dp_out_begin(&p->out, p->actions);
    return dp_mix_carried(p->nodes[to].mix, pool_now(p), 1, dp_view_of(bytes, writer.size),
                          &p->out);
}

static void nobody_speaks_for_another(void **state)
{
    (void)state;
    pool *const p = pool_of(3, 15);
    pool_run_for(p, 50 * DP_MS);
    uint8_t message[DP_MIX_MESSAGE_MAX];
    uint8_t part[32 + 32 + DP_MIX_MESSAGE_MAX];
    dp_writer inner = dp_writer_of(message, sizeof message);
    dp_writer signs = dp_writer_of(part, sizeof part);
    const dp_peer to = mesh_peer(0);
    dp_mix_msg msg = {.type = DP_MSG_MIX_STATUS, .ticket = 3, .status = DP_MIX_STATUS_ABORTED};
    dp_mix_signed word = {.author = mesh_peer(2)};

    dp_mix_msg_write(&inner, &msg);
    word.message = dp_view_of(message, inner.size);
    dp_write_bytes(&signs, mesh_run.bytes, 32);
    dp_write_bytes(&signs, to.bytes, 32);
    dp_write_view(&signs, word.message);
    mesh_signature(word.author.bytes, "dpnode/mix/1", dp_view_of(part, signs.size), word.signature);
    CHECK_OK(bring(p, 0, &word));
    CHECK_STATUS(bring(p, 1, &word), DP_BADSIG); /* It is for another. */
    word.author = mesh_peer(1);
    CHECK_STATUS(bring(p, 0, &word), DP_BADSIG);
    word.author = mesh_peer(0);
    CHECK_STATUS(bring(p, 0, &word), DP_DENIED); /* Its own, come round. */
    word.author = mesh_peer(9);
    CHECK_STATUS(bring(p, 0, &word), DP_DENIED);
    word.author = mesh_peer(2);
    message[2] ^= 1;
    CHECK_STATUS(bring(p, 0, &word), DP_BADSIG);
    inner = dp_writer_of(message, sizeof message);
    msg.type = DP_MSG_MIX_OFFER; /* That needs a link. */
    dp_mix_msg_write(&inner, &msg);
    word.message = dp_view_of(message, inner.size);
    CHECK_STATUS(bring(p, 0, &word), DP_BADMSG);
    pool_close(p);
}

typedef struct ways {
    bool direct;
    uint32_t carriers; /* bit per member */
    uint32_t n;
} ways;

/* By which ways node 0 sends this message to node 1. */
static ways ways_of(pool *p, dp_msg_type type)
{
    dp_mix *const mix = p->nodes[0].mix;
    const dp_peer to = mesh_peer(1);
    const dp_mix_msg msg = {.type = type, .id = {{5}}, .ticket = 6, .status = DP_MIX_STATUS_CLOSED};
    ways found = {.n = 0};

    dp_out_begin(&p->out, p->actions);
    dp_mix_tell(mix, &msg, &to, &p->out);
    for (uint32_t i = 0; i < p->actions->count; i++) {
        const dp_action *action = &p->actions->items[i];
        const uint32_t index = dp_members_find(mix->config.members, &action->u.send.peer);
        CHECK(action->type == DP_DO_SEND && index != DP_MEMBER_NONE);
        if (dp_msg_type_of(action->u.send.bytes) == DP_MSG_RELAY) {
            const uint8_t *head = action->u.send.bytes.data + DP_MSG_HEAD_BYTES;
            CHECK(head[0] == 1 && memcmp(head + 1, to.bytes, sizeof to.bytes) == 0);
            CHECK((found.carriers & 1U << index) == 0);
            found.carriers |= 1U << index;
            found.n++;
        } else {
            CHECK(index == 1 && dp_msg_type_of(action->u.send.bytes) == type);
            found.direct = true;
        }
    }
    return found;
}

/* All that may know both, up to three; for an answer the one that carried the question. */
static void a_word_goes_on_its_link_and_through_others_where_none_answers(void **state)
{
    (void)state;
    pool *const p = pool_of(4, 1);
    pool_run_for(p, DP_MS);
    dp_mix *const mix = p->nodes[0].mix;
    for (uint32_t i = 1; i < 4; i++) {
        dp_member *member = (dp_member *)(uintptr_t)dp_members_at(mix->config.members, i);
        CHECK(member->linked);
        member->in_roster = true;
    }
    dp_member *const other = (dp_member *)(uintptr_t)dp_members_at(mix->config.members, 1);
    for (uint32_t what = 0; what < 9; what++) {
        mix->state = what == 2 ? DP_MIX_PREPARED : DP_MIX_ASKED;
        mix->retries = what == 1 || what == 2 || what >= 7 ? 3 : 2;
        mix->via = what == 6 ? 3 : DP_MEMBER_NONE;
        other->linked = what != 3 && what != 4 && what != 5;
        for (uint32_t i = 2; i < 4; i++) {
            dp_member *member = (dp_member *)(uintptr_t)dp_members_at(mix->config.members, i);
            member->linked = what != 4 || i == 3;
            member->in_roster = what != 7 || i != 2;
        }
        const ways found = ways_of(p, what == 5   ? DP_MSG_MIX_OFFER
                                      : what == 8 ? DP_MSG_MIX_STATUS
                                                  : DP_MSG_MIX_COMMIT);
        CHECK(found.direct == other->linked);
        CHECK(found.n == (what == 1 || what == 3                ? 2
                          : what == 4 || what == 6 || what == 7 ? 1
                                                                : 0));
        CHECK((found.carriers & 2U) == 0);
        CHECK(what != 4 || found.carriers == 1U << 3);
        CHECK((what != 6 && what != 7) || found.carriers == 1U << 3);
    }
    mix->via = DP_MEMBER_NONE;
    other->linked = true;
    mix->state = DP_MIX_IDLE;
    pool_close(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_exchange_in_doubt_without_a_link_ends_through_others),
        cmocka_unit_test(links_that_come_and_go_keep_the_sum),
        cmocka_unit_test(nobody_speaks_for_another),
        cmocka_unit_test(a_word_goes_on_its_link_and_through_others_where_none_answers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
