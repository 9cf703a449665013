/* The judge: which updates a voter finds harmful, by the measurements of its trainer, and which
 * members it accuses (docs/decisions/006-judging-updates.md). Pure arithmetic over numbers and a
 * memory of past rounds; judge_round.h decides when a node asks. Each voter has its own judge: the
 * validity of a record never depends on it. */
#ifndef DP_GOSSIP_ROUND_JUDGE_H
#define DP_GOSSIP_ROUND_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/run/judged.h"
#include "gossip/core/id.h"

enum {
    /* an update whose alignment with this voter is 1 / SHARE of the others' or less is suspect, */
    DP_JUDGE_SHARE = 4,
    DP_JUDGE_ERRORS = 1,        /* and acquitted by a gain above so many standard errors */
    DP_JUDGE_COPY_BITS = 8,     /* of 256: two updates that differ in fewer are one, or almost */
    DP_JUDGE_WINDOW = 8,        /* of the last so many updates that were judged, */
    DP_JUDGE_HARMFUL = 6,       /* so many harmful ones accuse a member */
    DP_JUDGE_SAMPLES_MAX = 128, /* updates of a round that its medians are of: the first ones */
    DP_JUDGE_PRINTS_MAX = 512,  /* updates that copies are looked for among: the newest, */
    DP_JUDGE_PRINT_ROUNDS = 8,  /* of so many rounds */
    /* a gain is measured at this part of the clipped step of a round: short enough for the loss to
     * follow it */
    DP_JUDGE_STEP_SHARE = 4
};

typedef enum dp_judgement {
    DP_FOUND_NONE = 0, /* not judged yet */
    DP_FOUND_GOOD,
    /* leads elsewhere than the voter's own work, and the others', and does not help */
    DP_FOUND_AGAINST,
    DP_FOUND_COPY /* is another update, or an older one */
} dp_judgement;

/* For people; "" of NONE and GOOD. */
const char *dp_judgement_text(dp_judgement judgement);

/* A judged update: its author and its likeness. */
typedef struct dp_judge_print {
    dp_peer peer;
    uint64_t round; /* 0: compared with nothing any more */
    dp_time told_at;
    uint8_t likeness[DP_LIKENESS_BYTES];
} dp_judge_print;

typedef struct dp_judge_member {
    dp_peer peer;
    uint64_t round;   /* of the last one that counts here; 0: none */
    uint32_t harmful; /* a bit for each of the last DP_JUDGE_WINDOW; bit 0: the last one */
} dp_judge_member;

/* The usual value of a measure: the values of a round's updates, rising, and a moving average of
 * the median of the rounds before. */
typedef struct dp_usual {
    int32_t value; /* 0: not known */
    uint32_t n;
    int32_t samples[DP_JUDGE_SAMPLES_MAX];
} dp_usual;

typedef struct dp_judge {
    dp_usual align; /* Q16 */
    uint32_t n_prints;
    uint32_t next_print;
    dp_judge_print prints[DP_JUDGE_PRINTS_MAX];
    uint32_t n_members;
    uint32_t members_max;
    dp_judge_member *members; /* the caller's room for members_max */
} dp_judge;

/* Tokens, for each kind of gain, that the suspects of a round may take: 3 % of the voter's own
 * training on so many tokens. */
uint64_t dp_judge_budget(uint64_t trained);
/* Takes the tokens of one suspect from the remaining tokens: a quarter, and windows enough for an
 * error of their mean. context: tokens of a window. */
uint32_t dp_judge_take(uint64_t *left, uint32_t context);
/* A new round begins: the measurements of the one before set the usual values. */
void dp_judge_open_round(dp_judge *judge);
/* Must its gain be measured too, before anything is said of it? Data unlike the others' lead
 * elsewhere, and still help. */
bool dp_judge_suspects(const dp_judge *judge, const dp_judged *found);
/* Of an update of this member for this round, told at that time. It is remembered; of each member
 * and round once. *exposed: whose update of this round, which was found good before, is a copy of
 * it; zero: nobody's. A copy of an update of its own round is left out and counts against no
 * member: two voters may disagree on which of the two came first. */
dp_judgement dp_judge_update(dp_judge *judge, const dp_peer *peer, uint64_t round, dp_time told_at,
                             const dp_judged *found, dp_peer *exposed);
/* The same of a voter, which is trusted: only for what is usual (not by its own, of which own says
 * so) and for its copies. */
void dp_judge_trusted(dp_judge *judge, const dp_peer *peer, uint64_t round, dp_time told_at,
                      bool own, const dp_judged *found, dp_peer *exposed);
/* The record of that round does not list this member's update: its work comes again, and may look
 * the same. */
void dp_judge_unlisted(dp_judge *judge, const dp_peer *peer, uint64_t round);
/* Have most of the member's last updates been harmful, the last one too? */
bool dp_judge_accuses(const dp_judge *judge, const dp_peer *peer);

#endif
