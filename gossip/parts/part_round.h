/* The parts of the round under way at one node: the wanted objects of publications, the time to add
 * up a part, the words of owners, and the results that a record may name. Only the files of the
 * node include it.
 *
 * A node works for part p if it is the owner; or if no member before it in line is alive, or their
 * time has passed: the owner, then the owners after it, then the others that are ready, in order of
 * peer. Times count from when the round was ripe here (round_close.c): K are ready and the grace is
 * over, or all are ready. Then the owner adds up the objects that it has, once it has all or the
 * missing ones come no more. The k-th member in line begins after 2 k waits; the line leaves out
 * members that have spoken for two parts of others. After 16 waits a voter lists the parts that
 * there are. part_wait.h says how long they are. */
#ifndef DP_GOSSIP_PARTS_PART_ROUND_H
#define DP_GOSSIP_PARTS_PART_ROUND_H

#include "gossip/core/limits.h"
#include "gossip/event/event.h"
#include "gossip/parts/part_wait.h"
#include "gossip/record/part_sum.h"
#include "gossip/record/record.h"

enum {
    DP_GARBAGE_MAX = 4096,      /* objects of past rounds that are still to be let go, */
    DP_GARBAGE_PER_STEP = 64,   /* so many in one step, whose actions are bounded */
    DP_PARTS_OF_OTHERS_MAX = 2, /* that a node works for at a time, beside its own */
    DP_RESULTS_MAX = 128,       /* words of owners that are followed in one round */
    /* of these, told by PART for one part by its owner, or by the next in line: a node that was
     * restarted, or had to sum again */
    DP_RESULTS_OF_OWNER_MAX = 2,
    DP_RESULTS_OF_OTHERS_MAX = 1, /* ... by all others: a record is judged with the rest */
    DP_HINTS_MAX = 32,            /* collectors that announce that they sum this node's part */
    DP_SUMS_MAX = DP_SITE_SUMS_MAX +
                  DP_PARTS_MAX, /* sums of sites: for this node's part, and by it for others' */
    DP_SITE_WAITS = 2,          /* of a node in line, for a part that another near node fetches */
    /* round trips that are mostly the time to write one batch (daemon/net/path.h) */
    DP_SITE_RTT_US = 2100,
    DP_SITE_RTT_US_BUSY = 10000, /* ... with the delay that two busy processors may add, where */
    DP_SITE_TIMES_FARTHER = 4    /* ... another member is so many times as far */
};

typedef struct dp_claim dp_claim; /* round/round.h */

/* A word of an owner, and the result that it names. */
typedef struct dp_result {
    dp_part_word word;
    bool evidence; /* met in a record */
    dp_time since; /* when it was heard of, or asked of somebody near */
    bool near;     /* asked of a near node alone, which said that it has it */
    uint32_t have; /* bit per voter that told it holds the result */
    bool held;
    uint64_t size; /* of the object that is here */
    bool checking;
    bool checked;
    bool bad;
} dp_result;

/* This node's work on one part. */
typedef struct dp_duty {
    bool works;    /* its objects are wanted */
    dp_time since; /* when it began to */
    dp_time moved; /* when more of its objects was here than before, */
    uint64_t came; /* ... bytes of them */
    bool reducing; /* at the trainer */
    bool done;     /* it has spoken, or cannot */
    bool awaiting; /* sums of sites, and nothing is added up before */
    uint32_t n;    /* of the part that is being summed */
    dp_part_source sources[DP_PART_SOURCES_MAX];
    uint32_t n_sums;
    dp_site_sum sums[DP_SITE_SUMS_MAX];
} dp_duty;

/* A sum that this node makes of the contributions of all members near to it, for an owner far
 * away. */
typedef struct dp_collecting {
    dp_duty duty;
    dp_collect told; /* to the owner; n = 0: nothing */
} dp_collecting;

/* A sum of a site: a collector's word and its object. */
typedef struct dp_sum {
    dp_part_word word;
    bool mine; /* made here; else for a part of this node's */
    bool held;
    uint64_t size;
    bool checking;
    bool checked;
    bool bad;
    bool in_use;   /* the contributions in it are not wanted as objects */
    dp_time since; /* when it was heard of, */
    dp_time moved; /* ... more of it was here than before, */
    uint64_t came; /* ... bytes of it */
} dp_sum;

typedef struct dp_part_hint {
    dp_peer collector;
    dp_collect told;
} dp_part_hint;

/* The members near to this node, by the round trips measured when the round began. */
typedef struct dp_part_site {
    uint32_t n;
    uint64_t near[DP_MEMBERS_MAX / 64]; /* bit per member */
} dp_part_site;

typedef struct dp_part_round {
    dp_time ripe_at; /* zero: not yet */
    dp_time wake_at; /* the next instant that this node waits for; NEVER: none */
    uint32_t n_results;
    dp_result results[DP_RESULTS_MAX];
    dp_duty duties[DP_PARTS_MAX];
    dp_part_site site;
    dp_collecting collects[DP_PARTS_MAX];
    uint32_t n_hints;
    dp_part_hint hints[DP_HINTS_MAX];
    uint32_t n_sums;
    dp_sum sums[DP_SUMS_MAX];
    uint64_t sums_made; /* since the start, */
    uint64_t sums_taken;
    /* results that somebody near was asked for instead of their owner, since the start */
    uint64_t results_near;
    uint32_t n_garbage;
    struct {
        dp_hash root;
        uint64_t round;
    } garbage[DP_GARBAGE_MAX];
} dp_part_round;

struct dp_round_kind;
extern const struct dp_round_kind dp_round_parted; /* part_kind.c */

/* Reserves memory for a run of parts. DP_NOMEM; close frees it. */
DP_MUST dp_status dp_part_round_reserve(dp_node *node);
void dp_part_round_release(dp_node *node);
/* The row with this index now belongs to another member: forgets all data under the index. */
void dp_part_round_forget_member(dp_node *node, uint32_t index);

/* part_round.c: fetches and takes the objects of a round. */
void dp_part_round_open_round(dp_node *node);
/* Drops the objects that were kept for the round that has ended and that no record names. */
void dp_part_round_drop(dp_node *node);
void dp_part_round_sweep(dp_node *node);
/* A PART, a SUBTOTAL and a COLLECT; from: index of the member that sent it. */
dp_status dp_part_round_message(dp_node *node, dp_view bytes);
dp_status dp_part_round_subtotal(dp_node *node, dp_view bytes);
dp_status dp_part_round_collect(dp_node *node, uint32_t from, dp_view bytes);
/* A word of which the signature has been checked. */
void dp_part_round_word(dp_node *node, const dp_part_word *word, bool evidence);
void dp_part_round_object(dp_node *node, const dp_hash *root, uint64_t size);
/* It was here, and part of it cannot be read any more: fetched again while it is of use. */
void dp_part_round_lost(dp_node *node, const dp_hash *root);
/* A peer asks for this object: fetches it if it is of a publication of this round and its author is
 * linked. A node that adds up a part may have no link to that author, and no node between them may
 * have fetched the object. */
void dp_part_round_asked(dp_node *node, const dp_hash *root);
/* Is this object of a publication or a result of this round? */
bool dp_part_round_knows(const dp_node *node, const dp_hash *root);
/* A DP_EV_CHECKED; whether it was about one of these. */
bool dp_part_round_checked(dp_node *node, const dp_event *event);
void dp_part_round_trainer_down(dp_node *node);
/* Requests missing objects. */
void dp_part_round_look(dp_node *node);
/* Fetches results from their owners where the wait for members near to this node is over, also
 * those that such a member said it has and does not give. */
void dp_part_round_look_again(dp_node *node);
/* A voter, or with voter DP_NOBODY a member that is none, has these objects. */
void dp_part_round_have(dp_node *node, uint32_t voter, uint32_t member, const dp_hash *roots,
                        uint32_t n);

/* CHECK of an object of this part. */
bool dp_part_round_may_check(dp_node *node);
void dp_part_round_check(dp_node *node, const dp_hash *root, uint32_t part);
/* bytes: that somebody says it has. */
void dp_part_round_fetch(dp_node *node, const dp_hash *root, uint64_t bytes, const dp_peer *holder);
void dp_part_round_throw_away(dp_node *node, const dp_hash *root, uint64_t round);

/* part_work.c: adding up. */
void dp_part_round_tick(dp_node *node);
dp_time dp_part_round_wake(const dp_node *node);
void dp_part_round_reduced(dp_node *node, const dp_event *event);
void dp_part_round_repeat(dp_node *node);
/* The time that a round of this part waits, by this node's measurements; DP_PARTS_MAX: of the
 * largest. */
dp_part_wait dp_part_round_wait(const dp_node *node, uint32_t part);

bool dp_part_round_is_alive(const dp_node *node, const dp_peer *peer);
/* Has it come? Else it is looked at again then, at the latest. */
bool dp_part_round_is_time(dp_node *node, dp_time at);
/* Drops a sum that was added up here and that no peer was told of. */
void dp_part_round_let_go(dp_node *node, const dp_event *event);

/* part_reduce.c: commands to the trainer. */
/* Keeps one of several claims that name the same object of a part: the one heard of first. Returns
 * how many of n claims are kept. */
uint32_t dp_part_round_drop_copies(const dp_node *node, uint32_t part, uint32_t *claims,
                                   uint32_t n);
/* Something to be added up. */
typedef struct dp_part_term {
    dp_part_ref ref;
    unsigned __int128 w;
    uint32_t clip;
} dp_part_term;
/* DP_DO_REDUCE of them, in this order, with shares of their mean. */
void dp_part_round_reduce(dp_node *node, uint32_t part, uint32_t tag, const dp_part_term *terms,
                          uint32_t n);
dp_part_term dp_part_round_term(const dp_node *node, const dp_claim *claim, uint32_t part);
/* Of these claims, in order of peer, and of the sums that some of them are in: the part that its
 * duty is. */
void dp_part_round_reduce_chosen(dp_node *node, uint32_t part, const uint32_t *chosen, uint32_t n);

/* part_collect.c: sums of a site, for owners far away. */
/* Takes up the sum of this part, or gives it up; true: look for the objects that go into it. */
bool dp_part_collect_begin(dp_node *node, uint32_t part);
void dp_part_collect_tick(dp_node *node, uint32_t part, const uint32_t *ready, uint32_t n);
/* Is this author's object of the part wanted for a sum? */
bool dp_part_collect_wants(const dp_node *node, uint32_t part, const dp_claim *claim);
void dp_part_collect_reduced(dp_node *node, const dp_event *event);
void dp_part_collect_repeat(dp_node *node);

/* part_take.c: sums of sites for the part that this node owns. */
/* look: something is to be fetched now that was waited for. */
dp_status dp_part_take_message(dp_node *node, dp_view bytes, bool *look);
dp_status dp_part_take_hint(dp_node *node, uint32_t from, dp_view bytes, bool *look);
void dp_part_take_look(dp_node *node);
bool dp_part_take_checked(dp_node *node, const dp_event *event);
/* Is this object to come in a sum? until when that is waited for. */
bool dp_part_take_awaits(const dp_node *node, uint32_t part, const dp_claim *claim, dp_time *until);
/* Which sums go into a part of these claims. */
void dp_part_take_choose(dp_node *node, uint32_t part, const uint32_t *ready, uint32_t n);
/* The sum in use that has this claim; NULL: none. */
dp_sum *dp_part_take_sum_of(const dp_node *node, uint32_t part, const dp_claim *claim);

/* part_site.c: results that come from afar, once for all nodes of a site. */
void dp_part_site_look(dp_node *node);
bool dp_part_site_near(const dp_part_round *parts, uint32_t member);
/* Somebody near is to fetch this result, and will tell: until when that is waited for. False: this
 * node fetches it. */
bool dp_part_site_waits(const dp_node *node, const dp_result *result, dp_time *until);
/* Does this node fetch for its site the result of this part from a far owner? Then it also sums for
 * it. */
bool dp_part_site_serves(const dp_node *node, uint32_t part);
/* It follows the rounds, so that it fetches results, and can give them. */
bool dp_part_site_takes_part(const dp_node *node, uint32_t member);
/* It is here: tells the near nodes that wait for it. */
void dp_part_site_tell(dp_node *node, const dp_result *result);

/* part_list.c: the parts that a voter lists and judges. */
/* Claims that may be listed, held or not: their indexes. */
uint32_t dp_part_round_ready(const dp_node *node, uint32_t *chosen);
/* May a record that lists no other claims than these name it? Its owner can write anything into
 * it. */
bool dp_part_round_may_name(const dp_node *node, const dp_result *result, const uint32_t *ready,
                            uint32_t n);
/* Parts of which a common majority of voters holds a result that a record may name. */
uint32_t dp_part_round_held(const dp_node *node);
/* May the round be closed that is ripe for this cause? NULL: not yet. */
const char *dp_part_round_close(dp_node *node, const char *cause);
void dp_part_round_list(dp_node *node, dp_record *draft);
/* All results of the record here and whole: 1; not yet: 0; one does not decode: -1. */
int dp_part_round_judge(dp_node *node, const dp_record *record);

#endif
