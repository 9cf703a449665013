/* A renewal: the signed word of a member that may invite, or of the root key, that another member's
 * certificate holds longer than it says. It stands beside the credential with which the node was
 * admitted, and that does not change: capabilities, static key and invite do not change. Bytes and
 * signature; renew.h decides which nodes may renew.
 *
 *   in a hello, a store    32 peer | u64 until, unix ms | 32 by | 64 signature
 *   RENEW_GET              head: the peer at the other end of the link asks for one
 *   RENEWAL                head | the same bytes
 *
 * Domain "dpnode/renewal/1" over run | peer | until | by. */
#ifndef DP_GOSSIP_IDENTITY_RENEWAL_H
#define DP_GOSSIP_IDENTITY_RENEWAL_H

#include <stdbool.h>

#include "gossip/core/crypto.h"
#include "gossip/identity/cert.h"

enum { DP_RENEWAL_BYTES = 32 + 8 + 32 + DP_SIGNATURE_BYTES };
#define DP_RENEWAL_MS (365ULL * 24 * 3600 * 1000)

typedef struct dp_renewal {
    dp_peer peer;
    uint64_t until_ms; /* 0: there is none */
    dp_peer by;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_renewal;

/* key: DP_KEY_IDENTITY or DP_KEY_ROOT, whose public half stands in by. False: there is no key. */
bool dp_renewal_sign(dp_renewal *renewal, const dp_crypto *crypto, int key, const dp_run_id *run);
/* Is it about this peer, signed, not over, and for no longer than a certificate may last from now?
 * Does not check whether by may sign renewals. */
bool dp_renewal_fits(const dp_renewal *renewal, const dp_crypto *crypto, const dp_run_id *run,
                     const dp_peer *peer, uint64_t now_ms);
void dp_renewal_write(dp_writer *writer, const dp_renewal *renewal);
void dp_renewal_read(dp_reader *reader, dp_renewal *renewal);
void dp_renewal_msg_write(dp_writer *writer, const dp_renewal *renewal);
/* Total; the signature is not looked at. DP_BADMSG. */
DP_MUST dp_status dp_renewal_msg_read(dp_view message, dp_renewal *renewal);

#endif
