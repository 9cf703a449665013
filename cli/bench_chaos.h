/* The chaos bench inside: real daemons that are killed on a schedule, the book of what all of them told, and the report.
 * The verb is cmd_bench.c's. One run with faults is a dp_chaos; its control, without, is another. */
#ifndef DP_CLI_BENCH_CHAOS_H
#define DP_CLI_BENCH_CHAOS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/rng.h"
#include "cli/client.h"
#include "cli/paths.h"

enum {
    DP_CHAOS_NODES_MAX = 32,
    DP_CHAOS_ROUNDS_MAX = 1 << 16,  /* rounds that the book holds; then the run ends */
    DP_CHAOS_SAMPLES_MAX = 1 << 16, /* of each kind; more are not kept */
    DP_CHAOS_ID_MAX = 24,
    DP_CHAOS_GRACE_MS =
        5000, /* after a restart, in which others may still hold the node for dead */
    DP_CHAOS_REJOIN_MS_MAX = 60 * 1000 /* after the last fault, until every node counts again */
};

/* ---- options ---- */

typedef struct dp_chaos_options {
    unsigned nodes;
    uint64_t kill_every_ms; /* 0: never */
    uint64_t down_ms;       /* from the kill to the restart */
    uint64_t duration_ms;
    uint64_t round_ms;
    uint64_t seed;
    const char *proxy; /* settings of dpfault, or NULL: no proxy */
    bool chatty;       /* tell progress on stderr */
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
    uint64_t first_ms; /* when the first node told it */
    uint64_t slot;
    uint64_t tokens;
    uint64_t bytes;
    double loss;        /* 0: unknown */
    uint32_t listed;    /* bit per node that it counts */
    uint32_t rooted_by; /* bit per node that told its state after it */
    char root[65];      /* "" until told */
} dp_chaos_round;

typedef struct dp_chaos_life {
    char id[DP_CHAOS_ID_MAX]; /* short id */
    bool up;
    bool waits; /* was started again and not yet counted */
    uint64_t killed_ms;
    uint64_t started_ms;
    uint32_t noticed_by; /* bit per node that saw the last kill */
    uint32_t watchers;   /* bit per node that was up when it was killed */
} dp_chaos_life;

typedef struct dp_chaos_book {
    unsigned n_nodes;
    dp_chaos_life lives[DP_CHAOS_NODES_MAX];
    dp_chaos_round *rounds; /* by number; DP_CHAOS_ROUNDS_MAX */
    uint64_t last_round;
    uint64_t last_ms;
    bool measuring; /* gaps, tokens and commits count only now */
    uint64_t committed;
    uint64_t tokens;
    uint64_t gossip;
    uint64_t duplicate; /* told differently by two nodes, or twice by one */
    uint64_t lost;
    uint64_t parity_breaks;
    uint64_t roots; /* (node, round) whose state was compared */
    uint64_t kills;
    uint64_t rejoined;
    uint64_t killed_before; /* again, before the node counted */
    uint64_t false_detections;
    uint64_t false_suspicions;
    dp_chaos_samples gaps;
    dp_chaos_samples detects;
    dp_chaos_samples rejoins;
    char first_wrong[200]; /* a sentence about the first violation */
} dp_chaos_book;

DP_MUST dp_status dp_chaos_book_open(dp_chaos_book *book, unsigned n_nodes);
void dp_chaos_book_close(dp_chaos_book *book);
void dp_chaos_book_begin(dp_chaos_book *book, uint64_t now_ms);
void dp_chaos_book_killed(dp_chaos_book *book, unsigned node, uint64_t now_ms);
void dp_chaos_book_started(dp_chaos_book *book, unsigned node, uint64_t now_ms);
/* As control_msg.h describes rounds and events. */
void dp_chaos_book_round(dp_chaos_book *book, unsigned node, uint64_t now_ms, const json_t *round);
void dp_chaos_book_event(dp_chaos_book *book, unsigned node, const json_t *event);
/* At the end: rounds beyond head, the last one that all nodes hold, are lost, and so are numbers that nobody told. */
void dp_chaos_book_end(dp_chaos_book *book, uint64_t head);
/* Mean loss by tokens over the rounds that bring the sum of tokens from 0.8 of tokens to tokens; 0: unknown. */
double dp_chaos_book_loss(const dp_chaos_book *book, uint64_t tokens);
uint64_t dp_chaos_book_tokens(const dp_chaos_book *book); /* of all rounds */
unsigned
dp_chaos_book_waiting(const dp_chaos_book *book); /* nodes not counted since their last start */

/* ---- one run ---- */

typedef struct dp_chaos_node {
    pid_t pid; /* 0: not running */
    unsigned port;
    unsigned proxy_port;
    dp_client client; /* fd -1: not connected */
    uint64_t try_ms;  /* next connect */
    uint64_t ask_ms;  /* next question for roots */
    uint64_t restart_ms;
    uint64_t round; /* of the last status, as voters */
    unsigned voters;
} dp_chaos_node;

typedef struct dp_chaos {
    const dp_chaos_options *options;
    char dir[DP_CLI_PATH_MAX];
    dp_rng rng;
    dp_chaos_book book;
    dp_chaos_node nodes[DP_CHAOS_NODES_MAX];
    pid_t proxy_pid;
    int proxy_fd; /* its standard input; -1: none */
    uint64_t measured_ms;
    uint64_t rss_max;
    uint64_t fds_max;
    unsigned died; /* daemons that ended by themselves */
    unsigned not_rejoined;
    bool agreed; /* at the end all nodes held the same state */
} dp_chaos;

uint64_t dp_chaos_now_ms(void); /* unix, as in events */
bool dp_chaos_interrupted(void);

/* Folder, proxies, daemons, their run; all counted in a round when it returns 0. Else an exit status, *error tells. */
DP_MUST int dp_chaos_up(dp_chaos *self, const dp_chaos_options *options, dp_control_error *error);
/* duration_ms of faults, then until all have rejoined and agree. */
DP_MUST int dp_chaos_run(dp_chaos *self, dp_control_error *error);
/* No process and no file is left. Accepts one whose up failed. */
void dp_chaos_down(dp_chaos *self);

/* Inside: processes. */
DP_MUST int dp_chaos_spawn(dp_chaos *self, unsigned node, dp_control_error *error);
void dp_chaos_kill(dp_chaos *self, unsigned node, int number);
void dp_chaos_node_path(const dp_chaos *self, unsigned node, const char *what,
                        char path[DP_CLI_PATH_MAX]);
bool dp_chaos_ended(dp_chaos *self, unsigned node); /* by itself; then it is reaped */
void dp_chaos_sample(dp_chaos *self);               /* memory and descriptors */

/* Inside: listening. Reads what came within wait_ms from all nodes into the book, asks for what is due, and connects
 * to those who were started. */
void dp_chaos_listen(dp_chaos *self, int wait_ms);
void dp_chaos_deaf(dp_chaos_node *node); /* forget the connection */

/* ---- the report ---- */

typedef struct dp_chaos_result {
    const dp_chaos_options *options;
    dp_chaos *chaos;
    dp_chaos *control; /* NULL: none */
    double control_share;
} dp_chaos_result;

/* Prints the table, or one JSON object. Exit status: 0, or 1 when something was violated. */
DP_MUST int dp_chaos_report(const dp_cmd *cmd, dp_chaos_result *result);

#endif
