/* The check of a membership credential as a table of one call, so that the simulator can admit with
 * cheap stand-ins. The one real implementation is dp_admission_certs(), over
 * gossip/identity/cert.h. */
#ifndef DP_GOSSIP_IDENTITY_ADMISSION_H
#define DP_GOSSIP_IDENTITY_ADMISSION_H

#include <stdint.h>

#include "base/bytes.h"
#include "gossip/core/id.h"
#include "gossip/identity/cert.h"

/* Facts about a newcomer that the chain needs. */
typedef struct dp_admitted {
    uint32_t caps;
    uint16_t uses;        /* of its invite; 0 means unlimited */
    dp_invite_id invite;  /* zero when the root key issued it directly */
    uint64_t until_ms;    /* no credential made with it lasts longer; 0: not known */
    uint8_t x_public[32]; /* its static key in the channel; zero: not known */
    /* The other invite and the nodes on which its credential rests (inviting.h). */
    dp_invite_id invite_above; /* by which the node that made its invite joined; zero: none */
    uint8_t n_above;           /* nodes above it, */
    dp_peer above[DP_CERT_ABOVE_MAX]; /* ... the one that made its invite first */
} dp_admitted;

typedef struct dp_admission {
    void *context;
    /* Does credential make peer a member of run? now_ms 0: time is not looked at. Pure: the same
     * answer on every node. The statuses of dp_credential_check; out is untouched on failure. */
    dp_status (*check)(void *context, dp_view credential, const dp_run_id *run,
                       const uint8_t root[DP_PUBLIC_KEY_BYTES], const dp_peer *peer,
                       uint64_t now_ms, dp_admitted *out);
} dp_admission;

dp_admission dp_admission_certs(void);

#endif
