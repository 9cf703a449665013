#include "compute/machine/process_barrier.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

#define COME_MASK 0xffU
#define BROKEN 0x100U
#define OPENED_UNIT 0x200U
#define OPENED_MASK (~(COME_MASK | BROKEN))

_Static_assert(sizeof(_Atomic uint32_t) == 4, "a futex is four bytes");
_Static_assert((uint32_t)DP_PROCESS_BARRIER_PROCESSES_MAX <= COME_MASK, "all must fit the count");

dp_status dp_process_barrier_make(dp_process_barrier *gate, uint32_t processes)
{
    if (processes == 0 || processes > DP_PROCESS_BARRIER_PROCESSES_MAX) {
        return DP_BADARG;
    }
    pthread_mutexattr_t shared;
    if (pthread_mutexattr_init(&shared) != 0) {
        return DP_NOMEM;
    }
    bool good = pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED) == 0 &&
                pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST) == 0;
    atomic_init(&gate->word, 0);
    atomic_init(&gate->culprit, 0);
    gate->processes = processes;
    for (uint32_t i = 0; i < processes && good; i++) {
        atomic_init(&gate->places[i].entered, 0);
        atomic_init(&gate->places[i].came, 0);
        good = pthread_mutex_init(&gate->places[i].alive, &shared) == 0;
    }
    pthread_mutexattr_destroy(&shared);
    return good ? DP_OK : DP_UNSUPPORTED;
}

/* True if the process of this place has died or left. One that has not come yet is not gone. */
static bool is_gone(dp_process_barrier *gate, uint32_t place)
{
    if (atomic_load(&gate->places[place].entered) == 0) {
        return false;
    }
    const int got = pthread_mutex_trylock(&gate->places[place].alive);
    if (got == EBUSY) {
        return false;
    }
    if (got == 0 || got == EOWNERDEAD) {
        /* Unlocked without pthread_mutex_consistent the mutex stays unusable, which tells the next
         * caller the same. */
        pthread_mutex_unlock(&gate->places[place].alive);
    }
    return true;
}

dp_status dp_process_barrier_enter(dp_process_barrier *gate, uint32_t place)
{
    if (place >= gate->processes) {
        return DP_BADARG;
    }
    if (atomic_load(&gate->places[place].entered) != 0) {
        return is_gone(gate, place) ? DP_CLOSED : DP_BUSY;
    }
    const int got = pthread_mutex_trylock(&gate->places[place].alive);
    if (got != 0) {
        return got == EBUSY ? DP_BUSY : DP_CLOSED;
    }
    atomic_store(&gate->places[place].entered, 1);
    return DP_OK;
}

void dp_process_barrier_leave(dp_process_barrier *gate, uint32_t place)
{
    dp_assert(place < gate->processes);
    pthread_mutex_unlock(&gate->places[place].alive);
}

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

static void wake_all(dp_process_barrier *gate)
{
    syscall(SYS_futex, &gate->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Sleeps unless the word has changed already; returns early for signals. */
static void doze(dp_process_barrier *gate, uint32_t word)
{
    const struct timespec slice = {.tv_nsec = DP_PROCESS_BARRIER_LOOK_US * 1000L};
    syscall(SYS_futex, &gate->word, FUTEX_WAIT, word, &slice, NULL, 0);
}

/* Comes to the gate. *opened: the count that must change. False when it is broken. */
static bool come(dp_process_barrier *gate, uint32_t place, uint32_t *opened)
{
    uint32_t word = atomic_load(&gate->word);
    for (;;) {
        if (word & BROKEN) {
            return false;
        }
        *opened = word & OPENED_MASK;
        atomic_store(&gate->places[place].came, *opened + 1);
        const bool last = (word & COME_MASK) + 1 == gate->processes;
        const uint32_t next = last ? *opened + OPENED_UNIT : word + 1;
        if (atomic_compare_exchange_weak(&gate->word, &word, next)) {
            if (last) {
                wake_all(gate);
            }
            return true;
        }
    }
}

/* False when it opened first. */
static bool break_it(dp_process_barrier *gate, uint32_t opened, uint32_t culprit)
{
    uint32_t word = atomic_load(&gate->word);
    while ((word & OPENED_MASK) == opened && !(word & BROKEN)) {
        atomic_store(&gate->culprit, culprit);
        if (atomic_compare_exchange_weak(&gate->word, &word, word | BROKEN)) {
            wake_all(gate);
            return true;
        }
    }
    return (word & OPENED_MASK) == opened;
}

/* A place that has not come since the barrier opened so often. */
static uint32_t find_late(const dp_process_barrier *gate, uint32_t opened)
{
    uint32_t place = 0;
    while (place + 1 < gate->processes && atomic_load(&gate->places[place].came) == opened + 1) {
        place++;
    }
    return place;
}

/* Another place that is gone; gate->processes: all live. */
static uint32_t find_gone(dp_process_barrier *gate, uint32_t place)
{
    uint32_t other = 0;
    while (other < gate->processes && (other == place || !is_gone(gate, other))) {
        other++;
    }
    return other;
}

bool dp_process_barrier_is_over(dp_process_barrier *gate, uint32_t place)
{
    dp_assert(place < gate->processes);
    return (atomic_load(&gate->word) & BROKEN) != 0 || find_gone(gate, place) < gate->processes;
}

dp_status dp_process_barrier_wait(dp_process_barrier *gate, uint32_t place, uint64_t wait_us,
                                  uint32_t *culprit)
{
    dp_assert(place < gate->processes);
    const uint64_t start = now_us();
    uint32_t opened;
    if (!come(gate, place, &opened)) {
        *culprit = atomic_load(&gate->culprit);
        return DP_CLOSED;
    }
    for (;;) {
        const uint32_t word = atomic_load(&gate->word);
        if ((word & OPENED_MASK) != opened) {
            return DP_OK;
        }
        if (word & BROKEN) {
            *culprit = atomic_load(&gate->culprit);
            return DP_CLOSED;
        }
        const uint32_t gone = find_gone(gate, place);
        const bool late = now_us() - start >= wait_us;
        if (gone < gate->processes || late) {
            const bool died = gone < gate->processes;
            if (break_it(gate, opened, died ? gone : find_late(gate, opened))) {
                *culprit = atomic_load(&gate->culprit);
                return died ? DP_CLOSED : DP_TIMEOUT;
            }
            continue;
        }
        doze(gate, word);
    }
}
