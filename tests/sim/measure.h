/* Measurements of a simulated run: traffic by kind, time until deaths are told, false suspicions,
 * how fast records spread. It only observes: it does not change the run or its digest. */
#ifndef DP_SIM_MEASURE_H
#define DP_SIM_MEASURE_H

#include <stdint.h>
#include <stdio.h>

#include "gossip/node/node.h"
#include "tests/sim/queue.h"

struct dp_sim;
struct dp_host;
struct dp_sim_totals;

typedef enum dp_traffic {
    DP_TRAFFIC_MEMBERSHIP = 0, /* heartbeats, pings, statements, lists */
    DP_TRAFFIC_ROUNDS,         /* contributions, HAVE, states, votes */
    DP_TRAFFIC_RECORDS,        /* decisions and catching up with them */
    DP_TRAFFIC_OBJECTS,        /* blobs, data, states */
    DP_TRAFFIC_EXCHANGES,
    DP_TRAFFIC_COUNT
} dp_traffic;

enum {
    DP_DELAY_CELLS = 100,
    DP_DELAY_CELL_US = 50000, /* so the last cell begins at 5 s */
    /* an accusation of a node that is up for less time is not a false one */
    DP_MEASURE_SETTLED_US = 5000000
};

/* Histogram of durations. */
typedef struct dp_delays {
    uint32_t count;
    uint32_t cells[DP_DELAY_CELLS];
    uint64_t most_us;
} dp_delays;

typedef struct dp_measure {
    /* Traffic counts from here on: a run of at least twice this length leaves out the start. */
    uint64_t from_us;
    uint64_t node_us;                    /* that nodes ran since */
    uint64_t messages[DP_TRAFFIC_COUNT]; /* sent on a link */
    uint64_t bytes[DP_TRAFFIC_COUNT];
    uint64_t chunks;      /* chunks of objects sent on a link, */
    uint64_t chunks_afar; /* ... to another site */
    double busiest;       /* bytes per second of the busiest sender */
    uint32_t links_most;  /* of one node, sampled each second */
    uint64_t links_sum;   /* over all samples */
    uint64_t links_looks;
    uint64_t false_suspicions; /* of a node that ran and was not stopped */
    uint64_t false_evictions;  /* the same, held for dead */
    dp_delays killed_suspect;  /* from the kill until each node that then ran knows of it */
    dp_delays killed_dead;
    dp_delays frozen_suspect;
    dp_delays frozen_dead;
    /* from the start until it knows that one of its publications since was counted */
    dp_delays killed_rejoin;
    dp_delays frozen_rejoin; /* the same from the thaw */
    /* from the first node that stored a record to each other one that was level */
    dp_delays records;
} dp_measure;

/* Books of the nodes; zeroed when the run starts. */
typedef struct dp_measure_host {
    uint64_t out_bytes;
    uint32_t links;     /* at the last sample */
    uint32_t crowded;   /* consecutive samples with too many links, without a decrease */
    uint64_t struck_at; /* killed or frozen; 0: not since it last ran */
    bool frozen;
    uint8_t *told; /* by observer: 1 suspect, 2 dead, since struck_at */
    /* it runs again, not counted yet; in the future while it is frozen; 0: neither */
    uint64_t back_at;
    uint64_t back_round; /* round of its first publication since; 0: none yet */
    bool back_frozen;
    uint64_t stored_slot; /* newest record on its disk in this life, and since when */
    uint64_t stored_at;
} dp_measure_host;

DP_MUST dp_status dp_measure_open(struct dp_sim *sim);
void dp_measure_close(struct dp_sim *sim);
void dp_measure_sent(struct dp_sim *sim, uint32_t from, uint32_t to, const dp_packet *packet);
void dp_measure_note(struct dp_host *host, const dp_note *note);
void dp_measure_stored(struct dp_host *host, uint64_t slot);
/* The host was killed, or stopped. */
void dp_measure_struck(struct dp_host *host, bool frozen);
/* It has run again since then, or will run from then on. */
void dp_measure_back(struct dp_host *host, uint64_t at_us, bool frozen);
/* Each second. */
void dp_measure_look(struct dp_sim *sim);
void dp_measure_finish(struct dp_sim *sim);
/* Sums over several runs. */
void dp_measure_add(dp_measure *sum, const dp_measure *one);

/* The percentile of the samples in seconds; 0 without samples. */
double dp_delays_percentile(const dp_delays *delays, double percent);
/* Members of a JSON object, each led by a comma. */
void dp_measure_print(FILE *out, const dp_measure *measure, const struct dp_sim_totals *totals);

#endif
