/* Nodes that lie (profile byz). Each runs the real node and obeys an adversary that rewrites, holds
 * back and adds messages, signs with its own keys and never with another's, and sees the whole
 * world. Which nodes lie, and how, is drawn per seed from a stream of its own; a world without
 * liars never comes here. */
#ifndef DP_SIM_EVIL_H
#define DP_SIM_EVIL_H

#include "gossip/pairs/mix_msg.h"
#include "gossip/record/record.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim.h"

enum { DP_EVIL_HEARD_MAX = 128, DP_EVIL_MIX_MAX = 4 };

typedef enum dp_evil_kind {
    DP_EVIL_NONE = 0,
    DP_EVIL_VOTER,   /* one voter that contradicts itself */
    DP_EVIL_TRAINER, /* contributions that are not what they say, or meant to harm */
    DP_EVIL_HOLDER,  /* wrong chunks, none, or promises of them */
    DP_EVIL_MEMBER,  /* false words about others, replays, floods, invented peers */
    DP_EVIL_INVITER, /* more joiners than the invite has uses */
    DP_EVIL_MIXED,   /* one voter, and one trainer, holder or member each of two or three others */
    DP_EVIL_COUNT
} dp_evil_kind;

typedef enum dp_evil_vote {
    DP_VOTES_TWIN = 0, /* two bodies with the same keys, each among its own half of the others */
    DP_VOTES_TWO,      /* two records in one own ballot, and an ACCEPTED of each to its half */
    DP_VOTES_FORGET,   /* a PROMISE never tells what was accepted */
    DP_VOTES_YES,      /* promises and accepts whatever is asked, in any order */
    DP_VOTES_STATE,    /* signs a wrong state root, another to each */
    /* proposes what is not valid, in ballots of others too; NACKs that mean nothing */
    DP_VOTES_JUNK,
    DP_VOTES_COUNT
} dp_evil_vote;

typedef enum dp_evil_work {
    DP_WORK_INFLATED = 0, /* the most tokens in one step */
    DP_WORK_GARBAGE,      /* a blob that does not decode */
    DP_WORK_NOTHING,      /* a root that no blob has */
    DP_WORK_SCALED,       /* a thousand times too large */
    DP_WORK_FLIPPED,      /* the other way */
    DP_WORK_EXTREME,      /* the largest numbers that the codec has */
    DP_WORK_TINY,         /* next to nothing, to pull the median down */
    DP_WORK_COPIED,       /* somebody else's blob under the own name */
    DP_WORK_TWO,          /* one contribution to this half, another to that */
    DP_WORK_NUMBERS,      /* size, carried tokens or state root that are not so */
    DP_WORK_CARRIED,      /* as many carried tokens as a record takes, on its own line */
    DP_WORK_COUNT
} dp_evil_work;

typedef enum dp_evil_hold {
    DP_HOLDS_BAD = 0, /* wrong bytes */
    DP_HOLDS_SHORT,   /* cut short */
    DP_HOLDS_SILENT,  /* no answer */
    DP_HOLDS_NOT,     /* "not found", though it told that it has it */
    DP_HOLDS_PIECES,  /* a list of pieces that is not of this object */
    DP_HOLDS_MIXED,   /* any of these */
    DP_HOLDS_COUNT
} dp_evil_hold;

typedef struct dp_evil {
    dp_evil_kind kind;
    uint32_t tricks[DP_EVIL_COUNT];      /* by kind */
    dp_evil_kind kinds[DP_EVIL_MIX_MAX]; /* MIXED: of the liars, by order */
    uint32_t mixed[DP_EVIL_MIX_MAX];     /* ... which hosts these are */
    dp_rng rng;
    uint64_t side_salt;
    bool *liars;       /* by host */
    uint32_t n_liars;  /* names, so a twin counts once */
    uint32_t original; /* the first body of the twin; nodes: there is none */
    uint32_t twin;
    /* what came of it */
    bool *halted; /* by host */
    bool forked;  /* honest nodes hold different records of one slot */
    bool judging; /* the failure being told is of the adversary's own judge */
    /* the alternative of an own proposal */
    uint64_t alt_slot;
    uint32_t alt_ballot;
    dp_hash alt_first;
    dp_hash alt_hash;
    /* messages overheard, to be said again */
    dp_packet *heard[DP_EVIL_HEARD_MAX];
    uint32_t n_heard;
    dp_ready ready; /* of somebody else, the last one heard */
    bool has_ready;
    dp_hash second_root; /* of the other contribution to the round second_round */
    uint64_t second_round;
    uint64_t second_bytes;
    uint32_t second_owner;
    uint32_t admitted; /* liars that the chain has let in */
    /* the schedule: after the last ROUND record */
    uint64_t *counted_ms; /* by host: of the last record that lists it, 0: none */
    uint64_t most;        /* that the schedule may have come to */
    bool swayed;          /* a record of more liars than others: they may be the measure */
} dp_evil;

/* "voter" and so on. */
const char *dp_evil_name(dp_evil_kind kind);
/* 0: nobody is called so. */
uint32_t dp_evil_named(const char *name);
/* Before the world is made: what the plan needs for this seed's liars. */
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

/* Which body of the twin answers to this name, seen from there; plan.nodes: none that from can
 * reach. */
uint32_t dp_evil_body(const dp_sim *sim, uint32_t from, uint32_t to);

/* True: the host lies, and what there was to send was sent. */
bool dp_evil_sends(dp_host *host, const dp_action *action);
void dp_evil_hears(dp_host *host, uint32_t from, dp_view message);
/* Lies that nobody asked for. */
void dp_evil_acts(dp_host *host);
/* True: the request was answered, or not, by the adversary. */
bool dp_evil_serves(dp_host *host, const dp_action *action);
/* A publication for round that is about to be written. */
void dp_evil_publishes(dp_host *host, dp_toy_parcel *parcel, uint64_t round);
/* How far a ROUND record moves the schedule, beside what liars tell (S20). */
void dp_evil_schedule(dp_sim *sim, const dp_record *record);
/* A row of an exchange that an honest host writes: the other's terms are what it could have done
 * (S21). */
void dp_evil_prepared(dp_host *host, const dp_mix_row *row);
size_t dp_evil_rewrite_terms(dp_host *host, uint8_t *message, size_t size, size_t room);
/* The credential that the host shows. */
void dp_evil_credential(const dp_sim *sim, uint32_t index,
                        uint8_t credential[DP_SIM_CREDENTIAL_BYTES]);
void dp_evil_notes(dp_host *host, const dp_note *note);
/* DP_DO_HALT. False: that should not have happened, and is told. */
bool dp_evil_halts(dp_host *host, const dp_note *note);

/* A rule broken by a liar, or behind a fork that a liar made, is no failure of the honest. */
bool dp_evil_excuses(dp_sim *sim, const char *invariant, uint32_t node);
/* All honest nodes have halted, as they must after a fork. */
bool dp_evil_over(dp_sim *sim);
/* A fork or a halt hangs over the run: the usual liveness is not asked for. */
bool dp_evil_spoiled(const dp_sim *sim);
/* At the very end, when it is spoiled and not over. */
void dp_evil_stuck(dp_sim *sim);

/* A liar has had the blob of somebody else listed as its own. */
bool dp_evil_steals(const dp_sim *sim, uint32_t liar, uint32_t author);
/* A record is decided; the books are still those of the one before. S15: what liars may move in a
 * round. S10: how many may come in by an invite of one use. */
void dp_evil_decided(dp_sim *sim, const dp_record *record);

/* Between the files of the adversary. */
void dp_evil_say(dp_host *host, uint32_t to, dp_view message);
uint64_t dp_evil_below(dp_sim *sim, uint64_t limit);
/* A half of the others, the same for the whole run. */
bool dp_evil_side(const dp_sim *sim, uint32_t to);
/* In place; the new size, 0: nothing is sent. */
size_t dp_evil_rewrite_vote(dp_host *host, uint32_t to, uint8_t *message, size_t size, size_t room);
size_t dp_evil_rewrite_ready(dp_host *host, uint32_t to, uint8_t *message, size_t size,
                             size_t room);
size_t dp_evil_rewrite_sum(dp_host *host, uint8_t *message, size_t size, size_t room);
/* A sum of a site by a liar: what it stores in its place. */
void dp_evil_adds_up(dp_host *host, uint32_t part, uint8_t blob[DP_TOY_BLOB_MAX], uint32_t *size);
size_t dp_evil_rewrite_part(dp_host *host, uint8_t *message, size_t size, size_t room);
void dp_evil_hears_vote(dp_host *host, uint32_t from, dp_view message);
void dp_evil_acts_voter(dp_host *host);
void dp_evil_acts_member(dp_host *host);
/* Its own words in an exchange say something else: other work, another ticket, another end. */
void dp_evil_cheat(dp_host *host, uint8_t *message, size_t size);
/* Words in the names of voters. */
void dp_evil_forge(dp_host *host);
/* Of itself it says that its chain is much longer. In place. */
void dp_evil_brag(dp_host *host, uint8_t *message, size_t size);
void dp_evil_influence(dp_sim *sim, const dp_record *record);

#endif
