/* Two guests in one loop, and the conditions for which tests of the transport wait. */
#ifndef DP_TESTS_UNIT_DAEMON_SCENE_H
#define DP_TESTS_UNIT_DAEMON_SCENE_H

#include "base/rng.h"
#include "daemon/net/transport_conn.h"
#include "tests/unit/daemon/party.h"

struct scene {
    uv_loop_t loop;
    struct guest a;
    struct guest b;
};

static inline void scene_open(struct scene *scene)
{
    turn_open(&scene->loop);
    guest_open(&scene->a, &scene->loop, 0, 1);
    guest_open(&scene->b, &scene->loop, 1, 1);
}

static inline void scene_close(struct scene *scene)
{
    guest_close(&scene->a);
    guest_close(&scene->b);
    turn_close(&scene->loop);
}

static inline bool downs_one(void *context)
{
    return ((struct guest *)context)->downs == 1;
}

static inline bool refused_one(void *context)
{
    return ((struct guest *)context)->refusals == 1;
}

struct wanted_messages {
    struct guest *guest;
    unsigned count;
};

static inline bool got_messages(void *context)
{
    const struct wanted_messages *wanted = context;
    return wanted->guest->messages >= wanted->count;
}

static inline void wait_messages(struct guest *guest, unsigned count)
{
    struct wanted_messages wanted = {guest, count};
    turn_until(guest->loop, got_messages, &wanted);
}

static inline uint8_t *noise_bytes(size_t size)
{
    uint8_t *bytes = malloc(size + 8);
    dp_rng rng;
    assert_non_null(bytes);
    dp_rng_init(&rng, size);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)dp_rng_next(&rng);
    }
    return bytes;
}

#endif
