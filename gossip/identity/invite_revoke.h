/* The signed statement that an invite is revoked: a node with that invite anywhere in its
 * credential does not become a member. Bytes and signature; which of them a chain holds is
 * inviting.h's business.
 *
 *   in a record        16 invite id | u64 until, unix ms | 32 by | 64 signature
 *   INVITE_REVOKE      head | the same
 *
 * by is the run's root key or a member that may administer. Domain "dpnode/invite-revoke/1" over
 * run | id | until | by. After until no credential can be valid that was made with the invite, or
 * with one of a node that came by it, so that the chain may forget the word; the largest number:
 * never. */
#ifndef DP_GOSSIP_IDENTITY_INVITE_REVOKE_H
#define DP_GOSSIP_IDENTITY_INVITE_REVOKE_H

#include <stdbool.h>

#include "gossip/core/crypto.h"
#include "gossip/identity/cert.h"

enum { DP_INVITE_REVOKE_BYTES = DP_INVITE_ID_BYTES + 8 + 32 + DP_SIGNATURE_BYTES };

typedef struct dp_invite_revoke {
    dp_invite_id id;
    uint64_t until_ms;
    dp_peer by;
    uint8_t signature[DP_SIGNATURE_BYTES];
} dp_invite_revoke;

/* By id: below, at or above zero. */
int dp_invite_id_compare(const dp_invite_id *a, const dp_invite_id *b);
/* When a word about an invite with this end may be forgotten. */
uint64_t dp_invite_revoke_until(uint64_t invite_until_ms);
/* key: DP_KEY_IDENTITY or DP_KEY_ROOT, whose public half stands in by. False: there is no key. */
bool dp_invite_revoke_sign(dp_invite_revoke *word, const dp_crypto *crypto, int key,
                           const dp_run_id *run);
/* The signature alone. */
bool dp_invite_revoke_verify(const dp_invite_revoke *word, const dp_crypto *crypto,
                             const dp_run_id *run);
void dp_invite_revoke_write(dp_writer *writer, const dp_invite_revoke *word);
void dp_invite_revoke_read(dp_reader *reader, dp_invite_revoke *word);
/* A list: u8 n | n words, ids rising. False: it has more than max, or another order. */
void dp_invite_revokes_write(dp_writer *writer, const dp_invite_revoke *words, uint32_t n);
bool dp_invite_revokes_read(dp_reader *reader, dp_invite_revoke *words, uint32_t max, uint32_t *n);
void dp_invite_revoke_msg_write(dp_writer *writer, const dp_invite_revoke *word);
/* Total; the signature is not looked at. DP_BADMSG. */
DP_MUST dp_status dp_invite_revoke_msg_read(dp_view message, dp_invite_revoke *word);

#endif
