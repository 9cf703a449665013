/* The books of the judge, shared by its files: chain and model, votes, mass. */
#ifndef DP_SIM_ORACLE_INTERNAL_H
#define DP_SIM_ORACLE_INTERNAL_H

#include "gossip/record/record.h"
#include "tests/sim/oracle.h"
#include "tests/sim/oracle_lives.h"

enum { DP_ORACLE_NOTES_MAX = 64, DP_ORACLE_TICKETS = 8, DP_ORACLE_LISTS = 2 * DP_LISTS_MAX };

/* One record hash in one ballot. */
typedef struct dp_ballot_book {
    uint32_t ballot;
    dp_hash hash;
    uint8_t accepted; /* bit per voter whose ACCEPTED was sent */
    uint8_t *record;  /* from a PROPOSE; NULL if none was seen */
    uint32_t record_size;
} dp_ballot_book;

typedef struct dp_slot_book {
    dp_ballot_book *ballots;
    uint32_t n_ballots;
    uint32_t capacity;
    uint32_t promised[DP_VOTERS_MAX]; /* highest PROMISE sent, + 1 */
    bool decided;
    dp_hash hash;      /* when decided */
    uint32_t n_voters; /* of the slot, known once the slot before is decided; 0: unknown */
    dp_peer voters[DP_VOTERS_MAX];
    uint8_t keys[DP_VOTERS_MAX][DP_PUBLIC_KEY_BYTES]; /* their vote keys */
    uint64_t round; /* rounds decided up to here, itself included */
} dp_slot_book;

typedef struct dp_round_book {
    uint64_t slot;
    dp_hash tensor_root;
    dp_hash state_root; /* zero until a record carries it */
    dp_toy_model model;
} dp_round_book;

/* One publication. */
typedef struct dp_root_book {
    dp_hash root;
    uint32_t owner;
    uint64_t listed; /* in the record of this round; 0: none */
    uint32_t clip;
    dp_part_cuts cuts; /* of the round of parts that lists it, */
    uint32_t taken;    /* ... and the parts that count it */
    bool left_out;     /* its owner has taken it back */
} dp_root_book;

/* One publication as its trainer made it. */
typedef struct dp_parcel_book {
    dp_hash root;
    dp_hash blob_root;   /* the same, except in rounds of parts */
    dp_part_list *parts; /* in rounds of parts; else NULL */
    dp_hash a_root;
    uint32_t owner;
    uint32_t number; /* among the publications of its owner, from 1 */
    dp_toy_samples samples;
    uint64_t settled; /* epoch in which it got its outcome, + 1 */
} dp_parcel_book;

/* The trainer of one node. An epoch ends when it dies, or loads a state. */
typedef struct dp_buffer_book {
    uint64_t epoch;
    /* numbers of publications: the newest made, announced, settled in this epoch */
    uint32_t published;
    uint32_t announced;
    uint32_t settled;
    /* Q16: of F since it was frozen, or of the vector that it was brought back from */
    uint32_t kept;
    dp_toy was; /* before the command under way */
} dp_buffer_book;

/* One claim: which root a peer announced for a round on a base. */
typedef struct dp_claim_book {
    uint32_t owner;
    uint64_t round;
    dp_hash base;
    dp_hash root;
    bool forgotten; /* lost with its disk; others, and through them its author, still forward it */
} dp_claim_book;

typedef struct dp_mix_side {
    uint32_t owner;
    dp_hash own_root;
    dp_hash other_root;
    uint64_t w_own;
    uint64_t w_other;
    uint32_t damp;
    dp_toy_vector change;
} dp_mix_side;

typedef struct dp_mix_book {
    uint8_t exchange[16];
    uint32_t n_sides;
    dp_mix_side sides[2];
    struct {
        uint32_t owner;
        uint64_t round; /* of the model that F was frozen against */
    } frozen[2];
    uint32_t n_frozen;
    /* by the journal of its initiator: only the answer of the other side or a fence ends it */
    bool asked;
    bool committed; /* by the journal of the other */
    /* tickets of acceptances that were declared aborted; newest last */
    uint64_t refused[DP_ORACLE_TICKETS];
    bool aborted; /* a journal says so */
    uint32_t aborter;
    /* the object that the aborting side had frozen, and the one that it would have got */
    dp_hash aborted_own;
    dp_hash aborted_other;
} dp_mix_book;

typedef struct dp_member_book {
    bool member;
    uint64_t admitted_round;
    uint64_t included;
    uint64_t w;
    uint64_t stored_slot; /* last DECIDED asked to be stored in this life */
    bool forgot;          /* its disk was lost */
    bool fenced;          /* exchanges with it may be given up */
} dp_member_book;

enum { DP_ORACLE_CHECKED = 128 };

typedef struct dp_row_book {
    uint64_t slot;
    uint32_t promised; /* + 1, 0 for none */
    uint32_t accepted; /* + 1 */
} dp_row_book;

/* The newest PROPOSE that reached a voter, and possible reasons against accepting it. */
typedef struct dp_due_book {
    uint64_t slot; /* 0: none */
    uint32_t ballot;
    dp_hash hash;
    uint64_t decided;  /* newest slot whose record the node asked to store in this life */
    uint64_t since_us; /* since then the voter has had no reason not to accept */
    dp_row_book asked; /* the last vote row whose write was requested in this life */
    uint32_t op;       /* a write of its vote row is under way, 0: none */
    uint32_t n_checked;
    /* the last blobs that its trainer decoded in this life */
    dp_hash checked[DP_ORACLE_CHECKED];
    uint32_t n_lists;               /* all lists so far */
    dp_hash lists[DP_ORACLE_LISTS]; /* the last ones that it received */
} dp_due_book;

/* After the healing. */
typedef struct dp_live_book {
    bool level;           /* was level with the others at least once */
    uint64_t level_round; /* decided rounds at that first time, */
    uint64_t free_us;     /* ... the time, or the end of its last doubt about an exchange */
    uint64_t out_since;   /* 0: it is level */
    uint64_t out_round;   /* rounds decided then */
    uint64_t out_rounds;  /* decided since level_round while it was not level */
} dp_live_book;

/* The leases in a node's ledger, at the slot of the last check. */
enum { DP_LEASE_BOOK_HOSTS = 8, DP_LEASE_BOOK_MAX = 32 };
typedef struct dp_lease_book {
    uint64_t slot;
    dp_hash head;
    dp_hash fork;
    uint64_t cursor;
    uint64_t rest;
    uint32_t n;
    uint64_t leased[DP_LEASE_BOOK_MAX];
    uint64_t included[DP_LEASE_BOOK_MAX];
    uint32_t gone[DP_LEASE_BOOK_MAX];
} dp_lease_book;

struct dp_oracle {
    dp_lease_book leases[DP_LEASE_BOOK_HOSTS]; /* of small worlds */
    dp_slot_book *slots;                       /* slot s is slots[s] */
    uint64_t n_slots;                          /* decided: 1..n_slots */
    uint64_t slots_capacity;
    dp_round_book *rounds; /* rounds[0] is the start */
    uint64_t n_rounds;
    uint64_t rounds_capacity;
    dp_root_book *roots;
    uint32_t n_roots;
    uint32_t roots_capacity;
    dp_claim_book *claims;
    uint32_t n_claims;
    uint32_t claims_capacity;
    dp_mix_book *mixes;
    uint32_t n_mixes;
    uint32_t mixes_capacity;
    dp_member_book *members; /* by host */
    dp_due_book *due;        /* by host */
    uint64_t *accused; /* [subject * nodes + author]: last incarnation that this author accused */
    dp_buffer_book *buffers; /* by host */
    dp_parcel_book *parcels;
    uint32_t n_parcels;
    uint32_t parcels_capacity;
    dp_toy_span *counted; /* samples that decided records have counted, unsorted */
    uint64_t n_counted;
    uint64_t counted_capacity;
    dp_lives *lives;    /* NULL in profiles that only measure */
    uint64_t round_us;  /* when the last round was first stored */
    uint32_t redeemed;  /* uses of the invite, according to the chain */
    dp_live_book *live; /* by host */
    /* by pair: since when one works and is reached only through others; 0: not so */
    uint64_t *far_since;
    uint64_t rounds_at_heal;
    uint64_t rounds_seen; /* since, and when the newest of them was decided */
    uint64_t seen_us;
    bool heal_seen;
    /* of the last round: the reference of rounds of parts */
    unsigned __int128 clip_median;
    unsigned __int128 w_median;
    dp_part_cuts cuts; /* of the round to come */
    uint8_t *lines;    /* lines[r], r > 0: the lines according to record r */
    uint64_t lines_capacity;
};

/* oracle_buffers.c: work was discarded, with the reason. */
void dp_oracle_discarded(dp_host *host, const dp_note *note);
/* oracle_buffers.c: this node has told others of its publication. */
void dp_oracle_announced(dp_host *host, const dp_hash *root);

/* Makes room for one more in an array that doubles. Zeroed. Aborts if memory is exhausted. */
void *dp_oracle_room(void *items, uint64_t count, uint64_t *capacity, size_t size);

dp_slot_book *dp_oracle_slot(dp_sim *sim, uint64_t slot);
void dp_oracle_vote(dp_host *host, dp_view message);
void dp_oracle_ready(dp_host *host, const dp_ready *ready);
dp_root_book *dp_oracle_root(dp_oracle *oracle, const dp_hash *root);
/* A decided record lists this. */
void dp_oracle_listed(dp_sim *sim, const dp_record *record, uint32_t index);
const dp_parcel_book *dp_oracle_parcel(const dp_oracle *o, const dp_hash *root);
/* oracle_parts.c: computes the results of a decided round of parts again, as terms of the outer
 * step; returns their number. */
uint32_t dp_oracle_parts(dp_sim *sim, const dp_record *record, dp_toy_term terms[DP_PARTS_MAX]);
/* q, clip and w of a decided round, computed again. */
void dp_oracle_weights(dp_sim *sim, const dp_record *record);

/* oracle_density.c: checks the lines in a decided record, and the densities of its listed blobs. */
void dp_oracle_lines(dp_sim *sim, const dp_record *record);

/* oracle_samples.c: a decided record counts this publication, and with it the samples of its
 * work. */
void dp_oracle_samples(dp_sim *sim, uint64_t round, const dp_listed *listed);

/* oracle_rules.c */
/* Is this a certificate of a majority of the voters of the slot, each counted once? Fails with S1
 * if not. */
bool dp_oracle_certificate(dp_host *host, const dp_vote *decided, const dp_seal *seals, uint32_t n);
/* The same from its bytes, which the oracle parses itself, not by gossip/. */
bool dp_oracle_certified(dp_host *host, const dp_record *record, const dp_hash *hash, dp_view cert);
/* Checks that a majority of the voters of its slot has signed the state from which a ROUND record
 * starts. */
void dp_oracle_state(dp_sim *sim, const dp_record *record);
/* Checks accusations in a message. */
void dp_oracle_accusations(dp_host *host, dp_view message);
/* This host holds another for dead. */
void dp_oracle_death(dp_host *host, const dp_note *note);
/* oracle_far.c: host, a voter, closes a round. */
void dp_oracle_far(dp_host *host);
/* A vote row is being written, or its write has ended (op 0, no bytes). */
/* The row of a vote, as it is about to be written. */
void dp_oracle_accepts(dp_host *host, dp_view row);
void dp_oracle_voting(dp_host *host, uint32_t op, dp_view bytes);

/* A row of the exchange journal is being stored. */
void dp_oracle_exchange(dp_host *host, const dp_action *action);
/* A message of an exchange leaves this node. */
void dp_oracle_exchange_sent(dp_host *host, dp_view message);
/* F was frozen for an exchange. */
void dp_oracle_frozen(dp_host *host, const uint8_t exchange[16]);

#endif
