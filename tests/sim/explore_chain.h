/* The records that voters of the exhaustive search propose, numbered, and the ledger after each:
 * real records, judged and applied by gossip/ledger/valid.h and ledger.h. The search begins after
 * record 0, with three of the hosts as voters.
 *
 * A record is a CONFIG, a different one in each life of its author; it fences a host, so that it is
 * not empty. */
#ifndef DP_SIM_EXPLORE_CHAIN_H
#define DP_SIM_EXPLORE_CHAIN_H

#include "gossip/ledger/ledger.h"
#include "tests/sim/sim.h"

enum {
    DP_EXPLORE_VOTERS = 3,
    DP_EXPLORE_RECORDS_MAX = 250, /* different ones, over all states; a number fits in a byte */
    DP_EXPLORE_SLOTS_MAX = 3
};

typedef struct dp_explore_chain dp_explore_chain;

/* sim: open, with at least DP_EXPLORE_VOTERS + 1 hosts. */
dp_explore_chain *dp_explore_chain_open(dp_sim *sim);
void dp_explore_chain_close(dp_explore_chain *chain);

/* The ledger after a record, 0 or the number of one that may be decided. */
const dp_ledger *dp_explore_ledger(dp_explore_chain *chain, uint32_t number);
/* Slots after the start: 0 for record 0. */
uint32_t dp_explore_slot(const dp_explore_chain *chain, uint32_t number);
/* The record before it. */
uint32_t dp_explore_before(const dp_explore_chain *chain, uint32_t number);
dp_view dp_explore_record(const dp_explore_chain *chain, uint32_t number);
/* The number of a proposed record; one that can never be valid gets its number now. */
uint32_t dp_explore_number(dp_explore_chain *chain, dp_view record);
/* 0 if no record has this hash. */
uint32_t dp_explore_find(const dp_explore_chain *chain, const dp_hash *hash);

/* Writes the record that host proposes in this life after record before to out
 * (DP_RECORD_BYTES_MAX) and returns its size. goes: the voter that host DP_EXPLORE_VOTERS replaces,
 * or DP_NOBODY. */
size_t dp_explore_value(dp_explore_chain *chain, uint32_t before, uint32_t host, uint32_t life,
                        uint32_t goes, uint8_t *out);
/* May it follow, by the rules of dp_chain_offer() and of a voter's judge? */
bool dp_explore_valid(dp_explore_chain *chain, uint32_t before, dp_view record);
/* Does cert prove it by the voters after before? Then the first such certificate is kept, to be
 * given to others. */
bool dp_explore_certify(dp_explore_chain *chain, uint32_t before, uint32_t number,
                        const dp_cert_of_record *cert);
/* Is the record taken if it is offered with the kept certificate? */
bool dp_explore_offer(dp_explore_chain *chain, uint32_t before, uint32_t number);

#endif
