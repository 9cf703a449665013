/* A ledger and a record on it, for tests of validity: three members that vote, after round 5. */
#ifndef DP_TESTS_VALID_KIT_H
#define DP_TESTS_VALID_KIT_H

#include "gossip/ledger/valid.h"
#include "tests/unit/gossip/kit/chain_kit.h"

static dp_ledger ledger;
static dp_record record;
static dp_admitted admitted[DP_CONFIG_ADMIT_MAX];

/* 2 was counted last in round 4, with weight w. The record is empty. */
static inline void kit_begin(uint64_t w)
{
    kit_ledger(&ledger);
    kit_voters(&ledger, 3);
    ledger.round = 5;
    ledger.slot = 6;
    ledger.roster[2].included = 4;
    ledger.roster[2].w = w;
    kit_round(&ledger, &record);
}

static int teardown(void **state)
{
    (void)state;
    dp_ledger_close(&ledger);
    return 0;
}

/* Of the record on the ledger; with a cause. */
static dp_status verdict(void)
{
    const dp_crypto crypto = kit_crypto(0);
    const dp_admission admission = kit_admission();
    const dp_valid valid = {
        .ledger = &ledger, .crypto = &crypto, .admission = &admission, .admitted = admitted};
    const char *cause = NULL;
    const dp_status status = dp_valid_record(&valid, &record, &cause);

    assert_non_null(cause);
    return status;
}

#endif
