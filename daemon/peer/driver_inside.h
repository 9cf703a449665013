/* The private header of the driver. Its files: driver.c (opening, closing), driver_events.c
 * (events), driver_act.c (actions), driver_store.c (durable rows), driver_restore.c (the core
 * rebuilt from them), driver_train.c (the trainer process), trainer_commands.c and driver_command.c
 * (commands to it), driver_slices.c (an APPLY of many updates), driver_answer.c (its answers) and
 * driver_publication.c (vectors in the answers). */
#ifndef DP_DAEMON_PEER_DRIVER_INSIDE_H
#define DP_DAEMON_PEER_DRIVER_INSIDE_H

#include "daemon/host/usage.h"
#include "daemon/net/hello.h"
#include "daemon/peer/driver.h"
#include "daemon/peer/object_transfer.h"
#include "daemon/trainer/trainer_process.h"

enum {
    DP_DRIVER_NAMES_MAX = 256,
    /* Events that arise while the actions of a step are executed: at most one per action. */
    DP_DRIVER_QUEUE_MAX = DP_ACTIONS_MAX,
    DP_DRIVER_CHECKS_MAX = 128, /* blobs being checked */
    /* largest number of waiting commands at which a user's query is accepted */
    DP_DRIVER_QUESTIONS_MAX = 16,
    DP_DRIVER_JUDGES_MAX = 32, /* updates being judged: those of a record; more are not measured */
    DP_DRIVER_WAITS_MAX =
        64 + DP_DRIVER_JUDGES_MAX, /* commands that the trainer has not answered */
    DP_DRIVER_HELD_MAX = 128,      /* commands that wait for memory or descriptors, or for slices */
    DP_DRIVER_SLICES_AHEAD = 2, /* read from the store: one is being added, and the next is ready */
    DP_DRIVER_TICK_MS = 500,
    DP_DRIVER_BLOB_WINDOW = 64, /* slots whose blobs may still be needed: the node's ring */
    DP_DRIVER_BLOBS_BESIDE =
        2, /* as many as two records list: those of the vote, and the node's own parts */
    DP_DRIVER_REDIAL_MS = 2000,
    DP_DRIVER_UNKNOWN_MAX = 16 /* names told an hour: members choose them */
};

/* Names of the protocol's rows (store/rows.h): one, one per pair exchange with its id in hex, and
 * the proof of a double vote. */
#define DP_DRIVER_PENDING "pending"
#define DP_DRIVER_EXCHANGE "exchange:"
#define DP_DRIVER_PROOF "proof"

/* Vectors fresh from the trainer, and partners' updates, are pinned with this round until a row
 * names them. */
#define DP_STAGED_ROUND 0U

_Static_assert((int)DP_PARTS_MAX <= (int)DP_LISTED_DEFAULT,
               "a record has no more results than blobs");

/* A command under way, and the use of its answer. */
typedef struct dp_driver_wait {
    dp_trainer_kind command;
    uint64_t round;
    uint8_t exchange[16];
    uint32_t part;     /* REDUCE; ADD: how many updates are added up then */
    dp_part_cuts cuts; /* PUBLISH */
    uint32_t id;       /* JUDGE */
    dp_hash root;      /* JUDGE: of the update */
    uint64_t since_ms;
    dp_driver_answer *answer; /* EVAL, SAMPLE */
    void *context;
} dp_driver_wait;

struct dp_driver {
    dp_daemon *daemon;
    dp_driver_hooks hooks;
    dp_run_identity facts;
    bool has_manifest;
    dp_manifest manifest;
    dp_peer self;
    dp_transport *transport;
    dp_object_transfer *object_transfer;
    dp_trainer_process *trainer;
    dp_node *node; /* NULL until the manifest is known and the store has been read */
    dp_crypto_keys keys;
    bool has_vote_key;
    uv_timer_t *wake;
    uv_timer_t *tick;
    uint64_t redial_ms;
    dp_wall wall;              /* clocks of others, and the correction by them (driver_clock.c) */
    dp_wall_view clock;        /* as of the last tick */
    uint64_t clock_told_ms[2]; /* uv_now, for an unknown node and for a peer; 0: never */
    dp_credential own;         /* from this node's certificate */
    dp_list lookups;           /* of names to dial (driver_dial.c) */
    uint32_t n_lookups;
    uint32_t next_unknown; /* of these, the one to be replaced next */
    struct {               /* names that were not found, told once an hour (driver_dial.c) */
        char name[DP_ADDRESS_NAME_MAX + 1];
        uint64_t told_ms; /* uv_now */
    } unknown[DP_DRIVER_UNKNOWN_MAX];
    struct { /* changes of guests' states since the last event about one (driver_act.c) */
        uint32_t changes;
        bool told; /* ever, and when: uv_now */
        uint64_t told_ms;
    } guests;
    uint32_t remember_in; /* ticks until addresses of peers are saved */
    uint16_t port;
    bool closing;
    bool told_following;
    dp_secrets secrets; /* of the run identity, and those being written */
    struct {            /* number of cuts of this node since it had a link (driver_rotate.c) */
        uint64_t handshakes;
        uint64_t cuts;
        uint64_t since_ms; /* uv_now: the first of them came about then; 0: no tick yet */
        bool told;
    } cut;
    uint32_t n_jobs; /* of ours, at the store thread */
    /* steps */
    bool stepping;
    dp_actions *actions;
    uint32_t n_queued;
    dp_event queue[DP_DRIVER_QUEUE_MAX];
    /* for users */
    uint32_t n_names;
    struct {
        dp_peer peer;
        dp_hello hello;
    } names[DP_DRIVER_NAMES_MAX];
    uint64_t published_round; /* of the publication whose row was written last, or is */
    uint64_t counted;         /* notes of it since the start */
    uint64_t counted_before;  /* by the chain in the store at the start */
    uint64_t checkpoint_round;
    bool has_checkpoint;
    bool is_new; /* the store had no chain, no state and no vote key of the run at the start */
    /* trainer */
    bool trainer_wanted;
    bool yields; /* to other programs on its GPU: no trainer runs */
    bool trainer_open;
    bool training;         /* has the command to train, and none to stop since */
    uint32_t trainer_life; /* counts deaths, so that late jobs of an earlier life are dropped */
    uint64_t elements;
    char script_path[DP_CONFIG_PATH_MAX + sizeof "/script.sock"]; /* "": none */
    uint32_t script_pid; /* the script that trains; 0: none */
    uint32_t celsius;    /* by STEP and RESTING; 0: not known */
    uint32_t watts;
    uint64_t felt_ms;         /* uv_now of these two */
    bool rests;               /* it must cool first, by RESTING ... */
    uint32_t rests_celsius;   /* ... at this heat; 0: not known */
    dp_trainer_limits limits; /* as it has them, or will have */
    uint64_t renew_ms;        /* since when it is to start anew for its limits; 0: it is not */
    char device[DP_DRIVER_DEVICE_MAX]; /* the trainer's device; "": not reported */
    uint32_t next_check;
    struct {
        dp_hash root;
        dp_part_range range; /* as requested by the node */
    } checks[DP_DRIVER_CHECKS_MAX];
    uint32_t next_judge;
    uint32_t n_judges;        /* that the node learns of, unless the trainer dies */
    uint64_t n_commands;      /* that were posted to the store thread */
    uint64_t n_commands_read; /* of these, with their objects read; store thread only */
    uint32_t n_held;
    dp_list held;                    /* of commands, in order */
    struct dp_driver_slices *slices; /* of the APPLY that waits for them; NULL: none */
    uint32_t n_behind;
    dp_list behind;      /* slices: that APPLY, and the commands after it */
    uint64_t watched_ms; /* uv_now of the last look at these; 0: none */
    uint32_t n_waits;
    dp_driver_wait waits[DP_DRIVER_WAITS_MAX];
    double loss;
    uint64_t update_round;
    double update_norm; /* of the last publication, as reported by the trainer */
    double update_error;
    double part_error;  /* of the sum that the trainer made last, by its norm; 0: unknown */
    double outer_reach; /* of the last outer step; 0: unknown */
    double moved;       /* by the last pair exchange: weight times displacement */
    double tokens_per_s;
    dp_usage usage;
    dp_trainer_spent spent; /* by the last STEP */
    uint64_t step_ms;       /* time of the last STEP */
    uint32_t step_count;
    uint64_t step_tokens;
    uint64_t unsent_tokens; /* told by the last STEP, and in no publication yet */
    uint32_t step_skipped;  /* by the last STEP ... */
    uint32_t step_spikes;
    uint32_t step_empty;
    uint64_t skip_ms; /* ... and time of the last log line about dropped steps; 0: never */
    /* Of the last publication and the last frozen displacement: blob, vector, parts. */
    dp_hash staged[2][DP_TRAINER_FDS_MAX];
    /* waiting for room: a publication, a frozen displacement */
    struct dp_driver_taken *waiting[2];
    char no_room[DP_DISK_TEXT_MAX]; /* why they wait; "": none does */
    uint32_t n_drops;
    dp_view snapshot; /* mapping of the state after snapshot_round */
    uint64_t snapshot_round;
    dp_hash snapshot_root;
    uint64_t saved_ms; /* start of the last checkpoint */
};

/* driver.c */
void dp_driver_feed(dp_driver *driver, dp_event *event);
/* An object that was here cannot be read any more: DP_BADHASH: its bytes are damaged, which is
 * logged; otherwise this was known. */
void dp_driver_lost(dp_driver *driver, const dp_hash *root, dp_status status);
void dp_driver_fail(dp_driver *driver, dp_status status, const char *why);
/* Posts a job and counts it, so that closing waits for it. */
bool dp_driver_post(dp_driver *driver, dp_store_thread_job *job, dp_store_thread_class class);
/* Call it last in every done function: it may free the driver. */
void dp_driver_job_done(dp_driver *driver);
/* the manifest is known: reads the store, then starts the node */
void dp_driver_start_node(dp_driver *driver);

/* driver_dial.c: a peer, or any node that answers (NULL); all addresses of the token, once;
 * look-ups that take too long. */
void dp_driver_dial(dp_driver *driver, const dp_peer *peer, const dp_addr *addrs, uint32_t n_addrs);
void dp_driver_dial_token(dp_driver *driver);
void dp_driver_dial_tick(dp_driver *driver);

/* driver_clock.c: a handshake reported the time of the other end. peer NULL: it holds a token, and
 * ended before it proved its identity. refused: its certificate is not valid by our clock. False:
 * ours is not valid by its clock, so it will cut the link. */
bool dp_driver_met(dp_driver *driver, const dp_peer *peer, const dp_addr *addr, uint64_t peer_ms,
                   bool refused);
void dp_driver_clock_tick(dp_driver *driver);

/* driver_act.c; in each tick: logs how often guests linked and left. */
void dp_driver_guests_tick(dp_driver *driver);
void dp_driver_act(dp_driver *driver, const dp_action *action);

/* driver_store.c, and driver_restore.c for dp_driver_restore */
void dp_driver_store(dp_driver *driver, const dp_action *action);
void dp_driver_save(dp_driver *driver, const dp_action *action);
void dp_driver_keep(dp_driver *driver, const dp_action *action);
/* Job on the store thread that builds the node from the store; then DP_EV_START. */
void dp_driver_restore(dp_driver *driver);
void dp_driver_remember_peers(dp_driver *driver);

/* driver_renew.c */
void dp_driver_renewed(dp_driver *driver, const dp_renewal *renewal);

/* driver_rotate.c */
/* Passes the secrets of the run identity to the transport. */
void dp_driver_use_secrets(const dp_driver *driver, dp_channel_psk psks[DP_SECRETS_MAX]);
void dp_driver_rotate_tick(dp_driver *driver, const dp_transport_stats *stats);
/* A new member has a known address: saves the address book soon, before the next regular time. */
void dp_driver_remember_soon(dp_driver *driver);

/* driver_train.c */
void dp_driver_trainer_open(dp_driver *driver);
void dp_driver_trainer_close(dp_driver *driver);
void dp_driver_watch_trainer(dp_driver *driver);
/* A publication is stored: little is lost if the trainer starts anew now, where that is due. */
void dp_driver_renew_trainer(dp_driver *driver);
/* Call when a command was sent that will be answered. */
void dp_driver_expect(dp_driver *driver, const dp_driver_wait *wait);
/* The oldest command of a kind that an answer may belong to; false: none is under way. */
bool dp_driver_answered(dp_driver *driver, dp_trainer_kind command, dp_driver_wait *wait);
/* Tells the caller of this command that it failed. */
void dp_driver_command_failed(dp_driver *driver, const dp_driver_wait *wait, const char *what);

/* trainer_commands.c */
void dp_driver_command_trainer(dp_driver *driver, const dp_action *action);
void dp_driver_open_model(dp_driver *driver); /* OPEN with manifest, tokenizer and data */
void dp_driver_commands_retry(
    dp_driver *driver); /* called each tick: sends commands that wait for memory or descriptors */
void dp_driver_commands_drop(dp_driver *driver); /* the trainer has ended: drops them */

/* ADD of these items, after the first at ones. */
void dp_driver_command_slice(dp_driver *driver, uint64_t round, uint32_t at,
                             const dp_apply_item *items, uint32_t n);
void dp_driver_commands_release(
    dp_driver *driver);                       /* sends the commands that waited for the slices */
void dp_driver_drop_apply(dp_driver *driver); /* the first of these */

/* driver_slices.c */
/* True if these updates are too many, or too large, for one command. */
bool dp_driver_slices_needed(const dp_driver *driver, const dp_apply_item *items, uint32_t n);
/* False: no memory, or the trainer was killed; then no slice is under way. items are copied. */
bool dp_driver_slices_begin(dp_driver *driver, uint64_t round, const dp_apply_item *items,
                            uint32_t n);
void dp_driver_slices_added(dp_driver *driver, const dp_trainer_msg *msg);
/* A slice of this round could not be added: handles it as a failed APPLY. */
void dp_driver_slices_failed(dp_driver *driver, uint64_t round);
void dp_driver_slices_drop(dp_driver *driver);

/* driver_publication.c: stores the files of PUBLISHED, FROZEN or REDUCED as objects, then tells the
 * core. Takes the fds. */
void dp_driver_publication_store(dp_driver *driver, const dp_trainer_msg *msg, const int *fds,
                                 uint32_t n_fds);
/* Reports a failed REDUCE: the core waits for every part that it has requested. */
void dp_driver_reduce_failed(dp_driver *driver, uint64_t round, uint32_t part, dp_status status);
/* called each tick: retries those that wait for disk space */
void dp_driver_publication_retry(dp_driver *driver);
void dp_driver_publication_drop(dp_driver *driver); /* the trainer has ended: drops them */

/* driver_answer.c */
/* One of n_judges has ended; NULL: nothing was measured. */
void dp_driver_judged(dp_driver *driver, const dp_hash *root, const dp_judged *found);
void dp_driver_on_answer(void *context, const dp_trainer_msg *msg, const int *fds, uint32_t n_fds);

/* driver_events.c */
dp_status dp_driver_open_transport(dp_driver *driver, dp_why *why);
dp_status dp_driver_check_manifest(const dp_driver *driver, dp_view bytes, dp_manifest *manifest);

#endif
