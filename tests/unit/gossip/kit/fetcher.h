/* A node that fetches objects with the real dp_picker while the test plays the driver and the
 * peers. */
#ifndef DP_TESTS_UNIT_GOSSIP_KIT_FETCHER_H
#define DP_TESTS_UNIT_GOSSIP_KIT_FETCHER_H

#include "tests/unit/gossip/kit/mesh.h"

#include "gossip/transfer/picker_internal.h"

enum { CHUNKS = 6, SIZE = CHUNKS * DP_CHUNK_BYTES_MIN - 100 };

/* One node that fetches, with linked members 1..n; the test plays the driver. */
typedef struct fetcher {
    dp_members *members;
    dp_picker *picker;
    dp_actions *actions;
    dp_out out;
    uint64_t now;
    dp_hash leaves[DP_CHUNKS_MAX];
    dp_hash root;
} fetcher;

static inline dp_time now_of(const fetcher *f)
{
    return (dp_time){f->now};
}

static inline void begin(fetcher *f)
{
    dp_out_begin(&f->out, f->actions);
}

static inline void link_member(fetcher *f, uint32_t i)
{
    uint8_t bytes[34];
    const dp_peer peer = mesh_peer(i);
    const dp_addr addr = mesh_addr(i);

    begin(f);
    assert_int_equal(dp_members_link_up(f->members, now_of(f), 1, &peer, &addr,
                                        mesh_credential(i, bytes), true, &f->out),
                     i);
}

static inline fetcher *fetcher_of(uint32_t n)
{
    fetcher *const f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->now = DP_SECOND;
    f->actions = calloc(1, sizeof *f->actions);
    assert_non_null(f->actions);
    CHECK_OK(dp_out_open(&f->out));
    const dp_members_config members = {.run = mesh_run,
                                       .self = mesh_peer(0),
                                       .incarnation = 1,
                                       .members_max = 16,
                                       .crypto = mesh_crypto(0),
                                       .admit = mesh_admit};
    CHECK_OK(dp_members_open(&f->members, &members));
    for (uint32_t i = 1; i <= n; i++) {
        link_member(f, i);
    }
    CHECK_OK(dp_picker_open(
        &f->picker, &(dp_picker_config){.members = f->members, .members_max = 16, .seed = 3}));
    for (uint32_t i = 0; i < DP_CHUNKS_MAX; i++) {
        f->leaves[i] = (dp_hash){.bytes = {(uint8_t)i, (uint8_t)(i >> 8), 9}};
    }
    f->root = dp_object_root(SIZE, f->leaves);
    begin(f);
    return f;
}

static inline void fetcher_close(fetcher *f)
{
    CHECK_OK(dp_picker_check(f->picker, NULL));
    dp_picker_close(f->picker);
    dp_members_close(f->members);
    dp_out_close(&f->out);
    free(f->actions);
    free(f);
}

static inline uint32_t count_of(const fetcher *f, dp_action_type type)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < f->actions->count; i++) {
        count += f->actions->items[i].type == type;
    }
    return count;
}

static inline const dp_action *nth_of(const fetcher *f, dp_action_type type, uint32_t n)
{
    for (uint32_t i = 0; i < f->actions->count; i++) {
        if (f->actions->items[i].type == type && n-- == 0) {
            return &f->actions->items[i];
        }
    }
    return NULL;
}

static inline void info(fetcher *f, uint32_t from, const dp_hash *root, uint64_t size)
{
    begin(f);
    const dp_event event = {
        .type = DP_EV_OBJECT_INFO,
        .u.object = {.root = *root, .size = size, .leaves = f->leaves, .peer = mesh_peer(from)}};
    dp_picker_info(f->picker, now_of(f), &event, &f->out);
    CHECK_OK(dp_picker_check(f->picker, NULL));
}

static inline void chunk(fetcher *f, const dp_peer *from, uint32_t index, dp_status status)
{
    begin(f);
    const dp_event event = {
        .type = DP_EV_CHUNK,
        .u.chunk = {.root = f->root, .index = index, .peer = *from, .status = status}};
    dp_picker_chunk(f->picker, now_of(f), &event, &f->out);
    CHECK_OK(dp_picker_check(f->picker, NULL));
}

static inline void want(fetcher *f, dp_priority priority)
{
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &f->root, SIZE, DP_USE_BLOB, priority, &f->out));
}

static inline void tick_after(fetcher *f, uint64_t us)
{
    f->now += us;
    begin(f);
    dp_picker_tick(f->picker, now_of(f), &f->out);
    CHECK_OK(dp_picker_check(f->picker, NULL));
}

static inline uint32_t asked_of(const fetcher *f, dp_action_type type)
{
    const dp_action *const get = nth_of(f, type, 0);

    CHECK(get != NULL);
    return get->u.get.peer.bytes[0] - 1U;
}

#endif
