/* Results of far owners: the member that fetches one for all members near to it, the source of the
 * others, and the case that this member dies or is silent. */
#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/parts/part_wait.h"
#include "gossip/round/round_msg.h"
#include "tests/unit/gossip/kit/node_kit.h"

enum { NODES = 6 }; /* 0 to 2 at one site, 3 to 5 at another */

/* Rounds behind them, and one under way in which each has published. The near members are set by
 * hand: messages take no time here, so nothing can be measured. */
static kit_world *two_sites(void)
{
    kit_world *world = kit_open(NODES);

    world->manifest.codec = DP_CODEC_INT8;
    world->manifest.reduce = DP_REDUCE_PARTS;
    world->manifest.trust = DP_TRUST_MEMBERS;
    kit_start_anew(world, 5000);
    const uint64_t published = world->nodes[0].published;
    for (uint32_t i = 0; i < 1000 && world->nodes[0].published == published; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        dp_node *node = world->nodes[i].node;
        node->parts->site = (dp_part_site){.n = 2};
        for (uint32_t k = i / 3 * 3; k < i / 3 * 3 + 3; k++) {
            const dp_peer peer = kit_peer(k);
            if (k != i) {
                const uint32_t index = dp_node_member_index(node, &peer);
                node->parts->site.near[index / 64] |= 1ULL << (index % 64);
            }
        }
    }
    return world;
}

static uint32_t part_of(const kit_world *world, uint32_t owner)
{
    const dp_part_layout *layout = &world->nodes[0].node->ledger.layout;
    const dp_peer peer = kit_peer(owner);
    uint32_t part = 0;

    while (part < layout->cuts.n && !dp_peer_equal(&layout->owners[part], &peer)) {
        part++;
    }
    assert_true(part < layout->cuts.n);
    return part;
}

/* owner has added up its part of the round under way. */
static dp_part_word word_of(const kit_world *world, uint32_t owner)
{
    const dp_ledger *ledger = &world->nodes[0].node->ledger;
    const dp_crypto crypto = kit_crypto(owner);
    const dp_hash run = kit_run();
    dp_part_word word = {.owner = kit_peer(owner),
                         .round = ledger->round + 1,
                         .base = ledger->base,
                         .part = part_of(world, owner),
                         .bytes = 8,
                         .n = 1,
                         .sources = {{.peer = kit_peer(owner)}}};

    memset(word.root.bytes, 0xb0 + (int)owner, sizeof word.root.bytes);
    assert_true(dp_part_sign(&word, &crypto, &run, &ledger->fork));
    return word;
}

/* The node that these actions first ask for the object; NODES: none. */
static uint32_t asked(const dp_actions *actions, const dp_hash *root)
{
    for (uint32_t i = 0; i < actions->count; i++) {
        const dp_action *action = &actions->items[i];
        if (action->type == DP_DO_GET_INFO && dp_hash_equal(&action->u.get.root, root)) {
            return kit_index(&action->u.get.peer);
        }
    }
    return NODES;
}

static uint32_t told(kit_world *world, uint32_t to, const dp_part_word *word)
{
    static uint8_t room[DP_MESSAGE_MAX];
    dp_writer writer = dp_writer_of(room, sizeof room);

    dp_part_msg_write(&writer, word);
    return asked(kit_tell(world, kit_index(&word->owner), to, dp_view_of(room, writer.size)),
                 &word->root);
}

/* by says that it holds it. */
static uint32_t held_by(kit_world *world, uint32_t by, uint32_t to, const dp_part_word *word)
{
    uint8_t room[DP_ROUND_MESSAGE_MAX];
    dp_have_msg have = {.voter = kit_peer(by), .round = word->round, .n = 1};
    dp_writer writer = dp_writer_of(room, sizeof room);

    have.roots[0] = word->root;
    dp_have_msg_write(&writer, &have);
    return asked(kit_tell(world, by, to, dp_view_of(room, writer.size)), &word->root);
}

static uint32_t ticked(kit_world *world, uint32_t to, const dp_part_word *word)
{
    dp_event tick = {.type = DP_EV_TICK};

    kit_event_in(world, to, &tick);
    return asked(world->actions, &word->root);
}

/* The one of 0 to 2 whose turn it is. */
static uint32_t fetcher(kit_world *world, const dp_part_word *word)
{
    uint32_t found = NODES;

    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t whom = told(world, i, word);
        if (whom != NODES) {
            assert_int_equal(found, NODES); /* No other. */
            assert_int_equal(whom, kit_index(&word->owner));
            found = i;
        }
    }
    assert_int_not_equal(found, NODES);
    return found;
}

static void a_result_from_afar_is_fetched_by_one_of_a_site_and_each_has_its_turn(void **state)
{
    kit_world *world = two_sites();
    uint32_t turns = 0;

    (void)state;
    for (uint32_t owner = 3; owner < NODES; owner++) {
        const dp_part_word word = word_of(world, owner);
        turns |= 1U << fetcher(world, &word);
    }
    assert_int_equal(turns, 7);
    kit_close(world);
}

static void the_others_have_it_of_whoever_is_near_and_says_so(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 4);

    (void)state;
    const uint32_t first = fetcher(world, &word);
    const uint32_t other = (first + 1) % 3;
    assert_int_equal(held_by(world, 5, other, &word), NODES); /* Far away as well. */
    const uint64_t before = kit_look(world, other).results_near;
    assert_int_equal(held_by(world, first, other, &word), first);
    assert_int_equal(kit_look(world, other).near, 2);
    assert_int_equal(kit_look(world, other).results_near, before + 1);
    kit_close(world);
}

static void a_result_of_an_owner_nearby_is_asked_of_it_at_once(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 1);

    (void)state;
    assert_int_equal(told(world, 0, &word), 1);
    assert_int_equal(told(world, 2, &word), 1);
    kit_close(world);
}

/* The near members that own a part by the chain fetch in turn, since all know the same owners. Here
 * none of them owns one. */
static void where_nobody_near_owns_a_part_each_asks_the_owner(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 3);

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        dp_part_layout *layout = &world->nodes[i].node->ledger.layout;
        for (uint32_t p = 0; p < layout->cuts.n; p++) {
            layout->owners[p] = word.owner;
        }
        assert_int_equal(told(world, i, &word), 3);
    }
    kit_close(world);
}

static void a_near_node_without_news_asks_the_owner_after_a_wait(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 3);

    (void)state;
    const uint32_t other = (fetcher(world, &word) + 1) % 3;
    assert_int_equal(ticked(world, other, &word), NODES);
    dp_node *node = world->nodes[other].node;
    const dp_part_wait wait = dp_part_round_wait(node, word.part);
    const dp_time wake = dp_part_round_wake(node);
    const uint64_t all_us = DP_SITE_WAITS * dp_part_wait_line(&wait);
    assert_true(wake.us <= world->now_us + all_us);
    world->now_us += all_us - 1;
    assert_int_equal(ticked(world, other, &word), NODES);
    world->now_us += 1;
    assert_int_equal(ticked(world, other, &word), 3);
    kit_close(world);
}

/* Its link is up, and no other holder of the result is known. */
static void a_near_holder_that_gives_nothing_is_not_the_only_one_asked(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 3);

    (void)state;
    const uint32_t first = fetcher(world, &word);
    const uint32_t other = (first + 1) % 3;
    assert_int_equal(held_by(world, first, other, &word), first);
    dp_node *node = world->nodes[other].node;
    const dp_part_wait wait = dp_part_round_wait(node, word.part);
    const uint64_t all_us = DP_SITE_WAITS * dp_part_wait_line(&wait);
    const uint64_t asked_us = world->now_us;
    assert_true(dp_part_round_wake(node).us <= asked_us + all_us);
    uint32_t whom = NODES;
    while (whom != 3 && world->now_us < asked_us + all_us + DP_SECOND) {
        world->now_us += KIT_STEP_MS * DP_MS;
        whom = ticked(world, other, &word);
        assert_true(whom != 3 || world->now_us >= asked_us + all_us);
    }
    assert_int_equal(whom, 3);
    kit_close(world);
}

static void when_the_fetcher_dies_the_next_has_its_turn_at_once(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 5);
    uint32_t asking = 0;

    (void)state;
    const uint32_t first = fetcher(world, &word);
    kit_kill(world, first);
    for (uint32_t i = 0; i < 3; i++) {
        asking += i != first && dp_picker_wants(world->nodes[i].node->picker, &word.root) ? 1 : 0;
    }
    assert_int_equal(asking, 1);
    kit_close(world);
}

static void the_fetching_member_tells_each_near_one_once(void **state)
{
    kit_world *world = two_sites();
    const dp_part_word word = word_of(world, 3);
    dp_event here = {.type = DP_EV_OBJECT};

    (void)state;
    const uint32_t first = fetcher(world, &word);
    here.u.object.root = word.root;
    here.u.object.size = word.bytes;
    kit_event_in(world, first, &here);
    uint32_t times[NODES] = {0};
    for (uint32_t i = 0; i < world->actions->count; i++) {
        const dp_action *action = &world->actions->items[i];
        dp_have_msg have;
        if (action->type == DP_DO_SEND && action->u.send.to == DP_TO_PEER &&
            dp_have_msg_read(action->u.send.bytes, &have) == DP_OK && have.n == 1 &&
            dp_hash_equal(&have.roots[0], &word.root)) {
            times[kit_index(&action->u.send.peer)]++;
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(times[i], i == first ? 0 : 1);
    }
    kit_close(world);
}

static void a_near_member_stays_near_until_it_is_twice_as_far(void **state)
{
    kit_world *world = two_sites();
    dp_node *node = world->nodes[0].node;
    const dp_peer peer = kit_peer(1);
    const uint32_t index = dp_node_member_index(node, &peer);
    dp_rtt *rtt = (dp_rtt *)(uintptr_t)&dp_members_at(node->members, index)->rtt;
    static const struct {
        uint32_t least_us;
        bool near;
    } rows[] = {{DP_SITE_RTT_US + 1, true}, /* It was. */
                {2 * DP_SITE_RTT_US, true},
                {2 * DP_SITE_RTT_US + 1, false},
                {2 * DP_SITE_RTT_US, false},
                {DP_SITE_RTT_US, true}};

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        *rtt = (dp_rtt){.least_us = {rows[i].least_us, UINT32_MAX}, .samples = 1};
        dp_part_site_look(node);
        assert_int_equal(dp_part_site_near(node->parts, index), rows[i].near);
    }
    *rtt = (dp_rtt){0}; /* Nothing was measured. */
    dp_part_site_look(node);
    assert_false(dp_part_site_near(node->parts, index));
    kit_close(world);
}

/* Other work on the machine: no round trip is measured below some milliseconds. */
static void a_busy_machine_knows_what_is_near_by_what_is_far(void **state)
{
    kit_world *world = two_sites();
    dp_node *node = world->nodes[0].node;
    static const struct {
        uint32_t least_us; /* to node 1 */
        uint32_t far_us;   /* to node 3 */
        bool near;
    } rows[] = {
        {8000, 40000, true},
        {10000, 400000, true},  /* The bound, ... */
        {10001, 400000, false}, /* ... at any distance of another member. */
        /* All distances are equal: one site, or none. */
        {8000, 30000, false},
        {8000, 9000, false},
        {2100, 2200, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        for (uint32_t k = 1; k < NODES; k++) {
            const dp_peer peer = kit_peer(k);
            const uint32_t index = dp_node_member_index(node, &peer);
            dp_rtt *rtt = (dp_rtt *)(uintptr_t)&dp_members_at(node->members, index)->rtt;
            *rtt = (dp_rtt){.least_us = {k == 1 ? rows[i].least_us : rows[i].far_us, UINT32_MAX},
                            .samples = 1};
        }
        const dp_peer peer = kit_peer(1);
        node->parts->site = (dp_part_site){0};
        dp_part_site_look(node);
        assert_int_equal(dp_part_site_near(node->parts, dp_node_member_index(node, &peer)),
                         rows[i].near);
    }
    kit_close(world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_result_from_afar_is_fetched_by_one_of_a_site_and_each_has_its_turn),
        cmocka_unit_test(the_others_have_it_of_whoever_is_near_and_says_so),
        cmocka_unit_test(a_result_of_an_owner_nearby_is_asked_of_it_at_once),
        cmocka_unit_test(where_nobody_near_owns_a_part_each_asks_the_owner),
        cmocka_unit_test(a_near_node_without_news_asks_the_owner_after_a_wait),
        cmocka_unit_test(a_near_holder_that_gives_nothing_is_not_the_only_one_asked),
        cmocka_unit_test(when_the_fetcher_dies_the_next_has_its_turn_at_once),
        cmocka_unit_test(the_fetching_member_tells_each_near_one_once),
        cmocka_unit_test(a_near_member_stays_near_until_it_is_twice_as_far),
        cmocka_unit_test(a_busy_machine_knows_what_is_near_by_what_is_far),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
