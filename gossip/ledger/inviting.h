/* Which invites admit nobody, by the chain alone: those that the root key or an admin revoked, and
 * those made by a node that is no member. The part of the ledger that says so; no messages, no
 * clock.
 *
 * These rules hold from the first record on whose config part has a list of revoked invites, maybe
 * an empty one (bit 6, record.h): a voter puts one into the first record it drafts after any
 * revocation. Records of chains in which nobody was revoked are judged as before. Then
 * - an admission holds only if no invite in its credential is revoked, by the ledger or by its own
 * record;
 * - and only if every node above it is a member by the ledger, and not removed by its own record.
 *   So the invites of a member that was revoked, left or was put out for being away admit nobody,
 *   nor do those of a node that never joined; those of the root key are of no node. */
#ifndef DP_GOSSIP_LEDGER_INVITING_H
#define DP_GOSSIP_LEDGER_INVITING_H

#include "base/bytes.h"
#include "gossip/identity/admission.h"
#include "gossip/ledger/ledger.h"

/* Is this invite revoked by the chain? */
bool dp_inviting_revoked(const dp_ledger *ledger, const dp_invite_id *id);
/* Why nobody is admitted by this credential, static text; NULL: nothing speaks against it. config:
 * of the record that would, or NULL. */
const char *dp_inviting_struck(const dp_ledger *ledger, const dp_config_part *config,
                               const dp_admitted *admitted);
/* May this key revoke invites? The root key, and members that may administer. */
bool dp_inviting_may_revoke(const dp_ledger *ledger, const dp_peer *by);
/* Does the chain need this word, in a record of this time? Not one that it has already for as long,
 * nor one about an invite whose end has come. */
bool dp_inviting_wants(const dp_ledger *ledger, const dp_invite_revoke *word, uint64_t time_ms);
/* Invites that a record of this time may revoke beside those that are revoked already. */
uint32_t dp_inviting_room(const dp_ledger *ledger, uint64_t time_ms);
/* Somebody was revoked, and the chain does not judge invites yet. */
bool dp_inviting_due(const dp_ledger *ledger);
/* For ledger.c: apply the list of a record that has one, and add the state of this module to the
 * digest. */
void dp_inviting_apply(dp_ledger *ledger, const dp_config_part *config, uint64_t time_ms);
void dp_inviting_digest(const dp_ledger *ledger, dp_digest *digest);

/* May this word stand in the next record of this chain? cause gets static text. DP_DENIED,
 * DP_BADSIG. */
DP_MUST dp_status dp_inviting_rotation_valid(const dp_ledger *ledger, const dp_crypto *crypto,
                                             const dp_rotation *word, const char **cause);

#endif
