/* The membership of this node in its run: the protocol core and everything through which it acts.
 * Turns libuv callbacks into events for dp_node_step and carries out the actions. One per daemon,
 * from joining to leaving. Loop thread only. */
#ifndef DP_DAEMON_PEER_DRIVER_H
#define DP_DAEMON_PEER_DRIVER_H

#include "base/trainer/trainer_msg.h"
#include "daemon/host/daemon.h"
#include "daemon/net/transport.h"
#include "daemon/peer/wall.h"
#include "gossip/node/node.h"
#include "store/ckpt.h"

/* Events for the RPC server. Each is called at most once per open, except progress. */
typedef struct dp_driver_hooks {
    void *context;
    void (*manifest)(void *context);  /* joining: the manifest is here and valid */
    void (*following)(void *context); /* the node follows the chain and its data is whole */
    void (*failed)(void *context, dp_status status,
                   const char *why); /* cannot continue: the run is not entered */
    void (*progress)(void *context, const char *phase, const char *text);
} dp_driver_hooks;

/* facts: copied. Without a manifest in it the node is a newcomer and asks the addresses of its
 * token first. Binds the listening port: DP_BUSY with a sentence when it is taken. */
DP_MUST dp_status dp_driver_open(dp_driver **driver, dp_daemon *daemon,
                                 const dp_run_identity *facts, dp_why *why);
void dp_driver_set_hooks(dp_driver *driver, const dp_driver_hooks *hooks);
/* Says goodbye; memory is freed when libuv has closed its handles. */
void dp_driver_close(dp_driver *driver);
void dp_driver_command(dp_driver *driver, dp_command command);
/* The limits of bandwidth have changed (bandwidth_limiter.h). */
void dp_driver_limit(dp_driver *driver);
/* The limits of the trainer in daemon->config may have changed: those of heat and power hold at
 * once; for others the trainer starts anew, after its next publication. */
void dp_driver_limit_trainer(dp_driver *driver);
/* Ends the trainer and starts none while it yields its GPU to other programs, or starts it again.
 * Changes nothing if that is so already. */
void dp_driver_yield(dp_driver *driver, bool yields);
/* driver_rotate.c: join secrets of the chain; they are stored and then used. */
void dp_driver_secrets(dp_driver *driver, const dp_secrets *secrets);
/* If no peer is linked, and this token of the run is of a later epoch, its secret is used from now
 * on. Otherwise false. */
bool dp_driver_token_secret(dp_driver *driver, const dp_invite *invite);
/* order->why is filled unless DP_OK; order->status is not read. */
DP_MUST dp_status dp_driver_order(dp_driver *driver, const dp_admin_command *order);

/* Answers for users. */
enum { DP_DRIVER_DEVICE_MAX = 128 };
typedef struct dp_driver_view {
    bool running; /* the protocol core stands; node is filled */
    dp_node_view node;
    dp_transport_stats transport;
    uint16_t port;
    const char *trainer; /* "up" | "starting" | "failing": it dies repeatedly | "down" */
    int trainer_pid;
    uint32_t trainer_restarts;
    uint32_t trainer_deaths;  /* in a row, of one cause (restart.h) */
    uint64_t trainer_next_ms; /* until it is started again; 0: it runs */
    uint32_t script_pid;      /* of the script that trains; 0: none */
    bool rests;               /* the trainer computes nothing until the machine is cooler ... */
    uint32_t rests_celsius;   /* ... than this; 0: not known */
    uint32_t celsius; /* of the device that computes, read in the last minute; 0: not known */
    uint32_t watts;   /* the same */
    uint64_t elements;
    const char *device;  /* the device that computes; "": none, or not known */
    bool training;       /* it has the command to train; otherwise the two rates below are 0 */
    bool uncounted;      /* no record has decided the round of its last publication yet */
    double tokens_per_s; /* 0: unknown */
    /* of the last outer step, in updates (compute/outer/consensus.h); 0: unknown */
    double outer_reach;
    double usage;         /* share of the time that the trainer computes; 0: unknown */
    uint64_t computed_us; /* total time in which this trainer computed steps ... */
    uint64_t trained_us;  /* ... of the time for which it had to train; 0: unknown */
    dp_trainer_spent spent;
    double loss; /* of the running local round, nats per token; 0: unknown */
    /* one element of so many in updates of the round to come; 0: as the manifest says */
    uint32_t keep;
    double update_norm;      /* |a| of the last publication; 0: none, or not known */
    double update_error;     /* the residual of its codec: |a - d| */
    double part_error;       /* the loss of encoding the last sum of a part, by its norm; 0: none */
    uint64_t counted;        /* rounds of this life of the daemon that list this node ... */
    uint64_t counted_before; /* ... and those of the chain at its start */
    uint64_t checkpoint_round;
    bool has_checkpoint;
    const char *no_room; /* why an update waits for room, without full stop; "": none does */
    bool refused;        /* all addresses that are reached cut its connections (driver_rotate.c) */
    bool is_new;         /* the store had nothing of the run when this driver was opened */
} dp_driver_view;

void dp_driver_look(const dp_driver *driver, dp_driver_view *view);
/* As dp_transport_traffic. */
bool dp_driver_traffic(const dp_driver *driver, const dp_peer *peer, uint64_t *sent,
                       uint64_t *received);
const dp_run_identity *dp_driver_run_identity(const dp_driver *driver);
/* NULL before the manifest is known. */
const dp_manifest *dp_driver_manifest(const dp_driver *driver);
const dp_node *dp_driver_node(const dp_driver *driver);
/* The name that a peer gave itself, or "". */
const char *dp_driver_peer_name(const dp_driver *driver, const dp_peer *peer);
/* Addresses to put into an invite, at most DP_TOKEN_ADDRESSES_MAX. */
uint32_t dp_driver_addresses(const dp_driver *driver, dp_address *addresses);

/* The time that this node uses: this machine's, or that of a majority of the members
 * (daemon/peer/wall.h). */
uint64_t dp_driver_wall_ms(const dp_driver *driver);
/* False: this machine's clock agrees with those of others. Otherwise text is a sentence without
 * full stop. */
bool dp_driver_clock(const dp_driver *driver, dp_wall_view *clock, char *text, size_t size);

/* One question to the trainer (EVAL, SAMPLE). answer is called once: with the reply, or with NULL
 * and a reason. DP_CLOSED without a trainer that has a model, DP_AGAIN if too many wait: then
 * answer has already been called. */
typedef void dp_driver_answer(void *context, const dp_trainer_msg *reply, const char *why);
DP_MUST dp_status dp_driver_ask(dp_driver *driver, const dp_trainer_msg *question,
                                dp_driver_answer *answer, void *context);

#endif
