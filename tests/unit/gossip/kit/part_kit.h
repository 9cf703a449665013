/* Shared by tests of rounds of parts: a run of such rounds among a few whole nodes. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_PART_KIT_H
#define DP_TESTS_UNIT_GOSSIP_KIT_PART_KIT_H

#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/round/round.h"
#include "tests/unit/gossip/kit/node_kit.h"

/* So many nodes that vote and add up parts, with some rounds behind them. */
static inline kit_world *kit_parted(uint32_t n)
{
    kit_world *world = kit_open(n);

    world->manifest.codec = DP_CODEC_INT8;
    world->manifest.reduce = DP_REDUCE_PARTS;
    world->manifest.trust = DP_TRUST_MEMBERS;
    kit_start_anew(world, 5000);
    assert_int_equal(kit_look(world, 0).voters, n % 2 == 0 ? n - 1 : n);
    assert_int_equal(kit_look(world, 0).listed_last, n);
    return world;
}

static inline const dp_record *kit_newest(kit_world *world)
{
    static dp_record record;

    for (uint64_t slot = world->nodes[0].slots; slot > 0; slot--) {
        const kit_record *at = &world->nodes[0].records[slot];
        assert_int_equal(dp_record_decode(&record, dp_view_of(at->record, at->record_size)), DP_OK);
        if (record.kind == DP_RECORD_ROUND) {
            return &record;
        }
    }
    fail_msg("no round");
    return NULL;
}

static inline void kit_run_rounds(kit_world *world, uint32_t n)
{
    const uint64_t round = kit_look(world, 0).round + n;

    for (uint32_t i = 0; i < 1000 * n && kit_look(world, 0).round < round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_true(kit_look(world, 0).round >= round);
    kit_run_ms(world, 2 * KIT_STEP_MS);
}

static inline uint32_t kit_parts_of(const dp_record *record, uint32_t owner)
{
    const dp_peer peer = kit_peer(owner);
    uint32_t n = 0;

    for (uint32_t p = 0; p < record->n_parts; p++) {
        n += record->parts[p].has && dp_peer_equal(&record->parts[p].owner, &peer) ? 1 : 0;
    }
    return n;
}

/* Does the node want this object now? This shows whether it has accepted a message. */
static inline bool kit_asks(const dp_actions *actions, const dp_hash *root)
{
    for (uint32_t i = 0; i < actions->count; i++) {
        const dp_action *action = &actions->items[i];
        if (action->type == DP_DO_GET_INFO && dp_hash_equal(&action->u.get.root, root)) {
            return true;
        }
    }
    return false;
}

static inline void kit_forget_claim(kit_world *world, uint32_t at, uint32_t who)
{
    dp_round *round = world->nodes[at].node->round;
    const dp_peer peer = kit_peer(who);
    uint32_t kept = 0;

    for (uint32_t i = 0; i < round->n_claims; i++) {
        if (!dp_peer_equal(&round->claims[i].ready.peer, &peer)) {
            round->claims[kept++] = round->claims[i];
        }
    }
    round->n_claims = kept;
    dp_round_index_claims(world->nodes[at].node);
}

/* Three voters, in a round of which nobody has added up a part. Node 0 knows the claims of all. */
static inline kit_world *kit_undecided(void)
{
    kit_world *world = kit_parted(3);
    uint32_t ready[DP_CLAIMS_MAX];

    kit_run_rounds(world, 1);
    for (uint32_t i = 0; i < 3; i++) {
        world->nodes[i].adds_late = true;
    }
    for (uint32_t i = 0; i < 3000 && dp_part_round_ready(world->nodes[0].node, ready) < 3; i++) {
        kit_run_ms(world, KIT_STEP_MS);
    }
    assert_int_equal(dp_part_round_ready(world->nodes[0].node, ready), 3);
    dp_node *node = world->nodes[0].node;
    assert_int_equal(node->ledger.layout.cuts.n, 3);
    node->parts->n_results = 0;
    memset(world->actions, 0, sizeof *world->actions);
    dp_out_begin(&node->out, world->actions);
    return world;
}

static inline dp_claim *kit_claim_by(dp_node *node, uint32_t peer)
{
    const dp_peer who = kit_peer(peer);

    for (uint32_t i = 0; i < node->round->n_claims; i++) {
        if (dp_peer_equal(&node->round->claims[i].ready.peer, &who)) {
            return &node->round->claims[i];
        }
    }
    fail_msg("no claim");
    return NULL;
}

#endif
