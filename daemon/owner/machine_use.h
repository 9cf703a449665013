/* How the owner uses this machine: its power supply, the processors' work for other programs, and
 * the last input at its terminals. Files of the kernel, in one look; a look takes milliseconds,
 * unless a driver hangs (machine_watch.h). No display server is asked. */
#ifndef DP_DAEMON_OWNER_MACHINE_USE_H
#define DP_DAEMON_OWNER_MACHINE_USE_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_MACHINE_ROOT_MAX = 256 };

typedef enum dp_machine_power {
    DP_MACHINE_POWER_UNKNOWN = 0, /* a supply cannot be read, or says nonsense */
    DP_MACHINE_POWER_MAINS,       /* also a machine without any supply that tells */
    DP_MACHINE_POWER_BATTERY
} dp_machine_power;

/* The findings of one look, and the counts that the next one compares with. Zeroed before the
 * first. */
typedef struct dp_machine_use {
    dp_machine_power power;
    bool has_load;         /* from the second look on, where /proc can be read */
    uint32_t others_milli; /* work for other programs since the last look, of all processors */
    bool has_input;        /* there is a terminal or a keyboard that tells */
    uint64_t input_s;      /* seconds since the last input */
    /* of the last look, in ticks */
    uint64_t busy;
    uint64_t all;
    uint64_t own;
    uint64_t interrupts; /* of the keyboard controller, i8042 */
    uint64_t typed_s;    /* unix, when these last rose; 0: not yet */
    bool has_before;
} dp_machine_use;

/* Looks again. root: "", or for tests a folder with sys, proc and dev. self, script:
 * the processes whose work, and that of their descendants, is not that of others; script: of the
 * node's script (docs/TRAINER.md), 0: none.
 *
 * Power: on mains if a mains or USB supply is online; on battery if the machine has a
 * battery and such supplies of which none is online, or if its battery discharges.
 * Load: /proc/stat without idle, iowait and steal, less the times of own processes.
 * Input: the newest access to /dev/tty1 and on, and to /dev/pts, which reading updates; and
 * interrupts of i8042, which keyboards and touchpads of most laptops use. Keyboards on USB are not
 * seen. */
void dp_machine_use_look(dp_machine_use *use, const char *root, uint32_t self, uint32_t script,
                         uint64_t unix_s);

enum {
    DP_MACHINE_INPUT_S = 180,    /* after an input the machine is in use for so long */
    DP_MACHINE_BUSY_MILLI = 250, /* in use: others take more than a quarter of the processors; */
    DP_MACHINE_CALM_MILLI = 125, /* no longer: less than an eighth, ... */
    DP_MACHINE_CALM_S = 60       /* ... for so long */
};

/* Whether somebody uses the machine, over looks. Zeroed before the first. */
typedef struct dp_machine_busy {
    bool input;
    bool load;
    uint64_t loud_s; /* steady seconds of the last look at which others took an eighth or more */
} dp_machine_busy;

/* The newest look; now_s: of a steady clock. An unknown load or input is none. */
void dp_machine_busy_pass(dp_machine_busy *busy, const dp_machine_use *use, uint64_t now_s);

#endif
