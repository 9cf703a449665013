/* The records that the exhaustive search has its voters propose, numbered, and what the chain says
 * after each: real records, judged and applied by gossip/ledger/valid.h and ledger.h. Record 0 is
 * where the search begins: three of the hosts vote.
 *
 * A record is a CONFIG, another one in each life of its author; it fences somebody, so that it says
 * something. */
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

/* The ledger after a record: 0 or the number of one that may be decided. */
const dp_ledger *dp_explore_ledger(dp_explore_chain *chain, uint32_t number);
/* Slots after the start: 0 for record 0. */
uint32_t dp_explore_slot(const dp_explore_chain *chain, uint32_t number);
/* The record before it. */
uint32_t dp_explore_before(const dp_explore_chain *chain, uint32_t number);
dp_view dp_explore_record(const dp_explore_chain *chain, uint32_t number);
/* Of a record that somebody proposed; also of one that can never be valid, which is numbered
 * now. */
uint32_t dp_explore_number(dp_explore_chain *chain, dp_view record);
/* 0 if no record has this hash. */
uint32_t dp_explore_find(const dp_explore_chain *chain, const dp_hash *hash);

/* Writes the record that host proposes in this life after record before to out
 * (DP_RECORD_BYTES_MAX) and returns its size. goes: the voter that host DP_EXPLORE_VOTERS replaces,
 * or DP_NOBODY. */
size_t dp_explore_value(dp_explore_chain *chain, uint32_t before, uint32_t host, uint32_t life,
                        uint32_t goes, uint8_t *out);
/* May it follow? As dp_chain_offer() and the judge of a voter see it. */
bool dp_explore_valid(dp_explore_chain *chain, uint32_t before, dp_view record);
/* Does cert prove it by the voters after before? Then it is kept for who comes later, if it is the
 * first. */
bool dp_explore_certify(dp_explore_chain *chain, uint32_t before, uint32_t number,
                        const dp_cert_of_record *cert);
/* The record is offered with the certificate that was kept: taken? */
bool dp_explore_offer(dp_explore_chain *chain, uint32_t before, uint32_t number);

#endif
