/* Future events of the simulation, in order: a binary heap of occasions keyed (time, order of
 * insertion). Knows nothing of their meaning. */
#ifndef DP_SIM_QUEUE_H
#define DP_SIM_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum {
    DP_QUEUE_MAX = 4 * 1024 * 1024
}; /* occasions waiting; beyond it the run is judged to be stuck */

typedef enum dp_occasion_kind {
    DP_ON_BOOT = 1,  /* node: start its process */
    DP_ON_TICK,      /* node, boot, value: generation of the timer */
    DP_ON_PACKET,    /* node: receiver, other: sender, value: connection (0: any), packet */
    DP_ON_LINK_DOWN, /* node, other, value: connection, detail: dp_link_cause */
    DP_ON_DIALED,    /* node: caller, boot, other: callee */
    DP_ON_DISK,      /* node, boot: its oldest disk write has ended */
    DP_ON_TRAINER,   /* node, boot, value: life of the trainer; its oldest command has ended */
    DP_ON_STEPS,     /* node, boot, value: life of the trainer; time to report progress */
    DP_ON_SPAWN, /* node, boot, value: life of the trainer; a trainer that died is started again */
    DP_ON_HELD,  /* node, boot, detail, value: object and index of a chunk that was here already */
    DP_ON_LOST,  /* node, boot, value: object that rot.h found to be lost */
    DP_ON_FAULT, /* detail: index of the fault class */
    DP_ON_LEAVE, /* node: its owner asks it to leave */
    DP_ON_ORDER, /* node, detail: its owner pauses it (1), or has it train again (0) */
    DP_ON_CHURN, /* churn.c: the next node comes, goes or stands still */
    DP_ON_EVIL,  /* node: evil.h: a liar acts unasked */
    DP_ON_LOOK   /* measure.c: takes a sample */
} dp_occasion_kind;

/* Bytes in flight; shared by all copies of one message. */
typedef struct dp_packet {
    uint32_t uses;
    uint32_t size;
    uint8_t data[];
} dp_packet;

/* NULL if memory is exhausted. The copy has one use. */
dp_packet *dp_packet_of(const void *data, uint32_t size);
dp_packet *dp_packet_share(dp_packet *packet);
void dp_packet_drop(dp_packet *packet); /* Accepts NULL. */

typedef struct dp_occasion {
    uint64_t at_us;
    uint64_t order;
    uint64_t value;
    dp_packet *packet; /* owned; NULL for most */
    uint32_t node;
    uint32_t other;
    uint32_t boot; /* of the node; an occasion of an earlier boot is stale */
    uint16_t detail;
    uint8_t kind; /* dp_occasion_kind */
} dp_occasion;

typedef struct dp_queue {
    dp_occasion *items;
    uint32_t count;
    uint32_t capacity;
    uint64_t order;
} dp_queue;

void dp_queue_close(dp_queue *queue);
/* Takes the packet, also on failure. Sets order. DP_TOOBIG, DP_NOMEM. */
DP_MUST dp_status dp_queue_push(dp_queue *queue, const dp_occasion *occasion);
/* False if empty. The caller gets the packet. */
bool dp_queue_pop(dp_queue *queue, dp_occasion *out);

#endif
