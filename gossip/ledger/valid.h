/* May this record follow this chain? Pure: it reads the record, the evidence that it carries and
 * the ledger, never a clock, a ban list or the state of members, so that a record that one honest
 * voter accepts is accepted by every honest voter with the same chain. */
#ifndef DP_GOSSIP_LEDGER_VALID_H
#define DP_GOSSIP_LEDGER_VALID_H

#include "gossip/identity/admission.h"
#include "gossip/ledger/ledger.h"
#include "gossip/ledger/weights.h"

typedef struct dp_valid {
    const dp_ledger *ledger; /* chain up to the slot before */
    dp_view bytes;           /* of the record; only for a FORK, whose signature covers them */
    const dp_crypto *crypto;
    const dp_admission *admission;
    dp_admitted *admitted; /* filled in the order of the record's admissions: DP_CONFIG_ADMIT_MAX */
} dp_valid;

/* DP_OK; DP_AGAIN: of a later slot; DP_EXISTS: of an earlier one; DP_BADSIG, DP_DENIED: never valid
 * here, and *cause (static text) says why. The energies are taken from the record: a voter compares
 * them with the blobs before it votes. */
DP_MUST dp_status dp_valid_record(const dp_valid *valid, const dp_record *record,
                                  const char **cause);

/* Judges a FORK as far as is possible from any slot of its chain at or after prev: signature and
 * voters; every voter ever admitted counts as a member. */
DP_MUST dp_status dp_valid_fork(const dp_valid *valid, const dp_record *record, const char **cause);

/* Are the numbers of this claim such that a record may list it? A record that lists a claim with
 * other numbers is never decided. */
bool dp_valid_numbers(const dp_ready *ready);

/* May its author have trained on so many samples, by its lease (lease.h)? The numbers are valid. */
bool dp_valid_lease(const dp_ledger *ledger, const dp_ready *ready);

/* The weight of this contribution to the next round, in a run of parts: from it and the chain
 * alone. */
dp_weight_out dp_valid_weigh(const dp_ledger *ledger, const dp_ready *ready);
/* valid_parts.c: checks the parts of a ROUND record whose contributions are valid.
 * dp_valid_fill_parts fills in their shares, for the author of the record. */
DP_MUST dp_status dp_valid_parts(const dp_valid *valid, const dp_record *record,
                                 const char **cause);
void dp_valid_fill_parts(dp_record *record);
/* The capabilities of this peer, once this record is in the chain. */
uint32_t dp_valid_caps(const dp_valid *valid, const dp_record *record, const dp_peer *peer);
/* The READY that a contribution of a ROUND record must have been: dp_ready_of_listed, or with age 1
 * that of the round before. */
dp_ready dp_valid_ready(const dp_ledger *ledger, const dp_record *record, uint32_t index);

/* Fill w, clip, q, W, M and the token count of a ROUND record whose peers, claims, energies and
 * late list stand. */
void dp_valid_fill(const dp_ledger *ledger, dp_record *record);

#endif
