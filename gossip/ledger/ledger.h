/* The ledger: members, voters, tokens and head, as a pure function of the records applied so far.
 * It holds no record and judges none (valid.h); it knows nothing of links, clocks or which members
 * are alive.
 *
 * Genesis: the founder is the only member (every capability) and the only voter; head and base are
 * the run id. */
#ifndef DP_GOSSIP_LEDGER_LEDGER_H
#define DP_GOSSIP_LEDGER_LEDGER_H

#include "base/map.h"
#include "gossip/identity/admission.h"
#include "gossip/identity/rotation.h"
#include "gossip/ledger/density.h"
#include "gossip/ledger/lease.h"
#include "gossip/ledger/pace.h"
#include "gossip/record/record.h"

enum {
    DP_REVOKED_INVITES_MAX = 256,
    DP_NOBODY = UINT32_MAX >> 1,
    DP_FORMER_MAX = 1024, /* rows of the roster beyond members.max: of those gone */
    DP_FORKS_MAX = 8,
    DP_GAP_MAX =
        16 /* rounds without a trace of a member, after which its work is worth 0 (SAFETY B8) */
};

typedef struct dp_roster_entry {
    dp_peer peer;
    uint32_t caps;
    dp_invite_id invite;     /* it joined by; zero for the founder */
    uint64_t admitted_slot;  /* 0 for the founder */
    uint64_t admitted_round; /* rounds decided with its admission: its work comes after them */
    uint64_t included;       /* last round of which a publication counts; 0: none */
    uint64_t touched;        /* last round that lists it or calls it late; 0: none */
    uint64_t w;              /* clamped weight in the last round that lists it */
    uint64_t counted_ms;     /* time of the record that listed it last, or admitted it */
    uint64_t owed;           /* tokens that it told and that did not count yet (pace.h) */
    uint64_t owed_round;     /* the round that left the first of them over */
    uint64_t fenced;         /* exchanges of incarnations up to this are void; 0: none */
    uint32_t gone;           /* dp_remove_reason, 0: a member */
    uint64_t gone_slot;      /* of the record that says so */
    bool strict;             /* its invite has a number of uses, and this is one */
    uint64_t until_ms;       /* after this nobody is admitted by that invite; 0: not known */
    dp_lease lease;          /* empty when gone */
    /* static key in the channel that it was admitted with; not in the digest; zero: not known */
    uint8_t x_public[32];
    /* by which the node that made its invite joined; not in the digest; zero: none */
    dp_invite_id invite_above;
} dp_roster_entry;

typedef struct dp_revoked_invite {
    dp_invite_id id;
    uint64_t until_ms; /* then it may be forgotten */
    uint64_t slot;     /* of the record that says so */
} dp_revoked_invite;

/* To read; written by this file only. */
typedef struct dp_ledger {
    dp_run_id run;
    uint8_t root_key[DP_PUBLIC_KEY_BYTES];
    uint32_t voters_max;
    uint32_t alpha;      /* Q16, of the manifest */
    bool unclipped;      /* a mean of gradients: by the manifest nothing is clipped */
    bool stale;          /* a late update may count in the next round: by the manifest */
    uint32_t listed_max; /* contributions in one record, by the manifest: 32, or more, in lists */
    dp_hash fork;
    /* ids that were the fork before it, oldest first; the oldest may be forgotten */
    uint32_t n_forks;
    dp_hash forks[DP_FORKS_MAX];
    uint64_t slot;
    dp_hash head;
    uint64_t time_ms; /* of the head */
    uint64_t round;
    dp_hash base;
    /* Base and state that the READYs of round named, to judge those that came too late (stale); not
     * after a FORK. */
    bool has_before;
    dp_hash base_before;
    dp_hash state_before;
    uint64_t tokens;
    unsigned __int128 clip_median;
    dp_density density;
    dp_pace pace;
    uint32_t n_voters;
    dp_voter voters[DP_VOTERS_MAX]; /* in peer order */
    uint32_t n_roster;              /* entries, those gone included until their row is another's */
    uint32_t n_members;             /* those not gone */
    uint32_t capacity;              /* most members, from the manifest */
    uint32_t rows_max;              /* of the roster */
    bool judges;                    /* from the manifest: voters judge updates (judge.h) */
    uint64_t absent_ms;             /* from the manifest; 0: nobody is put out for being away */
    uint32_t context;               /* tokens of a sample, from the manifest */
    uint64_t pass;                  /* samples of a pass, from the manifest; 0: not known */
    bool parted;                    /* by the manifest: rounds are of parts (part.h) */
    bool summed;                    /* by the manifest: parts may name sums of sites (part_sum.h) */
    dp_part_layout layout;          /* parted: of the round to come */
    uint64_t w_median;    /* parted: lower median of w in the last ROUND record; 0: none */
    uint32_t rate_median; /* parted: of the rates in it; 0: unknown */
    dp_lease_pool pool;
    bool judges_invites; /* this and the list are of inviting.h */
    uint32_t n_revoked;
    dp_revoked_invite revoked[DP_REVOKED_INVITES_MAX];
    dp_epoch epoch; /* of the join secret */
    dp_roster_entry *roster;
    dp_map map;
} dp_ledger;

/* seed keys the hash map; it changes nothing that one can see. */
DP_MUST dp_status dp_ledger_open(dp_ledger *ledger, const dp_manifest *manifest,
                                 const dp_run_id *run, uint64_t seed);
void dp_ledger_close(dp_ledger *ledger);
/* Do its ROUND records name lists (listing.h)? By the manifest. */
bool dp_ledger_lists(const dp_ledger *ledger);

/* DP_NOBODY if this peer was never admitted. */
uint32_t dp_ledger_find(const dp_ledger *ledger, const dp_peer *peer);
/* The entry of a present member, else NULL. */
const dp_roster_entry *dp_ledger_member(const dp_ledger *ledger, const dp_peer *peer);
/* Index in voters, or DP_NOBODY. */
uint32_t dp_ledger_voter(const dp_ledger *ledger, const dp_peer *peer);
/* Was this the fork before the present one, or before that? */
bool dp_ledger_was_fork(const dp_ledger *ledger, const dp_hash *fork);
/* Voters that make a majority. */
uint32_t dp_ledger_majority(const dp_ledger *ledger);
/* Others than this peer that were ever admitted by this invite. */
uint32_t dp_ledger_uses(const dp_ledger *ledger, const dp_invite_id *invite, const dp_peer *peer);

/* roster.c. Has it left, or was it revoked? Then nobody admits it again. */
bool dp_ledger_barred(const dp_ledger *ledger, const dp_peer *peer);
/* It left no trace for so many rounds (DP_GAP_MAX) that its work since then is worth nothing. */
bool dp_ledger_is_forgotten(const dp_ledger *ledger, const dp_roster_entry *entry);
/* May a record of this time put it out to make room? */
bool dp_ledger_is_absent(const dp_ledger *ledger, const dp_roster_entry *entry, uint64_t time_ms);
/* When the first of those away may be put out, unix ms; UINT64_MAX: nobody is away. */
uint64_t dp_ledger_next_absent(const dp_ledger *ledger);
/* Is there room for a record with so many admissions and removals? */
bool dp_ledger_has_place(const dp_ledger *ledger, uint32_t n_admits, uint32_t n_removes);
/* Rows for identities that are new, counted up to DP_CONFIG_ADMIT_MAX. */
uint32_t dp_ledger_rows_left(const dp_ledger *ledger);
/* The row of a new member, or of one that was put out for being away and comes back; for
 * ledger.c. */
dp_roster_entry *dp_ledger_admit(dp_ledger *ledger, const dp_peer *peer);

/* May this key remove this member? The root key may remove any member; an admin may remove members
 * that are not admins. */
bool dp_ledger_may_revoke(const dp_ledger *ledger, const dp_peer *by, const dp_peer *peer);
/* k of the clip rule: rounds that a contribution of this member to round may hold, 1..4. entry
 * NULL: being admitted. */
uint32_t dp_ledger_rounds(const dp_roster_entry *entry, uint64_t round);
/* May a publication of the newest round that it does not list count in the next one, with age 1
 * (mode stale)? Only of a member that was admitted before that round was decided, so that its work
 * is distinct from a new member's first, and that left a trace lately, so that its samples are
 * still its own. */
bool dp_ledger_may_be_stale(const dp_ledger *ledger, const dp_peer *peer);
/* May this member stand in the late list of this round? */
bool dp_ledger_may_be_late(const dp_ledger *ledger, const dp_roster_entry *entry, uint64_t round);

/* The lease of a member, or of one that was put out for being away, which has nothing left; NULL:
 * none, as of a newcomer. */
const dp_lease *dp_ledger_lease(const dp_ledger *ledger, const dp_peer *peer);

/* Tokens of each contribution that count (pace.h), by the record and the ledger before it. Returns
 * the total after it. */
uint64_t dp_ledger_counted(const dp_ledger *ledger, const dp_record *record,
                           uint64_t counted[DP_LISTED_MAX]);

/* The next record. It must be valid for this ledger (asserted as far as it is cheap). caps and
 * invites of admitted peers come from the admission check, in the order of the record's list. */
void dp_ledger_apply(dp_ledger *ledger, const dp_record *record, const dp_hash *hash,
                     const dp_admitted *admitted);

/* The id of the fork that a FORK record with this hash begins: the hash, not a counter, since two
 * holders of the root key in two partitions begin two forks (SAFETY A10). */
dp_hash dp_fork_id(const dp_ledger *ledger, const dp_hash *hash);

/* Canonical digest of everything above: H("dpnode/ledger/2", ...). Linear in the roster. */
dp_hash dp_ledger_digest(const dp_ledger *ledger);
/* H("dpnode/state/1", u64 t | tensor root | ledger digest right after the record of round t). */
dp_hash dp_state_root(uint64_t round, const dp_hash *tensor_root, const dp_hash *ledger_digest);

#endif
