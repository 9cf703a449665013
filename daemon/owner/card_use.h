/* The programs on the cards of this machine, by NVIDIA's management library (NVML), which comes
 * with the driver: the cards on which this node computes, and those of them that another program
 * uses. A look takes milliseconds, unless the driver hangs (machine_watch.h). Changes nothing. */
#ifndef DP_DAEMON_OWNER_CARD_USE_H
#define DP_DAEMON_OWNER_CARD_USE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/owner/machine_process.h"

enum {
    DP_CARDS_MAX = 32,          /* further ones are not looked at */
    DP_CARD_BUSY_PERCENT = 25,  /* of its time, by which a program that only draws uses a card */
    DP_CARD_FREE_MS = 60 * 1000 /* a card is free again when nobody has used it for so long */
};

struct dp_card_library;

/* The findings of one look, and what the next one begins with. Zeroed before the first. */
typedef struct dp_card_use {
    bool told;     /* the library is there and answers */
    uint32_t own;  /* bit i: a process of this node was seen on card i, in any look */
    uint32_t used; /* bit i: another program uses card i; within own */
    uint32_t pid;  /* of one such program; 0: nobody */
    char name[DP_MACHINE_PROCESS_NAME_MAX];
    struct dp_card_library *library; /* of the thread that looks; NULL: not open */
    uint64_t seen_us[DP_CARDS_MAX];  /* of the newest sample of a card's load */
} dp_card_use;

/* Looks again. root, self, script: as dp_machine_use_look; processes that descend from them are of
 * this node. Another program uses a card if it has a compute context there, whose memory it holds,
 * or if programs that only draw take more than DP_CARD_BUSY_PERCENT of it. A process that this
 * namespace does not have, and any trainer of dpnode, is no other program: the first has ended or
 * cannot be told apart from this node (containers), and two trainers do not share a card. */
void dp_card_use_look(dp_card_use *use, const char *root, uint32_t self, uint32_t script);
/* Closes the library. */
void dp_card_use_end(dp_card_use *use);

/* Whether this node leaves its cards to others, over looks. Zeroed before the first. */
typedef struct dp_card_yielding {
    bool holds;
    uint64_t used_ms; /* steady, of the last look that found another program */
} dp_card_yielding;

/* The newest look; NULL: there is none, and nobody is seen. now_ms: of a steady clock. True if
 * holds has changed. */
bool dp_card_yielding_pass(dp_card_yielding *yielding, const dp_card_use *use, uint64_t now_ms);

#endif
