/* One simulated world: the nodes, the network between them, and the loop that advances time. A run
 * is a pure function of its options; one thread; reads nothing from outside. */
#ifndef DP_SIM_SIM_H
#define DP_SIM_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/run/manifest.h"
#include "gossip/node/node.h"
#include "tests/sim/host.h"
#include "tests/sim/measure.h"
#include "tests/sim/net.h"
#include "tests/sim/object.h"
#include "tests/sim/plan.h"
#include "tests/sim/queue.h"

enum { DP_SIM_SENTENCE_MAX = 240, DP_MEASURE_SLOTS = 4096 };

struct dp_oracle;
struct dp_evil;
struct dp_forks_world;

/* The first failure. */
typedef struct dp_sim_failure {
    char invariant[8]; /* "S1", "L2", "M14"; empty: none */
    uint64_t at_us;
    uint32_t node;
    char sentence[DP_SIM_SENTENCE_MAX];
} dp_sim_failure;

/* Counts of a run. */
typedef struct dp_sim_totals {
    uint64_t occasions;
    uint64_t steps;
    uint64_t node_us; /* simulated node-time that was up */
    uint64_t rounds;
    uint64_t slots;
    uint64_t crashes;
    uint64_t listed;         /* contributions in decided rounds, */
    uint64_t tokens;         /* of these, with those carried, */
    uint32_t listed_most;    /* and in one of them */
    uint64_t first_round_us; /* times of the first and the last decision */
    uint64_t last_round_us;
    uint64_t exchanges;
    uint64_t thinner; /* rounds after which updates keep half as many elements, */
    uint64_t thicker; /* and twice as many */
    uint64_t aged;    /* contributions that count a round later (mode stale) */
    uint64_t messages;
    uint32_t evil;                   /* byz: kind of the liars, */
    uint32_t trick;                  /* and which of its lies */
    uint64_t lies;                   /* byz: lies of the kinds that are counted */
    uint64_t forks;                  /* byz: runs in which a lying voter had two records decided */
    uint64_t halts;                  /* byz: runs that ended with a proof known to all */
    uint64_t copied;                 /* byz: publications that copy all parts but one of another */
    uint64_t unbounded;              /* byz: rounds that listed so many liars that no bound holds */
    uint64_t harmful;                /* byz: members removed for their updates */
    uint64_t epochs;                 /* rotate: of the join secret, that the chain has named */
    uint64_t evictions;              /* byz: live nodes taken for dead */
    uint64_t parts;                  /* of decided rounds, in runs of parts; */
    uint64_t site_sums;              /* that these parts name; */
    uint64_t parts_missing;          /* and those without a result */
    uint64_t digest;                 /* of every occasion and action */
    uint64_t faults[DP_FAULT_COUNT]; /* number of faults of each class */
    uint64_t ended_us;
    /* from the healing until the run had recovered and decided rounds_after rounds */
    uint64_t together_us;
    /* The longest times after the healing: until the first round, between two, until a node was
     * level; and the most rounds until a level node, or a level one that had been slow, was
     * listed. */
    uint64_t first_us;
    uint64_t gap_us;
    uint64_t level_us;
    uint64_t count_rounds;
    uint64_t slow_rounds;
} dp_sim_totals;

typedef struct dp_sim {
    dp_sim_options options;
    dp_plan plan;
    uint64_t now_us;
    dp_queue queue;
    dp_net net;
    dp_shelf shelf;
    dp_manifest manifest;
    dp_run_id run;
    dp_host *hosts;      /* plan.nodes of them; 0 is the founder */
    dp_actions *actions; /* of the step under way */
    struct dp_oracle *oracle;
    struct dp_evil *evil;         /* NULL: no liars */
    struct dp_forks_world *forks; /* profile merge, else NULL */
    dp_rng crash_rng;
    dp_rng fault_rngs[DP_FAULT_COUNT];
    dp_fault striking; /* the class whose stream is used */
    bool healed;
    uint64_t healed_us;
    uint32_t amnesias;
    uint32_t leavers;
    uint32_t invites_ordered; /* bit i: some node got the command to revoke dp_sim_invite(i) */
    dp_rng churn_rng;
    uint32_t joiners; /* churn: nodes that were started since the start */
    dp_measure measure;
    dp_measure_host *measured; /* by host */
    uint64_t *first_stored;    /* by slot: time at which the first node had the record; 0: none */
    dp_sim_failure failure;
    dp_sim_totals totals;
} dp_sim;

DP_MUST dp_status dp_sim_open(dp_sim *sim, const dp_sim_options *options);
void dp_sim_close(dp_sim *sim);
/* Runs to the end, or to the first failure. True if there was none. */
bool dp_sim_run(dp_sim *sim);

/* Called by all parts. Only the first failure is kept. */
void dp_sim_fail(dp_sim *sim, const char *invariant, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
void dp_sim_push(dp_sim *sim, const dp_occasion *occasion);
void dp_sim_mark(dp_sim *sim, uint64_t a, uint64_t b); /* adds to the digest */

/* faults.c: the schedule of the faults. */
void dp_faults_start(dp_sim *sim);
void dp_faults_strike(dp_sim *sim, const dp_occasion *occasion);
/* Called before a step of a host whose steps have little room: sets the room of this one. */
void dp_faults_narrow(dp_host *host);
/* True with probability one half, from the stream of this class, and then counted. */
bool dp_faults_bend(dp_host *host, dp_fault fault);
/* The write chosen for an I/O error has failed: the daemon ends, and is restarted. */
void dp_faults_io_error(dp_host *host);
void dp_faults_heal(dp_sim *sim);
/* newer.c: a node of a later version sends all messages of this one, and sometimes additional
 * ones. */
void dp_newer_says(dp_host *host, const dp_action *send);
/* Is this message of a version, or of a type, that the nodes here do not know? */
bool dp_newer_is(dp_view message);
/* The node gets it: it must drop and count it, and keep its link (S16). */
void dp_newer_arrives(dp_host *host, uint32_t from, dp_event *event);
/* core.c: hosts outside the core break forever, just after all were healed. */
void dp_core_break(dp_sim *sim);

/* churn.c */
void dp_churn_start(dp_sim *sim);
void dp_churn_strike(dp_sim *sim);

/* Names of simulated nodes. */
dp_peer dp_sim_peer(uint32_t index);
/* plan.nodes if no host has this name. */
uint32_t dp_sim_index(const dp_sim *sim, const dp_peer *peer);

#endif
