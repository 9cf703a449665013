/* The whole peer as one pure state machine: events in, actions out. No clock, socket, thread, file or tensor here; the
 * daemon and the simulator carry out the same actions. Rounds, votes, membership, spreading, catch-up and gossip
 * averaging live in their own files; this one routes between them.
 *
 * Conversation with the driver
 *   dp_node_init, dp_node_restore_* (what was durable, in the order below), then DP_EV_START, then events for ever.
 *   After each dp_node_step the driver carries out the actions in order. dp_node_wake says when it wants DP_EV_TICK
 *   at the latest. Everything an event points to is borrowed for the call; everything an action points to is valid until
 *   the next step.
 *
 * Durability: DP_DO_STORE asks for one atomic durable write; DP_EV_STORED reports it. What depends on the write (a
 * promise, a vote, a READY, applying a decision) is sent by the node only after that event.
 *
 * Objects: every bulk thing (update blob, tensor state, tokenizer, token shard) is a content-addressed object of
 * base/digest.h, named by its root. The node decides what to fetch from whom; the bytes never pass through it: the driver
 * sends CHUNK_GET, checks the leaf hash of what comes, stores it and reports. The driver also answers peers' requests for
 * object information, chunks, records and the manifest from its store (DP_DO_SERVE_*).
 */
#ifndef DP_GOSSIP_NODE_H
#define DP_GOSSIP_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/judged.h"
#include "base/manifest.h"
#include "base/reach.h"
#include "gossip/address.h"
#include "gossip/admission.h"
#include "gossip/id.h"
#include "gossip/part.h"
#include "gossip/renewal.h"
#include "gossip/rotation.h"

enum {
    DP_MEMBERS_MAX = 2048, /* ever known in one run */
    DP_VOTERS_MAX = 7,
    DP_LISTED_STANDARD = 32, /* contributors in one record, unless the manifest permits more */
    DP_LISTED_MAX = 1024,    /* then so many at most: they stand in lists (listing.h) */
    DP_ADDRS_MAX = 4,        /* addresses announced per member */
    DP_CREDENTIAL_MAX = 5 * 232,
    DP_ACTIONS_MAX = 512,      /* per step; the node defers what would pass it */
    DP_MESSAGE_MAX = 96 * 1024 /* one control message */
};

/* An address to dial, as small as a table of members wants it. */
typedef struct dp_addr {
    uint8_t family; /* a dp_address_kind. In the simulator: 4, and the node's index in ip[0..3]. */
    union {
        uint8_t ip[16];
        char name[DP_ADDRESS_NAME_MAX + 1]; /* DP_ADDRESS_DNS: looked up by the one that dials */
    };
    uint16_t port;
} dp_addr;

dp_addr dp_addr_of(const dp_address *address);
dp_address dp_addr_address(const dp_addr *addr);

typedef enum dp_member_state {
    DP_MEMBER_UNKNOWN = 0,
    DP_MEMBER_ALIVE,
    DP_MEMBER_SUSPECT,
    DP_MEMBER_DEAD,
    DP_MEMBER_LEFT
} dp_member_state;

typedef enum dp_mode {
    DP_MODE_JOINING = 0, /* fetching manifest data, records, state */
    DP_MODE_SYNC,        /* rounds are synchronous and exact */
    DP_MODE_GOSSIP,      /* no majority of voters is heard: pair exchanges */
    DP_MODE_PAUSED,      /* the owner asked: member without training */
    DP_MODE_HALTED,      /* proof of a double vote: no commits until the root key speaks */
    DP_MODE_LEFT
} dp_mode;

/* ---- events ---- */

typedef enum dp_event_type {
    DP_EV_START = 1,
    DP_EV_TICK,
    DP_EV_LINK_UP, /* an authenticated control link to u.link.peer stands */
    DP_EV_LINK_DOWN,
    DP_EV_MESSAGE, /* u.message: one message from a linked peer */
    DP_EV_STORED,  /* u.stored: a DP_DO_STORE has ended */
    DP_EV_OBJECT,  /* u.object: fetched, whole and durable here */
    DP_EV_OBJECT_INFO, /* u.object: size and leaves learned from a peer's answer, already checked against the root */
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
    DP_EV_ORDER,      /* u.order: what takes the root key, or an admin's */
    DP_EV_OBJECT_LOST, /* u.object: its root alone; it was here, and part of it cannot be read any more */
    DP_EV_REDUCED, /* u.reduced: a part was added up, and its result is a durable object here */
    DP_EV_EARLY, /* u.early: a part of the coming publication is a durable object here, kept until OBJECT_KEEP or _DROP */
    DP_EV_JUDGED /* u.judged: what an update would do was measured */
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

typedef enum dp_order_kind {
    DP_ORDER_REVOKE = 1, /* peer: put out, by the root key where it is here, else as an admin */
    DP_ORDER_FORK, /* begin the chain anew after its head, with the voters that can be reached, or, back, after an earlier round, with
                      this node as its voter; root key */
    DP_ORDER_MERGE, /* of two chains begun anew this node's goes on, the other ends and joins it; root key */
    DP_ORDER_REVOKE_INVITE, /* invite: admits nobody any more, by the root key or as an admin; members: who came by it is put out */
    DP_ORDER_ROTATE         /* secret: the join secret of the next epoch */
} dp_order_kind;

/* The answer is filled in during the step: a status, and a sentence where there is more to say. */
typedef struct dp_order {
    dp_order_kind kind;
    dp_peer peer;
    /* REVOKE_INVITE. until_ms: the end of its window; UINT64_MAX: not known. */
    dp_invite_id invite;
    uint64_t until_ms;
    bool members;
    /* FORK. back: to a state of which this node has a checkpoint; the slot that made it, and its certified root. */
    bool back;
    uint64_t round;
    uint64_t slot;
    dp_hash state_root;
    const uint8_t *secret; /* ROTATE: 16 random bytes */
    dp_status *status;
    dp_why *why;
} dp_order;

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
            dp_peer peer;          /* OBJECT_INFO: who told */
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
            uint64_t round;
            uint32_t steps; /* since the last publication or freeze */
            uint64_t tokens;
            uint64_t step_us; /* measured wall time of one optimizer step */
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
            uint32_t part;
            uint32_t first; /* as in dp_apply_item */
            uint32_t end;
            dp_hash root;
            uint64_t bytes;
        } early;
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
        dp_order order;
    } u;
} dp_event;

/* ---- actions ---- */

typedef enum dp_action_type {
    DP_DO_SEND = 1, /* u.send: one message on the control link; dropped if there is no link */
    DP_DO_DIAL,   /* u.dial: try these addresses in order; LINK_UP or LINK_DOWN(REFUSED) follows */
    DP_DO_HANGUP, /* u.peer */
    DP_DO_STORE,  /* u.store */
    DP_DO_OBJECT_BEGIN, /* u.object: get ready to store this object's chunks (size and leaves known) */
    DP_DO_OBJECT_KEEP, /* u.keep: hold the object until DP_DO_OBJECT_DROP of the same root and use */
    DP_DO_OBJECT_DROP,
    DP_DO_GET_INFO, /* u.get: ask a peer for size and leaves; answer: DP_EV_OBJECT_INFO or nothing */
    DP_DO_GET_CHUNK,     /* u.get: ask a peer for one chunk; answer: DP_EV_CHUNK or nothing */
    DP_DO_SERVE_INFO,    /* u.get: a peer asks for size and leaves */
    DP_DO_SERVE_CHUNK,   /* u.get: a peer asks for one chunk */
    DP_DO_SERVE_RECORDS, /* u.serve: send RECORDS messages with records from..from+count-1 (wire.h) */
    DP_DO_SERVE_MANIFEST, /* u.peer */
    DP_DO_TRAINER_OPEN, /* tokenizer and data objects are whole: start the trainer; answer: TRAINER_UP */
    DP_DO_TRAINER_INIT,    /* theta from the seed; answer: TRAINER_AT round 0 */
    DP_DO_TRAINER_LOAD,    /* u.load: theta from this object; answer: TRAINER_AT */
    DP_DO_TRAINER_RESTORE, /* u.restore: bring back a, as settled; no answer */
    DP_DO_TRAIN,           /* u.train: local steps towards this round; TRAINED events follow */
    DP_DO_TRAIN_STOP,      /* paused */
    DP_DO_PUBLISH,         /* u.publish; answer: PUBLISHED */
    DP_DO_CHECK,           /* u.check; answer: CHECKED */
    DP_DO_APPLY,           /* u.apply; answer: APPLIED */
    DP_DO_FREEZE,          /* u.mix.exchange; answer: FROZEN */
    DP_DO_MIX,             /* u.mix; answer: MIXED */
    DP_DO_SAVE, /* u.save: make a checkpoint of the state just applied (cadence is the driver's) */
    DP_DO_NOTE, /* u.note: something a person may ask about later */
    DP_DO_HALT, /* u.note: proof of a double vote; keep state, stop committing */
    DP_DO_REOPEN, /* close this node and open it anew from what is durable, as after a crash: it hears no more events */
    DP_DO_REDUCE, /* u.reduce: a part of the round; answer: REDUCED */
    DP_DO_JUDGE, /* u.judge: measure what an update that was checked would do, in the order of commands to the trainer; answer: JUDGED, once for
                   each, with failed where the object or a trainer is missing, the trainer could not, or more than 32 are under way.
                   TRAINER_DOWN ends those under way without one */
    DP_DO_RENEWED, /* u.renewal: to be kept, and shown to peers from now on */
    DP_DO_SECRETS  /* u.secrets: to be kept, and used when they are */
} dp_action_type;

/* What one durable write holds. Each row replaces the earlier one of its kind, except DECIDED, which appends. */
typedef enum dp_store_kind {
    DP_STORE_VOTE =
        1, /* {slot, promised, accepted ballot, accepted record} of the slot being voted on */
    DP_STORE_DECIDED, /* record and certificate of a slot; chain head = slot. Also drops the vote row of that slot */
    DP_STORE_PENDING,  /* the publication under way */
    DP_STORE_EXCHANGE, /* one row of the pair-exchange journal, by exchange id */
    DP_STORE_PROOF,    /* that a voter voted twice; outlives everything but a FORK */
    DP_STORE_FORK /* like DECIDED, for a FORK record: the records from its slot on go, and the checkpoints of rounds above u.store.round;
                   * all in one transaction */
} dp_store_kind;

/* Why an object is held. A blob is kept until its round is older than the window; a state while it is a checkpoint. */
typedef enum dp_object_use {
    DP_USE_BLOB = 1,
    DP_USE_STATE,
    DP_USE_DATA,
    DP_USE_PENDING,
    DP_USE_EXCHANGE
} dp_object_use;

enum { DP_REDUCE_SUM = 64 }; /* above any part */

typedef enum dp_to { DP_TO_PEER = 1, DP_TO_ALL /* every linked peer */ } dp_to;

/* Everything that `dpnode why`, `rounds` and the log are answered from. Names: dp_note_name(). */
typedef enum dp_note_code {
    DP_NOTE_MODE = 1,     /* a: old mode, b: new mode, cause */
    DP_NOTE_ROUND_OPENED, /* round */
    DP_NOTE_PUBLISHED,    /* round, a: bytes, b: tokens */
    DP_NOTE_READY,        /* round, peer */
    DP_NOTE_CLOSED,       /* round, a: listed, b: active; cause: all | first | grace | deadline */
    DP_NOTE_STRAGGLER,    /* round, peer left out; cause: not ready | not held | suspect */
    DP_NOTE_BID,          /* slot in round field, a: ballot */
    DP_NOTE_DECIDED,      /* round, a: listed, b: slot */
    DP_NOTE_COUNTED,      /* round: this node is listed; a: clip Q16 */
    DP_NOTE_LEFT_OUT,     /* round: this node published and is not listed; cause */
    DP_NOTE_APPLIED,      /* round */
    DP_NOTE_CERTIFIED,    /* round: a majority signed the state */
    DP_NOTE_VOTERS,       /* a: old count, b: new count */
    DP_NOTE_ADMITTED,     /* peer */
    DP_NOTE_REMOVED,      /* peer */
    DP_NOTE_MEMBER,       /* peer, a: old state, b: new state, cause */
    DP_NOTE_FETCH,        /* peer, bad or slow source; cause */
    DP_NOTE_CATCHUP,      /* a: from round, b: to round; cause: records | replay | state */
    DP_NOTE_EXCHANGE,  /* peer, a: weight own, b: weight other; cause: done | aborted | in doubt */
    DP_NOTE_DISCARDED, /* a: share of the residual and open work, Q16; cause: lambda */
    DP_NOTE_DIVERGED,  /* round: own state root differs from the certified one; reload */
    DP_NOTE_VOTE_KEY_LOST,
    DP_NOTE_REJECTED, /* peer: a message or record was refused; cause */
    DP_NOTE_JUDGED, /* round, peer: its update was measured; a: the size of the alignment, Q16; cause: its sign */
    DP_NOTE_ADOPTED, /* round that the chain goes back to, a: records, b: rounds that went; cause: fork */
    DP_NOTE_NO_SECRET, /* a: the epoch whose join secret is not here */
    DP_NOTE_CODE_COUNT
} dp_note_code;

typedef struct dp_note {
    dp_note_code code;
    uint64_t round;
    dp_peer peer; /* zero if none */
    uint64_t a;
    uint64_t b;
    const char *cause; /* static text, never NULL */
} dp_note;

/* One contribution as APPLY needs it, in order of peer key. */
typedef struct dp_apply_item {
    dp_hash root;
    uint64_t bytes;
    uint32_t q;     /* Q31 share of the outer step */
    uint32_t first; /* shares of the vector that it is of, in 1/65536: 0 .. 65536 of all */
    uint32_t end;
} dp_apply_item;

typedef struct dp_action {
    dp_action_type type;
    union {
        dp_peer peer;
        struct {
            dp_to to;
            dp_peer peer;
            dp_view bytes;
        } send;
        struct {
            dp_peer peer;
            uint32_t n_addrs;
            dp_addr addrs[DP_ADDRS_MAX];
        } dial;
        struct {
            uint32_t op;
            dp_store_kind kind;
            uint64_t slot;        /* VOTE, DECIDED, FORK */
            uint64_t round;       /* FORK */
            dp_view bytes;        /* the row, encoded by gossip/ (opaque to the driver) */
            dp_view cert;         /* DECIDED, FORK: bytes is the record, cert its certificate */
            uint8_t exchange[16]; /* EXCHANGE: key of the row; empty bytes delete it */
            dp_hash keep
                [3]; /* PENDING, EXCHANGE: objects that the row needs; zero if none. The objects that the
                                         replaced row needed may be dropped in the same transaction */
        } store;
        struct {
            dp_hash root;
            uint64_t size;
            const dp_hash *leaves;
            dp_object_use use;
        } object;
        struct {
            dp_hash root;
            uint32_t first; /* as in dp_apply_item */
            uint32_t end;
            uint32_t keep; /* as in publish, of its round */
        } check;
        struct {
            dp_hash root;
            uint32_t keep;   /* as in check */
            uint32_t scale;  /* Q16: what clipping leaves, without alpha and the codec's gain */
            uint32_t tokens; /* to measure a gain on, at most, of each kind; 0: no gain */
            uint64_t seed;   /* draws the windows */
            dp_peer peer;    /* the author, and what it says it trained on: */
            uint64_t own;    /* samples of its own line, from this one on, */
            uint64_t own_count;
            uint32_t n_ranges; /* and these */
            dp_sample_range ranges[DP_LEASE_RANGES_MAX];
        } judge;
        struct {
            uint64_t round;
            uint32_t part;  /* and DP_REDUCE_SUM where it is a sum of a site, not the result */
            uint32_t first; /* as in dp_apply_item */
            uint32_t end;
            uint32_t n_items;
            dp_apply_item items[DP_LISTED_STANDARD]; /* q: Q31 share of the mean */
        } reduce;
        struct {
            dp_hash root;
            dp_object_use use;
            uint64_t round;
        } keep;
        struct {
            dp_peer peer;
            dp_hash root;
            uint32_t index;
            uint32_t ahead; /* GET_INFO: when it answers it will be asked for so many chunks, the
                               first ones: who likes asks for them at once (spread.h) */
        } get;
        struct {
            dp_peer peer;
            uint64_t from;
            uint32_t count;
        } serve;
        struct {
            uint64_t round;
            dp_hash root;
        } load;
        struct {
            bool frozen; /* else the pending publication */
            uint64_t round;
            dp_hash a_root; /* or F */
            dp_hash blob_root;
            dp_hash
                ready_root;    /* of the publication in records; blob_root but in rounds of parts */
            dp_part_cuts cuts; /* of its round */
            uint32_t taken;    /* included: bit p, part p counts it */
            uint32_t settle;   /* dp_settle of base/trainer_msg.h */
            uint32_t clip;     /* Q16 */
            uint32_t lambda;   /* Q16 */
            uint32_t steps;    /* that F holds: its weight comes back with it; 0 of a publication */
            uint64_t tokens; /* that F holds, or that the publication told, carried ones included */
        } restore;
        struct {
            uint64_t round;
            uint64_t tokens; /* committed so far */
            dp_reach reach;  /* whose trainer stands before it goes on from here */
            uint32_t n_ranges;
            dp_sample_range ranges
                [DP_LEASE_RANGES_MAX]; /* of the lease, from reach on; after them the own line */
            dp_part_cuts cuts;         /* n > 0: EARLY events may tell of parts, cut so */
        } train;
        struct {
            uint64_t round;
            bool dense;    /* after long gossip */
            uint32_t keep; /* of a run with a span of densities (density.h); 0: the manifest's */
            dp_part_cuts cuts; /* n > 0: an object for each part */
        } publish;
        struct {
            uint64_t round;
            uint64_t tokens;       /* committed, this round included */
            uint32_t alpha;        /* Q16 */
            uint32_t settle;       /* dp_settle: what became of the own pending publication */
            uint32_t clip;         /* Q16, when included */
            uint32_t lambda;       /* Q16 */
            dp_part_cuts cuts;     /* of a round of parts */
            uint32_t taken;        /* included in a round of parts: bit p, part p counts it */
            uint32_t contributors; /* publications that the record lists */
            uint32_t n_items;      /* up to DP_LISTED_MAX */
            const dp_apply_item *items;
        } apply;
        struct {
            uint8_t exchange[16];
            dp_hash own_root;
            dp_hash other_root;
            uint64_t weight_own;
            uint64_t weight_other;
            uint32_t damp;   /* Q16: the same on both sides */
            uint32_t lambda; /* Q16: MIX adds F so, as it was scaled since FREEZE, and damped */
        } mix;
        struct {
            uint64_t round;
            uint64_t slot;
            dp_hash state_root; /* certified root, covers tensor root and ledger */
            dp_hash tensor_root;
            bool must; /* whatever the cadence */
        } save;
        dp_note note;
        dp_renewal renewal;
        dp_secrets secrets;
    } u;
} dp_action;

typedef struct dp_actions {
    uint32_t count;
    dp_action items[DP_ACTIONS_MAX];
} dp_actions;

/* ---- the node ---- */

typedef struct dp_node dp_node;

typedef struct dp_node_config {
    const dp_manifest *manifest; /* copied */
    dp_run_id run;
    dp_peer self;
    uint64_t incarnation;        /* durable and greater than ever before */
    dp_view credential;          /* own membership proof; copied */
    uint64_t certified_from_ms;  /* the time of its certificate, unix ms; */
    uint64_t certified_until_ms; /* ... 0: not known, and it is not renewed */
    dp_renewal renewal;          /* kept from an earlier life; until_ms 0: none */
    dp_secrets secrets;          /* join secrets, of the token or kept */
    bool has_vote_key;           /* crypto can sign with DP_KEY_VOTE */
    uint8_t vote_public_key[DP_PUBLIC_KEY_BYTES];
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX]; /* where others reach this node */
    char name[DP_NAME_MAX + 1];  /* of the node, for people */
    uint32_t members_max;        /* memory is sized by it; at most DP_MEMBERS_MAX */
    uint64_t seed;               /* of the node's own random choices */
    bool observer;               /* holds and serves, never trains */
    bool early;                  /* of gradients: told of parts before their publication is whole */
    bool one_level; /* every result of a part is fetched from its owner, however far that is */
    dp_crypto crypto;
    dp_admission admission; /* check NULL: certificates, dp_admission_certs() */
} dp_node_config;

/* All memory is taken here. DP_NOMEM, DP_BADARG. */
DP_MUST dp_status dp_node_open(dp_node **node, const dp_node_config *config);
void dp_node_close(dp_node *node);

/* What was durable, each before DP_EV_START, in this order: records 1..head, then the others where they exist. */
DP_MUST dp_status dp_node_restore_record(dp_node *node, uint64_t slot, dp_view record,
                                         dp_view cert);
DP_MUST dp_status dp_node_restore_vote(dp_node *node, dp_view row);
DP_MUST dp_status dp_node_restore_pending(dp_node *node, dp_view row);
/* Of such a row: the parts of the publication, objects that are to be restored with it; n = 0: it is whole. DP_BADMSG. */
DP_MUST dp_status dp_node_pending_parts(dp_view row, dp_part_list *parts);
DP_MUST dp_status dp_node_restore_proof(dp_node *node, dp_view row);
DP_MUST dp_status dp_node_restore_exchange(dp_node *node, const uint8_t exchange[16], dp_view row);
/* A checkpoint that the store holds whole. */
DP_MUST dp_status dp_node_restore_checkpoint(dp_node *node, uint64_t round,
                                             const dp_hash *tensor_root, uint64_t tensor_bytes);
/* An object that the store holds whole (tokenizer, data, blobs of recent rounds). */
DP_MUST dp_status dp_node_restore_object(dp_node *node, const dp_hash *root, uint64_t size);
/* A state that an earlier life was fetching; chunks of it are here. */
void dp_node_restore_part(dp_node *node, const dp_hash *root);
/* A member met before, to dial. */
DP_MUST dp_status dp_node_restore_peer(dp_node *node, const dp_peer *peer, const dp_addr *addrs,
                                       uint32_t n_addrs);

/* The one entry. actions is filled from empty. Bounded time; never fails: bad input becomes a note and a counter. */
void dp_node_step(dp_node *node, const dp_event *event, dp_actions *actions);
/* For the simulator: bad luck of these kinds from now on (mask of dp_bug, buggify.h). */
void dp_node_buggify(dp_node *node, uint32_t mask);
/* When the node wants DP_EV_TICK at the latest. */
dp_time dp_node_wake(const dp_node *node);

/* How far a node is that was told DP_COMMAND_LEAVE; dp_leave_state says when. Whoever runs it ends it when it is free. */
typedef enum dp_leaving {
    DP_LEAVING_NOT = 0, /* it was not told to */
    DP_LEAVING_WAITS, /* to be taken out by the chain, or for those who vote after it to have that record */
    DP_LEAVING_FREE,
    DP_LEAVING_NEEDED /* it alone votes, and nobody has taken over: it stays, and goes on asking */
} dp_leaving;

/* ---- looking at it (status, peers, tests; constant or linear time, no side effects) ---- */

typedef struct dp_node_view {
    dp_mode mode;
    uint64_t slot; /* chain head */
    dp_hash head;
    uint64_t round;     /* rounds decided */
    uint64_t applied;   /* round whose state the trainer holds */
    dp_hash state_root; /* of applied; zero before */
    uint64_t tokens;    /* committed */
    uint32_t members;   /* in the roster */
    uint32_t alive;     /* alive members, this node included */
    uint32_t idle;      /* of these, this node and those with a link that have no trainer now */
    uint32_t voters;
    bool is_voter;
    dp_peer ballot_owner; /* of the highest ballot met in the slot under way; zero before a run */
    bool quorum;          /* a majority of voters is heard */
    bool training;
    dp_peer culprit;       /* of the double vote that HALTED is about; zero if none */
    uint32_t listed_last;  /* contributors of the last ROUND record */
    uint64_t exchanges;    /* pair exchanges done */
    uint64_t rejected;     /* messages and blobs refused */
    uint64_t early_told;   /* of parts: of others' publications, that were told before these; */
    uint64_t early_here;   /* and were here, and right, when their READY came */
    uint32_t near;         /* in rounds of parts: members that results from afar are shared with; */
    uint64_t sums_made;    /* of parts of all near, for owners far away, since the start; */
    uint64_t sums_taken;   /* ... of others, that are in parts which this node has added up */
    uint64_t results_near; /* such results that one of them was asked for, since the start */
    uint64_t diverged;     /* states of the own trainer that were not the certified ones */
    uint64_t bytes_waiting; /* still to come of objects being fetched */
    uint64_t bytes_wanted;  /* their whole sizes */
    uint32_t sources;       /* peers that chunks are under way from */
    uint64_t chunks;        /* that came from peers, ever; */
    uint64_t chunks_hedged; /* and were asked of a second holder because the first was late */
    dp_leaving leaving;     /* whether this node may end for good */
} dp_node_view;

void dp_node_look(const dp_node *node, dp_node_view *view);
/* One element of so many travels in updates of this round, the one to come or the newest; 0: of another one, or in a run whose
 * manifest has no span of densities (density.h). */
uint32_t dp_node_keep(const dp_node *node, uint64_t round);
/* Whether the object is here, whole. */
bool dp_node_holds(const dp_node *node, const dp_hash *root);
/* Why the run does not count this node: DP_OK while nothing speaks against it, DP_DENIED: it never will, DP_TOOBIG: there is no
 * place now. By the chain as known here; a newcomer that has caught up can trust it. About 100 us. */
DP_MUST dp_status dp_node_refused(const dp_node *node, dp_why *why);

typedef struct dp_member_view {
    dp_peer peer;
    dp_member_state state;
    bool linked;
    bool in_roster;
    bool voter;
    uint32_t caps;
    uint64_t incarnation;
    uint64_t rtt_us;   /* 0: unknown */
    uint64_t round;    /* last heard */
    uint64_t included; /* last round that lists it; 0: never */
    uint32_t step_us;
    uint32_t n_addrs;
    dp_addr addrs[DP_ADDRS_MAX];
} dp_member_view;

/* index < count given back by the first call; false beyond. This node is index 0. */
bool dp_node_member(const dp_node *node, uint32_t index, dp_member_view *view);

/* Is it a member by the chain? Then x_public is the static key that it was admitted with; untouched where that is not known. A
 * node that is joining knows nobody yet and says yes. */
bool dp_node_admitted(const dp_node *node, const dp_peer *peer, uint8_t x_public[32]);

/* A row of the roster: who came by which invite, and what became of it. */
typedef struct dp_roster_view {
    dp_peer peer;
    dp_invite_id invite;       /* zero: none, of the founder and of who the root key certified */
    dp_invite_id invite_above; /* by which the node that made its invite came; zero: none */
    uint32_t gone;             /* dp_remove_reason; 0: a member */
} dp_roster_view;

/* False: index is beyond the last. Those gone are there until their row is another's. */
bool dp_node_roster(const dp_node *node, uint32_t index, dp_roster_view *view);

typedef enum dp_invite_state {
    DP_INVITE_STANDS = 0, /* nothing is known against it */
    DP_INVITE_REVOKING,   /* a word about it waits for the next record */
    DP_INVITE_REVOKED     /* by the chain */
} dp_invite_state;

dp_invite_state dp_node_invite(const dp_node *node, const dp_invite_id *id);
/* The ids that the chain has revoked, in no order; false: index is beyond the last. */
bool dp_node_revoked_invite(const dp_node *node, uint32_t index, dp_invite_id *id);

/* Has the certificate of this peer, which has ended, been renewed? By the chain as known here; a newcomer believes any member. */
bool dp_node_renewed(const dp_node *node, const dp_renewal *renewal, const dp_peer *peer,
                     uint64_t now_ms);

/* As a member that no link joins told it through others; empty: not known. Lent until the next step. */
const char *dp_node_peer_name(const dp_node *node, const dp_peer *peer);

const char *dp_note_name(dp_note_code code); /* "round.decided": stable */
const char *dp_mode_name(dp_mode mode);
const char *dp_member_state_name(dp_member_state state);

/* Walks every structure; for tests and DP_PARANOID builds. DP_CORRUPT with a sentence. */
DP_MUST dp_status dp_node_check(const dp_node *node, dp_why *why);

#endif
