/* An exchange from inside, for the tests of pairs/: two linked nodes of pool.h, of which the test
 * sets the state and reads the actions. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_MIX_KIT_H
#define DP_TESTS_UNIT_GOSSIP_KIT_MIX_KIT_H

#include "gossip/pairs/mix_internal.h"
#include "gossip/pairs/mix_msg.h"
#include "tests/unit/gossip/kit/pool.h"

/* A row of node 0 about an exchange with node 1, each field with a value of its own. */
static inline dp_mix_row mix_row_of(uint8_t id, bool initiator, dp_mix_mark mark)
{
    dp_mix_row row = {.mark = mark,
                      .initiator = initiator,
                      .has_f = true,
                      .id = {{id}},
                      .order = 20 + id,
                      .number = 30 + id,
                      .ticket = 40 + id,
                      .peer = mesh_peer(1),
                      .base = pool_base,
                      .own = {.root = {{1, id}},
                              .bytes = 100,
                              .steps = 4,
                              .tokens = 40,
                              .incarnation = 5,
                              .reach = {.leased = 6, .own = 7}},
                      .other = {.root = {{2, id}},
                                .bytes = 101,
                                .steps = 5,
                                .tokens = 100,
                                .incarnation = 8,
                                .reach = {.leased = 9, .own = 10}},
                      .f_root = {{3, id}},
                      .f_bytes = 102,
                      .damp = 32768};

    memset(row.life, 77, sizeof row.life);
    return row;
}

/* Two nodes with a link, and no exchange yet. */
static inline pool *mix_linked_pool(void)
{
    pool *const p = pool_of(2, 1);

    pool_run_for(p, DP_MS);
    CHECK(dp_members_linked(p->nodes[0].members)->count == 1);
    CHECK(p->nodes[0].mix->state == DP_MIX_IDLE);
    return p;
}

static inline dp_mix *mix_begin_at(pool *p)
{
    dp_out_begin(&p->out, p->actions);
    return p->nodes[0].mix;
}

static inline const dp_action *mix_find_action(const pool *p, dp_action_type type)
{
    for (uint32_t i = 0; i < p->actions->count; i++) {
        if (p->actions->items[i].type == type) {
            return &p->actions->items[i];
        }
    }
    return NULL;
}

#endif
