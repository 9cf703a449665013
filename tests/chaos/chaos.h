/* The parts of the chaos bench: real daemons that are killed on a schedule, the book of their
 * reports, and the final report. main.c has the command line. One run with faults is a dp_chaos;
 * its control, a run without faults, is another. */
#ifndef DP_TESTS_CHAOS_CHAOS_H
#define DP_TESTS_CHAOS_CHAOS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rng.h"
#include "cli/children.h"
#include "cli/client.h"
#include "cli/paths.h"

enum {
    DP_CHAOS_NODES_MAX = 32,
    DP_CHAOS_ROUNDS_MAX = 1 << 16,  /* capacity of the book in rounds; then the run ends */
    DP_CHAOS_SAMPLES_MAX = 1 << 16, /* of each kind; more are not kept */
    DP_CHAOS_ID_MAX = 24,
    DP_CHAOS_STORE_BYTES = 96 << 20, /* quota of each node */
    DP_CHAOS_GRACE_MS = 5000, /* after a restart, while others may still hold the node for dead */
    /* after a fault, while a trainer may still die because of it */
    DP_CHAOS_EXPLAINED_MS = 15 * 1000,
    DP_CHAOS_GAP_MS_MAX = 60 * 1000, /* a run without a round for this time has failed */
    DP_CHAOS_NOTICE_MS = 3000, /* all should have noticed a node that was frozen for this time */
    DP_CHAOS_REJOIN_MS_MAX = 60 * 1000 /* after the last fault, until every node counts again */
};

/* ---- options ---- */

typedef enum dp_chaos_kind {
    DP_CHAOS_KILL,     /* SIGKILL to the daemon, started again after down_ms */
    DP_CHAOS_STOP,     /* SIGSTOP to daemon and trainer, SIGCONT after a drawn time */
    DP_CHAOS_CUT,      /* dpfault disconnects a group of nodes from the others for a drawn time */
    DP_CHAOS_DISK,     /* the node's disk, a small one in memory, is full for a drawn time */
    DP_CHAOS_WORKER,   /* SIGKILL to the trainer; its daemon starts another */
    DP_CHAOS_OWNER,    /* as kill, to the owner of the ballot under way */
    DP_CHAOS_MAJORITY, /* as kill, to more than half of the nodes at once, for a drawn time */
    DP_CHAOS_ROT,      /* as kill, and a file of its store is deleted, truncated or damaged */
    DP_CHAOS_BACKUP,   /* as kill, and an older copy replaces its directory */
    DP_CHAOS_CLOCK,    /* its clock is wrong by minutes to hours, for a drawn time */
    DP_CHAOS_KINDS
} dp_chaos_kind;

/* Bits of the kinds in "kill,stop,…"; 0 if a word is unknown. */
unsigned dp_chaos_kinds_parse(const char *text);
const char *dp_chaos_kind_name(dp_chaos_kind kind);
/* Does this kind kill the daemon? */
bool dp_chaos_kind_kills(dp_chaos_kind kind);

typedef struct dp_chaos_options {
    unsigned nodes;
    unsigned kinds;         /* bit per dp_chaos_kind */
    unsigned spare;         /* the first so many nodes have no faults of their own */
    uint64_t kill_every_ms; /* interval of faults; 0: none */
    uint64_t down_ms;       /* from the kill to the restart */
    uint64_t duration_ms;
    uint64_t round_ms;
    uint64_t seed;
    bool disks;        /* small disks in memory */
    const char *mode;  /* of the run: round.mode of its manifest */
    bool parts;        /* members trust each other, and add up parts */
    const char *proxy; /* settings of dpfault, or NULL: no proxy */
    bool chatty;       /* report progress on stderr */
} dp_chaos_options;

/* ---- the book: pure, times are given in milliseconds of one clock ---- */

typedef struct dp_chaos_samples {
    uint32_t count;
    double *values; /* seconds; DP_CHAOS_SAMPLES_MAX */
} dp_chaos_samples;

/* Quantile of 0 to 1 by the nearest rank, after sorting; 0 without samples. */
double dp_chaos_quantile(dp_chaos_samples *samples, double q);

typedef struct dp_chaos_round {
    bool seen;
    uint64_t first_ms; /* when the first node reported it */
    uint64_t slot;
    uint64_t tokens;
    uint64_t bytes;
    double loss;        /* 0: unknown */
    uint32_t listed;    /* bit per counted node */
    uint32_t rooted_by; /* bit per node that reported its state after it */
    char root[65];      /* "" until reported */
} dp_chaos_round;

typedef struct dp_chaos_life {
    char id[DP_CHAOS_ID_MAX]; /* short id */
    bool up;                  /* runs, and is not frozen */
    bool waits;               /* is back from a fault but not yet counted */
    dp_chaos_kind fault;      /* the last one */
    uint64_t fault_ms;        /* when it began; 0: none was */
    uint64_t back_ms;         /* when it ended; of a killed node: the exec */
    uint64_t spawned_ms;      /* the last exec */
    uint32_t noticed_by;      /* bit per node that noticed the last kill or stop */
    uint32_t watchers;        /* bit per node that could notice it, until the end of the fault */
    uint64_t down_ms;         /* time of the last death of a trainer that it reported; 0: none */
    unsigned killed_trainers; /* by the bench, and not yet reported */
    bool odd_clock; /* the clock of this process was wrong once, so its reported times are too */
} dp_chaos_life;

/* Gaps between rounds, by the faults that began in them. */
typedef enum dp_chaos_gap { DP_CHAOS_GAP_CLEAN, DP_CHAOS_GAP_KILL, DP_CHAOS_GAP_STOP } dp_chaos_gap;
enum { DP_CHAOS_GAPS = 3 };

typedef struct dp_chaos_book {
    unsigned n_nodes;
    dp_chaos_life lives[DP_CHAOS_NODES_MAX];
    dp_chaos_round *rounds; /* by number; DP_CHAOS_ROUNDS_MAX */
    uint64_t last_round;
    uint64_t last_ms;
    bool measuring; /* gaps, tokens and commits count only from now on */
    uint64_t committed;
    uint64_t tokens;
    uint64_t gossip;
    uint64_t duplicate; /* reported differently by two nodes, or twice by one */
    uint64_t lost;
    uint64_t parity_breaks;
    uint64_t roots; /* (node, round) whose state was compared */
    uint64_t faults[DP_CHAOS_KINDS];
    uint64_t rejoined;
    uint64_t slowest_ms; /* all returns, and the faults before them */
    dp_chaos_kind slowest;
    uint64_t killed_before; /* had another fault before the node was counted */
    uint64_t unnoticed;     /* (node, watcher) of stops that lasted DP_CHAOS_NOTICE_MS */
    uint64_t false_detections;
    uint64_t false_suspicions;
    uint64_t trainers_died; /* neither killed by the bench nor explained by a fault of their node */
    uint64_t outage_ms;     /* in all, without a majority of the nodes */
    unsigned gap_faults;    /* bit per kind that began in the gap under way */
    uint32_t cut;           /* nodes that are disconnected from the others now; 0: none */
    /* Times at which one node may hold another live one for dead: during a cut between them, or
     * afterwards because of reports of others. */
    uint64_t excused_ms[DP_CHAOS_NODES_MAX][DP_CHAOS_NODES_MAX];
    dp_chaos_samples gaps;
    dp_chaos_samples gaps_by[DP_CHAOS_GAPS];
    dp_chaos_samples detects;       /* of kills */
    dp_chaos_samples detects_stop;  /* of stops */
    dp_chaos_samples rejoins;       /* from the exec after a kill */
    dp_chaos_samples rejoins_other; /* from the end of any other fault */
    char first_wrong[200];          /* a sentence about the first violation */
} dp_chaos_book;

DP_MUST dp_status dp_chaos_book_open(dp_chaos_book *book, unsigned n_nodes);
void dp_chaos_book_close(dp_chaos_book *book);
void dp_chaos_book_begin(dp_chaos_book *book, uint64_t now_ms);
void dp_chaos_book_fault(dp_chaos_book *book, unsigned node, dp_chaos_kind kind, uint64_t now_ms);
/* Its fault is over, or the node runs for the first time. */
void dp_chaos_book_back(dp_chaos_book *book, unsigned node, uint64_t now_ms);
/* The nodes of group are disconnected from all others until the heal: each of them also counts as
 * faulty, and as back afterwards. */
void dp_chaos_book_cut(dp_chaos_book *book, uint32_t group, uint64_t now_ms);
void dp_chaos_book_healed(dp_chaos_book *book, uint64_t now_ms);
/* Takes rounds and events in the form of control_msg.h. */
void dp_chaos_book_round(dp_chaos_book *book, unsigned node, uint64_t now_ms, const json_t *round);
void dp_chaos_book_event(dp_chaos_book *book, unsigned node, const json_t *event);
/* Call at the end: rounds after head, the last one that all nodes have, are lost, and so are
 * numbers that no node reported. */
void dp_chaos_book_end(dp_chaos_book *book, uint64_t head);
/* Mean loss by tokens over the rounds that bring the sum of tokens from 0.8 of tokens to tokens; 0:
 * unknown. */
double dp_chaos_book_loss(const dp_chaos_book *book, uint64_t tokens);
uint64_t dp_chaos_book_tokens(const dp_chaos_book *book); /* of all rounds */
unsigned
dp_chaos_book_waiting(const dp_chaos_book *book); /* nodes not counted since their last start */

/* ---- slopes: of memory and descriptors over the lives of daemons ---- */

/* Sums of a least-squares line per life, without the level of the life, so that restarts do not
 * look like savings. */
typedef struct dp_chaos_slope {
    uint64_t begin_ms; /* of the life */
    uint64_t count;
    double t, tt;      /* hours since its beginning */
    double rss, t_rss; /* MiB */
    double fds, t_fds;
} dp_chaos_slope;

void dp_chaos_slope_add(dp_chaos_slope *slope, uint64_t now_ms, double rss_mib, double fds);
/* Adds the sums of one life, without its level, to those of all; the life begins again. */
void dp_chaos_slope_fold(dp_chaos_slope *all, dp_chaos_slope *life);
/* Per hour. False: too few measurements. */
bool dp_chaos_slope_tell(const dp_chaos_slope *all, double *rss_mib_h, double *fds_h);

/* ---- one run ---- */

typedef struct dp_chaos_node {
    pid_t pid; /* 0: not running */
    unsigned port;
    unsigned proxy_port;
    dp_client client; /* fd -1: not connected */
    uint64_t try_ms;  /* next connect */
    uint64_t ask_ms;  /* next question for roots */
    uint64_t restart_ms;
    bool has_disk;
    bool faulty; /* has a lasting fault of this kind until then */
    dp_chaos_kind fault;
    uint64_t fault_until_ms;
    uint64_t backup_ms; /* when the copy of its directory was made; 0: there is none */
    uint64_t round;     /* of the last status, like the next two */
    unsigned voters;
    char owner[DP_CHAOS_ID_MAX]; /* short id of the ballot's owner, as this node knows it */
} dp_chaos_node;

typedef struct dp_chaos {
    const dp_chaos_options *options;
    char dir[DP_CLI_PATH_MAX];
    char kept[DP_CLI_PATH_MAX]; /* after the end, if a rule was broken */
    dp_rng rng;
    dp_chaos_book book;
    dp_chaos_node nodes[DP_CHAOS_NODES_MAX];
    pid_t proxy_pid;
    int proxy_fd; /* its standard input; -1: none */
    uint64_t measured_ms;
    uint64_t cut_until_ms;                     /* 0: no node is cut off */
    dp_chaos_slope slopes[DP_CHAOS_NODES_MAX]; /* of the lives under way */
    dp_chaos_slope slope;                      /* of all */
    uint64_t rss_max;
    uint64_t fds_max;
    uint64_t store_max; /* bytes of the largest store */
    unsigned died;      /* daemons that ended by themselves */
    unsigned not_rejoined;
    bool agreed;       /* at the end all nodes held the same state */
    unsigned audited;  /* nodes whose chain was judged at the end, */
    unsigned findings; /* and the findings */
    char finding[160]; /* the first */
} dp_chaos;

uint64_t dp_chaos_now_ms(void); /* unix, as in events */

/* Starts folder, proxies, daemons and their run; when it returns 0, a round has counted all.
 * Otherwise an exit status, and *error has the reason. */
DP_MUST int dp_chaos_up(dp_chaos *self, const dp_chaos_options *options, dp_control_error *error);
/* duration_ms of faults, then until all have rejoined and agree. */
DP_MUST int dp_chaos_run(dp_chaos *self, dp_control_error *error);
/* Leaves no process, and no file unless keep: then kept names the folder of logs and stores.
 * Accepts one whose up failed. */
void dp_chaos_down(dp_chaos *self, bool keep);

/* Internal: faults (chaos_faults.c). */
void dp_chaos_begin_fault(dp_chaos *self, uint64_t now_ms); /* a drawn one */
/* Ends the faults that are due, or all lasting ones. Another function restarts killed nodes. */
void dp_chaos_end_faults(dp_chaos *self, uint64_t now_ms, bool all);
/* Makes a small disk in memory for each node, which can be filled. Only in the mount namespace of
 * this process, so it does not outlive the bench. */
DP_MUST int dp_chaos_make_disks(dp_chaos *self, dp_control_error *error);
void dp_chaos_end_disks(dp_chaos *self);

/* Internal: files (chaos_files.c). Damages one file of the store of a node that does not run. */
void dp_chaos_rot(dp_chaos *self, unsigned node);
/* For a node that does not run: copies its directory, or restores an older copy. True: it restored
 * one. */
bool dp_chaos_backup(dp_chaos *self, unsigned node, uint64_t now_ms);
/* Seconds that the clock of a node is wrong. False: the file cannot be written. */
bool dp_chaos_clock_set(const dp_chaos *self, unsigned node, int64_t offset_s);
int64_t dp_chaos_clock_draw(dp_chaos *self);
/* The next started process gets the clock of this node. False: libdpclock.so is not beside this
 * program. */
bool dp_chaos_clock_wear(const dp_chaos *self, unsigned node);

/* Internal: compares the chain of each node, audited by its daemon, with the book (chaos_audit.c).
 * Counts findings. */
void dp_chaos_audit(dp_chaos *self);

/* Internal: processes. */
DP_MUST int dp_chaos_spawn(dp_chaos *self, unsigned node, dp_control_error *error);
void dp_chaos_kill(dp_chaos *self, unsigned node, int number);
void dp_chaos_node_path(const dp_chaos *self, unsigned node, const char *what,
                        char path[DP_CLI_PATH_MAX]);
bool dp_chaos_ended(dp_chaos *self, unsigned node);              /* by itself; then it is reaped */
void dp_chaos_signal(dp_chaos *self, unsigned node, int number); /* to daemon and trainer */
void dp_chaos_tell_proxy(dp_chaos *self, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Internal: memory, descriptors and stores (chaos_sample.c). */
void dp_chaos_sample(dp_chaos *self, uint64_t now_ms);
void dp_chaos_sample_end(dp_chaos *self, unsigned node); /* a life is over */

/* Internal: reports. Records the reports that arrive from all nodes within wait_ms, sends the
 * queries that are due, and connects to restarted nodes. */
void dp_chaos_listen(dp_chaos *self, int wait_ms);
void dp_chaos_deaf(dp_chaos_node *node); /* closes the connection */

/* ---- the report ---- */

typedef struct dp_chaos_result {
    const dp_chaos_options *options;
    dp_chaos *chaos;
    dp_chaos *control; /* NULL: none */
    double control_share;
} dp_chaos_result;

/* After the run: true if no round was lost or wrong, and the run never stopped. */
bool dp_chaos_sound(const dp_chaos *chaos);
/* Prints the table, or one JSON object. Exit status: 0, or 1 if a rule was broken. */
DP_MUST int dp_chaos_report(const dp_cmd *cmd, dp_chaos_result *result);

#endif
