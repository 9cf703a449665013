/* The round under way: contributions that this node knows of, their holders, and when the round may
 * be closed. */
#ifndef DP_GOSSIP_ROUND_ROUND_H
#define DP_GOSSIP_ROUND_ROUND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/map.h"
#include "gossip/core/limits.h"
#include "gossip/event/event.h"
#include "gossip/ledger/valid.h"
#include "gossip/member/links.h"
#include "gossip/record/record.h"
#include "gossip/round/claim.h"
#include "gossip/round/deadline.h"
#include "gossip/round/judge.h"
#include "gossip/round/round_msg.h"
#include "gossip/vote/commit.h"

enum {
    DP_CLAIMS_BEYOND = 96, /* updates of a round that a node follows, beyond what a record lists */
    DP_CLAIMS_MAX = 2 * DP_LISTED_MAX + DP_CLAIMS_BEYOND,
    DP_OFFERS_MAX = 32, /* candidates for the vote */
    DP_CHECKS_MAX = 24, /* blobs at the trainer to be decoded */
};
#define DP_REPEAT_US_MAX (4 * DP_SECOND)
#define DP_HAVE_US_MAX (100 * DP_MS)
/* A claim of which nothing has come gives way after this time, when there are too many. */
#define DP_CLAIM_PATIENCE_US (2 * DP_SECOND)
#define DP_VOTER_DEAD_US (60 * DP_SECOND) /* then a candidate takes its place */
/* A voter waits until a record's time is at most so far ahead, */
#define DP_RECORD_SKEW_MS (120ULL * 1000)
#define DP_RECORD_PATIENCE_US (20 * DP_SECOND) /* but not longer than this in one slot */

/* A contribution to the round under way. */
typedef struct dp_claim {
    dp_ready ready;
    uint32_t have;  /* bit per voter that told it holds the blob */
    bool have_told; /* a HAVE of this voter has named it */
    bool held;      /* the blob is here */
    uint64_t size;  /* of the blob that is here; a claim may lie */
    bool checking;
    bool checked;
    bool bad;
    bool judging; /* in a run that judges (judge.h), as the next fields */
    bool suspect; /* its gain is measured too, */
    bool whole;   /* and again, at its own length instead of the one that it is clipped to */
    dp_judgement found;
    bool evidence;   /* met in a record: not to be listed by this node unless its READY came too */
    dp_time told_at; /* when it was heard of */
    dp_time held_at; /* when its blob was first here */
    unsigned __int128 energy;
    struct { /* of parts, a bit for each: their objects, as above */
        uint32_t held;
        uint32_t checking;
        uint32_t checked;
        uint32_t bad;
        uint32_t nothing; /* checked, and no element of them moves: such may well be equal */
    } parts;
} dp_claim;

typedef struct dp_state_vote {
    bool known;
    uint64_t round;
    dp_hash root;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_state_vote;

typedef struct dp_unlisted {
    dp_hash root;
    uint64_t round;
} dp_unlisted;

typedef struct dp_round {
    uint32_t n_claims;
    uint32_t claims_max;
    uint32_t ready_max; /* of these told by READY; with lists a record is judged with the rest */
    dp_claim *claims;
    dp_map claim_of;               /* index of the claim of a peer itself */
    bool gave_way[DP_MEMBERS_MAX]; /* by index of a member: its claim made room in this round */
    bool unwanted;                 /* blobs of some could not be wanted: too many were */
    uint32_t n_voters;             /* the voters of states */
    dp_voter voters[DP_VOTERS_MAX];
    dp_state_vote states[DP_VOTERS_MAX];
    bool certified; /* the newest state, since dp_round_take_certified */
    dp_time slot_opened;
    dp_time began;        /* the first slot of this round was opened */
    dp_time began_before; /* that of the round before; zero: there was none since the start */
    dp_time opened;       /* zero: this node has not applied the round before */
    /* Of the newest round that is decided, if all of its updates were here by then: from its
     * opening until the last of them was; for people. */
    bool held_known;
    uint64_t held_us;
    dp_time enough_at; /* K contributions were ready and held; zero: not yet */
    uint64_t grace_us; /* after that, as it was last found */
    dp_time close_at;  /* the close condition was first seen; zero: not yet */
    dp_time bid_at;
    dp_time ahead_since; /* in this slot a record from the future was met; zero: none */
    uint32_t bids;
    dp_time repeat_planned; /* the value of the node's repeat_at that was set here */
    dp_time told_at;        /* when peers were last told of the round */
    dp_time have_at;        /* when blobs that were checked are told; zero: none wait */
    dp_time state_told;     /* when the own STATE was last sent */
    uint64_t tell_us;       /* until they are told again */
    dp_deadline deadline;
    /* by index of a member: rounds in a row in which it worked and was not listed */
    uint8_t missed[DP_MEMBERS_MAX];
    /* judged last, so that signatures are checked once */
    dp_hash judged;
    dp_status verdict;
    dp_record judged_record;
    dp_admitted judged_admitted[DP_CONFIG_ADMIT_MAX];
    struct dp_told_guests *guests;
    /* with lists: this node tells all of the decided record when it is durable, and can be had */
    bool tells_written;
    /* With lists: updates that no record counts and that one step had no room to let go; as many as
     * a node follows claims. */
    uint32_t n_unlisted;
    uint32_t unlisted_max;
    dp_unlisted *unlisted;
    uint32_t checks;      /* DP_DO_CHECK without answer, */
    uint64_t check_bytes; /* and the claims that they hold */
    uint32_t n_offers;
    dp_voter_ok_msg offers[DP_OFFERS_MAX];
    dp_time voter_seen[DP_VOTERS_MAX]; /* when this voter was last not dead */
} dp_round;

/* ---- round_open.c ---- */

/* Reserves memory for a round in a run whose records list at most so many contributions. DP_NOMEM;
 * release frees it. */
DP_MUST dp_status dp_round_reserve(dp_node *node, uint32_t listed_max);
void dp_round_release(dp_node *node);
/* The row with this index now belongs to another member: forgets all data under the index. */
void dp_round_forget_member(dp_node *node, uint32_t index);

/* ---- round.c ---- */

void dp_round_open_slot(dp_node *node, bool new_round);
void dp_round_count_missed(dp_node *node, const dp_record *record);
void dp_round_ready(dp_node *node, const dp_ready *ready, bool evidence, bool own);
/* A STATE of a voter. */
dp_status dp_round_state_message(dp_node *node, dp_view bytes);
dp_status dp_round_message(dp_node *node, uint8_t type, dp_view bytes, const dp_peer *from);
/* A DP_EV_CHECKED; whether the blob is of a claim. */
bool dp_round_checked(dp_node *node, const dp_event *event);
/* After APPLIED of the newest round: signs the own state. */
void dp_round_state_own(dp_node *node);
/* The own state of the newest round is not the one that this node signed. */
void dp_round_state_withdraw(dp_node *node);
/* Has a majority certified the state after the newest round, since this was last asked? */
bool dp_round_take_certified(dp_node *node);
/* This node has applied the newest round, and the next is open here. */
void dp_round_open(dp_node *node);
/* The trainer will not answer the questions under way any more. */
void dp_round_trainer_down(dp_node *node);
/* The claim to this blob by this peer, or NULL. */
dp_claim *dp_round_find_claim(const dp_node *node, const dp_peer *peer, const dp_hash *root);
/* The claim that this peer made itself, or NULL. */
dp_claim *dp_round_claim_of(const dp_node *node, const dp_peer *peer);
/* 1: made for the round that the newest record has closed; else 0. */
uint32_t dp_round_claim_age(const dp_node *node, const dp_claim *claim);
bool dp_round_may_contribute(const dp_node *node, const dp_peer *peer);
/* These claims and no others are followed from now on: the index of them is made anew. */
void dp_round_index_claims(dp_node *node);
/* The claim with this index is new, or is no longer mere evidence. */
void dp_round_index_claim(dp_round *round, uint32_t index);
bool dp_round_may_check(dp_node *node); /* Another one, beside those that are at the trainer? */
void dp_round_begin_check(dp_node *node, const dp_hash *root);
void dp_round_end_check(dp_node *node, const dp_hash *root);
/* ---- tell.c ---- */

/* When it is time, requests missing objects. True: announcements to peers are to be repeated
 * now. */
bool dp_round_repeat(dp_node *node);
/* Tells peers the objects of the round that this node has and those that it lacks. */
void dp_round_tell(dp_node *node);

/* All at once, and again. */
void dp_round_tell_have(dp_node *node);
/* To the voters; have is empty afterwards. */
void dp_round_send_have(dp_node *node, dp_have_msg *have);
/* A blob has become one to tell of. It is told with others that come within a 64th of a round,
 * DP_HAVE_US_MAX at the most, and at once where the blobs of all that are at work are here. */
void dp_round_have_soon(dp_node *node);
void dp_round_have_tick(dp_node *node);
void dp_round_tell_state(dp_node *node);
/* ---- decided.c ---- */

/* If the votes have decided the slot: tells the record, or has it told when it is written, and
 * gives it to the chain. */
void dp_round_decided(dp_node *node);
/* The record is durable. */
void dp_round_tell_written(dp_node *node);
/* ---- unlisted.c ---- */

/* Claims of the round that was just decided which no record counts. */
void dp_round_drop_unlisted(dp_node *node);
/* Of those that one step had no room for, so many. */
void dp_round_drop_more(dp_node *node, uint32_t most);
/* ---- round_close.c ---- */

/* A round that this node has opened is decided: how long it took. */
void dp_round_measure(dp_node *node);
/* The same round, by its record: when the last of the updates that it lists was here. */
void dp_round_measure_held(dp_node *node, const dp_record *record);

/* Why the round may be closed, or in a run of parts be added up; NULL: not yet. */
const char *dp_round_ripe(dp_node *node);
/* Which voters are alive, and which updates may be judged. */
void dp_round_watch(dp_node *node);
/* Closes the round and bids, when it is time. */
void dp_round_tick(dp_node *node);
/* The hard deadline of a round, in microseconds after it was opened. */
uint64_t dp_round_hard_us(const dp_node *node);
dp_time dp_round_wake(const dp_node *node);
/* ---- active.c ---- */

/* Is the member with this index alive, with a trainer at work for this chain, wherever it stands,
 * or ready already? Of a member without a link no more may be known than that it is alive. */
bool dp_round_works(const dp_node *node, uint32_t index);
/* Was a majority heard since less than a longer grace when the round before began, and does the
 * newest record list this member, of which nothing says that it does not work? The round waits for
 * it until the hard deadline. */
bool dp_round_expects(const dp_node *node, uint32_t index);
/* dp_round_works of any watched member. */
bool dp_round_anybody_works(const dp_node *node);
/* Members that a node watches: all, in a large run itself and those linked. Indexes of the i-th. */
uint32_t dp_round_watched_count(const dp_node *node);
uint32_t dp_round_watched_at(const dp_node *node, uint32_t i);
/* The longest time of a step, us, that a member has told. */
uint64_t dp_round_slowest_step(const dp_node *node);
uint32_t dp_round_active(const dp_node *node);
/* Is this row one of them? */
bool dp_round_is_active(const dp_node *node, uint32_t index);
uint32_t dp_round_others_ready(const dp_node *node);
/* ---- uplink_statistics.c ---- */

/* The state of the lines that this node would put into a record. */
dp_lines dp_round_lines(dp_node *node);
/* ---- propose.c ---- */

dp_verdict dp_round_judge(void *context, dp_view bytes);
size_t dp_round_value(void *context, uint8_t *out);
/* Claims that a common majority of voters holds, this node among them: how many, and their indexes
 * if chosen is not NULL. */
uint32_t dp_round_held(const dp_node *node, uint32_t *chosen);
/* May a record list this READY, which starts from the state with this root? Does not look at held
 * objects. */
bool dp_round_may_list(const dp_node *node, const dp_ready *ready, const dp_hash *root);
/* Of these claims (changed) those that a record lists when they are too many, in order of peer. */
uint32_t dp_round_choose(const dp_node *node, uint32_t *held, uint32_t n_held, uint32_t *chosen);
/* Puts a claim at the end of the list; false: its author is no member. */
bool dp_round_list(dp_node *node, dp_record *draft, const dp_claim *claim);
bool dp_round_state_cert(const dp_node *node, dp_hash *root, dp_seal seals[DP_VOTERS_MAX],
                         uint32_t *n);

#endif
