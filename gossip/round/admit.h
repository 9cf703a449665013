/* Newcomers, and the messages that a peer may send before the chain has admitted it.
 *
 *   GUEST   head | 32 peer | u16 size | its credential: a member tells the voters that it has a
 *           link to a node that waits. Unsigned: only the credential admits, and a node that is
 *           named without being there takes a place that its invite grants anyway */
#ifndef DP_GOSSIP_ROUND_ADMIT_H
#define DP_GOSSIP_ROUND_ADMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "gossip/core/limits.h"
#include "gossip/identity/admission.h"
#include "gossip/record/record.h"

enum { DP_TOLD_GUESTS_MAX = 32 };
#define DP_TOLD_GUEST_US (10 * DP_SECOND) /* so long a GUEST stands without another */

/* Nodes that wait at others, to a voter. */
typedef struct dp_told_guest {
    dp_peer peer;
    dp_time until;
    dp_admitted grants;
    uint16_t credential_bytes;
    uint8_t credential[DP_CREDENTIAL_MAX];
} dp_told_guest;

typedef struct dp_told_guests {
    uint32_t n;
    dp_told_guest items[DP_TOLD_GUESTS_MAX];
} dp_told_guests;

/* Into a draft whose time, list and removals stand; admitted as in dp_valid. A member that is away
 * may give its place. */
void dp_admit_draft(const dp_node *node, dp_record *draft, dp_admitted *admitted);
/* Somebody waits for admission, and a record of its own would not disturb the round. */
bool dp_admit_may_stand_alone(const dp_node *node);
/* Tells the voters of those that wait here. */
void dp_admit_tell(dp_node *node);
/* A GUEST from a member. DP_BADMSG, DP_DENIED; DP_TOOBIG: as many are known. */
dp_status dp_admit_message(dp_node *node, dp_view bytes);
/* Is a guest forbidden to send this type of message? It may ask, and answer requests. */
bool dp_admit_members_only(uint8_t type);

#endif
