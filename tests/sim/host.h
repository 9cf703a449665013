/* One simulated machine: the node under test with its disk, its trainer and the driver between
 * them, like in daemon/. Survives crashes of its node. */
#ifndef DP_SIM_HOST_H
#define DP_SIM_HOST_H

#include <stdbool.h>
#include <stdint.h>

#include "gossip/identity/admission.h"
#include "gossip/node/node.h"
#include "tests/sim/disk.h"
#include "tests/sim/queue.h"
#include "tests/sim/rot.h"
#include "tests/sim/toy.h"

struct dp_sim;

enum {
    DP_HOST_COMMANDS_MAX = 64, /* trainer commands waiting */
    DP_HOST_PARCELS_MAX = 32,  /* results of it that are being written */
    DP_HOST_SPINS_MAX =
        300 /* consecutive timers that are due at once: the daemon would use a whole core */
};

typedef enum dp_toy_life { DP_TOY_DOWN = 0, DP_TOY_OPENING, DP_TOY_UP } dp_toy_life;

/* Result of a PUBLISH or FREEZE. */
typedef struct dp_host_parcel {
    dp_toy_parcel made;
    uint64_t round;       /* PUBLISH */
    uint8_t exchange[16]; /* FREEZE */
} dp_host_parcel;

typedef struct dp_host {
    struct dp_sim *sim;
    uint32_t index;
    /* index of the host whose keys it has: its own, except for the second body of a liar */
    uint32_t name;
    dp_peer peer;
    dp_node *node; /* NULL: not running */
    uint32_t boot; /* grows with every start and crash */
    bool started_once;
    dp_secrets secrets; /* durable */
    bool left;          /* for good */
    bool leaving;       /* its owner has requested it */
    bool owner_pauses;  /* a command that holds until it is revoked */
    bool broken;        /* for good, when the core was healed */
    bool was_slow;      /* until the healing */
    bool newer;         /* it is of a later version: newer.c */
    uint64_t up_since;
    uint64_t paused_until;
    uint64_t restart_at; /* 0: no restart is planned */
    /* address */
    bool nat;           /* no host can dial it */
    uint16_t port;      /* another one is another address */
    uint16_t told_port; /* the one that this life announces */
    /* clock */
    uint64_t clock_offset;
    int32_t clock_ppm;
    int64_t wall_offset_ms;
    uint64_t tick_at; /* of the timer that is set; UINT64_MAX: none */
    uint64_t tick_generation;
    uint32_t spins; /* consecutive timers that were due when they were set */
    /* disk */
    dp_disk disk;
    dp_rng disk_rng;
    uint32_t disk_slow;  /* factor */
    uint64_t full_until; /* every other write finds no space */
    uint64_t rot_until;  /* every other chunk is served wrong */
    dp_rot rotten[DP_ROT_MAX];
    uint32_t n_rotten;
    bool io_error; /* the next write fails, and the process ends */
    uint16_t *met; /* by node: port of the address on disk; 0: never linked */
    uint64_t saved_us;
    uint32_t mapped; /* the state that the trainer passed with its last APPLIED */
    /* trainer */
    dp_toy toy;
    dp_toy_life toy_state;
    uint64_t life; /* of the trainer process */
    bool training;
    uint64_t train_round;
    uint64_t trained_us; /* steps are done up to here */
    bool steps_due;      /* a DP_ON_STEPS is queued */
    uint32_t step_us;
    uint32_t toy_slow; /* factor */
    /* least time of PUBLISH and APPLY, of the fastest; up to five times as long */
    uint32_t encode_us;
    bool idle;               /* the trainer executes commands but makes no steps */
    uint64_t narrow_until;   /* its steps have little room */
    uint64_t hangs_until_us; /* ... and executes no commands */
    bool errs;               /* its next state, update or exchange fails */
    uint64_t toy_free_us;
    uint64_t nonce;
    dp_action *commands; /* ring of DP_HOST_COMMANDS_MAX */
    /* for each: the object that it needs and the disk has lost, or DP_SHELF_NONE */
    uint32_t lost[DP_HOST_COMMANDS_MAX];
    uint32_t command_first;
    uint32_t command_count;
    /* whose objects are being written: ring, by number */
    dp_host_parcel parcels[DP_HOST_PARCELS_MAX];
    uint64_t n_parcels;
    dp_hash pending_root; /* of the publication in the trainer */
    dp_rng rng;           /* seeds of nodes, pace of the trainer */
    bool crash_now;       /* the process dies before its next action */
    bool reopen;          /* its node asked to be opened again */
} dp_host;

DP_MUST dp_status dp_host_open(dp_host *host, struct dp_sim *sim, uint32_t index);
void dp_host_close(dp_host *host);

static inline bool dp_host_up(const dp_host *host)
{
    return host->node != NULL;
}

/* Start the process from what is durable. */
void dp_host_boot(dp_host *host);
/* kill -9, or a power cut (peers get no notice). */
void dp_host_crash(dp_host *host, bool reset);
/* One occasion of this host that is not stale. */
void dp_host_occasion(dp_host *host, dp_occasion *occasion);
/* Passes one event to the node and executes its actions. */
void dp_host_event(dp_host *host, dp_event *event);
void dp_host_command(dp_host *host, dp_command command);

/* host_disk.c: durable data. */
void dp_host_store(dp_host *host, const dp_action *action);
/* An object is begun, used or dropped. */
void dp_host_object(dp_host *host, const dp_action *action);
void dp_host_save(dp_host *host, const dp_action *action);
/* Queues a durable write and takes its bytes. */
void dp_host_write(dp_host *host, const dp_disk_write *write);
/* The oldest write has ended. */
void dp_host_written(dp_host *host);
/* From now on the disk has its normal speed, also for queued writes. */
void dp_host_hasten_disk(dp_host *host);
/* Passes all durable data to a node that was opened and not yet started. */
void dp_host_restore(dp_host *host);

/* host_link.c: connections. */
dp_addr dp_host_addr(uint32_t index, uint16_t port);
void dp_host_dial(dp_host *host, const dp_action *action);
void dp_host_hangup(dp_host *host, const dp_action *action);
/* A dial has ended. hidden: no host answers at the dialled address. */
void dp_host_dialed(dp_host *host, uint32_t other, bool hidden);
void dp_host_packet(dp_host *host, const dp_occasion *occasion);
void dp_host_unlinked(dp_host *host, const dp_occasion *occasion);

/* host_serve.c: objects and records between hosts. */
void dp_host_get(dp_host *host, const dp_action *action);
void dp_host_serve(dp_host *host, const dp_action *action);
/* True if the message was for the driver (INFO, CHUNK) and does not reach the node. */
bool dp_host_message(dp_host *host, uint32_t from, dp_view bytes);
void dp_host_chunk_stored(dp_host *host, const dp_disk_write *write);

/* host_train.c: the trainer process. */
void dp_host_order(dp_host *host, const dp_action *action);
void dp_host_ordered(dp_host *host); /* the oldest command has ended */
void dp_host_steps(dp_host *host);
void dp_host_parcel_stored(dp_host *host, const dp_disk_write *write);
/* status: of the write. */
void dp_host_reduced(dp_host *host, const dp_disk_write *write, dp_status status);
void dp_host_trainer_dies(dp_host *host, bool tell);
void dp_host_trainer_spawn(dp_host *host);

/* crypto.c: signatures that are cheap and deterministic, and credentials signed with them. */
dp_crypto dp_sim_crypto(dp_host *host);
void dp_sim_vote_key(const dp_host *host, uint8_t public_key[DP_PUBLIC_KEY_BYTES]);
dp_admission dp_sim_admission(void);
enum { DP_SIM_CREDENTIAL_BYTES = 32 + 4 + 16 + 4 + 8 };
/* Of invites by which no host joins; index < DP_SIM_INVITES. */
enum { DP_SIM_INVITES = 20 };
dp_invite_id dp_sim_invite(uint32_t index);
void dp_sim_credential(const struct dp_sim *sim, uint32_t index,
                       uint8_t out[DP_SIM_CREDENTIAL_BYTES]);

#endif
