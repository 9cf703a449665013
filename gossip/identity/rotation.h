/* The rotation of the join secret, from which the channel's pre-shared key is derived: the signed
 * statement that begins a new epoch, the ledger's copy of it, and the secrets that a node holds.
 * Bytes and rules, no messages sent; rotate.h hands the secrets to members.
 *
 *   in a record    u16 epoch | 32 commitment | 32 by | 64 signature
 *   ROTATE         head | the same | 16 secret
 *   SECRET_GET     head: the member at the other end of the link asks for the secret of the present
 *                  epoch
 *   SECRET         head | u16 epoch | 16 secret
 *
 * commitment: BLAKE2b-256 over "dpnode/join-secret/1", a zero byte, run | epoch | secret. So the
 * chain names the secret and does not tell it, and every node that receives a secret can check it.
 * by is
 * the run's root key or a member that may administer. Domain "dpnode/rotation/1" over run | epoch
 * | commitment | by. */
#ifndef DP_GOSSIP_IDENTITY_ROTATION_H
#define DP_GOSSIP_IDENTITY_ROTATION_H

#include <stdbool.h>

#include "gossip/core/crypto.h"
#include "gossip/identity/invite.h"

enum {
    DP_ROTATION_BYTES = 2 + 32 + 32 + DP_SIGNATURE_BYTES,
    DP_SECRETS_MAX = 2, /* epochs that are valid at a time */
    /* that a record may be ahead of the chain: rotations that a FORK undid keep their epochs */
    DP_ROTATION_STEP_MAX = 16
};

/* The newest epoch of the join secret by the chain. Epoch 0 is that of the founder: the chain has
 * no commitment for it. */
typedef struct dp_epoch {
    uint16_t epoch;
    dp_hash commitment;
} dp_epoch;

typedef struct dp_rotation {
    dp_epoch next;
    dp_peer by;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_rotation;

typedef struct dp_secret {
    uint16_t epoch;
    uint8_t bytes[DP_JOIN_SECRET_BYTES];
} dp_secret;

/* Newest epoch first. */
typedef struct dp_secrets {
    uint32_t n;
    dp_secret items[DP_SECRETS_MAX];
} dp_secrets;

dp_hash dp_secret_commitment(const dp_run_id *run, const dp_secret *secret);
/* In the place of one of the same epoch, or before the older ones, of which the oldest goes. False:
 * it is older than all, or there already. */
bool dp_secrets_add(dp_secrets *secrets, const dp_secret *secret);
/* The one that this epoch of the chain names; NULL: it is not here. */
const dp_secret *dp_secrets_of(const dp_secrets *secrets, const dp_run_id *run,
                               const dp_epoch *epoch);

/* key: DP_KEY_IDENTITY or DP_KEY_ROOT, whose public half stands in by. False: there is no key. */
bool dp_rotation_sign(dp_rotation *word, const dp_crypto *crypto, int key, const dp_run_id *run);
/* The signature alone. */
bool dp_rotation_verify(const dp_rotation *word, const dp_crypto *crypto, const dp_run_id *run);
/* May it follow this epoch of the chain? */
bool dp_rotation_follows(const dp_rotation *word, const dp_epoch *epoch);
void dp_rotation_write(dp_writer *writer, const dp_rotation *word);
void dp_rotation_read(dp_reader *reader, dp_rotation *word);

void dp_rotation_msg_write(dp_writer *writer, const dp_rotation *word, const dp_secret *secret);
/* Total; the signature is not looked at, nor whether the secret is the one. DP_BADMSG. */
DP_MUST dp_status dp_rotation_msg_read(dp_view message, dp_rotation *word, dp_secret *secret);
void dp_secret_msg_write(dp_writer *writer, const dp_secret *secret);
DP_MUST dp_status dp_secret_msg_read(dp_view message, dp_secret *secret);

#endif
