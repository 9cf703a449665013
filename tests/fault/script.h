/* The language of dpfault: one command per line, read into a struct. No sockets and no clock; what
 * a command does is proxy.h's.
 *
 *   [at TIME] forward NAME LISTEN TARGET       listen, and join what comes with the target;
 *     addresses are A.B.C.D:PORT
 *   [at TIME] set NAME|* [from NAME] [up|down] KEY=VALUE…  how bytes travel from now on; up is from
 *                                              who dialled to the target; what was set with "from"
 *                                              stands against what is set without
 *   [at TIME] cut NAME|* [from NAME] [up|down]      nothing moves and nobody is told; with a
 *     direction: one-way
 *   [at TIME] heal NAME|* [from NAME]               what was held goes on; without "from" all of it
 *   [at TIME] halfopen NAME|* [from NAME]           the target sees its connections end, who
 *     dialled never hears of it
 *   [at TIME] reset NAME|* [from NAME]              both sides get a RST
 *   [at TIME] check NAME|*                     end with an error unless the targets are up
 *   [at TIME] say WORD                         print it: all before it is done
 *   [at TIME] quit
 *
 * TIME counts from the start of dpfault: 250ms, 3s, 2m. KEY: delay, jitter, stall (TIME), rate
 * (bytes per second: 500K, 2M; 0 is no limit), loss, corrupt (percent of segments: 2%, 0.01%). Keys
 * may be joined by commas. # begins a comment. "from NAME" means only those connections that come
 * from the address of that forward's target, so that programs which listen on an address of their
 * own, and dial from it, can be parted from one another. */
#ifndef DP_FAULT_SCRIPT_H
#define DP_FAULT_SCRIPT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_FAULT_NAME_MAX = 24,
    DP_FAULT_ADDRESS_MAX = 32,
    DP_FAULT_LINE_MAX = 400,
    DP_FAULT_TIME_MS_MAX = 24 * 3600 * 1000
};

typedef enum dp_fault_verb {
    DP_FAULT_NOTHING = 0, /* an empty line, or a comment */
    DP_FAULT_FORWARD,
    DP_FAULT_SET,
    DP_FAULT_CUT,
    DP_FAULT_HEAL,
    DP_FAULT_HALFOPEN,
    DP_FAULT_RESET,
    DP_FAULT_CHECK,
    DP_FAULT_SAY,
    DP_FAULT_QUIT
} dp_fault_verb;

typedef enum dp_fault_direction { DP_FAULT_UP = 0, DP_FAULT_DOWN = 1 } dp_fault_direction;

/* How bytes travel in one direction. */
typedef struct dp_fault_rule {
    uint64_t delay_ms;
    uint64_t jitter_ms;   /* 0 to this much more, in order all the same */
    uint64_t stall_ms;    /* what a lost segment costs, as a retransmission would */
    uint64_t rate;        /* bytes per second; 0: no limit */
    uint64_t loss_ppm;    /* of segments */
    uint64_t corrupt_ppm; /* of segments: one bit of it */
} dp_fault_rule;

typedef struct dp_fault_command {
    dp_fault_verb verb;
    bool has_time;
    uint64_t at_ms;
    char name[DP_FAULT_NAME_MAX + 1]; /* "*" for all; of SAY: the word */
    char from[DP_FAULT_NAME_MAX + 1]; /* whose dials alone; "": of all */
    char listen[DP_FAULT_ADDRESS_MAX + 1];
    char target[DP_FAULT_ADDRESS_MAX + 1];
    bool direction[2]; /* indexed by dp_fault_direction */
    dp_fault_rule rule;
    unsigned given; /* bit per field of rule, in order of declaration */
} dp_fault_command;

/* The rule of a forward before the first set. */
extern const dp_fault_rule dp_fault_rule_standard;

/* Read one line without its line break. DP_BADMSG, then why says column and what is wrong, after
 * "line N, ". */
DP_MUST dp_status dp_fault_parse(const char *line, unsigned line_number, dp_fault_command *command,
                                 dp_why *why);
/* The fields of the command's rule that were given, over *rule. */
void dp_fault_rule_apply(const dp_fault_command *command, dp_fault_rule *rule);

#endif
