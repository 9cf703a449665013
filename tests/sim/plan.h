/* The world of one seed: number and speed of its nodes, kinds and rates of its faults. A pure
 * function of seed and options. */
#ifndef DP_SIM_PLAN_H
#define DP_SIM_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "tests/sim/net.h"

enum { DP_SIM_NODES_MAX = 1024 };

typedef enum dp_fault {
    DP_FAULT_LOSS = 0, /* messages are lost */
    DP_FAULT_DELAY,    /* regions, jitter, spikes */
    DP_FAULT_COPY,     /* messages arrive twice, the second one possibly seconds later */
    DP_FAULT_REORDER,
    DP_FAULT_PARTITION, /* groups, one isolated node, or a bridge; in both directions */
    DP_FAULT_ONEWAY,
    /* with and without a reset on the wire; also right after a message of the commit left */
    DP_FAULT_CRASH,
    DP_FAULT_AMNESIA, /* one disk lost or restored from a backup */
    DP_FAULT_SLOW,    /* slow trainers and lines */
    DP_FAULT_PAUSE,   /* stopped and continued */
    DP_FAULT_TRAINER, /* trainer processes die */
    DP_FAULT_DISK,    /* slow disks */
    DP_FAULT_LATE,    /* nodes join during the run */
    DP_FAULT_LEAVE,
    DP_FAULT_CLOCK,  /* drift and wrong wall clocks */
    DP_FAULT_JUMP,   /* wall clocks jump by hours and years, both ways */
    DP_FAULT_NAT,    /* nodes that no other can dial, all the time */
    DP_FAULT_FLAP,   /* links that break every second */
    DP_FAULT_BRIDGE, /* two halves that only one node connects, for a long time */
    /* a message that does not decrypt cuts its link; a disk that serves wrong chunks */
    DP_FAULT_DAMAGE,
    DP_FAULT_WRITE,  /* writes that fail: no space, or an error that ends the process */
    DP_FAULT_REBIND, /* the address of a node changes, with or without a new start */
    /* objects of several chunks, so that their holders die and lie during a transfer */
    DP_FAULT_CHUNKS,
    /* some nodes are of a later version, which sends messages unknown to this one */
    DP_FAULT_NEWER,
    DP_FAULT_SHARDS, /* the data has several parts */
    /* a chunk of data or of a saved state cannot be read any more, which is noticed only when it is
     * read */
    DP_FAULT_ROT,
    /* a trainer that does not answer for a while, or answers a command with an error */
    DP_FAULT_HANG,
    DP_FAULT_NARROW, /* steps with room for few or no messages and bytes */
    DP_FAULT_OWNER,  /* owners pause their nodes for a while: one of them, or all together */
    DP_FAULT_COUNT
} dp_fault;

enum {
    DP_FAULT_OLD =
        DP_FAULT_JUMP, /* classes before this one draw from the first stream of the plan */
    /* this one and those after it hold all the time: they have no mean time between two */
    DP_FAULT_STEADY = DP_FAULT_CHUNKS
};

enum {
    DP_FAULTS_ALL = (1 << DP_FAULT_COUNT) - 1,
    /* the other classes are on with --every and in profile rot */
    DP_FAULTS_DRAWN = ((1 << DP_FAULT_SHARDS) - 1) | 1 << DP_FAULT_OWNER
};

typedef enum dp_profile {
    DP_PROFILE_SWARM = 0, /* each fault class with probability one half */
    /* 3 or 5 voters that bid against each other, crash after sending, receive late copies */
    DP_PROFILE_RIVALS,
    DP_PROFILE_GOSSIP, /* long partitions without a majority, crashes during pair exchanges */
    DP_PROFILE_CALM,   /* no faults */
    DP_PROFILE_DUEL,   /* duel.h: only the votes of one slot */
    /* the same with an owner that proposes two records: no voter may accept both in one ballot */
    DP_PROFILE_LIAR,
    /* many nodes, no faults except those of --loss and --churn; measured, not healed */
    DP_PROFILE_SCALE,
    /* few nodes on one machine, one of them killed or frozen every ten seconds; measured */
    DP_PROFILE_DETECT,
    DP_PROFILE_KILL,   /* scene.h: owners of ballots die after they have proposed */
    DP_PROFILE_STALL,  /* most trainers stall */
    DP_PROFILE_STRICT, /* an invite has fewer uses than nodes that try to join by it */
    DP_PROFILE_JOINS,  /* a node joins every two seconds */
    DP_PROFILE_REVOKE, /* as rivals, and the root key removes members */
    DP_PROFILE_MERGE,  /* forks.h: the root key begins the chain anew, on one side or on two */
    DP_PROFILE_BYZ,    /* evil.h: nodes that lie */
    DP_PROFILE_PAIRS,  /* as gossip, and in pairs between rounds too */
    DP_PROFILE_STEPS,  /* gradients: a round per step, nothing clipped, no exchanges */
    /* as swarm, with data in several parts, objects in several chunks, and disks that lose some of
     * them */
    DP_PROFILE_ROT,
    DP_PROFILE_STALE, /* as swarm, of a run in which late publications count in the next round */
    /* as swarm, of a run whose records name lists (gossip/record/listing.h), often of more than 32
     * contributors */
    DP_PROFILE_LISTS,
    /* more identities than may be members: each stays for a few seconds and never returns */
    DP_PROFILE_SPOTS,
    DP_PROFILE_COUNT
} dp_profile;

typedef enum dp_sim_store {
    DP_SIM_STORE_DRAWN = 0, /* one seed in sixteen has the real one */
    DP_SIM_STORE_MODEL,
    DP_SIM_STORE_REAL,
    /* the real one on a disk that ignores syncs: a mistake that the oracle must find */
    DP_SIM_STORE_LIES
} dp_sim_store;

typedef struct dp_sim_options {
    uint64_t seed;
    uint32_t nodes;    /* 0: drawn */
    uint64_t until_us; /* 0: the usual end */
    uint32_t faults;   /* mask of dp_fault; classes outside it stay off */
    bool all_on;       /* every class of the mask is on */
    dp_profile profile;
    uint32_t evil;        /* byz: dp_evil_kind of the liars, 0: drawn */
    bool lucky;           /* without the bad luck of buggify.h */
    bool rotate;          /* the join secret, at times: epochs.h */
    bool keep_vote_key;   /* the mistake M5: a vote key that outlives its vote table */
    int32_t trace;        /* node whose events are printed, or -1 */
    uint32_t loss_milli;  /* scale, detect: messages lost, per thousand */
    uint32_t churn_milli; /* scale: nodes that come or go in a minute, per thousand */
    uint32_t round_ms;    /* scale, detect: 0: the default of manifests */
    dp_sim_store store;   /* behind the disks, see real.h */
    bool parts;           /* rounds of parts (gossip/record/part.h) */
    bool sums;            /* with parts: site_sums of the manifest */
    /* updates may have fewer elements while lines are slow (gossip/ledger/density.h) */
    bool span;
    uint32_t sites; /* number of sites, with near nodes in each; 0: by the faults */
    bool enrolled;  /* scale: the first nodes are members in the chain from the start (enrol.h) */
    /* The most that a record may list; 0: by the profile, mostly 32. */
    uint32_t contributors;
} dp_sim_options;

typedef struct dp_plan {
    uint32_t nodes;
    uint32_t at_start; /* nodes that dp_faults_start starts; the others are churn's */
    uint32_t members;  /* churn: number of first nodes */
    bool measured;     /* the run ends at its limit, in any state */
    uint64_t churn_us; /* mean time between two nodes that come or go; 0: none */
    uint32_t on;       /* mask of dp_fault */
    uint64_t fault_us[DP_FAULT_COUNT]; /* mean time between two faults of a class */
    uint64_t faults_end_us;            /* then everything is healed */
    uint64_t limit_us;                 /* then patience ends */
    uint32_t buggify;                  /* mask of dp_bug, until the healing */
    bool core;                         /* only a core is healed; the others stay broken forever */
    uint32_t rounds_after;             /* rounds to decide after the healing */
    uint32_t round_ms;
    uint32_t gossip_round_ms;
    bool pairs; /* of the manifest */
    bool gradients;
    bool stale;
    uint32_t voters_max;
    uint32_t inner_steps_max;
    uint32_t disk_us_max;      /* of one write */
    uint32_t save_us;          /* cadence of checkpoints */
    uint32_t crash_after_send; /* share per 65536 of the messages of commits and exchanges */
    uint32_t away_us_max;      /* how long such a node stays away */
    uint32_t chunks_max;       /* of one object */
    uint32_t shards;           /* of the data */
    dp_net_weather weather;
    /* scene.h; 0 in the others */
    uint64_t gap_us_max;  /* between two decided rounds, after the first ones */
    uint32_t kill_share;  /* per 65536 of the owners that propose */
    uint32_t workers;     /* trainers that do not stall */
    uint32_t invite_uses; /* of the one invite of all nodes except the founder */
    uint64_t join_every_us;
    uint64_t life_us;     /* of a node that joins during the faults; 0: it stays */
    uint32_t members_max; /* of the manifest */
    uint32_t absent_s;
    uint32_t revocations;
    bool parts; /* of the options */
    bool span;
    bool sums;
    uint32_t sites;
    uint32_t contributors;
} dp_plan;

void dp_plan_draw(dp_plan *plan, const dp_sim_options *options);
const char *dp_fault_name(dp_fault fault);
const char *dp_profile_name(dp_profile profile);
/* Reads a comma-separated list of fault names, "all" or "none". DP_BADARG with a sentence. */
DP_MUST dp_status dp_plan_faults(const char *list, uint32_t *mask, dp_why *why);

#endif
