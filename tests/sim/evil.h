/* Nodes that lie (profile byz). Each runs the real node and obeys an adversary that rewrites, holds
 * back and adds messages, signs with its own keys and never with another's, and sees the whole
 * world. Liars and their lies are drawn per seed from a separate stream; a world without liars does
 * not use this file. */
#ifndef DP_SIM_EVIL_H
#define DP_SIM_EVIL_H

#include "gossip/pairs/mix_msg.h"
#include "gossip/record/record.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

enum { DP_EVIL_HEARD_MAX = 128, DP_EVIL_MIX_MAX = 4 };

typedef enum dp_evil_kind {
    DP_EVIL_NONE = 0,
    DP_EVIL_VOTER,   /* one voter that sends contradicting messages */
    DP_EVIL_TRAINER, /* false or harmful contributions */
    DP_EVIL_HOLDER,  /* wrong chunks, no chunks, or false claims to have them */
    DP_EVIL_MEMBER,  /* false messages about others, replays, floods, invented peers */
    DP_EVIL_INVITER, /* more joiners than the invite has uses */
    DP_EVIL_MIXED,   /* one voter, and one trainer, holder or member each of two or three others */
    DP_EVIL_COUNT
} dp_evil_kind;

typedef enum dp_evil_vote {
    /* two bodies with the same keys, each linked to its own half of the others */
    DP_VOTES_TWIN = 0,
    /* two records in one of its ballots, and an ACCEPTED of each to one half of the hosts */
    DP_VOTES_TWO,
    DP_VOTES_FORGET, /* a PROMISE never names the accepted record */
    DP_VOTES_YES,    /* promises and accepts every request, in any order */
    DP_VOTES_STATE,  /* signs wrong state roots, a different one for each host */
    /* proposes invalid records, also in ballots of others, and sends meaningless NACKs */
    DP_VOTES_JUNK,
    DP_VOTES_COUNT
} dp_evil_vote;

typedef enum dp_evil_work {
    DP_WORK_INFLATED = 0, /* the most tokens in one step */
    DP_WORK_GARBAGE,      /* a blob that does not decode */
    DP_WORK_NOTHING,      /* a root that no blob has */
    DP_WORK_SCALED,       /* a thousand times too large */
    DP_WORK_FLIPPED,      /* reversed */
    DP_WORK_EXTREME,      /* the largest numbers of the codec */
    DP_WORK_TINY,         /* almost zero, to lower the median */
    DP_WORK_COPIED,       /* another member's blob under its own name */
    DP_WORK_TWO,          /* a different contribution for each half of the hosts */
    DP_WORK_NUMBERS,      /* a wrong size, number of carried tokens, or state root */
    DP_WORK_CARRIED,      /* as many carried tokens as a record allows, on its own line */
    DP_WORK_COUNT
} dp_evil_work;

typedef enum dp_evil_hold {
    DP_HOLDS_BAD = 0, /* wrong bytes */
    DP_HOLDS_SHORT,   /* truncated */
    DP_HOLDS_SILENT,  /* no answer */
    DP_HOLDS_NOT,     /* "not found", although it claimed to have it */
    DP_HOLDS_PIECES,  /* the list of chunks of another object */
    DP_HOLDS_MIXED,   /* any of these */
    DP_HOLDS_COUNT
} dp_evil_hold;

typedef struct dp_evil {
    dp_evil_kind kind;
    uint32_t tricks[DP_EVIL_COUNT];      /* by kind */
    dp_evil_kind kinds[DP_EVIL_MIX_MAX]; /* MIXED: of the liars, by order */
    uint32_t mixed[DP_EVIL_MIX_MAX];     /* ... the hosts of these kinds */
    dp_rng rng;
    uint64_t side_salt;
    bool *liars;       /* by host */
    uint32_t n_liars;  /* different names, so a twin counts once */
    uint32_t original; /* the first body of the twin; nodes: there is none */
    uint32_t twin;
    /* results */
    bool *halted; /* by host */
    bool forked;  /* honest nodes hold different records of one slot */
    bool judging; /* the failure being reported is of the adversary's own judge */
    /* the alternative to one of its own proposals */
    uint64_t alt_slot;
    uint32_t alt_ballot;
    dp_hash alt_first;
    dp_hash alt_hash;
    /* messages received earlier, to be replayed */
    dp_packet *heard[DP_EVIL_HEARD_MAX];
    uint32_t n_heard;
    dp_ready ready; /* the last one heard of another host */
    bool has_ready;
    dp_hash second_root; /* of the other contribution to the round second_round */
    uint64_t second_round;
    uint64_t second_bytes;
    uint32_t second_owner;
    uint32_t admitted; /* liars that the chain has let in */
    /* the schedule: after the last ROUND record */
    uint64_t *counted_ms; /* by host: of the last record that lists it, 0: none */
    uint64_t most;        /* largest value that the schedule may have */
    bool swayed;          /* a record with more liars than others: the medians may be theirs */
} dp_evil;

/* "voter" etc. */
const char *dp_evil_name(dp_evil_kind kind);
/* 0: unknown name. */
uint32_t dp_evil_named(const char *name);
/* Call before the world is made: adapts the plan to the liars of this seed. */
void dp_evil_plan(dp_plan *plan, const dp_sim_options *options);
DP_MUST dp_status dp_evil_open(dp_sim *sim);
void dp_evil_close(dp_sim *sim);
void dp_evil_start(dp_sim *sim);
/* Is this host a liar of this kind? */
bool dp_evil_does(const dp_sim *sim, uint32_t index, dp_evil_kind kind);

static inline bool dp_evil_is(const dp_sim *sim, uint32_t index)
{
    return sim->evil != NULL && index < sim->plan.nodes && sim->evil->liars[index];
}

/* The body of the twin that from reaches under this name; plan.nodes: none. */
uint32_t dp_evil_body(const dp_sim *sim, uint32_t from, uint32_t to);

/* True: the host lies, and the message has been sent, changed or not, or held back. */
bool dp_evil_sends(dp_host *host, const dp_action *action);
void dp_evil_hears(dp_host *host, uint32_t from, dp_view message);
/* Unsolicited lies. */
void dp_evil_acts(dp_host *host);
/* True: the adversary has answered the request or ignored it. */
bool dp_evil_serves(dp_host *host, const dp_action *action);
/* A publication for round that is about to be written. */
void dp_evil_publishes(dp_host *host, dp_toy_parcel *parcel, uint64_t round);
/* Checks the progress of the schedule by a ROUND record against the claims of liars (S20). */
void dp_evil_schedule(dp_sim *sim, const dp_record *record);
/* Checks a row of an exchange that an honest host writes: the terms of the other side must be
 * possible (S21). */
void dp_evil_prepared(dp_host *host, const dp_mix_row *row);
size_t dp_evil_rewrite_terms(dp_host *host, uint8_t *message, size_t size, size_t room);
/* The credential that the host shows. */
void dp_evil_credential(const dp_sim *sim, uint32_t index,
                        uint8_t credential[DP_SIM_CREDENTIAL_BYTES]);
void dp_evil_notes(dp_host *host, const dp_note *note);
/* DP_DO_HALT. False: the halt was wrong, and is reported. */
bool dp_evil_halts(dp_host *host, const dp_note *note);

/* True for a rule that a liar broke, or that is broken after a fork by a liar: no failure of honest
 * hosts. */
bool dp_evil_excuses(dp_sim *sim, const char *invariant, uint32_t node);
/* All honest nodes have halted, as they must after a fork. */
bool dp_evil_over(dp_sim *sim);
/* The run has a fork or a halt: the usual liveness is not required. */
bool dp_evil_spoiled(const dp_sim *sim);
/* Called at the end of a run that is spoiled but not over. */
void dp_evil_stuck(dp_sim *sim);

/* Has a liar had the blob of another member listed as its own? */
bool dp_evil_steals(const dp_sim *sim, uint32_t liar, uint32_t author);
/* Called when a record is decided, before the books are updated. S15: bound on the influence of
 * liars in a round. S10: bound on the members admitted by an invite of one use. */
void dp_evil_decided(dp_sim *sim, const dp_record *record);

/* Used by the files of the adversary. */
void dp_evil_say(dp_host *host, uint32_t to, dp_view message);
uint64_t dp_evil_below(dp_sim *sim, uint64_t limit);
/* Is this host in the first half of the others? The halves do not change during a run. */
bool dp_evil_side(const dp_sim *sim, uint32_t to);
/* Changes the message in place; returns the new size, 0: nothing is sent. */
size_t dp_evil_rewrite_vote(dp_host *host, uint32_t to, uint8_t *message, size_t size, size_t room);
size_t dp_evil_rewrite_ready(dp_host *host, uint32_t to, uint8_t *message, size_t size,
                             size_t room);
size_t dp_evil_rewrite_sum(dp_host *host, uint8_t *message, size_t size, size_t room);
/* A sum of a site by a liar: replaces the object that it stores. */
void dp_evil_adds_up(dp_host *host, uint32_t part, uint8_t blob[DP_TOY_BLOB_MAX], uint32_t *size);
size_t dp_evil_rewrite_part(dp_host *host, uint8_t *message, size_t size, size_t room);
void dp_evil_hears_vote(dp_host *host, uint32_t from, dp_view message);
void dp_evil_acts_voter(dp_host *host);
void dp_evil_acts_member(dp_host *host);
/* Changes the liar's own messages of an exchange: other work, another ticket, another outcome. */
void dp_evil_cheat(dp_host *host, uint8_t *message, size_t size);
/* Sends messages in the names of voters. */
void dp_evil_forge(dp_host *host);
/* Claims in its summary that its chain is much longer. Changes it in place. */
void dp_evil_brag(dp_host *host, uint8_t *message, size_t size);
void dp_evil_influence(dp_sim *sim, const dp_record *record);

#endif
