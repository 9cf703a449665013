/* Accusations of harmful updates, and the removals that they are evidence for
 * (docs/decisions/006-judging-updates.md). Bytes, signatures and a voter's table of these
 * statements; judge.h decides which members are accused.
 *
 *   HARM    head | 32 accused | u64 round | 32 voter | 64 signature by the voter's vote key, domain
 *           "dpnode/harm/1", over run | fork | accused | round: in most of the rounds up to this
 *           one the voter has found its updates harmful
 *
 * A removal for this reason carries the words of a majority of the voters of its slot, each of one
 * of the last DP_HARM_ROUNDS rounds. A voter is not removed in this way. */
#ifndef DP_GOSSIP_LEDGER_HARM_H
#define DP_GOSSIP_LEDGER_HARM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "gossip/ledger/ledger.h"
#include "gossip/record/record.h"

enum {
    DP_HARM_ROUNDS = 32, /* so many a word lasts */
    DP_HARMS_MAX = 16,   /* members that are accused at a time */
    DP_HARM_MESSAGE_BYTES = 2 + 32 + 8 + 32 + DP_SIGNATURE_BYTES
};

typedef struct dp_harm {
    dp_peer accused;
    uint64_t round;
    dp_peer voter;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_harm;

void dp_harm_write(dp_writer *writer, const dp_harm *harm);
DP_MUST dp_status dp_harm_read(dp_view message, dp_harm *harm);
bool dp_harm_sign(dp_harm *harm, const dp_crypto *crypto, const dp_run_id *run,
                  const dp_hash *fork);
bool dp_harm_verify(const dp_harm *harm, const uint8_t vote_key[DP_PUBLIC_KEY_BYTES],
                    const dp_crypto *crypto, const dp_run_id *run, const dp_hash *fork);

/* The newest word of each voter about each member; by index of the slot's voters. */
typedef struct dp_harms {
    uint32_t n;
    struct dp_harm_row {
        dp_peer accused;
        uint64_t rounds[DP_VOTERS_MAX]; /* 0: it has not said so */
        uint8_t signatures[DP_VOTERS_MAX][DP_SIGNATURE_BYTES];
    } rows[DP_HARMS_MAX];
} dp_harms;

/* Is it news, of a member that may be removed, and recent? Asked before its signature is
 * checked. */
bool dp_harms_want(const dp_harms *harms, const dp_ledger *ledger, const dp_harm *harm);
/* It is wanted, and its signature holds. Where there is no room it is dropped: it is told again. */
void dp_harms_add(dp_harms *harms, const dp_ledger *ledger, const dp_harm *harm);
/* Words that are too old for the next record, or about nobody. Where the voters have changed all is
 * forgotten. */
void dp_harms_prune(dp_harms *harms, const dp_ledger *ledger, bool voters_changed);
/* The removal of the index'th member accused; false where no majority accuses it. */
bool dp_harms_removal(const dp_harms *harms, const dp_ledger *ledger, uint32_t index,
                      dp_remove *out);

/* May a record after this ledger carry it? Else *cause (static text) says why not. */
DP_MUST dp_status dp_harm_valid(const dp_ledger *ledger, const dp_crypto *crypto,
                                const dp_remove *remove, const char **cause);

#endif
