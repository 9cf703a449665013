/* Running a uv loop until something holds, with a deadline instead of a sleep. */
#ifndef DP_TESTS_UNIT_DAEMON_TURN_H
#define DP_TESTS_UNIT_DAEMON_TURN_H

#include <uv.h>

#include "tests/lib/check.h"

enum { TURN_MS_MAX = 60000 }; /* Only a test that fails waits so long. */

static inline void turn_noticed(uv_timer_t *timer)
{
    *(bool *)timer->data = true;
}

static inline void turn_nothing(uv_timer_t *timer)
{
    (void)timer;
}

/* True as soon as holds(context); false when limit_ms have passed before. */
static inline bool turn_within(uv_loop_t *loop, bool (*holds)(void *context), void *context,
                               uint64_t limit_ms)
{
    uv_timer_t deadline;
    uv_timer_t beat;
    bool late = false;

    assert_int_equal(uv_timer_init(loop, &deadline), 0);
    assert_int_equal(uv_timer_init(loop, &beat), 0);
    deadline.data = &late;
    uv_update_time(loop);
    uv_timer_start(&deadline, turn_noticed, limit_ms, 0);
    uv_timer_start(&beat, turn_nothing, 5, 5); /* conditions may also change on other threads */
    bool held = holds(context);
    while (!held && !late) {
        uv_run(loop, UV_RUN_ONCE);
        held = holds(context);
    }
    uv_close((uv_handle_t *)&deadline, NULL);
    uv_close((uv_handle_t *)&beat, NULL);
    uv_run(loop,
           UV_RUN_NOWAIT); /* calls both close callbacks, so that the handles may leave the stack */
    return held;
}

static inline void turn_until(uv_loop_t *loop, bool (*holds)(void *context), void *context)
{
    CHECK(turn_within(loop, holds, context, TURN_MS_MAX));
}

static inline void turn_open(uv_loop_t *loop)
{
    assert_int_equal(uv_loop_init(loop), 0);
}

/* All handles must be closing: runs the last callbacks and finds leaked handles. */
static inline void turn_close(uv_loop_t *loop)
{
    assert_int_equal(uv_run(loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(uv_loop_close(loop), 0);
}

#endif
