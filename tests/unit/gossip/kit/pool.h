/* A few nodes in gossip mode that exchange displacement: the pair exchange over real member tables,
 * with a driver, disk and trainer made of integers, and a network that loses, doubles and reorders
 * the messages of exchanges. F is one number per node. Weights are 1 or 3, so that w_a + w_b
 * divides by two, and displacement comes in multiples of 2^40: forty halvings stay exact. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_POOL_H
#define DP_TESTS_UNIT_GOSSIP_KIT_POOL_H

#include "gossip/pairs/mix.h"
#include "gossip/pairs/mix_msg.h"
#include "gossip/record/wire.h"
#include "tests/unit/gossip/kit/mesh.h"

enum {
    POOL_NODES_MAX = 4,
    POOL_ROWS_MAX = 128,
    POOL_QUEUE_MAX = 4096,
    POOL_OBJECTS_MAX = 4096,
    POOL_MARKS_MAX = 8192
};

typedef enum pool_kind { POOL_MESSAGE = 1, POOL_UP, POOL_DOWN, POOL_STORED, POOL_EVENT } pool_kind;

typedef struct pool_item {
    uint64_t at;
    uint64_t order;
    pool_kind kind;
    uint32_t from;
    uint32_t to;
    uint64_t life; /* of the receiver; others' items are lost with it. 0 for messages */
    uint8_t bytes[DP_RELAY_HEAD_BYTES + DP_MIX_SIGNED_MAX];
    uint8_t *large; /* messages of members */
    size_t size;
    uint32_t op;
    dp_event event;
} pool_item;

typedef struct pool_row {
    bool used;
    uint8_t id[DP_EXCHANGE_BYTES];
    uint8_t bytes[DP_MIX_ROW_BYTES];
} pool_row;

typedef struct pool_write {
    uint32_t op;
    bool is_delete;
    pool_row row;
} pool_write;

typedef struct pool_node {
    bool running;
    uint64_t life; /* also the incarnation */
    uint32_t weight;
    dp_members *members;
    dp_picker *picker;
    dp_mix *mix;
    int64_t f;                         /* what the trainer holds */
    int64_t o_unsaved;                 /* frozen since the newest durable row with F */
    uint8_t freeze[DP_EXCHANGE_BYTES]; /* id of the last FREEZE */
    pool_row rows[POOL_ROWS_MAX];
    uint32_t n_writes;
    pool_write writes[256];
    uint32_t freezes;
    uint32_t drops; /* objects whose pin for an exchange went */
} pool_node;

typedef struct pool_object {
    dp_hash root;
    int64_t value;
} pool_object;

typedef struct pool {
    uint32_t n;
    uint64_t now;
    uint64_t order;
    uint32_t loss; /* per mille of exchange messages */
    uint32_t doubling;
    uint64_t jitter_us;
    dp_rng rng;
    pool_node nodes[POOL_NODES_MAX];
    bool linked[POOL_NODES_MAX][POOL_NODES_MAX];
    uint64_t last_at[POOL_NODES_MAX][POOL_NODES_MAX];
    uint32_t n_items;
    pool_item *items;
    uint32_t n_objects;
    pool_object objects[POOL_OBJECTS_MAX];
    uint64_t objects_made;
    dp_actions *actions;
    dp_out out;
    int64_t expected; /* sum of w * F that must be there when all is settled */
    bool gossip;
    bool frozen_o;   /* FREEZE finds no new displacement */
    uint32_t lambda; /* Q16: for the work that a start brings back */
    /* crash point: at the n-th write of node crash_node, before or after it is durable */
    uint32_t crash_node;
    uint32_t crash_write;
    bool crash_after;
    bool crashed;
    uint32_t n_seen_writes;
    uint32_t invalid; /* things that must not happen */
    uint32_t carried; /* words that somebody else brought and that were taken */
} pool;

static const dp_hash pool_base = {.bytes = {0xba, 0x5e}};

static inline dp_time pool_now(const pool *p)
{
    return (dp_time){p->now};
}

static inline pool_item *pool_push(pool *p, uint64_t delay_us, pool_kind kind, uint32_t from,
                                   uint32_t to)
{
    assert_true(p->n_items < POOL_QUEUE_MAX);
    pool_item *const item = &p->items[p->n_items++];
    *item = (pool_item){.at = p->now + delay_us,
                        .order = p->order++,
                        .kind = kind,
                        .from = from,
                        .to = to,
                        .life = p->nodes[to].life};
    return item;
}

static inline void pool_event(pool *p, uint32_t to, uint64_t delay_us, const dp_event *event)
{
    pool_push(p, delay_us, POOL_EVENT, to, to)->event = *event;
}

static inline int64_t *pool_value(pool *p, const dp_hash *root)
{
    for (uint32_t i = p->n_objects; i-- > 0;) {
        if (dp_hash_equal(&p->objects[i].root, root)) {
            return &p->objects[i].value;
        }
    }
    return NULL;
}

/* Roots name contents: the same value gives the same root, as with real blobs. */
static inline dp_hash pool_object_of(pool *p, int64_t value)
{
    const dp_hash root = dp_hash_of("pool/object", dp_view_of(&value, sizeof value));
    if (pool_value(p, &root) == NULL) {
        assert_true(p->n_objects < POOL_OBJECTS_MAX);
        p->objects[p->n_objects++] = (pool_object){.root = root, .value = value};
    }
    return root;
}

static inline uint32_t pool_index(const pool *p, const dp_peer *peer)
{
    const uint32_t i = peer->bytes[0] - 1U;
    assert_true(i < p->n);
    return i;
}

static inline void pool_send(pool *p, uint32_t from, uint32_t to, dp_view bytes)
{
    if (from == to || !p->linked[from][to]) {
        return;
    }
    const uint8_t type = dp_msg_type_of(bytes);
    if ((type >= DP_MSG_MIX_OFFER && type <= DP_MSG_MIX_STATUS) || type == DP_MSG_RELAY) {
        /* Of exchanges: anything may happen to it, even arrive in a later life. */
        uint32_t copies = dp_rng_below(&p->rng, 1000) < p->loss ? 0 : 1;
        copies += dp_rng_below(&p->rng, 1000) < p->doubling;
        for (uint32_t i = 0; i < copies; i++) {
            const uint64_t delay =
                300 + dp_rng_below(&p->rng, p->jitter_us + 1) * (i + 1) * (i + 1);
            pool_item *const item = pool_push(p, delay, POOL_MESSAGE, from, to);
            assert_true(bytes.size <= sizeof item->bytes);
            memcpy(item->bytes, bytes.data, bytes.size);
            item->size = bytes.size;
        }
        return;
    }
    pool_item *const item = pool_push(p, 200, POOL_MESSAGE, from, to);
    item->large = malloc(bytes.size);
    assert_non_null(item->large);
    memcpy(item->large, bytes.data, bytes.size);
    item->size = bytes.size;
    if (item->at <= p->last_at[from][to]) {
        item->at = p->last_at[from][to] + 1;
    }
    p->last_at[from][to] = item->at;
}

static inline void pool_link(pool *p, uint32_t a, uint32_t b)
{
    if (a != b && !p->linked[a][b] && p->nodes[a].running && p->nodes[b].running) {
        p->linked[a][b] = p->linked[b][a] = true;
        pool_push(p, 100, POOL_UP, a, b);
        pool_push(p, 100, POOL_UP, b, a);
    }
}

static inline void pool_cut(pool *p, uint32_t a, uint32_t b)
{
    if (a != b && p->linked[a][b]) {
        p->linked[a][b] = p->linked[b][a] = false;
        pool_push(p, 100, POOL_DOWN, a, b);
        pool_push(p, 100, POOL_DOWN, b, a);
    }
}

static inline void pool_tell(pool *p, uint32_t i)
{
    dp_members_tell(p->nodes[i].members,
                    &(dp_summary){.base = pool_base,
                                  .has_trainer = true,
                                  .mode = p->gossip ? DP_MODE_GOSSIP : DP_MODE_SYNC});
    dp_mix_set(p->nodes[i].mix, pool_now(p), &(dp_mix_now){.gossip = p->gossip, .base = pool_base},
               &p->out);
}

/* ---- trainer ---- */

static inline void pool_freeze(pool *p, uint32_t i, const uint8_t exchange[DP_EXCHANGE_BYTES])
{
    pool_node *const node = &p->nodes[i];
    const int64_t o = p->frozen_o ? 0 : (int64_t)(dp_rng_below(&p->rng, 64) + 1) * (1LL << 40);
    dp_event event = {
        .type = DP_EV_FROZEN,
        .u.frozen = {.bytes = 100, .f_bytes = 100, .steps = node->weight, .tokens = node->weight}};

    node->f += o;
    node->o_unsaved += o;
    p->expected += o * node->weight;
    memcpy(node->freeze, exchange, DP_EXCHANGE_BYTES);
    node->freezes++;
    memcpy(event.u.frozen.exchange, exchange, DP_EXCHANGE_BYTES);
    event.u.frozen.root = pool_object_of(p, node->f);
    event.u.frozen.f_root = event.u.frozen.root;
    pool_event(p, i, 2000, &event);
}

static inline void pool_mix(pool *p, uint32_t i, const dp_action *action)
{
    const int64_t *const own = pool_value(p, &action->u.mix.own_root);
    const int64_t *const other = pool_value(p, &action->u.mix.other_root);
    const int64_t w_own = (int64_t)action->u.mix.weight_own;
    const int64_t w_other = (int64_t)action->u.mix.weight_other;

    assert_non_null(own);
    assert_non_null(other);
    const int64_t sum = w_own * *own + w_other * *other;
    p->invalid += sum % (w_own + w_other) != 0; /* not exact: the test has run too long */
    p->nodes[i].f += (sum / (w_own + w_other) - *own) / 65536 * action->u.mix.lambda;
    dp_event event = {.type = DP_EV_MIXED};
    memcpy(event.u.mixed.exchange, action->u.mix.exchange, DP_EXCHANGE_BYTES);
    pool_event(p, i, 1000, &event);
}

/* ---- disk ---- */

static inline pool_row *pool_row_find(pool_node *node, const uint8_t *id)
{
    for (uint32_t i = 0; i < POOL_ROWS_MAX; i++) {
        if (node->rows[i].used && memcmp(node->rows[i].id, id, DP_EXCHANGE_BYTES) == 0) {
            return &node->rows[i];
        }
    }
    return NULL;
}

static inline void pool_disk(pool *p, pool_node *node, const pool_write *write)
{
    pool_row *row = pool_row_find(node, write->row.id);
    (void)p;

    if (write->is_delete) {
        if (row != NULL) {
            row->used = false;
        }
        return;
    }
    for (uint32_t i = 0; i < POOL_ROWS_MAX && row == NULL; i++) {
        row = node->rows[i].used ? NULL : &node->rows[i];
    }
    assert_non_null(row);
    *row = write->row;
    row->used = true;
    dp_mix_row read;
    CHECK_OK(dp_mix_row_read(dp_view_of(row->bytes, DP_MIX_ROW_BYTES), &read));
    if (read.has_f && memcmp(read.id.bytes, node->freeze, DP_EXCHANGE_BYTES) == 0) {
        node->o_unsaved = 0;
    }
}

/* ---- lives ---- */

static inline void pool_perform(pool *p, uint32_t i);

static inline void pool_boot(pool *p, uint32_t i)
{
    pool_node *const node = &p->nodes[i];
    uint8_t credential[34];

    node->running = true;
    node->life++;
    const dp_members_config members = {.run = mesh_run,
                                       .self = mesh_peer(i),
                                       .incarnation = node->life,
                                       .credential = mesh_credential(i, credential),
                                       .caps = 7,
                                       .members_max = 8,
                                       .seed = dp_rng_next(&p->rng),
                                       .crypto = mesh_crypto(i),
                                       .admit = mesh_admit};
    CHECK_OK(dp_members_open(&node->members, &members));
    CHECK_OK(dp_picker_open(&node->picker, &(dp_picker_config){.members = node->members,
                                                               .members_max = 8,
                                                               .seed = dp_rng_next(&p->rng)}));
    CHECK_OK(dp_mix_open(&node->mix, &(dp_mix_config){.run = mesh_run,
                                                      .self = mesh_peer(i),
                                                      .incarnation = node->life,
                                                      .pause_us = 200 * DP_MS,
                                                      .seed = dp_rng_next(&p->rng),
                                                      .members = node->members,
                                                      .picker = node->picker,
                                                      .crypto = mesh_crypto(i),
                                                      .members_max = 8}));
    dp_out_begin(&p->out, p->actions);
    dp_members_start(node->members, pool_now(p), 1, &p->out);
    for (uint32_t k = 0; k < POOL_ROWS_MAX; k++) {
        if (node->rows[k].used) {
            CHECK_OK(dp_mix_restore(node->mix, node->rows[k].id,
                                    dp_view_of(node->rows[k].bytes, DP_MIX_ROW_BYTES)));
        }
    }
    dp_mix_start(node->mix, pool_now(p), &p->out);
    dp_mix_trainer_restore(node->mix, pool_now(p), p->lambda, &p->out);
    pool_tell(p, i);
    pool_perform(p, i);
    for (uint32_t k = 0; k < p->n; k++) {
        pool_link(p, i, k);
    }
}

static inline void pool_kill(pool *p, uint32_t i)
{
    pool_node *const node = &p->nodes[i];

    if (!node->running) {
        return;
    }
    for (uint32_t k = 0; k < p->n; k++) {
        pool_cut(p, i, k);
    }
    node->running = false;
    /* data that no row holds are lost with the process */
    p->expected -= node->o_unsaved * node->weight;
    node->o_unsaved = 0;
    node->f = 0;
    node->n_writes = 0;
    memset(node->freeze, 0, sizeof node->freeze);
    dp_mix_close(node->mix);
    dp_picker_close(node->picker);
    dp_members_close(node->members);
    node->mix = NULL;
    node->picker = NULL;
    node->members = NULL;
}

static inline void pool_wipe(pool *p, uint32_t i)
{
    memset(p->nodes[i].rows, 0, sizeof p->nodes[i].rows);
}

static inline void pool_get_chunk(pool *p, uint32_t i, const dp_action *action)
{
    dp_event event = {.type = DP_EV_CHUNK,
                      .u.chunk = {.root = action->u.get.root, .peer = action->u.get.peer}};
    pool_event(p, i, 3000, &event);
    event = (dp_event){.type = DP_EV_OBJECT, .u.object = {.root = action->u.get.root, .size = 100}};
    pool_event(p, i, 3100, &event);
}

static inline void pool_perform(pool *p, uint32_t i)
{
    pool_node *const node = &p->nodes[i];
    static const dp_hash leaves[1];

    for (uint32_t k = 0; k < p->actions->count; k++) {
        const dp_action *const action = &p->actions->items[k];
        if (action->type == DP_DO_SEND && action->u.send.to == DP_TO_PEER) {
            pool_send(p, i, pool_index(p, &action->u.send.peer), action->u.send.bytes);
        } else if (action->type == DP_DO_FREEZE) {
            pool_freeze(p, i, action->u.mix.exchange);
        } else if (action->type == DP_DO_MIX) {
            pool_mix(p, i, action);
        } else if (action->type == DP_DO_TRAINER_RESTORE) {
            const int64_t *const f = pool_value(p, &action->u.restore.a_root);
            assert_non_null(f);
            node->f = *f / 65536 * action->u.restore.lambda;
            p->invalid +=
                action->u.restore.steps != node->weight || action->u.restore.tokens != node->weight;
        } else if (action->type == DP_DO_CHECK) {
            pool_event(p, i, 500,
                       &(dp_event){.type = DP_EV_CHECKED,
                                   .u.checked = {.root = action->u.object.root, .ok = true}});
        } else if (action->type == DP_DO_GET_INFO &&
                   p->linked[i][pool_index(p, &action->u.get.peer)]) {
            pool_event(p, i, 1000,
                       &(dp_event){.type = DP_EV_OBJECT_INFO,
                                   .u.object = {.root = action->u.get.root,
                                                .size = 100,
                                                .leaves = leaves,
                                                .peer = action->u.get.peer}});
        } else if (action->type == DP_DO_GET_CHUNK &&
                   p->linked[i][pool_index(p, &action->u.get.peer)]) {
            pool_get_chunk(p, i, action);
        } else if (action->type == DP_DO_OBJECT_DROP) {
            node->drops += action->u.keep.use == DP_USE_EXCHANGE ? 1 : 0;
        } else if (action->type == DP_DO_STORE) {
            assert_true(node->n_writes < 256);
            pool_write *const write = &node->writes[node->n_writes++];
            *write = (pool_write){.op = action->u.store.op,
                                  .is_delete = action->u.store.bytes.size == 0};
            memcpy(write->row.id, action->u.store.exchange, DP_EXCHANGE_BYTES);
            if (!write->is_delete) {
                memcpy(write->row.bytes, action->u.store.bytes.data, DP_MIX_ROW_BYTES);
            }
            pool_push(p, 4000, POOL_STORED, i, i)->op = action->u.store.op;
        }
    }
    CHECK_OK(dp_mix_check(node->mix, NULL));
    CHECK_OK(dp_picker_check(node->picker, NULL));
}

/* The oldest write of a node is durable. */
static inline void pool_stored(pool *p, uint32_t i)
{
    pool_node *const node = &p->nodes[i];
    assert_true(node->n_writes > 0);
    const pool_write write = node->writes[0];
    const bool crash = !p->crashed && i == p->crash_node && p->n_seen_writes == p->crash_write;

    p->n_seen_writes += i == p->crash_node;
    memmove(node->writes, node->writes + 1, (--node->n_writes) * sizeof node->writes[0]);
    if (crash && !p->crash_after) {
        p->crashed = true;
        pool_kill(p, i);
        return;
    }
    pool_disk(p, node, &write);
    if (crash) {
        p->crashed = true;
        pool_kill(p, i);
        return;
    }
    dp_out_begin(&p->out, p->actions);
    DP_IGNORE(!dp_mix_stored(node->mix, pool_now(p), write.op, DP_OK, &p->out));
    pool_perform(p, i);
}

static inline void pool_take_event(pool *p, uint32_t i, const dp_event *event)
{
    pool_node *const node = &p->nodes[i];
    const dp_time now = pool_now(p);

    if (event->type == DP_EV_FROZEN) {
        DP_IGNORE(!dp_mix_frozen(node->mix, now, event, &p->out));
    } else if (event->type == DP_EV_MIXED) {
        DP_IGNORE(!dp_mix_mixed(node->mix, now, event, &p->out));
    } else if (event->type == DP_EV_CHECKED) {
        DP_IGNORE(!dp_mix_checked(node->mix, now, &event->u.checked.root, event->u.checked.ok,
                                  event->u.checked.energy, &p->out));
    } else if (event->type == DP_EV_OBJECT_INFO) {
        dp_picker_info(node->picker, now, event, &p->out);
    } else if (event->type == DP_EV_CHUNK) {
        dp_picker_chunk(node->picker, now, event, &p->out);
    } else {
        dp_picker_object(node->picker, now, &event->u.object.root, &p->out);
        DP_IGNORE(!dp_mix_object(node->mix, now, &event->u.object.root, &p->out));
    }
}

static inline void pool_mark(pool *p, uint32_t i)
{
    for (uint32_t k = 1; k < dp_members_count(p->nodes[i].members); k++) {
        dp_members_mark(p->nodes[i].members, k, true, false);
    }
}

/* As node_route.c does: to its target, or one hop on. */
static inline void pool_relay(pool *p, uint32_t i, uint32_t from, dp_view bytes)
{
    dp_wire_relay relay;

    if (dp_wire_read_relay(bytes, &relay) != DP_OK) {
        return;
    }
    const dp_peer self = mesh_peer(i);
    if (dp_peer_equal(&relay.target, &self)) {
        p->carried +=
            dp_mix_carried(p->nodes[i].mix, pool_now(p), from, relay.message, &p->out) == DP_OK;
        return;
    }
    const uint32_t to = relay.target.bytes[0] - 1U;
    if (relay.hops > 0 && to < p->n) {
        uint8_t next[DP_RELAY_HEAD_BYTES + DP_MIX_SIGNED_MAX];
        dp_writer writer = dp_writer_of(next, sizeof next);
        dp_wire_write_relay(&writer, (uint8_t)(relay.hops - 1), &relay.target, relay.message);
        pool_send(p, i, to, dp_view_of(next, writer.size));
    }
}

static inline void pool_deliver(pool *p, const pool_item *item)
{
    pool_node *const node = &p->nodes[item->to];
    const dp_time now = pool_now(p);
    const dp_peer peer = mesh_peer(item->from);
    uint8_t credential[34];

    if (!node->running || (item->kind != POOL_MESSAGE && item->life != node->life)) {
        return;
    }
    if (item->kind == POOL_STORED) {
        pool_stored(p, item->to);
        return;
    }
    dp_out_begin(&p->out, p->actions);
    if (item->kind == POOL_UP && p->linked[item->from][item->to]) {
        const dp_addr addr = mesh_addr(item->from);
        const uint32_t index =
            dp_members_link_up(node->members, now, 1, &peer, &addr,
                               mesh_credential(item->from, credential), true, &p->out);
        dp_picker_link_up(node->picker, now, index, &p->out);
        pool_mark(p, item->to);
    } else if (item->kind == POOL_DOWN) {
        dp_members_link_down(node->members, now, 1, &peer, DP_LINK_RESET, &p->out);
        const uint32_t index = dp_members_find(node->members, &peer);
        if (index != DP_MEMBER_NONE) {
            dp_picker_link_down(node->picker, now, index, &p->out);
        }
    } else if (item->kind == POOL_MESSAGE) {
        const uint32_t from = dp_members_find(node->members, &peer);
        if (from == DP_MEMBER_NONE || from == 0) {
            return;
        }
        if (dp_msg_type_of(dp_view_of(item->bytes, item->size)) == DP_MSG_RELAY) {
            pool_relay(p, item->to, from, dp_view_of(item->bytes, item->size));
        } else if (item->large == NULL) {
            DP_IGNORE(
                dp_mix_message(node->mix, now, from, dp_view_of(item->bytes, item->size), &p->out));
        } else if (p->linked[item->from][item->to]) {
            dp_members_heard(node->members, from, now, &p->out);
            DP_IGNORE(dp_members_message(node->members, now, 1, from,
                                         dp_view_of(item->large, item->size), &p->out));
            pool_mark(p, item->to);
        }
    } else if (item->kind == POOL_EVENT) {
        pool_take_event(p, item->to, &item->event);
    }
    pool_perform(p, item->to);
}

static inline void pool_run_for(pool *p, uint64_t us)
{
    const uint64_t until = p->now + us;

    for (uint64_t steps = 0;; steps++) {
        assert_true(steps < 3000000);
        uint64_t at = until;
        uint32_t item = UINT32_MAX;
        uint32_t ticker = UINT32_MAX;
        for (uint32_t i = 0; i < p->n_items; i++) {
            const pool_item *const a = &p->items[i];
            if (a->at < at ||
                (item != UINT32_MAX && a->at == at && a->order < p->items[item].order)) {
                at = a->at;
                item = i;
            }
        }
        for (uint32_t i = 0; i < p->n; i++) {
            const pool_node *const node = &p->nodes[i];
            if (node->running) {
                uint64_t wake =
                    dp_time_min(dp_members_wake(node->members),
                                dp_time_min(dp_picker_wake(node->picker), dp_mix_wake(node->mix)))
                        .us;
                wake = wake < p->now ? p->now : wake;
                if (wake < at) {
                    at = wake;
                    ticker = i;
                }
            }
        }
        if (at >= until) {
            p->now = until;
            return;
        }
        p->now = at;
        if (ticker != UINT32_MAX) {
            dp_out_begin(&p->out, p->actions);
            dp_members_tick(p->nodes[ticker].members, pool_now(p), 1, &p->out);
            dp_picker_tick(p->nodes[ticker].picker, pool_now(p), &p->out);
            dp_mix_tick(p->nodes[ticker].mix, pool_now(p), &p->out);
            pool_perform(p, ticker);
        } else {
            const pool_item taken = p->items[item];
            p->items[item] = p->items[--p->n_items];
            pool_deliver(p, &taken);
            free(taken.large);
        }
    }
}

static inline void pool_gossip(pool *p, bool gossip)
{
    p->gossip = gossip;
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->nodes[i].running) {
            dp_out_begin(&p->out, p->actions);
            pool_tell(p, i);
            pool_perform(p, i);
        }
    }
}

static inline pool *pool_of(uint32_t n, uint64_t seed)
{
    static const uint32_t weights[POOL_NODES_MAX] = {1, 3, 1, 1};
    pool *const p = calloc(1, sizeof *p);
    assert_non_null(p);
    p->n = n;
    p->now = DP_SECOND;
    p->gossip = true;
    p->lambda = 65536;
    p->crash_node = POOL_NODES_MAX;
    p->items = calloc(POOL_QUEUE_MAX, sizeof *p->items);
    p->actions = calloc(1, sizeof *p->actions);
    assert_non_null(p->items);
    assert_non_null(p->actions);
    CHECK_OK(dp_out_open(&p->out));
    dp_rng_init(&p->rng, seed);
    for (uint32_t i = 0; i < n; i++) {
        p->nodes[i].weight = weights[i];
        pool_boot(p, i);
    }
    return p;
}

static inline void pool_close(pool *p)
{
    for (uint32_t i = 0; i < p->n_items; i++) {
        free(p->items[i].large);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        pool_kill(p, i);
    }
    dp_out_close(&p->out);
    free(p->items);
    free(p->actions);
    free(p);
}

/* No new exchange, a quiet network, and time for all nodes to learn the outcome of theirs. */
static inline void pool_settle(pool *p)
{
    p->loss = 0;
    p->doubling = 0;
    pool_gossip(p, false);
    pool_run_for(p, 40 * DP_SECOND);
}

static inline int64_t pool_sum(const pool *p)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        sum += p->nodes[i].f * p->nodes[i].weight;
    }
    return sum;
}

static inline uint64_t pool_done(const pool *p)
{
    uint64_t done = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        done += p->nodes[i].running ? dp_mix_view(p->nodes[i].mix).done : 0;
    }
    return done;
}

static inline bool pool_idle(const pool *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->nodes[i].running && dp_mix_locked(p->nodes[i].mix)) {
            return false;
        }
    }
    return true;
}

#endif
