/* A few member tables with their heartbeats, connected by a queue of messages with one clock:
 * shared by the tests of membership. Links are connections: ordered per pair, broken by a kill
 * (RST), silent while a node is frozen or a pair is blocked. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_MESH_H
#define DP_TESTS_UNIT_GOSSIP_KIT_MESH_H

#include "tests/lib/check.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/digest.h"
#include "base/rng.h"
#include "gossip/core/msg.h"
#include "gossip/member/members.h"
#include "gossip/record/wire.h"

enum { MESH_NODES_MAX = 24, MESH_QUEUE_MAX = 1 << 14 };

typedef enum mesh_kind { MESH_MESSAGE = 1, MESH_UP, MESH_DOWN } mesh_kind;

typedef struct mesh_item {
    uint64_t at;
    uint64_t order;
    mesh_kind kind;
    uint32_t from;
    uint32_t to;
    bool outgoing;
    dp_link_cause cause;
    uint8_t *bytes;
    size_t size;
} mesh_item;

typedef struct mesh_node {
    dp_members *members;
    dp_heartbeat beat;
    bool running;
    bool frozen;
    uint64_t incarnation;
} mesh_node;

typedef struct mesh {
    uint32_t n;
    uint64_t now;
    uint64_t order;
    uint64_t delay_us;
    bool linked[MESH_NODES_MAX][MESH_NODES_MAX];
    bool blocked[MESH_NODES_MAX][MESH_NODES_MAX];
    uint64_t last_at[MESH_NODES_MAX][MESH_NODES_MAX];
    mesh_node nodes[MESH_NODES_MAX];
    uint32_t n_items;
    mesh_item *items;
    dp_actions *actions;
    dp_out out;
    dp_rng rng;
    uint64_t messages;
    uint64_t refused;    /* messages that a table did not take */
    uint32_t notes_dead; /* MEMBER notes that say dead */
} mesh;

/* A signature that any node could forge, but that fails for other bytes, keys and domains: enough
 * here. */
static inline void mesh_signature(const uint8_t key[DP_PUBLIC_KEY_BYTES], const char *domain,
                                  dp_view bytes, uint8_t signature[DP_SIGNATURE_BYTES])
{
    dp_digest digest;

    dp_digest_init(&digest, domain);
    dp_digest_add(&digest, dp_view_of(key, DP_PUBLIC_KEY_BYTES));
    dp_digest_add(&digest, bytes);
    const dp_hash hash = dp_digest_end(&digest);
    memcpy(signature, hash.bytes, 32);
    memcpy(signature + 32, hash.bytes, 32);
}

static inline bool mesh_sign(void *context, int key, const char *domain, dp_view bytes,
                             uint8_t signature[DP_SIGNATURE_BYTES])
{
    (void)key;
    const dp_peer *const peer = (const dp_peer *)context;
    mesh_signature(peer->bytes, domain, bytes, signature);
    return true;
}

static inline bool mesh_verify(void *context, const uint8_t public_key[DP_PUBLIC_KEY_BYTES],
                               const char *domain, dp_view bytes,
                               const uint8_t signature[DP_SIGNATURE_BYTES])
{
    (void)context;
    uint8_t wanted[DP_SIGNATURE_BYTES];
    mesh_signature(public_key, domain, bytes, wanted);
    return memcmp(wanted, signature, sizeof wanted) == 0;
}

/* Peers whose keys are in the order of their numbers, so that tests know the smaller one. */
static inline dp_peer mesh_peer(uint32_t i)
{
    dp_peer peer = {.bytes = {(uint8_t)(i + 1), 0x55}};
    return peer;
}

static inline dp_crypto mesh_crypto(uint32_t i)
{
    static dp_peer peers[MESH_NODES_MAX + 8];
    peers[i] = mesh_peer(i);
    return (dp_crypto){.context = &peers[i], .sign = mesh_sign, .verify = mesh_verify};
}

/* A credential is "ok" and the peer's key. */
static inline dp_view mesh_credential(uint32_t i, uint8_t bytes[34])
{
    const dp_peer peer = mesh_peer(i);
    bytes[0] = 'o';
    bytes[1] = 'k';
    memcpy(bytes + 2, peer.bytes, 32);
    return dp_view_of(bytes, 34);
}

static inline bool mesh_admit(void *context, const dp_peer *peer, dp_view credential,
                              uint64_t wall_ms, dp_admitted *grants)
{
    (void)context;
    (void)wall_ms;
    *grants = (dp_admitted){.caps = 7};
    return credential.size == 34 && credential.data[0] == 'o' &&
           memcmp(credential.data + 2, peer->bytes, 32) == 0;
}

static inline dp_addr mesh_addr(uint32_t i)
{
    return (dp_addr){.family = 4, .ip = {(uint8_t)i}, .port = 1};
}

static const dp_run_id mesh_run = {.bytes = {42}};

static inline dp_time mesh_now(const mesh *m)
{
    return (dp_time){m->now};
}

static inline void mesh_push(mesh *m, mesh_item item)
{
    assert_true(m->n_items < MESH_QUEUE_MAX);
    item.order = m->order++;
    /* In order per direction. */
    if (item.at < m->last_at[item.from][item.to]) {
        item.at = m->last_at[item.from][item.to];
    }
    m->last_at[item.from][item.to] = item.at;
    m->items[m->n_items++] = item;
}

static inline void mesh_join(mesh *m, uint32_t a, uint32_t b)
{
    if (m->linked[a][b] || !m->nodes[a].running || !m->nodes[b].running) {
        return;
    }
    m->linked[a][b] = m->linked[b][a] = true;
    mesh_push(
        m, (mesh_item){
               .at = m->now + m->delay_us, .kind = MESH_UP, .from = b, .to = a, .outgoing = true});
    mesh_push(m, (mesh_item){.at = m->now + m->delay_us, .kind = MESH_UP, .from = a, .to = b});
}

static inline void mesh_part(mesh *m, uint32_t a, uint32_t b, dp_link_cause cause)
{
    if (!m->linked[a][b]) {
        return;
    }
    m->linked[a][b] = m->linked[b][a] = false;
    mesh_push(
        m, (mesh_item){
               .at = m->now + m->delay_us, .kind = MESH_DOWN, .from = b, .to = a, .cause = cause});
    mesh_push(
        m, (mesh_item){
               .at = m->now + m->delay_us, .kind = MESH_DOWN, .from = a, .to = b, .cause = cause});
}

static inline void mesh_send(mesh *m, uint32_t from, uint32_t to, dp_view bytes)
{
    if (!m->linked[from][to] || m->blocked[from][to]) {
        return;
    }
    uint8_t *const copy = malloc(bytes.size);
    assert_non_null(copy);
    memcpy(copy, bytes.data, bytes.size);
    m->messages++;
    mesh_push(m, (mesh_item){.at = m->now + m->delay_us,
                             .kind = MESH_MESSAGE,
                             .from = from,
                             .to = to,
                             .bytes = copy,
                             .size = bytes.size});
}

static inline uint32_t mesh_index(const mesh *m, const dp_peer *peer)
{
    for (uint32_t i = 0; i < m->n; i++) {
        const dp_peer other = mesh_peer(i);
        if (dp_peer_equal(&other, peer)) {
            return i;
        }
    }
    return MESH_NODES_MAX;
}

/* Carry out what node i asked for. */
static inline void mesh_perform(mesh *m, uint32_t i)
{
    for (uint32_t k = 0; k < m->actions->count; k++) {
        const dp_action *const action = &m->actions->items[k];
        if (action->type == DP_DO_SEND && action->u.send.to == DP_TO_ALL) {
            for (uint32_t j = 0; j < m->n; j++) {
                mesh_send(m, i, j, action->u.send.bytes);
            }
        } else if (action->type == DP_DO_SEND) {
            const uint32_t to = mesh_index(m, &action->u.send.peer);
            if (to < m->n) {
                mesh_send(m, i, to, action->u.send.bytes);
            }
        } else if (action->type == DP_DO_DIAL) {
            const uint32_t to = mesh_index(m, &action->u.dial.peer);
            if (to < m->n && m->nodes[to].running && !m->nodes[to].frozen && !m->blocked[i][to]) {
                mesh_join(m, i, to);
            } else {
                mesh_push(m, (mesh_item){.at = m->now + m->delay_us,
                                         .kind = MESH_DOWN,
                                         .from = to < m->n ? to : i,
                                         .to = i,
                                         .cause = DP_LINK_REFUSED});
            }
        } else if (action->type == DP_DO_HANGUP) {
            const uint32_t to = mesh_index(m, &action->u.peer);
            if (to < m->n) {
                mesh_part(m, i, to, DP_LINK_CLOSED);
            }
        } else if (action->type == DP_DO_NOTE && action->u.note.code == DP_NOTE_MEMBER &&
                   action->u.note.b == DP_MEMBER_DEAD) {
            m->notes_dead++;
        }
    }
    dp_why why;
    CHECK_OK(dp_members_check(m->nodes[i].members, &why));
    CHECK_OK(dp_heartbeat_check(&m->nodes[i].beat, &why));
}

static inline void mesh_boot(mesh *m, uint32_t i)
{
    mesh_node *const node = &m->nodes[i];
    uint8_t credential[34];

    node->running = true;
    node->frozen = false;
    node->incarnation++;
    dp_heartbeat_init(&node->beat, &(dp_heartbeat_config){.run = mesh_run,
                                                          .self = mesh_peer(i),
                                                          .incarnation = node->incarnation,
                                                          .crypto = mesh_crypto(i)});
    const dp_members_config config = {.run = mesh_run,
                                      .self = mesh_peer(i),
                                      .incarnation = node->incarnation,
                                      .credential = mesh_credential(i, credential),
                                      .caps = 7,
                                      .n_addrs = 1,
                                      .addrs = {mesh_addr(i)},
                                      .name = {'n', (char)('a' + i)},
                                      .members_max = MESH_NODES_MAX,
                                      .seed = dp_rng_next(&m->rng),
                                      .crypto = mesh_crypto(i),
                                      .admit = mesh_admit,
                                      .beat = &node->beat};
    CHECK_OK(dp_members_open(&node->members, &config));
    dp_out_begin(&m->out, m->actions);
    dp_members_start(node->members, mesh_now(m), 1, &m->out);
    mesh_perform(m, i);
}

static inline mesh *mesh_of(uint32_t n, uint64_t seed)
{
    mesh *const m = calloc(1, sizeof *m);
    assert_non_null(m);
    m->n = n;
    m->now = DP_SECOND;
    m->delay_us = 200;
    m->items = calloc(MESH_QUEUE_MAX, sizeof *m->items);
    m->actions = calloc(1, sizeof *m->actions);
    assert_non_null(m->items);
    assert_non_null(m->actions);
    dp_rng_init(&m->rng, seed);
    CHECK_OK(dp_out_open(&m->out));
    for (uint32_t i = 0; i < n; i++) {
        mesh_boot(m, i);
    }
    return m;
}

static inline void mesh_close(mesh *m)
{
    for (uint32_t i = 0; i < m->n_items; i++) {
        free(m->items[i].bytes);
    }
    for (uint32_t i = 0; i < m->n; i++) {
        dp_members_close(m->nodes[i].members);
    }
    dp_out_close(&m->out);
    free(m->items);
    free(m->actions);
    free(m);
}

/* For node to, as the router of a node does it; for another, on to it. */
static inline dp_status mesh_relay(mesh *m, uint32_t to, uint32_t from, dp_view bytes)
{
    dp_wire_relay relay;

    DP_TRY(dp_wire_read_relay(bytes, &relay));
    const uint32_t target = mesh_index(m, &relay.target);
    if (target == to) {
        return dp_members_message(m->nodes[to].members, mesh_now(m), 1, from, relay.message,
                                  &m->out);
    }
    if (relay.hops > 0 && target < m->n) {
        uint8_t next[512];
        dp_writer writer = dp_writer_of(next, sizeof next);
        dp_wire_write_relay(&writer, (uint8_t)(relay.hops - 1), &relay.target, relay.message);
        assert_false(writer.full);
        mesh_send(m, to, target, dp_view_of(next, writer.size));
    }
    return DP_OK;
}

static inline void mesh_deliver(mesh *m, const mesh_item *item)
{
    mesh_node *const node = &m->nodes[item->to];
    const dp_peer peer = mesh_peer(item->from);
    const dp_time now = mesh_now(m);
    uint8_t bytes[34];

    if (!node->running) {
        return;
    }
    dp_out_begin(&m->out, m->actions);
    if (item->kind == MESH_UP) {
        const dp_addr addr = mesh_addr(item->from);
        DP_IGNORE(dp_members_link_up(node->members, now, 1, &peer, &addr,
                                     mesh_credential(item->from, bytes), item->outgoing,
                                     &m->out) == 0);
    } else if (item->kind == MESH_DOWN) {
        dp_members_link_down(node->members, now, 1, &peer, item->cause, &m->out);
    } else {
        const dp_view view = dp_view_of(item->bytes, item->size);
        const uint32_t from = dp_members_find(node->members, &peer);
        if (from == DP_MEMBER_NONE) {
            return;
        }
        dp_members_heard(node->members, from, now, &m->out);
        const dp_status status =
            dp_msg_type_of(view) == DP_MSG_HEARTBEAT
                ? dp_heartbeat_message(&node->beat, now, &peer, view, &m->out)
            : dp_msg_type_of(view) == DP_MSG_RELAY
                ? mesh_relay(m, item->to, from, view)
                : dp_members_message(node->members, now, 1, from, view, &m->out);
        m->refused += status != DP_OK && status != DP_EXISTS;
    }
    mesh_perform(m, item->to);
}

/* Run until the given time. */
static inline void mesh_run_to(mesh *m, uint64_t until)
{
    for (uint64_t steps = 0;; steps++) {
        assert_true(steps < 10000000); /* no progress in time */
        uint64_t at = until;
        uint32_t item = UINT32_MAX;
        uint32_t ticker = UINT32_MAX;
        for (uint32_t i = 0; i < m->n_items; i++) {
            const mesh_item *const a = &m->items[i];
            if (!m->nodes[a->to].frozen && (a->at < at || (item != UINT32_MAX && a->at == at &&
                                                           a->order < m->items[item].order))) {
                at = a->at;
                item = i;
            }
        }
        for (uint32_t i = 0; i < m->n; i++) {
            if (m->nodes[i].running && !m->nodes[i].frozen) {
                uint64_t wake = dp_time_min(dp_members_wake(m->nodes[i].members),
                                            dp_heartbeat_wake(&m->nodes[i].beat))
                                    .us;
                wake = wake < m->now ? m->now : wake;
                if (wake < at) {
                    at = wake;
                    ticker = i;
                }
            }
        }
        if (at >= until) {
            m->now = until;
            return;
        }
        m->now = at < m->now ? m->now : at; /* a thawed node reads old messages now */
        if (ticker != UINT32_MAX) {
            dp_out_begin(&m->out, m->actions);
            dp_members_tick(m->nodes[ticker].members, mesh_now(m), 1, &m->out);
            dp_heartbeat_tick(&m->nodes[ticker].beat, mesh_now(m), 1, 1, &m->out);
            mesh_perform(m, ticker);
        } else {
            const mesh_item taken = m->items[item];
            m->items[item] = m->items[--m->n_items];
            mesh_deliver(m, &taken);
            free(taken.bytes);
        }
    }
}

static inline void mesh_run_for(mesh *m, uint64_t us)
{
    mesh_run_to(m, m->now + us);
}

static inline void mesh_join_all(mesh *m)
{
    for (uint32_t i = 0; i < m->n; i++) {
        for (uint32_t k = 0; k < i; k++) {
            mesh_join(m, k, i);
        }
    }
}

/* The process has ended: its connections break. */
static inline void mesh_kill(mesh *m, uint32_t i)
{
    for (uint32_t k = 0; k < m->n; k++) {
        mesh_part(m, i, k, DP_LINK_RESET);
    }
    m->nodes[i].running = false;
    dp_members_close(m->nodes[i].members);
    m->nodes[i].members = NULL;
}

static inline void mesh_block(mesh *m, uint32_t a, uint32_t b, bool blocked)
{
    m->blocked[a][b] = m->blocked[b][a] = blocked;
}

static inline const dp_member *mesh_sees(const mesh *m, uint32_t viewer, uint32_t subject)
{
    const dp_peer peer = mesh_peer(subject);
    const uint32_t index = dp_members_find(m->nodes[viewer].members, &peer);
    return index == DP_MEMBER_NONE ? NULL : dp_members_at(m->nodes[viewer].members, index);
}

static inline dp_member_state mesh_state(const mesh *m, uint32_t viewer, uint32_t subject)
{
    const dp_member *const member = mesh_sees(m, viewer, subject);
    return member == NULL ? DP_MEMBER_UNKNOWN : member->state;
}

/* Time until viewer holds subject in this state, or UINT64_MAX after limit_us. */
static inline uint64_t mesh_wait_state(mesh *m, uint32_t viewer, uint32_t subject,
                                       dp_member_state state, uint64_t limit_us)
{
    const uint64_t start = m->now;

    while (m->now < start + limit_us) {
        if (mesh_state(m, viewer, subject) == state) {
            return m->now - start;
        }
        mesh_run_for(m, 5 * DP_MS);
    }
    return UINT64_MAX;
}

#endif
