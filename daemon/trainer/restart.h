/* The wait before a crashed trainer is restarted. The wait doubles with every death of the same
 * cause, so a lasting cause costs little, and one cause does not delay the restart after another.
 * Each wait is drawn at random from its upper half: trainers that die together, for example if one
 * machine lacks memory, restart one after another. Pure. */
#ifndef DP_DAEMON_TRAINER_RESTART_H
#define DP_DAEMON_TRAINER_RESTART_H

#include <stdbool.h>
#include <stdint.h>

typedef enum dp_death {
    DP_DEATH_OUTSIDE = 0, /* killed from outside, or replaced: not its own fault */
    DP_DEATH_OWN,
    DP_DEATH_MEMORY,  /* killed by the kernel */
    DP_DEATH_MISSING, /* no such program */
    DP_DEATH_SIZE,    /* the model does not fit, which it sees only after all data was read */
    DP_DEATHS
} dp_death;

enum {
    DP_RESTART_MIN_MS = 200,   /* after the first death by DP_DEATH_OUTSIDE and DP_DEATH_OWN */
    DP_RESTART_LACK_MS = 1000, /* after the first by DP_DEATH_MEMORY and DP_DEATH_MISSING: a lack of
                                  memory or descriptors ends later */
    DP_RESTART_SIZE_MS = 5 * 60 * 1000, /* after each by DP_DEATH_SIZE */
    DP_RESTART_MAX_MS = 60 * 1000,      /* after any other */
    DP_RESTART_FORGIVE_MS =
        60 * 1000,        /* after each such time of life one death of every cause is forgiven */
    DP_RESTART_FAILS = 5, /* consecutive deaths of one cause after which it counts as failing */
    DP_RESTART_EARLY_MS = 10 * 60 * 1000 /* an early start is granted once in this time */
};

/* Zeroed at the start. */
typedef struct dp_restart {
    uint32_t in_a_row[DP_DEATHS];
    bool was_early;
    uint64_t early_ms;
} dp_restart;

/* After a life of lived_ms: milliseconds until the next start. random: any 32 bits. */
uint64_t dp_restart_wait(dp_restart *restart, dp_death cause, uint64_t lived_ms, uint32_t random);
/* The most consecutive deaths of one cause before a trainer that has lived for lived_ms. */
uint32_t dp_restart_deaths(const dp_restart *restart, uint64_t lived_ms);
/* May the wait be shortened now? Once in DP_RESTART_EARLY_MS: true uses this up. */
bool dp_restart_early(dp_restart *restart, uint64_t now_ms);

#endif
