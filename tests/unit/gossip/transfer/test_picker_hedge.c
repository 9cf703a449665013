/* The gain from asking a second holder for a late last chunk: objects from four holders, one of
 * which stalls now and then, in virtual time. The same seeds with and without. */
#include <stdio.h>

#include "base/rng.h"
#include "gossip/transfer/picker_internal.h"
#include "tests/unit/gossip/kit/fetcher.h"

enum {
    HOLDERS = 4,
    SLOW = 4,      /* the member that stalls */
    OBJECTS = 300, /* one after the other */
    PIECES = 12,   /* chunks of an object */
    ANSWERS_MAX = 256
};
#define RTT_US (40 * DP_MS)
#define PIECE_US                                                                                   \
    (25 * DP_MS) /* 256 KiB at 10 MB/s: each holder's line, one piece after the other */
#define STALL_US (1500 * DP_MS)
#define STALLS_ONE_IN 10 /* of its pieces */

typedef struct answer {
    uint64_t at;
    uint32_t member; /* 0: none */
    uint32_t index;
    bool info;
} answer;

typedef struct world {
    fetcher *f;
    dp_rng rng;
    bool hedges;
    uint64_t free_at[HOLDERS + 1]; /* of a holder's line */
    answer answers[ANSWERS_MAX];
    uint64_t asked; /* chunks */
    uint64_t took_us[OBJECTS];
} world;

static void answer_later(world *w, const dp_action *action)
{
    const uint32_t member = action->u.get.peer.bytes[0] - 1U;
    const bool info = action->type == DP_DO_GET_INFO;
    uint32_t i = 0;

    while (i < ANSWERS_MAX && w->answers[i].member != 0) {
        i++;
    }
    assert_true(i < ANSWERS_MAX && member >= 1 && member <= HOLDERS);
    uint64_t at = w->f->now + RTT_US / 2;
    if (!info) {
        at = at > w->free_at[member] ? at : w->free_at[member];
        at +=
            PIECE_US + (member == SLOW && dp_rng_below(&w->rng, STALLS_ONE_IN) == 0 ? STALL_US : 0);
        w->free_at[member] = at;
        w->asked++;
    }
    w->answers[i] = (answer){at + RTT_US / 2, member, action->u.get.index, info};
}

/* Puts the answers to the node's requests on their way; without hedging no chunk is ever late
 * enough. */
static void obey(world *w)
{
    for (uint32_t i = 0; i < w->f->actions->count; i++) {
        const dp_action *const action = &w->f->actions->items[i];
        if (action->type == DP_DO_GET_CHUNK || action->type == DP_DO_GET_INFO) {
            answer_later(w, action);
        }
    }
    for (uint32_t i = 0; i < DP_FLIGHTS_MAX && !w->hedges; i++) {
        w->f->picker->flights[i].hedge_at = DP_NEVER;
    }
    begin(w->f);
}

static answer *next_answer(world *w)
{
    answer *next = NULL;

    for (uint32_t i = 0; i < ANSWERS_MAX; i++) {
        answer *const one = &w->answers[i];
        next = one->member != 0 && (next == NULL || one->at < next->at) ? one : next;
    }
    return next;
}

/* The next thing that happens. True: a chunk came. */
static bool turn(world *w, uint64_t size)
{
    answer *const next = next_answer(w);
    const uint64_t wake = dp_picker_wake(w->f->picker).us;

    assert_true(next != NULL || wake != UINT64_MAX);
    if (next == NULL || wake < next->at) {
        tick_after(w->f, wake > w->f->now ? wake - w->f->now : 0);
        obey(w);
        return false;
    }
    const answer one = *next;
    const dp_peer peer = mesh_peer(one.member);
    *next = (answer){0};
    w->f->now = one.at;
    if (one.info) {
        info(w->f, one.member, &w->f->root, size);
    } else {
        chunk(w->f, &peer, one.index, DP_OK);
    }
    obey(w);
    return !one.info;
}

static void fetch_one(world *w, uint32_t number)
{
    const uint64_t size = (uint64_t)PIECES * DP_CHUNK_BYTES_MIN;
    fetcher *const f = w->f;
    bool here[PIECES] = {false};
    uint32_t n_here = 0;

    f->leaves[0].bytes[5] = (uint8_t)number;
    f->leaves[0].bytes[6] = (uint8_t)(number >> 8);
    f->root = dp_object_root(size, f->leaves);
    memset(w->answers, 0, sizeof w->answers); /* The node gave up the rest: CHUNK_DROP. */
    memset(w->free_at, 0, sizeof w->free_at);
    const uint64_t began = f->now;
    begin(f);
    CHECK_OK(dp_picker_want(f->picker, now_of(f), &f->root, size, DP_USE_BLOB, DP_PRIORITY_ROUND,
                            &f->out));
    obey(w);
    for (uint32_t i = 1; i <= HOLDERS; i++) {
        dp_picker_holder(f->picker, now_of(f), &f->root, i, &f->out);
        obey(w);
    }
    while (n_here < PIECES) {
        const answer *const next = next_answer(w);
        const uint32_t index = next != NULL ? next->index : 0;
        if (turn(w, size) && !here[index]) {
            here[index] = true;
            n_here++;
        }
    }
    w->took_us[number] = f->now - began;
    dp_picker_object(f->picker, now_of(f), &f->root, &f->out);
    begin(f);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

static void run(world *w, bool hedges)
{
    *w = (world){.f = fetcher_of(HOLDERS), .hedges = hedges};
    dp_rng_init(&w->rng, 5);
    for (uint32_t i = 0; i < OBJECTS; i++) {
        fetch_one(w, i);
    }
    qsort(w->took_us, OBJECTS, sizeof w->took_us[0], by_value);
    printf("%s: p50 %.0f ms, p99 %.0f ms, %.3f requests for each chunk\n",
           hedges ? "hedged" : "one request", (double)w->took_us[OBJECTS / 2] / 1e3,
           (double)w->took_us[OBJECTS * 99 / 100] / 1e3, (double)w->asked / (OBJECTS * PIECES));
}

static void one_holder_of_four_that_stalls_holds_up_few_objects(void **state)
{
    static world with;
    static world without;
    (void)state;
    run(&without, false);
    run(&with, true);
    CHECK(dp_picker_came(with.f->picker) == (uint64_t)OBJECTS * PIECES);
    CHECK(dp_picker_hedged(without.f->picker) == 0);
    CHECK(dp_picker_hedged(with.f->picker) > 0);
    /* 180 and 355 ms. */
    CHECK(10 * with.took_us[OBJECTS * 99 / 100] < 6 * without.took_us[OBJECTS * 99 / 100]);
    CHECK(dp_picker_hedged(with.f->picker) <=
          (uint64_t)OBJECTS * PIECES / DP_HEDGE_SHARE + DP_HEDGES_AT_ONCE);
    fetcher_close(with.f);
    fetcher_close(without.f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_holder_of_four_that_stalls_holds_up_few_objects),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
