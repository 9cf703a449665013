/* Events: the input that the driver gives to a node, one dp_event for each call of dp_node_step
 * (node.h). Everything that an event points to is borrowed for the call. */
#ifndef DP_GOSSIP_EVENT_EVENT_H
#define DP_GOSSIP_EVENT_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/run/judged.h"
#include "base/run/reach.h"
#include "gossip/core/address.h"
#include "gossip/core/id.h"
#include "gossip/identity/cert.h"
#include "gossip/record/part.h"

typedef enum dp_event_type {
    DP_EV_START = 1,
    DP_EV_TICK,
    DP_EV_LINK_UP, /* an authenticated control link to u.link.peer stands */
    DP_EV_LINK_DOWN,
    DP_EV_MESSAGE, /* u.message: one message from a linked peer */
    DP_EV_STORED,  /* u.stored: a DP_DO_STORE has ended */
    DP_EV_OBJECT,  /* u.object: fetched, whole and durable here */
    /* u.object: size and leaves learned from a peer's answer, already checked against the root */
    DP_EV_OBJECT_INFO,
    DP_EV_CHUNK,      /* u.chunk: one requested chunk has arrived and is stored, or failed */
    DP_EV_TRAINER_UP, /* the trainer has opened model, tokenizer and data; it holds no theta yet */
    DP_EV_TRAINER_DOWN,
    DP_EV_TRAINER_AT, /* u.at: theta of a round is loaded (after DP_DO_TRAINER_INIT or _LOAD) */
    DP_EV_TRAINED,    /* u.trained: progress */
    DP_EV_PUBLISHED,  /* u.published: blob and vector a are durable objects here */
    DP_EV_CHECKED,    /* u.checked: a blob was decoded totally */
    DP_EV_APPLIED,    /* u.applied */
    DP_EV_FROZEN,     /* u.frozen: blob of F and F itself are durable objects here */
    DP_EV_MIXED,      /* u.mixed */
    DP_EV_SAVED,      /* u.saved: a checkpoint of the tensor state is durable and can be served */
    DP_EV_COMMAND,    /* u.command: the owner, through the control socket or a signal */
    DP_EV_ADMIN_COMMAND, /* u.order: a command that takes the root key or an admin's key */
    /* u.object: its root alone; it was here, and part of it cannot be read any more */
    DP_EV_OBJECT_LOST,
    DP_EV_REDUCED, /* u.reduced: a part was added up, and its result is a durable object here */
    DP_EV_JUDGED,  /* u.judged: the effect of an update was measured */
    /* u.script: in a run of any model a script has connected to the trainer, or is gone, as at
     * DP_EV_TRAINER_UP and DP_EV_TRAINER_DOWN */
    DP_EV_SCRIPT
} dp_event_type;

typedef enum dp_link_cause {
    DP_LINK_CLOSED = 1, /* authenticated close: the peer said goodbye */
    DP_LINK_RESET,      /* RST, or FIN without close: evidence of death */
    DP_LINK_TIMEOUT,    /* no progress */
    DP_LINK_REFUSED     /* a dial did not succeed */
} dp_link_cause;

typedef enum dp_command {
    DP_COMMAND_PAUSE = 1,
    DP_COMMAND_RESUME,
    DP_COMMAND_LEAVE,
    DP_COMMAND_STOP /* the last event of this life: peers are told, so that nobody waits for it */
} dp_command;

typedef enum dp_admin_command_kind {
    DP_ADMIN_REVOKE = 1, /* peer: put out, by the root key where it is here, else as an admin */
    /* begin the chain anew after its head, with the voters that can be reached, or, back, after an
     * earlier round, with this node as its voter; root key */
    DP_ADMIN_FORK,
    /* of two chains begun anew this node's goes on, the other ends and joins it; root key */
    DP_ADMIN_MERGE,
    /* invite: is revoked, by the root key or as an admin; members: the members that joined by it
     * are removed */
    DP_ADMIN_REVOKE_INVITE,
    DP_ADMIN_ROTATE /* secret: the join secret of the next epoch */
} dp_admin_command_kind;

/* The answer is filled in during the step: a status, and a sentence where there is more to say. */
typedef struct dp_admin_command {
    dp_admin_command_kind kind;
    dp_peer peer;
    /* REVOKE_INVITE. until_ms: the end of its window; UINT64_MAX: not known. */
    dp_invite_id invite;
    uint64_t until_ms;
    bool members;
    /* FORK. back: to a state of which this node has a checkpoint; the slot that made it, and its
     * certified root. */
    bool back;
    uint64_t round;
    uint64_t slot;
    dp_hash state_root;
    const uint8_t *secret; /* ROTATE: 16 random bytes */
    dp_status *status;
    dp_why *why;
} dp_admin_command;

typedef struct dp_event {
    dp_event_type type;
    dp_time now;
    uint64_t wall_ms; /* unix; only for record times, statements and certificate expiry */
    union {
        struct {
            dp_peer peer;
            dp_addr addr;       /* as seen on the socket */
            dp_view credential; /* LINK_UP: checked by the channel against run and root key */
            bool outgoing;
            dp_link_cause cause; /* LINK_DOWN */
        } link;
        struct {
            dp_peer peer;
            dp_view bytes;
        } message;
        struct {
            uint32_t op;
            dp_status status;
        } stored;
        struct {
            dp_hash root;
            uint64_t size;
            const dp_hash *leaves; /* OBJECT_INFO: dp_object_chunks(size) of them */
            dp_peer peer;          /* OBJECT_INFO: the peer that told */
        } object;
        struct {
            dp_hash root;
            uint32_t index;
            dp_peer peer;
            dp_status status; /* DP_BADHASH: the peer lied or was damaged */
        } chunk;
        struct {
            uint64_t round;
            dp_hash root;     /* object root of the tensor state */
            dp_status status; /* DP_TRAINER_AT failed: DP_CORRUPT, DP_NOTFOUND */
        } at;
        struct {
            bool present;
        } script;
        struct {
            uint64_t round;
            uint32_t steps; /* since the last publication or freeze */
            uint64_t tokens;
            uint64_t step_us; /* wall time of one optimizer step; 0: not measured */
        } trained;
        struct {
            uint64_t round;
            dp_hash root; /* of the blob */
            uint64_t bytes;
            dp_hash a_root; /* of the vector a */
            uint64_t a_bytes;
            unsigned __int128 energy;
            uint32_t steps;
            uint64_t tokens;
            uint64_t carried;    /* tokens of earlier rounds in this blob (left out, gossiped) */
            dp_reach reach;      /* of the samples that are in it, or were dropped */
            uint32_t loss_micro; /* mean training loss, micronats per token; 0 if unknown */
            uint32_t rate;       /* of this node's uplink, kB/s; 0 if unknown */
            dp_part_list parts;  /* their objects, durable too. The blob above is not sent then */
        } published;
        struct {
            dp_hash root;
            bool ok;
            bool foreign;   /* not ok: of a codec that the run does not have */
            uint32_t first; /* as DP_DO_CHECK said */
            uint32_t end;
            unsigned __int128 energy; /* E of section E of the commit rules */
        } checked;
        struct {
            dp_hash root;
            dp_judged found;
        } judged;
        struct {
            uint64_t round;
            uint32_t part; /* as DP_DO_REDUCE said */
            dp_hash root;
            uint64_t bytes;
            dp_status status; /* not DP_OK: there is no result */
        } reduced;
        struct {
            uint64_t round;
            dp_hash tensor_root;
            uint64_t tensor_bytes;
            dp_status status;
        } applied;
        struct {
            uint8_t exchange[16];
            dp_hash root; /* blob of F */
            uint64_t bytes;
            dp_hash f_root;
            uint64_t f_bytes;
            uint32_t steps; /* all that F holds */
            uint64_t tokens;
            dp_reach reach;
            unsigned __int128 energy; /* of the blob */
        } frozen;
        struct {
            uint8_t exchange[16];
            dp_status status;
        } mixed;
        struct {
            uint64_t round;
            dp_hash tensor_root;
            uint64_t tensor_bytes;
        } saved;
        dp_command command;
        dp_admin_command order;
    } u;
} dp_event;

#endif
