/* Shared by tests of sums of sites: two sites of three nodes in a run that has such sums. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_SITE_KIT_H
#define DP_TESTS_UNIT_GOSSIP_KIT_SITE_KIT_H

#include "gossip/context/context.h"
#include "gossip/parts/part_round.h"
#include "gossip/record/part_sum.h"
#include "tests/unit/gossip/kit/part_kit.h"

enum { SITE_NODES = 6 }; /* 0 to 2 at one site, 3 to 5 at another */

/* Sets the near members by hand: messages take no time here, so nothing can be measured. */
static inline void kit_place(kit_world *world)
{
    for (uint32_t i = 0; i < SITE_NODES; i++) {
        dp_node *node = world->nodes[i].node;
        if (node == NULL) {
            continue;
        }
        node->parts->site = (dp_part_site){0};
        for (uint32_t k = i / 3 * 3; k < i / 3 * 3 + 3; k++) {
            const dp_peer peer = kit_peer(k);
            if (k != i && world->nodes[k].node != NULL) {
                const uint32_t index = dp_node_member_index(node, &peer);
                node->parts->site.near[index / 64] |= 1ULL << (index % 64);
                node->parts->site.n++;
            }
        }
    }
}

/* At the beginning of a round, before the first publication. */
static inline void kit_next_round(kit_world *world)
{
    uint32_t at = 0;

    while (world->nodes[at].node == NULL) {
        at++;
    }
    const uint64_t round = kit_look(world, at).round;
    for (uint32_t i = 0; i < 2000 && kit_look(world, at).round == round; i++) {
        kit_run_ms(world, KIT_STEP_MS);
        kit_place(world);
    }
    assert_int_equal(kit_look(world, at).round, round + 1);
}

static inline kit_world *kit_two_sites(dp_switch sums)
{
    kit_world *world = kit_open(SITE_NODES);

    world->manifest.codec = DP_CODEC_INT8;
    world->manifest.reduce = DP_REDUCE_PARTS;
    world->manifest.trust = DP_TRUST_MEMBERS;
    world->manifest.site_sums = sums;
    kit_start_anew(world, 5000);
    kit_next_round(world);
    return world;
}

/* Contributors of one site among the listed. */
static inline uint32_t kit_site_of(const dp_record *record, uint32_t first)
{
    uint32_t from = 0;

    for (uint32_t i = 0; i < record->n_listed; i++) {
        const uint32_t who = kit_index(&record->listed[i].peer);
        from |= who >= first && who < first + 3 ? 1U << i : 0;
    }
    return from;
}

#endif
