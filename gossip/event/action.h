/* Actions: a step of a node asks the driver for them, and the driver carries them out in their
 * order (node.h). Everything that an action points to is valid until the next step. */
#ifndef DP_GOSSIP_EVENT_ACTION_H
#define DP_GOSSIP_EVENT_ACTION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/digest.h"
#include "base/run/part_cuts.h"
#include "base/run/reach.h"
#include "gossip/core/address.h"
#include "gossip/core/id.h"
#include "gossip/core/limits.h"
#include "gossip/identity/renewal.h"
#include "gossip/identity/rotation.h"
#include "gossip/record/part.h"

typedef enum dp_action_type {
    DP_DO_SEND = 1, /* u.send: one message on the control link; dropped if there is no link */
    DP_DO_DIAL,   /* u.dial: try these addresses in order; LINK_UP or LINK_DOWN(REFUSED) follows */
    DP_DO_HANGUP, /* u.peer */
    DP_DO_STORE,  /* u.store */
    /* u.object: get ready to store this object's chunks (size and leaves known) */
    DP_DO_OBJECT_BEGIN,
    /* u.keep: hold the object until DP_DO_OBJECT_DROP of the same root and use */
    DP_DO_OBJECT_KEEP,
    DP_DO_OBJECT_DROP,
    /* u.get: ask a peer for size and leaves; answer: DP_EV_OBJECT_INFO or nothing */
    DP_DO_GET_INFO,
    DP_DO_GET_CHUNK,   /* u.get: ask a peer for one chunk; answer: DP_EV_CHUNK or nothing */
    DP_DO_SERVE_INFO,  /* u.get: a peer asks for size and leaves */
    DP_DO_SERVE_CHUNK, /* u.get: a peer asks for one chunk */
    /* u.serve: send RECORDS messages with records from..from+count-1 (wire.h) */
    DP_DO_SERVE_RECORDS,
    DP_DO_SERVE_MANIFEST, /* u.peer */
    /* tokenizer and data objects are whole: start the trainer; answer: TRAINER_UP */
    DP_DO_TRAINER_OPEN,
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
    /* u.save: make a checkpoint of the trainer's state: the one just applied, or one that was
     * loaded and is a whole object here. The cadence is the driver's. Answer: SAVED, or nothing;
     * then it is asked again */
    DP_DO_SAVE,
    DP_DO_NOTE, /* u.note: something a person may ask about later */
    DP_DO_HALT, /* u.note: proof of a double vote; keep state, stop committing */
    /* close this node and open it anew from what is durable, as after a crash: it hears no more
     * events */
    DP_DO_REOPEN,
    DP_DO_REDUCE, /* u.reduce: a part of the round; answer: REDUCED */
    /* u.judge: measure the effect of a checked update, in the order of commands to the trainer;
     * answer: JUDGED, once for each, with failed where the object or a trainer is missing, the
     * trainer could not, or more than 32 are under way. TRAINER_DOWN ends those under way without
     * one */
    DP_DO_JUDGE,
    DP_DO_RENEWED, /* u.renewal: to be kept, and shown to peers from now on */
    DP_DO_SECRETS  /* u.secrets: to be kept, and used when they are */
} dp_action_type;

/* Kinds of durable write. Each row replaces the earlier one of its kind, except DECIDED, which
 * appends. */
typedef enum dp_store_kind {
    DP_STORE_VOTE =
        1, /* {slot, promised, accepted ballot, accepted record} of the slot being voted on */
    /* record and certificate of a slot; chain head = slot. Also drops the vote row of that slot */
    DP_STORE_DECIDED,
    DP_STORE_PENDING,  /* the publication under way */
    DP_STORE_EXCHANGE, /* one row of the pair-exchange journal, by exchange id */
    DP_STORE_PROOF,    /* that a voter voted twice; outlives everything but a FORK */
    /* like DECIDED, for a FORK record: the records from its slot on go, and the checkpoints of
     * rounds above u.store.round; all in one transaction */
    DP_STORE_FORK
} dp_store_kind;

/* Why an object is held. A blob is kept until its round is older than the window; a state while it
 * is a checkpoint. */
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
    DP_NOTE_STRAGGLER,    /* round, peer that is left out; cause */
    DP_NOTE_BID,          /* slot in round field, a: ballot */
    DP_NOTE_DECIDED,      /* round, a: listed, b: slot */
    DP_NOTE_COUNTED,      /* round: this node is listed; a: clip Q16 */
    DP_NOTE_LEFT_OUT,     /* round: this node published and is not listed; cause */
    DP_NOTE_APPLIED,      /* round */
    DP_NOTE_CERTIFIED,    /* round: a majority signed the state */
    DP_NOTE_VOTERS,       /* a: old count, b: new count */
    DP_NOTE_ADMITTED,     /* peer */
    DP_NOTE_REMOVED,      /* peer; cause: left | revoked | harmful | absent */
    DP_NOTE_MEMBER,       /* peer, a: old state, b: new state, cause */
    DP_NOTE_FETCH,        /* peer, bad or slow source; cause */
    DP_NOTE_CATCHUP,      /* a: from round, b: to round; cause */
    DP_NOTE_EXCHANGE,  /* peer, a: weight own, b: weight other; cause: done | aborted | in doubt */
    DP_NOTE_DISCARDED, /* a: share of the residual and open work, Q16; cause: lambda */
    DP_NOTE_DIVERGED,  /* round: own state root differs from the certified one; reload */
    DP_NOTE_VOTE_KEY_LOST,
    DP_NOTE_REJECTED, /* peer: a message or record was refused; cause */
    /* round, peer: its update was measured; a: the size of the alignment, Q16; cause: its sign */
    DP_NOTE_JUDGED,
    /* round that the chain goes back to, a: records, b: rounds that went; cause: fork */
    DP_NOTE_ADOPTED,
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
            /* PENDING, EXCHANGE: objects that the row needs; zero if none. The objects that the
             * replaced row needed may be dropped in the same transaction */
            dp_hash keep[3];
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
            dp_peer peer;    /* the author and the training that it reports: */
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
            dp_apply_item items[DP_LISTED_DEFAULT]; /* q: Q31 share of the mean */
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
            /* GET_INFO: after the answer so many chunks, the first ones, are requested; they may be
             * requested at once (picker.h) */
            uint32_t ahead;
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
            dp_hash ready_root; /* that records name; of parts not blob_root */
            dp_part_cuts cuts;  /* of its round */
            uint32_t taken;     /* included: bit p, part p counts it */
            uint32_t settle;    /* dp_settle of base/trainer/trainer_msg.h */
            uint32_t clip;      /* Q16 */
            uint32_t lambda;    /* Q16 */
            uint32_t steps;     /* that F holds, so that its weight comes back, or that it told */
            uint64_t tokens;    /* the same, with those that it carried: */
            uint64_t carried;
        } restore;
        struct {
            uint64_t round;
            uint64_t tokens; /* committed so far */
            dp_reach reach;  /* where the trainer continues */
            uint32_t n_ranges;
            /* of the lease, from reach on; after them the own line */
            dp_sample_range ranges[DP_LEASE_RANGES_MAX];
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
            uint32_t settle;       /* dp_settle: the outcome of the own pending publication */
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
            bool must; /* at any cadence */
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

const char *dp_note_name(dp_note_code code); /* "round.decided": stable */

#endif
