/* The emulator itself: its guarantees for kernels, and the mistakes that it finds. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/card.h"
#include "tests/cuda/probe.h"
#include "tests/lib/check.h"

enum { THREADS = 96, BLOCKS = 3, ALL = THREADS * BLOCKS };

static void run(probe which, uint32_t *out)
{
    const cudaStream_t stream = card_open();
    uint32_t *const card = card_put(NULL, ALL * sizeof *out);
    CHECK_OK(probe_run(which, card, BLOCKS, THREADS, stream));
    card_get(card, out, ALL * sizeof *out);
    card_free(card);
}

/* Every thread's result in every order. */
static void every(probe which, uint32_t (*wanted)(uint32_t block, uint32_t thread))
{
    for (uint64_t order = 0; order < 6; order++) {
        uint32_t out[ALL];
        card_order(order);
        run(which, out);
        for (uint32_t i = 0; i < ALL; i++) {
            assert_int_equal(out[i], wanted(i / THREADS, i % THREADS));
        }
    }
    card_order(0);
}

static uint32_t own(uint32_t block, uint32_t thread)
{
    return block * THREADS + thread;
}

static uint32_t next(uint32_t block, uint32_t thread)
{
    return own(block, (thread + 1) % THREADS) + 1;
}

static uint32_t sum_of_lanes(uint32_t block, uint32_t thread)
{
    (void)block;
    (void)thread;
    return 31 * 32 / 2;
}

static uint32_t sum_of_half(uint32_t block, uint32_t thread)
{
    (void)block;
    const uint32_t low = 15 * 16 / 2;
    return (thread % 32 < 16 ? low : low + 256) + 1000 * low;
}

static uint32_t odd_ones(uint32_t block, uint32_t thread)
{
    (void)block;
    (void)thread;
    return THREADS / 2;
}

static uint32_t last_even(uint32_t block, uint32_t thread)
{
    (void)block;
    return thread % 2 == 1 ? 7 : 30;
}

static uint32_t ones(uint32_t block, uint32_t thread)
{
    (void)block;
    (void)thread;
    return UINT32_MAX;
}

static void threads_know_where_they_are(void **state)
{
    (void)state;
    every(PROBE_INDEX, own);
}

static void shared_memory_crosses_a_barrier(void **state)
{
    (void)state;
    every(PROBE_SHARED, next);
    every(PROBE_DYNAMIC, next);
}

static void warps_shuffle_and_vote(void **state)
{
    (void)state;
    every(PROBE_SHUFFLES, sum_of_lanes);
    every(PROBE_HALVES, sum_of_half);
    every(PROBE_VOTES, odd_ones);
    every(PROBE_RETURN_EARLY, last_even);
}

static void atomics_count_all(void **state)
{
    (void)state;
    uint32_t out[ALL];
    run(PROBE_ATOMICS, out);
    CHECK(out[1] == ALL - 1 && out[0] == ALL);
}

static void shared_memory_is_spoiled_before_each_block(void **state)
{
    (void)state;
    every(PROBE_SPOILED, ones);
}

static void a_missing_barrier_shows_in_another_order(void **state)
{
    (void)state;
    uint32_t out[2][ALL];
    for (uint64_t order = 0; order < 2; order++) {
        card_order(order);
        run(PROBE_NO_BARRIER, out[order]);
    }
    card_order(0);
    CHECK(memcmp(out[0], out[1], sizeof out[0]) != 0);
}

/* In a process of its own: it ends by abort, and says this. */
static void fails(probe which, const char *words)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    const pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint32_t out[ALL];
        dup2(ends[1], STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        run(which, out);
        _exit(0);
    }
    close(ends[1]);
    char said[16384];
    size_t size = 0;
    ssize_t got;
    while ((got = read(ends[0], said + size, sizeof said - 1 - size)) > 0) {
        size += (size_t)got;
    }
    said[size] = '\0';
    close(ends[0]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (strstr(said, words) == NULL) {
        print_error("wanted '%s', got '%s'\n", words, said);
        fail();
    }
    CHECK(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

static void barriers_that_not_all_reach_are_found(void **state)
{
    (void)state;
    fails(PROBE_ONE_MISSES, "thread 33 and on: have returned");
    fails(PROBE_TWO_BARRIERS, "waits at another barrier");
    fails(PROBE_LANE_MISSES, "is stuck");
}

static void wrong_masks_are_found(void **state)
{
    (void)state;
    fails(PROBE_MIXED_MASKS, "takes no part");
    fails(PROBE_MIXED_CALLS, "but lane");
    fails(PROBE_NOT_IN_MASK, "is not in its own mask");
    fails(PROBE_READS_NOBODY, "reads lane 20, which takes no part");
}

static uint32_t one(uint32_t block, uint32_t thread)
{
    (void)block;
    (void)thread;
    return 1;
}

static void asynchronous_copies_arrive_when_they_are_waited_for(void **state)
{
    (void)state;
    every(PROBE_ARRIVES, one);
    every(PROBE_PRODUCT, one);
    fails(PROBE_ARRIVES_NOT, "is stuck");
    fails(PROBE_PRODUCT_LOST, "was changed under a product");
}

static void registers_come_from_those_that_others_give_back(void **state)
{
    (void)state;
    every(PROBE_GIVES, one);
    fails(PROBE_GIVES_LESS, "is stuck");
}

static void sizes_that_no_device_takes_are_found(void **state)
{
    (void)state;
    fails(PROBE_TOO_MANY, "no device takes");
}

static void accesses_past_the_end_are_found(void **state)
{
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    fails(PROBE_PAST_SHARED, "probe.cu"); /* UndefinedBehaviorSanitizer may come first. */
    fails(PROBE_PAST_DYNAMIC, "heap-buffer-overflow");
    fails(PROBE_PAST_OUT, "heap-buffer-overflow");
#else
    skip(); /* AddressSanitizer finds them. */
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_know_where_they_are),
        cmocka_unit_test(shared_memory_crosses_a_barrier),
        cmocka_unit_test(warps_shuffle_and_vote),
        cmocka_unit_test(atomics_count_all),
        cmocka_unit_test(shared_memory_is_spoiled_before_each_block),
        cmocka_unit_test(a_missing_barrier_shows_in_another_order),
        cmocka_unit_test(barriers_that_not_all_reach_are_found),
        cmocka_unit_test(wrong_masks_are_found),
        cmocka_unit_test(asynchronous_copies_arrive_when_they_are_waited_for),
        cmocka_unit_test(registers_come_from_those_that_others_give_back),
        cmocka_unit_test(sizes_that_no_device_takes_are_found),
        cmocka_unit_test(accesses_past_the_end_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
